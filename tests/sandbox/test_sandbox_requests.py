"""What every endpoint has in common: the credential, the description that requests must fit, errors, the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

import httpx
import jsonschema
import pytest

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox import handlers

JSON = {"content-type": "application/json"}
START = {"userId": "u-2", "contentId": "c-1", "contentType": "COURSE", "expiresAt": 1_800_000_000_000}
DONE = {
    "content": [
        {"name": "GDPR basics", "categories": ["Law"], "metadata": {"a": "1"}, "link": "https://acme.example"},
        {"name": "Fire drill", "type": "MEETUP", "occasions": [{"starts": "2026-01-01T00:00:00Z", "attending": "2"}]},
    ],
    "content_targets": [{"content": "Fire drill", "assign_to": ["everyone"]}],
    "certificates": [
        {
            "user": "bo.ek@acme.example",
            "content": "Fire drill",
            "recertification": "GDPR basics",
            "attachments": [{"url": "x"}],
        }
    ],
}
TARGET = {"contentId": "c-1", "targetId": "g-1", "targetType": "GROUP"}


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic sandbox", "sandbox", "Bearer sandböx"]
)
@pytest.mark.parametrize("path", ["/users", "/groups/g-1", "/nowhere"])
def test_a_credential_is_required(api, given, path):
    """Every request needs `Authorization: Bearer` with the right credential; without it nothing else is looked at."""
    headers = [] if given is None else [(b"authorization", given.encode())]
    with httpx.Client(transport=api.sandbox, base_url="http://sandbox") as client:
        answer = client.delete(path, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"] == "unauthorized"
    assert api.ok("GET", "/groups")["groups"]


def test_unknown_paths_and_methods(api):
    """A path that is not there is 404; a method that a path does not take is 405 and names those it takes."""
    assert api.no("GET", "/nowhere") == (404, "there is no endpoint /nowhere")
    assert api.no("GET", "/groups/g-1") == (405, "/groups/g-1 takes DELETE, not GET")
    assert api.call("PATCH", "/users/u-1").headers["allow"] == "GET, DELETE"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"name": "x", "colour": "red"}', "body must not contain {'colour'} properties"),
        (b'{"name": 3}', "body.name must be string"),
        (b'{"name": null}', "body.name must be string"),
        (b"{}", "body must contain ['name'] properties"),
        (b"[]", "body must be object"),
        (b'{"name": "x", "memberIds": ["u-1", 2]}', "body.memberIds[1] must be string"),
        (b'{"name": "x", "name": "y"}', "the body is not JSON: key 'name' is a duplicate"),
        (b'{"name": "x", "memberIds": NaN}', "the body is not JSON: NaN is not a JSON number"),
        (b"", "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_a_body_fits_the_description(api, body, message):
    """Unknown and missing keys, wrong types, a key twice, NaN and no body at all are 400, by name."""
    answer = api.client.post("/groups", content=body, headers=JSON)
    assert (answer.status_code, answer.json()) == (400, {"error": "bad_request", "message": message})


@pytest.mark.parametrize("body", [b'{"name": "\xff"}', b'{"name": "\\ud800"}', b"[" * 100_000, b'{"name": "x"} {}'])
def test_a_body_is_whole_json_in_utf_8(api, body):
    """Bytes that are not UTF-8, half a character, a bottomless body and a second document are 400."""
    assert api.client.post("/groups", content=body, headers=JSON).status_code == 400


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_says_that_it_is_json(api, type):
    """A body of another content type is 400; parameters of the type do no harm."""
    answer = api.client.post("/groups", content=b'{"name": "x"}', headers={"content-type": type})
    assert answer.status_code == 400
    assert "application/json" in answer.json()["message"]
    typed = {"content-type": "Application/JSON; charset=utf-8"}
    assert api.client.post("/groups", content=b'{"name": "x"}', headers=typed).status_code == 200


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/groups?filter=x", "unknown query parameter 'filter'"),
        ("/groups?skip=1&skip=2", "query parameter 'skip' is given twice"),
        ("/smart-groups/sg-1?includeMembers=1", "query parameter 'includeMembers' must be true or false, not '1'"),
        ("/smart-groups?filter=%FF", "the query is not UTF-8: filter=%FF"),
        ("/content/targets?contentID=c-1", "unknown query parameter 'contentID'"),
    ],
)
def test_a_query_fits_the_description(api, path, message):
    """Unknown, repeated and mistyped query parameters are 400, by name."""
    assert api.no("GET", path) == (400, message)


def test_a_body_has_the_names_of_the_dialect(open_workspace):
    """Where the dialect gives a part of a body another name, that name alone is taken."""
    api = open_workspace({"manual-groups.rename.name": "newName", "content-targets.create.mandatory": "isMandatory"})
    assert api.no("POST", "/groups/g-1/rename", {"name": "Mentors"})[0] == 400
    api.ok("POST", "/groups/g-1/rename", {"newName": "Mentors"})
    assert api.ok("GET", "/groups")["groups"][0]["name"] == "Mentors"
    api.ok("POST", "/content/targets", {"contentId": "c-2", "targetId": "g-1", "isMandatory": True})
    assert api.ok("GET", "/content/targets", contentId="c-2")["targets"][0]["mandatory"] is True


def test_names_of_all_kinds_survive(api):
    """Any text is a name, and comes back as it was."""
    names = ["", " x ", "Ä" * 300, "a/b -> c\\d", "'; DROP TABLE groups; --", "\u2028\U0001f600", "a\u0000b"]
    for name in names:
        api.ok("POST", "/groups", {"name": name})
    assert [one["name"] for one in api.ok("GET", "/groups")["groups"][1:]] == names


def test_every_operation_is_carried_out():
    """There is a handler for each operation of the description, and no other."""
    modules = [import_module(f"{handlers.__name__}.{one.name}") for one in iter_modules(handlers.__path__)]
    handled = {operation for module in modules for operation in module.HANDLERS}
    assert handled == ApiSpec.default().operations.keys()
    assert len(handled) == 60
    assert all(map(handlers.find_handler, handled))


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("users.list", "/users"),
        ("users.extended-info", "/users/extended-info"),
        ("users.get", "/users/u-4"),
        ("manual-groups.list", "/groups"),
        ("manual-groups.members", "/groups/g-1/members"),
        ("manual-groups.managers", "/groups/g-1/managers"),
        ("smart-groups.list", "/smart-groups"),
        ("smart-groups.get", "/smart-groups/sg-1?includeMembers=true"),
        ("smart-groups.managers", "/smart-groups/sg-1/managers"),
        ("custom-fields.list", "/custom-fields"),
        ("content.list", "/content/all"),
        ("content.get", "/content/c-1"),
        ("content-targets.list", "/content/targets?contentId=c-1"),
        ("content.meetups", "/content/meetups"),
        ("users.custom-field-choice", "/users/custom-field-choice"),
        ("users.order-details", "/users/u-1/order-details"),
        ("user-certificates.list", "/users/certificates?flatView=true"),
        ("user-certificates.list", "/users/certificates"),
        ("user-certificates.of-user", "/users/u-2/certificates"),
        ("certificates.status", "/manage-certificate/status/job-1"),
        ("analytics.event-logs", "/analyse/event-logs/content/c-1/user/u-2"),
        ("users.search", {"includeGroups": True}),
        ("users.create", {"email": "eve@acme.example"}),
        ("auth.create", {"userId": "u-2"}),
        ("certificates.start", {"userId": "u-1", "contentId": "c-1", "contentType": "COURSE"}),
        ("analytics.results", {}),
        ("analytics.statistics", {}),
        ("users.set-order-details", {"note": "x", "address": {"city": "Oslo"}}),
        ("users.disable-payment", {"disablePayment": True}),
    ],
)
def test_answers_are_as_described(open_workspace, operation, path):
    """Every answer has the shape of the description and no key besides. `path` is what is asked, or the body."""
    api = open_workspace(more=DONE)
    api.ok("POST", "/manage-certificate/participation", START)
    call = ApiSpec.default()[operation]
    answer = (
        api.ok("GET", path)
        if isinstance(path, str)
        else api.ok(call.method, call.fill_path(dict.fromkeys(call.path_parameter_names, "u-2")), path)
    )
    jsonschema.validate(answer, closed(call.success))


def closed(schema: object) -> object:
    """The schema, open to nothing that it does not name: also where it joins several, of which each is open."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    if "allOf" in schema:
        inner = {"properties": closed({name: value for part in flat(schema) for name, value in part.items()})}
    return inner | {"additionalProperties": False} if "properties" in inner else inner


def flat(schema: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The properties of a schema and of all that it joins."""
    if "properties" in schema:
        yield schema["properties"]
    for part in schema.get("allOf", []):
        yield from flat(part)


def test_the_log_holds_every_request(api):
    """`log` has method, path, operation and status of each request, and whether it writes; refused ones too."""
    api.call("GET", "/groups", skip=0)
    api.call("POST", "/groups", {"name": "x"})
    api.call("DELETE", "/content/targets", TARGET | {"targetId": "g-9"})
    api.call("GET", "/nowhere")
    assert api.sandbox.log == [
        ("GET", "/groups", "manual-groups.list", 200, False),
        ("POST", "/groups", "manual-groups.create", 200, True),
        ("DELETE", "/content/targets", "content-targets.delete", 404, True),
        ("GET", "/nowhere", None, 404, False),
    ]
