"""Which everyday tests reach a line of lmsconf, and how long each takes: python -m tests.planted.line_coverage [TEST…].

One run of the tests under coverage.py is kept in `build/`; lines that moved since are found again by their text.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from itertools import chain, zip_longest
from typing import Final

import pytest

from .source_copy import ROOT

_FOLDER: Final = ROOT / "build" / "planted"
# What plays thousands of schedules, starts whole pipelines, or reads the sources themselves is no test near the code.
_NOT_EVERYDAY: Final = (
    "benchmarks", "ci", "examples", "judges", "laws", "pictures", "planted", "rules", "simulation",
)  # fmt: skip

_REACHED: Final = """
    SELECT context, count(DISTINCT file_id) FROM line_bits JOIN context ON context.id = context_id GROUP BY context
"""


def everyday() -> list[str]:
    """The tests that belong to the code beside them, as pytest takes them."""
    tests = ROOT / "tests"
    folders = {path.parent for path in tests.glob("*/test_*.py") if path.parent.name not in _NOT_EVERYDAY}
    return [f"tests/{one.name}" for one in sorted([*folders, *tests.glob("test_*.py")])]


class _Lines:
    """A plugin of one worker of pytest: coverage keeps the lines of each test apart."""

    def __init__(self, worker: str) -> None:
        import coverage  # only the run that makes the map needs it

        self._coverage = coverage.Coverage(data_file=str(_FOLDER / f"lines.{worker}"), source=["lmsconf"])
        self._coverage.set_option("run:relative_files", True)
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        yield

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()


class _Seconds:
    """A plugin of pytest: how long each test took, for ever where it does not pass."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        lasted = report.duration if report.passed else float("inf")
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + lasted


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Watches the lines of a worker that loads this module as a plugin, from before anything imports lmsconf."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        early_config.pluginmanager.register(_Lines(worker))


def collect(tests: Sequence[str]) -> int:
    """Runs the tests on all processors and keeps what they reach."""
    os.environ.setdefault("TESTS", "all")
    # A shell that starts this in the background has it ignore Ctrl-C, and tests of interruptions would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    seconds = _Seconds()
    options = ["-q", "-n", "auto", "-m", "not slow", "-p", "no:cacheprovider", "-p", __spec__.name, "--tb=line"]
    ended = pytest.main([*options, *tests], plugins=[seconds])
    _combine()
    files = (ROOT / "lmsconf").rglob("*.py")
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    passed = {test: lasted for test, lasted in seconds.seconds.items() if lasted != float("inf")}
    (_FOLDER / "kept.json").write_text(json.dumps({"seconds": passed, "texts": texts}), encoding="utf-8")
    return int(ended)


def _combine() -> None:
    """Makes one file of what the workers saw."""
    from coverage import CoverageData

    every = CoverageData(str(_FOLDER / "lines"))
    for file in sorted(_FOLDER.glob("lines.*")):
        one = CoverageData(str(file))
        one.read()
        every.update(one)
        file.unlink()
    every.write()


@dataclass(frozen=True)
class Reached:
    """What the kept run says of one file. lines: a line as it is now → the tests; seconds: of every test.

    breadth: how many files of lmsconf a test reaches.
    """

    lines: Mapping[int, frozenset[str]]
    seconds: Mapping[str, float]
    breadth: Mapping[str, int] = field(default_factory=dict)

    def tests(self, lines: Sequence[int], within: float) -> list[str]:
        """Tests that reach one of these lines, then those that reach the file, else any, in so many seconds.

        First those that reach much of this file and few others, then the quickest; of each function one first.
        """
        near = frozenset().union(*(self.lines.get(line, ()) for line in lines))
        # What is done once for all tests, as imports and caches are, shows in the first of them or in none.
        inside = frozenset().union(*self.lines.values())
        chosen: list[str] = []
        for test in (*self._quickest(near), *self._quickest((inside or frozenset(self.seconds)) - near)):
            if self.seconds[test] <= within or not chosen:
                within -= self.seconds[test]
                chosen.append(test)
        return chosen

    def _quickest(self, tests: frozenset[str]) -> Iterator[str]:
        """One test of each function, then another one of each, those before which take less time."""
        functions: dict[str, list[str]] = {}
        inside = Counter(chain.from_iterable(self.lines.values())) if self.breadth else Counter[str]()
        near = {test: -inside[test] / self.breadth.get(test, 1) for test in tests & self.seconds.keys()}
        for test in sorted(near, key=lambda one: (near[one], self.seconds[one], one)):
            functions.setdefault(test.partition("[")[0], []).append(test)
        return filter(None, chain.from_iterable(zip_longest(*functions.values())))


@cache
def _kept() -> tuple[Mapping[str, float], Mapping[str, str], Mapping[str, int]]:
    """The seconds of each test, the text of each file, and how many files each test reaches."""
    if not (_FOLDER / "kept.json").exists():
        raise FileNotFoundError("nothing is known of the tests yet: python -m tests.planted.line_coverage")
    kept = json.loads((_FOLDER / "kept.json").read_text(encoding="utf-8"))
    with closing(sqlite3.connect(_FOLDER / "lines")) as lines:
        return kept["seconds"], kept["texts"], dict(lines.execute(_REACHED))


@cache
def reached(file: str) -> Reached:
    """What the kept run says of a file as it is now."""
    from coverage import CoverageData

    seconds, texts, breadth = _kept()
    data = CoverageData(str(_FOLDER / "lines"))
    data.read()
    before = data.contexts_by_lineno(file)
    then = moved(texts.get(file, "").splitlines(), (ROOT / file).read_text(encoding="utf-8").splitlines())
    lines = {line: frozenset(before.get(old or 0, ())) - {""} for line, old in then.items()}
    return Reached(lines, seconds, breadth)


def moved(before: Sequence[str], now: Sequence[str]) -> dict[int, int | None]:
    """Each line of a text now, from 1 → the line that it was; of a new one, what the line before it was."""
    same = SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks()
    found = {block.b + at + 1: block.a + at + 1 for block in same for at in range(block.size)}
    last: int | None = None
    return {line: (last := found.get(line, last)) for line in range(1, len(now) + 1)}


if __name__ == "__main__":
    sys.exit(collect(sys.argv[1:] or everyday()))
