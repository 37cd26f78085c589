"""The pool for a service in this process: each job runs at once, in the thread that submits it."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

import lmsconf
from lmsconf.api.worker_pool import ConcurrentReader, InlineExecutor, WorkerPool
from lmsconf.errors import Rejected
from lmsconf.model.progress import RunProgress

from .network import Network, client, raw, said
from .test_worker_pool import echo, members


def inline(*script: httpx.Response) -> WorkerPool:
    """Such a pool, over a network that answers so."""
    return WorkerPool(lambda: client(*script), parallelism=1, executor=InlineExecutor())


def test_a_job_has_run_when_it_is_submitted() -> None:
    """Its result, or what it raised, is there at once."""
    with inline(raw(200)) as pool:
        good, bad = pool.submit(lambda _: threading.get_ident()), pool.submit(lambda _: 1 // 0)
        assert (good.done(), bad.done()) == (True, True)
        assert good.result() == threading.get_ident()
        assert isinstance(bad.exception(), ZeroDivisionError)


def test_nothing_is_asked_after_a_failure() -> None:
    """The request that fails is the last one that is sent, and those after it count as done."""
    network = Network(answering=lambda request: said(404) if "/3/" in request.url.path else echo(request))
    told: list[RunProgress] = []
    with WorkerPool(
        lambda: client(network=network), parallelism=1, executor=InlineExecutor(), progress=told.append
    ) as pool:
        with pytest.raises(Rejected, match="/groups/3/members"):
            ConcurrentReader(pool).each("manual-groups.members", members(*map(str, range(20))))
        assert len(network.requests) == 4
        pool.end_total()
    assert (told[0].done, told[0].total) == (0, 20)
    assert (told[-1].done, told[-1].total) == (20, 20)


def test_a_closed_pool_takes_no_more() -> None:
    """Work for it is refused."""
    pool = inline(raw(200))
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(lambda _: None)


def test_an_embedded_workspace_is_read_without_workers(tmp_path: Path) -> None:
    """The thread of each kind asks for itself."""
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {main: {url: "sandbox:"}}\ndefault_workspace: main\n')
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: Sales, members: []}]\n")
    threads: set[str] = set()
    lmsconf.open(tmp_path).plan(progress=lambda _: threads.add(threading.current_thread().name))
    assert any(name.startswith("lmsconf-job") for name in threads)
    assert not any(name.startswith("lmsconf-request") for name in threads)
