"""A plan file gives back the plan it was made from, and nothing else passes for one."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from pydoc import locate
from typing import Any

import msgspec
import pytest
from fleet.fleet_project import FLEETS
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from texts import text_of
from views.document_samples import EMPTY, REPORTS

from lmsconf.apply.rehearse import refuse_unrehearsed
from lmsconf.documents import plan_file, reports
from lmsconf.documents.json_documents import add_seal, render_canonical_json
from lmsconf.errors import ExitCode, InvalidResponse, LmsconfError, Problem, SourceLocation, StalePlan
from lmsconf.kinds.shared.responses import object_list
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import (
    Action,
    Change,
    Plan,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsalReceipt,
)
from lmsconf.planner.read.fields_and_groups import parse_user_ids

GROUP = Address.of("group", "Å/B")
PLAN = replace(
    EMPTY,
    changes=(
        Change(
            address=GROUP,
            action=Action.CREATE,
            id=None,
            about={"owner": "hr"},
            source=SourceLocation("groups.yaml", 3, 5),
            before=None,
            after={"members": ["a@b.c"]},
            fields=(),
            problems=(Problem(code="x", message="y", source=SourceLocation("groups.yaml", 4)),),
        ),
    ),
    calls=(
        Call(
            id="c1",
            address=GROUP,
            operation="manual-groups.create",
            method="POST",
            path="/groups",
            query={},
            body={"name": "Å/B", "field": Ref(GROUP), "choice": [Ref(GROUP, "No/rth")]},
        ),
    ),
    fingerprints={"group/A": "00"},
)
TEXT = plan_file.dumps(PLAN)


def resealed(text: str, **changed: object) -> str:
    """A document with other values and a seal that fits it."""
    return render_canonical_json(add_seal({**json.loads(text), **changed}))


def rehearsed(outcome: RehearsalOutcome) -> Plan:
    """A plan with a rehearsal, whose receipt is for the plan with the digest `a`."""
    at = "2026-03-01T08:00:00Z"
    receipt = RehearsalReceipt(plan_digest="a", snapshot_digest="b", outcome=outcome, at=at, tool="lmsconf 0")
    nothing = dict.fromkeys(("failed", "remaining", "problems", "assumptions", "memberships"), ())
    pace = RehearsalPace(requests=7)
    return replace(PLAN, rehearsal=Rehearsal(receipt=receipt, taken_at=at, calls=1, done=1, pace=pace, **nothing))


@pytest.mark.parametrize("rate", ["fast", True])
def test_the_rate_of_a_rehearsal_is_a_number(rate: object) -> None:
    """A plan file in which it is anything else is refused."""
    plan = rehearsed(RehearsalOutcome.NOT_CONVERGED)
    text = plan_file.dumps(plan)
    assert plan_file.loads(text) == plan
    rehearsal = json.loads(text)["rehearsal"]
    rehearsal["pace"]["rate"] = rate
    with pytest.raises(StalePlan):
        plan_file.loads(resealed(text, rehearsal=rehearsal))


def test_the_rehearsal_of_another_plan_is_none() -> None:
    """A receipt counts only for the plan whose digest it has."""
    plan = rehearsed(RehearsalOutcome.SUCCESS)
    refuse_unrehearsed(plan, "a")
    with pytest.raises(StalePlan, match="is of a plan with the digest a, and this one's is c"):
        refuse_unrehearsed(plan, "c")


def test_a_plan_with_masked_people_is_no_plan_to_apply() -> None:
    """It keeps the digest of the plan that it shows, says that it is masked, and how to save that plan."""
    masked = plan_file.dumps(replace(PLAN, masked_digest="ab"))
    assert json.loads(masked)["digest"] == "ab"
    with pytest.raises(StalePlan, match="masked people, and cannot be applied") as refused:
        plan_file.loads(masked)
    assert "without --mask-people" in str(refused.value.hint)


def edited(value: Any) -> Iterator[Any]:
    """A document with each of its values replaced in turn, by values of every type."""
    for key, item in [*(value.items() if isinstance(value, dict) else enumerate(value))]:
        for other in ("another", None, 7, [], {}):
            if other != item:
                value[key] = other
                yield value
        value[key] = item
        if isinstance(item, dict | list):
            for _ in edited(item):
                yield value


def test_an_edited_value_with_a_new_seal_is_no_traceback() -> None:
    """Whoever seals an edited file anew is refused, or has written a whole plan with the digest of what it does."""
    for document in edited(json.loads(TEXT)):
        # Any other exception would be the traceback that this test looks for.
        with contextlib.suppress(LmsconfError):
            assert plan_file.plan_digest(plan_file.loads(resealed(json.dumps(document)))) == document["digest"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a complete document"),
        ("[]", "no format"),
        ('{"format": 1}', "no format"),
        ('{"format": "lmsconf.plan/1", "format": "lmsconf.plan/1"}', "duplicate key"),
        ('{"format": "lmsconf.plan/1", "people": NaN}', "NaN is not a JSON number"),
        ('{"format": "lmsconf.plan/2"}', "the format 'lmsconf.plan/2', not 'lmsconf.plan/1'"),
        ('{"format": "lmsconf.apply/1"}', "the format 'lmsconf.apply/1'"),
        ('{"format": "lmsconf.plan/1"}', "changed after"),
        ("[" * 100_000, "not a complete document"),
        ('{"format": "lmsconf.plan/1", "people": ' + "1" * 5000 + "}", "not a complete document"),
    ],
    ids=range(10),
)
def test_what_is_no_plan_file_is_refused_kindly(text: str, said: str) -> None:
    """Other texts are refused with the reason and a way out, never with a traceback."""
    with pytest.raises(LmsconfError) as caught:
        plan_file.loads(text)
    assert said in caught.value.message
    assert caught.value.hint
    assert caught.value.exit in {ExitCode.ERROR, ExitCode.STALE}


def test_a_plan_of_another_version_is_read() -> None:
    """The format's version decides whether a file can be read, not the tool's."""
    assert plan_file.loads(resealed(TEXT, tool={"name": "lmsconf", "version": "99"})) == PLAN


# Documents and answers are read strictly: a value of another type is refused, never taken as it is.


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
    index = replace(FLEETS["plan"], shared=())
    written = json.loads(reports.fleet_index_text(index))
    assert reports.load_fleet_index(json.dumps({**written, "later": 1})) == index
    del written["workspaces"][1][key]
    with pytest.raises(LmsconfError, match=rf"workspaces\[1\]\.{key} is missing"):
        reports.load_fleet_index(json.dumps(written))


@pytest.mark.parametrize("name", FLEETS)
def test_an_index_of_a_fleet_is_read_as_it_was_written(name: str) -> None:
    """Each workspace has its result again, and the index of a shard says which shard it is."""
    index = replace(FLEETS[name], shared=())
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


# An apply report survives the way through a file, and an edited one is refused.


REPORT = REPORTS["lost"]
WHOLE = reports.apply_json(REPORT)


@pytest.mark.parametrize("converged", [None, True, False])
def test_loads_gives_back_what_dumps_wrote(converged: bool | None) -> None:
    """A report is read as it was written, whether or not the run could look at the end."""
    report = replace(REPORT, converged=converged)
    assert reports.load_apply_report(reports.apply_json(report)) == report


def test_every_changed_byte_is_refused() -> None:
    """Evidence in which one byte was changed is none."""
    raw = WHOLE.encode()
    for position in range(len(raw)):
        flipped = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises(LmsconfError):
            reports.load_apply_report(flipped.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("key", "value"), [("outcomes", None), ("exit", "5"), ("summary", {}), ("converged", 1), ("verified", {})]
)
def test_a_new_seal_does_not_make_a_report(key: str, value: object) -> None:
    """A sealed document of another shape, or with other sums, is refused."""
    with pytest.raises(StalePlan):
        reports.load_apply_report(resealed(WHOLE, **{key: value}))


def test_a_report_of_another_format_is_refused() -> None:
    """By its format, also where everything else fits: a later version may mean something else by it."""
    with pytest.raises(LmsconfError, match=r"has the format 'lmsconf\.apply/2', not 'lmsconf\.apply/1'"):
        reports.load_apply_report(resealed(WHOLE, format="lmsconf.apply/2"))


def test_an_edited_report_is_told_from_a_broken_one() -> None:
    """Whatever was edited, also where it is no report any more: the sentence says that it was changed."""
    for edited in (WHOLE.replace('"exit": 5', '"exit": 6'), WHOLE.replace('"exit": 5', '"exit": "5"')):
        with pytest.raises(StalePlan, match="was changed after lmsconf wrote it"):
            reports.load_apply_report(edited)


# The schemas of documents say what the structs are that the documents are made of.


SCHEMAS = Path(__file__).parent.parent.parent / "schemas"
STRUCTS: Mapping[str, str | None] = json.loads(text_of(__file__, "test_planfile.json"))
"""Definition, perhaps of one schema → its struct, `+` keys that a document adds, and `-` fields that it leaves out."""


def may_be_nothing(kind: msgspec.inspect.Type) -> bool:
    """Whether a value of the type may be null: JSON of any type may."""
    is_body = isinstance(kind, msgspec.inspect.CustomType) and kind.cls is object
    return is_body or isinstance(kind, msgspec.inspect.NoneType | msgspec.inspect.AnyType)


def definitions() -> Iterator[Any]:
    """Every definition of a schema that is about a struct."""
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        name = path.name.partition(".")[0]
        every = json.loads(path.read_text(encoding="utf-8")).get("$defs", {})
        for key in every if name not in ("manifest", "project") else ():
            if struct := STRUCTS.get(f"{name} {key}", STRUCTS.get(key)):
                yield pytest.param(every, every[key], struct, id=f"{name}-{key}")


@pytest.mark.parametrize(("every", "definition", "said"), list(definitions()))
def test_a_definition_is_its_struct(every: dict[str, Any], definition: dict[str, Any], said: str) -> None:
    """It has the same keys; null where the struct has None, and the words of the same Enum."""
    struct, *changes = said.split()
    info = msgspec.inspect.type_info(locate(f"lmsconf.{struct}"))
    assert isinstance(info, msgspec.inspect.StructType)
    fields = {field.encode_name: field.type for field in info.fields if f"-{field.name}" not in changes}
    assert sorted(definition["properties"]) == sorted({*fields, *(one[1:] for one in changes if one[0] == "+")})
    for name, type_ in fields.items():
        kinds = type_.types if isinstance(type_, msgspec.inspect.UnionType) else (type_,)
        judge = Draft202012Validator({"allOf": [definition["properties"][name]], "$defs": every})
        if name in definition["required"]:  # a key that may be left out is None then
            assert judge.is_valid(None) is any(map(may_be_nothing, kinds)), name
        for one in kinds:
            if isinstance(one, msgspec.inspect.EnumType):
                assert all(judge.is_valid(word.value) for word in one.cls), name
                assert not judge.is_valid("another"), name
