"""The typed client is what its writer makes of the description, and holds every operation."""

from __future__ import annotations

from lmsconf.api.spec import ApiSpec

from .writer import TARGET, attribute, snake, written


def test_the_typed_client_is_up_to_date() -> None:
    """Every file of `lmsconf/client/api` is what `python -m tests.api.writer` would write."""
    there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py")}
    assert there == written()


def test_every_operation_has_a_method_of_its_own() -> None:
    """No two operations share an attribute and a name, so none hides another."""
    places = [(attribute(one), snake(one.partition(".")[2])) for one in ApiSpec.default().operations]
    assert len(set(places)) == len(places) == 60
