"""Read-only checks of a workspace and its service."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from lmsconf import __version__
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.listings import CATALOG
from lmsconf.doctor.diagnose.dialect_assumptions import list_dialect_assumptions
from lmsconf.doctor.diagnose.page_size import check_page_size, measure_page_sizes
from lmsconf.doctor.diagnose.token_expiry import check_token_expiry
from lmsconf.doctor.findings import CheckResult, DoctorReport, Health
from lmsconf.errors import ApiError, LmsconfError, ProblemsFound
from lmsconf.kinds import all_kinds
from lmsconf.kinds.shared.kind_names import CONTENT
from lmsconf.model.api import Api, ListedRows, ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.planner.kind import Kind, listed_name
from lmsconf.project.settings import Settings
from lmsconf.workspace.project_manifests import load_manifests

if TYPE_CHECKING:
    from lmsconf.api.client import Exchange

Clock = Callable[[], datetime]
_TOLERATED: Final = timedelta(seconds=30)
_LISTED: Final = 10


class ClockSkewCheck(Struct):
    """Compare the service's clock with ours: pass `record_date` to the connection.

    ahead: by how much the service's clock leads; None if no response had a date.
    """

    clock: Clock
    ahead: timedelta | None = None

    def record_date(self, exchange: Exchange) -> None:
        """Record the Date header of one response."""
        try:
            date = parsedate_to_datetime(exchange.date or "")
        except ValueError:
            return
        now = self.clock()
        # The header is truncated to seconds; the smallest difference seen has the least latency.
        ahead = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now + timedelta(seconds=0.5)
        if self.ahead is None or abs(ahead) < abs(self.ahead):
            self.ahead = ahead

    def finding(self) -> CheckResult:
        """Report the difference between the two clocks."""
        if self.ahead is None:
            return CheckResult("clock", Health.UNKNOWN, "the responses of the service have no Date header")
        seconds = round(self.ahead.total_seconds())
        if abs(self.ahead) <= _TOLERATED:
            return CheckResult("clock", Health.OK, f"within {max(1, abs(seconds))} s of the service's")
        which = "behind" if seconds > 0 else "ahead of"
        hint = "Set this machine's clock: visibility windows and the token's expiry follow the service's clock."
        return CheckResult("clock", Health.WARNING, f"this machine is {abs(seconds):,} s {which} the service", hint)


def run_read_only_checks(
    settings: Settings, spec: ApiSpec, reader: Api, watch: ClockSkewCheck, now: datetime
) -> DoctorReport:
    """Run all checks and list all assumptions. An ApiError ends it early; the report then has its exit code."""
    people, failure = None, None
    findings: list[CheckResult] = [_token(settings, now)]
    try:
        people, connection_result = _connection(reader)
        findings.insert(0, connection_result)
        findings += [
            watch.finding(),
            check_page_size(measure_page_sizes(reader, spec.integer_behaviour("paging.limit"))),
            *_names(reader),
        ]
    except ApiError as error:
        check = "connection" if people is None else "listings"
        findings.insert(0, CheckResult(check, Health.ERROR, error.message, error.hint))
        failure = error.exit
    kinds, manifests = _manifests(settings)
    return DoctorReport(
        workspace=settings.workspace.name,
        url=settings.workspace.url,
        people=people,
        findings=(*findings, manifests, _versions()),
        assumptions=list_dialect_assumptions(spec, kinds, settings.dialect_at),
        failure=failure,
    )


def _versions() -> CheckResult:
    """Report what a support request needs to know of the installation."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    message = f"lmsconf {__version__}, Python {platform.python_version()}, httpx {version('httpx')}, {system}"
    return CheckResult("versions", Health.OK, message)


def _token(settings: Settings, now: datetime) -> CheckResult:
    chosen = settings.workspace
    if chosen.embedded:
        return CheckResult("token", Health.OK, "the embedded workspace needs no token")
    if chosen.token is None:
        return CheckResult(
            "token", Health.WARNING, "there is none", "Add `token: {env: LMSCONF_TOKEN}` to the workspace."
        )
    try:
        return check_token_expiry(chosen.token.secret().reveal(), now)
    except LmsconfError as error:
        return CheckResult("token", Health.ERROR, error.message, error.hint)


def _connection(reader: Api) -> tuple[int | None, CheckResult]:
    """Return the number of people, if the service reports it. Raises ApiError."""
    answer = reader.get("users.list", query={"skip": 0, "limit": 1})
    total = cast("dict[str, Json]", answer).get("matchCount")
    result = CheckResult("connection", Health.OK, "the service responds and accepts the token for reading")
    return total if isinstance(total, int) else None, result


def _names(reader: Api) -> Iterable[CheckResult]:
    """Report how many resources of a limited kind exist, and names that are live more than once."""
    operations = _listings()
    jobs = {name: partial(reader.rows, operation) for name, operation in operations.items()}
    listings = cast("dict[str, ListedRows]", reader.together(jobs))
    for kind in all_kinds().values():
        if kind.limit is not None and kind.name in listings:
            yield _used(kind, kind.limit, len(listings[kind.name].rows))
    twice = [line for name, rows in listings.items() for line in _twice(name, operations[name], rows)]
    incomplete = [f"{kind}: {rows.incomplete}" for kind, rows in listings.items() if rows.incomplete]
    if incomplete:
        hint = "Nothing is created or deleted from such a list."
        yield CheckResult("listings", Health.WARNING, "; ".join(incomplete), hint)
    if twice:
        more = f"; and {len(twice) - _LISTED:,} more" if len(twice) > _LISTED else ""
        hint = "Rename or delete one of each in the product, or pin the right one with `id:`."
        yield CheckResult("names", Health.WARNING, "; ".join(twice[:_LISTED]) + more, hint)
    else:
        yield CheckResult("names", Health.OK, "no duplicate names within a kind")


def _listings() -> dict[str, ListOperation]:
    """The list operations of all kinds and of what their manifests name, by the kind in addresses."""
    own = {kind.name: kind.list_operation for kind in all_kinds().values() if kind.list_operation is not None}
    return {**own, CONTENT: CATALOG}


def _twice(kind: str, listing: ListOperation, rows: ListedRows) -> Iterable[str]:
    """Each name that several rows share, with their ids."""
    ids: defaultdict[str, list[str]] = defaultdict(list)
    known = all_kinds().get(kind)
    for row in rows.rows:
        name = normalize_name(str(row.get("name") or "")) if known is None else listed_name(known, row)
        ids[name].append(str(row[listing.id]))
    for name, same in sorted(ids.items()):
        if len(same) > 1:
            yield f"{kind}/{name} is live {len(same)} times: {', '.join(sorted(same))}"


def _used(kind: Kind, limit: int, used: int) -> CheckResult:
    """Report how many resources of a kind exist of those that a workspace can hold."""
    check, message = kind.plural.rpartition(" ")[2], f"{used} of {limit} {kind.plural} are used"
    if used < limit:
        return CheckResult(check, Health.OK, message)
    return CheckResult(check, Health.WARNING, message, "Delete one before you create another.")


def _manifests(settings: Settings) -> tuple[set[str], CheckResult]:
    """The kinds that manifests and ownership declare."""
    kinds = {kind for kind, owned in settings.policy.ownership.items() if owned}
    try:
        manifests = load_manifests(settings)
    except ProblemsFound as problems:
        return kinds, CheckResult("manifests", Health.WARNING, problems.problems[0].message, "See: lmsconf validate")
    kinds |= {resource.address.kind for resource in manifests.declared} | {one.address.kind for one in manifests.absent}
    errors = sum(problem.is_error for problem in manifests.problems)
    if errors:
        return kinds, CheckResult("manifests", Health.WARNING, f"they have {errors} errors", "See: lmsconf validate")
    return kinds, CheckResult("manifests", Health.OK, f"{len(manifests.declared)} resources are declared")
