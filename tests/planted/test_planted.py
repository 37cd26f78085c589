"""The planted faults fit the code as it is, and some of them are planted and found; the whole list is a command."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from random import Random

import pytest

from .faults import ROOT, Fault, faults
from .ground import Fate, Ground
from .mutants import TESTS, sample

FAULTS = faults()
SEED = os.environ.get("PLANTED_SEED", "1")
SAMPLE = Random(f"{SEED}").sample(sorted(FAULTS), 4)  # noqa: S311  # no secret


def test_there_are_enough_of_them() -> None:
    """At least thirty, each says what it would do to somebody, and the README says how many there are."""
    assert len(FAULTS) >= 30
    assert len({fault.harm for fault in FAULTS.values()}) == len(FAULTS)
    assert f"lists {len(FAULTS)} faults" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_fits_the_code(fault: Fault) -> None:
    """Its text stands in its file once, what is put there is Python and means something else, and its tests exist."""
    assert fault.planted()
    for test in fault.tests:
        file, _, name = test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text if name else text


def test_a_text_that_is_not_there_or_changes_nothing_is_told(tmp_path: Path) -> None:
    """A fault that lost its place in the code is an error, and so is one that only moves blanks about."""
    fault = FAULTS["partial-exits-0"]
    [edit] = fault.edits
    (tmp_path / "lmsconf").mkdir()
    file = tmp_path / edit.file
    for text in ("", f"if 1:\n    def a():\n{edit.find}\n    def b():\n{edit.find}"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"stands \d times"):
            fault.planted(tmp_path)
    idle = Fault(fault.name, fault.harm, (type(edit)(edit.file, "x = 1", "x  =  1"),), ())
    file.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="changes nothing"):
        idle.planted(tmp_path)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("ground"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_planted_fault_is_found(ground: Ground, name: str) -> None:
    """With it in a copy of lmsconf, its tests fail; in the copy as it was, nothing is left of it."""
    fault = FAULTS[name]
    before = {edit.file: (ground.root / edit.file).read_text(encoding="utf-8") for edit in fault.edits}
    with ground.planted(fault.planted(ground.root)):
        assert ground.judged(fault.tests, 120.0).fate is Fate.CAUGHT
    assert before == {file: (ground.root / file).read_text(encoding="utf-8") for file in before}


def test_tests_that_do_not_run_catch_nothing(ground: Ground) -> None:
    """A fault that cannot even be imported, or tests that do not exist, are told apart from one that was found."""
    assert ground.judged(["tests/none.py"], 60.0).fate is Fate.BROKEN


@pytest.mark.parametrize("file", TESTS)
def test_mutants_are_python_and_mean_something_else(file: str) -> None:
    """Every mutant of a module compiles and is not the module again, and the tests that it has to get past exist."""
    whole = ast.dump(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    for mutant in sample([file], each=4, seed=1):
        compile(mutant.text, file, "exec")
        assert ast.dump(ast.parse(mutant.text)) != whole, mutant
    assert all((ROOT / test).exists() for test in TESTS[file] if "/" in test)
