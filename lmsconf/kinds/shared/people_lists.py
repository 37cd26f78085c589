"""Lists of people in a manifest: the whole list, or `include` and `exclude`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from lmsconf.errors import Problem
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email
from lmsconf.planner.manifest_entries import ManifestEntry

if TYPE_CHECKING:
    from lmsconf.planner.redaction import Entry, Report

EMAILS: dict[str, Json] = {
    "type": "array",
    "items": {"type": "string", "pattern": "^[^@\\s]+@[^@\\s]+$", "description": "The person's e-mail."},
}
FILE: dict[str, Json] = {
    "type": "object",
    "description": "People from a CSV file or a workbook with a header line.",
    "properties": {
        "file": {
            "type": "string",
            "minLength": 1,
            "description": "The CSV, .xlsx or .ods file, relative to this manifest.",
        },
        "sheet": {
            "type": "string",
            "minLength": 1,
            "description": "The sheet of a workbook. Default: the first that is not hidden.",
        },
        "column": {"type": "string", "minLength": 1, "description": "The column with the e-mails."},
        "where": {
            "type": "object",
            "description": "Only rows with exactly these values in these columns.",
            "additionalProperties": {"type": "string"},
        },
        "allow_empty": {"type": "boolean", "description": "true: a file without an e-mail means nobody."},
    },
    "required": ["file", "column"],
    "additionalProperties": False,
}


def people_list_schema(description: str) -> dict[str, Json]:
    """Return the JSON Schema of a list of people: e-mails, a CSV file, or include and exclude."""
    part: Json = {"x-people": True, "oneOf": [EMAILS, FILE]}
    return {
        "x-people": True,
        "description": description,
        "oneOf": [
            EMAILS,
            FILE,
            {
                "type": "object",
                "description": "Manages only the people listed here.",
                "properties": {"include": part, "exclude": part},
                "minProperties": 1,
                "additionalProperties": False,
            },
        ],
    }


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


def parse_people_list(entry: ManifestEntry, key: str) -> PeopleList | None:
    """Return the list of people under `key`, or None without the key. Reports people both included and excluded."""
    value = entry.body.get(key)
    if value is None:
        return None
    if isinstance(value, list):
        return PeopleList(_emails(value))
    parts = cast(Mapping[str, list[Json]], value)
    people = PeopleList(_emails(parts.get("include", [])), _emails(parts.get("exclude", [])), whole=False)
    for both in sorted(people.include & people.exclude):
        entry.report(
            Problem(
                code="people/both",
                message=f"{key}: {both} is both included and excluded",
                hint="Keep the person in one of the two lists.",
                source=entry.places.find(both, key, "exclude"),
            )
        )
    return people


def _emails(items: list[Json]) -> frozenset[str]:
    return frozenset(map(normalize_email, [item for item in items if isinstance(item, str)]))


def drop_unknown_from_list(
    entry: Entry, key: str, people: PeopleList | None, new: frozenset[str], report: Report
) -> PeopleList | None:
    """Return a declared list without people that a redacted snapshot does not know, each reported."""
    if people is None:
        return None
    from lmsconf.planner.redaction import not_compared_warning

    for person in sorted(people.named_emails & new):
        report(not_compared_warning(entry.address, person, entry.places.find(person, key), key))
    return PeopleList(people.include - new, people.exclude - new, people.whole)
