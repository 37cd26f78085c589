"""The schemas that editors use."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from lmsconf.kinds import all_kinds
from lmsconf.manifest.schemas import manifest_schema, manifest_schema_text
from lmsconf.support.package_data import schema_text


def test_manifest_schema_is_current() -> None:
    """`schemas/manifest.schema.json` says what the kinds say now."""
    current = manifest_schema_text(all_kinds())
    assert schema_text("manifest.schema.json") == current, "write manifest_schema_text(all_kinds()) into the file"


def test_schemas_are_schemas() -> None:
    """Both files are valid JSON Schema of the draft that they name."""
    Draft202012Validator.check_schema(manifest_schema(all_kinds()))
    Draft202012Validator.check_schema(json.loads(schema_text("project.schema.json")))


def test_project_schema_knows_the_kinds() -> None:
    """The sections that can be owned are the sections of the kinds."""
    schema = json.loads(schema_text("project.schema.json"))
    sections = {kind.section for kind in all_kinds().values()}
    assert set(schema["$defs"]["ownership"]["properties"]) == sections
