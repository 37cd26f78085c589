"""The JSON Schemas of the documents that lmsconf writes."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from lmsconf.support.files import read_schema


@cache
def schema_validator(name: str) -> Draft202012Validator:
    """What judges by `schemas/NAME.schema.json`, which is checked itself, once in a process."""
    rules = json.loads(read_schema(f"{name}.schema.json"))
    Draft202012Validator.check_schema(rules)
    return Draft202012Validator(rules)


def sarif_log(text: str) -> Any:
    """A log of SARIF 2.1.0 as a model of the standard reads it, which is imported only where one is read."""
    from sarif_pydantic import Sarif

    return Sarif.model_validate_json(text)
