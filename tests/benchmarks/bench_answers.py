"""Memory of everybody's answers while a plan reads them: long texts beside short ones, which takes no more.

python tests/benchmarks/bench_answers.py --people 200000
"""

from __future__ import annotations

import argparse
import tracemalloc
from typing import cast

from lmsconf.kinds.user.answer_index import PeopleWithAnswers
from lmsconf.planner.reading import ReadContext

SHORT, LONG, TARGET = 64, 400, 1.1


def measure(people: int, characters: int) -> float:
    """Return the mebibytes that the answers of that many people take, each with a text of its own."""
    tracemalloc.start()
    index = PeopleWithAnswers(cast("ReadContext", None))
    for number in range(people):
        text = f"{number:08}".ljust(characters, "x")
        index.add({"userId": f"u{number:07}", "email": f"p{number}@acme.example", "customFields": {"Notes": text}})
    index.finish(None)
    taken = tracemalloc.get_traced_memory()[0] / 1024 / 1024
    tracemalloc.stop()
    return taken


def main() -> None:
    """Print both, and their ratio beside the aim."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=200_000)
    people = parser.parse_args().people
    short, long = measure(people, SHORT), measure(people, LONG)
    verdict = "kept" if long <= TARGET * short else "MISSED"
    print(f"  {people:,} people: {SHORT} characters each {short:.0f} MiB, {LONG} characters {long:.0f} MiB")
    print(f"  ratio {long / short:.2f}, target ≤ {TARGET}: {verdict}")


if __name__ == "__main__":
    main()
