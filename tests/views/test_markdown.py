"""Markdown for a comment: what it tells first, how it shortens, and that CommonMark takes it as it is meant."""

import re
from collections import Counter
from pathlib import Path

import jinja2
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace
from texts import listed_cases
from views.document_samples import CREATE, DELETE, EMPTY, EVIL, HOSTILE, PLANS, REPORTS, UPDATE
from views.drift_samples import DRIFTS, large

import lmsconf
from lmsconf.cli.terminal import wrap_prose
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem, Severity, UsageError
from lmsconf.model.address import Address
from lmsconf.model.plan import Action, Plan, PlanScope, SettingChange
from lmsconf.render import PLAN_VIEWS, jinja
from lmsconf.render.escape import MIN_LIMIT, SERVICE_LIMITS, SizeLimit, parse_size_limit
from lmsconf.render.markdown import apply_markdown, comment_marker, drift_markdown, plan_markdown
from lmsconf.render.plan_wording import plan_summary
from lmsconf.render.resource_wording import kind_nouns
from lmsconf.render.text import colorize, plan_text

pytestmark = pytest.mark.sampled(day=8)

READER = MarkdownIt("commonmark").enable("table")
OPENING = re.compile(r"^```+(?=[a-z]+$)", re.MULTILINE)
WRITTEN_ITSELF = {"diff", "sh", "yaml"}


@pytest.fixture(scope="module")
def ten_thousand() -> Plan:
    """A plan of 10,000 changes."""
    return large(10_000)


def size(text: str) -> int:
    return len(text.encode())


def judged(text: str) -> list[Token]:
    """The blocks of a text, in which every fence is one, ends, and what is folded up is folded up whole."""
    tokens = READER.parse(text)
    fences = [token for token in tokens if token.type == "fence"]
    assert {token.info for token in fences} <= WRITTEN_ITSELF
    assert len(fences) == len(OPENING.findall(text))
    lines = text.splitlines()
    for token in fences:
        assert token.map is not None
        assert lines[token.map[1] - 1] == token.markup, "a fence ends where its marks say so"
        signs = {line[:1] for line in token.content.splitlines()}
        assert token.info != "diff" or signs <= {"+", "-", " "}
    depth = 0
    for token in tokens:
        if token.type == "html_block":
            for tag in re.findall(r"</?details>", token.content):
                depth += 1 if tag == "<details>" else -1
                assert depth >= 0
    assert depth == 0
    assert not [token for token in tokens if token.type == "code_block"]
    headings = sum(token.type == "heading_open" for token in tokens)
    assert headings == len(re.findall(r"^#{3,4} ", text, re.MULTILINE)), "no heading is lost in another block"
    return tokens


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("place", [place for place, room in SERVICE_LIMITS.items() if room.size])
def test_ten_thousand_changes_fit_every_place(place: str, ten_thousand: Plan) -> None:
    """Whatever the place, the comment is no longer than it may be, whole blocks, and counts every deletion."""
    text = plan_markdown(ten_thousand, limit=SERVICE_LIMITS[place])
    assert size(text) <= (SERVICE_LIMITS[place].size or 0)
    judged(text)
    deleted = Counter(change.address.kind for change in ten_thousand.changes if change.action is Action.DELETE)
    for kind, number in deleted.items():
        assert f"{number:,} {kind_nouns(kind)[1]}" in heading(text, "Deleted")
        assert re.search(rf"^\| {kind_nouns(kind)[1]} \| {number:,} \|", text, re.MULTILINE)
    assert plan_summary(ten_thousand) in text
    assert plan_digest(ten_thousand) in text
    assert "lmsconf apply --allow deletes=2 --allow removals=27" in text


def heading(text: str, word: str) -> str:
    (found,) = re.findall(rf"^#### {word}.*", text, re.MULTILINE)
    return str(found)


def test_what_is_not_listed_is_counted(ten_thousand: Plan) -> None:
    """In a section that is cut short, rows and the rest that is only counted make up all of it."""
    section = plan_markdown(ten_thousand, limit=SERVICE_LIMITS["github"]).split("#### Deleted")[1].split("####")[0]
    rows = section.count("will be deleted")
    (rest,) = re.findall(r"… and (.*) not listed here", section)
    assert rows > 300
    assert rows + sum(int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?= )", rest)) == 2_000


def test_risk_gets_the_room() -> None:
    """From detail to rows to counts: what is deleted is still told when what is created is only counted."""
    plan = large(300)
    texts = [plan_markdown(plan, limit=SizeLimit(size)) for size in [6_000, 20_000, 40_000, 80_000, 1_000_000]]
    told = [[text.count(f"will be {word}") + folded(text, sign) for text in texts]
            for word, sign in (("deleted", "-"), ("created", "+"))]  # fmt: skip
    assert told[0] == sorted(told[0])
    assert told[1] == sorted(told[1])
    for deleted, created in zip(*told, strict=True):
        assert created == 0 or deleted == 60
    assert told[1][-1] == 120


def folded(text: str, sign: str) -> int:
    return text.count(f"<summary><code>{sign}</code> <code>")


@pytest.mark.parametrize("limit", [SERVICE_LIMITS["none"], SERVICE_LIMITS["bitbucket"], SizeLimit(MIN_LIMIT)], ids=str)
@pytest.mark.parametrize(
    "text",
    [
        *((plan_markdown, plan) for plan in PLANS.values()),
        *((apply_markdown, report) for report in REPORTS.values()),
        *((drift_markdown, drift) for drift in DRIFTS.values()),
    ],
    ids=[*PLANS, *REPORTS, *(f"drift-{name}" for name in DRIFTS)],
)
def test_every_sample_is_whole_blocks(text: tuple[object, object], limit: SizeLimit) -> None:
    """Plans, reports and drift, hostile names among them, break no block, and are as short as they must be."""
    view, value = text
    shown = view(value, limit=limit)
    judged(shown)
    assert limit.size is None or size(shown) <= limit.size
    assert limit.folds or "<details>" not in shown


def test_long_names_cost_no_deletion() -> None:
    """Names of any length leave room for the counts."""
    long = tuple(
        replace(change, address=Address.of("group", f"{EVIL}{'@x ' * 5_000}{n}"))
        for n, change in enumerate(DELETE.changes * 20)
    )
    plan = replace(DELETE, workspace="w" * 9_000, url="@" * 9_000, changes=long, calls=())
    text = plan_markdown(plan, limit=SizeLimit(MIN_LIMIT))
    assert size(text) <= MIN_LIMIT
    assert "40 groups" in heading(text, "Deleted")
    judged(text)


@pytest.mark.parametrize("limit", [MIN_LIMIT, 65_536])
def test_changed_settings_take_a_part_of_the_room(limit: int) -> None:
    """Weaker settings stand first and say so although their values are long, and what does not fit is counted."""
    weaker = SettingChange(path="guards.protect", base=["group/A" * 999], now=[], weaker=True)
    others = [SettingChange(path=f"vars.{n:03}", base=None, now="x" * 999, weaker=False) for n in range(500)]
    text = plan_markdown(replace(DELETE, base="main", settings_changed=(*others, weaker)), limit=SizeLimit(limit))
    assert size(text) <= limit
    listed = text.split("**Settings changed:**\n\n")[1].split("\n\n")[0].splitlines()
    assert listed[0].startswith("- guards\\.protect: ")
    assert listed[0].endswith("…, which is weaker")
    assert listed[-1] == f"- … and {502 - len(listed)} more, which `--format html` and `--format json` list"
    assert "#### Deleted" in text
    judged(text)


def test_the_marker_finds_the_comment_again() -> None:
    """The first line is the same whenever the same workspace is planned, and never ends the comment that it is."""
    first = f"{comment_marker('plan', 'production')}\n"
    assert plan_markdown(CREATE).startswith(first)
    assert plan_markdown(UPDATE).startswith(first)
    assert first == "<!-- lmsconf:plan:production -->\n"
    for name in ("--> <b>", "a--b", "-", EVIL):
        assert comment_marker("plan", name).count("--") == 2
        assert ">" not in comment_marker("plan", name)[:-1]


def test_a_plan_that_can_be_applied_says_how() -> None:
    """The line names the digest and the consents; a plan that cannot be applied so has none."""
    assert f"\nlmsconf apply --expect-digest {plan_digest(CREATE)}\n" in plan_markdown(CREATE)
    refused = Problem(code="refusal/protected", message="it is protected")
    warned = replace(refused, severity=Severity.WARNING)
    for plan in (replace(DELETE, offline=False), replace(CREATE, problems=(warned,))):
        assert "--expect-digest" in plan_markdown(plan)
    for plan in (DELETE, UPDATE, EMPTY, replace(CREATE, problems=(refused,))):
        assert "--expect-digest" not in plan_markdown(plan)


@pytest.mark.parametrize("text", ["nowhere", "", "-1", "1e5", "٣", str(MIN_LIMIT - 1)])
def test_a_budget_is_a_place_or_a_number(text: str) -> None:
    """Another word, or a number too small for a summary, is refused."""
    with pytest.raises(UsageError, match=r"bytes"):
        parse_size_limit(text)
    assert parse_size_limit(str(MIN_LIMIT)) == SizeLimit(MIN_LIMIT)


def test_what_has_no_room_is_counted() -> None:
    """Where there is no room for each of 1,200 removed managers they are counted."""
    short = plan_markdown(UPDATE, limit=SizeLimit(MIN_LIMIT))
    assert "managers: 1,200 removed" in short or "<b>−1,201</b>" in short  # noqa: RUF001  # as the view writes it


# What the views promise of any plan, beyond the golden samples.


def test_nothing_to_do() -> None:
    """An empty plan says so; one that did not look at everything does not speak for the workspace."""
    assert "\nNo changes. The workspace matches the manifests.\n" in plan_text(EMPTY)
    assert "The workspace matches" not in plan_text(replace(EMPTY, selection=PlanScope(only=("group/A",))))
    additive = plan_text(replace(EMPTY, left_out=(Address("group", "A"),)))
    assert "\nNo changes. This plan only adds (--additive), and leaves out 1 change.\n" in additive
    assert "matches" not in additive
    assert "matches" not in plan_text(replace(EMPTY, problems=HOSTILE.problems))


@pytest.mark.parametrize(
    ("by", "line"),
    [
        ("--allow", "lmsconf apply --allow deletes=2 --allow removals=27"),
        ("The interns left", "lmsconf apply --allow removals=27"),
    ],
)
@pytest.mark.parametrize("view", ["text", "markdown", "html"])
def test_the_line_to_paste_keeps_what_was_allowed(view: str, by: str, line: str) -> None:
    """What the command line allowed stands in the next one too; what the project file allows need not."""
    deletes, removals, *others = DELETE.guards
    given = replace(deletes, tripped=False, allowed_by=by)
    assert f"{line}\n" in PLAN_VIEWS[view](replace(DELETE, guards=(given, removals, *others))).replace("</pre>", "\n")


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_color_changes_no_word(plan: Plan) -> None:
    """Colour is added to the plain text; without its codes the text is the same."""
    plain, painted = plan_text(plan), colorize(plan_text(plan))
    assert painted != plain
    assert re.sub("\x1b\\[[0-9]+m", "", painted) == plain


# Text on a terminal of some width: prose is wrapped at words, and what may be copied keeps its lines.


@listed_cases("line", "wrapped")
def test_a_line_is_wrapped_at_words(line: str, wrapped: str) -> None:
    """On twenty columns; a following line is indented by two more."""
    assert wrap_prose(f"{line}\n{line}", 20) == f"{wrapped}\n{wrapped}"


# The templates of pages and comments: they compile, know all their names, and leave escaping to one function.


TEMPLATES = sorted(Path(lmsconf.__file__).parent.rglob("*.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_compile_and_mark_nothing_as_safe(path: Path) -> None:
    """Tags fit into each other, and filters and tests have names that are known. What is put in is escaped, without
    exception: only filters of ours, which escape, return Markup."""
    environment = jinja.environment("md") if path.name.endswith(".md.j2") else jinja.environment("html")
    text = path.read_text(encoding="utf-8")
    assert environment.undefined is jinja2.StrictUndefined
    assert environment.from_string(text)
    assert not re.search(r"\|\s*(safe|e|escape)\b|autoescape|Markup", text)


def test_an_unknown_name_is_an_error() -> None:
    """A page is not printed with a gap in the place of a value that nobody gave it."""
    with pytest.raises(jinja2.UndefinedError, match="'report' is undefined"):
        jinja.html_page("snapshot.html.j2")


def test_weaker_settings_that_have_no_room_are_counted() -> None:
    """A reviewer reads how many of the settings that are left out relax something."""
    weaker = tuple(SettingChange(path=f"guards.{'x' * 400}{n}", base=1, now="off", weaker=True) for n in range(90))
    text = plan_markdown(replace(DELETE, base="main", settings_changed=weaker), limit=SizeLimit(20_000))
    [(left, of)] = re.findall(r"… and (\d+) more, (\d+) of them weaker", text)
    assert left == of
