"""Effects on people in every view: their order, what is not known, how they shorten, and what a page never holds."""

import re
from pathlib import Path

import pytest
from integrity.served_project import staged
from msgspec.structs import replace
from texts import text_of
from views.document_samples import CONTENTS, EVIL, LOSSES, PEOPLE, ROW
from views.test_markdown import judged

from lmsconf.errors import ExitCode
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.effects import AccessCounts, Basis, CauseCount, ContentEffects, GroupEffects
from lmsconf.model.plan import Plan
from lmsconf.render.effects_wording import MOST_PEOPLE
from lmsconf.render.escape import MIN_LIMIT, SERVICE_LIMITS, SizeLimit
from lmsconf.render.html import plan_html
from lmsconf.render.markdown import plan_markdown
from lmsconf.render.text import plan_text
from lmsconf.sandbox.service import LoggedRequest

VIEWS = {"text": plan_text, "markdown": plan_markdown, "html": plan_html}


def losses(name: str, number: int, *causes: Address) -> ContentEffects:
    """A content that so many lose, each through every cause."""
    return replace(
        CONTENTS[0],
        content=name,
        id=RemoteId(f"c-{number}"),
        before=20_000,
        after=20_000 - number,
        keep=20_000 - number,
        counts=AccessCounts(**{**dict.fromkeys(AccessCounts.__struct_fields__, 0), "lose": number}),
        basis=Basis.EXACT,
        progress=None,
        certificates_expiring=None,
        causes=tuple(CauseCount(address=cause, gain=0, lose=1) for cause in causes),
    )


def crowd(number: int, name: str = "Course") -> Plan:
    """A plan by which somebody loses each of many contents, through as many groups."""
    at = [Address.of("group", f"{name} {n}") for n in range(number + 5)]
    contents = tuple(losses(f"{name} {n}", n + 1, *at[n : n + 5]) for n in range(number))
    groups = tuple(
        GroupEffects(address=one, before=9, after=8, join=0, leave=1, basis=Basis.EXACT) for one in at[:number]
    )
    return replace(PEOPLE, effects=replace(LOSSES, contents=contents, groups=groups))


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("size", [MIN_LIMIT, 20_000, 65_536])
@pytest.mark.parametrize("name", ["Course", f"{EVIL}{'@x ' * 500}"], ids=["plain", "hostile"])
def test_many_contents_fit_a_comment(size: int, name: str) -> None:
    """However many and however named: the comment keeps to its size, counts the rest, and keeps the guard."""
    guards = tuple(replace(PEOPLE.guards[0], name=f"guard {n}", reason="@" * 400) for n in range(5))
    text = plan_markdown(replace(crowd(300, name), guards=(*PEOPLE.guards, *guards)), limit=SizeLimit(size))
    assert len(text.encode()) <= size
    judged(text)
    assert "Effects on people:** 41 people lose content" in text
    assert re.search(r"… and \d+ more contents, in the table below", text)
    assert "Access changes: 300 contents" in text
    assert "lmsconf apply --allow people=53" in text
    assert "Plan: 0 to create, 2 to change" in text


@pytest.mark.sampled(daily=False)
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
    assert len(re.findall(r"^ +20,000 .* Course \d+$", plan_text(crowd(300)), re.MULTILINE)) == 300
    people = [Address.of("user", f"p{n}@acme.example") for n in range(500)]
    many = replace(LOSSES, contents=(losses("X", 500, *people),))
    assert "… and 490 more causes" in plan_text(replace(PEOPLE, effects=many))
    assert "and 497 more |" in plan_markdown(replace(PEOPLE, effects=many))
    page = plan_html(replace(PEOPLE, effects=many))
    assert "500 causes" in page
    assert "and 480 more" in page


@pytest.mark.sampled(daily=False)
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
    many = plan_html(replace(PEOPLE, effects=replace(LOSSES, rows=(ROW,) * (MOST_PEOPLE + 1))))
    for other in (plan_html(PEOPLE), many):
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


@pytest.mark.parametrize("view", ["text", "markdown"])
def test_only_a_page_can_have_people(view: str) -> None:
    """Text and comments have none, also when they were computed."""
    plan = replace(PEOPLE, effects=replace(LOSSES, rows=(ROW,)))
    assert "canary" not in VIEWS[view](plan)
    assert VIEWS[view](plan) == VIEWS[view](PEOPLE)


# What reports of real runs, and snapshots, say where it is easy to say too much.


SEED = text_of(__file__, "effects_seed.yaml")


def test_what_came_twice_is_counted_as_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing differs that a plan could mend, so the errors are counted, and not the resources."""

    def make_twin(call: LoggedRequest) -> None:
        if [one for one in stage.sandbox.log if one.operation == "manual-groups.create"] == [call]:
            stage.hand("manual-groups.create", body={"name": "New"})

    with staged(tmp_path, SEED, monkeypatch, on_log=make_twin) as stage:
        stage.write("groups: [{name: New}]")
        report = str(tmp_path / "report.json")
        stage("apply", "--auto-approve", "--format", "json", "--output", report, code=ExitCode.NOT_CONVERGED)
        for view in VIEWS:
            shown = stage("show", report, "--format", view).out
            assert "Read back: the workspace does not match the manifests; a new plan finds 1 error." in shown
            assert "not as planned: a new plan finds 1 error (1 API call done)." in shown
            assert "0 resources" not in shown


def test_a_snapshot_shows_no_name_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a snapshot keeps beside the resources is told in an administrator's words."""
    with staged(tmp_path, SEED, monkeypatch) as stage:
        saved = str(tmp_path / "snapshot.json")
        stage("snapshot", saved, code=0)
        for view in VIEWS:
            shown = stage("show", saved, "--format", view, code=0).out
            assert "1 choice that somebody holds" in shown
            assert "1 person with administrator rights" in shown
            assert "holders" not in shown
