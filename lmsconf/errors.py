"""The exception tree, exit codes, Problem and SourceLocation. An exception raised by one module only is defined there.

LmsconfError                      exit 1 unless listed otherwise
├── ProblemsFound                 all problems of manifests, project file, references or guards, raised together
├── UsageError                    64, an invalid command line
├── StalePlan                     3, the plan no longer matches the workspace, or was edited
├── NoEffect                      a call was accepted, but its effect does not show
└── ApiError                      a failed API call
    ├── Unreachable               8, no usable response, or rate-limited until retries ran out; no write was carried out
    ├── Unauthorized              7, the credential was refused
    ├── Rejected                  the service refused this call (3xx or 4xx)
    ├── WriteOutcomeUnknown                a write that may or may not have been carried out
    ├── DuplicateResource         a resource exists twice; a person has to choose which one to delete
    └── InvalidResponse                 a success response that cannot be read
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Final

from msgspec import Struct, field

SHOWN: Final = 60
"""The number of characters of a value that a message quotes."""


def shorten(value: str) -> str:
    """Return the value cut to SHOWN characters, for a message."""
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}…"


class ExitCode(IntEnum):
    """Process exit codes, in the order of their precedence: when several apply, `worst` picks the first."""

    USAGE = 64
    INTERRUPTED = 130
    TERMINATED = 143
    ERROR = 1
    UNAUTHORIZED = 7
    UNREACHABLE = 8
    STALE = 3
    BLOCKED = 4
    PARTIAL = 5
    NOT_CONVERGED = 6
    CHANGES = 2
    OK = 0

    @staticmethod
    def worst(codes: Sequence[ExitCode]) -> ExitCode:
        """Return the code with the highest precedence; OK if there is none."""
        return min(codes, key=list(ExitCode).index, default=ExitCode.OK)


def cell_name(row: int, column: int) -> str:
    """Return the name of a cell of a workbook, `B7`, from its row and column, both from 1."""
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{row}"


class Severity(StrEnum):
    """Severity of a problem: an error stops the command, a warning is shown, a note may be ignored."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class SourceLocation(Struct, frozen=True, order=True, omit_defaults=True):
    """A position in a file of the project: path relative to the project; line and column from 1, 0 if unknown.

    each: the `for_each` values that the entry was expanded with, such as `country=SE`. sheet: the sheet of a workbook,
    of which line and column are a cell.
    """

    file: str
    # A default by a factory is written to JSON, too.
    line: int = field(default_factory=int)
    column: int = field(default_factory=int)
    each: str = ""
    sheet: str = ""

    def __str__(self) -> str:
        line = ":".join([self.file, *(str(n) for n in (self.line, self.column) if n)])
        place = f"{self.file}, {self.cell}" if self.sheet else line
        return f"{place} ({self.each})" if self.each else place

    @property
    def cell(self) -> str:
        """The cell of a workbook, `sheet Staff, cell B7`; empty for a location in a text file."""
        row = f", row {self.line}" if self.line else ""
        cell = f", cell {cell_name(self.line, self.column)}" if self.column else row
        return f"sheet {self.sheet}{cell}" if self.sheet else ""


class Problem(Struct, frozen=True, kw_only=True):
    """A diagnostic: what is wrong, where, and what to do next. Codes are stable; messages may change."""

    code: str
    severity: Severity = Severity.ERROR
    message: str
    hint: str | None = None
    source: SourceLocation | None = None
    address: str | None = None

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised in the main thread as a KeyboardInterrupt, so that it is handled like Ctrl-C."""


def interrupt_exit_code(error: BaseException) -> ExitCode:
    """Return the exit code for an interrupt: SIGTERM or Ctrl-C."""
    return ExitCode.TERMINATED if isinstance(error, Terminated) else ExitCode.INTERRUPTED


class LmsconfError(Exception):
    """Base of all errors of lmsconf: the message is for people, `exit` and `code` are for scripts.

    A class names its own: `class StalePlan(LmsconfError, code="plan/stale", exit=ExitCode.STALE)`.
    """

    exit: ExitCode = ExitCode.ERROR
    code: str = "error"

    def __init_subclass__(cls, *, code: str | None = None, exit: ExitCode | None = None) -> None:
        cls.code = code or cls.code
        cls.exit = exit or cls.exit

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        exit: ExitCode | None = None,
        problems: Sequence[Problem] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.code
        self.exit = self.exit if exit is None else exit
        self._problems = None if problems is None else tuple(problems)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong; by default, the message."""
        message = Problem(code=self.code, message=self.message, hint=self.hint)
        return (message,) if self._problems is None else self._problems


class ProblemsFound(LmsconfError):
    """Problems collected over all files, raised together."""

    def __init__(self, problems: Sequence[Problem], *, exit: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(_count(len(problems)), exit=exit, problems=problems)
        if problems:
            # Only str() includes the first problem: reports print `message` next to the full list.
            more = f"; and {_count(len(problems) - 1, 'more problem')}" if len(problems) > 1 else ""
            self.args = (f"{problems[0].message}{more}",)


def problem_found(
    code: str, message: str, hint: str | None = None, source: SourceLocation | None = None
) -> ProblemsFound:
    """Return the error for a single problem."""
    return ProblemsFound([Problem(code=code, message=message, hint=hint, source=source)])


def raise_found(problems: Sequence[Problem], *, exit: ExitCode = ExitCode.ERROR) -> None:
    """Raise the problems that were collected together, if there are any."""
    if problems:
        raise ProblemsFound(problems, exit=exit)


def _count(number: int, noun: str = "problem") -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


class UsageError(LmsconfError, code="usage", exit=ExitCode.USAGE):
    """An invalid command line."""


def refuse_if(*cases: tuple[object, str, str], error: Callable[..., LmsconfError] = UsageError) -> None:
    """Raise an error for the first case that holds. cases: whether it holds, what is wrong, and what to do."""
    for holds, message, hint in cases:
        if holds:
            raise error(message, hint=hint)


class StalePlan(LmsconfError, code="plan/stale", exit=ExitCode.STALE):
    """The plan was made for another state or workspace, or was edited. problems: one for each difference."""


class NoEffect(LmsconfError, code="apply/no-effect"):
    """A call was accepted, but its effect does not show when read back."""


class WrongAssumption(NoEffect, code="apply/wrong-assumption"):
    """A call did something else than assumed where the API specification is silent.

    values: dialect key → the value that explains it. sent: False for a call that rests on the same assumption, and
    was not sent any more. refused: the service refused the call as it was assumed. is_done: sent once more with
    other values, it did what was planned.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        values: Mapping[str, str | int] | None = None,
        sent: bool = True,
        refused: bool = False,
        is_done: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.values, self.sent, self.refused, self.is_done = values or {}, sent, refused, is_done


class ApiError(LmsconfError, code="api/error"):
    """A failed API call. body: an excerpt of the response body."""

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

    @property
    def is_forbidden(self) -> bool:
        """Whether the response was a 403."""
        return self.status == 403

    @property
    def is_missing(self) -> bool:
        """Whether the response says that the resource does not exist (any more)."""
        return self.status in (404, 410)

    def restated(self, as_: type[ApiError], hint: str | None, message: str | None = None) -> ApiError:
        """Return the same response as another error class, with a hint. message: in place of that of this error."""
        return as_(message or self.message, hint=hint, operation=self.operation, status=self.status, body=self.body)


class Unreachable(ApiError, code="api/unreachable", exit=ExitCode.UNREACHABLE):
    """No response, 429 or 503 with Retry-After until retries ran out, or a 5xx for a read. No write was carried out."""


class Unauthorized(ApiError, code="api/unauthorized", exit=ExitCode.UNAUTHORIZED):
    """401, or 403 for a read: the credential was refused."""


class Rejected(ApiError, code="api/rejected"):
    """Any other 4xx, or a redirect, which is never followed (known refusals: API specification, Errors)."""


class WriteOutcomeUnknown(ApiError, code="api/answer-lost"):
    """A write whose response was lost, cut short or another 5xx: it may or may not have been carried out."""


class DuplicateResource(ApiError, code="api/twins"):
    """A resource exists twice, after a write that was carried out twice. Neither copy is deleted automatically."""


class InvalidResponse(ApiError, code="api/bad-answer"):
    """A 2xx response whose body is not what the specification describes."""
