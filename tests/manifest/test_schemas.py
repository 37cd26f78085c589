"""The schemas that editors use and values are checked by."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lmsconf.manifest.schema_check import SchemaValidator, types_of_schema
from lmsconf.manifest.schemas import manifest_schema, manifest_schema_text
from lmsconf.model.canonical_json import Json
from lmsconf.project.config_file import ownership_properties
from lmsconf.support.folders import read_schema


def test_manifest_schema_is_current() -> None:
    """`schemas/manifest.schema.json` says what the kinds say now."""
    current = manifest_schema_text()
    assert read_schema("manifest.schema.json") == current, "write manifest_schema_text() into the file"


def test_schemas_are_schemas() -> None:
    """Both files are valid JSON Schema of the draft that they name."""
    Draft202012Validator.check_schema(manifest_schema())
    Draft202012Validator.check_schema(json.loads(read_schema("project.schema.json")))


def test_project_schema_is_current() -> None:
    """`schemas/project.schema.json` says of ownership what the kinds say now."""
    schema = json.loads(read_schema("project.schema.json"))
    written, current = schema["$defs"]["ownership"]["properties"], ownership_properties()
    assert json.dumps(written) == json.dumps(current), "write ownership_properties() into the file"


def test_branches_of_a_union_exclude_each_other() -> None:
    """The quick check before jsonschema ends with the first branch that fits, where the schemas say `oneOf`."""
    schemas = [manifest_schema(), json.loads(read_schema("project.schema.json"))]
    unions = [union for schema in schemas for union in _unions(schema)]
    assert len(unions) > 20
    assert [union for union in unions if any(not _exclude(one, other) for one, other in combinations(union, 2))] == []


def _unions(schema: object) -> Iterator[list[dict[str, Any]]]:
    if isinstance(schema, dict) and isinstance(schema.get("oneOf"), list):
        yield schema["oneOf"]
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _unions(part)


def _exclude(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether no value fits both: of different types, or mappings of which one needs a key that the other refuses."""
    if types_of_schema(one).isdisjoint(types_of_schema(other)):
        return True
    if "enum" in one and "enum" in other:
        return not {*one["enum"]} & {*other["enum"]}
    pairs = ((one, other), (other, one))
    return any(
        not b.get("additionalProperties", True) and {*a.get("required", [])} - {*b["properties"]} for a, b in pairs
    )


_TEXT = {"type": "string", "minLength": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": ["string", "null"]},
        {"type": ["integer", "boolean"]},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "object", "description": "prose"},
        {"enum": ["a", None, True]},
        {"const": "a"},
        {"const": True},
        {"const": False},
        {"minLength": 2, "maxLength": 2},
        {"pattern": "^a+\\Z"},
        {"minItems": 1, "maxItems": 2},
        {"minProperties": 1, "maxProperties": 1},
        {"minimum": 0, "maximum": 1},
        {"items": _TEXT},
        {"required": ["a"]},
        {"properties": {"a": {"type": "integer"}, "description": _TEXT}},
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        {"properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        {"properties": {"a": {"type": "integer"}}, "patternProperties": {"^a": {"minimum": 1}, "^x-": {}}},
        {"patternProperties": {"^x-": {}, "^a": {"type": "string"}}, "additionalProperties": False},
        {"additionalProperties": {"type": "integer"}, "propertyNames": {"maxLength": 1}},
        {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        {"oneOf": [{"const": True}, {"type": "array", "items": {"type": "object"}}, {"type": "object"}]},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "additionalProperties": {"$ref": "#/$defs/a"}}}},
    ],
    ids=str,
)
def test_a_value_is_judged_as_jsonschema_judges(schema: dict[str, Json]) -> None:
    """The quick check passes all that is valid, and nothing that is not."""
    values: list[Any] = [
        *(None, True, False, 0, 1, -1, 0.5, 1.0, 10**30, "", "a", "aa", "a\n", "b", "éé"),
        *([], ["a"], ["a", 1], ["", ""], ["a", "b", "c"], [[]], [{}], [{"a": 1}]),
        *({}, {"a": 1}, {"a": "1"}, {"a": {}}, {"a": {"b": 1}}, {"b": 1}, {"b": "c"}, {"a": 0, "b": 1}),
        *({"x-a": 1}, {"a\nb": 1}, {"ab": 2}, {"description": ""}, {"description": "d"}, {"a": True}),
    ]
    judge, validator = Draft202012Validator(schema), SchemaValidator(schema, names=None)
    assert [not validator.validate(value) for value in values] == [judge.is_valid(value) for value in values]


@pytest.mark.parametrize("example", ["quickstart", "acme", "countries"])
def test_valid_projects_need_no_jsonschema(example: str) -> None:
    """Importing it takes as long as all the rest of `validate`: only errors need it."""
    root = Path(__file__).parent.parent.parent
    program = (
        "import sys\nfrom lmsconf.cli import main\n"
        f"try: main(['-C', {str(root / 'examples' / example)!r}, 'validate'])\n"
        "except SystemExit as end: assert not end.code\n"
        "print({'jsonschema'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "set()"
