"""What the sandbox's benchmark measures is right at a small size."""

from __future__ import annotations

from bench_sandbox import CALLS, opened, rehearse


def test_a_large_workspace_is_read_kept_and_put_back():
    """Everybody is read once in pages, the log tells of each, and a restore brings back what a checkpoint kept."""
    with opened(250) as (sandbox, client):
        took = rehearse(sandbox, client, 250)
        assert "everybody in 3 pages" in took


def test_every_call_that_is_timed_goes_well():
    """No time is taken of a refusal."""
    with opened(10) as (_, client):
        assert [client.request(method, path, json=body).status_code for method, path, body in CALLS] == [
            *[200] * 6,
            *[204] * 5,
        ]
