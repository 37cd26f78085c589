"""`lmsconf help`: the guide, paged on a terminal and searched; and `completion`, the script for a shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import shorten

import click
from click.shell_completion import get_completion_class

from lmsconf.cli.command import COMMANDS, Command, completes
from lmsconf.cli.context import COMPLETION_VARIABLE
from lmsconf.cli.output import supports_color, terminal_size, write_redacted
from lmsconf.errors import LmsconfError, UsageError, refuse_if


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print the completion script of a shell.

    For bash, put eval "$(lmsconf completion bash)" into ~/.bashrc; for zsh the same with zsh into ~/.zshrc; for fish,
    lmsconf completion fish | source.
    """
    from lmsconf.cli.completion import Bash

    answering = get_completion_class(shell) or Bash
    script = answering(context.find_root().command, {}, "lmsconf", COMPLETION_VARIABLE).source()
    write_redacted(f"{script}\n", sys.stdout)


@click.command(cls=Command)
@click.argument("words", metavar="[TOPIC | COMMAND]", nargs=-1, shell_complete=completes("topics"))
@click.option("--search", metavar="WORD", help="List the lines of all pages that contain this, or all of these words.")
@click.pass_context
def help(context: click.Context, *, words: tuple[str, ...], search: str | None) -> None:
    """Print a page of the guide.

    Without a topic, the pages are listed. On a terminal a long page is shown in a pager: LMSCONF_PAGER, else PAGER,
    else less. With the name of a command, its --help is printed.
    """
    from lmsconf.support.files import guide_topics

    topics = sorted(guide_topics(), key=lambda topic: (topic != "getting-started", topic))
    if search is not None:
        hint = f"Topics are {', '.join(topics)}."
        refuse_if(*((word not in topics, f"there is no topic {word!r}", hint) for word in words))
        text = "".join(f"{line}\n" for line in _found(search, words or topics))
    elif not words:
        text = _list(topics)
    elif len(words) == 1 and words[0] in topics:
        text = _page(words[0], context)
    elif command := _find_command(words, context):
        text = f"{command.get_help()}\n"
    else:
        raise _unknown(" ".join(words), topics)
    write_redacted(text, sys.stdout, wraps=search is not None, pages=True)


def _width() -> int:
    """Return the width of pages: that of the terminal, within limits."""
    return max(min(terminal_size(sys.stdout).columns, 100), 40)


def _list(topics: Sequence[str]) -> str:
    """Return the topics with the first sentence below the title of each page, in one line each."""
    text = "Topics:\n"
    name = max(map(len, topics))
    for topic in topics:
        sentence = next(filter(None, _lines(topic)[1:])).partition(". ")[0].rstrip(".")
        text += f"  {topic:{name}}  {shorten(sentence, _width() - name - 4, placeholder=' …')}\n"
    return f"{text}\nOpen a page with `lmsconf help TOPIC`. Search all pages with `lmsconf help --search WORD`.\n"


def _lines(topic: str) -> list[str]:
    """Return the lines of a page, each paragraph in one, so that phrases are found across line breaks."""
    from lmsconf.render.help_pages import guide_page_text
    from lmsconf.support.files import read_guide_page

    return guide_page_text(read_guide_page(topic), sys.maxsize).splitlines()


def _page(topic: str, context: click.Context) -> str:
    """Return a page for this terminal; of a topic that is also a command, with the line that shows its options."""
    from lmsconf.render.help_pages import guide_page_text
    from lmsconf.support.files import read_guide_page

    text = guide_page_text(read_guide_page(topic), _width(), bold=supports_color(sys.stdout))
    return text + (f"\nOptions of the command: lmsconf {topic} --help\n" if _find_command((topic,), context) else "")


def _find_command(words: Sequence[str], context: click.Context) -> click.Context | None:
    """Return the context of the command that these words call; None if there is none."""
    current = context.find_root()
    for word in words:
        group = current.command
        command = group.get_command(current, word) if isinstance(group, click.Group) else None
        if command is None:
            return None
        current = click.Context(command, info_name=word, parent=current)
    return current


def _unknown(name: str, topics: Sequence[str]) -> UsageError:
    from lmsconf.model.lint_codes import RULES
    from lmsconf.model.names import did_you_mean
    from lmsconf.model.problem_codes import meaning_of

    near = did_you_mean(name, [*topics, *COMMANDS])
    if meaning_of(name) or name in RULES:
        near = f"To explain a code, run lmsconf explain {name}."
    hint = f"{near} List the pages with: lmsconf help" if near else f"Topics are {', '.join(topics)}."
    return UsageError(f"there is no topic or command {name!r}", hint=hint)


def _found(text: str, topics: Sequence[str]) -> list[str]:
    """Return the lines of the pages that contain a text in any case; if none does, those with all its words.

    Raises LmsconfError if there are none.
    """
    phrase = " ".join(text.casefold().split())
    lines = [(topic, " ".join(line.split())) for topic in topics for line in _lines(topic)]
    for wanted in ([phrase], phrase.split()):
        excerpts = [
            _excerpt(f"{topic}: ", line, wanted[0])
            for topic, line in lines
            if phrase and all(word in line.casefold() for word in wanted)
        ]
        if excerpts:
            return excerpts
    raise LmsconfError(f"no page contains {text!r}", hint="Search for one word, or list the pages with: lmsconf help")


def _excerpt(lead: str, line: str, wanted: str) -> str:
    """Return the words of a line around a text, with its page, in about 80 characters."""
    room = max(78 - len(lead), len(wanted))
    if len(line) <= room:
        return lead + line
    start = max(min(line.casefold().find(wanted) - room // 3, len(line) - room), 0)
    part = line[start : start + room]
    before = f"… {part.partition(' ')[2]}" if start else part
    return lead + (f"{before.rpartition(' ')[0]} …" if start + room < len(line) else before)
