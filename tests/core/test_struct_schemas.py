"""The schemas of documents say what the structs are that the documents are made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.access import AccessRoute, ConditionResult, HeldContent, PersonContent, RouteSide
from lmsconf.model.blockers import Blocker
from lmsconf.model.calls import Call
from lmsconf.model.drift import FieldDrift, ManagedShare
from lmsconf.model.effects import AccessCounts, ContentEffects, Effects, GroupEffects
from lmsconf.model.fleet import FleetEntry
from lmsconf.model.forms import ExplainedKey
from lmsconf.model.outcomes import CallOutcome
from lmsconf.model.plan import (
    Change,
    FieldChange,
    GuardCount,
    GuardResult,
    NoLongerDeclared,
    Rehearsal,
    RenameCandidate,
    SettingChange,
    Undo,
    UnmanagedResources,
)
from lmsconf.model.recorded_run import ManifestsCommit, SnapshotDigest

SCHEMAS = Path(__file__).parent.parent.parent / "schemas"
Struct = type[msgspec.Struct]
COUNTS = AccessCounts.__struct_fields__

NAMED: dict[str, tuple[Struct, tuple[str, ...], tuple[str, ...]]] = {
    "where": (SourceLocation, (), ()),
    "problem": (Problem, (), ()),
    "change_problem": (Problem, (), ("source",)),
    "field": (FieldChange, (), ()),
    "undo": (Undo, (), ()),
    "change": (Change, ("kind", "name"), ()),
    "blocker": (Blocker, (), ("hint",)),
    "guard": (GuardResult, (), ()),
    "measure": (GuardCount, (), ()),
    "effects": (Effects, (), ("rows", "unknown")),
    "content_effects": (ContentEffects, COUNTS, ("counts",)),
    "group_effects": (GroupEffects, (), ("members",)),
    "unmanaged": (UnmanagedResources, ("count",), ()),
    "let_go": (NoLongerDeclared, (), ()),
    "setting_change": (SettingChange, (), ()),
    "rehearsal": (Rehearsal, (), ("done",)),
    "outcome": (CallOutcome, (), ("unsure",)),
    "held": (HeldContent, (), ()),
    "condition": (ConditionResult, (), ()),
    "side": (RouteSide, (), ()),
    "assignment": (AccessRoute, (), ()),
    "content": (PersonContent, (), ()),
    "coverage": (ManagedShare, ("percent",), ()),
    "candidate": (RenameCandidate, (), ("is_earlier_name",)),
    "commit": (ManifestsCommit, (), ()),
    "snapshot": (SnapshotDigest, (), ()),
    "entry": (FleetEntry, (), ()),
    "key": (ExplainedKey, (), ()),
    "drift_field": (FieldDrift, (), ()),
}
"""Name of a definition → the struct, keys that a document adds, and fields that it leaves out."""
OF_ONE: dict[tuple[str, str], Struct | None] = {
    ("drift", "field"): FieldDrift,
    ("history", "change"): None,
    ("plan", "call"): Call,
}


def may_be_nothing(kind: msgspec.inspect.Type) -> bool:
    """Whether a value of the type may be null: JSON of any type may."""
    is_body = isinstance(kind, msgspec.inspect.CustomType) and kind.cls is object
    return is_body or isinstance(kind, msgspec.inspect.NoneType | msgspec.inspect.AnyType)


def definitions() -> Iterator[Any]:
    """Every definition of a schema that is about a struct."""
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        name = path.name.partition(".")[0]
        schema = json.loads(path.read_text(encoding="utf-8"))
        for key, definition in schema.get("$defs", {}).items():
            struct, more, less = NAMED.get(key, (None, (), ()))
            struct = OF_ONE.get((name, key), struct)
            if struct is not None and name not in ("manifest", "project"):
                yield pytest.param(schema["$defs"], definition, struct, more, less, id=f"{name}-{key}")


@pytest.mark.parametrize(("every", "definition", "struct", "more", "less"), list(definitions()))
def test_a_definition_is_its_struct(
    every: dict[str, Any], definition: dict[str, Any], struct: Struct, more: tuple[str, ...], less: tuple[str, ...]
) -> None:
    """It has the same keys; null where the struct has None, and the words of the same Enum."""
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    fields = {field.encode_name: field.type for field in info.fields if field.name not in less}
    assert sorted(definition["properties"]) == sorted({*fields, *more})
    for name, type_ in fields.items():
        kinds = type_.types if isinstance(type_, msgspec.inspect.UnionType) else (type_,)
        judge = Draft202012Validator({"allOf": [definition["properties"][name]], "$defs": every})
        if name in definition["required"]:  # a key that may be left out is None then
            assert judge.is_valid(None) is any(map(may_be_nothing, kinds)), name
        for one in kinds:
            if isinstance(one, msgspec.inspect.EnumType):
                assert all(judge.is_valid(word.value) for word in one.cls), name
                assert not judge.is_valid("another"), name
