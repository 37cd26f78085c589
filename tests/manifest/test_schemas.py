"""The schemas that editors use."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from lmsconf.kinds import all_kinds
from lmsconf.manifest.schemas import manifest_schema, manifest_schema_text
from lmsconf.project.ownership_keys import ownership_properties
from lmsconf.support.package_data import read_schema


def test_manifest_schema_is_current() -> None:
    """`schemas/manifest.schema.json` says what the kinds say now."""
    current = manifest_schema_text(all_kinds())
    assert read_schema("manifest.schema.json") == current, "write manifest_schema_text(all_kinds()) into the file"


def test_schemas_are_schemas() -> None:
    """Both files are valid JSON Schema of the draft that they name."""
    Draft202012Validator.check_schema(manifest_schema(all_kinds()))
    Draft202012Validator.check_schema(json.loads(read_schema("project.schema.json")))


def test_project_schema_is_current() -> None:
    """`schemas/project.schema.json` says of ownership what the kinds say now."""
    schema = json.loads(read_schema("project.schema.json"))
    written, current = schema["$defs"]["ownership"]["properties"], ownership_properties()
    assert json.dumps(written) == json.dumps(current), "write ownership_properties() into the file"
