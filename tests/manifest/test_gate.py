"""The gate before jsonschema says of a value what jsonschema says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from lmsconf.manifest.validation.gate import compile_gate

_TEXT = {"type": "string", "minLength": 1}
SCHEMAS = [
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
    {"properties": {"a": {"type": "integer"}}, "patternProperties": {"^a": {"minimum": 1}, "^x-": True}},
    {"patternProperties": {"^x-": {}, "^a": {"type": "string"}}, "additionalProperties": False},
    {"additionalProperties": {"type": "integer"}, "propertyNames": {"maxLength": 1}},
    {"propertyNames": {"not": {"type": "string", "pattern": "[\\n]"}}},
    {"not": {"type": "string", "pattern": "[\\t\\r\\n]"}},
    {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    {"oneOf": [{"minimum": 1}, {"type": "string"}]},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}}},
    {"$ref": "#/$defs/a", "minLength": 2, "$defs": {"a": {"type": "string"}}},
]
VALUES: list[object] = [
    *(None, True, False, 0, 1, -1, 0.5, 1.0, 10**30, float("nan"), "", "a", "aa", "a\n", "b", "éé"),
    *([], ["a"], ["a", 1], ["", ""], ["a", "b", "c"], [[]]),
    *({}, {"a": 1}, {"a": "1"}, {"a": {}}, {"a": {"b": 1}}, {"b": 1}, {"b": "c"}, {"a": 0, "b": 1}),
    *({"x-a": 1}, {"a\nb": 1}, {"ab": 2}, {"description": ""}, {"description": "d"}, {"a": True}),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_the_gate_says_what_jsonschema_says(schema: dict[str, object]) -> None:
    """Of every value, valid or not, so that it can stand in a union, too."""
    judge, gate = Draft202012Validator(schema), compile_gate(schema)
    assert [gate(value) for value in VALUES] == [judge.is_valid(value) for value in VALUES]


@pytest.mark.parametrize(
    "schema",
    [
        {"uniqueItems": True},
        {"enum": [1]},
        {"const": {"a": 1}},
        {"not": {"uniqueItems": True}},
        {"oneOf": [{"type": "string"}, {"dependentRequired": {}}]},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://example.com/schema"},
    ],
    ids=str,
)
def test_a_schema_that_the_gate_does_not_know_is_left_to_jsonschema(schema: dict[str, object]) -> None:
    """Such a gate lets nothing through."""
    assert not any(compile_gate(schema)(value) for value in VALUES)


@pytest.mark.parametrize("example", ["quickstart", "acme", "countries"])
def test_sound_projects_pass_the_gate(example: str) -> None:
    """Neither the project file nor a manifest needs jsonschema while all is valid."""
    root = Path(__file__).parent.parent.parent
    program = (
        "import sys\nfrom lmsconf.cli import main\n"
        f"try: main(['-C', {str(root / 'examples' / example)!r}, 'validate'])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(sorted({'jsonschema', 'fastjsonschema'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
