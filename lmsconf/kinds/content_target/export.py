"""Live assignments as manifest entries, one for each content, and where assignments refer to other resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from lmsconf.kinds.content_target.audiences import resolve_audience
from lmsconf.kinds.content_target.types import (
    AUDIENCES,
    AssignmentSpec,
    ContentRow,
    TargetRow,
    assignment_address,
    audience_entry,
    unnamed_content,
)
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, EVERYONE, USER
from lmsconf.kinds.shared.times import format_shortest_time
from lmsconf.kinds.user.export import manifest_email
from lmsconf.model.address import EVERYBODY, Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import pin_in
from lmsconf.model.names import casefold_name, is_valid_name, normalize_name
from lmsconf.model.time_formats import parse_response_time
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import ANY, EntryBody, ExportedEntry, Trail, UnexportableRow

_AUDIENCES: Final[tuple[Trail, ...]] = (
    ("content_targets", ANY, "assign_to", ANY),
    ("absent", "content_targets", ANY, "assign_to", ANY),
    *(("tests", ANY, key) for key in ("all", "none", "audience")),
    ("tests", ANY, "disjoint", ANY),
)
REFERENCES: Final[Mapping[str, Sequence[Trail]]] = {
    kind: (*((*trail, key) for trail in _AUDIENCES), ("tests", ANY, key)) for key, kind in AUDIENCES.items()
}
_VALUE: Final = ("mandatory", "visible_from", "visible_until")
_ORDER: Final = (EVERYBODY, "smart_group", "group", "user")


def content_id_of_target(target: str) -> str:
    """Return the id of the content in the id of a live target."""
    return target.partition("/")[0]


def absent_assignment_entry(spec: AssignmentSpec, workspace: str) -> Json:
    """Return the entry under `absent` that deletes an assignment in a workspace."""
    pin = pin_in(spec.content_pins, workspace)
    content: Json = spec.content if pin is None else {"name": spec.content, "id": pin}
    return {"content": content, "assign_to": [audience_entry(spec.audience)]}


def assignment_entries(live: LiveNames) -> Iterator[ExportedEntry | UnexportableRow]:
    """Yield every assignment, each with one audience."""
    contents = {row.id: row for row in live.snapshot.rows(ContentRow)}
    for row in live.snapshot.rows(TargetRow):
        content, name = _content(live, contents.get(row.content))
        audience = resolve_audience(live.planning, row)
        address = assignment_address(name, audience or Address("audience", row.target))
        reason = "its content is not in the catalog" if content is None else _unnameable(live, row, audience)
        if audience is None or reason is not None:
            yield UnexportableRow(address=address, id=row.id, reason=str(reason))
        else:
            body: dict[str, Json] = {"content": content}
            body |= {"mandatory": True} if row.mandatory else {}
            body |= {} if row.start is None else {"visible_from": _time(row.start, live, end_of_day=False)}
            body |= {} if row.finish is None else {"visible_until": _time(row.finish, live, end_of_day=True)}
            email = manifest_email(live, row.target, archived=True)
            to: Json = {"user": email} if audience.kind == USER else audience_entry(audience)
            yield ExportedEntry(address=address, id=row.id, body={**body, "assign_to": [to]})


def _content(live: LiveNames, row: ContentRow | None) -> tuple[Json, str]:
    """Return how a manifest refers to content, and its name.

    The id is added if two contents share the name, or if the name cannot be written.
    """
    if row is None:
        return None, "content"
    name = normalize_name(row.name)
    if not is_valid_name(name):
        # The id identifies the content, whatever name is given with it.
        name = unnamed_content(row.id)
        return {"name": name, "id": row.id}, name
    return ({"name": name, "id": row.id} if live.is_duplicate(CONTENT, row) else name), name


def _unnameable(live: LiveNames, row: TargetRow, audience: Address | None) -> str | None:
    """Return the reason why no manifest can refer to the audience; None if one can."""
    if audience is None:
        return "its audience is unknown"
    if audience == EVERYONE:
        return None
    if audience.kind == USER:
        if manifest_email(live, row.target, archived=True) is None:
            return "the person has no e-mail that a manifest can contain"
        # Owned assignments are deleted unless declared. Otherwise leave it out: each plan would report archived people.
        owned = live.policy.ownership.get(CONTENT_TARGET)
        return "the person is archived" if not owned and manifest_email(live, row.target) is None else None
    rows = live.snapshot.of(audience.kind).rows
    same = next(other for other in rows if other.id == row.target)
    return None if live.is_resolved_by_name(audience.kind, same) else "another audience has the same name"


def _time(text: str, live: LiveNames, *, end_of_day: bool) -> str:
    """Format a live time for a manifest; an unreadable one is returned unchanged, and reported by the plan."""
    try:
        return format_shortest_time(parse_response_time(text), live.timezone, end_of_day=end_of_day)
    except ValueError:
        return text


def group_by_content(entries: Iterable[ExportedEntry]) -> Iterator[EntryBody]:
    """Group assignments into one entry per content: values that all audiences share once, others at each audience."""
    by_content: defaultdict[str, list[ExportedEntry]] = defaultdict(list)
    for entry in entries:
        by_content[str((entry.body["content"], entry.body.get("only_in")))].append(entry)
    for same in sorted(by_content.values(), key=lambda same: (casefold_name(_content_name(same[0])), same[0].id)):
        first = same[0].body
        shared = {
            key: first[key]
            for key in _VALUE
            if key in first and all(entry.body.get(key) == first[key] for entry in same)
        }
        audiences = sorted((_audience(entry, shared) for entry in same), key=_order)
        limits = {key: first[key] for key in ("only_in",) if key in first}
        yield EntryBody({"content": first["content"], **shared, "assign_to": audiences, **limits})


def _content_name(entry: ExportedEntry) -> str:
    content = entry.body["content"]
    return str(content["name"] if isinstance(content, dict) else content)


def _audience(entry: ExportedEntry, shared: Mapping[str, Json]) -> Json:
    items = entry.body["assign_to"]
    [to] = items if isinstance(items, list) else [items]
    own = {key: entry.body[key] for key in _VALUE if key in entry.body and key not in shared}
    audience = to if isinstance(to, dict) else {}
    return EVERYBODY if EVERYBODY in audience and not own else {**audience, **own}


def _order(audience: Json) -> tuple[int, str]:
    item = audience if isinstance(audience, dict) else {EVERYBODY: True}
    key = next(key for key in _ORDER if key in item)
    return _ORDER.index(key), casefold_name(str(item[key]))
