"""The calls that plans of custom fields come to, and what they tell of answers that move and of odd groups."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import lmsconf
from manifest.cases import Case, cases
from texts import text_of

# The calls that create, change and delete custom fields, with what they wait for: tests/golden/fields_….txt.


HERE = Path(__file__).parent
SEED = text_of(__file__, "field_calls_seed.yaml")


def shown(it: Project, manifests: str, more: dict[str, object]) -> str:
    """Each call of the plan, and after which others it is sent; then what may stop it."""
    plan = it.plan(manifests, **more)
    lines = []
    for call in plan.calls:
        after = f" after {', '.join(call.needs)}" if call.needs else ""
        tried = ", may be refused" if call.may_be_refused else ""
        lines.append(f"{call.id}{after}{tried}: {call.method} {call.path} ({call.address})")
        if call.body is not None:
            lines.append(f"    {json.dumps(call.body, default=str)}")
    for problem in (one for one in plan.all_problems if not one.code.startswith("lint/")):
        lines.append(f"{problem.source or '-'}: {problem.message} [{problem.code}]\n    {problem.hint}")
    return "\n".join([*lines, ""])


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("case", cases(HERE / "field_calls.txt"), ids=lambda case: case.title)
def test_the_calls_of_fields(tmp_path: Path, case: Case, golden: Callable[[str, str], None]) -> None:
    """A field is replaced as a whole, by as few calls as its smart groups and names allow."""
    golden(f"fields_{case.title}.txt", shown(Project(tmp_path, SEED, case.told), case.text, {}))


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("case", cases(HERE / "field_slots.txt"), ids=lambda case: case.title)
def test_the_calls_of_ten_fields(tmp_path: Path, case: Case, golden: Callable[[str, str], None]) -> None:
    """A workspace has at most ten: a new one waits for a deletion, or is refused."""
    number, *options = case.told.split()
    fields = "".join(f"  - {{name: K{n}, type: TEXT}}\n" for n in range(int(number)))
    it = Project(tmp_path, SEED.replace("smart_groups:", f"{fields}smart_groups:"), "guards: off\n")
    more = {"additive": options == ["additive"], "excluded": tuple(options[1:])}
    golden(f"fields_{case.title}.txt", shown(it, case.text, more))


# What `plan` prints of fields whose answers move to another one: tests/golden/migration_….txt.


PROJECT = """\
workspaces: {sandbox: {url: "sandbox:", seed: workspace.yaml}}
leave_alone: [user/gus@x.se]
"""
MIGRATIONS_SEED = text_of(__file__, "field_calls_migrations_seed.yaml")


@pytest.mark.sampled
@pytest.mark.parametrize("case", cases(HERE / "migrations.txt"), ids=lambda case: case.title)
def test_a_plan_says_which_answers_move(tmp_path: Path, case: Case, golden: Callable[[str, str], None]) -> None:
    """It names what is not copied and why, what is deleted, and what to change in the manifest."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "workspace.yaml").write_text(MIGRATIONS_SEED)
    (tmp_path / "manifests" / "all.yaml").write_text(case.text)
    ran = lmsconf(tmp_path, "plan", *case.told.split())
    text = re.sub(r"Digest: .*", "Digest: …", ran.out + ran.err)
    golden(f"migration_{case.title}.txt", f"{text}[exit {ran.code}]\n")


# What `validate` and `plan` find in groups, smart groups and fields: tests/golden/lints_….txt.


LINT_TEXTS_SEED = text_of(__file__, "field_calls_lint_texts_seed.txt")
MORE = "  - {email: cai@x.se, answers: {Country: SE}}\n  - {email: old@x.se, archived: true}"
MANIFEST = (HERE / "odd_groups.yaml").read_text(encoding="utf-8")
SIXTY = {
    "many": LINT_TEXTS_SEED.replace("MORE", MORE),
    "two": LINT_TEXTS_SEED.replace("MORE", "  - {email: old@x.se, archived: true}"),
    "one": LINT_TEXTS_SEED.replace("MORE", "  - {email: old@x.se, archived: true}").replace(
        "a@x.se, ans", "a@x.se, archived: true, ans"
    ),
}


@pytest.mark.parametrize("people", SIXTY)
def test_a_plan_tells_what_is_odd_about_groups(tmp_path: Path, people: str, golden: Callable[[str, str], None]) -> None:
    """Conditions that nobody or everybody meets, the audience of another group, and no active manager."""
    plan = Project(tmp_path, SIXTY[people]).plan(MANIFEST)
    found = [one for one in plan.all_problems if one.code.startswith("lint/")]
    lines = [f"{one.source}: {one.severity}: {one.message} [{one.code}]\n    {one.hint}\n" for one in found]
    golden(f"lints_{people}.txt", "".join(lines))


def test_validate_tells_what_is_odd_about_groups(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """What shows without a workspace: of a field whose type is not declared nothing is known."""
    it = Project(tmp_path, SIXTY["many"])
    it.write(MANIFEST)
    golden("lints_validate.txt", lmsconf(it.root, "validate").err)
