"""The second dialect: nothing in it is as lmsconf assumes."""

from __future__ import annotations

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description

from .second_dialect import FORBIDDING, second_dialect


def test_every_assumed_key_differs():
    """Each key of the description, behaviours and names alike, has a legal value that is not the assumed one."""
    known, assumed, second = load_api_description(), ApiSpec.default(), ApiSpec(second_dialect())
    keys = (known.behaviours.keys() | known.names.keys()) - FORBIDDING
    assert second_dialect().keys() == keys
    assert [key for key in sorted(keys) if second.behaviour(key) == assumed.behaviour(key)] == []


def test_no_assumed_name_is_left_on_the_wire():
    """A body in the second dialect has none of the names that were assumed for it."""
    second = ApiSpec(second_dialect())
    for id, operation in ApiSpec.default().operations.items():
        assumed = {name for name in operation.names if f"{id}.{name}" in load_api_description().names}
        assert not assumed & set(second[id].names.values()), id
