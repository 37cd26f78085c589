"""Messages and hints for a wrong command line, also for words of terraform, kubectl and git. Imported only for one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NoReturn

import click

_MANIFEST_ENDINGS: Final = (".yaml", ".yml", ".json", ".tf")
_EXTRA: Final = re.compile(r"Got unexpected extra arguments? \((\S+)")
_ABSENT: Final = "To delete resources, list them under `absent`, then run lmsconf plan and lmsconf apply."
_CHECK: Final = "Run lmsconf validate."
_DIFFERENCES: Final = "lmsconf plan shows what would change, lmsconf drift what was changed by hand."
_LIVE: Final = (
    "There is no state file. lmsconf snapshot FILE saves the live state, lmsconf export writes it as manifests."
)
_PEOPLE: Final = "Run lmsconf access EMAIL for a person, or lmsconf audience for a group."
_REVERT: Final = (
    "Run lmsconf plan --undo latest --out undo.json, then lmsconf apply undo.json. Revert the manifests too."
)
COMMANDS_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("destroy", "delete", "rm", "remove"), _ABSENT),
    **dict.fromkeys(("lint", "check", "verify"), _CHECK),
    **dict.fromkeys(("diff", "status", "refresh", "preview"), _DIFFERENCES),
    **dict.fromkeys(("state", "output", "pull"), _LIVE),
    **dict.fromkeys(("user", "users", "person", "people", "group", "groups", "members"), _PEOPLE),
    **dict.fromkeys(("rollback", "revert", "undo"), _REVERT),
    **dict.fromkeys(("get", "list", "describe", "ls"), f"For one request, run lmsconf api GET PATH. {_LIVE}"),
    **dict.fromkeys(("deploy", "push", "sync", "up"), "Run lmsconf plan, then lmsconf apply."),
    **dict.fromkeys(
        ("log", "logs"), "lmsconf runs lists what was applied from here, lmsconf history who changed what."
    ),
    **dict.fromkeys(("create", "new"), "lmsconf init creates a project. Resources are created by lmsconf apply."),
    **dict.fromkeys(
        ("rename", "mv", "move"), "Change the name in the manifest, and list the old one under `previously`."
    ),
    **dict.fromkeys(("login", "auth"), "Set LMSCONF_TOKEN to an API key, then run lmsconf doctor."),
    **dict.fromkeys(("serve", "mock"), "Run lmsconf sandbox serve."),
    **dict.fromkeys(("format",), "Run lmsconf fmt."),
    "import": "Run lmsconf export --into: it writes manifests for live resources.",
    "workspace": "Select a workspace with --workspace NAME.",
    "workspaces": "lmsconf.yaml lists the workspaces. Select one with --workspace NAME.",
    "version": "Run lmsconf --version.",
}
"""Commands of other tools → what to run here."""

_ALL_MANIFESTS: Final = "lmsconf reads all manifests of the project, and -C DIR selects another project."
OPTIONS_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("target", "t", "resource"), "Select resources with --only ADDRESS."),
    **dict.fromkeys(("var", "var-file"), "Set variables under `vars` in lmsconf.yaml."),
    **dict.fromkeys(("f", "file", "filename"), _ALL_MANIFESTS),
    **dict.fromkeys(
        ("y", "yes", "force", "auto", "a"), "lmsconf apply asks for approval, unless you pass --auto-approve."
    ),
    **dict.fromkeys(
        ("w", "n", "namespace", "env", "environment", "context"), "Select a workspace with --workspace NAME."
    ),
    **dict.fromkeys(("o", "json"), "Choose the format with --format, such as --format json, and a file with --output."),
    **dict.fromkeys(("v", "V"), "Use --version for the version, and --verbose to see each request."),
    **dict.fromkeys(("no-color", "color"), "Set the environment variable NO_COLOR=1."),
    **dict.fromkeys(("q", "quiet", "silent"), "Write the output to a file with --output, or redirect it."),
    "dry-run": "lmsconf plan shows what would change, and changes nothing.",
    "chdir": "Select a project with -C DIR.",
    "refresh-only": "Run lmsconf drift.",
    "destroy": _ABSENT,
    "token": "A token is never an option: set LMSCONF_TOKEN.",
    "url": "Set LMSCONF_URL, or list the workspace in lmsconf.yaml.",
}
"""Options of other tools, without dashes → what to do here."""


def fail_unknown_command(ctx: click.Context, name: str, known: Sequence[str]) -> NoReturn:
    """Fail with the nearest command, or with all of them. `usage_advice` has the hint for those of other tools."""
    near = get_close_matches(name, known, 1)
    if ctx.parent is None and name in COMMANDS_ELSEWHERE:
        ctx.fail(f"no such command {name!r}")
    others = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
    ctx.fail(f"no such command {name!r}. {others}")


def usage_advice(error: click.UsageError, arguments: Sequence[str], command: str) -> tuple[str, str]:
    """Return the message and the hint for a wrong command line. command: the program with its command."""
    message, see, hint = _message(error), f"See: {command} --help", None
    if isinstance(error, click.NoSuchOption):
        message, hint = _unknown_option(error, arguments)
    elif extra := _EXTRA.match(message):
        hint = _extra_argument(extra[1].rstrip(")"), error.ctx)
    elif unknown := re.fullmatch(r"no such command '([\w-]+)'", message):
        hint = COMMANDS_ELSEWHERE.get(unknown[1])
    return message, f"{hint} {see}" if hint else see


def _message(error: click.UsageError) -> str:
    """Return what is wrong with a command line; of a missing choice in one line, where click has a list."""
    missing = error.param if isinstance(error, click.MissingParameter) else None
    if missing is None or not isinstance(missing.type, click.Choice):
        return error.format_message()
    *names, last = missing.type.choices
    return f"no {missing.name} is given. Choose {', '.join(names)} or {last}"


def _unknown_option(error: click.NoSuchOption, arguments: Sequence[str]) -> tuple[str, str | None]:
    """Return message and hint for an unknown option; click names only the first letter of one with a single dash."""
    word = next((one for one in arguments if len(one) > 2 and one.startswith(error.option_name) and one[1] != "-"), "")
    name = (word or error.option_name).partition("=")[0]
    message = error.format_message() if not word else f"No such option '{name}'."
    long = f"--{name.lstrip('-')}"
    if word and error.ctx and any(long in param.opts for param in error.ctx.command.get_params(error.ctx)):
        return message, f"Long options begin with two dashes: write {long}{word[len(name) :]}."
    return message, None if error.possibilities else OPTIONS_ELSEWHERE.get(name.lstrip("-"))


def _extra_argument(word: str, ctx: click.Context | None) -> str | None:
    """Return the hint for a word that a command takes no argument for: a manifest, a resource or a workspace."""
    if ctx is None:
        return None
    options = {option for param in ctx.command.get_params(ctx) for option in param.opts}
    if word.endswith(_MANIFEST_ENDINGS) or word.startswith("."):
        return f"{_ALL_MANIFESTS}{' Select resources with --only ADDRESS.' if '--only' in options else ''}"
    if "/" in word and "--only" in options:
        return "Select resources with --only, and put an address with blanks in quotes."
    if re.fullmatch(r"[\w-]+", word):
        if "--select" in options:
            return f"If {word} is a workspace, write --select workspace={word}."
        return f"If {word} is a workspace, write --workspace {word}."
    return None
