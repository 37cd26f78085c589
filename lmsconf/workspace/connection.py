"""Settings → Connection: the only module that imports both the API client and the embedded sandbox."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import urlsplit

from lmsconf.api.concurrent_requests import ConcurrentReader, InlineExecutor, WorkerPool
from lmsconf.api.retry_and_rate_limit import Outage, RateLimiter, RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.errors import LmsconfError
from lmsconf.project.config_file import ENV_WORKSPACE
from lmsconf.project.settings import Settings
from lmsconf.support.url_rules import host_problem

if TYPE_CHECKING:
    from lmsconf.api.client import Client, Exchange
    from lmsconf.model.calls import Report
    from lmsconf.sandbox.service import Sandbox


AnySandbox = TypeVar("AnySandbox", bound="Sandbox")
RateLimiters: TypeAlias = "dict[tuple[str, float | None], RateLimiter]"
"""Host and port, or an embedded workspace, and maximum rate → the rate limiter of its connections."""


def fill_if_empty(sandbox: AnySandbox, seed: Path | None) -> AnySandbox:
    """Return an embedded workspace, filled from a seed or snapshot file if there is one and it is empty.

    Raises ProblemsFound for an invalid file, LmsconfError for one that cannot be read.
    """
    if seed is not None:
        with sandbox.store.write_transaction() as repository:
            if repository.is_empty():
                from lmsconf.workspace.fill_sandbox import fill_workspace, load_seed  # YAML is needed here alone

                fill_workspace(repository, load_seed(seed), source=str(seed), spec=sandbox.spec)
    return sandbox


class Connection(AbstractContextManager["Connection"]):
    """A connection to one workspace: worker pools to read and write with, in the names of the project's dialect.

    All its pools share one client, with its connections and its rate limiter.

    max_rate: requests a second, at most. rate_limiters: those of earlier connections of this process, to go on with
    that of the host. retry: the retry policy, with its clock. only_reads: no client can write.
    service: an embedded workspace that answers instead of the one that the settings name; it stays open. is_given:
    whether there is one.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_call: Callable[[Exchange], None] | None = None,
        max_rate: float | None = None,
        rate_limiters: RateLimiters | None = None,
        retry: RetryPolicy | None = None,
        only_reads: bool = False,
        service: Sandbox | None = None,
    ) -> None:
        self.url = settings.workspace.url
        self.name = settings.workspace.name
        # What messages call the URL: where it is declared.
        self._url_name = "LMSCONF_URL" if self.name == ENV_WORKSPACE else f"`url` of the workspace {self.name}"
        self.spec = ApiSpec(settings.dialect, settings.dialect_at)
        self._settings = settings
        self._on_call, self._only_reads = on_call, only_reads
        self._retry = retry or RetryPolicy()
        limiter = RateLimiter(
            max_rate, clock=self._retry.clock, sleep=self._retry.sleep, wall_clock=self._retry.wall_clock
        )
        host = self.url if settings.workspace.embedded else urlsplit(self.url).netloc.lower()
        self._rate_limiter = limiter if rate_limiters is None else rate_limiters.setdefault((host, max_rate), limiter)
        self._outage = Outage(self._retry)
        self._shared: Client | None = None
        self._sandbox: Sandbox | None = service
        self._token: str | None = None if service is None else "sandbox"
        self.is_given = service is not None

    def __exit__(self, *_: object) -> None:
        self._outage.stop()
        if self._shared is not None:
            self._shared.close()
        if self._sandbox is not None and not self.is_given:
            self._sandbox.close_workspace()

    @property
    def rate(self) -> float | None:
        """The requests a second that `max_rate`, or the service by refusing more, limits this run to; None: unknown."""
        return self._rate_limiter.rate()

    def worker_pool(self, parallelism: int, progress: Report | None = None) -> WorkerPool:
        """Return a pool that sends at most so many concurrent requests. Close it, or use it in a `with`.

        progress: called after each request, and at least once a minute while requests wait.
        """
        self._open()
        pool = WorkerPool(
            self._client,
            parallelism=parallelism,
            # Only a service that makes requests wait answers several of them sooner.
            executor=InlineExecutor() if self._sandbox is not None and not self._sandbox.has_faults else None,
            progress=progress,
            limit=self._rate_limiter.status,
        )
        if progress is not None:
            self._rate_limiter.on_wait = pool.report_progress
        return pool

    def reader(self, pool: WorkerPool, *, everything: bool = False) -> ConcurrentReader:
        """Return a read-only API over a pool. everything: whether all fields of each row are read."""
        return ConcurrentReader(pool, self.spec, whole_rows=everything)

    def _open(self) -> None:
        """Resolve the token, or open the sandbox, once.

        Raises LmsconfError for a host that is not allowed, and for a token that cannot be resolved.
        """
        if self._token is not None:
            return
        chosen, hosts = self._settings.workspace, self._settings.hosts
        if not chosen.embedded and hosts is not None and (wrong := host_problem(self.url, hosts)):
            raise LmsconfError(f"{self._url_name}: {wrong[0]}", hint=wrong[1], code="url/host")
        if chosen.embedded:
            from lmsconf.sandbox.service import Sandbox

            self._sandbox = fill_if_empty(Sandbox(chosen.database or ":memory:", spec=self.spec), chosen.seed)
            self._token = "sandbox"  # noqa: S105  # the embedded workspace keeps no secret
        else:
            self._token = "" if chosen.token is None else chosen.token.secret().reveal()

    def _client(self) -> Client:
        """Return the client of all pools."""
        if self._shared is None:
            from lmsconf.api.client import Client

            self._shared = Client(
                "http://sandbox" if self._sandbox is not None else self.url,
                self._token or "",
                spec=self.spec,
                transport=self._sandbox,
                retry=self._retry,
                rate_limiter=self._rate_limiter,
                outage=self._outage,
                on_call=self._on_call,
                only_reads=self._only_reads,
                url_name=self._url_name,
            )
        return self._shared
