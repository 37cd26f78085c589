"""Schema findings → problems in the manifest's terms: what is wrong, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.manifest.validation import suggestions
from lmsconf.manifest.validation.gate import ESCAPES, forbidden_character
from lmsconf.manifest.validation.key_suggestions import suggest_choice
from lmsconf.manifest.validation.schema_finding import ProblemDraft, SchemaFinding, path_label
from lmsconf.manifest.validation.schema_query import (
    Schema,
    properties,
)
from lmsconf.manifest.validation.schema_samples import join_with_or, suggest_from_schema
from lmsconf.manifest.validation.type_messages import (
    describe_accepted,
    ending_if_optional,
    only_true_hint,
    union_problems,
    unknown_key_problem,
    wrong_type_problem,
)
from lmsconf.manifest.yaml.nodes import EntrySourceMap
from lmsconf.model.canonical_json import Json

_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def problems_from_finding(
    finding: SchemaFinding, places: EntrySourceMap, *, message_prefix: str | None, code_area: str, address: str | None
) -> Iterator[Problem]:
    """Convert a finding to problems.

    message_prefix: prefix of the message. code_area: first part of the code. address: of the resource, if it is known.
    """
    for fault in _WORDINGS[finding.keyword](finding, places):
        yield Problem(
            code=f"{code_area}/{fault.code}",
            message=f"{message_prefix}: {fault.message}" if message_prefix else fault.message,
            hint=fault.hint or suggest_from_schema(finding.schema),
            source=fault.where,
            address=address,
        )


def _unknown(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    known = properties(finding.schema)
    value = cast("dict[str, Json]", finding.value)
    for key in _strange(finding.value, finding.schema):
        yield unknown_key_problem(key, value[key], known, finding.path, places)


def _strange(value: Json, schema: Mapping[str, Json]) -> list[str]:
    known = properties(schema)
    return [key for key in cast("dict[str, Json]", value) if key not in known and not _patterned(key, schema)]


def _patterned(key: str, schema: Mapping[str, Json]) -> bool:
    # The only pattern of keys is a prefix: `x-`, for anchors.
    patterns = cast("Mapping[str, Json]", schema.get("patternProperties", {}))
    return any(key.startswith(pattern.removeprefix("^")) for pattern in patterns)


def _wrong_type(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    yield wrong_type_problem(finding, [finding.schema], places)


def _missing(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    known = properties(finding.schema)
    for key in cast("list[str]", finding.keyword_value):
        if key not in cast("dict[str, Json]", finding.value):
            inside = f" in {path_label(finding.path)}" if finding.path else ""
            about = cast("Mapping[str, Json]", known.get(key, {})).get("description")
            hint = f"Add {key}: {_lowercased(str(about))}" if about else f"Write {key}: …."
            yield ProblemDraft("missing", f"{key} is missing{inside}", hint, places.at(*finding.path))


def _lowercased(sentence: str) -> str:
    """Return a sentence as the rest of another; a name or an abbreviation at its start keeps its capitals."""
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() or sentence[1:2] == " " else sentence


def _choice(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    values = finding.keyword_value if isinstance(finding.keyword_value, list) else [finding.keyword_value]
    if finding.value is None or (isinstance(values[0], str) and not isinstance(finding.value, str)):
        yield wrong_type_problem(finding, [finding.schema], places)
        return
    known = [value if isinstance(value, str) else json.dumps(value) for value in values]
    value = finding.value
    given = json.dumps(shorten(value) if isinstance(value, str) else value, ensure_ascii=False)
    others = [branch for branch in finding.union_branches if branch is not finding.schema]
    near = suggest_choice(finding.value, known) if isinstance(finding.value, str) else None
    wanted = join_with_or(
        known if near else [*known, *(word for word in describe_accepted(others) if word not in known)]
    )
    yield ProblemDraft(
        "value",
        f"{path_label(finding.path)} must be {wanted}, and is {given}",
        near or _of_choice(finding, others),
        places.at(*finding.path),
    )


def _of_choice(finding: SchemaFinding, others: list[Schema]) -> str | None:
    if finding.keyword == "const" and finding.keyword_value is True and finding.path:
        return only_true_hint(finding.path[-1])
    if not isinstance(finding.value, str) or not others:
        return None
    forms = suggestions.accepted_spellings(finding.value, others)
    return (
        f"Write {join_with_or(forms)}." if forms else suggest_from_schema({"oneOf": cast(Json, finding.union_branches)})
    )


def _count(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    """A list with too few or too many items; one without any is empty."""
    items = cast("list[Json]", finding.value)
    if not items:
        yield from _empty(finding, places)
        return
    side = "at least" if finding.keyword == "minItems" else "at most"
    message = f"{path_label(finding.path)} needs {side} {finding.keyword_value} items, and has {len(items):,}"
    hint = finding.schema.get("description")
    yield ProblemDraft("value", message, str(hint) if hint else None, places.at(*finding.path))


def _empty(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    noun = {"minItems": "list", "minLength": "text", "minProperties": "mapping"}[finding.keyword]
    is_item = finding.path and isinstance(finding.path[-1], int)
    hint = "Fill it, or remove the item." if is_item else f"Fill it{ending_if_optional(finding)}"
    yield ProblemDraft("empty", f"{path_label(finding.path)} is an empty {noun}", hint, places.at(*finding.path))


def _long(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    length = len(str(finding.value))
    message = f"{path_label(finding.path)} may have {finding.keyword_value} characters, and has {length:,}"
    yield ProblemDraft("too-long", message, "Write a shorter one.", places.at(*finding.path))


def _no_name(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    name, where = path_label(finding.path), places.at(*finding.path)
    if finding.keyword_value is True:
        yield _unfit(finding.value, name, where)
    else:
        held = forbidden_character(finding.value, escapes=False)
        message = f"{name} holds the control character U+{ord(held or ' '):04X}"
        yield ProblemDraft("character", message, "Remove it.", where)


def _no_key(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    key, schema = str(finding.value), finding.schema
    label, where = f"a key of {path_label(finding.path)}", places.key(*finding.path, key)
    if "enum" in schema:
        known = dict.fromkeys(cast("list[str]", schema["enum"]))
        yield unknown_key_problem(key, {}, known, finding.path, places)
    elif "pattern" in schema:
        given = json.dumps(shorten(key), ensure_ascii=False)
        yield ProblemDraft("value", f"{label} cannot be {given}", cast("str | None", schema.get("description")), where)
    else:
        yield _unfit(key, label, where)


def _unfit(value: Json, name: str, where: SourceLocation) -> ProblemDraft:
    """A text that cannot be a name, since it has a tab or a line break."""
    words = str(value).split()
    held = "a tab" if "\t" in str(value) else "a line break"
    one_line = json.dumps(shorten(" ".join(words)), ensure_ascii=False)
    exact = json.dumps(shorten(str(value)), ensure_ascii=False)
    hint = f"Write it in one line: {one_line}." if words else "Write the name, or remove it."
    hint += f" If the live name has it, write {exact} in YAML." if len(exact) < 100 else ""
    return ProblemDraft("character", f"{name} holds {held}", hint, where)


def _pattern(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    value = finding.value
    given = json.dumps(shorten(value) if isinstance(value, str) else value, ensure_ascii=False)
    hint = (
        suggestions.suggest_date(finding.schema, str(finding.value))
        or _several(finding)
        or _email_inside(finding)
        or finding.schema.get("description")
    )
    message = f"{path_label(finding.path)} cannot be {given}"
    yield ProblemDraft("value", message, str(hint) if hint else None, places.at(*finding.path))


def _several(finding: SchemaFinding) -> str | None:
    """Return the hint for an item that contains several values, each of which is valid."""
    items = re.split(r"[\s;,]+", str(finding.value).strip(";, "))
    fits = re.compile(str(finding.schema["pattern"]))
    if len(items) == 1 or not finding.path or not isinstance(finding.path[-1], int) or not all(map(fits.search, items)):
        return None
    return f"Put a comma between them: {', '.join(items)}."


def _email_inside(finding: SchemaFinding) -> str | None:
    """Return the hint for a text with one e-mail and more in it, such as a name or an invisible character."""
    if "@" not in str(finding.schema["pattern"]):
        return None
    emails = _EMAIL.findall(shorten(str(finding.value)))
    return f"Write {emails[0]} alone." if len(emails) == 1 else None


def _bound(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    side = "at least" if finding.keyword == "minimum" else "at most"
    message = f"{path_label(finding.path)} must be {side} {finding.keyword_value}, and is {finding.value}"
    hint = finding.schema.get("description")
    yield ProblemDraft("value", message, str(hint) if hint else None, places.at(*finding.path))


_WORDINGS: Final[dict[str, Callable[[SchemaFinding, EntrySourceMap], Iterator[ProblemDraft]]]] = {
    "additionalProperties": _unknown,
    "type": _wrong_type,
    "union": union_problems,
    "required": _missing,
    "enum": _choice,
    "const": _choice,
    "minItems": _count,
    "maxItems": _count,
    "minLength": _empty,
    "minProperties": _empty,
    "maxLength": _long,
    "pattern": _pattern,
    ESCAPES: _no_name,
    "propertyNames": _no_key,
    "minimum": _bound,
    "maximum": _bound,
}
WORDED: Final = frozenset(_WORDINGS)
"""The keywords that a schema may reject a value by; each has a message."""
