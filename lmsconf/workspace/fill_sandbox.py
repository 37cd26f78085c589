"""Fill an embedded workspace that is empty from a seed, or from a snapshot: its resources, by their ids.

What a snapshot does not hold gets the values of a new workspace: times of creation, results and certificates, and
what the catalog says of a content beside its name and type.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize

from msgspec.json import encode
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import EVERYONE_ID
from lmsconf.documents.snapshot_file import FORMAT, snapshot_of
from lmsconf.errors import LmsconfError, ProblemsFound, raise_found
from lmsconf.kinds.assignment.types import EVERYONE_KEY, ContentRow, TargetRow, audiences_among
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.group import GroupRow
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.smart_group import SmartGroupRow
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.snapshot import Snapshot
from lmsconf.sandbox.handlers.content import EVERYONE, USER
from lmsconf.sandbox.handlers.users import FIRST_LANGUAGE
from lmsconf.sandbox.request_context import (
    GROUP,
    SMART_GROUP,
    RequestContext,
    default_applications,
    encode_applications,
    parse_time,
)
from lmsconf.sandbox.seed import file_problem, fill_from_seed, read_yaml
from lmsconf.sandbox.seed_format import SECTIONS, EntryLoader, InvalidSeedValue, reserve_id
from lmsconf.sandbox.store import Repository

_KINDS: Final = {
    EVERYONE_KEY[0]: EVERYONE,
    PersonRow.listing: USER,
    GroupRow.listing: GROUP,
    SmartGroupRow.listing: SMART_GROUP,
}
"""Kind of an audience → the same in the workspace."""


def load_seed(path: Path) -> Mapping[str, object] | Snapshot:
    """Return the sections of a seed file, or a snapshot.

    Raises ProblemsFound if it is neither, LmsconfError if it cannot be read.
    """
    values = read_yaml(path, "seed")
    if not isinstance(values, dict):
        raise ProblemsFound([file_problem("seed", str(path), f"it has no sections such as {', '.join(SECTIONS)}")])
    if values.get("format") == FORMAT:
        try:
            return snapshot_of(values)
        except LmsconfError as wrong:
            raise ProblemsFound([replace(file_problem("seed", str(path), wrong.message), hint=wrong.hint)]) from wrong
    if str(values.get("format")).startswith("lmsconf."):
        raise ProblemsFound(
            [file_problem("seed", str(path), f"it is not a seed or a snapshot, but a {values['format']}")]
        )
    return values


def fill_workspace(
    repository: Repository,
    values: Mapping[str, object] | Snapshot,
    *,
    source: str = "seed",
    spec: ApiSpec | None = None,
    keeps_unlisted: bool = False,
) -> None:
    """Fill an empty workspace. Raises ProblemsFound with every error; the workspace then stays empty.

    source: the file, for messages. keeps_unlisted: whether ids of people and audiences that no listing of a snapshot
    has stay in lists and assignments, as in the workspace: some services list only active people. Else each is a
    problem.
    """
    context = RequestContext(repository, (spec or ApiSpec.default()).behaviour)
    problems = (
        _fill_from_snapshot(context, values, keeps_unlisted=keeps_unlisted)
        if isinstance(values, Snapshot)
        else fill_from_seed(context, values)
    )
    raise_found([file_problem("seed", source, message) for message in problems])


def _fill_from_snapshot(context: RequestContext, snapshot: Snapshot, *, keeps_unlisted: bool) -> list[str]:
    """Insert the rows of a snapshot; return the problems of what cannot be inserted."""
    if snapshot.redaction is not None:
        return ["a redacted snapshot names too few people to make a workspace of"]
    row_types = (FieldRow, PersonRow, GroupRow, SmartGroupRow, ContentRow, TargetRow)
    listings = {row_type.listing: snapshot.listings.get(row_type.listing) for row_type in row_types}
    problems = [
        f"{name}: it was not read" if whole is None else f"{name}: it was not read completely: {whole.incomplete}"
        for name, whole in listings.items()
        if whole is None or whole.incomplete is not None
    ]
    return problems or SnapshotLoader(context, snapshot, keeps_unlisted=keeps_unlisted).load_listings()


class SnapshotLoader(EntryLoader):
    """A workspace that is being filled from a snapshot, whose rows refer to each other by id."""

    def __init__(self, context: RequestContext, snapshot: Snapshot, *, keeps_unlisted: bool) -> None:
        super().__init__(context)
        self._snapshot = snapshot
        self._keeps_unlisted = keeps_unlisted
        self._ids: defaultdict[str, set[str]] = defaultdict(set)
        self._fields_by_name: defaultdict[str, list[FieldRow]] = defaultdict(list)
        self._choices: dict[str, dict[str, str]] = {}
        self._field_of_choice: dict[str, str] = {}
        self._targets: set[tuple[str, str, str]] = set()
        self._audiences = audiences_among(
            {
                listing: [(row.id, row.name) for row in snapshot.of(listing).rows]
                for listing in (GroupRow.listing, SmartGroupRow.listing, PersonRow.listing)
            },
            snapshot.rows(TargetRow),
            context.behaviour(EVERYONE_ID),
            incomplete=None,
        )

    def load_listings(self) -> list[str]:
        """Insert all rows, each after those that it refers to; return the problems."""
        loads: dict[type[Any], Callable[[Any], None]] = {
            FieldRow: self._load_field,
            PersonRow: self._load_person,
            GroupRow: self._load_group,
            SmartGroupRow: self._load_smart_group,
            ContentRow: self._load_content,
            TargetRow: self._load_target,
        }
        for row_type, load in loads.items():
            self.load(row_type.listing, dict(enumerate(self._snapshot.rows(row_type))), load)
        return self.problems

    def _known(self, listing: str, id: str) -> str:
        """Return an id that a listing has. Raises InvalidSeedValue."""
        if id not in self._ids[listing]:
            raise InvalidSeedValue(f"there is no {listing} with the id {id!r}")
        return id

    def _load_field(self, field: FieldRow) -> None:
        reserve_id(field.id, self._ids["custom_field"])
        self.add(
            "fields",
            id=field.id,
            name=field.name,
            type=field.type,
            description=field.description,
            hidden=field.hidden,
            locked=field.locked,
            optional=field.optional,
        )
        for position, choice in enumerate(field.choices):
            reserve_id(choice.id, self._ids["choice"])
            self._field_of_choice[choice.id] = field.id
            self.add("choices", id=choice.id, field=field.id, position=position, name=choice.name)
        self._fields_by_name[normalize("NFC", field.name)].append(field)
        self._choices[field.id] = {
            **{choice.name: choice.id for choice in field.choices},
            **{choice.id: choice.id for choice in field.choices},
        }

    def _load_person(self, person: PersonRow) -> None:
        reserve_id(person.id, self._ids["user"])
        admin, manager = bool(person.admin), bool(person.manager)
        self.add(
            "people",
            id=person.id,
            email=person.email,
            first_name=person.first_name or "",
            last_name=person.last_name or "",
            admin=admin,
            manager=manager,
            archived_at=self.now if person.archived else None,
            created_at=self.now,
            custom_archive_at=person.archive_date,
            language=person.language or FIRST_LANGUAGE,
            metadata=encode(dict(person.metadata or ())).decode(),
            applications=encode_applications(
                default_applications(admin=admin, manager=manager)
                if person.applications is None
                else person.applications
            ),
        )
        for answer in person.answers or ():
            self._add_answer(person.id, answer)

    def _add_answer(self, person: str, answer: AnswerRow) -> None:
        """Add an answer: to the first field of that name to which it is one."""
        values = [*sorted(answer.choices), *([answer.text] if answer.text else [])]
        for field in self._fields_by_name[normalize("NFC", answer.field)]:
            choices = self._choices[field.id]
            if (len(values) == 1) if field.type == "TEXT" else (choices.keys() >= {*values}):
                break
        else:
            raise InvalidSeedValue(f"the answer to {answer.field!r} fits no custom field of that name")
        for value in values:
            choice, text = ("", value) if field.type == "TEXT" else (choices[value], None)
            self.add("answers", person=person, field=field.id, choice=choice, text=text)

    def _load_group(self, group: GroupRow) -> None:
        reserve_id(group.id, self._ids["group"])
        self.add("groups", id=group.id, kind=GROUP, name=group.name)
        self._add_people("managers", group.id, group.managers)
        self._add_people("members", group.id, group.members)

    def _load_smart_group(self, group: SmartGroupRow) -> None:
        reserve_id(group.id, self._ids["smart_group"])
        if group.id in self._ids["group"]:
            raise InvalidSeedValue(f"a group has the same id {group.id!r}, and the sandbox has one id for one group")
        self.add("groups", id=group.id, kind=SMART_GROUP, name=group.name)
        self._add_people("managers", group.id, group.managers)
        if group.conditions is None:
            raise InvalidSeedValue("conditions were not read")
        for position, condition in enumerate(group.conditions):
            self.add(
                "conditions",
                grp=group.id,
                position=position,
                field=self._known("custom_field", condition.field),
                system_condition=condition.system_condition,
            )
            for place, choice in enumerate(sorted(condition.choices)):
                self.add(
                    "condition_choices",
                    grp=group.id,
                    position=position,
                    place=place,
                    field=self._field_of_choice[self._known("choice", choice)],
                    choice=choice,
                )

    def _add_people(self, table: str, group: str, people: Collection[str] | None) -> None:
        """Add the members or the managers of a group. Raises InvalidSeedValue if they were not read."""
        if people is None:
            raise InvalidSeedValue(f"{table} were not read")
        for person in sorted(people):
            self.add(table, grp=group, person=person if self._keeps_unlisted else self._known("user", person))

    def _load_content(self, content: ContentRow) -> None:
        reserve_id(content.id, self._ids["content"])
        self.add(
            "contents",
            id=content.id,
            type=content.type,
            name=content.name,
            description="",
            price=0,
            updated_at=self.now,
        )

    def _load_target(self, target: TargetRow) -> None:
        assigned = (self._known("content", target.content), self._audience_kind(target), target.target)
        if assigned in self._targets:
            raise InvalidSeedValue("it names the same twice")
        self._targets.add(assigned)
        content, kind, audience = assigned
        self.add(
            "targets",
            content=content,
            kind=kind,
            audience=audience,
            mandatory=target.mandatory,
            start=_instant("start", target.start),
            finish=_instant("finish", target.finish),
            created_at=self.now,
            updated_at=self.now,
            type=None if target.type in ("", kind) else target.type,
        )

    def _audience_kind(self, target: TargetRow) -> str:
        """Return what kind of audience a target has, as plans find it. Raises InvalidSeedValue."""
        found = self._audiences.of(target)
        if found is None and self._keeps_unlisted and not self._audiences.candidates(target):
            return USER
        if found is not None and (self._keeps_unlisted or found == EVERYONE_KEY or found[1] in self._ids[found[0]]):
            return _KINDS[found[0]]
        raise InvalidSeedValue(f"the audience {target.target!r} is not a person, group or smart group of the snapshot")


def _instant(key: str, text: str | None) -> int | None:
    for format in ("iso", "iso-local", "epoch-ms"):
        with suppress(ValueError):
            return None if text is None else parse_time(text, format)
    raise InvalidSeedValue(f"{key}: {text!r} is not a time")
