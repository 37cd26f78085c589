"""Lists of people in a manifest: the whole list, or `include` and `exclude`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from lmsconf.errors import Problem
from lmsconf.model.names import normalize_email
from lmsconf.model.values import Json
from lmsconf.planner.kind import ManifestEntry
from lmsconf.planner.redaction import Entry, Report, not_compared_warning

EMAILS: dict[str, Json] = {
    "type": "array",
    "items": {"type": "string", "pattern": "^[^@\\s]+@[^@\\s]+$", "description": "The person's e-mail."},
}
FILE: dict[str, Json] = {
    "type": "object",
    "description": "People from a CSV file with a header line.",
    "properties": {
        "file": {"type": "string", "minLength": 1, "description": "The CSV file, relative to this manifest."},
        "column": {"type": "string", "minLength": 1, "description": "The column that holds the e-mails."},
        "where": {
            "type": "object",
            "description": "Only rows whose columns read exactly so.",
            "additionalProperties": {"type": "string"},
        },
        "allow_empty": {"type": "boolean", "description": "true: a file without an address means nobody."},
    },
    "required": ["file", "column"],
    "additionalProperties": False,
}


def people_schema(description: str) -> dict[str, Json]:
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
                "description": "Speaks only of the people named here.",
                "properties": {"include": part, "exclude": part},
                "minProperties": 1,
                "additionalProperties": False,
            },
        ],
    }


@dataclass(frozen=True, slots=True)
class People:
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
    def named(self) -> frozenset[str]:
        return self.include | self.exclude

    def comparable(self, live: frozenset[str]) -> People:
        """Return the live list in the form of this one: whole, or limited to the people named here."""
        if self.whole:
            return People(live)
        return People(live & self.named, self.named - live, whole=False)

    def joined(self, more: People) -> People:
        """Return this list plus the additions of another of the same form, without its removals."""
        include = self.include | more.include
        return People(include, self.exclude - include, self.whole)


NOBODY = People(frozenset())


def parse_people(entry: ManifestEntry, key: str) -> People | None:
    """Return the list of people under `key`, or None without the key. Reports people both included and excluded."""
    value = entry.body.get(key)
    if value is None:
        return None
    if isinstance(value, list):
        return People(_emails(value))
    parts = cast(Mapping[str, list[Json]], value)
    people = People(_emails(parts.get("include", [])), _emails(parts.get("exclude", [])), whole=False)
    for both in sorted(people.include & people.exclude):
        entry.report(
            Problem(
                code="people/both",
                message=f"{key}: {both} is both included and excluded",
                hint="Leave the person in one of the two lists.",
                source=entry.places.find(both, key, "exclude"),
            )
        )
    return people


def _emails(items: list[Json]) -> frozenset[str]:
    return frozenset(normalize_email(item) for item in items if isinstance(item, str))


def without_new(entry: Entry, key: str, people: People | None, new: frozenset[str], report: Report) -> People | None:
    """Return a declared list without people that a redacted snapshot does not know, each reported."""
    if people is None:
        return None
    for person in sorted(people.named & new):
        report(not_compared_warning(entry.address, person, entry.places.find(person, key), key))
    return People(people.include - new, people.exclude - new, people.whole)
