"""Plays services with drawn points: PYTHONPATH=tests python -m tests.random_services --seeds 0-199 --details FILE.

--single                every service that differs from the sandbox in one point alone, in place of seeds
--unprobed              without `doctor --probe`: what a stop says is pasted, and the next run goes on
--details FILE          writes each outcome there, with what the commands printed
"""

import argparse
import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable
from multiprocessing import Pool
from pathlib import Path

import pytest

from .points import TABLE, Points, drawn, made_of
from .scenario import Outcome, opened, play, play_unprobed

Case = tuple[str, int, Points, bool]


def played(case: Case) -> tuple[str, Outcome]:
    """The outcome of one service in a folder of its own."""
    label, seed, points, probed = case
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", folder)
        try:
            with opened(points, seed, Path(folder), patch) as project:
                return label, (play if probed else play_unprobed)(project)
        except Exception:
            return label, Outcome(points.changed(), kind="crashed", output=traceback.format_exc())


def main(words: list[str]) -> int:
    """Play, and print the outcome of each service: 1 where somebody lost something or a probe left something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-39")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--unprobed", action="store_true")
    parser.add_argument("--details", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(words)
    if given.single:
        changes = [(point, value) for point, values in TABLE.items() for value in values[1:]]
        services = [(f"{point}={value}", 0, made_of({point: value})) for point, value in changes]
    else:
        first, _, last = given.seeds.partition("-")
        services = [(str(seed), seed, drawn(seed)) for seed in range(int(first), int(last or first) + 1)]
    outcomes: list[Outcome] = []
    with Pool(given.jobs) as pool, (given.details or Path(os.devnull)).open("w", encoding="utf-8") as details:
        for label, outcome in pool.imap(played, [(*service, not given.unprobed) for service in services]):
            rounds = [*outcome.rounds.values()] or ""
            print(f"{label:40} {outcome.label:10} {outcome.stage:14} {outcome.code or '':4} {rounds}", flush=True)
            outcomes.append(outcome)
            details.writelines(f"{line}\n" for line in _details(label, outcome))
    print(*_summary(outcomes), sep="\n")
    return int(any(outcome.label in ("loss", "left", "crashed") for outcome in outcomes))


def _summary(outcomes: list[Outcome]) -> Iterable[str]:
    counts = Counter(outcome.label for outcome in outcomes)
    yield "\n" + ", ".join(f"{number} {label}" for label, number in counts.most_common())
    yield "\nservices with that value that did not converge:"
    values = [(one.label, point, one.changed.get(point, TABLE[point][0])) for one in outcomes for point in TABLE]
    total = Counter((point, value) for _, point, value in values)
    failed = Counter((point, value) for label, point, value in values if label != "converged")
    for (point, value), number in sorted(failed.items(), key=lambda one: (-one[1] / total[one[0]], -one[1])):
        whole = total[point, value]
        yield f"{number / whole:5.0%}  {number:3} of {whole:3}  {point}={value}"


def _details(label: str, outcome: Outcome) -> Iterable[str]:
    yield f"==== {label}: {outcome.label} ({outcome.kind}) at {outcome.stage or 'the end'}, exit {outcome.code}"
    yield f"points: {outcome.changed}"
    for word in ("lost", "left", "astray", "said"):
        yield from (f"{word.upper()} {line}" for line in getattr(outcome, word))
    if outcome.label != "converged":
        yield f"---- printed\n{outcome.output}\n---- probe\n{outcome.learnt}\n---- calls"
        yield from outcome.calls


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
