"""A plan file that was edited anywhere is refused; signed, also when it was sealed anew after the edit."""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from json_schemas import schema_validator

from lmsconf.documents.json_documents import render_canonical_json
from lmsconf.documents.plan_file import loads
from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.model.canonical_json import Json, sha256

from .served_project import CommandResult, ServedProject, staged

pytestmark = pytest.mark.sampled(daily=False)  # some seconds in all

SEED = """
people: [{email: bo@acme.example, id: u-bo}, {email: cy@acme.example, id: u-cy}]
groups: [{name: Team, id: g-1, members: [bo@acme.example]}, {name: Z, id: g-2}, {name: Else, id: g-3}]
custom_fields: [{name: D, type: CHOICE, choices: [A]}]
"""
MANIFESTS = """
groups: [{name: Team, members: [cy@acme.example], about: {why: moves}}, {name: New, members: []}]
smart_groups: [{name: S, conditions: [{field: D, choices: [A]}]}]
absent: {groups: [Z]}
"""
KEY = "canary-key-0815-of-the-team-that-plans"
REFUSED = {ExitCode.ERROR, ExitCode.STALE}
Trail = tuple[str | int, ...]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch) as stage:
        stage.write(MANIFESTS)
        yield stage


def planned(stage: ServedProject) -> str:
    """The text of a plan file of that project."""
    return Path(stage.saved()).read_text(encoding="utf-8")


def applying(stage: ServedProject, text: str, *arguments: str) -> CommandResult:
    """What applying that text comes to; nothing may be sent unless it is done."""
    (stage.root / "plan.json").write_text(text, encoding="utf-8")
    ran = stage("apply", str(stage.root / "plan.json"), *arguments)
    assert ran.writes == [] or ran.code == 0
    return ran


def applied(stage: ServedProject, text: str) -> ExitCode:
    """How that ends."""
    return ExitCode(applying(stage, text).code)


def refused(text: str, key: bytes | None = None) -> bool:
    try:
        loads(text, key)
    except LmsconfError as error:
        return error.exit in REFUSED
    return False


def paths(value: Any, path: Trail = ()) -> Iterator[Trail]:
    """The path of every value inside a document, down to the leaves."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from paths(item, (*path, key))


def edits(document: dict[str, Any]) -> Iterator[tuple[Trail, dict[str, Any]]]:
    """The document with each value replaced, taken out, and, in a list, said twice."""
    for path in list(paths(document)):
        for edit in (_other, _taken_out, _twice):
            edited = deepcopy(document)
            at: Any = edited
            for step in path[:-1]:
                at = at[step]
            edit(at, path[-1])
            if edited != document:
                yield path, edited


def _other(at: Any, key: str | int) -> None:
    value = at[key]
    match value:
        case bool():
            at[key] = not value
        case int():
            at[key] = value + 1
        case str():
            at[key] = f"{value}x"
        case dict():
            at[key] = {**value, "more": 1}
        case list():
            at[key] = [*value, "more"]
        case _:
            at[key] = "something"


def _taken_out(at: Any, key: str | int) -> None:
    del at[key]


def _twice(at: Any, key: str | int) -> None:
    if isinstance(at, list):
        at.append(at[key])


def sealed_anew(document: dict[str, Any]) -> str:
    """What somebody makes who edits a plan and knows how digest and seal are made."""
    found = document.get("changes")
    changes = [
        {k: v for k, v in one.items() if k not in ("source", "about", "undo")} if isinstance(one, dict) else one
        for one in (found if isinstance(found, list) else [])
    ]
    parts = {key: document.get(key) for key in ("format", "workspace", "policy", "calls", "fingerprints")}
    document = {**document, "digest": sha256({**parts, "changes": changes}), "seal": ""}
    return render_canonical_json({**document, "seal": sha256(document)})


def test_every_flipped_byte_is_refused(stage: ServedProject) -> None:
    """Wherever a byte is another one, in one of two ways; what is no UTF-8 any more is no plan either."""
    raw = planned(stage).encode()
    passed = []
    for position in range(len(raw)):
        flipped = bytearray(raw)
        flipped[position] ^= (0x01, 0x20)[position % 2]
        try:
            text = flipped.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if not refused(text):
            passed.append(position)
    assert passed == []


def test_a_file_that_is_no_text_is_refused(stage: ServedProject) -> None:
    """A byte that breaks the encoding is an error of the file, and nothing is sent."""
    planned(stage)
    file = stage.root / "plan.json"
    file.write_bytes(file.read_bytes()[:-5] + b"\xff" + file.read_bytes()[-4:])
    assert stage("apply", str(file), code=ExitCode.ERROR).writes == []


def test_every_edited_field_is_refused(stage: ServedProject) -> None:
    """Each value replaced, each key or item taken out, each item said twice: none passes."""
    found = list(edits(json.loads(planned(stage))))
    assert len(found) > 400
    assert [path for path, edited in found if not refused(render_canonical_json(edited))] == []


def test_an_edited_file_exits_with_3_and_sends_nothing(stage: ServedProject) -> None:
    """The command, not only the reader: also with guards lifted by hand in the file, or another format's number."""
    text = planned(stage)
    for old, new in (
        ("u-cy", "u-bo"),
        ('"tripped":false', '"tripped":true'),
        ("lmsconf.plan/1", "lmsconf.plan/2"),
        ('"partial":false', '"partial":true '),
    ):
        assert old in text
        assert applied(stage, text.replace(old, new, 1)) == ExitCode.STALE
    assert applied(stage, f"{text}\n") == ExitCode.STALE
    assert applied(stage, text[:-1]) == ExitCode.STALE
    assert applied(stage, text) == ExitCode.OK


def test_another_workspace_is_refused(stage: ServedProject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A plan is for the workspace whose name and URL it has, even where another holds the very same."""
    text = planned(stage)
    with pytest.MonkeyPatch.context() as patch, staged(tmp_path_factory.mktemp("other"), SEED, patch) as other:
        assert applied(other, text) == ExitCode.STALE
        patch.setenv("LMSCONF_URL", stage.url)
        assert applied(other, text) == ExitCode.STALE


def test_calls_that_do_not_follow_from_the_changes_are_refused(stage: ServedProject) -> None:
    """Whoever leaves out, adds or moves a call, and makes digest and seal anew, has a file that no plan comes to.

    The order is part of what was reviewed: what takes away comes last.
    """
    document = json.loads(planned(stage))
    calls = document["calls"]
    for at in range(len(calls)):
        left_out, added = [*calls[:at], *calls[at + 1 :]], [*calls, {**calls[at], "id": "more"}]
        for edited in (left_out, added, [*calls[:at], *calls[at : at + 2][::-1], *calls[at + 2 :]]):
            document["calls"], document["summary"]["calls"] = edited, len(edited)
            assert edited == calls or applied(stage, sealed_anew(document)) == ExitCode.STALE, edited


@pytest.mark.parametrize(
    ("part", "key", "values"),
    [
        ("calls", "id", ["c99", "c1", "c2"]),
        ("calls", "needs", [[], ["c1"], ["c3"], ["c77"]]),
        ("calls", "operation", ["manual-groups.rename"]),
        ("calls", "method", ["PATCH"]),
        ("calls", "path", ["/groups/g-3", "/users"]),
        ("calls", "query", [{"more": "1"}]),
        ("calls", "body", [{"name": "Another"}, None]),
        ("calls", "address", ["group/Another", "group/Z", "group/Team"]),
        ("calls", "may_be_refused", [False, True]),
        ("calls", "people", [[], ["x@acme.example"]]),
        ("changes", "id", [None, "g-3", "g-77"]),
        ("changes", "action", ["create", "update", "delete"]),
        ("changes", "before", [None, {"name": "Else"}, {"name": "Team", "members": []}]),
        ("changes", "fields", [[]]),
        ("changes", "defaults", [[], ["managers"], ["description"]]),
    ],
)
def test_an_altered_field_is_refused_before_the_first_call(
    stage: ServedProject, part: str, key: str, values: list[Any]
) -> None:
    """Each field of each call, and what a reviewer was shown of a change, its id among it; digest and seal are right.

    They are what a plan made now comes to: exit 3, and nothing is sent.
    """
    document = json.loads(planned(stage))
    assert len(document[part]) > 3
    assert document["summary"] == _summed(document)
    edits = [(at, value) for at, one in enumerate(document[part]) for value in values if value != one[key]]
    assert edits
    for at, value in edits:
        edited = deepcopy(document)
        edited[part][at][key] = value
        edited["summary"] = _summed(edited)
        ended = applied(stage, sealed_anew(edited))
        assert ended in (REFUSED if part == "changes" else {ExitCode.STALE}), edited[part]
    assert applied(stage, sealed_anew(document)) == ExitCode.OK


def _summed(document: dict[str, Any]) -> dict[str, Any]:
    """The summary with the numbers of changes and of calls that there are by now."""
    actions = [change["action"] for change in document["changes"]]
    counts = {action: actions.count(action) for action in ("create", "update", "replace", "delete")}
    return {**document["summary"], **counts, "calls": len(document["calls"])}


def test_a_call_that_may_be_refused_by_now_is_told(stage: ServedProject) -> None:
    """Somebody builds on a field after the plan was made: the service may refuse its change, which nobody reviewed."""
    stage.write("custom_fields: [{name: D, description: New}]")
    text = planned(stage)
    one: Json = {"customFieldId": "f-1", "choiceIds": ["ch-1"]}
    stage.hand("smart-groups.create", body={"name": "Theirs", "conditions": [one]})
    ran = applying(stage, text)
    assert ran.code == ExitCode.STALE
    assert "the service may now refuse it, which the plan does not show" in ran.err


def test_guards_that_were_told_less_are_refused(stage: ServedProject) -> None:
    """Whoever takes removals out of what the guards are told cannot pass them."""
    document = json.loads(planned(stage))
    document["measures"] = [one for one in document["measures"] if one["guard"] != "removals"]
    assert applied(stage, sealed_anew(document)) == ExitCode.STALE


def signed(stage: ServedProject, patch: pytest.MonkeyPatch) -> str:
    patch.setenv("LMSCONF_PLAN_KEY", KEY)
    return planned(stage)


def test_a_signed_plan_is_applied_with_its_key(stage: ServedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says that it is signed, is what its schema describes, and goes through; the key is nowhere in it.

    Without the key, it is a plan like any other: the seal still holds, and the digest is the same.
    """
    plain = json.loads(planned(stage))
    text = signed(stage, monkeypatch)
    document = json.loads(text)
    assert (document["digest"], len(document["hmac"]), "hmac" in plain) == (plain["digest"], 64, False)
    assert list(schema_validator("plan").iter_errors(document)) == []
    assert stage("show", str(stage.root / "plan.json"), "--format", "json").out == text
    monkeypatch.delenv("LMSCONF_PLAN_KEY")
    assert applied(stage, text.replace("u-cy", "u-bo")) == ExitCode.STALE
    stage.sandbox.store.checkpoint("before")
    assert applied(stage, text) == ExitCode.OK
    stage.sandbox.store.restore("before")
    monkeypatch.setenv("LMSCONF_PLAN_KEY", KEY)
    ran = applying(stage, text, "--format", "json")
    assert ran.code == ExitCode.OK
    assert KEY not in text + ran.told


@pytest.mark.parametrize("other", ["canary-of-others-who-plan-as-well-there", KEY + "X"])
def test_another_key_is_refused(stage: ServedProject, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    """Only the very same key will do, and neither is printed."""
    text = signed(stage, monkeypatch)
    monkeypatch.setenv("LMSCONF_PLAN_KEY", other)
    ran = applying(stage, text, "--format", "json")
    assert ran.code == ExitCode.STALE
    assert "signed with another key" in ran.err
    assert KEY not in ran.told
    assert other not in ran.told
    assert "changed after lmsconf wrote it" in applying(stage, text.replace("deletes", "delete5")).err


def test_a_file_without_a_signature_is_refused_with_a_key(
    stage: ServedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking the signature out, whatever is put in its place, does not make a file that passes."""
    plain = planned(stage)
    monkeypatch.setenv("LMSCONF_PLAN_KEY", KEY)
    assert applied(stage, plain) == ExitCode.STALE
    for value in ("", None, 0, [], "0" * 64, "é"):
        assert applied(stage, sealed_anew({**json.loads(plain), "hmac": value})) == ExitCode.STALE


def test_an_edit_that_was_sealed_anew_is_refused_with_the_key(
    stage: ServedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every edit of every field, with digest and seal as they should be: only the signature tells, and it does."""
    document = json.loads(signed(stage, monkeypatch))
    files: Sequence[str] = [
        sealed_anew(edited) for path, edited in edits(document) if path[0] not in ("digest", "seal")
    ]
    assert [text for text in files if not refused(text, KEY.encode())] == []
    # Without a key some of them pass as plans: the signature is what stops them, and not chance.
    assert sum(not refused(text) for text in files) > 20


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("", "LMSCONF_PLAN_KEY is empty"),
        (" \n", "LMSCONF_PLAN_KEY is empty"),
        ("x" * 31, "openssl rand -hex 32"),
        ("é" * 15, "openssl rand -hex 32"),
        ("é" * 16, ""),
    ],
)
def test_a_short_key_is_refused(stage: ServedProject, monkeypatch: pytest.MonkeyPatch, key: str, told: str) -> None:
    """A key has 32 bytes or more, whatever it signs or checks; the error says how to make one, and not the key.

    A secret that a CI system lacks comes as an empty text; what it should have signed is not taken unsigned.
    """
    texts = planned(stage), signed(stage, monkeypatch)
    monkeypatch.setenv("LMSCONF_PLAN_KEY", key)
    ran = stage("plan", "--out", str(stage.root / "other.json"), code=ExitCode.USAGE if told else ExitCode.OK)
    assert told in ran.err
    assert ("LMSCONF_PLAN_KEY" in ran.err) is bool(told)
    assert len(key) < 3 or key not in ran.err
    assert [applied(stage, text) for text in texts] == [ExitCode.USAGE if told else ExitCode.STALE] * 2
    stage("plan", code=ExitCode.OK)


@pytest.mark.parametrize(("said", "days"), [("", 7), ("plans: {valid_for: 2d}", 2), ("plans: {valid_for: 36h}", 1.5)])
def test_plans_hold_a_week_or_as_the_project_says(stage: ServedProject, said: str, days: float) -> None:
    """`expires_at` is that long after `created_at`."""
    stage.options(said)
    document = json.loads(planned(stage))
    made, ends = (datetime.fromisoformat(document[key]) for key in ("created_at", "expires_at"))
    assert ends - made == timedelta(days=days)
