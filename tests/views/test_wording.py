"""What the views promise of any plan, beyond the golden samples."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import jinja2
import pytest
from document_samples import CREATE, DELETE, EMPTY, EVIL, HOSTILE, PLANS, REPORTS, UPDATE
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import lmsconf
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.names import escape_invisible
from lmsconf.model.plan import Plan, PlanScope
from lmsconf.render import APPLY_VIEWS, PLAN_VIEWS, jinja, plan_text, problems_text
from lmsconf.render.escape import csv_cell, escape_terminal
from lmsconf.render.resource_wording import format_condition, format_item
from lmsconf.render.terminal import colorize, rows_on_terminal, wrap_prose

BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def active(text: str) -> list[str]:
    """The characters of a text that a terminal or a reader's eye would obey."""
    return [
        one for one in text if one != "\n" and (unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"} or one in BIDI)
    ]


@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Lu"]) | st.sampled_from(":#[ \u202e\x1b\x9b")))
def test_safe_text_has_nothing_active(text: str) -> None:
    """Whatever goes in, what comes out is one line without controls or bidi marks, and no command of a CI runner."""
    shown = escape_terminal(text)
    assert active(shown) == []
    assert "\n" not in shown
    assert not shown.lstrip().startswith("::")
    assert "##[" not in shown


@pytest.mark.parametrize("text", ["Café", "日本語", "👩‍💻 team", "a::b", "C# [x]", "naïve — “quoted”"])
def test_safe_leaves_ordinary_names_alone(text: str) -> None:
    """Letters of any script, emoji and punctuation are shown as they are."""
    assert escape_terminal(text) == text


@pytest.mark.parametrize("text", [plan_text(HOSTILE), *(APPLY_VIEWS["text"](one) for one in REPORTS.values())])
def test_hostile_names_stay_inside_their_line(text: str) -> None:
    """No name ends a line, starts a command of a CI runner, or moves a cursor."""
    assert active(text) == []
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]


@pytest.mark.parametrize("text", [PLAN_VIEWS["json"](HOSTILE), APPLY_VIEWS["json"](REPORTS["stopped"])])
def test_hostile_names_are_escapes_in_json(text: str) -> None:
    """A JSON document printed on a terminal moves nothing either, and says the same."""
    assert active(text) == []
    assert text.encode()


def test_first_line_says_where() -> None:
    """Workspace, URL and number of people come first."""
    assert plan_text(EMPTY).splitlines()[0] == "Workspace production (https://lms.example/api), 412 people."
    assert plan_text(CREATE).splitlines()[0].endswith(", 1 person.")
    assert plan_text(DELETE).splitlines()[0].endswith(", an unknown number of people.")


def test_nothing_to_do() -> None:
    """An empty plan says so; one that did not look at everything does not speak for the workspace."""
    assert "\nNo changes. The workspace matches the manifests.\n" in plan_text(EMPTY)
    assert "The workspace matches" not in plan_text(replace(EMPTY, selection=PlanScope(only=("group/A",))))
    additive = plan_text(replace(EMPTY, left_out=(Address("group", "A"),)))
    assert "\nNo changes. This plan only adds (--additive), and leaves out 1 change.\n" in additive
    assert "matches" not in additive
    assert "matches" not in plan_text(replace(EMPTY, problems=HOSTILE.problems))


def test_counts() -> None:
    """The summary line counts resources and calls, replacements only when there are any."""
    assert "\nPlan: 4 to create, 0 to change, 0 to delete (5 API calls).\n" in plan_text(CREATE)
    assert "\nPlan: 0 to create, 3 to change, 1 to replace, 0 to delete (2 API calls).\n" in plan_text(UPDATE)


def test_everybody_who_comes_or_goes_is_named() -> None:
    """No list of what a plan adds or removes is cut, however long; what no manifest declares is counted."""
    text = plan_text(UPDATE)
    assert "~ managers: 1,200 removed" in text
    for sign, items in (("-", "removed"), ("+", "added")):
        found = [
            format_item(one) for change in UPDATE.changes for field in change.fields for one in getattr(field, items)
        ]
        assert [one for one in found if f"\n          {sign} {one}\n" not in text] == []
    assert "… and" not in plan_text(CREATE)
    assert text.count("… and") == text.count("    … and 2 more\n") == 1


def test_tripped_guards_print_the_line_to_paste() -> None:
    """All consents stand in one command."""
    assert "\n  lmsconf apply --allow deletes=2 --allow removals=27\n" in plan_text(DELETE)


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
    text = PLAN_VIEWS[view](replace(DELETE, guards=(given, removals, *others)))
    assert f"{line}\n" in text.replace("</pre>", "\n")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"field": "Department", "choices": ["Sales", "Engineering"]}, "Department is Sales or Engineering"),
        ({"field": "A", "choices": ["B"], "system_condition": "IS_ANY"}, "A IS_ANY B"),
        ({"field": "A", "choices": ["B"], "system_condition": "IS_NONE"}, "A IS_NONE B"),
        ({"field": "A", "system_condition": "IS_EMPTY"}, "A IS_EMPTY"),
        ({"field": "A", "choices": ["B or C", " D"]}, 'A is "B or C" or " D"'),
    ],
)
def test_conditions_in_words(value: dict[str, object], said: str) -> None:
    """A condition reads as a sentence, in which no choice can pass for two."""
    assert format_condition(value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("group/A", "group/A"),
        ("content_target/A -> everyone", "assignment of A to everyone"),
        (r"content_target/A\ -> B\/C -> group/D\ -> E", r"assignment of A -> B/C to group/D\ -> E"),
        (r"content_target/A\\ -> everyone", "assignment of A\\ to everyone"),
    ],
)
def test_assignments_are_called_so(text: str, said: str) -> None:
    """What the API calls a content target is an assignment, of one content to one audience."""
    assert resource_title(Address.parse(text)) == said


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_color_changes_no_word(plan: Plan) -> None:
    """Colour is added to the plain text; without its codes the text is the same."""
    plain, painted = plan_text(plan), plan_text(plan, color=True)
    assert painted != plain
    assert re.sub("\x1b\\[[0-9]+m", "", painted) == plain


def test_color_marks_what_happens() -> None:
    """Creations are green, deletions red, changes yellow."""
    assert colorize("  + a\n  - b\n  ~ c\n") == "  \x1b[32m+\x1b[0m a\n  \x1b[31m-\x1b[0m b\n  \x1b[33m~\x1b[0m c\n"


def test_no_problem_is_no_text() -> None:
    """Where there is no problem there is nothing to print."""
    assert problems_text([]) == ""


def test_evil_sample_is_evil() -> None:
    """The hostile sample holds what the tests above claim to defuse."""
    assert active(EVIL)
    assert "##[" in EVIL


# Escapes, letter by letter, where their judges would accept more than one way.


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("plain", "plain"),
        ("=1+1", "'=1+1"),
        ("  =1+1", "'  =1+1"),
        ("a=1", "a=1"),
        ("\tx", "'\\tx"),
        ("\rx", "'\\rx"),
        ("\nx", "'\\nx"),
        ("\0x", "'\\x00x"),
        ("a\tx", "a\\tx"),
        ("", ""),
        (" x", '" x"'),
        ('say "x"', '"say ""x"""'),
        ("a;b", '"a;b"'),
    ],
)
def test_a_cell(text: str, cell: str) -> None:
    """What a spreadsheet would compute, or begins with a control, stands behind an apostrophe; quotes where needed."""
    assert csv_cell(text) == cell


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b", "\\x1b"),
        ("\x9f", "\\x9f"),
        ("\xff", "\xff"),
        ("\u200b", "\\u200b"),
        ("\U000e0001", "\\U000e0001"),
        ("\r\n\t", "\\r\\n\\t"),
    ],
)
def test_what_cannot_be_seen_is_a_number(text: str, seen: str) -> None:
    """Two, four or eight digits, as in Python; letters stay."""
    assert escape_invisible(text) == seen


# Text on a terminal of some width: prose is wrapped at words, and what may be copied keeps its lines.


RED, OFF = "\x1b[31m", "\x1b[0m"


@pytest.mark.parametrize(
    ("line", "wrapped"),
    [
        pytest.param("one two three four five", "one two three four\n  five", id="prose"),
        pytest.param("  one two three four five", "  one two three four\n    five", id="indented"),
        pytest.param("fits in twenty chars", "fits in twenty chars", id="fits"),
        pytest.param("unbreakable-word-of-many-letters and", "unbreakable-word-of-many-letters\n  and", id="long-word"),
        pytest.param(
            "To allow it: lmsconf apply --allow removals=60",
            "To allow it:\n  lmsconf apply --allow removals=60",
            id="command-in-prose",
        ),
        pytest.param("lmsconf apply --allow removals=60", "lmsconf apply --allow removals=60", id="command"),
        pytest.param("Please run `lmsconf init` now", "Please run\n  `lmsconf init` now", id="quoted"),
        pytest.param("  + group/A name of many words", "  + group/A name of many words", id="change"),
        pytest.param("before   after   content of it", "before   after   content of it", id="row"),
        pytest.param("a question with room? yes: ", "a question with\n  room? yes: ", id="trailing-blank"),
        pytest.param(f"{RED}error{OFF}: three four five", f"{RED}error{OFF}: three four\n  five", id="coloured"),
        pytest.param(f"{RED}error{OFF}: three fours", f"{RED}error{OFF}: three fours", id="coloured-fits"),
        pytest.param(
            f"  {RED}+{OFF} group/A name of words", f"  {RED}+{OFF} group/A name of words", id="coloured-change"
        ),
        pytest.param(f"{RED}one two three four five{OFF}", f"{RED}one two three four{OFF}\n{RED}  five{OFF}", id="all"),
    ],
)
def test_a_line_is_wrapped_at_words(line: str, wrapped: str) -> None:
    """On twenty columns; a following line is indented by two more."""
    assert wrap_prose(f"{line}\n{line}", 20) == f"{wrapped}\n{wrapped}"


def test_rows_are_those_of_the_terminal() -> None:
    """A line that is wider than the terminal takes several rows; an empty one takes one, a colour none."""
    assert rows_on_terminal("a" * 20, 20) == 1
    assert rows_on_terminal("a" * 21 + "\n\n" + f"{RED}{'b' * 20}{OFF}\n", 20) == 4


# The templates of pages and comments: they compile, know all their names, and leave escaping to one function.


TEMPLATES = sorted(Path(lmsconf.__file__).parent.rglob("*.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_compile(path: Path) -> None:
    """Tags fit into each other, and filters and tests have names that are known."""
    environment = jinja.markdown_environment() if path.name.endswith(".md.j2") else jinja.html_environment()
    assert environment.undefined is jinja2.StrictUndefined
    assert environment.from_string(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_mark_nothing_as_safe(path: Path) -> None:
    """What is put in is escaped, without exception: only filters of ours, which escape, return Markup."""
    assert not re.search(r"\|\s*(safe|e|escape)\b|autoescape|Markup", path.read_text(encoding="utf-8"))


def test_an_unknown_name_is_an_error() -> None:
    """A page is not printed with a gap in the place of a value that nobody gave it."""
    with pytest.raises(jinja2.UndefinedError, match="'snapshot' is undefined"):
        jinja.html_page("snapshot.html.j2")
