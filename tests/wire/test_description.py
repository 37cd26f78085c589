"""The API description: sound, complete for what it speaks of, and honest about what is assumed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import jsonschema
import pytest

from lmsconf.resources import schema_text
from lmsconf.wire import Operation, Wire

DOCUMENT = json.loads(schema_text("openapi.json"))
OPERATIONS = list(Wire.default().operations.values())

SPECIFIED = """
GET /users; GET /users/extended-info; GET /users/{userId};
GET /groups; POST /groups; DELETE /groups/{groupId}; POST /groups/{groupId}/rename;
GET /groups/{groupId}/managers; POST /groups/{groupId}/managers; DELETE /groups/{groupId}/managers/{userId};
GET /groups/{groupId}/members; POST /groups/{groupId}/members; DELETE /groups/{groupId}/members/{userId};
GET /smart-groups; POST /smart-groups; GET /smart-groups/{smartGroupId}; DELETE /smart-groups/{smartGroupId};
POST /smart-groups/{smartGroupId}/rename; POST /smart-groups/{smartGroupId}/replace-conditions;
GET /smart-groups/{smartGroupId}/managers; POST /smart-groups/{smartGroupId}/managers;
DELETE /smart-groups/{smartGroupId}/managers/{userId};
GET /custom-fields; POST /custom-fields; PUT /custom-fields/{customFieldId}; DELETE /custom-fields/{customFieldId};
GET /content/all; GET /content/{contentId};
GET /content/targets; POST /content/targets; DELETE /content/targets
"""


def every(node: object) -> Iterator[dict[str, object]]:
    """Every object of the document, at any depth."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from every(child)


def test_every_endpoint_is_there_and_no_other() -> None:
    """Methods and paths are those of the specification, for the groups that are described so far."""
    specified = {tuple(line.split()) for line in SPECIFIED.replace("\n", " ").strip().split(";")}
    assert {(operation.method, operation.path) for operation in OPERATIONS} == specified


def test_what_is_assumed_says_so_and_has_a_key() -> None:
    """x-assumed and x-dialect come together, and every behaviour that is named is described."""
    for node in every({key: value for key, value in DOCUMENT.items() if key != "x-dialect"}):
        assert ("x-assumed" in node) == ("x-dialect" in node)
    named = {key for operation in OPERATIONS for key in operation.leans_on}
    assert DOCUMENT["x-dialect"].keys() <= named


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_an_operation_is_whole(operation: Operation) -> None:
    """Its id is in its group's words, its parameters are declared as its path has them, and its schemas are schemas."""
    said = DOCUMENT["paths"][operation.path][operation.method.lower()]
    declared = {one.get("$ref", "").rpartition("/")[2] for one in said.get("parameters", [])}
    assert set(operation.path_names) <= declared
    for schema in filter(None, (operation.body, operation.success, *operation.query.values())):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert not any("$ref" in node for node in every(schema))
    if operation.body:
        assert operation.body["additionalProperties"] is False
    assert operation.writes == (operation.method != "GET")


@pytest.mark.parametrize(
    ("operation", "body", "fits"),
    [
        ("custom-fields.create", {"name": "A", "type": "TEXT"}, True),
        ("custom-fields.create", {"name": "A", "type": "CHOICE"}, False),
        ("custom-fields.create", {"name": "A", "type": "CHOICE", "choices": [{"name": "x"}]}, True),
        ("custom-fields.create", {"name": "A", "type": "CHOICE", "choices": [{"name": "x", "choiceId": "1"}]}, False),
        ("custom-fields.replace", {"name": "A", "type": "CHOICE", "choices": [{"name": "x", "choiceId": "1"}]}, True),
        ("custom-fields.create", {"name": "A", "type": "NUMBER"}, False),
        ("smart-groups.create", {"name": "A", "conditions": []}, False),
        ("smart-groups.create", {"name": "A", "conditions": [{"customFieldId": "f", "choiceIds": ["c"]}]}, True),
        ("content-targets.create", {"contentId": "c"}, False),
        ("content-targets.create", {"contentId": "c", "targetId": "g", "userId": "u"}, False),
        ("content-targets.create", {"contentId": "c", "targetId": "g", "mandatory": True, "startTime": None}, True),
        ("content-targets.delete", {"contentId": "c", "targetId": "g"}, False),
    ],
)
def test_bodies_are_described_strictly(operation: str, body: dict[str, object], fits: bool) -> None:
    """What the specification requires, forbids and enumerates is in the schema of the body."""
    assert jsonschema.Draft202012Validator(Wire.default()[operation].body or False).is_valid(body) is fits


@pytest.mark.parametrize("operation", ["custom-fields.replace", "custom-fields.delete"])
def test_a_field_in_use_is_a_documented_refusal(operation: str) -> None:
    """PUT and DELETE of a custom field document the 403 of a field in use."""
    known = Wire.default()[operation]
    assert "403" in DOCUMENT["paths"][known.path][known.method.lower()]["responses"]


def test_the_catalog_documents_its_cap() -> None:
    """GET /content/all caps its limit at 100, and every listing starts at 0 with 100 rows."""
    assert Wire.default()["content.list"].query["limit"]["x-cap"] == 100
    for operation in OPERATIONS:
        if "skip" in operation.query:
            assert (operation.query["skip"]["default"], operation.query["limit"]["default"]) == (0, 100)
