"""Reading a workspace whose every answer takes 50 ms, beside the least time that so many requests can take.

    python tests/benchmarks/bench_latency.py [--repeat 5]

The least is the larger of requests * latency / parallelism and the longest chain of requests * latency. The requests
are counted in the server's log. A listing that does not count its rows is a chain of pages, each knowing only from the
one before how to go on; details come after the last page of what they are details of.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from measuring import TOKEN, seconds, served, tell, verdict
from workload import Size, make_project, values_of

from lmsconf.project.settings import load_settings
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.reader import WorkspaceReader

LATENCY = 0.05
WIDTHS = (4, 8, 16)
SIZES = {
    "as large as acme": Size(groups=25, smart_groups=25, contents=40, assignments=120, people=400),
    "ten times the groups and content": Size(
        groups=250, smart_groups=250, contents=400, assignments=1_200, people=1_000
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="counted readings of each")
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as temporary:
        for label, size in SIZES.items():
            project = Path(temporary) / label.replace(" ", "-")
            make_project(project, values_of(size))
            with served(project / "workspace.db", project / "log.jsonl", latency=LATENCY) as server:
                environ = {"LMSCONF_URL": server.url, "LMSCONF_TOKEN": TOKEN}
                tell(f"{label}, {LATENCY * 1000:.0f} ms an answer, medians of {repeat} readings")
                for width in WIDTHS:
                    read(project, environ, width)
                    asked = server.operations()
                    took = seconds(partial(read, project, environ, width), repeat)
                    server.operations()
                    _tell(width, asked, took)


def read(project: Path, environ: Mapping[str, str], width: int) -> None:
    """Reads all that manifests can speak of, as `lmsconf snapshot` does."""
    settings = load_settings(project, None, environ)
    with Connection(settings) as connection:
        WorkspaceReader(settings=settings, connection=connection, parallelism=width).snapshot()


def _tell(width: int, asked: Counter[str], took: float) -> None:
    requests, chain = sum(asked.values()), longest_chain(asked)
    least = max(requests * LATENCY / width, chain * LATENCY)
    tell(
        f"  {width:2} at a time  {took:6.2f} s for {requests:4} requests, the longest chain {chain:2};"
        f" least {least:5.2f} s  ratio {took / least:.2f}  {verdict(took / least, 1.15)}"
    )


def longest_chain(asked: Mapping[str, int]) -> int:
    """How many requests have to wait for one another at the least, as the number of pages of each listing gives it.

    Where the first page says how many rows there are, the other pages need not wait for one another.
    """
    groups, smart_groups = asked["manual-groups.list"], asked["smart-groups.list"]
    people, content, from_people = (
        min(2, asked[listing]) for listing in ("users.list", "content.list", "users.extended-info")
    )
    return max(
        people,
        groups + from_people if from_people else groups + 1,
        max(smart_groups, asked["custom-fields.list"]) + 1,
        content + 1,
    )


if __name__ == "__main__":
    main()
