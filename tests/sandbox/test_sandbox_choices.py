"""What was chosen where the specification is silent is listed, and each choice has a test that shows it."""

from __future__ import annotations

import ast
from pathlib import Path

from lmsconf.sandbox.handlers import CHOICES


def shown() -> set[str]:
    """The names that tests of this folder are marked with."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = [one for one in node.decorator_list if isinstance(one, ast.Call)]
                names = [one.args for one in marks if isinstance(one.func, ast.Name) and one.func.id == "chosen"]
                found |= {ast.literal_eval(name) for some in names for name in some}
    return found


def test_each_choice_has_a_test():
    """Every choice is shown by a test, and every test that shows one names one that is listed."""
    assert shown() == CHOICES.keys()


def test_choices_are_sentences():
    """A choice is told in a sentence, each in its own."""
    assert all(text[0].isupper() and text.endswith(".") for text in CHOICES.values())
    assert len(set(CHOICES.values())) == len(CHOICES)
