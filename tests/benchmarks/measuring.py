"""How things are measured: whole processes or calls, in turn, and what is told of them is the median."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LMSCONF = str(Path(sys.executable).parent / "lmsconf")
"""The program of the environment that runs the benchmark."""


def options(doc: str | None, repeat: int | None = None) -> argparse.ArgumentParser:
    """The options of a benchmark. repeat: how many runs are counted unless `--repeat` says so; None: one alone."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if repeat is not None:
        parser.add_argument("--repeat", type=int, default=repeat, help="counted runs of each")
    return parser


class Run(NamedTuple):
    """What one process took: seconds on the clock, seconds of computing, and its largest memory in MiB."""

    wall: float
    cpu: float
    memory: float


def process(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, expect: int = 0
) -> Run:
    """Run a command to its end, its output thrown away. Raises RuntimeError when it ends with another exit code.

    A small process starts it, since the largest memory of a process includes that of the process that started it.
    """
    starter = [sys.executable, "-S", __file__, *command]
    ended = subprocess.run(starter, env={**os.environ, **(env or {})}, cwd=cwd, stdout=subprocess.PIPE, check=False)
    code, said, *figures = json.loads(ended.stdout)
    if code != expect:
        raise RuntimeError(f"{' '.join(command)} ended with {code}: {said[-2000:]}")
    return Run(*figures)


def _start(command: Sequence[str]) -> tuple[int, str, float, float, float]:
    """Run a command to its end; return its exit code, its stderr, and what it took."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        said = running.stderr.read() if running.stderr else b""
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    wall, cpu = time.perf_counter() - begun, used.ru_utime + used.ru_stime
    return running.returncode, said.decode("utf-8", "replace"), wall, cpu, used.ru_maxrss / 1024


def in_turn(repeat: int, *candidates: Callable[[], Run]) -> list[list[Run]]:
    """The runs of each candidate. They take turns, A B A B, so that a slow minute of the machine meets all of them."""
    for candidate in candidates:
        candidate()  # fills the caches of the file system
    rounds = [[candidate() for candidate in candidates] for _ in range(repeat)]
    return [list(runs) for runs in zip(*rounds, strict=True)]


def middle(runs: Sequence[Run]) -> Run:
    """The median of each figure."""
    return Run(*(statistics.median(figure) for figure in zip(*runs, strict=True)))


def figures(runs: Sequence[Run]) -> str:
    """The medians in words."""
    wall, cpu, memory = middle(runs)
    return f"{wall:7.2f} s  {cpu:7.2f} s of computing  {memory:5.0f} MiB"


def ratio(ours: Sequence[Run], theirs: Sequence[Run]) -> float:
    """The median of the ratios on the clock, round by round."""
    return statistics.median(a.wall / b.wall for a, b in zip(ours, theirs, strict=True))


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """k of cost = c · N^k, fitted to all sizes: the slope of the line through the logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    return statistics.linear_regression(xs, ys).slope


def tell(text: str) -> None:
    """A line of the result, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def goal(figure: float, most: float) -> str:
    """The most that a figure may be, their ratio, and whether it keeps to that."""
    return f"goal {most:g}  ratio {figure / most:.2f}  {verdict(figure, most)}"


def verdict(figure: float, target: float) -> str:
    """Whether a figure keeps to its target, in words; nothing fails where it does not."""
    return f"target ≤ {target:g}: {'kept' if figure <= target else 'MISSED'}"


# The sandbox as a server in another process, and the log of what it was asked.


TOKEN = "sandbox"


class RunningServer(NamedTuple):
    """A server that listens, and where it writes what it was asked, if it does."""

    url: str
    log: Path | None

    def operations(self) -> Counter[str]:
        """How often each operation was asked for since the last time somebody looked."""
        if self.log is None:
            raise ValueError("this server writes no log")
        lines = self.log.read_text(encoding="utf-8").splitlines()
        self.log.write_text("", encoding="utf-8")
        return Counter(json.loads(line)["operation"] for line in lines)


@contextmanager
def served(database: Path, log: Path | None) -> Iterator[RunningServer]:
    """A workspace behind a free port. log: None where the time is measured."""
    command = [LMSCONF, "sandbox", "serve", "--port", "0", "--db", str(database), "--token", TOKEN]
    command += [] if log is None else ["--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            yield RunningServer(said.split()[-1], log)
        finally:
            process.terminate()


if __name__ == "__main__":
    print(json.dumps(_start(sys.argv[1:])))
