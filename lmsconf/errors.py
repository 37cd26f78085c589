"""The ways in which lmsconf fails, and the two values that say where and why. What only one module raises stands there.

LmsconfError                      exit 1 unless a class below says otherwise
├── ProblemsFound                 manifests, project file, references, guards: all of them at once
├── UsageError                    64, the command line
├── StalePlan                     3, the plan no longer fits the workspace, or was changed
├── NoEffect                 accepted, and nothing has changed
└── ApiError                      a call that did not do what was asked
    ├── Unreachable               8, no answer to be had, or rate-limited to the end
    ├── Unauthorized              7, the credential was refused
    ├── Rejected                  the service said no to this one call (4xx)
    ├── AnswerLost                sent, but nobody knows whether it was done
    ├── Twins                     done twice, and only a person can say which one is to go
    └── BadAnswer                 an answer that cannot be read
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

SHOWN: Final = 60
"""How many characters of a value a message repeats."""


def shown(value: str) -> str:
    """A value as a message repeats it: enough to recognise it, and never the whole of a long one."""
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}…"


class ExitCode(IntEnum):
    """The exit codes. When several hold, `worst` picks the one that is given."""

    OK = 0
    ERROR = 1
    CHANGES = 2
    STALE = 3
    BLOCKED = 4
    PARTIAL = 5
    NOT_CONVERGED = 6
    UNAUTHORIZED = 7
    UNREACHABLE = 8
    USAGE = 64
    INTERRUPTED = 130
    TERMINATED = 143

    @staticmethod
    def worst(codes: Sequence[ExitCode]) -> ExitCode:
        """The one exit code that stands for several."""
        return min(codes, key=_PRECEDENCE.index, default=ExitCode.OK)


_PRECEDENCE = [
    ExitCode.USAGE,
    ExitCode.INTERRUPTED,
    ExitCode.TERMINATED,
    ExitCode.ERROR,
    ExitCode.UNAUTHORIZED,
    ExitCode.UNREACHABLE,
    ExitCode.STALE,
    ExitCode.BLOCKED,
    ExitCode.PARTIAL,
    ExitCode.NOT_CONVERGED,
    ExitCode.CHANGES,
    ExitCode.OK,
]


class Severity(StrEnum):
    """How much a problem matters: an error stops, a warning is shown, a note may be ignored."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A place in a file of the project: path relative to the project, line and column from 1.

    each: for which values of `for_each` the place was written out, such as `country=SE`.
    """

    file: str
    line: int = 0
    column: int = 0
    each: str = ""

    def __str__(self) -> str:
        place = ":".join([self.file, *(str(n) for n in (self.line, self.column) if n)])
        return f"{place} ({self.each})" if self.each else place


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something a person should know: what, where, and what to do next. Codes are stable, messages may improve."""

    code: str
    message: str
    severity: Severity = Severity.ERROR
    hint: str | None = None
    source: SourceLocation | None = None
    address: str | None = None

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised in the main thread like Ctrl-C is, so that both take one way out."""

    exit = ExitCode.TERMINATED


class LmsconfError(Exception):
    """The root: its text is for people, `exit` is for scripts."""

    exit: ExitCode = ExitCode.ERROR
    code: str = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def problems(self) -> tuple[Problem, ...]:
        return (Problem(code=self.code, message=self.message, hint=self.hint),)


class ProblemsFound(LmsconfError):
    """Problems gathered over all files, raised together."""

    def __init__(self, problems: Sequence[Problem], *, exit: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(_count(len(problems)))
        if problems:
            # Only the text says the first one: a message goes into reports, where all of them stand beside it.
            more = f"; and {_count(len(problems) - 1, 'more problem')}" if len(problems) > 1 else ""
            self.args = (f"{problems[0].message}{more}",)
        self._problems = tuple(problems)
        self.exit = exit

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._problems


def _count(number: int, what: str = "problem") -> str:
    return f"{number} {what}{'s' * (number != 1)}"


class UsageError(LmsconfError):
    """The command line asks for something that makes no sense."""

    exit = ExitCode.USAGE
    code = "usage"


class StalePlan(LmsconfError):
    """The plan was made for another state, another workspace, or was edited. `found`: what differs, one by one."""

    exit = ExitCode.STALE
    code = "plan/stale"

    def __init__(self, message: str, *, hint: str | None = None, found: Sequence[Problem] = ()) -> None:
        super().__init__(message, hint=hint)
        self._found = tuple(found)

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self._found or super().problems


class NoEffect(LmsconfError):
    """A call was accepted, and what it should have changed is not so."""

    code = "apply/no-effect"


class ApiError(LmsconfError):
    """A call that did not do what was asked."""

    code = "api/error"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        operation: str | None = None,
        status: int | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.operation = operation
        self.status = status
        self.body = body


class Unreachable(ApiError):
    """Nobody answered, or only "later" until patience ran out; the call was certainly not carried out."""

    exit = ExitCode.UNREACHABLE
    code = "api/unreachable"


class Unauthorized(ApiError):
    """401, or a 403 that is about the credential."""

    exit = ExitCode.UNAUTHORIZED
    code = "api/unauthorized"


class Rejected(ApiError):
    """The service understood and said no: any other 4xx."""

    code = "api/rejected"


class AnswerLost(ApiError):
    """The call went out and its answer never came whole: it may or may not have been carried out."""

    code = "api/answer-lost"


class DuplicateResource(ApiError):
    """What should be there once is there twice. Nothing is deleted by itself."""

    code = "api/twins"


class BadAnswer(ApiError):
    """A success whose body is not what the specification describes."""

    code = "api/bad-answer"
