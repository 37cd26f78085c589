"""Shared code of all documents: rendering, strict parsing, seals, and structs ⇄ JSON.

Most documents have one list item per line, so that line-based diffs work. A plan file is canonical JSON instead: its
seal is the SHA-256 of the file with an empty seal (and the escapes undone), which anyone can check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar, cast

import msgspec

from lmsconf import __version__
from lmsconf.errors import LmsconfError, StalePlan, UsageError, refuse_if
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, canonical_json, sha256
from lmsconf.model.control_characters import UNPRINTABLE
from lmsconf.model.plan import Change, UnmanagedResources
from lmsconf.support.strict_json import parse_json

Value = TypeVar("Value")

TOOL: Json = {"name": "lmsconf", "version": __version__}
"""The tool that wrote a document."""

# Outside of JSON strings these characters do not occur, so each can be escaped without changing the value.
_INVISIBLE: Final = re.compile(rf"[{UNPRINTABLE}](?<![\n\r\t])")
# CI runners interpret `##[` and `##vso[` anywhere in a line as commands.
_COMMAND: Final = re.compile(r"#(?=#\w*\[)")
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def escape_in_strings(text: str) -> str:
    """Return equivalent JSON text with invisible characters and CI commands escaped."""
    if not (text.isascii() and text.isprintable()):  # nearly every line is, and much faster
        text = _INVISIBLE.sub(lambda match: json.dumps(match[0])[1:-1], text)
    return _COMMAND.sub(r"\\u0023", text) if "##" in text else text


def render_json(document: Mapping[str, Json | Iterator[Json]]) -> str:
    """Return the document as JSON, one line per key and per item of a top-level list."""
    return "".join(json_pieces(document))


def json_pieces(document: Mapping[str, Json | Iterator[Json]]) -> Iterator[str]:
    """Yield the text of `render_json` in pieces; an iterator is a list whose items are made as they are written."""
    before = "{\n"
    for key, value in document.items():
        yield f"{before}  {_compact(key)}: "
        yield from _value(value)
        before = ",\n"
    yield "\n}\n" if document else "{\n\n}\n"


def render_canonical_json(document: Mapping[str, Json]) -> str:
    """Return the document as canonical JSON, the input of digests and seals, with `escape_in_strings` applied."""
    return escape_in_strings(canonical_json(document).decode("utf-8", "surrogatepass"))


def _value(value: Json | Iterator[Json]) -> Iterator[str]:
    """Yield the text of a value: a list in a line per item, anything else in one."""
    if not isinstance(value, list | tuple | Iterator):
        yield _compact(value)
        return
    before = "[\n"
    for item in value:
        yield f"{before}    {_compact(item)}"
        before = ",\n"
    yield "[]" if before == "[\n" else "\n  ]"


def _compact(value: Json) -> str:
    return escape_in_strings(_ENCODER.encode(value))


def parse_document(text: str) -> dict[str, Json]:
    """Parse a document.

    Raises StalePlan for text that is truncated, not JSON, or has a duplicate key; LmsconfError if it has no format.
    """
    try:
        document = parse_json(text, surrogates=True)
    except ValueError as error:
        raise StalePlan(
            f"the file is not a complete document of lmsconf: {error}",
            hint="It is truncated or was edited. Create it again.",
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("format"), str):
        raise LmsconfError("the file is not a document of lmsconf: it has no format", hint=_MAKE)
    return document


_MAKE = "Create one with: lmsconf plan --out FILE"


def to_json(value: object) -> Json:
    """Return a struct, or values of structs, as JSON: the keys in the order of the fields, an address as its text.

    A list of it may be a tuple: large plans are not copied once more.
    """
    return cast("Json", msgspec.to_builtins(value, str_keys=True, enc_hook=_plain))


def object_json(value: msgspec.Struct) -> dict[str, Json]:
    """Return a struct as a JSON object."""
    return cast("dict[str, Json]", to_json(value))


def without_keys(value: Mapping[str, Json], *keys: str) -> dict[str, Json]:
    return {key: item for key, item in value.items() if key not in keys}


def _plain(value: object) -> object:
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"JSON cannot hold a {type(value).__name__}")


def from_json(value: Json, kind: type[Value], place: str = "") -> Value:
    """Return the value of a type that `to_json` wrote. Raises ValueError, with the place, for any other JSON."""
    try:
        return msgspec.convert(value, kind, str_keys=True, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        message, _, at = str(error).partition(" - at ")
        raise ValueError(f"{place}{at.strip('`').removeprefix('$')}: {message}") from error


def refuse_missing(rows: Json, written: Json, place: str) -> None:
    """Raise ValueError, with the place, for a row that lacks a key although its struct has a default.

    written: the rows as lmsconf writes them. Other keys may be there.
    """
    pairs = zip(cast("list[Mapping[str, Json]]", rows), cast("list[Mapping[str, Json]]", written), strict=True)
    for number, (row, whole) in enumerate(pairs):
        for key in whole:
            if key not in row:
                raise ValueError(f"{place}[{number}].{key} is missing")


def _decoded(kind: type, value: object) -> object:
    if kind is not Address:
        return value  # an object: the body of a call
    if not isinstance(value, str):
        raise ValueError("an address is missing")
    return Address.parse(value)


@contextmanager
def errors_of_file(name: str, text: str, takes: str) -> Iterator[None]:
    """Name the file in the errors of reading the document that it holds.

    takes: what the command takes, for the UsageError of a manifest given in place of it.
    """
    make = "Create one with: lmsconf snapshot FILE" if takes.startswith("--snapshot") else _MAKE
    if name.endswith((".yaml", ".yml")) and not text.lstrip().startswith("{"):
        kind = "the project file" if name.rpartition("/")[2] == "lmsconf.yaml" else "a manifest"
        raise UsageError(f"{name} is {kind}; {takes}", hint=make)
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        kind = "is empty" if not text.strip() else "is not a JSON document of lmsconf"
        raise StalePlan(f"{name} {kind}; {takes}", hint=make)
    try:
        yield
    except LmsconfError as error:
        error.message = f"{name}: {error.message}"
        raise


def verify_format(document: Mapping[str, Json], expected_format: str, hint: str = _MAKE) -> None:
    """Raise LmsconfError, naming the actual format, unless the document has the wanted one."""
    actual = document["format"]
    if actual != expected_format:
        raise LmsconfError(f"the file has the format {actual!r}, not {expected_format!r}", hint=hint)


def add_seal(document: Mapping[str, Json]) -> dict[str, Json]:
    """Return the document with its seal: the SHA-256 of its canonical JSON with an empty seal."""
    empty = {**document, "seal": ""}
    return {**empty, "seal": sha256(empty)}


def signature(document: Mapping[str, Json], key: bytes) -> str:
    """Return the hexadecimal HMAC-SHA256 of the canonical document with empty `hmac` and `seal`."""
    import hashlib
    import hmac  # few documents are signed

    return hmac.new(key, canonical_json({**document, "hmac": "", "seal": ""}), hashlib.sha256).hexdigest()


def verify_signature(document: Mapping[str, Json], key: bytes, what: str, hint: str) -> None:
    """Raise StalePlan unless the document was signed with the key; compares in constant time.

    what: what the document is called, such as `plan file`.
    """
    from hmac import compare_digest

    given = document.get("hmac")
    is_same = compare_digest(str(given).encode("utf-8", "surrogatepass"), signature(document, key).encode("ascii"))
    refuse_if(
        (not isinstance(given, str), f"the {what} is not signed, and there is a key to check it with", hint),
        (not is_same, f"the {what} was signed with another key, or changed after it was signed", hint),
        error=StalePlan,
    )


def file_changed_error() -> StalePlan:
    """Return the error for a file that was changed after lmsconf wrote it."""
    return StalePlan("the file was changed after lmsconf wrote it", hint="Create it again; it must not be edited.")


def read_back(
    document: Mapping[str, Json],
    read: Callable[[], Value],
    written: Callable[[Value], str],
    text: str,
    what: str,
    hint: str | None,
) -> Value:
    """Return the value of a sealed document. Raises StalePlan for another text, even if one byte differs.

    read: returns the value. written: the text of a value as lmsconf writes it. text: that of the document.
    what: what the file should contain.
    """
    if add_seal(document)["seal"] != document.get("seal"):
        raise file_changed_error()
    try:
        value = read()
        same = written(value) == text
    except (ValueError, RecursionError) as error:
        raise StalePlan(f"the file does not contain {what}: {error}", hint=hint) from error
    if not same:
        raise file_changed_error()
    return value


def json_at(value: Json | Mapping[str, Json], *path: str) -> Json:
    """Return the value under the keys of a path. Raises ValueError where one is missing."""
    for depth, key in enumerate(path, 1):
        if not isinstance(value, Mapping) or key not in value:
            raise ValueError(f"{'.'.join(path[:depth])} is missing")
        value = value[key]
    return cast("Json", value)


def value_at(value: Json | Mapping[str, Json], kind: type[Value], *path: str) -> Value:
    """Return the value of a type under the keys of a path. Raises ValueError where it is missing, or another one."""
    return from_json(json_at(value, *path), kind, ".".join(path))


def change_json(change: Change) -> dict[str, Json]:
    values = {key: value for key, value in object_json(change).items() if value or key not in ("replaced_by", "origin")}
    return {"address": values["address"], "kind": change.address.kind, "name": change.address.name, **values}


def unmanaged_json(groups: Iterable[UnmanagedResources]) -> list[Json]:
    """Return the undeclared resources of each kind, with their number, which counts those left alone too."""
    return [
        {"kind": group.kind, "count": len(group.addresses) + group.left_alone, **object_json(group)} for group in groups
    ]
