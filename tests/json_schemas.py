"""The JSON Schemas of the documents that lmsconf writes."""

from __future__ import annotations

import json
from functools import cache

from jsonschema import Draft202012Validator

from lmsconf.support.files import read_schema


@cache
def schema_validator(name: str) -> Draft202012Validator:
    """What judges by `schemas/NAME.schema.json`, which is checked itself, once in a process."""
    rules = json.loads(read_schema(f"{name}.schema.json"))
    Draft202012Validator.check_schema(rules)
    return Draft202012Validator(rules)
