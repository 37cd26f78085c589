"""Keys that manifest entries of every kind share, lists of people in them, and how entries are parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final, TypeAlias, TypeVar, cast

from msgspec import Struct

from lmsconf.errors import Problem, Severity, SourceLocation, shorten
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.times import BadTime, parse_manifest_time
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.model.plan import Undo, UndoLevel

Entry = TypeVar("Entry", DesiredResource[Any], DeleteEntry[Any])
Report: TypeAlias = "Callable[[Problem], None]"


def parse_pins(value: Json) -> dict[str, str]:
    """Return the pins of an entry: workspace name → id; the key "" applies to every workspace."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"": value}
    return cast("dict[str, str]", dict(cast("Mapping[str, str]", value)))


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


def desired_resource_by_name(kind: str, entry: ManifestEntry, spec: object) -> DesiredResource[Any]:
    """Return the declaration of a resource identified by `name`."""
    body = entry.body
    return DesiredResource(
        address=Address.of(kind, normalize_name(str(body["name"]))),
        spec=spec,
        places=entry.places,
        pins=parse_pins(body.get("id")),
        previously=parse_names(body.get("previously")),
        only_in=parse_only_in(body),
        about=parse_about(body),
    )


def delete_entry_by_name(kind: str, entry: ManifestEntry) -> DeleteEntry[Any]:
    """Return the deletion entry of a resource identified by `name`."""
    return delete_entry(entry, Address.of(kind, normalize_name(str(entry.body["name"]))), None)


def delete_entry(entry: ManifestEntry, address: Address, spec: object) -> DeleteEntry[Any]:
    """Return a deletion entry; an `until` that is not a calendar date is reported and dropped."""
    return DeleteEntry(
        address=address,
        spec=spec,
        places=entry.places,
        pins=parse_pins(entry.body.get("id")),
        until=_date(entry),
        only_in=parse_only_in(entry.body),
    )


def _date(entry: ManifestEntry) -> date | None:
    text = entry.body.get("until")
    if text is None:
        return None
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        message = f"until: {shorten(str(text))} is not a calendar date"
        entry.problem("manifest/date", message, "until", hint="Write a date such as 2027-03-31.")
        return None


def report_missing_key(planning: PlanContext, declared: DesiredResource[Any], key: str) -> None:
    """Report that a resource to be created lacks a key that the service requires."""
    planning.report(
        declared,
        f"{declared.address.kind.replace('_', '-')}/{key}-needed",
        f"it is not live, and without `{key}` it cannot be created",
        hint=f"Set its `{key}`, or correct the name.",
    )


def report_unread_list(planning: PlanContext, address: Address, key: str, at: SourceLocation | None) -> None:
    """Report a list that the snapshot lacks: read as empty, it would hide removals or plan needless additions."""
    planning.problem(
        "read/missing",
        f"{address}: the snapshot does not contain its {key}",
        hint="Save a complete snapshot with `lmsconf snapshot FILE`.",
        at=at,
        address=address,
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
        if self.whole:
            return [*sorted(self.include)]
        return {"include": [*sorted(self.include)], "exclude": [*sorted(self.exclude)]}

    @property
    def named_emails(self) -> frozenset[str]:
        return self.include | self.exclude if self.exclude else self.include

    def live_to_compare(self, live: frozenset[str]) -> PeopleList:
        """Return the live list in the form of this one: whole, or limited to the people named here."""
        if self.whole:
            return PeopleList(live)
        return PeopleList(live & self.named_emails, self.named_emails - live, whole=False)

    def joined(self, more: PeopleList) -> PeopleList:
        """Return this list plus the additions of another of the same form, without its removals."""
        include = self.include | more.include
        return PeopleList(include, self.exclude - include, self.whole)


NOBODY = PeopleList(frozenset())
LISTS: Final = ("members", "managers")
"""The keys of groups and smart groups that hold lists of people; a smart group has no members of its own."""


def declared_lists(spec: object) -> Iterator[tuple[str, PeopleList]]:
    """Yield the key and the people of each list that a group or a smart group declares."""
    for key in LISTS:
        people = getattr(spec, key, None)
        if people is not None:
            yield key, people


def parse_people_list(entry: ManifestEntry, key: str) -> PeopleList | None:
    """Return the list of people under `key`, or None without the key. Reports people both included and excluded."""
    people = parse_list(entry.body.get(key), normalize_email)
    for both in sorted(people.include & people.exclude) if people is not None else ():
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
    parts = value if isinstance(value, dict) else {"include": value}
    include, exclude = (
        frozenset(normalize(item) for item in cast("list[Json]", parts.get(key, [])) if isinstance(item, str))
        for key in ("include", "exclude")
    )
    return PeopleList(include, exclude, whole=not isinstance(value, dict))


def drop_unknown_from_list(
    entry: Entry, key: str, people: PeopleList, new: frozenset[str], report: Report
) -> PeopleList:
    """Return a declared list without people that a redacted snapshot does not know, each reported."""
    for person in sorted(people.named_emails & new):
        report(not_compared_warning(entry.address, person, entry.places.find(person, key), key))
    return PeopleList(people.include - new, people.exclude - new, people.whole)


def not_compared_warning(address: Address, person: str, at: SourceLocation, key: str = "") -> Problem:
    """Return the warning that a declaration about a person is left out; key: the list that names the person."""
    where = f"{key}: " if key else ""
    return Problem(
        code="snapshot/not-compared",
        message=f"{address}: {where}{person} is not compared: no manifest named this person when the redacted snapshot "
        "was taken",
        hint="A plan of the workspace itself compares everybody. One of the unnamed people may be this person.",
        severity=Severity.WARNING,
        source=at,
        address=str(address),
    )
