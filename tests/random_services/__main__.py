"""Plays services with drawn points: PYTHONPATH=tests python -m tests.random_services --seeds 0-199 --details FILE.

--single                every service that differs from the sandbox in one point alone, in place of seeds
--unprobed              without `doctor --probe`: what a stop says is pasted, and the next run goes on
--settled POINT,POINT   these points keep the sandbox's value; `answers` stands for all points of answers
--details FILE          writes each outcome there, with what the commands printed
"""

import argparse
import os
import sys
import tempfile
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable
from multiprocessing import Pool
from pathlib import Path

import pytest

from .points import ANSWERS, NAMES, TABLE, Points, drawn, single_changes
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
            said = traceback.format_exc()
            return label, Outcome(
                kind="crashed", output=said, first=said.splitlines()[-1], changed=dict(points.changed())
            )


def main(words: list[str]) -> int:
    """Play, and print what became of whom: 1 where somebody lost something or a probe left something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-39")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--unprobed", action="store_true")
    parser.add_argument("--settled", default="")
    parser.add_argument("--details", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(words)
    settled = frozenset(point for word in given.settled.split(",") if word for point in _points(word))
    if given.single:
        changes = ((point, value, points) for point, value, points in single_changes() if point not in settled)
        cases = [(f"{point}={value}", 0, points, not given.unprobed) for point, value, points in changes]
    else:
        first, _, last = given.seeds.partition("-")
        seeds = range(int(first), int(last or first) + 1)
        cases = [(str(seed), seed, drawn(seed, settled=settled), not given.unprobed) for seed in seeds]
    outcomes: list[tuple[str, Outcome]] = []
    with Pool(given.jobs) as pool:
        for label, outcome in pool.imap(played, cases):
            print(
                f"{label:40} {outcome.label:10} {outcome.stage:14} {outcome.code or '':4} "
                f"{list(outcome.rounds.values()) or ''} {outcome.first[:150]}",
                flush=True,
            )
            outcomes.append((label, outcome))
    print(*_summary(outcomes), sep="\n")
    if given.details:
        given.details.write_text("\n".join(line for one in outcomes for line in _details(*one)), encoding="utf-8")
    return int(any(outcome.label in ("loss", "left", "crashed") for _, outcome in outcomes))


def _points(word: str) -> Iterable[str]:
    return ANSWERS if word == "answers" else NAMES if word == "names" else (word,)


def _summary(outcomes: list[tuple[str, Outcome]]) -> Iterable[str]:
    counts = Counter(outcome.label for _, outcome in outcomes)
    yield "\n" + ", ".join(f"{number} {label}" for label, number in counts.most_common())
    yield "\nservices with that value that did not converge:"
    failed: defaultdict[tuple[str, object], list[bool]] = defaultdict(list)
    for _, outcome in outcomes:
        for point, values in TABLE.items():
            value = outcome.changed.get(point, values[0])
            failed[point, value].append(outcome.label != "converged")
    shares = [
        (sum(flags) / len(flags), sum(flags), len(flags), point, value) for (point, value), flags in failed.items()
    ]
    for share, number, total, point, value in sorted(shares, key=lambda one: (-one[0], -one[1])):
        if number:
            yield f"{share:5.0%}  {number:3} of {total:3}  {point}={value}"


def _details(label: str, outcome: Outcome) -> Iterable[str]:
    yield f"==== {label}: {outcome.label} ({outcome.kind}) at {outcome.stage or 'the end'}, exit {outcome.code}"
    yield f"points: {outcome.changed}"
    yield f"keys named: {', '.join(outcome.keys)}"
    yield from (f"LOST {fact}" for fact in outcome.lost)
    yield from (f"LEFT {line}" for line in outcome.left)
    yield from (f"ASTRAY {line}" for line in outcome.astray)
    yield from (f"SAID {line}" for line in outcome.said)
    if outcome.label != "converged":
        yield f"---- printed\n{outcome.output}\n---- probe\n{outcome.learnt}\n---- calls"
        yield from outcome.calls


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
