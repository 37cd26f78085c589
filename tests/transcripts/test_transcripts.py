"""Everything that a shell shows of whole changes, from the first plan to the undo, kept word for word.

A file has one case: what the project file adds, the workspace, the manifests, and after `>>>` the commands with their
output. first, after: more commands, before the plan and after the apply; then: manifests to plan after the apply.
meanwhile: what others do before the undo of that apply: manifests to apply, or commands, with RUN for its name.
`pytest tests/transcripts --update-golden` writes what follows `>>>`, and the difference is read.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from flow.shell import Ran, lmsconf
from wire.second_dialect import second_dialect

FILES: Final = sorted(Path(__file__).parent.glob("*.txt"))
_MARK: Final = ">>>\n"
_VARYING: Final = (
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{12}"), "RUN"),
    (re.compile(rf"\b{datetime.now(UTC).year}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"\b\d+(\.\d+)? (milli)?seconds?\b|\b\d+(\.\d+)? m?s\b"), "DURATION"),
)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_change_reads_as_recorded(tmp_path: Path, request: pytest.FixtureRequest, file: Path) -> None:
    """Reports, plans, calls, people, journals and the way back of one project are what its file shows."""
    given, _, told = file.read_text(encoding="utf-8").partition(_MARK)
    said = "".join(_played(tmp_path, yaml.safe_load(given)))
    if request.config.getoption("--update-golden"):
        file.write_text(given + _MARK + said, encoding="utf-8")
    elif said != told:
        pytest.fail("".join(unified_diff(told.splitlines(True), said.splitlines(True), "recorded", "shown")))


def _played(root: Path, case: Mapping[str, Any]) -> Iterator[str]:
    """The commands of a case with what they show."""
    _write_project(root, case)
    for command in case.get("first", []):
        yield from _shown(root, *shlex.split(command))
    yield from _shown(root, "drift", "--unmanaged", "--coverage")
    planned = lmsconf(root, "plan", "--out", "plan.json", "--people", "people.csv")
    yield from _told(root, ["plan", "--people", "people.csv"], planned)
    if planned.code:
        return
    yield f"$ cat people.csv\n{(root / 'people.csv').read_text(encoding='utf-8')}"
    plan = json.loads((root / "plan.json").read_text(encoding="utf-8"))
    yield from _calls(plan)
    yield from _shown(root, "apply", "plan.json", *_consents(plan))
    for manifests in case.get("then", []):
        _write_manifests(root, manifests)
        yield from _shown(root, "plan")
    for command in case.get("after", []):
        yield from _shown(root, *shlex.split(command))
    runs = sorted((root / ".lmsconf" / "runs").glob("*/*.jsonl"))
    if not runs:
        return
    for done in case.get("meanwhile", []):
        yield from _done(root, done, runs[-1].stem)
    undone = lmsconf(root, "plan", "--undo", runs[-1].stem, "--out", "undo.json")
    yield from _told(root, ["plan", "--undo", "RUN" if "meanwhile" in case else "latest", "--out", "undo.json"], undone)
    if undone.code == 0:
        undo = json.loads((root / "undo.json").read_text(encoding="utf-8"))
        yield from _calls(undo)
        yield from _shown(root, "apply", "undo.json", *_consents(undo))
        yield from _shown(root, "plan")


def _done(root: Path, done: str | Mapping[str, Any], run: str) -> Iterator[str]:
    """What others do after a run."""
    if isinstance(done, str):
        yield from _told(root, shlex.split(done), lmsconf(root, *shlex.split(done.replace("RUN", run))))
    else:
        _write_manifests(root, done)
        yield from _shown(root, "apply", "--auto-approve")


def _write_project(root: Path, case: Mapping[str, Any]) -> None:
    given = case.get("project") or {}
    spoken = {**(second_dialect() if case.get("dialect") == "second" else {}), **given.get("dialect", {})}
    workspaces = {"sandbox": {"url": "sandbox:workspace.db", "seed": "workspace.yaml"}}
    project = {"workspaces": workspaces, "timezone": "Europe/Stockholm", **given, "dialect": spoken}
    (root / "lmsconf.yaml").write_text(yaml.safe_dump(project), encoding="utf-8")
    (root / "workspace.yaml").write_text(yaml.safe_dump(case["workspace"], allow_unicode=True), encoding="utf-8")
    (root / "manifests").mkdir()
    for name, text in case.get("files", {}).items():
        (root / "manifests" / name).write_text(text, encoding="utf-8")
    _write_manifests(root, case["manifests"])


def _write_manifests(root: Path, manifests: Mapping[str, Any]) -> None:
    text = yaml.safe_dump(manifests, allow_unicode=True, sort_keys=False, width=200)
    (root / "manifests" / "all.yaml").write_text(text, encoding="utf-8")


def _consents(plan: Mapping[str, Any]) -> list[str]:
    tripped = [guard["allow"] for guard in plan["guards"] if guard["tripped"]]
    return ["--auto-approve", *(word for consent in tripped for word in ("--allow", consent))]


def _calls(plan: Mapping[str, Any]) -> Iterator[str]:
    for call in plan["calls"]:
        more = {key: call[key] for key in ("body", "query", "people", "needs", "may_be_refused") if call[key]}
        yield f"{call['id']} {call['method']} {call['path']} {json.dumps(more, ensure_ascii=False)}\n"


def _shown(root: Path, *arguments: str) -> Iterator[str]:
    yield from _told(root, arguments, lmsconf(root, *arguments))


def _told(root: Path, arguments: Any, ran: Ran) -> Iterator[str]:
    text = ran.out + ran.err
    for pattern, name in _VARYING:
        text = pattern.sub(name, text.replace(str(root), "."))
    yield f"$ lmsconf {' '.join(arguments)}\n{text}"
    if ran.code:
        yield f"(exit {ran.code})\n"
