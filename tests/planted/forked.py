"""Tests that run in a fork of one process, which has imported lmsconf and collected them once.

What a change inside a function needs is milliseconds then: the fork gives the functions there their other code.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import pkgutil
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Final, NamedTuple, NoReturn

import pytest

import lmsconf

from .source_copy import ROOT, Outcome, RunResult, temp_root

_READ: Final = 4096
_ENDING: Final = 30.0


class Forks:
    """All tests of a run, collected; each call of `judged` is one fork."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self._items: Mapping[str, pytest.Item] = {item.nodeid: item for item in items}
        self._functions = list(_functions())

    @property
    def tests(self) -> frozenset[str]:
        """Every test that there is, by the name that pytest gives it."""
        return frozenset(self._items)

    def functions(self, codes: Mapping[CodeType, CodeType]) -> list[NewCode]:
        """The functions that have one of these codes, each with its other one; none where only imports run it."""
        return [NewCode(one, codes[one.__code__]) for one in self._functions if one.__code__ in codes]

    def judged(self, changed: Sequence[NewCode], tests: Mapping[str, float]) -> RunResult:
        """What the tests say, each of which has so many seconds; at the first failure they are over."""
        began = time.monotonic()
        with temp_root() as root:
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                os.environ.update(root)
                _run(changed, [self._items[test] for test in tests], writing)
            os.close(writing)
            try:
                fate, by = _heard(reading, tests.values())
            finally:
                os.close(reading)
                _end(child)
        return RunResult(fate, time.monotonic() - began, by and f"FAILED {by}")


class NewCode(NamedTuple):
    """A function of lmsconf, and what it does in a fork."""

    function: FunctionType
    code: CodeType


_PASSED, _FAILED, _BROKEN, _ENDED = b".", b"F", b"B", b"E"
"""What a fork writes into its pipe: for each test that passes, before the name of one that fails, and at its end."""
_FATES: Final = {_FAILED: Outcome.CAUGHT, _ENDED: Outcome.MISSED}


def _heard(reading: int, seconds: Iterable[float]) -> tuple[Outcome, str]:
    """What the fork tells: MISSED once it has come to its end, HUNG where a test takes longer than it may."""
    for allowed in (*seconds, _ENDING):
        if not select.select([reading], [], [], allowed)[0]:
            return Outcome.HUNG, ""
        if (told := os.read(reading, 1)) != _PASSED:
            return _FATES.get(told, Outcome.BROKEN), os.read(reading, _READ).decode() if told == _FAILED else ""
    return Outcome.BROKEN, ""


def _end(child: int) -> None:
    """Ends the fork, and what its tests have started."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _run(changed: Sequence[NewCode], items: Sequence[pytest.Item], writing: int) -> NoReturn:
    """Runs the tests in a fork until the first fails."""
    os.setsid()
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    try:
        for function, code in changed:
            function.__code__ = code
        # What was kept while the tests were collected may come from the code as it was.
        gc.unfreeze()
        for kept in [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]:
            if str(getattr(kept, "__module__", "")).startswith("lmsconf"):
                kept.cache_clear()
        items[0].config.pluginmanager.register(_Teller(writing))
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        os.write(writing, _ENDED)
    except BaseException:  # a fork never goes on where its parent stands
        os.write(writing, _BROKEN)
    os._exit(0)


class _Teller:
    """A plugin of pytest: writes what becomes of each test, and ends the process with the first that fails."""

    def __init__(self, writing: int) -> None:
        self._writing = writing

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._writing, _FAILED + report.nodeid.encode()[:_READ])
            os._exit(0)
        if report.when == "teardown":
            os.write(self._writing, _PASSED)


def _functions() -> Iterator[FunctionType]:
    """Every function of lmsconf, with all of its modules loaded."""
    for module in pkgutil.walk_packages(lmsconf.__path__, "lmsconf."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    here = str(ROOT / "lmsconf")
    gc.unfreeze()  # what was imported while the tests were collected is left out otherwise
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(here):
            yield one


def other_codes(before: CodeType, after: CodeType) -> dict[CodeType, CodeType]:
    """The functions in a module that have other code in another version of it."""
    if before == after:
        return {}
    olds, news = ([one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after))
    if len(olds) != len(news):  # a function has gone
        by_place = {(one.co_qualname, one.co_firstlineno): one for one in news}
        news = [by_place.get((one.co_qualname, one.co_firstlineno), one) for one in olds]
    found = {before: after}
    for old, new in zip(olds, news, strict=True):
        found |= other_codes(old, new)
    return found


class _Collected:
    """A plugin of pytest: instead of running the tests, work is done with them."""

    def __init__(self, work: Callable[[Forks], None]) -> None:
        self._work = work

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        forks = Forks(session.items)
        gc.freeze()
        self._work(forks)
        return True


def with_forks(tests: Sequence[str], work: Callable[[Forks], None]) -> None:
    """Collects the tests, and lets work be done with forks of the process that has them."""
    command = ["-q", "-s", "-p", "no:cacheprovider", "--tb=no", *tests]
    ended = pytest.main(command, plugins=[_Collected(work)])
    if ended != pytest.ExitCode.OK:
        raise RuntimeError(f"the tests could not be collected: {ended}")
