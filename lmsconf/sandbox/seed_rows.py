"""Read the entries of a seed: YAML with every scalar as text, typed values of a key, rows of people and contents."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias, cast

import yaml

from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation
from lmsconf.sandbox.handlers.content import OCCASIONS
from lmsconf.sandbox.handlers.users import ADDRESS_KEYS, FIRST_LANGUAGE, KEYS, validate_language
from lmsconf.sandbox.request_context import APPLICATIONS, Json, default_applications, encode_applications, parse_time
from lmsconf.sandbox.store import Value

try:
    from yaml import CBaseLoader as _Base
except ImportError:  # built without libyaml: the same values, ten times slower
    from yaml import BaseLoader as _Base  # type: ignore[assignment]  # where libyaml is missing

_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml from 0.2.6 on says; before, Python's recursion ends."""


def read_yaml(path: Path, file_kind: str) -> object:
    """Parse the one document of a file; None for an empty file. `file_kind`: seed, faults.

    Raises ProblemsFound if it is not YAML, LmsconfError if it cannot be read.
    """
    return _parse_yaml(_read_text(path, file_kind), path, file_kind)


def read_json_or_yaml(path: Path, file_kind: str) -> object:
    """Parse a JSON object, with its types, or YAML as `read_yaml` does; raises like it."""
    text = _read_text(path, file_kind)
    if text.startswith("{"):
        with suppress(ValueError, RecursionError):
            return cast(object, json.loads(text))
    return _parse_yaml(text, path, file_kind)


def _read_text(path: Path, file_kind: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        hint = f"Check the path of the {file_kind}"
        raise LmsconfError(f"{path}: cannot be read: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise ProblemsFound([file_problem(file_kind, str(path), "it is not UTF-8")]) from error


def _parse_yaml(text: str, path: Path, file_kind: str) -> object:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))  # texts only
    except yaml.MarkedYAMLError as error:
        if error.problem == _TOO_DEEP:
            raise ProblemsFound([_deep_problem(file_kind, path)]) from error
        mark = error.problem_mark
        place = SourceLocation(str(path), mark.line + 1, mark.column + 1) if mark else SourceLocation(str(path))
        raise ProblemsFound([Problem(code=f"{file_kind}/yaml", message=str(error.problem), source=place)]) from error
    except yaml.YAMLError as error:
        raise ProblemsFound([file_problem(file_kind, str(path), str(error))]) from error
    except RecursionError as error:
        raise ProblemsFound([_deep_problem(file_kind, path)]) from error
    if len(documents) > 1:
        raise ProblemsFound([file_problem(file_kind, str(path), "it contains more than one document")])
    return documents[0] if documents else None


def _deep_problem(file_kind: str, path: Path) -> Problem:
    return file_problem(file_kind, str(path), "its lists and mappings are nested too deep")


def file_problem(file_kind: str, file: str, message: str) -> Problem:
    """A problem in a file of that sort."""
    hint = f"Correct the {file_kind} and run again."
    return Problem(code=f"{file_kind}/invalid", message=message, source=SourceLocation(file), hint=hint)


class _Loader(_Base):
    """PyYAML's loader of plain texts, which takes the last of two equal keys, made to refuse them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        keys = [key.value for key, _ in node.value]
        if not all(isinstance(key, str) for key in keys):
            raise yaml.MarkedYAMLError(problem="a key is not text", problem_mark=node.start_mark)
        if len(set(keys)) < len(keys):
            raise yaml.MarkedYAMLError(problem="a key is a duplicate", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep=deep)


Entry: TypeAlias = "Mapping[str, object]"
_TRUTH: Final = {"true": True, "false": False, "True": True, "False": False}


class InvalidSeedValue(Exception):
    """An invalid value in one entry of a seed."""


def read_text(entry: Entry, key: str, default: str | None = None) -> str:
    """A text; required without a default."""
    value = entry.get(key, default)
    if isinstance(value, str):
        return value
    raise InvalidSeedValue(f"{key} is missing" if value is None else f"{key} is not text")


def read_flag(entry: Entry, key: str) -> bool:
    """A boolean; False if missing."""
    value = str(entry.get(key, False))
    if value not in _TRUTH:
        raise InvalidSeedValue(f"{key} is neither true nor false")
    return _TRUTH[value]


def read_whole_number(entry: Entry, key: str) -> int:
    """A whole number; 0 if missing."""
    value = str(entry.get(key, 0))
    if not (value.isascii() and value.isdigit()):
        raise InvalidSeedValue(f"{key} is not a whole number")
    return int(value)


def read_instant(entry: Entry, key: str) -> int | None:
    """An instant in epoch milliseconds; None if missing."""
    try:
        return parse_time(read_text(entry, key), "iso") if key in entry else None
    except ValueError as error:
        raise InvalidSeedValue(f"{key}: {error}") from error


def read_list(entry: Entry, key: str) -> list[object]:
    """A list of anything; empty if missing."""
    value = entry.get(key) or []
    if not isinstance(value, list):
        raise InvalidSeedValue(f"{key} is not a list")
    return value


def read_texts(entry: Entry, key: str) -> list[str]:
    """A list of texts; empty if missing."""
    values = [item for item in read_list(entry, key) if isinstance(item, str)]
    if len(values) < len(read_list(entry, key)):
        raise InvalidSeedValue(f"{key} contains an item that is not text")
    return values


def read_mappings(entry: Entry, key: str) -> list[Entry]:
    """A list of mappings; empty if missing."""
    values: list[Entry] = [item for item in read_list(entry, key) if isinstance(item, dict)]
    if len(values) < len(read_list(entry, key)):
        raise InvalidSeedValue(f"{key} contains an item that is not a mapping")
    return values


def read_mapping(entry: Entry, key: str) -> Entry:
    """A mapping; empty if missing."""
    value = entry.get(key) or {}
    if not isinstance(value, dict):
        raise InvalidSeedValue(f"{key} is not a mapping")
    return value


def refuse_unknown(part: str, entry: Entry, known: Collection[str]) -> None:
    """Raise InvalidSeedValue if a part of an entry has a key that is not known."""
    if unknown := sorted(entry.keys() - set(known)):
        raise InvalidSeedValue(f"{part}: unknown key {unknown[0]!r}; there are {', '.join(known)}")


def reserve_id(id: str, taken: set[str]) -> str:
    """Return an id, and add it to those that are taken. Raises InvalidSeedValue if it is one of them, or empty."""
    if not id or id in taken:
        raise InvalidSeedValue(f"id {id!r} is a duplicate" if id else "id is empty")
    taken.add(id)
    return id


PERSON_COLUMNS: Final = (
    "people (id, email, first_name, last_name, admin, manager, archived_at, created_at, custom_archive_at, language, "
    "metadata, applications)"
)
CONTENT_COLUMNS: Final = "contents (id, type, name, description, price, updated_at, details)"
INSERT_PERSON: Final = f"INSERT INTO {PERSON_COLUMNS} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  names of ours
INSERT_CONTENT: Final = f"INSERT INTO {CONTENT_COLUMNS} VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  names of ours
_FIRST_APPLICATIONS: Final = {
    (admin, manager): encode_applications(default_applications(admin=admin, manager=manager))
    for admin in (True, False)
    for manager in (True, False)
}
_NO_METADATA: Final = "{}"
_SWITCHES: Final = ("companyPayment", "disablePayment")


def person_row(id: str, email: str, entry: Entry, now: int) -> Sequence[Value]:
    """The row of the table `people`. Raises InvalidSeedValue or Refusal for an invalid entry."""
    admin, manager, archived = read_flag(entry, "admin"), read_flag(entry, "manager"), read_flag(entry, "archived")
    date = read_instant(entry, "custom_archive_date")
    if date is not None and (admin or manager):
        raise InvalidSeedValue("an admin or manager cannot have a custom archive date")
    return (
        *(id, email, read_text(entry, "first_name", ""), read_text(entry, "last_name", ""), admin, manager),
        *(now if archived else None, now, date),
        validate_language(read_text(entry, "language", FIRST_LANGUAGE)),
        json.dumps(_metadata(entry)) if "metadata" in entry else _NO_METADATA,
        _applications(entry) if "applications" in entry else _FIRST_APPLICATIONS[admin, manager],
    )


def read_order_details(entry: Entry) -> dict[str, Json]:
    """The order details of a person, with the API's names. Raises InvalidSeedValue."""
    details = read_mapping(entry, "order_details")
    known = {_snake(key): key for key in (*KEYS, "disablePayment")}
    refuse_unknown("order_details", details, known)
    return {known[key]: _detail(details, key, known[key]) for key in details}


def content_row(id: str, entry: Entry, programs: Sequence[str], now: int) -> Sequence[Value]:
    """The row of the table `contents`."""
    updated = read_instant(entry, "updated")
    details: dict[str, Json] = {"partOfPrograms": programs, "categories": read_texts(entry, "categories")}
    details["metadata"] = _metadata(entry)
    if "link" in entry:
        details["link"] = read_text(entry, "link")
    if "image" in entry:
        details["backgroundImageUrl"] = read_text(entry, "image")
    if "occasions" in entry:
        details[OCCASIONS] = [
            _occasion(f"{id}-{number}", one) for number, one in enumerate(read_mappings(entry, "occasions"), 1)
        ]
    return (
        *(id, read_text(entry, "type", "COURSE"), read_text(entry, "name"), read_text(entry, "description", "")),
        *(read_whole_number(entry, "price"), now if updated is None else updated, json.dumps(details)),
    )


def _detail(details: Entry, key: str, name: str) -> Json:
    """One of the order details: a boolean, an address, or a text."""
    if name in _SWITCHES:
        return read_flag(details, key)
    if name != "address":
        return read_text(details, key)
    address = read_mapping(details, key)
    refuse_unknown("address", address, ADDRESS_KEYS)
    return {part: read_text(address, part) for part in address}


def _occasion(id: str, entry: Entry) -> Mapping[str, Json]:
    """One date of a meetup, with the number of attendees."""
    refuse_unknown("occasions", entry, ("starts", "attending"))
    starts = read_instant(entry, "starts")
    if starts is None:
        raise InvalidSeedValue("occasions: starts is missing")
    return {"occasionId": id, "startTime": starts, "attendanceCount": read_whole_number(entry, "attending")}


def _metadata(entry: Entry) -> dict[str, str]:
    metadata = read_mapping(entry, "metadata")
    return {key: read_text(metadata, key) for key in metadata}


def _applications(entry: Entry) -> str:
    named = read_texts(entry, "applications")
    if unknown := sorted(set(named) - set(APPLICATIONS)):
        raise InvalidSeedValue(f"application {unknown[0]!r} is none of {', '.join(APPLICATIONS)}")
    return encode_applications(named)


def _snake(name: str) -> str:
    """The seed's name of an API field: `companyName` → `company_name`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
