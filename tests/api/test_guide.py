"""What the guide says of the API is so: its tables are counted, its script is short and runs."""

from __future__ import annotations

import pytest

from lmsconf.api.spec.operations import load_api_description
from lmsconf.doctor.probe.experiments import EXPERIMENTS

from .guide_tables import GROUPS, GUIDE, guesses, relied_on, shown, tables

TABLES = tables()


@pytest.mark.parametrize(("page", "head"), TABLES)
def test_the_tables_of_the_guide_are_current(page: str, head: str) -> None:
    """They are what `python -m tests.api.guide_tables` would write."""
    assert shown((GUIDE / f"{page}.md").read_text(encoding="utf-8"), head) == TABLES[page, head]


def test_all_of_the_api_is_in_client_and_sandbox() -> None:
    """60 of 60, in both."""
    assert TABLES["client-library", GROUPS].splitlines()[-1].startswith("| all |  | 60 | 60 | 60 |")


def test_every_point_has_an_experiment() -> None:
    """The probe tries all that manifests rest on; and what a wrong guess would do is said, and the question."""
    assert EXPERIMENTS.keys() == set(relied_on()) == guesses().keys()
    assert all(key in load_api_description().behaviours or guesses()[key]["question"] for key in relied_on())
