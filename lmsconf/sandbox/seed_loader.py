"""Fill an empty workspace from a seed: names become ids, and rows are inserted in bulk.

Custom fields, conditions and assignments are created as requests are, so that the API's rules hold for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from lmsconf.sandbox.handlers import custom_fields
from lmsconf.sandbox.handlers.content import assign_content
from lmsconf.sandbox.handlers.groups import REPLACE_CONDITIONS
from lmsconf.sandbox.request_context import (
    GROUP,
    SMART_GROUP,
    RequestContext,
    default_applications,
    encode_applications,
)
from lmsconf.sandbox.seed_format import (
    EntryLoader,
    InvalidSeedValue,
    SeedCertificate,
    SeedContent,
    SeedContentTarget,
    SeedCustomField,
    SeedEntryWithId,
    SeedEvent,
    SeedGroup,
    SeedNamedEntry,
    SeedParticipation,
    SeedPerson,
    SeedSmartGroup,
    read_entry,
    reserve_id,
)
from lmsconf.sandbox.store import Json, Value

S = TypeVar("S", bound=Struct)
T = TypeVar("T", bound=SeedEntryWithId)


class SeedLoader(EntryLoader):
    """A workspace that is being filled from a seed, whose entries name each other."""

    def __init__(self, context: RequestContext, sections: Mapping[str, Sequence[object]]) -> None:
        super().__init__(context)
        self._sections = sections
        self._ids: defaultdict[tuple[str, str], list[Value]] = defaultdict(list)
        self._pairs: set[tuple[Value, ...]] = set()

    def load_sections(self) -> list[str]:
        """Create what the sections list, each after those that its entries name; return the problems."""
        loads: dict[str, tuple[type[Any], str, Callable[[Any], None]]] = {
            "custom_fields": (SeedCustomField, "", self._load_field),
            "people": (SeedPerson, "u", self._load_person),
            "groups": (SeedGroup, "g", self._load_group),
            "smart_groups": (SeedSmartGroup, "sg", self._load_smart_group),
            "content": (SeedContent, "c", self._load_content),
            "content_targets": (SeedContentTarget, "", self._load_target),
            "participations": (SeedParticipation, "p", self._load_participation),
            "certificates": (SeedCertificate, "cert", self._load_certificate),
        }
        for section, (kind, prefix, load) in loads.items():
            entries = self._numbered(section, kind, prefix) if prefix else self._read(section, kind)
            for entry in entries.values():  # one may name another that is listed after it
                if isinstance(entry, SeedNamedEntry):
                    self._ids[section, entry.name].append(entry.id)
            self.load(section, entries, load)
        return self.problems

    def _read(self, section: str, kind: type[S]) -> dict[int, S]:
        """The entries of a section by their place, without those that cannot be read."""
        entries = dict(enumerate(self._sections.get(section) or ()))
        return self.each(section, entries, lambda entry: read_entry(entry, kind))

    def _numbered(self, section: str, kind: type[T], prefix: str) -> dict[int, T]:
        """The entries of a section by their place, each with its own id or a new one."""
        entries, taken = self._read(section, kind), set(self.repository.existing_ids(prefix))
        own_ids = {place: entry.id for place, entry in entries.items() if entry.id is not None}
        kept = self.each(section, own_ids, lambda id: reserve_id(id, taken))
        made = iter(self.repository.new_ids(prefix, len(entries) - len(kept), frozenset(taken)))
        return {place: replace(entry, id=kept.get(place) or next(made)) for place, entry in entries.items()}

    def _load_field(self, field: SeedCustomField) -> None:
        body: dict[str, Json] = {
            "name": field.name,
            "type": field.type,
            "description": field.description,
            "isHidden": field.hidden,
            "isLocked": field.locked,
            "isOptional": field.optional,
            **({} if field.choices is None else {"choices": [{"name": name} for name in field.choices]}),
        }
        made = custom_fields.create(self.context.with_body(body))
        for section in ("custom_fields", f"{field.type} fields"):
            self._ids[section, field.name].append(str(made["id"]))
        for choice in cast("list[Mapping[str, str]]", made.get("choices", [])):
            self._ids[f"the choices of {field.name!r}", choice["name"]] = [choice["choiceId"]]  # of two alike, the last

    def _load_person(self, person: SeedPerson) -> None:
        if self._ids["people", person.email.casefold()]:
            raise InvalidSeedValue(f"{person.email} is a duplicate")
        self._ids["people", person.email.casefold()].append(person.id)
        if person.custom_archive_date is not None and (person.admin or person.manager):
            raise InvalidSeedValue("an admin or manager cannot have a custom archive date")
        default = default_applications(admin=person.admin, manager=person.manager)
        self.add(
            "people",
            id=person.id,
            email=person.email,
            first_name=person.first_name,
            last_name=person.last_name,
            admin=person.admin,
            manager=person.manager,
            archived_at=self.now if person.archived else None,
            created_at=self.now,
            custom_archive_at=person.custom_archive_date,
            language=person.language,
            metadata=encode(person.metadata).decode(),
            applications=encode_applications(default if person.applications is None else person.applications),
        )
        for name, answer in person.answers.items():
            field = self._id("custom_fields", name)
            if isinstance(answer, str) and self._ids["TEXT fields", name]:
                self.add("answers", person=person.id, field=field, choice="", text=answer)
            else:
                for one in (answer,) if isinstance(answer, str) else answer or ():
                    self.add(
                        "answers",
                        person=person.id,
                        field=field,
                        choice=self._id(f"the choices of {name!r}", one),
                        text=None,
                    )

    def _load_group(self, group: SeedGroup) -> None:
        self._add_group(GROUP, group)
        for email in group.members:
            self.add("members", grp=group.id, person=self._id("people", email.casefold()))

    def _add_group(self, kind: str, group: SeedGroup | SeedSmartGroup) -> None:
        self.add("groups", id=group.id, kind=kind, name=group.name)
        for email in group.managers:
            self.add("managers", grp=group.id, person=self._id("people", email.casefold()))

    def _load_smart_group(self, group: SeedSmartGroup) -> None:
        self._add_group(SMART_GROUP, group)
        conditions = [
            {
                "customFieldId": self._id("custom_fields", one.field),
                "choiceIds": [self._id(f"the choices of {one.field!r}", name) for name in one.choices],
                "systemCondition": one.system_condition,
            }
            for one in group.conditions
        ]
        REPLACE_CONDITIONS(self.context.with_body({"smartGroupId": group.id, "conditions": conditions}))

    def _load_content(self, content: SeedContent) -> None:
        details = {
            "partOfPrograms": [self._id("content", name) for name in content.programs],
            "categories": content.categories,
            "metadata": content.metadata,
            "link": content.link,
            "backgroundImageUrl": content.image,
            "occasions": [
                {"occasionId": f"{content.id}-{number}", "startTime": int(one.starts), "attendanceCount": one.attending}
                for number, one in enumerate(content.occasions, 1)
            ],
        }
        self.add(
            "contents",
            id=content.id,
            type=content.type,
            name=content.name,
            description=content.description,
            price=content.price,
            updated_at=self.now if content.updated is None else content.updated,
            details=encode({key: detail for key, detail in details.items() if detail}).decode(),
        )

    def _load_target(self, target: SeedContentTarget) -> None:
        assignment: dict[str, Json] = {
            "contentId": self._id("content", target.content),
            "mandatory": target.mandatory,
            "startTime": target.visible_from,
            "finishTime": target.visible_until,
        }
        for named in target.assign_to:
            assign_content(self.context.with_body({**assignment, **self._audience(named)}), replaces=False)

    def _audience(self, named: str | dict[str, str | bool]) -> dict[str, Value]:
        """An audience as the API takes it."""
        match [*named.items()] if isinstance(named, dict) else named:
            case "everyone" | [("everyone", "true" | True)]:
                return {"targetId": self.context.behaviour("content-targets.everyone")}
            case [("user", email)]:
                return {"userId": self._id("people", str(email).casefold())}
            case [("group" | "smart_group" as kind, name)]:
                return {"targetId": self._id(f"{kind}s", str(name))}
        raise InvalidSeedValue(f"{named!r} is none of everyone, {{group: …}}, {{smart_group: …}}, {{user: …}}")

    def _load_participation(self, entry: SeedParticipation) -> None:
        person, content = self._pair("participations", entry)
        updated = self.now if entry.updated is None else entry.updated
        self.add(
            "participations",
            id=entry.id,
            person=person,
            content=content,
            state=entry.state,
            percentage=100 * (entry.state == "APPROVED") if entry.percentage is None else entry.percentage,
            revision=entry.revision or 1,
            enrolled_at=updated if entry.enrolled is None else entry.enrolled,
            updated_at=updated,
        )
        events = (SeedEvent(status=entry.state),) if entry.events is None else entry.events
        for event_id, event in zip(self.repository.new_ids("e", len(events)), events, strict=True):
            self.add(
                "events",
                id=event_id,
                participation=entry.id,
                status=event.status,
                revision=event.revision or 1,
                at=updated if event.at is None else event.at,
                mandatory=event.mandatory,
                manually=event.manually,
            )

    def _load_certificate(self, entry: SeedCertificate) -> None:
        person, content = self._pair("certificates", entry)
        issued = self.now if entry.issued is None else entry.issued
        if entry.expires is not None and entry.expires <= issued:
            raise InvalidSeedValue("expires is not after issued")
        attachments = [
            {"url": one.url, "name": one.name, "createdAt": int(issued if one.created is None else one.created)}
            for one in entry.attachments
        ]
        self.add(
            "certificates",
            id=entry.id,
            person=person,
            content=content,
            issued=issued,
            expires_at=entry.expires,
            recertification=None if entry.recertification is None else self._id("content", entry.recertification),
            notify=entry.notify,
            attachments=encode(attachments).decode(),
        )

    def _pair(self, section: str, entry: SeedParticipation | SeedCertificate) -> tuple[Value, Value]:
        """The ids of person and content, a pair that a section has only once."""
        pair = self._id("people", entry.user.casefold()), self._id("content", entry.content)
        if (section, *pair) in self._pairs:
            raise InvalidSeedValue(f"{entry.user} with {entry.content} is a duplicate")
        self._pairs.add((section, *pair))
        return pair

    def _id(self, section: str, name: str) -> Value:
        """The id of the one that has a name in a section, or is one of the choices of a field."""
        ids = self._ids[section, name]
        if len(ids) != 1:
            how_many = f"there are {len(ids)}" if ids else "there is no"
            raise InvalidSeedValue(f"{how_many} {name!r} in {section}")
        return ids[0]
