"""What every day leaves out is played another day: which part of the cases a run takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import GATES, PARTS, first_part, part_of

ROOT = Path(__file__).parent.parent.parent


def git(folder: Path, *arguments: str) -> None:
    """Runs git as somebody."""
    who = ("-c", "user.name=a", "-c", "user.email=a@acme.example")
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)


def test_ten_commits_take_all_parts(tmp_path: Path) -> None:
    """Each commit takes the next part, and no commit at all the first; a clone without history takes one as well."""
    assert part_of(tmp_path) == 0
    git(tmp_path, "init", "--quiet", "origin")
    origin = tmp_path / "origin"
    taken = []
    for _ in range(PARTS):
        git(origin, "commit", "--quiet", "--allow-empty", "--message", "more")
        taken.append(part_of(origin))
    assert sorted(taken) == list(range(PARTS))
    git(tmp_path, "clone", "--quiet", "--depth", "1", origin.as_uri(), "shallow")
    assert part_of(tmp_path / "shallow") in range(PARTS)


@pytest.mark.parametrize(("said", "examples", "cases"), [("all", 80, 30), ("7", 8, 3), ("", 8, 3)])
def test_the_environment_chooses_how_much(said: str, examples: int, cases: int) -> None:
    """All of the examples and cases, or a tenth of them."""
    program = "from sampling import examples, of_today; print(examples(80), len(of_today(range(30))))"
    environ = {**os.environ, "TESTS": said, "SIMULATION": ""}
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "tests", env=environ, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [str(examples), str(cases)]


def test_parts_have_nothing_in_common_and_are_all() -> None:
    """Every case is in one part, and the first of a list in the part that its name chooses."""
    program = "from sampling import of_today; print(*of_today(range(34), name='two twins'))"
    taken: list[str] = []
    for part in range(PARTS):
        environ = {**os.environ, "TESTS": str(part), "SIMULATION": ""}
        command = [sys.executable, "-c", program]
        ran = subprocess.run(command, cwd=ROOT / "tests", env=environ, capture_output=True, text=True, check=True)
        assert ("0" in ran.stdout.split()) is (part == first_part("two twins"))
        taken += ran.stdout.split()
    assert sorted(map(int, taken)) == list(range(34))


def test_six_runs_of_ci_play_all_schedules() -> None:
    """Whatever the number of the commit, its run has a sixth of them, and the next five the others."""
    program = "from sampling import schedules_of_today; print(*schedules_of_today(range(66), 'two twins'))"
    taken: list[str] = []
    for number in range(782, 782 + GATES):
        environ = {**os.environ, "TESTS": "all", "SIMULATION": str(number)}
        command = [sys.executable, "-c", program]
        ran = subprocess.run(command, cwd=ROOT / "tests", env=environ, capture_output=True, text=True, check=True)
        assert len(ran.stdout.split()) == 11
        taken += ran.stdout.split()
    assert sorted(map(int, taken)) == list(range(66))


def collected(file: str, part: str) -> set[str]:
    """The tests of a file that a run of that part would take."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", file]
    environ = {**os.environ, "TESTS": part, "SIMULATION": ""}
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return {line for line in ran.stdout.splitlines() if "::" in line}


def test_sampled_cases_take_turns() -> None:
    """Two parts have none of a test's sampled cases in common, and both have every other test."""
    file, test = "tests/planted/test_planted.py", "test_mutants_are_python_and_mean_something_else["
    whole, one, other = (collected(file, part) for part in ("all", "1", "2"))
    sampled = {name for name in whole if test in name or name.endswith("::test_the_reasons_name_mutants")}
    assert 0 < len(one & sampled) < len(sampled) / 5
    assert not one & other & sampled
    assert one - sampled == other - sampled == whole - sampled
