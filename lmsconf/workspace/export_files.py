"""Entries → texts of manifests: exported ones as a file per kind or per team, expanded ones as a single one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Final, TypeAlias, cast

from lmsconf.errors import LmsconfError, UsageError
from lmsconf.kinds.export import (
    ExportedEntry,
    assignment_entries,
    group_by_content,
    named_entries,
    person_entries,
    team_of,
)
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, Kind
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.manifest.edit.text_edits import escape_for_comment, format_entry_lines
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.guards import Policy
from lmsconf.model.names import casefold_name, did_you_mean, grouped, normalize_name, quote_name
from lmsconf.model.snapshot import Snapshot
from lmsconf.project.config_file import order_kinds

_SHOWN: Final = 20
"""How many rows that could not be exported are listed in a file; the others are counted."""


def entries_of(kind: Kind, planning: PlanContext, policy: Policy) -> Iterator[ExportedEntry]:
    """Return the manifest entry of every live row of a kind, or the reason why it has none.

    planning: a PlanContext in which every kind has matched its rows, with nothing declared. policy: that of the export.
    """
    if kind.is_person:
        return person_entries(planning)
    return assignment_entries(planning, policy) if kind.name == CONTENT_TARGET else named_entries(planning, kind.name)


def render_files(entries: Sequence[ExportedEntry], skipped: Sequence[ExportedEntry], workspace: str) -> dict[str, str]:
    """Map each section to the text of its file; kinds without an entry have none."""
    own, missing = (grouped(rows, lambda row: row.address.kind) for rows in (entries, skipped))
    return {
        kind.section: _file(kind, own[kind.name], missing.get(kind.name, ()), workspace)
        for kind in order_kinds()
        if kind.name in own
    }


def _file(kind: Kind, entries: Sequence[ExportedEntry], missing: Sequence[ExportedEntry], workspace: str) -> str:
    """Return the text of a file: its entries sorted for reading and lookup; of each content, one entry."""
    lines = [f"# What workspace {escape_for_comment(workspace)} contained when it was exported.", *_missing(missing)]
    ordered = sorted(entries, key=lambda entry: (casefold_name(entry.address.name), entry.id))
    plain = ((entry.body, entry.notes) for entry in ordered)
    grouped_ones = ((body, ()) for body in group_by_content(entries))
    blocks = [
        "\n".join((*(f"  # {escape_for_comment(note)}" for note in notes), *format_entry_lines(body, "  ")))
        for body, notes in (grouped_ones if kind.name == CONTENT_TARGET else plain)
    ]
    between = "\n\n" if any("\n" in block for block in blocks) else "\n"
    return "\n".join((*lines, "", f"{kind.section}:", between.join(blocks), ""))


def _missing(missing: Sequence[ExportedEntry]) -> list[str]:
    """Return comment lines that list what was left out, and why."""
    lines = [f"#   {escape_for_comment(line)}" for line in map(unexportable_line, missing[:_SHOWN])]
    more = [f"#   … and {len(missing) - _SHOWN:,} more"] if len(missing) > _SHOWN else []
    return ["# Not exported, because a manifest cannot express it:", *lines, *more] if missing else []


def unexportable_line(row: ExportedEntry) -> str:
    """Format a row that was left out: `group/Sales (id g-2): another one has its name`."""
    return f"{row.address} (id {row.id}): {row.reason}"


def expanded_manifest(entries: Iterable[tuple[tuple[str | int, ...], Json]]) -> str:
    """Return expanded entries, each with the keys that lead to its section, as one YAML text.

    Entries are by section, in their order; resources to delete are at the end.
    """
    sections = grouped(entries, lambda one: one[0])
    lines: list[str] = []
    for path in sorted(sections, key=len):
        indent = "  " * (len(path) - 1)
        lines += [f"{path[0]}:"] if indent and f"{path[0]}:" not in lines else []
        lines.append(f"{indent}{path[-1]}:")
        for _, entry in sections[path]:
            lines += format_entry_lines(cast("Mapping[str, Json]", entry), f"{indent}  ")
    return "".join(f"{line}\n" for line in lines)


_PREFIX: Final = "prefix:"
_MOST: Final = 200
"""The most folders that an export writes."""


TeamRule: TypeAlias = "Callable[[ExportedEntry, Mapping[Address, str]], str | None]"
"""How `--by` splits: the team of an entry, given those of other entries."""


def parse_rule(text: str, snapshot: Snapshot) -> TeamRule:
    """Parse the value of `--by`. Raises UsageError for a field that the workspace does not have."""
    if text.startswith(_PREFIX):
        separator = text.removeprefix(_PREFIX)
        if not separator.strip():
            raise UsageError(
                f"--by {text}: the separator is missing", hint="Write it after the colon: --by 'prefix: - '"
            )
        return lambda entry, _: _prefix(entry, separator)
    fields = {
        normalize_name(row.name)
        for kind in KINDS.values()
        if kind.parts_key is not None
        for row in snapshot.of(kind.name).rows
    }
    if normalize_name(text) not in fields:
        raise UsageError(
            f"--by {text}: the workspace has no custom field {quote_name(text)}",
            hint=f"{did_you_mean(text, sorted(fields)) or 'Name a custom field.'} "
            "To split by the beginning of names, write --by 'prefix: - '",
        )
    return lambda entry, teams: team_of(entry.address.kind, entry.body, normalize_name(text), teams)


def teams_of(rule: TeamRule, entries: Iterable[ExportedEntry]) -> dict[Address, str]:
    """Return the team of each entry that has one. entries: of all kinds, in their order."""
    teams: dict[Address, str] = {}
    for entry in entries:
        team = rule(entry, teams)
        if team is not None and team.strip():
            teams[entry.address] = team
    return teams


def split_by_team(entries: Iterable[ExportedEntry], teams: Mapping[Address, str]) -> dict[str, Sequence[ExportedEntry]]:
    """Map each folder to its entries; those without a team are under the empty name.

    Raises LmsconfError for more folders than anybody would read.
    """
    by_team = grouped(entries, lambda entry: casefold_name(teams.get(entry.address, "")))
    if len(by_team) > _MOST:
        raise LmsconfError(
            f"--by would write {len(by_team):,} folders, and at most {_MOST} are written",
            hint="Name a field with fewer values, or another separator.",
        )
    folders: dict[str, Sequence[ExportedEntry]] = {}
    for team in sorted(by_team):
        folders[_folder(team, folders) if team else ""] = by_team[team]
    return folders


def _prefix(entry: ExportedEntry, separator: str) -> str | None:
    """Return the part of a name before the separator, for an assignment of its content's; None for people."""
    value = next(iter(entry.body.values()))
    name = value.get("name") if isinstance(value, dict) else value
    before, found, after = str(name).partition(separator)
    return before.strip() if found and after.strip() and not KINDS[entry.address.kind].is_person else None


def _folder(team: str, taken: Collection[str]) -> str:
    """Return the name of a team's folder: letters and digits alone, so that it is a name of every file system.

    A folder whose name began with `.` or `_` would not be read.
    """
    name = re.sub(r"\W+", "-", unicodedata.normalize("NFC", casefold_name(team))).strip("-_")[:60].rstrip("-_")
    # Windows has no files of these names.
    if not name or re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", name):
        name = f"team-{name}".rstrip("-")
    return next(one for one in chain([name], (f"{name}-{number}" for number in count(2))) if one not in taken)
