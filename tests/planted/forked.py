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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Final, NoReturn

import pytest

import lmsconf

from .source_copy import Outcome, RunResult, temp_root

_READ: Final = 4096
_ENDING: Final = 30.0


class Forks:
    """All tests of a run, collected; each call of `judged` is one fork."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self.tests: Mapping[str, pytest.Item] = {item.nodeid: item for item in items}
        for module in pkgutil.walk_packages(lmsconf.__path__, "lmsconf."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)

    def judged(self, codes: Mapping[CodeType, CodeType], tests: Mapping[str, float]) -> RunResult:
        """What the tests say, each of which has so many seconds; at the first failure they are over.

        codes: of functions of lmsconf → the code that they have in the fork.
        """
        began = time.monotonic()
        with temp_root() as root:
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                os.environ.update(root)
                _run(codes, [self.tests[test] for test in tests], writing)
            os.close(writing)
            try:
                fate, by = _heard(reading, tests.values())
            finally:
                os.close(reading)
                _end(child)
        return RunResult(fate, time.monotonic() - began, by and f"FAILED {by}")


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


def _run(codes: Mapping[CodeType, CodeType], items: Sequence[pytest.Item], writing: int) -> NoReturn:
    """Runs the tests in a fork until the first fails."""
    os.setsid()
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    try:
        gc.unfreeze()
        found = not codes
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__ in codes:
                one.__code__, found = codes[one.__code__], True
            # What was kept while the tests were collected may come from the code as it was.
            elif isinstance(one, functools._lru_cache_wrapper) and str(one.__module__).startswith("lmsconf"):
                one.cache_clear()
        assert found, "only imports run this code"
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


def other_codes(before: CodeType, after: CodeType) -> dict[CodeType, CodeType]:
    """The functions in a module that have other code in another version of it."""
    if before == after:
        return {}
    olds, news = ([one for one in code.co_consts if isinstance(one, CodeType)] for code in (before, after))
    if len(olds) != len(news):  # what is inside is made from the new code of what is around it
        return {before: after}
    found = {before: after}
    for old, new in zip(olds, news, strict=True):
        found |= other_codes(old, new)
    return found


def with_forks(tests: Sequence[str], work: Callable[[Forks], None]) -> None:
    """Collects the tests, and instead of running them lets work be done with forks of the process that has them."""

    class Collected:
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            forks = Forks(session.items)
            gc.freeze()
            work(forks)
            return True

    ended = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "--tb=no", *tests], plugins=[Collected()])
    if ended != pytest.ExitCode.OK:
        raise RuntimeError(f"the tests could not be collected: {ended}")
