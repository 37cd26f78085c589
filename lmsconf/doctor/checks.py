"""Read-only checks of a workspace and its service: connection, token, clock, pages, fields, names, assumptions."""

from __future__ import annotations

import base64
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from lmsconf import __version__
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import PAGE_SIZE, assumed_keys
from lmsconf.api.spec.operations import CATALOG, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.doctor.report import CheckResult, DialectAssumption, DoctorReport, Health
from lmsconf.errors import ApiError, LmsconfError, ProblemsFound, Rejected, SourceLocation
from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT, CUSTOM_FIELD, GROUP, listed_name
from lmsconf.model.calls import Api, ListedRows, ListOperation
from lmsconf.model.canonical_json import members
from lmsconf.model.names import count_noun, grouped
from lmsconf.planner.read.read_all_kinds import count_people
from lmsconf.project.settings import Settings
from lmsconf.workspace.project_manifests import load_manifests

if TYPE_CHECKING:
    from lmsconf.api.client import Exchange


class ClockSkewCheck(Struct):
    """Compare the service's clock with ours: pass `record_date` to the connection.

    ahead: by how much the service's clock leads; None if no response had a date.
    """

    clock: Callable[[], datetime]
    ahead: timedelta | None = None

    def record_date(self, exchange: Exchange) -> None:
        """Record the Date header of one response."""
        with suppress(ValueError):
            date = parsedate_to_datetime(exchange.date or "")
            # The header is truncated to seconds; the smallest difference seen has the least latency.
            ahead = (date if date.tzinfo else date.replace(tzinfo=UTC)) - self.clock() + timedelta(seconds=0.5)
            self.ahead = ahead if self.ahead is None else min(self.ahead, ahead, key=abs)

    def finding(self) -> CheckResult:
        """Report the difference between the two clocks."""
        if self.ahead is None:
            return CheckResult("clock", "unknown", "the responses of the service have no Date header")
        seconds = round(self.ahead.total_seconds())
        return _first_result(
            "clock",
            (abs(self.ahead) <= timedelta(seconds=30), "ok", f"within {max(1, abs(seconds))} s of the service's", None),
            (
                True,
                "warning",
                f"this machine is {abs(seconds):,} s {'behind' if seconds > 0 else 'ahead of'} the service",
                "Set this machine's clock: visibility windows and the token's expiry follow the service's clock.",
            ),
        )


def _first_result(check: str, *cases: tuple[object, Health, str, str | None]) -> CheckResult:
    """Return the first case that holds: health, message and hint."""
    return next(CheckResult(check, health, message, hint) for holds, health, message, hint in cases if holds)


def run_read_only_checks(
    settings: Settings, spec: ApiSpec, reader: Api, watch: ClockSkewCheck, now: datetime
) -> DoctorReport:
    """Run all checks and list all assumptions. An ApiError ends it early; the report then has its exit code."""
    people, failure = None, None
    findings: list[CheckResult] = [_token(settings, now)]
    try:
        people = count_people(reader).total
        findings.insert(0, CheckResult("connection", "ok", "the service responds and accepts the token for reading"))
        findings += [
            watch.finding(),
            check_page_size(measure_page_sizes(reader, spec.integer_behaviour(PAGE_SIZE))),
            *_names(reader),
        ]
    except ApiError as error:
        findings.insert(
            0, CheckResult("connection" if people is None else "listings", "error", error.message, error.hint)
        )
        failure = error.exit
    kinds, manifests = _manifests(settings)
    return DoctorReport(
        workspace=settings.workspace.name,
        url=settings.workspace.url,
        people=people,
        findings=(
            *findings,
            manifests,
            CheckResult(
                "versions",
                "ok",
                f"lmsconf {__version__}, Python {platform.python_version()}, httpx {version('httpx')}, "
                f"{platform.system()} {platform.release()} {platform.machine()}",
            ),
        ),
        assumptions=list_dialect_assumptions(spec, kinds, settings.dialect_at),
        failure=failure,
    )


def _token(settings: Settings, now: datetime) -> CheckResult:
    chosen = settings.workspace
    if chosen.embedded:
        return CheckResult("token", "ok", "the embedded workspace needs no token")
    if chosen.token is None:
        return CheckResult("token", "warning", "there is none", "Add `token: {env: LMSCONF_TOKEN}` to the workspace.")
    try:
        return check_token_expiry(chosen.token.secret().reveal(), now)
    except LmsconfError as error:
        return CheckResult("token", "error", error.message, error.hint)


def _names(reader: Api) -> Iterable[CheckResult]:
    """Report how many custom fields there are, and names that are live more than once."""
    operations = {
        **{kind.name: kind.list_operation for kind in KINDS.values() if kind.list_operation is not None},
        CONTENT: CATALOG,
    }
    listings = reader.together({name: partial(reader.rows, operation) for name, operation in operations.items()})
    used = len(listings[CUSTOM_FIELD].rows)
    message = f"{used} of {MOST_FIELDS} custom fields are used"
    yield _first_result(
        "fields",
        (used < MOST_FIELDS, "ok", message, None),
        (True, "warning", message, "Delete one before you create another."),
    )
    twice = [line for name, rows in listings.items() for line in _twice(name, operations[name], rows)]
    incomplete = [f"{kind}: {rows.incomplete}" for kind, rows in listings.items() if rows.incomplete]
    if incomplete:
        yield CheckResult(
            "listings", "warning", "; ".join(incomplete), "Nothing is created or deleted from such a list."
        )
    more = [f"and {len(twice) - 10:,} more"] if len(twice) > 10 else []
    yield _first_result(
        "names",
        (
            twice,
            "warning",
            "; ".join(twice[:10] + more),
            "Rename or delete one of each in the product, or pin the right one with `id:`.",
        ),
        (True, "ok", "no duplicate names within a kind", None),
    )


def _twice(kind: str, listing: ListOperation, rows: ListedRows) -> Iterable[str]:
    """Each name that several rows share, with their ids. Content is named as groups are."""
    for name, same in sorted(grouped(rows.rows, partial(listed_name, KINDS.get(kind, KINDS[GROUP]))).items()):
        if len(same) > 1:
            ids = sorted(str(row[listing.id]) for row in same)
            yield f"{kind}/{name} is live {len(ids)} times: {', '.join(ids)}"


def _manifests(settings: Settings) -> tuple[set[str], CheckResult]:
    """The kinds that manifests and ownership declare."""
    kinds = {kind for kind, owned in settings.policy.ownership.items() if owned}
    try:
        manifests = load_manifests(settings)
    except ProblemsFound as problems:
        return kinds, CheckResult("manifests", "warning", problems.problems[0].message, "See: lmsconf validate")
    kinds |= {resource.address.kind for resource in manifests.declared} | {one.address.kind for one in manifests.absent}
    errors = sum(problem.is_error for problem in manifests.problems)
    return kinds, _first_result(
        "manifests",
        (errors, "warning", f"they have {errors} errors", "See: lmsconf validate"),
        (True, "ok", f"{len(manifests.declared)} resources are declared", None),
    )


_RENEW: Final = "Create another API key in the workspace, where three can be active, and replace the old one."


class _Claims(Struct):
    """The claims of a JSON Web Token. exp: seconds since the epoch."""

    exp: float | None = None


def check_token_expiry(token: str, now: datetime) -> CheckResult:
    """Report how long the token remains valid."""
    try:
        _, encoded, _ = token.split(".")
        claims = msgspec.json.decode(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)), type=_Claims)
        ends = None if claims.exp is None else datetime.fromtimestamp(claims.exp, UTC)
    except (ValueError, OverflowError, OSError):
        # The error message could quote the secret, so it is left out.
        return CheckResult("token", "unknown", "it is not a readable JSON Web Token, so its expiry is not known")
    if ends is None:
        return CheckResult("token", "ok", "the token has no expiry claim")
    day = f"{ends:%Y-%m-%d %H:%M} UTC"
    left = ends - now
    message = f"it expires in {count_noun(left.days, 'day') if left.days else 'less than a day'}, at {day}"
    return _first_result(
        "token",
        (left <= timedelta(0), "error", f"it expired at {day}", _RENEW),
        (left < timedelta(days=14), "warning", message, _RENEW),
        (True, "ok", message, None),
    )


MOST: Final = 100
"""The page size in the specification; the catalog never returns more (API specification, Limits)."""


class ListingPageSize(Struct, frozen=True):
    """The largest page of one listing. `refused`: `requested` itself was rejected."""

    operation: str
    requested: int
    most: int
    refused: bool = False


def measure_page_sizes(api: Api, requested: int) -> list[ListingPageSize]:
    """Return what listings that are long enough return for that page size. Raises ApiError if one cannot be read."""
    wanted = {USERS: requested, MANUAL_GROUPS: requested, SMART_GROUPS: requested, CATALOG: min(requested, MOST)}
    return [limit for listing, size in wanted.items() if (limit := _limit(api, listing, size)) is not None]


def common_page_size(limits: Sequence[ListingPageSize]) -> int | None:
    """The page size that all listings return; None if none of them is long enough."""
    caps = [limit.most for limit in limits if limit.most < limit.requested]
    return min(caps) if caps else max((limit.most for limit in limits), default=None)


def check_page_size(limits: Sequence[ListingPageSize]) -> CheckResult:
    """Report whether pages are as large as the project says."""
    most = common_page_size(limits)
    short = [limit for limit in limits if limit.most < limit.requested]
    return _first_result(
        "pages",
        (
            short,
            "error" if any(one.refused for one in short) else "warning",
            ", ".join(
                f"{one.operation} {'takes' if one.refused else 'gives'} {one.most} of {one.requested}" for one in short
            ),
            f"Set under `dialect:` {PAGE_SIZE}: {most}",
        ),
        (not limits, "unknown", "no listing is longer than a page, so the largest page size is not known", None),
        (True, "ok", f"{', '.join(limit.operation for limit in limits)}: whole pages of {most}", None),
    )


def _limit(api: Api, listing: ListOperation, requested: int) -> ListingPageSize | None:
    """Find the largest page of one listing, by smaller sizes if a large one is rejected; None if it is too short."""
    for size in (requested, *(size for size in (50, 25, 20, 10, 5) if size < requested)):
        try:
            rows, total = _page(api, listing, size)
        except Rejected:
            continue
        if size < requested or rows >= size:
            return ListingPageSize(listing.name, requested, size, refused=size < requested)
        more = total > rows if total is not None else bool(rows) and _page(api, listing, size, skip=rows)[0] > 0
        return ListingPageSize(listing.name, requested, rows) if more and rows else None
    raise Rejected(f"{listing.name} refuses every page size", operation=listing.name)


def _page(api: Api, listing: ListOperation, size: int, skip: int = 0) -> tuple[int, int | None]:
    """The number of rows returned, and the total that the listing reports."""
    answer = members(api.get(listing.name, query={"skip": skip, "limit": size}))
    rows, total = answer.get(listing.rows), answer.get(listing.total or "")
    number = len(rows) if isinstance(rows, list) else 0
    return number, total if isinstance(total, int) and not isinstance(total, bool) else None


def list_dialect_assumptions(
    spec: ApiSpec, kinds: Iterable[str], at: Mapping[str, SourceLocation]
) -> tuple[DialectAssumption, ...]:
    """Return every key that manifests of these kinds depend on, in the order of the API description.

    at: where the project file overrides a key.
    """
    default = ApiSpec.default()
    operations_of_kinds = {operation for kind in kinds for operation in KINDS[kind].operations}
    return tuple(
        DialectAssumption(
            key=key,
            value=spec.behaviour(key),
            default=default.behaviour(key),
            known=spec.is_known(key),
            overridden=spec.behaviour(key) != default.behaviour(key),
            operations=tuple(operations),
            source=at.get(key),
        )
        for key, operations in assumed_keys(spec, operations_of_kinds).items()
    )
