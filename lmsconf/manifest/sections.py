"""The sections of a manifest: their kinds, compiled schemas, and lists of entries."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import cast

from msgspec import Struct

from lmsconf.manifest.expand.people import marked_paths
from lmsconf.manifest.expand.sets import SET_SECTIONS
from lmsconf.manifest.schemas import (
    ABSENT,
    TESTS,
    absent_entry_schema,
    entry_schema,
    sections_schema,
    set_schemas,
    sheet_entry_schema,
    test_entry_schema,
)
from lmsconf.manifest.validation.check import SchemaValidator
from lmsconf.manifest.yaml.nodes import KeyPath, Map, Seq, store_marks
from lmsconf.manifest.yaml.read_result import Document
from lmsconf.model.canonical_json import Json
from lmsconf.planner.kind import Kind


class Section(Struct, frozen=True):
    """How the entries of one section are checked: their kind, the schema of an entry.

    people, windows: the paths of lists of people, and of references to windows. sheet: the schema of an entry that
    reads entries from a file.
    """

    kind: Kind
    path: KeyPath
    shape: SchemaValidator
    people: tuple[KeyPath, ...] = ()
    windows: tuple[KeyPath, ...] = ()
    sheet: SchemaValidator | None = None
    is_absent: bool = False
    is_test: bool = False

    @property
    def is_declared(self) -> bool:
        """Whether its entries declare resources."""
        return not (self.is_absent or self.is_test)

    @property
    def name(self) -> str:
        return ".".join(str(step) for step in self.path)


@cache
def sections_of_kind(of: Hashable) -> tuple[Section, ...]:
    """Return the sections of a kind: declared, absent, and tests. Cached, since compiling a schema is slow."""
    kind = cast(Kind, of)
    sheet = sheet_entry_schema(kind)
    declared = Section(
        kind,
        (kind.section,),
        SchemaValidator(entry_schema(kind)),
        marked_paths(kind.schema, "x-people"),
        marked_paths(kind.schema, "x-window"),
        None if sheet is None else SchemaValidator(sheet),
    )
    absent = Section(kind, (ABSENT, kind.section), SchemaValidator(absent_entry_schema(kind)), is_absent=True)
    tests = test_entry_schema(kind)
    if tests is None:
        return declared, absent
    return declared, absent, Section(kind, (TESTS,), SchemaValidator(tests), is_test=True)


@cache
def sections_validator(kinds: tuple[Hashable, ...]) -> SchemaValidator:
    """Return the compiled schema of a manifest without its entries. Cached, since compiling a schema is slow."""
    return SchemaValidator(sections_schema(_by_name(kinds)))


@cache
def set_validators(kinds: tuple[Hashable, ...]) -> Mapping[str, SchemaValidator]:
    """Map each section of sets to the compiled schema of one set. Cached for the same reason."""
    schemas = set_schemas(_by_name(kinds))
    return {section: SchemaValidator(schemas.get(section, {})) for section in SET_SECTIONS}


def _by_name(kinds: tuple[Hashable, ...]) -> dict[str, Kind]:
    return {kind.name: kind for kind in cast("tuple[Kind, ...]", kinds)}


def has_sections(document: Document) -> bool:
    """Whether a document has a section of entries.

    If no document had any, every owned resource would be planned for deletion.
    """
    value = document.value
    return not isinstance(value, Map) or any(not key.startswith("x-") and key not in SET_SECTIONS for key in value)


def entry_lists(value: Map) -> Iterator[tuple[KeyPath, Seq]]:
    """Yield the lists of entries in one document, with the keys that lead to each."""
    for key, items in value.items():
        if isinstance(items, Seq):
            yield (key,), items
        elif key == ABSENT and isinstance(items, Map):
            yield from (((key, below), part) for below, part in items.items() if isinstance(part, Seq))


def entry_from_short_form(key: str, name: Json, items: Seq, at: int) -> Map:
    """Return the mapping that a plain string abbreviates."""
    body = Map(items.source)
    body[key] = name
    store_marks(body, [at, at])
    return body
