"""Reader: the workspace as the core reads it, side by side on a crew. There is no way to write through it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from typing import TYPE_CHECKING

from lmsconf.api.limits import Room, fan_out
from lmsconf.api.listed import with_its_list
from lmsconf.api.pagination import Heard, Keep, PageSchema, read
from lmsconf.api.priority_queue import Priority
from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.api.worker_pool import WorkerPool
from lmsconf.model.api import ListOperation, Request, Rows
from lmsconf.model.values import Json

if TYPE_CHECKING:
    from lmsconf.api.client import Client


class Reader:
    """The reads of a workspace, as the core's `Api` promises them. An operation that writes raises ValueError.

    everything: whether all of each row is wanted, which takes more memory than what a plan compares.
    """

    def __init__(self, crew: WorkerPool, wire: ApiSpec | None = None, *, everything: bool = False) -> None:
        self._everything = everything
        self._crew = crew
        self._wire = wire or ApiSpec.default()

    def get(
        self, operation: str, *, path: Mapping[str, str] | None = None, query: Mapping[str, Json] | None = None
    ) -> Json:
        """One answer, before any fan-out that is still waiting."""
        return self._ask(self._readable(operation), path or {}, query or {}, Priority.CHAIN).result()

    def each(self, operation: str, requests: Iterable[Request]) -> list[Json]:
        """One answer a request, in their order. After a failure nothing more of these is sent."""
        known = self._readable(operation)
        room = Room(fan_out(everything=self._everything), f"to {known.method} {known.path}")
        futures = [self._ask(known, path, query, Priority.FAN_OUT, room) for path, query in requests]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            return [with_its_list(known, future.result()) for future in _failures(futures) or futures]
        finally:
            for future in futures:
                future.cancel()

    def rows(
        self,
        operation: ListOperation,
        *,
        query: Mapping[str, Json] | None = None,
        on_first: Heard | None = None,
        keep: Keep | None = None,
    ) -> Rows:
        """Every row of a listing, and whether that is provably all of it."""
        known = self._readable(operation.name)
        layout = PageSchema.of(self._wire, operation, keep, everything=self._everything)
        return read(lambda page: self._ask(known, {}, page, Priority.CHAIN), layout, query or {}, on_first)

    def together(self, jobs: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        """What each job returns. They only wait for answers, so each has a thread; the requests go through the crew."""
        futures: dict[str, Future[object]] = {name: Future() for name in jobs}
        threads = [
            threading.Thread(target=_settle, args=(job, futures[name]), name=f"lmsconf-{name}", daemon=True)
            for name, job in jobs.items()
        ]
        for thread in threads:
            thread.start()
        wait(futures.values())
        return {name: future.result() for name, future in futures.items()}

    def _readable(self, operation: str) -> Operation:
        """The operation, if it only reads."""
        known = self._wire[operation]
        if known.writes:
            raise ValueError(f"{operation} writes, and this only reads")
        return known

    def _ask(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Json],
        priority: Priority,
        room: Room | None = None,
    ) -> Future[Json]:
        """The future of one answer. room: what the answers that are held on to may take."""

        def ask(client: Client) -> Json:
            answer = client.call(operation.id, path=path, query=query)
            if room is not None:
                room.take(answer)
            return answer

        return self._crew.submit(ask, priority)


def _failures(futures: list[Future[Json]]) -> list[Future[Json]]:
    """The futures that have ended in an error, in order."""
    return [future for future in futures if future.done() and not future.cancelled() and future.exception()]


def _settle(job: Callable[[], object], future: Future[object]) -> None:
    """Runs a job into its future."""
    try:
        result = job()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
