"""The probe: run all lessons in order on scratch objects, restore everything, however it ends, and write what was
learnt into the project file in place, so that comments and layout are kept.

The new text of the project file is parsed again before it is returned. If it does not have exactly the intended
meaning, which is possible with unusual layouts, it is rejected, and the lines to paste are shown instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

from lmsconf.api.spec.dialect_candidates import METADATA_MODE, PAGE_SIZE, Value
from lmsconf.api.spec.operations import CATALOG, CUSTOM_FIELDS, MANUAL_GROUPS, MATCH_COUNT, SMART_GROUPS, USERS
from lmsconf.doctor.checks import MOST, common_page_size, measure_page_sizes
from lmsconf.doctor.person_backup import DATE, KeptPeople, PersonBackup
from lmsconf.doctor.probe_assignments import KEYS as TARGET_KEYS
from lmsconf.doctor.probe_assignments import AssignmentLessons
from lmsconf.doctor.probe_fields_and_groups import (
    FIELD_KEYS,
    LIST_KEYS,
    RENAME,
    Managers,
    probe_field_keys,
    probe_member_keys,
    probe_rename_key,
)
from lmsconf.doctor.probe_people import ACCOUNT_KEYS, ANSWER_KEYS, AccountLessons, PersonLessons
from lmsconf.doctor.probe_people import KEYS as PERSON_KEYS
from lmsconf.doctor.probe_trials import Row, ScratchObjects, TrialClient, reason_of_leftover, required
from lmsconf.doctor.report import ProbeResult
from lmsconf.errors import LmsconfError, ProblemsFound, Rejected
from lmsconf.manifest.edit.text_edits import format_keys
from lmsconf.manifest.edit.tree_builder import Node
from lmsconf.manifest.edit.yaml_editor import YamlEditor, refused_edit, set_key
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.calls import ListOperation
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import did_you_mean, normalize_email, normalize_name


class ProbeRun:
    """One probe run. Raises LmsconfError, before anything is created, if a subject does not exist.

    users     the e-mails of people who may be changed; a second one is only added to the scratch group
    content   the name of the content that may be assigned; None: none
    accounts  whether the project creates people, so that scratch accounts may be created
    zone      the IANA name of the project's time zone; None: it has none
    settle    seconds until a created object must be visible
    kept      what the people had, for the next probe if this one is killed
    tell      receives progress messages
    """

    def __init__(
        self,
        client: TrialClient,
        *,
        users: Sequence[str],
        content: str | None,
        accounts: bool,
        now: datetime,
        zone: str | None,
        settle: float,
        kept: KeptPeople,
        tell: Callable[[str], None],
    ) -> None:
        self._client, self._users, self._content = client, users, content
        self._accounts, self._now, self._zone, self._kept, self._tell = accounts, now, zone, kept, tell
        self._scratch = ScratchObjects(client, secrets.token_hex(3), settle, accounts=accounts)
        self._created: list[str] = []
        self._people: list[PersonBackup] = []
        self._undone: list[str] = []
        self._leftovers: list[str] | None = None
        self._group: str | None = None

    def run(self) -> ProbeResult:
        """Run all lessons. In every case, what it created is deleted, or reported if that fails."""
        people = self._learn_pages()
        self._named = [_id_of_one("person", user, USERS, people, "email", normalize_email) for user in self._users]
        if self._content is not None:
            contents = self._client.reader.rows(CATALOG).rows
            self._content = _id_of_one("content", self._content, CATALOG, contents, "name", normalize_name)
        try:
            self._clean_up_after_killed_probe()
            self._lessons()
            remaining = self._clean_up()
        except BaseException:
            self._clean_up_after_failure()
            raise
        return ProbeResult(
            lessons=tuple(self._client.lessons.values()),
            leftovers=tuple(self._leftovers or ()),
            remaining=tuple(remaining),
            undone=tuple(self._undone),
        )

    def _learn_pages(self) -> Sequence[Row]:
        """Run first, because every listing is read in pages. Needs no scratch object. Return the people."""
        requested = max(MOST, self._client.spec.integer_behaviour(PAGE_SIZE))
        most = common_page_size(measure_page_sizes(self._client.reader, requested))
        self._client.conclude(
            PAGE_SIZE,
            (most is None, None, "no listing is longer than a page"),
            (True, most, f"of {requested} that were asked for"),
        )
        people = self._client.reader.rows(USERS)
        counted = f"{people.total} people are counted, and {len(people.rows)} are listed"
        self._client.conclude(
            MATCH_COUNT,
            (people.total is None, None, "the listing of users has no count"),
            (len(people.rows) < (people.total or 0), "all", counted),
            (True, "listed", counted),
        )
        return people.rows

    def _lessons(self) -> None:
        """Use an empty group first, so that assignments to it are visible to no one; then add the person."""
        self._people = [person for one in self._named if (person := self._remember(one))]
        self._keep()
        of_scratch = self._client, self._scratch
        self._client.learn((RENAME, *TARGET_KEYS, *LIST_KEYS), self._create_group)
        if (group := self._group) is not None:
            self._learn("groups are renamed", (RENAME,), partial(probe_rename_key, *of_scratch, group))
            if self._content is None:
                self._client.record_undetermined(TARGET_KEYS, "no content was named; pass --content NAME")
            else:
                on_group = AssignmentLessons(*of_scratch, self._content, group, self._now, self._zone)
                self._learn("content is assigned, to a group without members", TARGET_KEYS, on_group.probe_keys)
        self._learn("custom fields change", FIELD_KEYS, partial(probe_field_keys, *of_scratch))
        # The fields of the previous lesson would use up the places of those that are to be answered.
        self._scratch.delete_created(SMART_GROUPS, CUSTOM_FIELDS)
        self._client.learn(PERSON_KEYS, self._learn_people)
        people = [*self._created[-2:], *self._named]
        if not people:
            self._client.record_undetermined(LIST_KEYS, "no person was named; pass --user EMAIL")
        elif group is not None:
            who = partial(probe_member_keys, people=people, managers=self._managers(), accounts=self._created)
            self._learn("people are added to a group", LIST_KEYS, partial(who, *of_scratch, {"groupId": group}))

    def _learn(self, what: str, keys: Sequence[str], lesson: Callable[[], None]) -> None:
        """Tell what is learnt, and run the lesson on these keys."""
        self._tell(f"Learning how {what}.")
        self._client.learn(keys, lesson)

    def _learn_people(self) -> None:
        """Probe creating and changing people: on a scratch account, or else on the named person.

        Raises Undetermined if there is neither.
        """
        self._client.learn(ACCOUNT_KEYS, self._create_accounts)
        account = self._remember(self._created[-1]) if self._created else None
        subject = required(
            account or next((one for one in self._people if one.id == self._named[0]), None),
            "the service does not show single people, so nothing could be restored"
            if self._named
            else "no person was named; pass --user EMAIL",
        )
        on_person = PersonLessons(
            self._client,
            self._scratch,
            subject,
            self._now,
            scratch_account=account is not None,
            keep=self._keep,
        )
        self._learn("people are changed", (DATE,), on_person.probe_archive_date)
        self._client.learn((METADATA_MODE,), on_person.probe_metadata_mode)
        self._client.learn(ANSWER_KEYS, on_person.probe_answers)

    def _create_accounts(self) -> None:
        """Probe creating people, if that is allowed; keep the last accounts for other lessons."""
        required(self._accounts, "the project file does not allow creating people, so no account is created")
        required(USERS not in self._scratch.left, reason_of_leftover(USERS))
        self._tell("Learning how people are created.")
        AccountLessons(self._client, self._scratch, self._created).probe_keys()

    def _managers(self) -> Managers:
        """Who is tried as manager of the scratch group: scratch accounts, which may get the right, or the people."""
        accounts = filter(None, map(self._remember, reversed(self._created[-2:])))
        able = {person.id: any(person.rights.values()) for person in self._people}
        return {one.id: any(one.rights.values()) for one in accounts} or {id: able.get(id) for id in self._named}

    def _remember(self, person: str) -> PersonBackup | None:
        """Back up a person; None if the service does not show single people."""
        with suppress(Rejected):
            return PersonBackup.take(self._client, person)
        return None

    def _create_group(self) -> None:
        """Create the scratch group, which most lessons need. Raises Undetermined, also if an earlier one stays."""
        self._group = str(self._scratch.create(MANUAL_GROUPS, {})["groupId"])

    def _keep(self) -> None:
        self._kept.save(self._people, {**self._client.spec.overrides, **self._client.along})

    def _clean_up_after_killed_probe(self) -> None:
        """Delete what earlier probes left, and restore their people. Raises LmsconfError if that fails."""
        kept, self._client.along = self._kept.load()
        self._people = [state for person in kept if (state := person.of_killed_probe(self._client, self._now))]
        for person in self._people:
            self._tell(f"An earlier probe was killed. What it changed of {person.email} is restored.")
        self._leftovers, _ = self._sweep()
        if changed := self._restore():
            raise LmsconfError(
                f"left by an earlier probe: {'; '.join(changed)}",
                hint=f"Put it back by hand, then delete {self._kept.file}.",
                code="probe/not-restored",
            )
        self._kept.discard()
        self._client.along, self._people = {}, []

    def _clean_up(self) -> list[str]:
        """Delete all scratch objects and restore the people; return what is left behind."""
        (_, remaining), changed = self._sweep(), self._restore()
        if self._people and not changed:
            self._kept.discard()
        return [*remaining, *changed]

    def _sweep(self) -> tuple[list[str], list[str]]:
        """Delete all scratch objects; return those found, and those that could not be deleted.

        The first sweep covers the assignments of the whole catalog; later ones only those of the named content.
        """
        named = [self._content] if self._content else []
        existing, remaining = self._scratch.delete_leftovers(None if self._leftovers is None else named)
        # An answered field may be in use.
        cleared = [person.clear_scratch_answers(self._client) for person in self._people] if remaining else []
        if any(cleared):
            _, remaining = self._scratch.delete_leftovers(named)
        return existing, remaining

    def _restore(self) -> list[str]:
        """Restore the people; return what still differs."""
        for person in self._people:
            self._undone += person.restore(self._client)
        return [line for person in self._people for line in person.differences(self._client)]

    def _clean_up_after_failure(self) -> None:
        """Clean up as far as the service still responds. The error that led here is reported by the caller."""
        self._tell("Cleaning up.")
        try:
            remaining = self._clean_up()
        except LmsconfError as error:
            remaining = [error.message]
        for line in remaining:
            self._tell(f"Left behind: {line}")
        if remaining:
            self._tell("Run lmsconf doctor --probe again: it cleans up first.")


def _id_of_one(
    noun: str, asked: str, listing: ListOperation, rows: Sequence[Row], key: str, normal: Callable[[str], str]
) -> str:
    """The id of the one row with that name, or that id. key: of its name. normal: the form of names to compare."""
    wanted, names = normal(asked), {str(row[listing.id]): str(row.get(key) or "") for row in rows}
    ids = [id for id, name in names.items() if normal(name) == wanted] or [id for id in names if id == asked]
    if len(ids) != 1:
        there = f"several match: {', '.join(sorted(ids))}" if ids else f"there is no such {noun}"
        another = f"Name another {noun}{'' if listing is USERS else ', or its id'}."
        hint = another if ids else did_you_mean(asked, names.values()) or another
        raise LmsconfError(
            f"--{'user' if listing is USERS else 'content'} {asked}: {there}", hint=hint, code="probe/no-subject"
        )
    return ids[0]


_KEY: Final = "dialect"
_NOT_WRITTEN: Final = "probe/not-written"


def set_dialect_keys(text: str, dialect: Mapping[str, Value], workspace: str) -> str:
    """Return the project file with these keys: at the workspace if it declares the key, otherwise for all workspaces.

    Raises LmsconfError for a layout that cannot be edited safely.
    """
    if not isinstance(_parsed(text), dict):
        raise LmsconfError(
            "the project file is not a single mapping", hint="Fix it first: lmsconf validate", code=_NOT_WRITTEN
        )
    end = "\r\n" if "\r\n" in text else "\n"
    page = YamlEditor("", (text if text.endswith("\n") else text + end).encode())
    (root,) = page.roots
    try:
        rest: dict[str, Json] = {
            key: value for key, value in dialect.items() if not _set_key(root, key, value, workspace)
        }
        edited, wanted = page.edited_bytes().decode(), members(root.value())
        if rest:
            indent = " " * (root.parts[0][0].where.column - 1 if root.parts else 0)
            edited += "".join(f"{indent}{line}{end}" for line in (f"{_KEY}:", *format_keys(rest, "  ")))
            wanted = {**wanted, _KEY: rest}
        if _parsed(edited) != wanted:
            raise refused_edit("the meaning of the file would change", root.where)
    except ProblemsFound as refused:
        hint = "\n".join(["Add this to it:", f"{_KEY}:", *format_keys(dialect, "  ")])
        raise LmsconfError("the project file cannot be edited safely", hint=hint, code=_NOT_WRITTEN) from refused
    return edited


def _set_key(root: Node, key: str, value: Value, workspace: str) -> bool:
    """Set a key in the section of the workspace, if it is there, or in that for all; False if there is none.

    Raises ProblemsFound.
    """
    own: Node | None = root
    for step in ("workspaces", workspace, _KEY):
        own = own and own.get(step)
    section = own if own is not None and own.get(key) is not None else root.get(_KEY)
    if section is not None and section.kind != "mapping":
        raise refused_edit("this is not a mapping", section.where)
    if section is not None:
        set_key(section, key, value)
    return section is not None


def _parsed(text: str) -> Json:
    """The parsed value of the text; None if it has problems."""
    reading = read_yaml("", text)
    return None if reading.problems or len(reading.documents) != 1 else reading.documents[0].value
