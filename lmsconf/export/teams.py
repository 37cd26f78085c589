"""Split an export by team: by the value of a custom field, or by the prefix of names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from lmsconf.errors import LmsconfError, UsageError
from lmsconf.export.manifest_files import entries_of
from lmsconf.kinds.export import team_of
from lmsconf.manifest.schemas import declares_choices
from lmsconf.model.address import Address
from lmsconf.model.names import casefold_name, did_you_mean, normalize_name, quote_name
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.kind import Kind
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import ExportedEntry

_PREFIX: Final = "prefix:"
_MOST: Final = 200
"""The most folders that an export writes."""
_LONGEST: Final = 60
_NOT_IN_A_NAME: Final = re.compile(r"[^\w]+")
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)")
"""File names that Windows does not have."""


class TeamRule(Struct, frozen=True):
    """How `--by` splits: by a custom field, or by what stands before a separator in a name."""

    field: str | None = None
    separator: str = ""


def parse_rule(text: str, snapshot: Snapshot, kinds: Mapping[str, Kind]) -> TeamRule:
    """Parse the value of `--by`. Raises UsageError for a field that the workspace does not have."""
    if text.startswith(_PREFIX):
        separator = text.removeprefix(_PREFIX)
        if not separator.strip():
            raise UsageError(
                f"--by {text}: the separator is missing", hint="Write it after the colon: --by 'prefix: - '"
            )
        return TeamRule(separator=separator)
    fields = {
        normalize_name(row.name)
        for kind in kinds.values()
        if declares_choices(kind)
        for row in snapshot.of(kind.name).rows
    }
    if normalize_name(text) not in fields:
        near = did_you_mean(text, sorted(fields))
        hint = f"{near or 'Name a custom field.'} To split by the beginning of names, write --by 'prefix: - '"
        raise UsageError(f"--by {text}: the workspace has no custom field {quote_name(text)}", hint=hint)
    return TeamRule(field=normalize_name(text))


def teams_of(rule: TeamRule, entries: Iterable[ExportedEntry], kinds: Mapping[str, Kind]) -> dict[Address, str]:
    """Return the team of each entry that has one. entries: of all kinds, in their order."""
    teams: dict[Address, str] = {}
    for entry in entries:
        kind = kinds[entry.address.kind]
        team = (
            _prefix(entry, kind, rule.separator)
            if rule.field is None
            else team_of(kind.name, entry.body, rule.field, teams)
        )
        if team is not None and team.strip():
            teams[entry.address] = team
    return teams


def live_entries(live: LiveNames, kinds: Mapping[str, Kind]) -> list[ExportedEntry]:
    """Return the entries of everything that is live, of kinds that are not exported too."""
    return [row for kind in kinds.values() for row in entries_of(kind, live) if isinstance(row, ExportedEntry)]


def split_by_team(entries: Iterable[ExportedEntry], teams: Mapping[Address, str]) -> dict[str, Sequence[ExportedEntry]]:
    """Map each folder to its entries; those without a team are under the empty name.

    Raises LmsconfError for more folders than anybody would read.
    """
    by_team: dict[str, list[ExportedEntry]] = {}
    for entry in entries:
        by_team.setdefault(casefold_name(teams.get(entry.address, "")), []).append(entry)
    if len(by_team) > _MOST:
        message = f"--by would write {len(by_team):,} folders, and at most {_MOST} are written"
        raise LmsconfError(message, hint="Name a field with fewer values, or another separator.")
    names: set[str] = set()
    folders: dict[str, Sequence[ExportedEntry]] = {}
    for team in sorted(by_team):
        name = _folder(team, names) if team else ""
        names.add(name)
        folders[name] = by_team[team]
    return folders


def _prefix(entry: ExportedEntry, kind: Kind, separator: str) -> str | None:
    """Return the part of a name before the separator, for an assignment of its content's; None for people."""
    value = next(iter(entry.body.values()))
    name = value.get("name") if isinstance(value, dict) else value
    before, found, after = str(name).partition(separator)
    return before.strip() if found and after.strip() and not kind.is_person else None


def _folder(team: str, taken: Collection[str]) -> str:
    """Return the name of a team's folder: letters and digits alone, so that it is a name of every file system.

    A folder whose name began with `.` or `_` would not be read.
    """
    text = unicodedata.normalize("NFC", casefold_name(team))
    name = _NOT_IN_A_NAME.sub("-", text).strip("-_")[:_LONGEST].rstrip("-_")
    name = name if name and not _RESERVED.fullmatch(name) else f"team-{name}".rstrip("-")
    number, unused = 1, name
    while unused in taken:
        number += 1
        unused = f"{name}-{number}"
    return unused
