"""How the whole run goes: its width, how much is tried, and what is told at the end of the simulated schedules."""

import gc
import importlib
import os
import shutil
import signal
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest
from sampling import GATE, PART, PARTS, WHOLE, is_of_today

# Processes that tests start would compile all of lmsconf anew, each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Databases and journals are synced to the disk all the time: in a folder of memory, tests wait a third less.
_MEMORY = Path("/dev/shm")  # noqa: S108  # pytest makes a folder in it that only its user may enter


def _holds_tests(folder: Path) -> bool:
    """Whether there is room for what tests write, and programs among it may be started."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    return shutil.disk_usage(folder).free > 2 << 30 and not os.statvfs(folder).f_flag & os.ST_NOEXEC


if _holds_tests(_MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

for name, number in (("everyday", 10), ("ci", 100)):
    hypothesis.settings.register_profile(name, max_examples=number, derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("ci" if WHOLE else "everyday")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that golden files are renewed with."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files and transcripts")


def pytest_configure() -> None:
    """Ctrl-C is heard, also where a shell started the tests in the background and has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` stands for: the processors, and one more, as tests often wait."""
    return (os.cpu_count() or 1) + 1


def pytest_sessionstart(session: pytest.Session) -> None:
    """Workers import the test modules from different ones on, where they are to run all of them.

    Of a fresh clone, each then compiles a part with its assertions, and finds most others compiled, which saves half of
    that time. What fails here fails again when pytest imports the module, and is told there.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    folder = Path(__file__).parent
    modules = sorted(folder.glob("*/test_*.py"))
    names = [f"{module.parent.name}.{module.stem}" for module in modules]
    first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for name in (*names[first:], *names[:first]):
        with warnings.catch_warnings(action="error"), suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the cases of tests marked `sampled` that are not of this run's part, unless a test is named."""
    if any("::" in argument for argument in config.args):
        return
    marked = ((item, item.get_closest_marker("sampled"), item.nodeid.partition("[")[0]) for item in items)
    sampled = [(item, mark.kwargs, name) for item, mark, name in marked if mark]
    sizes, cases = Counter(name for _, _, name in sampled), Counter[str]()
    left = []
    for item, shares, name in sampled:
        if not is_of_today(cases[name], name, sizes[name], **shares):
            left.append(item)
        cases[name] += 1
    without = frozenset(left)
    items[:] = [item for item in items if item not in without]
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """Collect garbage more rarely, and never look through what was imported and collected: a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


SIMULATED = "simulation"
"""The property under which a test tells its counts."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for all simulations of the run, from whatever process they ran in."""
    total: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, counts in report.user_properties:
                    if name == SIMULATED and isinstance(counts, dict):
                        total.update(counts)
    if total:
        gate = " (a 24th of those with one mishap; SIMULATION=all plays all)" if GATE is not None else ""
        which = gate if PART is None else f" (part {PART} of 0 to {PARTS - 1}; TESTS=all plays all)"
        terminalreporter.write_line(
            f"simulation: {total['converged']:,} schedules converged, {total['lost']} lost, "
            f"{total['duplicated']} duplicated, {total['foreign']} foreign, {total['stops']} named stops, "
            f"{total['leaks']} with a token or a link in anything given away{which}"
        )
