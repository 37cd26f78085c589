"""Documents and answers are read strictly: a value of another type is refused, never taken as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fleet.fleet_project import FLEETS
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from views.document_samples import REPORTS

from lmsconf.documents import reports, snapshot_file
from lmsconf.documents.document import add_seal, render_json
from lmsconf.errors import InvalidResponse, LmsconfError, Problem, SourceLocation, StalePlan
from lmsconf.kinds.groups import GroupRow
from lmsconf.kinds.shared.responses import object_list
from lmsconf.model.access import AccessRoute, ConditionResult, HeldContent, PersonContent, RouteSide
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.drift import FieldDrift, ManagedShare
from lmsconf.model.effects import AccessCounts, ContentEffects, Effects, GroupEffects
from lmsconf.model.fleet import FleetEntry
from lmsconf.model.forms import ExplainedKey
from lmsconf.model.outcomes import CallOutcome, ManifestsCommit, SnapshotDigest
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
from lmsconf.model.problem_codes import Blocker
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.read.fields_and_groups import parse_user_ids


def test_problems_of_another_format_are_refused() -> None:
    """A document that is no list of problems says so, whatever else is in it."""
    written = json.loads(reports.problems_json([Problem(code="a/b", message="m")]))
    assert [one.code for one in reports.load_problems(json.dumps(written))] == ["a/b"]
    with pytest.raises(LmsconfError):
        reports.load_problems(json.dumps({**written, "format": "lmsconf.other/1"}))


@pytest.mark.parametrize("key", ["severity", "hint", "source", "address"])
def test_a_problem_that_lacks_a_key_is_refused(key: str) -> None:
    """Also one whose value is often null: what is missing was taken away."""
    written = json.loads(reports.problems_json([Problem(code="a/b", message="m")]))
    del written["problems"][0][key]
    with pytest.raises(StalePlan):
        reports.load_problems(json.dumps(written))


@pytest.mark.parametrize("key", ["digest", "summary", "people", "guards", "blocked", "problems", "file"])
def test_a_result_in_a_fleet_that_lacks_a_key_is_refused(key: str) -> None:
    """The error names the place. A key that lmsconf does not know is passed over."""
    written = json.loads(reports.fleet_index_text(next(iter(FLEETS.values())).index))
    assert reports.load_fleet_index(json.dumps({**written, "later": 1})) == next(iter(FLEETS.values())).index
    del written["workspaces"][1][key]
    with pytest.raises(LmsconfError, match=rf"workspaces\[1\]\.{key} is missing"):
        reports.load_fleet_index(json.dumps(written))


@pytest.mark.parametrize("name", FLEETS)
def test_an_index_of_a_fleet_is_read_as_it_was_written(name: str) -> None:
    """Each workspace has its result again, and the index of a shard says which shard it is."""
    index = FLEETS[name].index
    assert (index.shard is not None) == (name == "shard")
    assert reports.load_fleet_index(reports.fleet_index_text(index)) == index


def test_an_answer_with_a_text_where_an_object_should_be_is_refused() -> None:
    """The error says where."""
    with pytest.raises(InvalidResponse, match="an item of choices"):
        object_list({"choices": ["x"]}, "choices")


@pytest.mark.parametrize("answer", [{}, {"userIds": None}, [], None])
def test_an_answer_without_its_list_is_no_empty_group(answer: Json) -> None:
    """Members that the service does not name are not nobody: all of them would be added again, or none removed."""
    with pytest.raises(InvalidResponse, match="missing its list of userIds"):
        parse_user_ids(answer)
    assert parse_user_ids({"userIds": ["u-1"]}) == {"u-1"}


def test_a_damaged_row_is_not_left_out() -> None:
    """A snapshot in which one row cannot be read is refused, with the listing and the number of the row."""
    rows = (GroupRow(RemoteId("g-1"), "A"), GroupRow(RemoteId("g-2"), "B"))
    text = snapshot_file.dumps(
        Snapshot(workspace="w", url="u", taken_at="t", people=None, listings={"group": Listing(rows=rows)})
    )
    assert snapshot_file.loads(text).rows(GroupRow) == rows
    document = json.loads(text)
    document["group"][1]["id"] = ["g-2"]
    with pytest.raises(LmsconfError, match=r"the snapshot cannot be read: group\[1\]"):
        snapshot_file.loads(json.dumps(document))


# An apply report survives the way through a file, and an edited one is refused.


REPORT = REPORTS["lost"]
TEXT = reports.apply_json(REPORT)


@pytest.mark.parametrize("converged", [None, True, False])
def test_loads_gives_back_what_dumps_wrote(converged: bool | None) -> None:
    """A report is read as it was written, whether or not the run could look at the end."""
    report = replace(REPORT, converged=converged)
    assert reports.load_apply_report(reports.apply_json(report)) == report


def test_every_changed_byte_is_refused() -> None:
    """Evidence in which one byte was changed is none."""
    raw = TEXT.encode()
    for position in range(len(raw)):
        flipped = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises(LmsconfError):
            reports.load_apply_report(flipped.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("key", "value"), [("outcomes", None), ("exit", "5"), ("summary", {}), ("converged", 1), ("verified", {})]
)
def test_a_new_seal_does_not_make_a_report(key: str, value: object) -> None:
    """A sealed document of another shape, or with other sums, is refused."""
    document = json.loads(TEXT)
    document[key] = value
    document["seal"] = sha256({**document, "seal": ""})
    with pytest.raises(StalePlan):
        reports.load_apply_report(render_json(document))


def test_a_report_of_another_format_is_refused() -> None:
    """By its format, also where everything else fits: a later version may mean something else by it."""
    document = {**json.loads(TEXT), "format": "lmsconf.apply/2"}
    with pytest.raises(LmsconfError, match=r"has the format 'lmsconf\.apply/2', not 'lmsconf\.apply/1'"):
        reports.load_apply_report(render_json(add_seal(document)))


def test_an_edited_report_is_told_from_a_broken_one() -> None:
    """Whatever was edited, also where it is no report any more: the sentence says that it was changed."""
    for edited in (TEXT.replace('"exit": 5', '"exit": 6'), TEXT.replace('"exit": 5', '"exit": "5"')):
        with pytest.raises(StalePlan, match="was changed after lmsconf wrote it"):
            reports.load_apply_report(edited)


# The schemas of documents say what the structs are that the documents are made of.


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
    "outcome": (CallOutcome, (), ("unsure", "carried_out")),
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
