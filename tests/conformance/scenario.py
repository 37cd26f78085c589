"""A day in the life of a workspace, call by call: every operation, and the refusals that the specification tells of.

The clock stands still and ids are counted, so the whole conversation is the same each time, through whichever door.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

import httpx

from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.service import Sandbox

NOW: Final = 1_767_225_600.0  # 2026-01-01T00:00:00Z
GRANTED: Final = {"authorization": "Bearer sandbox"}
SEED: Final[Mapping[str, object]] = {
    "people": [
        {"email": "anna@x.example", "id": "anna", "first_name": "Anna", "last_name": "Ågren", "admin": True},
        {"email": "bo@x.example", "id": "bo", "metadata": {"unit": "7"}},
    ],
    "content": [
        {"name": "Fire | <safety>", "id": "fire", "price": 490},
        {"name": "Evening", "id": "evening", "type": "MEETUP"},
    ],
}


@dataclass(frozen=True, slots=True)
class Step:
    """One request, and the status that it is answered with."""

    status: int
    method: str
    path: str
    body: object = None
    headers: Mapping[str, str] = field(default_factory=lambda: GRANTED)


@dataclass(frozen=True, slots=True)
class ObservedResponse:
    """An answer as a client sees it; status 0 where the connection broke. The port's own headers are left out."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def opened(faults: FaultScript | None = None, on_log: Callable[[str], None] | None = None) -> Sandbox:
    """A workspace that the script begins with. on_log: hears each line of the request log."""
    note = (lambda entry: on_log(json.dumps(entry._asdict()))) if on_log else None
    sandbox = Sandbox(clock=lambda: NOW, faults=faults, on_log=note)
    with sandbox.store.write_transaction() as repository:
        fill_workspace(repository, SEED, spec=sandbox.spec)
    return sandbox


def told(client: httpx.Client) -> Iterator[tuple[Step, ObservedResponse]]:
    """Each step with what is answered to it."""
    for step in SCRIPT:
        raw = {"content": step.body} if isinstance(step.body, bytes) else {"json": step.body}
        try:
            answer = client.request(step.method, step.path, headers=step.headers, **raw)
        except httpx.RemoteProtocolError:
            yield step, ObservedResponse(0)
            continue
        headers = {name: value for name, value in answer.headers.items() if name not in ("server", "date")}
        yield step, ObservedResponse(answer.status_code, headers, answer.content)


def as_text(heard: ObservedResponse) -> str:
    """An answer on one line."""
    return json.dumps(asdict(heard), default=lambda raw: raw.decode() if isinstance(raw, bytes) else dict(raw))


def _json(text: str) -> bytes:
    return text.encode()


_TYPED: Final = {**GRANTED, "content-type": "application/json"}
_DAY: Final = 86_400_000
_NOW: Final = int(NOW * 1000)

_CREDENTIALS: Final = (
    Step(401, "GET", "/groups", headers={}),
    Step(401, "GET", "/groups", headers={"authorization": "Bearer other"}),
    Step(401, "GET", "/nowhere", headers={}),
    Step(404, "GET", "/nowhere"),
    Step(405, "PATCH", "/groups"),
)

_REQUESTS: Final = (
    Step(400, "GET", "/groups?limit=ten"),
    Step(400, "GET", "/groups?limit=1&limit=2"),
    Step(400, "GET", "/groups?other=1"),
    Step(400, "GET", "/content/targets"),
    Step(400, "POST", "/groups", {"name": "Coaches", "other": 1}),
    Step(400, "POST", "/groups", {"name": 7}),
    Step(400, "POST", "/groups", {}),
    Step(400, "POST", "/groups", _json('{"name": "a", "name": "b"}'), _TYPED),
    Step(400, "POST", "/groups", _json('{"name": NaN}'), _TYPED),
    Step(400, "POST", "/groups", _json('{"name": "a"'), _TYPED),
    Step(400, "POST", "/groups", _json('{"name": "a"}'), {**GRANTED, "content-type": "text/plain"}),
    Step(400, "POST", "/manage-certificate/invite", {}),
)

_ACCOUNTS: Final = (
    Step(200, "POST", "/users", {"email": "åse@x.example", "firstName": "Åse", "language": "sv"}),
    Step(200, "POST", "/users", {"email": "ÅSE@x.example"}),
    Step(400, "POST", "/users", {"email": "nobody"}),
    Step(400, "POST", "/users", {"email": "cy@x.example", "language": "SV"}),
    Step(200, "GET", "/users?filter=%C3%85&limit=1"),
    Step(200, "GET", "/users/u-1"),
    Step(404, "GET", "/users/nobody"),
    Step(204, "POST", "/users/u-1/update-email", {"email": "ase@x.example"}),
    Step(400, "POST", "/users/u-1/update-email", {"email": "nobody"}),
    Step(409, "POST", "/users/u-1/update-email", {"email": "bo@x.example"}),
    Step(204, "POST", "/users/u-1/update-fullname", {"lastName": "Öst"}),
    Step(400, "POST", "/users/u-1/update-fullname", {}),
    Step(204, "POST", "/users/u-1/update-language", {"language": "uk"}),
    Step(400, "POST", "/users/u-1/update-language", {"language": "UK"}),
    Step(204, "POST", "/users/u-1/update-metadata", {"metadata": {"unit": "7"}}),
    Step(400, "POST", "/users/u-1/update-metadata", {"metadata": {"unit": 7}}),
    Step(200, "POST", "/users/search", {"text": "ö", "metadata": {"unit": "7"}, "includeGroups": True}),
    Step(400, "POST", "/users/search", {"skip": -1}),
    Step(204, "POST", "/users/u-1/set-custom-archived-date", {"date": _NOW + _DAY}),
    Step(400, "POST", "/users/anna/set-custom-archived-date", {"date": _NOW + _DAY}),
    Step(204, "POST", "/users/anna/set-custom-archived-date", {"date": None}),
    Step(204, "POST", "/users/u-1/archive"),
    Step(400, "POST", "/users/anna/archive"),
    Step(400, "POST", "/auth", {"userId": "u-1"}),
    Step(204, "POST", "/users/u-1/unarchive"),
    Step(404, "POST", "/users/nobody/unarchive"),
    Step(200, "POST", "/auth?redirectUri=https%3A%2F%2Fx.example", {"userId": "u-1", "email": "bo@x.example"}),
    Step(200, "POST", "/auth", {"email": "BO@x.example"}),
    Step(400, "POST", "/auth", {}),
    Step(200, "GET", "/users/u-1/order-details"),
    Step(200, "PUT", "/users/u-1/order-details", {"note": "ø", "address": {"zip": "1"}}),
    Step(400, "PUT", "/users/u-1/order-details", {"address": {"planet": "1"}}),
    Step(200, "PUT", "/users/u-1/disable-payment", {"disablePayment": True}),
    Step(400, "PUT", "/users/u-1/disable-payment", {"disablePayment": "yes"}),
    Step(204, "POST", "/users/u-1/access/ADD", {"applicationId": "create"}),
    Step(400, "POST", "/users/u-1/access/TAKE", {"applicationId": "create"}),
    Step(400, "POST", "/users/u-1/access/REMOVE", {"applicationId": "fly"}),
    Step(204, "POST", "/users/u-1/make-admin/true"),
    Step(204, "POST", "/users/u-1/make-admin/false"),
    Step(400, "POST", "/users/u-1/make-admin/maybe"),
    Step(204, "POST", "/users/u-1/make-manager/true"),
    Step(200, "GET", "/users/extended-info?skip=1"),
)

_FIELDS: Final = (
    Step(200, "POST", "/custom-fields", {"name": "Unit", "type": "CHOICE", "choices": [{"name": n} for n in "NS"]}),
    Step(400, "POST", "/custom-fields", {"name": "Unit", "type": "CHOICE"}),
    Step(400, "POST", "/custom-fields", {"name": "Unit", "type": "NUMBER"}),
    Step(200, "GET", "/custom-fields"),
    Step(200, "GET", "/users/custom-field-choice"),
    Step(204, "POST", "/users/bo/update-custom-field-choice", {"f-1": "ch-1"}),
    Step(400, "POST", "/users/bo/update-custom-field-choice", {"f-1": "ch-9"}),
    Step(400, "POST", "/users/bo/update-custom-field-choice", {"f-9": "ch-1"}),
    *(Step(200, "POST", "/custom-fields", {"name": f"Badge {n}", "type": "TEXT"}) for n in range(2, 11)),
    Step(400, "POST", "/custom-fields", {"name": "Badge 11", "type": "TEXT"}),
    Step(204, "DELETE", "/custom-fields/f-10"),
    Step(404, "DELETE", "/custom-fields/f-10"),
)

_BY_NORTH: Final = [{"customFieldId": "f-1", "choiceIds": ["ch-1"]}]
_GROUPS: Final = (
    Step(200, "POST", "/groups", {"name": "Ålesund", "memberIds": ["bo"], "managerIds": ["anna"]}),
    Step(400, "POST", "/groups", {"name": "Ålesund", "memberIds": ["nobody"]}),
    Step(200, "GET", "/groups?skip=0&limit=1"),
    Step(204, "POST", "/groups/g-1/rename", {"name": "Ålesund “2”"}),
    Step(404, "POST", "/groups/none/rename", {"name": "x"}),
    Step(204, "POST", "/groups/g-1/members", {"userIds": ["u-1", "bo"]}),
    Step(400, "POST", "/groups/g-1/members", {"userIds": ["nobody"]}),
    Step(200, "GET", "/groups/g-1/members"),
    Step(204, "DELETE", "/groups/g-1/members/bo"),
    Step(404, "DELETE", "/groups/g-1/members/nobody"),
    Step(204, "POST", "/groups/g-1/managers", {"userIds": ["bo"]}),
    Step(200, "GET", "/groups/g-1/managers"),
    Step(204, "DELETE", "/groups/g-1/managers/anna"),
    Step(200, "POST", "/smart-groups", {"name": "North", "conditions": _BY_NORTH, "managers": ["anna"]}),
    Step(400, "POST", "/smart-groups", {"name": "Nobody", "conditions": []}),
    Step(400, "POST", "/smart-groups", {"name": "x", "conditions": [{"customFieldId": "f-1", "choiceIds": ["ch-9"]}]}),
    Step(200, "GET", "/smart-groups?filter=NOR"),
    Step(200, "GET", "/smart-groups/sg-1?includeMembers=true"),
    Step(404, "GET", "/smart-groups/g-1"),
    Step(204, "POST", "/smart-groups/sg-1/rename", {"name": "Northerners"}),
    Step(204, "POST", "/smart-groups/sg-1/managers", {"userIds": ["bo"]}),
    Step(200, "GET", "/smart-groups/sg-1/managers"),
    Step(204, "DELETE", "/smart-groups/sg-1/managers/bo"),
    Step(403, "PUT", "/custom-fields/f-1", {"name": "Unit", "type": "CHOICE", "choices": []}),
    Step(403, "DELETE", "/custom-fields/f-1"),
    Step(400, "POST", "/smart-groups/sg-1/replace-conditions", {"conditions": []}),
    Step(
        204,
        "POST",
        "/smart-groups/sg-1/replace-conditions",
        {"conditions": [{"customFieldId": "f-2", "systemCondition": "IS_ANY"}]},
    ),
    Step(
        200,
        "PUT",
        "/custom-fields/f-1",
        {"name": "Sida", "type": "CHOICE", "choices": [{"choiceId": "ch-1", "name": "Norr"}, {"name": "Öst"}]},
    ),
)

_LEARNING: Final = (
    Step(200, "GET", "/content/all?limit=500&onlySellable=true"),
    Step(200, "GET", "/content/fire"),
    Step(404, "GET", "/content/none"),
    Step(204, "POST", "/content/targets", {"contentId": "evening", "targetId": "EVERYONE"}),
    Step(204, "POST", "/content/targets", {"contentId": "fire", "targetId": "g-1", "mandatory": True}),
    Step(204, "POST", "/content/targets", {"contentId": "fire", "userId": "bo", "startTime": "2026-01-05T00:00:00Z"}),
    Step(400, "POST", "/content/targets", {"contentId": "fire"}),
    Step(400, "POST", "/content/targets", {"contentId": "fire", "targetId": "none"}),
    Step(400, "POST", "/content/targets", {"contentId": "fire", "userId": "bo", "startTime": "soon"}),
    Step(200, "GET", "/content/targets?contentId=fire"),
    Step(404, "GET", "/content/targets?contentId=none"),
    Step(200, "GET", "/content/all?groupIds[]=g-1"),
    Step(200, "GET", "/content/meetups"),
    Step(
        200, "POST", "/manage-certificate/participation", {"userId": "bo", "contentId": "fire", "contentType": "COURSE"}
    ),
    Step(400, "POST", "/manage-certificate/participation", {"userId": "bo", "contentId": "fire"}),
    Step(200, "GET", "/manage-certificate/status/job-1", headers={**GRANTED, "service-calling-user-id": "anna"}),
    Step(404, "GET", "/manage-certificate/status/job-9"),
    Step(204, "POST", "/manage-certificate/invite"),
    Step(200, "GET", "/users/certificates?userIds[]=bo&userIds[]=anna"),
    Step(200, "GET", "/users/certificates?flatView=true"),
    Step(400, "GET", "/users/certificates?flatView=perhaps"),
    Step(200, "GET", "/users/bo/certificates"),
    Step(200, "POST", "/analyse/results", {"groupIds": ["g-1"], "options": {"orderBy": "updatedAt", "order": "DESC"}}),
    Step(400, "POST", "/analyse/results", {"progress": ["DONE"]}),
    Step(200, "POST", "/analyse/statistics", {"contentIds": ["fire"], "enrollment": ["OPTIONAL"]}),
    Step(400, "POST", "/analyse/statistics", {"options": {}}),
    Step(200, "GET", "/analyse/event-logs/content/fire/user/bo"),
    Step(404, "GET", "/analyse/event-logs/content/none/user/bo"),
)

_ENDINGS: Final = (
    Step(204, "DELETE", "/manage-certificate/participation/users/bo/contents/fire"),
    Step(404, "DELETE", "/manage-certificate/participation/users/bo/contents/fire"),
    Step(204, "DELETE", "/content/targets", {"contentId": "fire", "targetId": "g-1", "targetType": "GROUP"}),
    Step(404, "DELETE", "/content/targets", {"contentId": "fire", "targetId": "g-1", "targetType": "GROUP"}),
    Step(204, "DELETE", "/groups/g-1"),
    Step(404, "DELETE", "/groups/g-1"),
    Step(204, "DELETE", "/smart-groups/sg-1"),
    Step(204, "DELETE", "/smart-groups/sg-1"),
    Step(204, "DELETE", "/users/u-1"),
    Step(404, "DELETE", "/users/u-1"),
    Step(200, "GET", "/users"),
)

SCRIPT: Final = (*_CREDENTIALS, *_REQUESTS, *_ACCOUNTS, *_FIELDS, *_GROUPS, *_LEARNING, *_ENDINGS)
