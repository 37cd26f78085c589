"""What the views promise of any plan, beyond the golden samples."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest
from document_samples import CREATE, DELETE, EMPTY, HOSTILE, PLANS, UPDATE
from msgspec.structs import replace

import lmsconf
from lmsconf.model.address import Address
from lmsconf.model.plan import Plan, PlanScope
from lmsconf.render import PLAN_VIEWS, jinja, plan_text
from lmsconf.render.resource_wording import format_item
from lmsconf.render.terminal import wrap_prose


def test_nothing_to_do() -> None:
    """An empty plan says so; one that did not look at everything does not speak for the workspace."""
    assert "\nNo changes. The workspace matches the manifests.\n" in plan_text(EMPTY)
    assert "The workspace matches" not in plan_text(replace(EMPTY, selection=PlanScope(only=("group/A",))))
    additive = plan_text(replace(EMPTY, left_out=(Address("group", "A"),)))
    assert "\nNo changes. This plan only adds (--additive), and leaves out 1 change.\n" in additive
    assert "matches" not in additive
    assert "matches" not in plan_text(replace(EMPTY, problems=HOSTILE.problems))


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


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_color_changes_no_word(plan: Plan) -> None:
    """Colour is added to the plain text; without its codes the text is the same."""
    plain, painted = plan_text(plan), plan_text(plan, color=True)
    assert painted != plain
    assert re.sub("\x1b\\[[0-9]+m", "", painted) == plain


# Escapes, letter by letter, where their judges would accept more than one way.


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
