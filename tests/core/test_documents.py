"""Documents and answers are read strictly: a value of another type is refused, never taken as it is."""

from __future__ import annotations

import hashlib
import json

import pytest
from fleet.fleet_project import FLEETS
from msgspec.structs import replace

from lmsconf.documents import fleet_file, report_file, reports, snapshot_file
from lmsconf.documents.document import JsonObjectReader, add_seal, render_json
from lmsconf.documents.snapshot_file import snapshot_digest, snapshot_digest_json
from lmsconf.errors import InvalidResponse, LmsconfError, Problem, StalePlan
from lmsconf.kinds.custom_field.types import ChoiceRow, FieldRow
from lmsconf.kinds.manual_group.read import parse_user_ids
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.shared.responses import object_list
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.outcomes import ApplyReport, CallOutcome, VerifiedScope, VerifyMode
from lmsconf.model.snapshot import Listing, Snapshot

FORMAT = json.loads(reports.problems_json([Problem(code="a/b", message="m")]))["format"]


def test_a_list_of_texts_holds_nothing_else() -> None:
    """A number among texts is an error."""
    assert JsonObjectReader({"a": ["x"]}).value("a", tuple[str, ...]) == ("x",)
    with pytest.raises(ValueError, match=r"a\[1\]: Expected `str`, got `int`"):
        JsonObjectReader({"a": ["x", 1]}).value("a", tuple[str, ...])


def test_problems_of_another_format_are_refused() -> None:
    """A document that is no list of problems says so, whatever else is in it."""
    written = json.loads(reports.problems_json([Problem(code="a/b", message="m")]))
    assert [one.code for one in reports.load_problems(json.dumps(written))] == ["a/b"]
    with pytest.raises(LmsconfError):
        reports.load_problems(json.dumps({**written, "format": "lmsconf.other/1"}))


def test_problems_that_were_edited_are_refused() -> None:
    """A problem without its parts is no problem that lmsconf wrote."""
    with pytest.raises(StalePlan):
        reports.load_problems(render_json({"format": FORMAT, "problems": [{"code": 1}]}))


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
    written = json.loads(fleet_file.dumps(next(iter(FLEETS.values())).index))
    assert fleet_file.loads(json.dumps({**written, "later": 1})) == next(iter(FLEETS.values())).index
    del written["workspaces"][1][key]
    with pytest.raises(LmsconfError, match=rf"workspaces\[1\]\.{key} is missing"):
        fleet_file.loads(json.dumps(written))


@pytest.mark.parametrize("name", FLEETS)
def test_an_index_of_a_fleet_is_read_as_it_was_written(name: str) -> None:
    """Each workspace has its result again, and the index of a shard says which shard it is."""
    index = FLEETS[name].index
    assert (index.shard is not None) == (name == "shard")
    assert fleet_file.loads(fleet_file.dumps(index)) == index


def test_an_index_of_a_fleet_of_another_format_is_refused() -> None:
    """By its format, also where everything else fits: a later version may mean something else by it."""
    written = json.loads(fleet_file.dumps(next(iter(FLEETS.values())).index))
    with pytest.raises(LmsconfError, match=r"has the format 'lmsconf\.fleet/2', not 'lmsconf\.fleet/1'"):
        fleet_file.loads(json.dumps({**written, "format": "lmsconf.fleet/2"}))


def test_a_snapshot_of_another_format_is_refused() -> None:
    """By its format, also where everything else fits: a later version may mean something else by it."""
    written = json.loads(snapshot_file.dumps(Snapshot(workspace="w", url="u", taken_at="t", people=None)))
    assert snapshot_file.loads(json.dumps(written)).workspace == "w"
    with pytest.raises(LmsconfError, match=r"is a lmsconf\.snapshot/2 document, not a lmsconf\.snapshot/1"):
        snapshot_file.loads(json.dumps({**written, "format": "lmsconf.snapshot/2"}))


def test_lists_without_order_are_sorted_in_a_snapshot() -> None:
    """Two snapshots of one workspace are the same file, so that a comparison line by line shows what changed."""
    ids = [RemoteId(f"u-{number:02}") for number in range(40)]
    rows = (GroupRow(RemoteId("g"), "G", members=frozenset(ids)),)
    snapshot = Snapshot(workspace="w", url="u", taken_at="t", people=None, listings={"group": Listing(rows=rows)})
    assert json.loads(snapshot_file.dumps(snapshot))["group"][0]["members"] == ids


def test_choices_keep_their_order_in_a_snapshot() -> None:
    """An export from the file lists them as the workspace does."""
    choices = (ChoiceRow(RemoteId("c-2"), "B"), ChoiceRow(RemoteId("c-1"), "A"))
    rows = (FieldRow(RemoteId("f"), "Dept", "CHOICE", choices),)
    listings = {"custom_field": Listing(rows=rows)}
    snapshot = Snapshot(workspace="w", url="u", taken_at="t", people=None, listings=listings)
    assert snapshot_file.loads(snapshot_file.dumps(snapshot)) == snapshot


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


def test_the_digest_of_a_snapshot_says_what_was_read() -> None:
    """How many rows of each listing, and which of them may not be whole."""
    rows = (GroupRow(RemoteId("g-1"), "G"),)
    listings = {"group": Listing(rows=rows), "content": Listing(incomplete="page 2 failed")}
    digest = snapshot_digest(
        Snapshot(workspace="w", url="u", taken_at="2026-06-01T08:00:00Z", people=None, listings=listings)
    )
    assert snapshot_digest_json(digest) == {
        "sha256": digest.sha256,
        "taken_at": "2026-06-01T08:00:00Z",
        "rows": {"content": 0, "group": 1},
        "incomplete": ["content"],
    }
    renamed = {"group": Listing(rows=(GroupRow(RemoteId("g-1"), "H"),)), "content": listings["content"]}
    other = Snapshot(workspace="w", url="u", taken_at="2026-06-01T08:00:00Z", people=None, listings=renamed)
    assert snapshot_digest(other).sha256 != digest.sha256
    fewer = Snapshot(
        workspace="w", url="u", taken_at="2026-06-01T08:00:00Z", people=None, listings={"group": listings["group"]}
    )
    assert snapshot_digest(fewer).sha256 != digest.sha256, "a listing without rows is not one that was not read"


def test_the_digest_of_a_snapshot_file_is_the_sha_256_of_its_text() -> None:
    """So a receipt names the file that its rehearsal was made with, as sha256sum tells it."""
    rows = (GroupRow(RemoteId("g-1"), "Å"),)
    snapshot = Snapshot(workspace="w", url="u", taken_at="t", people=None, listings={"group": Listing(rows=rows)})
    text = snapshot_file.dumps(snapshot)
    assert snapshot_file.file_digest(snapshot) == hashlib.sha256(text.encode()).hexdigest()


# An apply report survives the way through a file, and an edited one is refused.


REPORT = ApplyReport(
    plan_digest="ab" * 32,
    workspace="sandbox",
    url="sandbox:",
    people=None,
    started_at="2026-03-01T08:00:00Z",
    finished_at="2026-03-01T08:00:01Z",
    outcomes=(
        CallOutcome(
            call="c1",
            address=Address.of("group", "A"),
            operation="manual-groups.create",
            status=CallStatus.DONE,
            id="g",
        ),
        CallOutcome(
            call="c2",
            address=Address.of("group", "B"),
            operation="manual-groups.create",
            status=CallStatus.FAILED,
            reason="400",
            hint="Look.",
        ),
    ),
    verified=VerifiedScope(scope=VerifyMode.TOUCHED, resources=2, reason="So it was asked."),
    converged=None,
    residue=(),
    problems=(Problem(code="x", message="y"),),
    meta={"commit": "9f3c"},
    exit=5,
)
TEXT = report_file.dumps(REPORT)


@pytest.mark.parametrize("converged", [None, True, False])
def test_loads_gives_back_what_dumps_wrote(converged: bool | None) -> None:
    """A report is read as it was written, whether or not the run could look at the end."""
    report = replace(REPORT, converged=converged)
    assert report_file.loads(report_file.dumps(report)) == report


def test_every_changed_byte_is_refused() -> None:
    """Evidence in which one byte was changed is none."""
    raw = TEXT.encode()
    for position in range(len(raw)):
        flipped = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises(LmsconfError):
            report_file.loads(flipped.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("key", "value"), [("outcomes", None), ("exit", "5"), ("summary", {}), ("converged", 1), ("verified", {})]
)
def test_a_new_seal_does_not_make_a_report(key: str, value: object) -> None:
    """A sealed document of another shape, or with other sums, is refused."""
    document = json.loads(TEXT)
    document[key] = value
    document["seal"] = sha256({**document, "seal": ""})
    with pytest.raises(StalePlan):
        report_file.loads(render_json(document))


def test_a_report_of_another_format_is_refused() -> None:
    """By its format, also where everything else fits: a later version may mean something else by it."""
    document = {**json.loads(TEXT), "format": "lmsconf.apply/2"}
    with pytest.raises(LmsconfError, match=r"has the format 'lmsconf\.apply/2', not 'lmsconf\.apply/1'"):
        report_file.loads(render_json(add_seal(document)))


def test_an_edited_report_is_told_from_a_broken_one() -> None:
    """Whatever was edited, also where it is no report any more: the sentence says that it was changed."""
    for edited in (TEXT.replace('"exit": 5', '"exit": 6'), TEXT.replace('"exit": 5', '"exit": "5"')):
        with pytest.raises(StalePlan, match="was changed after lmsconf wrote it"):
            report_file.loads(edited)
