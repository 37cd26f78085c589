"""The options of `--engine dask`, which refuse before anything is connected."""

from __future__ import annotations

import sys

import pytest

from fleet.fleet_project import Fleet


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scheduler", "tcp://10.0.0.5:8786"), "plans would travel unencrypted to tcp://10.0.0.5:8786"),
        (("--scheduler", "dask.example:8786"), "plans would travel unencrypted to tcp://dask.example:8786"),
        (("--scheduler", "ws://127.0.0.1:8786"), "plans would travel unencrypted to ws://127.0.0.1:8786"),
    ],
)
def test_a_scheduler_elsewhere_needs_tls(fleet: Fleet, options: tuple[str, ...], message: str) -> None:
    """A plan has e-mails in it: without TLS it does not leave this machine, unless an option says so."""
    code, _, err = fleet.run("fleet", "plan", "--engine", "dask", *options)
    assert code == 64
    assert message in err


def test_options_of_dask_need_the_engine(fleet: Fleet) -> None:
    """`--scheduler` alone would otherwise run everything on this machine without a word."""
    code, _, err = fleet.run("fleet", "plan", "--scheduler", "tls://dask.example:8786")
    assert code == 64
    assert "Add --engine dask" in err


def test_the_extra_is_named_where_it_is_missing(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask is no dependency of lmsconf: the message says how to install it."""
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "dask.config", None)
    code, _, err = fleet.run("fleet", "plan", "--engine", "dask", "--scheduler", "tls://dask.example:8786")
    assert code == 1
    assert "pip install 'lmsconf[dask]'" in err
