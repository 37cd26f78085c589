"""Text on a terminal of some width: prose is wrapped at words, and what may be copied keeps its lines."""

from __future__ import annotations

import pytest

from lmsconf.render.terminal import rows_on_terminal, wrap_prose

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
