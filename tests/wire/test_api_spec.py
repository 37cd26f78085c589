"""ApiSpec: routes, paths and bodies in the words of a project's dialect."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import listed_cases, text_of

from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.api.spec.operations import load_api_description, object_properties
from lmsconf.errors import Problem, ProblemsFound
from lmsconf.model.address import Address, Ref
from lmsconf.support.files import read_schema

from .second_dialect import FORBIDDING, second_dialect

SPEC = ApiSpec.default()
CHOSEN = {"action": "REMOVE", "endow": "true"}
"""Path parameters that take no other values."""


def problem(dialect: dict[str, object]) -> Problem:
    """The one problem that a dialect has."""
    with pytest.raises(ProblemsFound) as caught:
        ApiSpec(dialect)
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize("operation", SPEC.operations.values(), ids=lambda operation: operation.id)
def test_a_filled_path_leads_back(operation: Operation) -> None:
    """Whatever characters ids hold, a request is routed to its own operation with the same ids."""
    for value in ("u-1", "a/b", "a b?c#d%2F", "..a", "é😀", "{groupId}", "extended-info.", "+&=;"):
        path = {name: CHOSEN.get(name, value) for name in operation.path_schemas}
        found = SPEC.match_route(operation.method, operation.fill_path(path))
        assert found is not None
        assert (found[0].id, found[1]) == (operation.id, path)


@given(st.text(min_size=1))
def test_a_segment_stays_a_segment(value: str) -> None:
    """An id is either refused or stands in the path as exactly one segment that decodes to it."""
    try:
        filled = SPEC["users.get"].fill_path({"userId": value})
    except ValueError:
        return
    assert filled.startswith("/users/")
    assert "/" not in filled[7:]
    assert unquote(filled[7:]) == value
    assert filled[7:] not in (".", "..")
    assert filled.isascii()


@pytest.mark.parametrize("value", ["", ".", "..", "a\nb", "\x00", "\x7f", "\x85", "\ud800"])
def test_ids_that_could_reach_elsewhere_are_refused(value: str) -> None:
    """Empty ids, dots, control characters and half characters never become a path."""
    with pytest.raises(ValueError, match=r"path|surrogates"):
        SPEC["users.get"].fill_path({"userId": value})


@listed_cases("method", "path", "operation")
def test_fixed_parts_win_over_parameters(method: str, path: str, operation: str) -> None:
    """A path that is one by itself is never taken for another one's parameter."""
    found = SPEC.match_route(method, path)
    assert found is not None
    assert found[0].id == operation


def test_a_body_keeps_what_it_is_given() -> None:
    """Values pass untouched, names that still wait for their id too; a name that the body lacks is refused."""
    ref = Ref(Address.of("group", "Sales"))
    assert SPEC.body_to_wire("content-targets.create", contentId="c", targetId=ref, startTime=None) == {
        "contentId": "c",
        "targetId": ref,
        "startTime": None,
    }
    with pytest.raises(ValueError, match=r"content-targets\.create has no body property \['dueDate'\]"):
        SPEC.body_to_wire("content-targets.create", dueDate="2026-01-05")


@listed_cases("dialect", "code", "message", "hint")
def test_what_a_dialect_cannot_say_is_an_error(
    dialect: dict[str, object], code: str, message: str, hint: str | None
) -> None:
    """Unknown keys, with the nearest; values that a key cannot have; and a name that another part of a body has."""
    found, (value,) = problem(dialect), dialect.values()
    assert (found.code, found.message, found.hint) == (code, message.format(repr(value)), hint)


def test_two_parts_of_a_body_may_change_names() -> None:
    """A name is only taken where the other part keeps it."""
    swapped = ApiSpec({"content-targets.create.startTime": "finishTime", "content-targets.create.finishTime": "end"})
    body = swapped.body_to_wire("content-targets.create", startTime="a", finishTime="b")
    assert body == {"finishTime": "a", "end": "b"}


def test_all_problems_of_a_dialect_are_told_together() -> None:
    """Two mistakes are two problems in one run."""
    with pytest.raises(ProblemsFound) as caught:
        ApiSpec({"nothing": "x", "paging.limit": -1})
    assert [found.code for found in caught.value.problems] == ["dialect/unknown-key", "dialect/value"]


# The API description: sound, complete for what it speaks of, and honest about what is assumed.


DOCUMENT = json.loads(read_schema("openapi.json"))
OPERATIONS = list(ApiSpec.default().operations.values())

SPECIFIED = text_of(__file__, "api_spec_specified.txt")
READS = {"users.search", "analytics.results", "analytics.statistics"}
"""What is asked by a POST and changes nothing."""


def every(node: object) -> Iterator[dict[str, object]]:
    """Every object of the document, at any depth."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from every(child)


def test_every_endpoint_is_there_and_no_other() -> None:
    """Methods and paths are the specification's 60, and the operations name them once each."""
    specified = [tuple(line.split()) for line in SPECIFIED.replace("\n", " ").strip().split(";")]
    assert len(set(specified)) == len(specified) == 60
    assert sorted((operation.method, operation.path) for operation in OPERATIONS) == sorted(specified)


@pytest.mark.slow
def test_the_description_is_openapi() -> None:
    """The document is a valid OpenAPI 3.1 document."""
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(DOCUMENT)


def test_groups_are_those_of_the_specification() -> None:
    """The tags are the groups that have endpoints, in order; the two whose endpoints are not shown are named."""
    groups = ["Authentication", "Users", "User Access", "User Certificates", "Certificate Management", "Manual Groups",
              "Smart Groups", "Custom Fields", "Content Catalog", "Content Targeting", "Analytics"]  # fmt: skip
    assert [tag["name"] for tag in DOCUMENT["tags"]] == groups
    tags = (operation["tags"][0] for path in DOCUMENT["paths"].values() for operation in path.values())
    assert list(dict.fromkeys(tags)) == groups
    assert all(name in DOCUMENT["info"]["description"] for name in ("Workspace", "Purchases"))


def test_what_is_assumed_says_so_and_has_a_key() -> None:
    """x-assumed and x-dialect come together, and every behaviour that is named is described."""
    for node in every({key: value for key, value in DOCUMENT.items() if key != "x-dialect"}):
        assert ("x-assumed" in node) == ("x-dialect" in node)
    named = {key for operation in OPERATIONS for key in operation.dialect_keys}
    assert DOCUMENT["x-dialect"].keys() <= named


def test_links_lead_somewhere() -> None:
    """A link names an operation and its parameters, and takes what it hands on from answers and requests there are."""
    for path, method, link in links():
        source = ApiSpec.default().match_route(method, path)
        target = ApiSpec.default()[link["operationId"]]
        assert source is not None
        assert set(link.get("parameters", {})) <= {*target.path_schemas, *target.query}
        assert set(link.get("requestBody", {})) <= object_properties(target.body or {}).keys()
        for place, pointer in re.findall(r"\$(request|response)\.body#([^\"]+)", json.dumps(link)):
            assert leads(source[0].success if place == "response" else source[0].body, pointer[1:].split("/"))


def links() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and link, for every link of the document."""
    for path, item in DOCUMENT["paths"].items():
        for method, said in item.items():
            for answer in said["responses"].values():
                yield from ((path, method.upper(), link) for link in answer.get("links", {}).values())


def leads(schema: Any, steps: list[str]) -> bool:
    """Whether there is something at the end of that way through a value of this schema."""
    for step in steps:
        schema = schema["items"] if step.isdigit() else schema["properties"].get(step)
        if schema is None:
            return False
    return True


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_an_operation_is_whole(operation: Operation) -> None:
    """Its id is in its group's words, its parameters are declared as its path has them, and its schemas are schemas."""
    said = DOCUMENT["paths"][operation.path][operation.method.lower()]
    declared = {one.get("name", one.get("$ref", "").rpartition("/")[2]) for one in said.get("parameters", [])}
    assert set(operation.path_schemas) <= declared
    for schema in filter(None, (operation.body, operation.success, *operation.query.values())):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert not any("$ref" in node for node in every(schema))
    if operation.body:
        is_open = operation.body.get("additionalProperties") is not False
        assert is_open == (operation.id == "users.update-custom-field-choice")
    assert operation.writes == (operation.method != "GET" and operation.id not in READS)


@listed_cases("operation", "body", "fits")
def test_bodies_are_described_strictly(operation: str, body: dict[str, object], fits: bool) -> None:
    """What the specification requires, forbids and enumerates is in the schema of the body."""
    assert jsonschema.Draft202012Validator(ApiSpec.default()[operation].body or False).is_valid(body) is fits


# The second dialect: nothing in it is as lmsconf assumes.


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
        assumed = {
            name for name in object_properties(operation.body or {}) if f"{id}.{name}" in load_api_description().names
        }
        assert not assumed & set(object_properties(second[id].body or {})), id
