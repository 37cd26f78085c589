"""Effects on people in every view: their order, what is not known, how they shorten, and what a page never holds."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from integrity.served_project import ServedProject, staged
from laws.sandbox_project import TransportConnection, VirtualClock
from msgspec.structs import replace
from texts import text_of
from views.document_samples import (
    CONTENTS,
    EVIL,
    LOSSES,
    NORDICS,
    PEOPLE,
    cause,
    content,
    counts,
)
from views.test_markdown import judged

from lmsconf.apply.run_plan import execute
from lmsconf.errors import ExitCode
from lmsconf.model.address import Address
from lmsconf.model.effects import Basis, GroupEffects, PersonEffect
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.project.settings import load_settings
from lmsconf.render import APPLY_VIEWS
from lmsconf.render.effects_wording import MOST_PEOPLE
from lmsconf.render.escape import MIN_LIMIT, SERVICE_LIMITS, SizeLimit
from lmsconf.render.html import plan_html
from lmsconf.render.markdown import plan_markdown
from lmsconf.render.text import plan_text
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

VIEWS = {"text": plan_text, "markdown": plan_markdown, "html": plan_html}


def plain(text: str) -> str:
    """What a reader reads: without the markup and escapes of a format."""
    text = re.sub(r"<[^>]*>", "", text.partition("<body>")[2] or text)
    return re.sub(r'[\\"*`]', "", text).replace("&#39;", "'")


def crowd(number: int, name: str = "Course") -> Plan:
    """A plan by which somebody loses each of many contents, through as many groups."""
    contents = tuple(
        content(
            f"{name} {n}",
            f"c-{n}",
            counts(lose=n + 1),
            *(cause(Address.of("group", f"{name} {m}"), lose=1) for m in range(n, n + 5)),
            people=(20_000, 19_999 - n, 19_999 - n),
        )
        for n in range(number)
    )
    groups = tuple(
        GroupEffects(address=Address.of("group", f"{name} {n}"), before=9, after=8, join=0, leave=1, basis=Basis.EXACT)
        for n in range(number)
    )
    return replace(PEOPLE, effects=replace(LOSSES, contents=contents, groups=groups))


@pytest.mark.sampled
@pytest.mark.parametrize("size", [MIN_LIMIT, 20_000, 65_536])
@pytest.mark.parametrize("name", ["Course", f"{EVIL}{'@x ' * 500}"], ids=["plain", "hostile"])
def test_many_contents_fit_a_comment(size: int, name: str) -> None:
    """However many and however named: the comment keeps to its size, counts the rest, and keeps the guard."""
    guards = tuple(replace(PEOPLE.guards[0], name=f"guard {n}", reason="@" * 400) for n in range(5))
    plan = replace(crowd(300, name), guards=(*PEOPLE.guards, *guards))
    text = plan_markdown(plan, limit=SizeLimit(size))
    assert len(text.encode()) <= size
    judged(text)
    assert "Effects on people:** 41 people lose content" in text
    assert re.search(r"… and \d+ more contents, in the table below", text)
    assert "Access changes: 300 contents" in text
    assert "lmsconf apply --allow people=53" in text
    assert "Plan: 0 to create, 2 to change" in text


@pytest.mark.sampled
def test_a_table_grows_with_the_room() -> None:
    """Ten rows, fifty, all: what is left out is counted."""
    plan = crowd(300)
    shown = [plan_markdown(plan, limit=SizeLimit(size)).count("| Course ") for size in (10_000, 40_000, 400_000)]
    assert shown == [10, 50, 300]
    text = plan_markdown(plan, limit=SizeLimit(10_000))
    assert "… and 290 more contents not listed here." in text
    assert "are complete" in text
    for limit in (SERVICE_LIMITS["none"], SERVICE_LIMITS["gitlab"]):
        assert plan_markdown(plan, limit=limit).count("| Course ") == 300


def test_the_text_lists_every_content() -> None:
    """Nothing is cut where there is no limit; causes beyond ten are counted."""
    text = plan_text(crowd(300))
    assert len(re.findall(r"^ +20,000 .* Course \d+$", text, re.MULTILINE)) == 300
    people = tuple(cause(Address.of("user", f"p{n}@acme.example"), lose=1) for n in range(500))
    many = replace(LOSSES, contents=(content("X", "c-1", counts(lose=500), *people, people=(500, 0, 0)),))
    assert "… and 490 more causes" in plan_text(replace(PEOPLE, effects=many))
    assert "and 497 more |" in plan_markdown(replace(PEOPLE, effects=many))
    page = plan_html(replace(PEOPLE, effects=many))
    assert "500 causes" in page
    assert "and 480 more" in page


@pytest.mark.sampled
def test_a_page_folds_long_tables_and_stays_within_bounds() -> None:
    """A hundred rows are open, the others folded; beyond 2,000 the page says where the rest is."""
    page = plan_html(crowd(2_500))
    rows, folded = page.partition("1,900 more contents")[::2]
    assert rows.count('<th scope="row"><span class="name">Course') == 100
    assert "500 more are not listed here; `lmsconf show PLAN --format json` has all." in folded.replace("&#96;", "`")
    assert len(page) < 8_000_000


def test_a_page_has_people_only_if_they_were_asked_for() -> None:
    """With the rows of --people it has them, a search and a warning; with none, or too many, it names nobody."""
    page = plan_html(replace(PEOPLE, effects=replace(LOSSES, rows=(ROW,))))
    assert page.count("canary@acme.example") == 1
    assert 'id="people-search"' in page
    assert "This page contains e-mails of people" in page
    without = plan_html(PEOPLE)
    many = plan_html(replace(PEOPLE, effects=replace(LOSSES, rows=(ROW,) * (MOST_PEOPLE + 1))))
    for other in (without, many):
        assert "canary" not in other
        assert 'id="people-search"' not in other
        assert "This page contains e-mails of people" not in other
    assert "5,001 changes of access are too many for a page" in many


def test_names_of_people_stay_text() -> None:
    """An e-mail or a cause that is markup is shown as it is written."""
    evil = replace(ROW, email=f"{EVIL}<script>", content=EVIL, causes=(EVIL, "<img src=x>"), until_before="<b>")
    page = plan_html(replace(PEOPLE, effects=replace(LOSSES, rows=(evil,))))
    table = page.partition('id="people-rows"')[2].partition("</tbody>")[0]
    assert re.findall(r"<(\w+)", table) == ["tr", "th", "td", "td", "td", "td", "td"]
    assert "&lt;script&gt;" in table


ROW = PersonEffect(
    email="canary@acme.example",
    content="GDPR basics",
    content_id=CONTENTS[0].id,
    change="lose",
    before="optional",
    after="none",
    from_before=None,
    until_before=None,
    from_after=None,
    until_after=None,
    shortened=False,
    causes=(str(NORDICS),),
)


@pytest.mark.parametrize("view", ["text", "markdown"])
def test_only_a_page_can_have_people(view: str) -> None:
    """Text and comments have none, also when they were computed."""
    plan = replace(PEOPLE, effects=replace(LOSSES, rows=(ROW,)))
    assert "canary" not in VIEWS[view](plan)
    assert VIEWS[view](plan) == VIEWS[view](PEOPLE)


# What reports of real runs on the embedded workspace say where it is easy to say too much.


SEED = text_of(__file__, "effects_seed.yaml")
PEOPLES = ("text", "markdown", "html")


class FaultyTransport(httpx.BaseTransport):
    """A way to the workspace on which one operation goes wrong each time: `ignored`, `doubled` or `cut`."""

    def __init__(self, sandbox: Sandbox, operation: str, how: str) -> None:
        self.sandbox, self.operation, self.how = sandbox, operation, how

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        operation, _ = self.sandbox.spec.match_route(request.method, request.url.path) or (None, {})
        if operation is not None and operation.id == self.operation:
            if self.how == "cut":
                raise httpx.ReadError("cut")
            if self.how == "ignored":
                return httpx.Response(200, json={})
            self.sandbox.handle_request(request)
        return self.sandbox.handle_request(request)


def applied(root: Path, manifests: str, operation: str, how: str) -> ApplyReport:
    """The report of an apply during which that operation goes wrong so."""
    (root / "seed.yaml").write_text(SEED, encoding="utf-8")
    (root / "lmsconf.yaml").write_text("workspaces: {sandbox: {url: 'sandbox:'}}\n", encoding="utf-8")
    (root / "manifests").mkdir()
    (root / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")
    sandbox = fill_if_empty(Sandbox(), root / "seed.yaml")
    try:
        settings, link = (
            load_settings(root, None, {}),
            TransportConnection(FaultyTransport(sandbox, operation, how), sandbox.spec),
        )
        workspace = WorkspaceReader(settings=settings, connection=link, timing=VirtualClock().timing())
        return execute(workspace, workspace.plan(load_manifests(settings), settings.policy), meta={})
    finally:
        sandbox.close_workspace()


@pytest.mark.parametrize("view", PEOPLES)
def test_what_was_accepted_without_effect_is_not_complete(tmp_path: Path, view: str) -> None:
    """Every call was accepted and one did nothing: no format says complete, and each says how much differs."""
    report = applied(tmp_path, "groups: [{name: New, previously: [Old]}]", "manual-groups.rename", "ignored")
    assert report.exit == ExitCode.NOT_CONVERGED
    said = APPLY_VIEWS[view](report)
    assert "Apply ended, but the workspace is not as planned: 1 resource differs (1 API call done)." in said
    assert "complete" not in said


@pytest.mark.parametrize("view", PEOPLES)
def test_what_came_twice_is_counted_as_an_error(tmp_path: Path, view: str) -> None:
    """Nothing differs that a plan could mend, so the errors are counted, and not the resources."""
    report = applied(tmp_path, "groups: [{name: New}]", "manual-groups.create", "doubled")
    assert (report.exit, report.residue) == (ExitCode.NOT_CONVERGED, ())
    said = APPLY_VIEWS[view](report)
    assert "Read back: the workspace does not match the manifests; a new plan finds 1 error." in said
    assert "not as planned: a new plan finds 1 error (1 API call done)." in said
    assert "0 resources" not in said


@pytest.mark.sampled
@pytest.mark.parametrize("view", PEOPLES)
def test_a_lost_answer_may_have_done_something(tmp_path: Path, view: str) -> None:
    """Where the only call's answer never came, no format claims that nothing was done."""
    report = applied(tmp_path, "groups: [{name: New}]", "manual-groups.create", "cut")
    assert report.exit == ExitCode.PARTIAL
    said = APPLY_VIEWS[view](report)
    assert "Apply stopped. It is not known whether anything was done: none of 1 API call is confirmed." in said
    assert "before anything" not in said


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch) as stage:
        yield stage


@pytest.mark.parametrize("view", PEOPLES)
def test_a_snapshot_shows_no_name_of_ours(stage: ServedProject, view: str) -> None:
    """What a snapshot keeps beside the resources is told in an administrator's words."""
    saved = stage.root / "snapshot.json"
    assert stage("snapshot", str(saved)).code == 0
    ran = stage("show", str(saved), "--format", view, code=0)
    assert "1 choice that somebody holds" in ran.out
    assert "1 person with administrator rights" in ran.out
    assert "holders" not in ran.out
