"""What the people of a probe had before it, kept on disk while it runs: if it is killed, the next one restores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from lmsconf.api.spec.assumed_keys import Value
from lmsconf.doctor.probe.person_backup import PersonBackup
from lmsconf.errors import LmsconfError
from lmsconf.kinds.shared.answer_rows import AnswerRow
from lmsconf.model.canonical_json import sha256
from lmsconf.support.folders import read_own_file, write_own_file

_FORMAT: Final = "lmsconf.probe-people/1"


class KeptPeople(Struct, frozen=True):
    """A file that is there while a probe runs on a workspace, and after one that was killed. None: nothing is kept.

    It is not in the project, where a branch could add one that gives somebody a right.
    """

    file: Path | None

    @classmethod
    def of_workspace(cls, folder: Path | None, root: Path, url: str) -> KeptPeople:
        """Return the file for a workspace. folder: the user's state folder. root: the project's, for embedded ones."""
        place = url if "://" in url else f"{root.resolve()} {url}"
        return cls(None if folder is None else folder / f"probe-{sha256(place)[:16]}.json")

    def load(self) -> tuple[list[PersonBackup], dict[str, Value]]:
        """Return the people of a probe that was killed, and the dialect as far as it knew it. Raises LmsconfError."""
        content = None if self.file is None else read_own_file(self.file)
        if content is None:
            return [], {}
        try:
            document = json.loads(content)
            if document["format"] != _FORMAT:
                raise ValueError(document["format"])
            return [_person(row) for row in document["people"]], dict(document["words"])
        except (ValueError, TypeError, KeyError) as error:
            hint = "It held what people had before a probe that was killed. Delete it if they are as they should be."
            raise LmsconfError(f"{self.file} is damaged", hint=hint) from error

    def save(self, people: Sequence[PersonBackup], words: Mapping[str, Value]) -> None:
        """Replace what is kept. Raises LmsconfError."""
        if self.file is not None and people:
            document = {"format": _FORMAT, "words": dict(words), "people": [_row(person) for person in people]}
            write_own_file(self.file, json.dumps(document, indent=2) + "\n")

    def discard(self) -> None:
        """Delete the file: the people are as before."""
        if self.file is not None:
            with suppress(FileNotFoundError):
                self.file.unlink()


def _row(person: PersonBackup) -> dict[str, object]:
    answers = None if person.answers is None else [(one.field, sorted(one.choices), one.text) for one in person.answers]
    kept = ("id", "email", "archived", "rights", "date", "metadata")
    return {**{name: getattr(person, name) for name in kept}, "answers": answers}


def _person(row: Mapping[str, Any]) -> PersonBackup:
    """Return a kept person, without the fields of the workspace."""
    given = row["answers"]
    answers = None if given is None else tuple(AnswerRow(field, frozenset(ids), text) for field, ids, text in given)
    return PersonBackup(**{**row, "answers": answers, "fields": ()})
