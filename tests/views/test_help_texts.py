"""`--help` of every command: a line of use, two examples that parse, options in groups, at 80 and at 40 columns."""

import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from flow.shell import lmsconf
from texts import text_of

from lmsconf.cli import app
from lmsconf.cli.usage import EXAMPLES, OPTION_GROUPS
from lmsconf.render.help_pages import guide_page_text


def commands(group: click.Command, *above: str) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups among them."""
    yield above
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands(command, *above, name)


COMMANDS = list(commands(app))


@cache
def help_text(words: tuple[str, ...], columns: int = 80) -> str:
    """The help of a command on a terminal of that width."""
    ran = lmsconf(Path(), *words, "--help", env={"COLUMNS": str(columns)})
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def test_all_help_texts(golden: Callable[[str, str], None]) -> None:
    """All pages are as in the golden file: each begins with the usage, has two examples, and no option that is in no
    group; no line is wider than 80."""
    golden("help.txt", "\n".join(map(help_text, COMMANDS)))
    for words in COMMANDS:
        text, command = help_text(words), " ".join(["lmsconf", *words])
        assert text.startswith(f"Usage: {command} [OPTIONS]")
        assert len(re.findall(r"^  # ", text, re.MULTILINE)) == len(EXAMPLES[command]) == 2
        assert all(f"\n  {line}\n" in text for _, line in EXAMPLES[command])
        assert ("\nOptions:\n" in text) is (not words)
        assert [line for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_help_text_on_a_narrow_terminal(words: tuple[str, ...]) -> None:
    """No word of prose is cut and no line but of an example or of usage is wider than 40 columns."""
    wide, narrow = help_text(words), help_text(words, 40)
    kept = {line for _, line in EXAMPLES[" ".join(["lmsconf", *words])]}
    prose = narrow.partition("\n\n")[2]
    assert [
        line for line in prose.splitlines() if len(line) > 40 and line.strip() not in kept and "{" not in line
    ] == []
    assert sorted(_words(narrow)) == sorted(_words(wide))


def _words(text: str) -> list[str]:
    """The words of a page; lists of choices may be cut after a choice, and comments have a mark in each line."""
    return text.replace("|\n    ", "|").replace("#", "").split()


@pytest.mark.parametrize("line", [line for pair in EXAMPLES.values() for _, line in pair])
def test_an_example_parses(line: str, tmp_path: Path) -> None:
    """Its command exists and takes its options, as a shell splits them."""
    call = re.sub(r'^eval "\$\((.*)\)"$', r"\1", line).partition(" | ")[0]
    program, *words = shlex.split(call)
    assert program == "lmsconf"
    folders = {name: str(tmp_path / name) for name in ("lms", "plans", "shard-1", "shard-2")}
    for folder in folders.values():
        Path(folder).mkdir()
    context = click.Context(app, info_name=program, help_option_names=["-h", "--help"])
    command: click.Command | None = app
    while isinstance(command, click.Group):
        name = words.pop(0)
        command = command.get_command(context, name)
        context = click.Context(command, info_name=name, parent=context) if command else context
    assert command is not None
    with command.make_context(command.name, [folders.get(word, word) for word in words], parent=context) as parsed:
        assert parsed.args == []


def test_each_group_of_options_is_used() -> None:
    """A heading without options, and an option that no command has, are left over."""
    taken = {option for words in COMMANDS for option in re.findall(r"^  (--[\w-]+)", help_text(words), re.MULTILINE)}
    names = [option for options in OPTION_GROUPS.values() for option in options]
    assert [option for option in names if option not in taken] == []
    assert len(names) == len(set(names))


# Pages of the guide on a terminal.


PAGE = text_of(__file__, "help_texts_page.txt")
NARROW = text_of(__file__, "help_texts_narrow.txt")


def test_a_page_fits_its_terminal() -> None:
    """Prose and cells are wrapped at blanks, lists hang, comments, pictures and marks of Markdown are left out."""
    assert guide_page_text(PAGE, 40) == NARROW
