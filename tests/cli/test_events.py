"""`--events FILE|-`: every event fits its schema, says what happened, and the stream never harms the run."""

import json
import os
import resource
import threading
from collections.abc import Mapping
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from cli.served import served
from flow.project import Project
from flow.shell import lmsconf
from json_schemas import schema_validator
from jsonschema import Draft202012Validator
from texts import listed_cases, text_of
from waiting import HANGS, Interruptions, nobody_waits

from lmsconf import __version__
from lmsconf.apply.scheduler import ApplyEvent
from lmsconf.cli import workspace_options
from lmsconf.cli.event_writer import EventWriter
from lmsconf.errors import ExitCode
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest
from lmsconf.support.files import LineStream, descriptor_writer

pytestmark = pytest.mark.sampled(day=8, daily=False)

SCHEMA = schema_validator("events").schema
BY_TYPE = {
    kind: Draft202012Validator({"$ref": f"#/$defs/{kind}_event", "$defs": SCHEMA["$defs"]})
    for kind in (one["$ref"].removeprefix("#/$defs/").removesuffix("_event") for one in SCHEMA["oneOf"])
}
SEED = text_of(__file__, "events_seed.yaml")
MANIFESTS = text_of(__file__, "events_manifests.yaml")
Event = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with something to create and to change, and an embedded workspace."""
    Project(tmp_path, SEED).write(MANIFESTS)
    return tmp_path


def parsed(text: str) -> list[Event]:
    """The events of a stream, each of which fits the schema; the first and the last are where they should be."""
    events: list[Event] = [json.loads(line) for line in text.splitlines()]
    for event in events:
        BY_TYPE[event["type"]].validate(event)
    assert (events[0]["type"], events[-1]["type"]) == ("start", "end")
    assert [event["type"] for event in events].count("end") == 1
    return events


def recorded(
    project: Path, *arguments: str, env: Mapping[str, str] | None = None, code: ExitCode = ExitCode.OK
) -> list[Event]:
    """The events of a command that exits so; the last event has the exit code, too."""
    ran = lmsconf(project, *arguments, "--events", "events.jsonl", env=env, code=code)
    events = parsed((project / "events.jsonl").read_text())
    assert events[-1]["exit"] == ran.code
    return events


def of_type(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["type"] == name]


def test_no_event_is_passed_over() -> None:
    """Each type of event has a line of its own; of an interruption the problem at the end says enough."""
    types = {name for union in (ApplyEvent, workspace_options.Event) for name in union.split(" | ")}
    recorded = {one.__name__ for one in EventWriter.__dict__["record"].dispatcher.registry}
    assert recorded - {"object"} == types - {"ApplyEvent", "KeyboardInterrupt"}


def test_a_plan_is_told_change_by_change(project: Path) -> None:
    """What was read with its counts, each change as in the plan's JSON, the summary, and the exit code."""
    document = lmsconf(project, "plan", "--format", "json").document
    events = recorded(project, "plan", "--detailed-exitcode", code=ExitCode.CHANGES)
    assert (events[0]["format"], events[0]["lmsconf"], events[0]["command"]) == (1, __version__, "plan")
    (manifests,), (read,) = of_type(events, "manifests_read"), of_type(events, "workspace_read")
    assert (manifests["files"], manifests["declared"]) == (1, 4)
    assert (read["rows"]["group"], read["people"]) == (2, 2)
    (ended,) = of_type(events, "phase_end")
    assert (ended["phase"], ended["status"]) == ("reading", "done")
    assert ended["requests"]["manual-groups.list"] > 0
    schema_validator("events").validate(events[0])
    changes = document["changes"]
    assert isinstance(changes, list)
    keys = changes[0].keys() - {"problems"}
    shown = [{key: event[key] for key in keys} for event in of_type(events, "planned_change")]
    assert shown == [{key: change[key] for key in keys} for change in changes]
    (summary,) = of_type(events, "plan_summary")
    assert (summary["digest"], summary["summary"]) == (document["digest"], document["summary"])


def test_an_apply_is_told_call_by_call(project: Path) -> None:
    """Each call of the plan is started and then ended, once and in the order of what it needs; nothing else is."""
    calls = lmsconf(project, "plan", "--format", "json").document["calls"]
    assert isinstance(calls, list)
    events = recorded(project, "apply", "--auto-approve")
    order = {(event["type"], event["id"]): at for at, event in enumerate(events) if event["type"].startswith("call_")}
    assert order.keys() == {(part, call["id"]) for part in ("call_start", "call_end") for call in calls}
    for call in calls:
        assert all(order["call_end", need] < order["call_start", call["id"]] for need in call["needs"])
        assert order["call_start", call["id"]] < order["call_end", call["id"]]
    ended = of_type(events, "call_end")
    assert {(event["status"], event["retries"]) for event in ended} == {("done", 0)}
    assert all(event["seconds"] >= 0 for event in ended)
    assert any(event["resource_id"] for event in ended)
    phases = [event["phase"] for event in of_type(events, "phase_start")]
    assert phases == ["reading", "checking", "applying", "verifying"]
    (summary,) = of_type(events, "apply_summary")
    assert (summary["summary"]["done"], summary["converged"]) == (len(calls), True)


def test_an_apply_that_fails_halfway(project: Path) -> None:
    """The call that failed has its status and reason, and what needs it is blocked without having been started."""
    with served(project, faults=FaultScript(Fault(operation="smart-groups.create", status=400))) as (_, env):
        events = recorded(project, "apply", "--auto-approve", env=env, code=ExitCode.PARTIAL)
    ended = {event["operation"]: event for event in of_type(events, "call_end")}
    failed, blocked = ended["smart-groups.create"], ended["content-targets.create"]
    assert (failed["status"], failed["http_status"], failed["level"]) == ("failed", 400, "error")
    assert "400" in failed["reason"]
    assert (blocked["status"], blocked["seconds"], blocked["http_status"]) == ("blocked", None, None)
    assert blocked["id"] not in [event["id"] for event in of_type(events, "call_start")]
    (summary,) = of_type(events, "apply_summary")
    assert (summary["summary"]["failed"], summary["summary"]["blocked"]) == (1, 1)


def test_a_request_that_is_sent_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait says why, for how long and for which call; the call counts it."""
    nobody_waits(monkeypatch)
    refused = Fault(operation="smart-groups.create", status=429, headers={"retry-after": "7"})
    with served(project, faults=FaultScript(refused)) as (_, env):
        events = recorded(project, "apply", "--auto-approve", env=env)
    (call,) = [event for event in of_type(events, "call_end") if event["operation"] == "smart-groups.create"]
    (retry,) = [event for event in of_type(events, "wait") if event["reason"] == "retry"]
    assert (retry["call"], retry["seconds"], retry["http_status"], retry["attempt"]) == (call["id"], 7, 429, 1)
    assert (call["status"], call["retries"]) == ("done", 1)
    limited = [event for event in of_type(events, "wait") if event["reason"] == "rate_limit"]
    assert limited[0]["seconds"] == 7


class Unseen(FaultScript):
    """A new group is not listed at first, and a rename is accepted without an effect."""

    def __init__(self) -> None:
        super().__init__()
        self.has_stale_reads, self._hides = True, 0

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        if operation == "manual-groups.rename":
            return Fault(status=200)
        self._hides = 2 if operation == "manual-groups.create" else self._hides - 1
        return Fault(stale=True) if not writes and self._hides >= 0 else None


def test_waits_for_the_service_have_their_reason(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is not listed yet, and a write that does not show, with the longest time that it may take."""
    nobody_waits(monkeypatch)
    (project / "manifests" / "all.yaml").write_text("groups: [{name: New, previously: [Old]}]\n")
    Project(project, SEED).write_options("lock: true\nsettle: 20s\n")
    with served(project, faults=Unseen()) as (_, env):
        events = recorded(project, "apply", "--auto-approve", env=env, code=ExitCode.NOT_CONVERGED)
    waits = {event["reason"]: event["seconds"] for event in reversed(of_type(events, "wait"))}
    assert waits == {"lock": 20, "settle": 20}


def test_ctrl_c_during_an_apply(project: Path) -> None:
    """What was under way has ended, what was not is named, and the stream is whole."""

    def interrupt(call: LoggedRequest) -> None:
        if call.operation == "smart-groups.create":
            sent.send()

    with Interruptions() as sent, served(project, on_log=interrupt) as (sandbox, env):
        events = recorded(project, "apply", "--auto-approve", "--parallelism", "1", env=env, code=ExitCode.INTERRUPTED)
    statuses = [event["status"] for event in of_type(events, "call_end")]
    assert set(statuses) == {"done", "not_attempted"}
    assert statuses.count("done") == sum(call.writes for call in sandbox.log)


def test_a_broken_manifest_has_its_place(project: Path) -> None:
    """Every problem is an event with file, line and column, and nothing is read from the workspace."""
    (project / "manifests" / "all.yaml").write_text("groups:\n  - {nam: X}\n  - {name: Y, members: 3}\n")
    events = recorded(project, "plan", code=ExitCode.ERROR)
    sources = [event["problem"]["source"] for event in of_type(events, "problem")]
    assert {(source["file"], source["line"]) for source in sources} == {("manifests/all.yaml", at) for at in (2, 3)}
    assert not of_type(events, "phase_start")


def test_stdout_has_the_events_and_nothing_else(project: Path) -> None:
    """With `-` the result goes to stderr. A result for programs needs a file of its own."""
    ran = lmsconf(project, "plan", "--events", "-")
    assert parsed(ran.out)[-1]["exit"] == ran.code == 0
    assert "Plan: 3 to create, 1 to change, 0 to delete" in ran.err
    assert parsed(lmsconf(project, "plan", "--events", "-", "--format", "json", "--output", "plan.json").out)
    assert json.loads((project / "plan.json").read_text())["format"] == "lmsconf.plan/1"
    clash = lmsconf(project, "plan", "--events", "-", "--format", "markdown", code=ExitCode.USAGE)
    assert "--events - and --format markdown both write to stdout" in clash.err


@listed_cases("file", "why")
def test_a_file_that_cannot_be_written_is_an_error_before_anything_is_sent(project: Path, file: str, why: str) -> None:
    """Exit 1, the reason, and not one request."""
    with served(project) as (sandbox, env):
        ran = lmsconf(project, "apply", "--auto-approve", "--events", file, env=env)
        assert not sandbox.log
    assert ran.code == ExitCode.ERROR
    assert f"--events {file} cannot be written: {why}" in ran.err


def test_the_file_is_private_and_links_are_not_followed(project: Path) -> None:
    """Mode 0600, also of a file that was there and readable; a link is replaced, and what it leads to stays."""
    (project / "mine.txt").write_text("mine")
    (project / "events.jsonl").symlink_to("mine.txt")
    recorded(project, "plan")
    assert (project / "mine.txt").read_text() == "mine"
    assert not (project / "events.jsonl").is_symlink()
    (project / "events.jsonl").chmod(0o644)
    before = (project / "events.jsonl").stat()
    recorded(project, "plan")
    assert (project / "events.jsonl").stat().st_mode & 0o777 == 0o600
    # It is the same file: somebody may follow it, or have mounted it.
    assert (project / "events.jsonl").stat().st_ino == before.st_ino


def test_a_reader_that_goes_does_not_stop_an_apply(project: Path) -> None:
    """The apply is done as ever, and at its end a warning says that events are missing."""
    os.mkfifo(project / "pipe")

    def read_one_line() -> None:
        with (project / "pipe").open() as pipe:
            pipe.readline()

    reader = threading.Thread(target=read_one_line, daemon=True)
    reader.start()
    with served(project, on_log=lambda call: reader.join(HANGS)) as (_, env):
        ran = lmsconf(project, "apply", "--auto-approve", "--events", "pipe", env=env)
    assert (ran.code, "Apply complete!" in ran.out) == (ExitCode.OK, True)
    assert "warning: --events pipe is not complete: Broken pipe [events/incomplete]" in ran.err


def test_a_full_disk_does_not_stop_an_apply(project: Path) -> None:
    """A limit for files stands in for it, which the events reach, and neither journal nor plan does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with served(project) as (_, env):
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, before[1]))
        try:
            ran = lmsconf(project, "apply", "--auto-approve", "--events", "events.jsonl", env=env)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (ran.code, "Apply complete!" in ran.out) == (ExitCode.OK, True)
    assert "warning: --events events.jsonl is not complete: File too large" in ran.err
    assert (project / "events.jsonl").stat().st_size == 8000


@pytest.mark.parametrize("room", [10, 10_000])
def test_a_reader_that_does_not_read_holds_nobody_up(room: int) -> None:
    """Neither where there is no room for more lines nor at the end; afterwards lines are dropped at once."""
    reading, writing = os.pipe()
    stream = LineStream(b"first\n", descriptor_writer(writing), patience=0, room=room)
    for _ in range(100):
        stream.put(b"x" * 10_000 + b"\n")
    stream.close()
    assert (stream.failure, stream.is_stuck) == ("its reader has not read for 0 seconds", True)
    assert stream._lines.qsize() <= 101
    os.close(reading)  # the thread goes on with a broken pipe
    stream._lines.put(None)
    stream._writer.join(HANGS)
    os.close(writing)


def test_who_waits_for_room_does_not_wait_for_a_stream_that_failed() -> None:
    """Without a limit of patience, too; and the thread that writes ends."""
    full, others = threading.Event(), {*threading.enumerate()}

    def write(line: bytes) -> None:
        if line != b"first\n":
            assert full.wait(HANGS)
            raise OSError(ENOSPC, "no space left")

    stream = LineStream(b"first\n", write, room=1)
    threading.Timer(0.05, full.set).start()
    for _ in range(9):
        stream.put(b"more\n")
    stream.close()
    assert (stream.failure, stream.is_stuck) == ("no space left", False)
    for thread in {*threading.enumerate()} - others:
        thread.join(HANGS)
        assert not thread.is_alive()


def test_events_are_flushed_one_by_one(project: Path) -> None:
    """When a request is answered, the events before it can be read already."""
    seen: list[str] = []

    def look(call: LoggedRequest) -> None:
        text = (project / "events.jsonl").read_text()
        if call.writes and "call_start" in text:
            seen.append(text)

    with served(project, on_log=look) as (_, env):
        recorded(project, "apply", "--auto-approve", "--parallelism", "1", env=env)
    assert seen
    assert all(text.endswith("\n") for text in seen)
