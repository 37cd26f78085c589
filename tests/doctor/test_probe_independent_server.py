"""The probe on a server that is not ours and makes other choices: what it learns makes plans settle there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stranger.choices import Choices
from stranger.project import FIRST, Case, ServerProject, opening

NAMES = {
    "manual-groups.rename.name": "title",
    "manual-groups.add-members.userIds": "users",
    "manual-groups.add-managers.userIds": "ids",
    "content-targets.create.mandatory": "required",
    "content-targets.create.startTime": "from",
    "content-targets.create.finishTime": "until",
}
SERVICES = {
    "as assumed": Choices(),
    "other names": Choices(names=NAMES, ids="number", done=200, done_body=b"OK"),
    "strict times": Choices(takes="epoch", time="epoch", clears="absent", wrap="inside"),
    "epoch only, shown as ISO": Choices(takes="epoch", time="z"),
    "conflict": Choices(names=NAMES, existing="conflict", ids="uuid", page_cap=5, shuffle=3),
    "doubles": Choices(existing="double", clears="blank", empty="absent", wrap="nothing"),
    "ignores": Choices(existing="ignore", time="+02:00", extra=True, errors="html"),
    "merges": Choices(existing="merge", false_="absent", field_ids="id", throttle=7),
    "refuses who is there": Choices(again=409),
    "small pages": Choices(page_most=10, page_cap=10, totals="absent", gone=200),
}
Open = Callable[[Case, str], ServerProject]


@pytest.fixture
def open_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Open]:
    """Opens a project against a service with the choices of a case."""
    yield from opening(tmp_path, monkeypatch, capsys)


@pytest.mark.sampled
@pytest.mark.parametrize("name", SERVICES)
def test_plans_settle_with_what_was_learnt(open_desk: Open, name: str) -> None:
    """A probe leaves the service as it was, and writes down what it takes for the manifests to settle there."""
    desk = open_desk(Case(SERVICES[name], {}), FIRST)
    before = desk.stranger.held.photo()
    code, out = desk.run("doctor", "--probe", "--yes", "--user", "bo@acme.example", "--content", "First aid")
    assert code == 0, out + desk.err
    assert desk.stranger.held.photo() == before
    desk.applies()


def test_a_field_that_always_counts_as_in_use(open_desk: Open) -> None:
    """Where no field can ever be deleted, the scratch field stays and is named: the one thing that cannot be undone."""
    desk = open_desk(Case(Choices(in_use="answered"), {}), FIRST)
    code, out = desk.run("doctor", "--probe", "--yes")
    assert code == 1
    assert (
        "  replacing the scratch field is refused although no smart group names it:\n    custom-fields.in-use\n" in out
    )
    assert "LEFT BEHIND: custom_field/lmsconf-probe-" in out
