"""The pages `commands…` of the guide, from the commands and the exit codes: `python -m tests.cli.command_reference`."""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from lmsconf.cli.command import COMMANDS, GLOBAL_OPTIONS, app
from lmsconf.errors import ExitCode

GUIDE = Path(__file__).parent.parent.parent / "lmsconf" / "guide"
WIDTH = 80
_PAGE = Path(__file__).parent / "texts" / "commands.md"
_END = """\
## See also

- [commands](commands.md): common options, addresses and exit codes
- [project-file](project-file.md): settings and environment variables
"""


_DATA = json.loads((Path(__file__).parent / "texts" / "command_reference.json").read_text(encoding="utf-8"))
CHAPTERS: Mapping[str, Mapping[str, Any]] = _DATA["chapters"]
"""Page → its title, what it is for, and the commands whose options it has."""
EXPLAINED: Mapping[str, str] = _DATA["explained"]
"""Command → where the guide explains it; the others are explained by their own help text."""
_FORMAT = "--format"
_COMMON = 3
"""So many commands with the same option have it among the common ones."""
Command = tuple[click.Context, list[click.Option]]
Identity = tuple[str, str]
"""An option's name and text: commands with the same ones have it in common."""


def command_pages() -> dict[str, str]:
    """Topic → the whole page."""
    page = _PAGE.read_text(encoding="utf-8").format(
        table="\n".join(["| command | does |", "|---|---|", *_commands_by_page()]),
        precedence=_precedence(),
        global_options="\n".join(_rows(GLOBAL_OPTIONS)),
        common_options="\n".join(_shared_rows("lmsconf")),
    )
    return {"commands": page, **{name: _chapter(chapter) for name, chapter in CHAPTERS.items()}}


def options_of_commands() -> dict[str, list[str]]:
    """Path → the names of the options of each command."""
    return {path: [name for one in options for name in one.opts] for path, (_, options) in _commands().items()}


@cache
def _commands() -> dict[str, Command]:
    """Path → context and options of each command, those below a group behind it."""
    root = click.Context(app, info_name="lmsconf", **app.context_settings)
    return {context.command_path: (context, options) for name in COMMANDS for context, options in _below(root, name)}


def _below(parent: click.Context, name: str) -> Iterator[Command]:
    command = parent.command.get_command(parent, name)  # type: ignore[attr-defined]  # only groups are parents
    assert command
    context = click.Context(command, info_name=name, parent=parent)
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden and not names]
    for option in options:
        option.get_help_record(context)  # some options look their text up for it
    yield context, options
    for below in names:
        yield from _below(context, below)


def _identity(option: click.Option) -> Identity:
    return option.opts[-1], option.help or ""


@cache
def _shared() -> dict[Identity, tuple[str, click.Option]]:
    """The options that several commands have in common: of one group, with its path, or of all, with `lmsconf`."""
    users: dict[Identity, list[str]] = {}
    found: dict[Identity, click.Option] = {}
    for path, (_, options) in _commands().items():
        for one in options:
            users.setdefault(_identity(one), []).append(path.rpartition(" ")[0])
            found[_identity(one)] = one
    return {
        key: (parents[0] if len(set(parents)) == 1 else "lmsconf", found[key])
        for key, parents in users.items()
        if len(parents) >= _COMMON and key[0] != _FORMAT
    }


def _shared_rows(path: str) -> Iterator[str]:
    return _rows([one for parent, one in _shared().values() if parent == path])


def _commands_by_page() -> Iterator[str]:
    for page, chapter in CHAPTERS.items():
        for name in chapter["commands"]:
            yield f"| [`{name}`]({page}.md#lmsconf-{name}) | {COMMANDS[name].help.rstrip('.')} |"


def _precedence() -> str:
    """Which exit code is used when several apply, first of all those before which no other comes."""
    ranks = {code: [ExitCode.worst([code, other]) for other in ExitCode].count(code) for code in ExitCode}
    codes = ", ".join(str(code.value) for code in sorted(ExitCode, key=ranks.__getitem__, reverse=True))
    return fill(
        f"When several apply, the first of these is used: {codes}. During an apply, 7 and 8 are used only if nothing "
        "was written; otherwise the exit code is 5.",
        WIDTH,
    )


def _chapter(chapter: Mapping[str, Any]) -> str:
    paths = [path for name in chapter["commands"] for path in _commands() if path.split()[1] == name]
    return "\n".join([f"# {chapter['title']}", "", chapter["purpose"], "", *map(_section, paths), _END])


def _section(path: str) -> str:
    """Heading, usage with the first sentence of the help text, where it is explained, and the options."""
    context, options = _commands()[path]
    lines = [f"## {path}", "", *_said(path, context)]
    if isinstance(context.command, click.Group):
        lines += ["Several of its commands take these:", "", *_shared_rows(path), ""]
    elif options:
        own = [one for one in options if _identity(one) not in _shared()]
        lines += [*_rows(own), *_named(path.rpartition(" ")[0], options), ""]
    return "\n".join(lines)


def _said(path: str, context: click.Context) -> Iterator[str]:
    """Usage and first sentence, then the link to what explains the command, or else its help text."""
    usage = " ".join([path, *context.command.collect_usage_pieces(context)])
    paragraphs = inspect.cleandoc(context.command.help or "").split("\n\n")
    first, *more = (" ".join(paragraph.split()) for paragraph in paragraphs)
    _, *names = path.split()
    target = EXPLAINED.get(names[0])
    link = f" See [{target.partition('.')[0]}]({target})." if target and len(names) == 1 else ""
    yield from (_wrapped(f"`{usage}`: {first}{link}"), "")
    if not target:
        yield from (line for paragraph in more for line in (_wrapped(paragraph), ""))


def _named(group: str, options: Sequence[click.Option]) -> Iterator[str]:
    """A row with the names of the options of the group, and one for the common ones."""
    links = {group: f"[{group}](#{group.replace(' ', '-')})", "lmsconf": "[common options](commands.md#common-options)"}
    for parent, link in links.items():
        if names := [f"`{one.opts[-1]}`" for one in options if _shared().get(_identity(one), ("",))[0] == parent]:
            yield f"| {', '.join(names)} | {link} |"


def _rows(options: Iterable[click.Option]) -> Iterator[str]:
    yield from ("| option | meaning |", "|---|---|", *map(_row, options))


def _row(option: click.Option) -> str:
    """One line: names, the word for the value, the text, the choices and the default."""
    is_number = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
    word = "N" if is_number else option.opts[0].lstrip("-").rpartition("-")[2].upper()
    value = "" if option.is_flag else f" {option.metavar or word}"
    chosen = f" One of {', '.join(option.type.choices)}." if isinstance(option.type, click.Choice) else ""
    default = option.default
    shown = f" Default: {default}." if option.show_default and isinstance(default, int | str) else ""
    text = f"{option.help}{chosen}{shown}"
    for left_out in ("The format of the result. One of ", "; see above"):
        text = text.replace(left_out, "")
    return f"| `{_cell(', '.join(option.opts) + value)}` | {_cell(_starred(text))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _starred(text: str) -> str:
    return re.sub(r"(?<![`\w*])\*(?= )", "`*`", text)


def _wrapped(text: str) -> str:
    """The text in lines; no option and no address is cut at a hyphen."""
    return fill(_starred(text), WIDTH, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    for topic, text in command_pages().items():
        (GUIDE / f"{topic}.md").write_text(text, encoding="utf-8")
