"""`lmsconf fleet`: many workspaces with one command."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Self

import msgspec
import pytest
from fleet.fleet_project import PROJECT, Fleet, large_fleet
from json_schemas import schema_validator
from msgspec.structs import replace
from texts import text_of

from lmsconf.fleet.fleet_run import parse_selector
from lmsconf.fleet.tasks import FleetTask
from lmsconf.fleet.worker import BOUND
from lmsconf.model.fleet import FleetAction
from lmsconf.render.escape import parse_size_limit
from lmsconf.render.markdown import fleet_markdown

WAVES = f"{PROJECT}waves: [ring=canary, '*']\n"
EPSILON = "epsilon: {url: 'https://lms.invalid', token: {env: LMSCONF_NOT_SET}, labels: {region: eu, ring: canary}}"
"""A workspace that cannot be planned."""


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        *(("*", True), ("", True), ("ring=canary", True), ("ring==canary", True), ("ring=main", False)),
        *(("ring!=main", True), ("other!=x", True), ("ring", True), ("!ring", False), ("!other", True)),
        *(("ring=canary,region!=eu", False), ("ring=canary, region=eu", True), ("workspace=alpha", True)),
    ],
)
def test_selectors_are_those_of_kubectl(selector: str, selected: bool) -> None:
    """Equality, inequality and presence, all of which must hold; the name is a label too."""
    assert parse_selector(selector, "--select").fits("alpha", {"ring": "canary", "region": "eu"}) is selected


@pytest.mark.sampled(daily=False)
def test_a_plan_of_all_shows_what_is_the_same_once(fleet: Fleet) -> None:
    """A change that several workspaces share is in one block, and an index and a plan file of each are saved."""
    index = fleet.plan()
    schema_validator("fleet").validate(index)
    assert [(one["workspace"], one["exit"], one["summary"]["create"]) for one in index["workspaces"]] == [
        *(("alpha", 2, 2), ("beta", 2, 2), ("gamma", 2, 2)),
    ]
    out = fleet.show()
    assert out.startswith(
        "3 workspaces: 3 with changes, 0 without.\n\n"
        "Effects on people in 3 workspaces: nobody's access to content changes.\n\n"
        "This change in 3 of 3 workspaces: alpha, beta, gamma\n"
    )
    assert "This change in 2 of 3 workspaces: alpha, beta\n\n  + group/Team eu will be created\n" in out
    document = json.loads(fleet.show("json"))
    schema_validator("fleet").validate(document)
    assert [len(one["workspaces"]) for one in document["shared"]] == [3, 2, 1]
    assert "**3 workspaces: 3 with changes, 0 without.**" in fleet.show("markdown")
    assert all(path.stat().st_mode & 0o077 == 0 for path in fleet.out.iterdir())


@pytest.mark.sampled(daily=False)
def test_apply_goes_in_waves_and_does_what_is_left(fleet: Fleet) -> None:
    """All plans are applied; a second apply sends nothing; the next plan is empty."""
    fleet.write("lmsconf.yaml", WAVES)
    fleet.plan()
    report = fleet.out / "beta.report.json"
    assert fleet.apply("--meta", "commit=1a2b3c")[:2] == (
        0,
        "3 workspaces: 3 applied or without changes (6 API calls).\n",
    )
    assert json.loads(report.read_text())["meta"] == {"commit": "1a2b3c"}
    before = report.stat().st_mtime_ns
    fleet.apply(code=0)
    assert report.stat().st_mtime_ns == before
    assert fleet.command("plan", "--detailed-exitcode", code=0).out == "3 workspaces: 0 with changes, 3 without.\n"


@pytest.mark.sampled(daily=False)
def test_a_wave_with_failures_stops_those_after_it(fleet: Fleet) -> None:
    """A canary is stale and another one could not be planned: nothing else is applied, and each workspace says why.

    What cannot be planned holds up no other plan.
    """
    fleet.write("lmsconf.yaml", WAVES.replace("csv}", f"csv, {EPSILON}}}"))
    fleet.plan("--processes", "2", code=1)
    shown = fleet.show()
    assert "Workspace epsilon (https://lms.invalid): failed with errors\n" in shown
    assert "the environment variable LMSCONF_NOT_SET is not set" in shown
    assert "3 with changes, 0 without, 1 failed." in shown
    fleet.run("--workspace", "alpha", "api", "POST", "/groups", "--body", '{"name": "Team eu"}', code=0)
    text = fleet.apply("--max-failures", "1", code=1).out
    assert "Workspace alpha (sandbox:alpha.db): the plan does not fit any more" in text
    assert "2 workspaces: not attempted\n  beta, gamma\n" in text
    assert text.index("beta") > text.index("Workspace alpha")
    assert "not applied: 2 workspaces of the wave ring=canary failed, and the limit is 1" in text
    assert fleet.exits() == {"alpha": 3, "beta": 5, "epsilon": 1, "gamma": 5}
    fleet.apply("--max-failures", "2", code=1)
    assert fleet.exits() == {"alpha": 3, "beta": 0, "epsilon": 1, "gamma": 0}


@pytest.mark.sampled(day=1)
def test_a_wave_that_was_applied_before_does_not_end_a_stop(fleet: Fleet) -> None:
    """The waves after it are not begun either."""
    late = EPSILON.replace("epsilon", "zeta").replace("canary", "late")
    waves = "waves: [ring=canary, ring=main, ring=late]\n"
    fleet.write("lmsconf.yaml", PROJECT.replace("csv}", f"csv, {EPSILON}, {late}}}") + waves)
    fleet.write("workspaces.csv", 'name,url,labels\nbeta,sandbox:beta.db,"ring=main, region=eu"\n')
    fleet.plan(code=1)
    fleet.apply("--max-failures", "1", code=1)
    assert fleet.exits() == {"beta": 0, "epsilon": 1, "zeta": 1}
    fleet.apply(code=1)
    assert fleet.exits() == {"beta": 0, "epsilon": 1, "zeta": 5}


@pytest.mark.sampled(daily=False)
def test_one_variable_does_not_hold_the_token_of_two_hosts(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless LMSCONF_ALLOWED_HOSTS lists both; LMSCONF_TOKEN alone is no token of a fleet."""
    fleet.write("lmsconf.yaml", "workspaces: {file: workspaces.csv, token: {env: LMSCONF_ALL}}\n")
    fleet.write("workspaces.csv", "name,url,labels\na,https://a.invalid,region=x\nb,https://b.invalid,region=x\n")
    monkeypatch.setenv("LMSCONF_TOKEN", "t")
    err = fleet.command("plan", code=1).err
    assert "LMSCONF_ALL would send one token to 2 hosts, such as a.invalid and b.invalid" in err
    monkeypatch.setenv("LMSCONF_ALLOWED_HOSTS", "a.invalid,b.invalid")
    out = fleet.command("plan", code=1).out
    assert "2 workspaces: failed with errors\n  a, b\n" in out
    assert out.count("LMSCONF_ALL is not set") == 1


SEEDED = "workspaces: {one: {url: 'sandbox:1.db', seed: seed.yaml}, two: {url: 'sandbox:2.db', seed: seed.yaml}}\n"
UNKNOWN = "smart_groups: [{name: Odd, only_in: [two], conditions: [{field: Size, choices: [M], system_condition: X}]}]"


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("manifest", "options", "effects"),
    [
        ("groups: [{name: Team, members: []}]", (), "2 workspaces: 4 people lose content (estimate)."),
        ("groups: [{name: Team, members: []}]", ("--no-effects",), "2 workspaces: not computed (--no-effects)."),
        (
            f"{UNKNOWN}\ngroups: [{{name: New, members: []}}]",
            (),
            "2 workspaces: nobody's access to content changes. Not known in 1 workspace: two.",
        ),
    ],
    ids=["known", "off", "unknown"],
)
def test_the_plans_of_a_fleet_tell_what_they_do_to_people(
    fleet: Fleet, manifest: str, options: tuple[str, ...], effects: str
) -> None:
    """Summed over all workspaces, in every view, and nothing more than is known."""
    fleet.write("seed.yaml", text_of(__file__, "fleet_people.yaml"))
    fleet.write("lmsconf.yaml", SEEDED)
    fleet.write("manifests/a.yaml", manifest + "\n")
    schema_validator("fleet").validate(fleet.plan(*options))
    for view in ("text", "markdown", "html"):
        assert f"Effects on people in {effects}" in fleet.show(view).replace("\\", "").replace("&#39;", "'")


@pytest.mark.sampled(daily=False)
def test_the_plans_of_a_fleet_tell_what_they_rest_on(fleet: Fleet) -> None:
    """Calls on what is assumed are counted over all plans, in one line of each view; what is known is left out."""
    fleet.plan()
    fleet.apply(code=0)
    fleet.write("manifests/a.yaml", "custom_fields: [{name: Department, choices: [Sales, Support], hidden: true}]\n")
    index = fleet.plan(out="next")
    schema_validator("fleet").validate(index)
    told = [(one["assumed_keys"], one["assumed_calls"]) for one in index["workspaces"]]
    assert told == [(["custom-fields.in-use"], 1)] * 3
    line = (
        "3 calls rest on 1 assumption that nobody has tried in 3 workspaces: custom-fields.in-use. "
        "Try it with: lmsconf doctor --probe --workspace NAME"
    )
    for view in ("text", "markdown", "html"):
        assert fleet.show(view, "next").replace("\\", "").count(line) == 1
    fleet.write("lmsconf.yaml", f"{PROJECT}dialect: {{custom-fields.in-use: condition}}\n")
    assert not any("assumed_keys" in one for one in fleet.plan(out="known")["workspaces"])


@pytest.mark.sampled(daily=False)
def test_the_plans_of_a_fleet_tell_weaker_settings(fleet: Fleet) -> None:
    """Each with the workspaces that have it, in every view."""
    fleet.write("lmsconf.yaml", PROJECT + "guards: {deletes: off}\nsettle: 0s\n")
    fleet.plan()
    for view in ("markdown", "html", "json"):
        assert "guards.deletes: off (default: 5 or 10%)" in fleet.show(view).replace("\\", "")
    out = fleet.show()
    assert "  guards.deletes: off (default: 5 or 10%), in 3 workspaces: alpha, beta, gamma\n" in out
    assert "Settings weaker than the default:\n" in out


@pytest.mark.sampled(daily=False)
def test_guards_count_over_the_fleet(fleet: Fleet) -> None:
    """The totals of all plans together stop before the first call, unless --allow names exactly that number."""
    fleet.plan()
    fleet.apply(code=0)
    fleet.write("lmsconf.yaml", PROJECT + "fleet_guards: {deletes: 2}\nguards: {deletes: {count: 5, share: off}}\n")
    fleet.write("manifests/a.yaml", 'absent: {groups: ["Team $(region)"]}\n')
    fleet.plan(out="next")
    err = fleet.apply(out="next", code=4).err
    assert "guard deletes of the fleet: in all 3 plans together, 3 deletes, and the limit is 2" in err
    assert not (fleet.root / "next" / "apply.json").exists()
    fleet.apply("--allow", "deletes=3", out="next", code=0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *((f"plan --shard {part}", "from 1 to N, and N at most 9,999") for part in ("0/2", "3/2", "x", "10000/10000")),
        ("plan --select ring=", "'ring=' is not a selector"),
        ("plan --select ring=none", "no workspace has these labels"),
        ("plan --select ring=canry", 'Did you mean "ring=canary"?'),
        ("plan --select workspace=alfa", 'Did you mean "workspace=alpha"?'),
        ("plan --select ring!=canary,ring!=main", "Give them `labels:`, or correct the selector."),
        ("plan --select 'workspace in (alpha,beta)'", "Sets, as in `ring in (a, b)`, are not supported."),
        ("plan --workspace alpha", "fleet works on many"),
        ("plan --trust-project url", "--trust-project needs --base"),
        ("plan --base HEAD --trust-project all", "--trust-project: there is no all"),
        ("plan --base HEAD --engine dask --scheduler tcp://127.0.0.1:1", "--base needs the project's"),
        # A plan has e-mails in it: without TLS it does not leave this machine, unless an option says so.
        ("plan --engine dask --scheduler tcp://10.0.0.5:8786", "would travel unencrypted to tcp://10.0.0.5:8786"),
        ("plan --engine dask --scheduler dask.example:1", "would travel unencrypted to tcp://dask.example:1"),
        ("plan --engine dask --scheduler ws://127.0.0.1:8786", "would travel unencrypted to ws://127.0.0.1:8786"),
        ("plan --scheduler tls://dask.example:8786", "Add --engine dask"),
        # What an engine would refuse, or its shell read in another way.
        ("matrix --format argo --shards 3", "--format argo needs --image"),
        ("matrix --format kubernetes --shards 3", "--format kubernetes needs --image"),
        ("matrix --format gitlab --shards 201", "at most 200 jobs of one matrix [usage]\n  Pass --shards 200.\n"),
        ("matrix --format github --shards 257", "is not in the range 1<=x<=256"),
        ("matrix --format gitlab --shards 3 --select '$(touch x)'", "is not a selector"),
        ("matrix --format gitlab --shards 30 --max-rate 2", "less than 0.1 for each of 30 jobs [usage]\n  Pass a high"),
    ],
)
def test_wrong_options(fleet: Fleet, words: str, message: str) -> None:
    """What cannot be meant is refused with a way out, before any workspace is read."""
    _, out, err = fleet.run("fleet", *shlex.split(words), code=64)
    assert out == ""
    assert message in err


@pytest.mark.sampled(daily=False)
def test_a_plan_in_place_of_the_reviewed_one_is_stale(fleet: Fleet) -> None:
    """The index has the digest of each reviewed plan, so another valid plan in its file is not applied."""
    fleet.plan()
    fleet.out.joinpath("alpha.plan.json").write_text(fleet.out.joinpath("beta.plan.json").read_text())
    assert "expected the digest" in fleet.apply("--select", "ring=canary", code=3).out


@pytest.mark.sampled(daily=False)
def test_a_worker_that_dies_loses_one_task(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed in the middle of a workspace is that workspace's result; another process goes on."""
    fleet.write(
        "lmsconf.yaml",
        "workspaces: {file: workspaces.csv, dead: {url: 'https://lms.invalid', token: {command: [sh, die.sh]},"
        " labels: {region: eu}}}\n",
    )
    fleet.write("die.sh", "kill -9 $PPID\n")
    monkeypatch.setenv("LMSCONF_TOKEN_COMMANDS", "allow")
    out = fleet.command("plan", code=1).out
    assert f"the process ended with {signal.Signals.SIGKILL.name}" in out
    assert "3 with changes, 0 without, 1 failed." in out


@pytest.mark.sampled(daily=False)
def test_a_bound_worker_ends_with_its_stdin(fleet: Fleet) -> None:
    """A process of a Dask worker that dies stops in the middle of its work."""
    task = FleetTask(workspace="alpha", action=FleetAction.VALIDATE, url="sandbox:")
    command = [sys.executable, "-m", "lmsconf.fleet.worker", str(fleet.root), BOUND]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write((msgspec.json.encode(task) + b"\n") * 200)
        worker.stdin.flush()
        worker.stdout.readline()
        worker.stdin.close()
        others = worker.stdout.read().count(b"\n")
    assert (worker.returncode, others < 199) == (-signal.SIGKILL, True)


@pytest.mark.sampled(daily=False)
def test_tests_are_named_and_workspaces_without_tests_are_counted(fleet: Fleet) -> None:
    """A failed test is shown by its name; a workspace that has no test is not counted as one that passes."""
    assert fleet.command("test", code=0).out == "3 workspaces: the tests of 0 pass, 3 without tests.\n"
    test = "{name: has people, audience: {group: Team eu}, size: {min: 1}, only_in: [alpha]}"
    fleet.write("manifests/t.yaml", f"tests:\n  - {test}\n")
    out = fleet.command("test", code=1).out
    assert out.startswith("3 workspaces: the tests of 0 pass, 2 without tests, 1 failed.\n")
    assert 'manifests/t.yaml:2:5: error: test "has people" fails: group/Team eu is empty [test/failed]\n' in out


# Comments about plans of hundreds of workspaces, most of which need the same changes.


def test_it_fits_a_comment() -> None:
    """The Markdown is complete within the size of a comment on GitHub, failures first, and names every workspace."""
    comment = fleet_markdown(large_fleet(), limit=parse_size_limit("github"))
    assert len(comment.encode()) < 10_000
    assert "Shortened" not in comment
    assert comment.index("cannot be reached") < comment.index("#### These 3 changes in 412 of 500 workspaces\n")
    assert all(f"`site-{number:03}`" in comment for number in range(435))
    assert "\\\\" not in comment  # nothing is escaped twice


def test_changes_come_before_long_lists_of_workspaces() -> None:
    """In a small comment of a large fleet, all changes are in full, and the first workspaces stand for the others."""
    comment = fleet_markdown(large_fleet(5_000, 4_900, 60), limit=parse_size_limit("20000"))
    assert len(comment.encode()) <= 20_000
    assert comment.count("choices: 1 added") == 4
    assert "`site-009`, … and 4,890 more\n" in comment
    assert "Shortened to fit 20,000 bytes" in comment


@pytest.mark.parametrize("limit", ["github", "bitbucket", "8000"])
def test_workspaces_that_all_differ_fit_a_comment(limit: str) -> None:
    """The first groups of changes have at least a heading, and the others are counted."""
    report = large_fleet(1_000, 1_000, 0, 0)
    (alike,) = report.shared
    each = [
        replace(alike, workspaces=(name,), changes=(replace(alike.changes[0], reason=name),))
        for name in alike.workspaces
    ]
    place = parse_size_limit(limit)
    comment = fleet_markdown(replace(report, shared=tuple(each)), limit=place)
    assert place.size is not None
    assert len(comment.encode()) <= place.size
    (left,) = re.findall(r"^… and (\d+) more groups of changes$", comment, re.MULTILINE)
    assert comment.count("#### This change in 1 of ") == 1_000 - int(left) >= place.size // 250
    assert "choices: 1 added" in comment
    assert "Shortened to fit" in comment


# `--engine dask`, without a scheduler, and without Dask.


class AnsweringClient:
    """A client of Dask whose only worker answers each task without running it. answers: those that are wrong."""

    answers: Mapping[str, object] = {}

    def __init__(self, *_: object, **__: object) -> None:
        self.wait_for_workers = self.close = self.run = self.release = self.clear = lambda *_, **__: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def nthreads(self) -> dict[str, int]:
        return {"tcp://127.0.0.1:1": 1}

    def submit(self, _: object, __: object, document: str, **___: object) -> Self:
        self.name = json.loads(document)["task"]["workspace"]
        return self

    def result(self) -> str:
        return json.dumps(self.answers.get(self.name, entry_of(self.name)))


def entry_of(workspace: str) -> dict[str, object]:
    """What a worker returns of a workspace in which all went well."""
    return {"entry": {"workspace": workspace, "url": "sandbox:", "labels": {}, "exit": 0}}


DASK = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The wrong answers of Dask's worker. In the configuration there is a scheduler."""
    config = SimpleNamespace(
        get=lambda key, default: {"scheduler-address": "tls://dask.example:8786"}.get(key, default)
    )
    distributed = SimpleNamespace(Client=AnsweringClient, Event=AnsweringClient)
    stand_ins = {"dask": SimpleNamespace(config=config), "dask.config": config, "distributed": distributed}
    for name, stand_in in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    monkeypatch.setattr(AnsweringClient, "answers", found := dict[str, object]())
    return found


@pytest.mark.usefixtures("answers")
def test_an_empty_scheduler_is_not_that_of_the_configuration(fleet: Fleet) -> None:
    """An unset variable of a script, `--scheduler "$DASK"`, sends plans nowhere."""
    err = fleet.command("plan", "--engine", "dask", "--scheduler", "", code=64).err
    assert "--engine dask needs the address of a scheduler" in err


def test_an_answer_without_a_result_loses_one_task(fleet: Fleet, answers: dict[str, object]) -> None:
    """The other workspaces have theirs."""
    answers["alpha"] = {}
    out = fleet.command("validate", *DASK, code=8).out
    assert out.startswith("3 workspaces: the manifests of 2 have no errors, 1 failed.\n")
    assert "the Dask scheduler has lost the task" in out


def test_what_was_applied_before_the_engine_fails_is_kept(fleet: Fleet, answers: dict[str, object]) -> None:
    """The results of the wave so far stand in apply.json, so that the next run does the rest."""
    fleet.plan()
    answers["beta"] = entry_of("gamma")
    assert "the result of another task than beta" in fleet.apply(*DASK, code=1).err
    assert fleet.exits() == {"alpha": 0}


def test_the_extra_is_named_where_it_is_missing(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask is no dependency of lmsconf: the message says how to install it."""
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "dask.config", None)
    err = fleet.command("plan", "--engine", "dask", "--scheduler", "tls://dask.example:8786", code=1).err
    assert "pip install 'lmsconf[dask]'" in err
