"""A workspace of sixty people, two contents and groups of either kind, on disk; and how an apply of it is stopped."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from flow.altered_service import Edit, connected
from flow.project import Project
from flow.shell import Ran, lmsconf
from msgspec.structs import replace
from texts import text_of

from effects.evaluator import LONG_PAGES, Look, look
from lmsconf.model.plan import Plan
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

CROWD: Final = [f"p{number:02}@acme.example" for number in range(60)]
QUIET: Final = "guards: {deletes: off, removals: off, recreates: off, refusals: off, answers: off, updates: off}\n"
"""No guard but those by people, so that nothing else stops an apply."""


def some(start: int, end: int) -> str:
    """A list of people in YAML."""
    return "[" + ", ".join(CROWD[start:end]) + "]"


def people(number: int = 60) -> str:
    """The fields and the people: half of them answer A, half B; each tenth also has the skill x."""
    return """
custom_fields:
  - {name: Dept, type: CHOICE, choices: [A, B, C]}
  - {name: Skills, type: MULTI_SELECT, choices: [x, y]}
people:
  - {email: root1@acme.example, admin: true}
  - {email: root2@acme.example, admin: true}
""" + "".join(
        f"  - {{email: p{n:02}@acme.example, answers: {{Dept: {'AB'[n % 2]}, Skills: [{'yx'[n % 10 > 0]}]}}}}\n"
        for n in range(number)
    )


def day(**passed: float) -> str:
    """A time that far from now, for a manifest."""
    return (datetime.now(UTC) + timedelta(**passed)).isoformat(timespec="seconds").replace("+00:00", "Z")


def filled(text: str) -> str:
    """A text of a table: `<people 0-5>`, `<numbers 0-5>` are lists, `<in 2 days>` a time, `<60 people>` of a seed."""
    text = re.sub(r"<people (\d+)-(\d+)>", lambda found: some(int(found[1]), int(found[2])), text)
    text = re.sub(
        r"<numbers (\d+)-(\d+)>", lambda found: str([f"{n:02}" for n in range(int(found[1]), int(found[2]))]), text
    )
    text = re.sub(r"<in (-?\d+) (\w+)>", lambda found: day(**{found[2]: float(found[1])}), text)
    return re.sub(r"<(\d+) people>", lambda found: people(int(found[1])), text)


SEED: Final = filled(text_of(__file__, "crowd_seed.yaml"))


def project(folder: Path, text: str, *, options: str = "", seed: str = SEED) -> Project:
    """A project with that manifest. What follows a line `--- NAME` is another file: of manifests, settings or seed."""
    manifest, *more = re.split(r"^--- (.+)\n", filled(text), flags=re.MULTILINE)
    files = {"all.yaml": manifest, **dict(zip(more[::2], more[1::2], strict=True))}
    it = Project(folder, files.pop("workspace.yaml", seed), QUIET + options + files.pop("lmsconf.yaml", ""))
    for name, content in files.items():
        (folder / "manifests" / name).parent.mkdir(exist_ok=True)
        it.write(content, name)
    it.ask("custom-fields.list")  # the first connection fills the workspace
    return it


def seen(it: Project) -> Look:
    """The workspace behind the project, as it is on disk, and as its API tells it in long pages."""
    sandbox = Sandbox(str(it.settings.workspace.database), spec=it.spec.with_values(LONG_PAGES))
    try:
        return look(partial(answered, sandbox))
    finally:
        sandbox.close_workspace()


def answered(sandbox: Sandbox, path: str, query: str = "", body: object = None) -> dict[str, Any]:
    """One answer of a sandbox: of a GET, or of a POST where there is a body."""
    headers = {"authorization": "Bearer sandbox", "content-type": "application/json"}
    sent = b"" if body is None else json.dumps(body).encode()
    answer = sandbox.answer("GET" if body is None else "POST", path, query, headers, sent)
    assert answer.status == 200, answer
    found: dict[str, Any] = json.loads(answer.body)
    return found


def applied(it: Project, *allow: str, more: tuple[str, ...] = ()) -> Ran:
    """An apply of the manifests with those consents."""
    return lmsconf(it.root, "apply", "--auto-approve", *more, *(word for one in allow for word in ("--allow", one)))


def document(it: Project, *more: str) -> dict[str, Any]:
    """The plan as JSON."""
    return lmsconf(it.root, "plan", "--format", "json", *more, code=0).document


def plan_of_people(it: Project, edits: Mapping[str, Edit]) -> Plan:
    """The plan with the rows of `--people` where the service answers as the edits say."""
    settings = it.settings
    with connected(it, edits) as connection:
        workspace = WorkspaceReader(settings=settings, connection=connection)
        return workspace.plan(load_manifests(settings), replace(settings.policy, people=True))


def guard(plan: Mapping[str, Any], name: str = "people") -> dict[str, Any]:
    """One guard of a plan."""
    return only(plan["guards"], name=name)


def only(rows: Iterable[dict[str, Any]], **said: str) -> dict[str, Any]:
    """The only row that says so."""
    (found,) = (row for row in rows if said.items() <= row.items())
    return found
