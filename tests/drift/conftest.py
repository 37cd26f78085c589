"""The stage of every drift test: a project that is as declared, and a workspace to edit by hand."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from integrity.served_project import CommandResult, ServedProject, staged
from texts import text_of

SEED: Final = text_of(__file__, "conftest_seed.yaml")
MANIFESTS: Final = text_of(__file__, "conftest_manifests.yaml")
OWNED: Final = 'ownership: {groups: ["LMS *"], content_targets: declared_content}\nleave_alone: ["group/UI *"]\n'


def drift(stage: ServedProject, *arguments: str, code: int | None = None) -> dict[str, Any]:
    """The report as a document."""
    ran: CommandResult = stage("drift", "--format", "json", *arguments)
    assert ran.writes == []
    assert code is None or ran.code == code, ran.err
    return ran.document


def states(report: Mapping[str, Any], key: str = "findings") -> dict[str, str]:
    """Address → state."""
    return {finding["address"]: finding["state"] for finding in report[key]}


def only(report: Mapping[str, Any]) -> dict[str, Any]:
    """The only finding."""
    (finding,) = report["findings"]
    found: dict[str, Any] = finding
    return found


def codes(report: Mapping[str, Any]) -> list[str]:
    """The codes of the problems."""
    return [problem["code"] for problem in report["problems"]]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A workspace that is as its manifests say."""
    with staged(tmp_path, SEED, monkeypatch, OWNED) as stage:
        stage.write(MANIFESTS)
        yield stage
