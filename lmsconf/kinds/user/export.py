"""People as manifests name them, and live people as manifest entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.custom_field.choices import field_types
from lmsconf.kinds.shared.answer_rows import AnswerRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, choices_registry_kind
from lmsconf.kinds.shared.times import format_shortest_time
from lmsconf.kinds.user.people_directory import people_directory
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import count_people
from lmsconf.model.forms import form_to_json
from lmsconf.model.names import FORBIDDEN, is_representable, normalize_email, normalize_name
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.context import PlanContext
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import ANY, KEYS, EntryBody, ExportedEntry, PartReferences, Trail, UnexportableRow

REFERENCES: Final[Mapping[str, Sequence[Trail]]] = {
    CUSTOM_FIELD: (("users", ANY, "answers", KEYS),),
    USER: (("people_sets", ANY, ANY),),
}
PART_REFERENCES: Final[Mapping[str, Sequence[PartReferences]]] = {
    CUSTOM_FIELD: (PartReferences(("users", ANY, "answers"), None, ((), (ANY,))),)
}
_NO_EMAIL: Final = "no e-mail that a manifest can contain"


def people_list_trails(*trails: Trail) -> tuple[Trail, ...]:
    """Return the paths of the people in lists, each written whole or as `include` and `exclude`."""
    return tuple((*trail, *part, ANY) for trail in trails for part in ((), ("include",), ("exclude",)))


def manifest_email(live: LiveNames, id: str, *, archived: bool = False) -> str | None:
    """Return the e-mail that identifies a person; None without a unique one, or if archived unless `archived`."""
    people = people_directory(live.planning)
    key = people.emails.get(id)
    if key is None or (key in people.archived and not archived):
        return None
    return _in_manifest(people.by_email[key].email)


def _in_manifest(text: str) -> str | None:
    """Normalize an e-mail to its spelling in manifests, in lower case; None if it is not a valid one."""
    small = normalize_name(text.strip()).lower()
    small = small if normalize_email(small) == normalize_email(text) else normalize_email(text)
    before, at, after = small.partition("@")
    is_valid = before and at and after and "@" not in after and not any(char.isspace() for char in small)
    return small if is_valid and is_representable(small) and not FORBIDDEN.search(small) else None


def people_lists_body(live: LiveNames, lists: Mapping[str, Iterable[str] | None]) -> EntryBody:
    """Return the keys of an entry that hold lists of people: key → ids, None if they were not read.

    An empty list is written for members only: most groups have no manager.
    """
    keys: dict[str, Json] = {}
    notes: list[str] = []
    for key, ids in lists.items():
        if ids is None:
            continue
        people, skipped = _people(live, ids, key.removesuffix("s"))
        notes.extend(skipped)
        if people is not None and (people or key == "members"):
            keys[key] = people
    return EntryBody(keys, tuple(notes))


def _people(live: LiveNames, ids: Iterable[str], noun: str) -> tuple[Json, list[str]]:
    """Return a live list in manifest form, and notes on who was left out.

    It is complete, or `include` if an active person cannot be named; None if then nobody can be.
    """
    named: list[Json] = []
    left: Counter[str] = Counter()
    for id in ids:
        if (address := manifest_email(live, id)) is not None:
            named.append(address)
        else:
            left[_why_not(live, id)] += 1
    people: Json = sorted(named, key=str)
    if _NO_EMAIL in left:
        people = {"include": people} if named else None
    return people, [f"{n} {noun if n == 1 else noun + 's'} left out: {why}" for why, n in left.items()]


def _why_not(live: LiveNames, id: str) -> str:
    people = people_directory(live.planning)
    if id not in people.ids:
        return "no list of people contains the id"
    if id not in people.emails:
        return "more than one person has the e-mail"
    return "archived" if people.emails[id] in people.archived else _NO_EMAIL


def only_text(value: Json) -> str | None:
    """Return a text, or the only one of a list; None for anything else."""
    match value:
        case str(text) | [str(text)]:
            return text
    return None


def team_of_people(people: Json, teams: Mapping[Address, str]) -> str | None:
    """Return the one team that all people of an exported list have."""
    listed = people.get("include") if isinstance(people, dict) else people
    of_each = {teams.get(Address.of(USER, normalize_email(str(email)))) for email in _items(listed)}
    return of_each.pop() if len(of_each) == 1 else None


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def person_entries(live: LiveNames) -> Iterator[ExportedEntry | UnexportableRow]:
    """Yield every person, with the values that were read.

    Values that only the response for a single user contains are usually missing; see `unread_value_notes`.
    """
    for row in live.snapshot.rows(PersonRow):
        address = Address.of(USER, row.name)
        mail = manifest_email(live, row.id, archived=True)
        if mail is None:
            yield UnexportableRow(address=address, id=row.id, reason="no e-mail that names one person only")
        else:
            yield ExportedEntry(address=address, id=row.id, body={"email": mail, **_person_body(live, row)})


def _person_body(live: LiveNames, row: PersonRow) -> dict[str, Json]:
    texts = {"first_name": row.first_name, "last_name": row.last_name, "language": row.language}
    body: dict[str, Json] = {key: normalize_name(text) for key, text in texts.items() if text}
    body |= {key: True for key, right in (("admin", row.admin), ("manager", row.manager)) if right}
    if row.applications is not None:
        body["applications"] = form_to_json(row.applications)
    if row.metadata:
        body["metadata"] = dict(row.metadata)
    if answers := dict(answer_values(live.planning, row.answers or ())):
        body["answers"] = answers
    if row.archived:
        body["archived"] = True
    if row.archive_date is not None:
        moment = datetime.fromtimestamp(row.archive_date // 1000, UTC)
        body["custom_archive_date"] = format_shortest_time(moment, live.timezone, end_of_day=False)
    return body


def answer_values(planning: PlanContext, answers: tuple[AnswerRow, ...]) -> Iterator[tuple[str, Json]]:
    """Yield a person's answers by field, in the form of the field's type."""
    types = field_types(planning)
    for answer in answers:
        scope = choices_registry_kind(answer.field)
        names = form_to_json(frozenset(planning.registry.name(scope, id) or id for id in answer.picked))
        if types.get(answer.field) == "TEXT":
            if answer.as_text:
                yield answer.field, answer.as_text
        elif isinstance(names, list) and names:
            yield answer.field, names if types.get(answer.field) == "MULTI_SELECT" else names[0]


def unread_value_notes(entries: Sequence[ExportedEntry], snapshot: Snapshot) -> Iterator[Problem]:
    """Note people whose language or applications are unknown: only the response for a single user contains them."""
    rows = {str(row.id): row for row in snapshot.rows(PersonRow)}
    number = sum(None in (rows[entry.id].language, rows[entry.id].applications) for entry in entries)
    if number:
        people = count_people(number)
        yield Problem(
            code="export/unread",
            message=f"language and applications of {people} are left out: the list API omits these fields",
            severity=Severity.NOTE,
            hint="`lmsconf api GET /users/ID` shows those of one. Omitted, they stay unmanaged.",
        )
