"""What the client computes for one request: over loopback HTTP with keep-alive, and to the sandbox in process.

    python tests/benchmarks/bench_request.py [--requests 600] [--repeat 5]

A request reads one person. Counted is the computing of the calling thread, in user and system; the server is another
process. In process the sandbox computes in the same thread, so its own share is measured alone and taken off. Beside
it, the same request by `httpx.Client`.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import httpx
from measuring import TOKEN, options, served, tell, verdict

from lmsconf.api.client import Client
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

_GOAL = 0.6
_PEOPLE = [{"email": f"person.{number}@acme.example", "first_name": "Per", "last_name": "Ek"} for number in range(20)]


def main() -> None:
    parser = options(__doc__, 5)
    parser.add_argument("--requests", type=int, default=600, help="requests of each round")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        database = Path(temporary) / "workspace.db"
        sandbox = Sandbox(database)
        with sandbox.store.write_transaction() as repository:
            fill_workspace(repository, {"people": _PEOPLE})
        direct = Client("http://sandbox", "sandbox", transport=sandbox)
        users = cast("dict[str, list[dict[str, str]]]", direct.call("users.list", query={"skip": 0, "limit": 1}))[
            "users"
        ]
        person = {"userId": users[0]["userId"]}
        path = f"/users/{person['userId']}"
        granted = {"authorization": "Bearer sandbox", "accept": "application/json"}
        in_process = _milliseconds(lambda: direct.call("users.get", path=person), given)
        own = _milliseconds(lambda: sandbox.answer("GET", path, "", granted, b""), given)
        sandbox.close_workspace()
        with served(database, Path(temporary) / "log.jsonl") as server:
            client = Client(server.url, TOKEN)
            loopback = _milliseconds(lambda: client.call("users.get", path=person), given)
            with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {TOKEN}"}) as plain:
                by_httpx = _milliseconds(lambda: plain.get(path).json(), given)
            client.close()
    tell(f"computing of one GET /users/{{id}}, medians of {given.repeat} times {given.requests} requests")
    tell(f"  over loopback             {loopback:.3f} ms  {verdict(loopback, _GOAL)}, {loopback / _GOAL:.2f} of it")
    tell(f"  in process                {in_process - own:.3f} ms  {verdict(in_process - own, _GOAL)}")
    tell(f"  httpx.Client, loopback    {by_httpx:.3f} ms, lmsconf : httpx.Client {loopback / by_httpx:.2f}")


def _milliseconds(work: Callable[[], object], given: argparse.Namespace) -> float:
    """The computing of one call in this thread, the median of the rounds."""
    rounds = []
    for _ in range(given.repeat + 1):
        begun = time.thread_time()
        for _ in range(given.requests):
            work()
        rounds.append((time.thread_time() - begun) / given.requests * 1000)
    return statistics.median(rounds[1:])  # the first round fills caches


if __name__ == "__main__":
    main()
