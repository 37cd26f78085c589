"""Manifest entries: times, the keys that all kinds share, lists of people, and what entries refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any, Final, TypeAlias, TypeVar, cast

from msgspec import Struct

from lmsconf.errors import LmsconfError, Problem, Severity, SourceLocation, shorten
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, SourceMap
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.model.plan import Undo, UndoLevel
from lmsconf.model.time_formats import ISO, date_in_other_order, local_to_utc

_WRITE = "Write a time such as 2026-01-05T08:00+01:00, or a date."


class BadTime(LmsconfError):
    """A text is not a valid, unambiguous time; `hint` suggests what to write instead."""


def parse_manifest_time(text: str, zone: tzinfo | None, *, end_of_day: bool) -> datetime:
    """Parse a manifest's date or ISO 8601 time to an aware datetime.

    A bare date is its first second, or its last with `end_of_day`; a time without an offset needs `zone`. Raises
    BadTime for a malformed or out-of-range time, one without offset or zone, and a local time that the zone skips or
    repeats.
    """
    parts, shown = ISO.fullmatch(text.strip()), f'"{shorten(text)}"'
    if parts is None:
        meant = date_in_other_order(text)
        raise BadTime(
            f"{shown} is not a date or an ISO 8601 time such as 2026-01-05 or 2026-01-05T08:00+01:00",
            hint=f"Write {meant}." if meant else _WRITE,
        )
    try:
        day = date.fromisoformat(parts["date"])
        clock = time.fromisoformat(parts["time"] or ("23:59:59" if end_of_day else "00:00"))
    except ValueError as wrong:
        raise BadTime(f"{shown} is not on the calendar: {wrong}", hint=_WRITE) from None
    if not parts["offset"] and zone is None:
        raise BadTime(
            f"{shown} has no offset, and the project file has no `timezone`",
            hint="Write 2026-01-05T08:00:00+01:00, or set `timezone: Europe/Stockholm` in the project file.",
        )
    try:
        if zone is None or parts["offset"]:
            return local_to_utc(day, clock, parts["offset"])
        return _in_zone(datetime.combine(day, clock), zone, shown)
    except ValueError:
        raise BadTime(f"{shown} has an offset of a day or more, and there is none", hint=_WRITE) from None
    except OverflowError:
        # Near year 1 or 9999 the instant in UTC may fall outside the years that datetime supports.
        raise BadTime(f"{shown} is outside the years 1 to 9999", hint="Remove it for no limit.") from None


def _in_zone(local: datetime, zone: tzinfo, shown: str) -> datetime:
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return first
    either = " or ".join(format_time(moment, zone) for moment in sorted((first, second)))
    exists = first.astimezone(zone).replace(tzinfo=None) == local
    why = "occurs twice in {}: the clocks are set back" if exists else "does not exist in {}: the clocks skip it"
    raise BadTime(f"{shown} {why.format(zone)}", hint=f"Write {either}.")


def format_time(moment: datetime, zone: tzinfo | None) -> str:
    """Return an instant as plans and exports show it: ISO 8601 in `zone` (or UTC), with its offset, to the second."""
    try:
        local = moment.astimezone(zone or UTC)
    except OverflowError:
        # The end of the year 9999, a common value for "never", is in the year 10000 in zones east of Greenwich.
        local = moment.astimezone(UTC)
    return local.isoformat(timespec="seconds")


def format_shortest_time(moment: datetime, zone: tzinfo | None, *, end_of_day: bool) -> str:
    """Return the shortest text that `parse_manifest_time` parses to this instant: date, local or with offset."""
    whole = format_time(moment, zone)
    for text in (whole[:10], whole[:19].removesuffix(":00"), whole[:19]):
        with suppress(BadTime):
            if parse_manifest_time(text, zone, end_of_day=end_of_day) == moment:
                return text
    return whole


Trail: TypeAlias = tuple[str, ...]
"""A path from the root of a manifest."""
ANY: Final = "*"
"""Step of a path: each item of a list, or each value of a mapping."""
KEYS: Final = "(keys)"
"""Step of a path: each key of a mapping."""


class ManifestEntry(Struct, frozen=True, kw_only=True):
    """One item of a manifest section, valid against its kind's schema, with lists of people read from their files.

    `report` collects the problems that only a kind can detect; parsing continues, so that all are shown together.
    """

    body: Mapping[str, Json]
    places: SourceMap
    timezone: tzinfo | None
    report: Callable[[Problem], None]

    def problem(
        self,
        code: str,
        message: str,
        *path: str | int,
        hint: str | None,
        source: SourceLocation | None = None,
        address: Address | None = None,
    ) -> None:
        """Report a problem, located at `source` or at `path` below the entry."""
        self.report(
            Problem(
                code=code,
                message=message,
                hint=hint,
                source=source or self.places.at(*path),
                address=None if address is None else str(address),
            )
        )


class EntryItems(Struct, frozen=True):
    """How one entry declares several resources: one for each item of a list, which may override values of the entry.

    key: that of the list. noun: what an item is. subject: the key of what all of them have in common.
    """

    key: str
    noun: str
    subject: str


class PartReferences(Struct, frozen=True):
    """Where manifests refer to parts of a resource, such as choices of a field.

    at: the path of the mapping that refers to both. owner: its key that names the resource; None if the key under which
    the parts are is its name. parts: the paths of the parts below the mapping; without an owner, below that key.
    """

    at: Trail
    owner: str | None
    parts: tuple[Trail, ...]


Entry = TypeVar("Entry", DesiredResource[Any], DeleteEntry[Any])
Report: TypeAlias = "Callable[[Problem], None]"


def parse_pins(value: Json) -> dict[str, str]:
    """Return the pins of an entry: workspace name → id; the key "" applies to every workspace."""
    return {"": value} if isinstance(value, str) else dict(cast("Mapping[str, str]", value or {}))


def parse_names(value: Json) -> tuple[str, ...]:
    """Return a list of names, each normalized for comparison; empty for a value that is not a list."""
    return tuple(normalize_name(str(item)) for item in value) if isinstance(value, list) else ()


def parse_only_in(body: Mapping[str, Json]) -> frozenset[str] | None:
    """Return the workspaces in which an entry applies; None: in all."""
    only_in = body.get("only_in")
    return None if only_in is None else frozenset(parse_names(only_in))


def parse_about(body: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """Return what an entry tells the readers of a plan; None: nothing."""
    return cast("Mapping[str, Json] | None", body.get("about"))


def parse_time(entry: ManifestEntry, value: Json, at: tuple[str | int, ...], *, end_of_day: bool) -> datetime | None:
    """Return a time in an entry; None, after reporting a problem, if it cannot be parsed. at: its path.

    end_of_day: whether a bare date is its last second.
    """
    try:
        return parse_manifest_time(str(value), entry.timezone, end_of_day=end_of_day)
    except BadTime as wrong:
        entry.problem("manifest/time", f"{at[-1]}: {wrong}", *at, hint=wrong.hint)
        return None


def delete_entry(entry: ManifestEntry, address: Address, spec: object) -> DeleteEntry[Any]:
    """Return a deletion entry; an `until` that is not a calendar date is reported and dropped."""
    text, until = entry.body.get("until"), None
    try:
        until = None if text is None else date.fromisoformat(str(text))
    except ValueError:
        entry.problem(
            "manifest/date",
            f"until: {shorten(str(text))} is not a calendar date",
            "until",
            hint="Write a date such as 2027-03-31.",
        )
    return DeleteEntry(
        address=address,
        spec=spec,
        places=entry.places,
        pins=parse_pins(entry.body.get("id")),
        until=until,
        only_in=parse_only_in(entry.body),
    )


def partial_undo(reason: str) -> Undo:
    """Return the Undo of a change that can be reverted only in part."""
    return Undo(level=UndoLevel.PARTIAL, reason=reason)


class PeopleList(Struct, frozen=True):
    """A list of people, as normalized e-mails: the whole list, or those who must be in it and those who must not.

    Two values are equal exactly when no call is needed to get from one to the other.
    """

    include: frozenset[str]
    exclude: frozenset[str] = frozenset()
    whole: bool = True

    def to_json(self) -> Json:
        include, exclude = sorted(self.include), sorted(self.exclude)
        return [*include] if self.whole else {"include": [*include], "exclude": [*exclude]}

    @property
    def named_emails(self) -> frozenset[str]:
        return self.include | self.exclude if self.exclude else self.include

    def live_to_compare(self, live: frozenset[str]) -> PeopleList:
        """Return the live list in the form of this one: whole, or limited to the people named here."""
        named = self.named_emails
        return PeopleList(live) if self.whole else PeopleList(live & named, named - live, whole=False)

    def joined(self, more: PeopleList) -> PeopleList:
        """Return this list plus the additions of another of the same form, without its removals."""
        include = self.include | more.include
        return PeopleList(include, self.exclude - include, self.whole)


def included(form: Form, key: str) -> frozenset[str]:
    """Return who is in a list of people of a form, or must be; nobody without the list."""
    people = form.get(key)
    return people.include if isinstance(people, PeopleList) else frozenset()


LISTS: Final = ("members", "managers")
"""The keys of groups and smart groups that hold lists of people; a smart group has no members of its own."""


def declared_lists(spec: object) -> Iterator[tuple[str, PeopleList]]:
    """Yield the key and the people of each list that a group or a smart group declares."""
    for key in LISTS:
        if (people := getattr(spec, key, None)) is not None:
            yield key, people


def parse_people_list(entry: ManifestEntry, key: str) -> PeopleList | None:
    """Return the list of people under `key`, or None without the key. Reports people both included and excluded."""
    people = parse_list(entry.body.get(key), normalize_email)
    for both in sorted(people.include & people.exclude if people else ()):
        entry.problem(
            "people/both",
            f"{key}: {both} is both included and excluded",
            hint="Keep the person in one of the two lists.",
            source=entry.places.find(both, key, "exclude"),
        )
    return people


def parse_list(value: Json, normalize: Callable[[str], str]) -> PeopleList | None:
    """Return a list, whole or as `include` and `exclude`, with its texts normalized; None for no value."""
    if value is None:
        return None
    is_whole = not isinstance(value, dict)
    parts = cast("Mapping[str, list[Json]]", {"include": value} if is_whole else value)
    include, exclude = (
        frozenset(normalize(item) for item in parts.get(key, []) if isinstance(item, str))
        for key in ("include", "exclude")
    )
    return PeopleList(include, exclude, is_whole)


def drop_unknown_from_list(
    entry: Entry, key: str, people: PeopleList, new: frozenset[str], report: Report
) -> PeopleList:
    """Return a declared list without people that a redacted snapshot does not know, each reported."""
    for person in sorted(people.named_emails & new):
        report(not_compared_warning(entry.address, person, entry.places.find(person, key), key))
    return PeopleList(people.include - new, people.exclude - new, people.whole)


def not_compared_warning(address: Address, person: str, at: SourceLocation, key: str = "") -> Problem:
    """Return the warning that a declaration about a person is left out; key: the list that names the person."""
    return Problem(
        code="snapshot/not-compared",
        message=f"{address}: {f'{key}: ' if key else ''}{person} is not compared: no manifest named this person when "
        "the redacted snapshot was taken",
        hint="A plan of the workspace itself compares everybody. One of the unnamed people may be this person.",
        severity=Severity.WARNING,
        source=at,
        address=str(address),
    )
