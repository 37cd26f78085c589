"""Calls that a service accepts without the planned effect: what is there instead, and what explains it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest
from texts import listed_cases

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .clinic import ANNA, ANSWERS, BO, P0, SEED, Altered, Body, Open

FIELDS = [{"name": "Badge", "type": "TEXT", "description": "Old"}, {"name": "Desk", "type": "TEXT"}]
MORE: Mapping[str, object] = {
    "custom_fields": [*SEED["custom_fields"], *FIELDS],
    "people": [
        {"email": ANNA, "admin": True},
        {"email": BO, "answers": {"Department": "Sales", "Desk": "2"}, "metadata": {"cost": "1"}},
        {"email": P0},
    ],
    "content_targets": [{"content": "GDPR basics", "assign_to": ["everyone"], "visible_from": "2026-01-05T08:00:00Z"}],
}


class GoesBy(Altered):
    """A service that leaves values out of bodies of requests whose path ends so, all or some, or puts others in.

    Where nothing is left, it does nothing, and says that it did.
    """

    at: ClassVar[str]
    out: ClassVar[Sequence[str] | None]
    put: ClassVar[Mapping[str, object]]

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        if method == "DELETE" or not path.endswith(self.at):
            return body
        out = body.keys() if self.out is None else self.out
        return {name: body[name] for name in body if name not in out} | self.put or json_response(200, {})


@pytest.mark.sampled(day=8)
@listed_cases("dialect", "altered", "manifest", "said", "advice")
def test_the_report_says_what_is_there_and_what_explains_it(
    open_clinic: Open, dialect: dict[str, str], altered: dict[str, object], manifest: str, said: str, advice: str
) -> None:
    """Though the project states every key: the value that explains what is read back, as lines to paste.

    Where several values would explain it, the keys of what is not as planned are named, and no others.
    """
    how = {"out": (), "put": {}, **altered}
    clinic = open_clinic(dialect, MORE, type("Drawn", (GoesBy,), how) if altered else Sandbox)
    default, known = ApiSpec.default(), load_api_description()
    stated = {key: default.behaviour(key) for key in (*known.behaviours, *known.names)}
    clinic.declare(
        manifest.replace("BO", BO).replace("P0", P0), "timezone: UTC\nguards: off\npeople: {create: true}\n", stated
    )
    out = clinic.apply(code=6).out
    assert f"but it is still not as planned: {said.replace('BO', BO).replace('P0', P0)} [apply/no-effect]" in out
    assert advice.replace("ANSWERS", ANSWERS) in out
