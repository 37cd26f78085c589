"""The answers of `lmsconf init`: from options, from questions on a terminal, or the defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

import click

from lmsconf.errors import LmsconfError, UsageError

if TYPE_CHECKING:
    from lmsconf.project.templates import InitAnswers

CI_SYSTEMS: Final = ("github", "gitlab", "none")
_LOCALTIME: Final = Path("/etc/localtime")
_LONGEST_NAME: Final = 60


class InitOptions(NamedTuple):
    """The options of the command line; None for those not given."""

    url: str | None
    workspace_name: str | None
    token_env: str | None
    timezone: str | None
    ci: str | None
    schemas: bool


def collect_answers(given: InitOptions, environ: Mapping[str, str], *, asks: bool) -> tuple[InitAnswers, bool | None]:
    """Return the answers, from options and prompts, and whether to export the live workspace now.

    The latter is None if nothing is asked. Raises LmsconfError at end of input, before anything is written.
    """
    from lmsconf.project.templates import CiSystem, InitAnswers

    ask = _Questions(asks)
    try:
        address = ask(given.url, "URL of the workspace's API, or sandbox", "sandbox", _url)
        live = not address.startswith("sandbox:")
        variable = "Environment variable for its token" if live else ""
        answers = InitAnswers(
            url=address,
            workspace=ask(given.workspace_name, "Name of the workspace", "production" if live else "sandbox", _name),
            token_env=ask(given.token_env, variable, "LMSCONF_TOKEN", partial(_variable, environ)),
            timezone=ask(given.timezone, "Time zone, for times without an offset", _local_zone(environ), _zone),
            ci=CiSystem(ask(given.ci, f"CI system: {', '.join(CI_SYSTEMS)}", "none", _ci)),
            schemas=given.schemas,
        )
        return answers, ask.whether("Import the live workspace into manifests now?") if live else False
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError):
            raise
        hint = "Run it again, or pass the answers as options: see lmsconf init --help."
        raise LmsconfError(
            "the input ended before all questions were answered, so nothing was written", hint=hint
        ) from abort


class _Questions:
    """Prompt for options that were not given. answered: there is somebody to ask; otherwise the defaults are used."""

    def __init__(self, answered: bool) -> None:
        self._answered = answered

    def __call__(self, given: str | None, question: str, default: str, check: Callable[[str], str]) -> str:
        """Return the given or prompted value, converted by `check`; prompt again for an answer that it rejects.

        Without a question, return the default. Raises UsageError for a given value that `check` rejects.
        """
        if given is not None or not question or not self._answered:
            return check(default if given is None else given)

        def checked(text: str) -> str:
            try:
                return check(text)
            except UsageError as error:
                raise click.UsageError(f"{error.message}. {error.hint or ''}") from error

        return str(click.prompt(question, default=default, value_proc=checked, err=True))

    def whether(self, question: str) -> bool | None:
        """Ask a yes/no question with default yes; None without a terminal."""
        return click.confirm(question, default=True, err=True) if self._answered else None


def _url(text: str) -> str:
    """Return the URL as written in the project file. Raises UsageError for an invalid one."""
    from lmsconf.project.config_reader import url_problem
    from lmsconf.project.templates import SANDBOX

    if text in ("sandbox", "sandbox:"):
        return SANDBOX
    if wrong := url_problem(text):
        raise UsageError(wrong[0], hint=wrong[1])
    return text


def _ci(text: str) -> str:
    """Return a supported CI system. Raises UsageError."""
    if text not in CI_SYSTEMS:
        raise UsageError(f"there is no workflow for {text}", hint=f"There are {', '.join(CI_SYSTEMS)}.")
    return text


def _name(text: str) -> str:
    """Return a valid workspace name. Raises UsageError."""
    from lmsconf.project.config_file import ENV_WORKSPACE

    if text == ENV_WORKSPACE:
        raise UsageError(
            f"a workspace cannot be called {text}", hint="That name is reserved for the workspace of LMSCONF_URL."
        )
    if not text.strip() or not text.isprintable():
        raise UsageError("the workspace has no name", hint="Choose a word such as production.")
    return text


def _variable(environ: Mapping[str, str], text: str) -> str:
    """Return the name of a variable that may hold a token.

    Raises UsageError, whose message omits the text: it may be the token itself.
    """
    from lmsconf.project.credentials import ENVS, env_may_hold_token

    if len(text) > _LONGEST_NAME or not env_may_hold_token(text, environ):
        hint = f"Use one that begins with LMSCONF_, such as LMSCONF_TOKEN, or that {ENVS} lists. The token itself "
        raise UsageError(
            "that is not the name of an environment variable for a token", hint=f"{hint}is never written to a file."
        )
    return text


def _zone(text: str) -> str:
    """Return an IANA time zone name. Raises UsageError."""
    if not _is_zone(text):
        raise UsageError(f"there is no time zone {text}", hint="Write an IANA name such as Europe/Stockholm.")
    return text


def _is_zone(text: str) -> bool:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _local_zone(environ: Mapping[str, str]) -> str:
    """Return this machine's IANA time zone (TZ, else /etc/localtime); UTC if it is unknown."""
    linked = str(_LOCALTIME.resolve()).partition("/zoneinfo/")[2]
    zone = environ.get("TZ", "").removeprefix(":") or linked
    return zone if zone and _is_zone(zone) else "UTC"
