"""The planted faults fit the code as it is, and some of them are planted and found; the whole list is a command."""

import ast
import os
import re
from pathlib import Path
from random import Random

import pytest

from .line_coverage import Reached, everyday, moved
from .mutants import explained, modules, mutants, sample
from .source_copy import ROOT, Fault, Outcome, SourceCopy, faults

FAULTS = faults()
SEED = os.environ.get("PLANTED_SEED", "1")
SAMPLE = Random(f"{SEED}").sample(sorted(FAULTS), 2)  # noqa: S311  # no secret


def test_there_are_enough_of_them() -> None:
    """At least thirty, each says what it would do to somebody, and the developers' guide says how many there are."""
    assert len(FAULTS) >= 30
    assert len({fault.harm for fault in FAULTS.values()}) == len(FAULTS)
    assert f"lists {len(FAULTS)} faults" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_faults_fit_the_code() -> None:
    """The text of each stands in its file once, what is put there is Python and means something else."""
    for fault in FAULTS.values():
        assert fault.planted()


def test_the_tests_of_faults_exist() -> None:
    """Each names files, or functions in them, or cases of these."""
    for test in {test for fault in FAULTS.values() for test in fault.tests}:
        file, _, name = test.partition("[")[0].partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text if name else text, test


def test_a_text_that_is_not_there_or_changes_nothing_is_told(tmp_path: Path) -> None:
    """A fault that lost its place in the code is an error, and so is one that only moves blanks about."""
    fault = FAULTS["partial-exits-0"]
    [edit] = fault.edits
    file = tmp_path / edit.file
    file.parent.mkdir(parents=True)
    for text in ("", f"if 1:\n    def a():\n{edit.find}\n    def b():\n{edit.find}"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"stands \d times"):
            fault.planted(tmp_path)
    idle = Fault(fault.name, fault.harm, (type(edit)(edit.file, "x = 1", "x  =  1"),), ())
    file.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="changes nothing"):
        idle.planted(tmp_path)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> SourceCopy:
    return SourceCopy(tmp_path_factory.mktemp("ground"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_planted_fault_is_found(ground: SourceCopy, name: str) -> None:
    """With it in a copy of lmsconf, its tests fail; in the copy as it was, nothing is left of it."""
    fault = FAULTS[name]
    before = {edit.file: (ground.root / edit.file).read_text(encoding="utf-8") for edit in fault.edits}
    with ground.planted(fault.planted(ground.root)):
        assert ground.judged(fault.tests, 120.0).fate is Outcome.CAUGHT
    assert before == {file: (ground.root / file).read_text(encoding="utf-8") for file in before}


@pytest.mark.sampled(day=8, daily=False)
def test_tests_that_do_not_run_catch_nothing(ground: SourceCopy) -> None:
    """A fault that cannot even be imported, or tests that do not exist, are told apart from one that was found."""
    assert ground.judged(["tests/none.py"], 60.0).fate is Outcome.BROKEN


FILES = Random(SEED).sample(modules(), 20)  # noqa: S311  # no secret


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("file", FILES)
def test_mutants_are_python_and_mean_something_else(file: str) -> None:
    """Every mutant of a module compiles, is not the module again, stands somewhere, and has a name of its own place."""
    text = (ROOT / file).read_text(encoding="utf-8")
    whole = ast.dump(ast.parse(text))
    for mutant in sample([file], each=4, seed=1):
        compile(mutant.text, file, "exec")
        assert ast.dump(ast.parse(mutant.text)) != whole, mutant
        assert mutant.lines
        assert set(mutant.lines) <= set(range(1, text.count("\n") + 1))


def test_large_sizes_are_halved_and_doubled_where_they_are_named() -> None:
    """A limit may be one more than it says, but not half of it; nothing runs a constant's line but its import."""
    file = "lmsconf/manifest/yaml_reader.py"
    found = {one.name: one for one in mutants(file)}
    halved = found["`manifest/yaml_reader.py` `-` `50` → `25`"]
    assert "`manifest/yaml_reader.py` `-` `50` → `100`" in found
    assert not [name for name in found if "`50` → `51`" in name]
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    assert len(halved.lines) > 1
    assert all("DEPTH" in lines[number - 1] for number in halved.lines)


def test_what_nobody_can_see_is_no_mutant() -> None:
    """None instead of a boolean is the other boolean again, and zip's check of lengths is no behaviour."""
    files = ("planner/call_order", "planner/check_guards")
    names = [one.name for file in files for one in mutants(f"lmsconf/{file}.py")]
    assert names
    assert not [name for name in names if re.search(r"`return (True|False)` → `return None`", name)]
    assert not [name for name in names if name.startswith("`planner/call_order.py` `_check_refs` `True`")]


@pytest.mark.sampled(daily=False)
def test_the_reasons_name_mutants() -> None:
    """What survivors.md explains are names as the command prints them, of changes that the rules still make."""
    parts = [re.match(r"`([\w/]+\.py)` `", name) for name in explained()]
    assert all(parts)
    files = {part[1] for part in parts if part}
    there = {one.name for file in files for one in mutants(f"lmsconf/{file}")}
    assert explained() <= there


def test_everyday_tests_are_near_the_code() -> None:
    """Neither simulations and laws, nor whole pipelines, nor the planting itself are among them."""
    found = everyday()
    assert "tests/core" in found
    assert not {"tests/laws", "tests/simulation", "tests/planted", "tests/rules"} & set(found)
    assert all((ROOT / one).exists() for one in found)


def test_lines_that_moved_are_found_again() -> None:
    """A line of today is that of then with the same text in the same order; a new one stands for the one before."""
    assert moved(["a", "b", "c"], ["new", "a", "c", "other"]) == {1: None, 2: 1, 3: 3, 4: 3}


def test_the_tests_of_a_line_come_before_those_of_its_file() -> None:
    """Of each function first the quickest; what is kept for all tests shows in the first of them only."""
    seconds = {"f[a]": 2.0, "f[b]": 1.0, "g": 1.5, "other": 0.1, "elsewhere": 0.1}
    known = Reached({1: frozenset({"f[a]", "f[b]", "g"}), 2: frozenset({"g", "other"})}, seconds)
    assert known.tests([1], 9.0) == ["f[b]", "g", "f[a]", "other"]
    assert known.tests([1], 2.5) == ["f[b]", "g"]
    assert known.tests([2], 0.05) == ["other"]
    assert known.tests([3], 9.0)[0] == "other"
    assert Reached({}, seconds).tests([1], 0.3) == ["elsewhere", "other"]
    broad = Reached({1: frozenset({"f[a]", "g"})}, seconds, {"f[a]": 3, "g": 40})
    assert broad.tests([1], 9.0)[:2] == ["f[a]", "g"]
