"""The page `commands` of the guide, from the commands and the exit codes: `python -m tests.cli.command_reference`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill

import click

from lmsconf.cli import COMMANDS, app
from lmsconf.cli.command import GLOBAL_OPTIONS
from lmsconf.cli.help import EXAMPLES
from lmsconf.errors import ExitCode

PAGE = Path(__file__).parent.parent.parent / "lmsconf" / "guide" / "commands.md"
WIDTH = 80
MEANINGS = {
    ExitCode.OK: "done, or nothing to do",
    ExitCode.ERROR: "error: manifests, project file, a plan that was declined, anything else",
    ExitCode.CHANGES: "changes (`plan --detailed-exitcode`, `fmt --check`), or drift",
    ExitCode.STALE: "the plan is stale, was edited, or is not the expected one",
    ExitCode.BLOCKED: "stopped by a guard, a failing test or a certain refusal",
    ExitCode.PARTIAL: "applied in part",
    ExitCode.NOT_CONVERGED: "applied, but the workspace still differs",
    ExitCode.UNAUTHORIZED: "authentication or permission refused",
    ExitCode.UNREACHABLE: "the service is not reachable, or limits the rate to the end",
    ExitCode.USAGE: "wrong command line",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
    ExitCode.TERMINATED: "terminated (SIGTERM)",
}
_OPENING = """\
# Commands

Look up commands, options, addresses and exit codes.

`lmsconf COMMAND --help` prints the same for one command. Results go to stdout,
progress and problems to stderr.
"""
_PRECEDENCE = """\
When several apply, the first of these is used: {codes}. During an apply, 7 and
8 are used only if nothing was written; otherwise the exit code is 5.
"""
_FORMATS = """\
## Formats

With `--format json`, stdout contains one document with a version, such as
`lmsconf.plan/1`; if there is no result, it is `lmsconf.problems/1`. The JSON
Schemas are in `schemas/`. Other formats may change.

`--output FILE` writes the result to a file. `NO_COLOR` turns colours off.
"""
_TERMINAL = """\
## On a terminal

Text that is longer than the terminal is shown in a pager, as git does, by
`plan`, `show`, `drift`, `access`, `audience`, `explain` and `help`. The pager is
`LMSCONF_PAGER`, else `PAGER`, else `less`; `--no-pager` prints the text.

lmsconf asks questions only if stdin and stderr are terminals. Elsewhere, pass
the option that answers the question: `--auto-approve`, `--yes` or `--no-input`.
"""
_ADDRESSES = """\
## Addresses

| resource | address |
|---|---|
| custom field | `custom_field/Department` |
| group | `group/Onboarding coaches` |
| smart group | `smart_group/Sales Nordics` |
| person | `user/bo.ek@acme.example` |
| assignment | `content_target/GDPR basics -> smart_group/Sales Nordics` |

Paste addresses from plans and reports into `--only`, `--except`, `--accept` and
`audience`, in quotes for the shell. The kind ends at the first `/`: a `/` in a
name needs nothing. A `\\` and a ` -> ` in a name are written after a `\\`.

`*` is a wildcard: `--only 'group/Leadership *'`. Where they mean exactly one
resource, these are accepted too:

- the name of a section: `groups/Onboarding coaches`
- the words of a plan: `assignment of GDPR basics to everyone`
- a name alone: `Onboarding coaches`

`content/GDPR basics` means all assignments of that content.
"""
_CLOSING = """\
## See also

- [project-file](project-file.md): settings and environment variables
- [manifests](manifests.md): what is declared
- [glossary](glossary.md): the words of this guide
"""


def command_page() -> str:
    """The whole page."""
    sections = [_OPENING, _table(), _exit_codes(), _FORMATS, _TERMINAL, _ADDRESSES, _global_options()]
    context = click.Context(app, info_name="lmsconf", **app.context_settings)
    for name in COMMANDS:
        sections += _command(context, name)
    return "\n".join([*sections, _CLOSING])


def _global_options() -> str:
    return _options("## Global options\n\nThese are accepted before and after the command.", GLOBAL_OPTIONS)


def _table() -> str:
    rows = [f"| [`{name}`](#lmsconf-{name}) | {entry.help.rstrip('.')} |" for name, entry in COMMANDS.items()]
    return "\n".join(["| command | does |", "|---|---|", *rows, ""])


def _exit_codes() -> str:
    rows = [f"| {code.value} | {MEANINGS[code]} |" for code in ExitCode]
    codes = sorted(ExitCode, key=lambda code: [ExitCode.worst([code, other]) for other in ExitCode].count(code))
    order = ", ".join(str(code.value) for code in reversed(codes))
    sentence = fill(" ".join(_PRECEDENCE.format(codes=order).split()), WIDTH)
    return "\n".join(["## Exit codes", "", "| exit | meaning |", "|---|---|", *rows, "", sentence, ""])


def _command(parent: click.Context, name: str) -> Iterator[str]:
    """The section of a command, and those of its own commands."""
    command = parent.command.get_command(parent, name)  # type: ignore[attr-defined]  # only groups are parents
    assert command
    context = click.Context(command, info_name=name, parent=parent)
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield "\n".join([f"## {path}", "", "```text", usage, "```", "", *_help(command.help or ""), *_examples(path)])
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from _command(context, below)
    elif options := [one for one in command.params if isinstance(one, click.Option) and not one.hidden]:
        yield _options("Options:", options)


def _help(text: str) -> Iterator[str]:
    """The paragraphs of a help text, wrapped; one that click leaves as it is becomes a block."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield from ("```text", inspect.cleandoc(paragraph.removeprefix("\b\n")), "```", "")
        else:
            yield from (_wrapped(" ".join(paragraph.split())), "")


def _examples(path: str) -> Iterator[str]:
    if path in EXAMPLES:
        lines = [text for comment, line in EXAMPLES[path] for text in (f"# {comment}", line)]
        yield from ("```text", *lines, "```", "")


def _options(heading: str, options: Sequence[click.Option]) -> str:
    return "\n".join([heading, "", *map(_option, options), ""])


def _option(option: click.Option) -> str:
    option.get_help_record(click.Context(click.Command("lmsconf")))  # some options look their text up for it
    choices = f" One of {', '.join(option.type.choices)}." if isinstance(option.type, click.Choice) else ""
    value = "" if option.is_flag else f" {option.metavar or ('N' if _is_number(option) else _word(option))}"
    default = option.default
    shown = f" Default: {default}." if option.show_default and isinstance(default, int | str) else ""
    text = f"- `{', '.join(option.opts)}{value}`: {option.help}{choices}{shown}"
    return _wrapped(text, hang="  ")


def _is_number(option: click.Option) -> bool:
    return isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)


def _word(option: click.Option) -> str:
    return option.opts[0].lstrip("-").rpartition("-")[2].upper()


def _wrapped(text: str, hang: str = "") -> str:
    """The text in lines; no option and no address is cut at a hyphen."""
    starred = re.sub(r"(?<![`\w*])\*(?= )", "`*`", text)
    return fill(starred, WIDTH, subsequent_indent=hang, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    PAGE.write_text(command_page(), encoding="utf-8")
