"""`lmsconf explain`: what a key means, from the schema that manifests are checked by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from lmsconf.cli import app
from lmsconf.errors import UsageError
from lmsconf.kinds import all_kinds
from lmsconf.manifest.explain import explain
from lmsconf.manifest.schemas import manifest_schema
from lmsconf.render.key_explanation import explain_json
from lmsconf.support.package_data import read_schema


def paths(schema: Mapping[str, object], trail: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path of keys that the schema has, in two levels."""
    for one in (schema, schema.get("items", {})):
        found = one.get("properties", {}) if isinstance(one, dict) else {}
        for name, part in found.items():
            yield (*trail, name)
            if len(trail) < 2:
                yield from paths(part, (*trail, name))


@pytest.mark.parametrize("path", sorted({".".join(trail) for trail in paths(manifest_schema(all_kinds()))}))
def test_every_key_is_explained(path: str) -> None:
    """Each has a type in words; each that people write has a meaning."""
    found = explain(all_kinds(), path)
    assert found.path == path
    assert "anything" not in found.type
    assert found.meaning


def test_a_kind_is_found_by_its_name_and_by_its_section() -> None:
    """`group` in an address and `groups` in a manifest are the same."""
    assert explain(all_kinds(), "group") == explain(all_kinds(), "groups")
    assert explain(all_kinds(), "smart_group.conditions.field").path == "smart_groups.conditions.field"
    assert [key.name for key in explain(all_kinds(), "group").keys if key.needed] == ["name"]


@pytest.mark.parametrize(
    ("asked", "said", "hint"),
    [
        ("grops", 'there is no kind or section "grops"', 'Did you mean "groups"?'),
        ("group.member", 'groups has no key "member"', 'Did you mean "members"?'),
        ("group.name.first", 'groups.name has no key "first"', "It has no keys."),
    ],
)
def test_an_unknown_word(asked: str, said: str, hint: str) -> None:
    """The nearest word that is there is offered."""
    with pytest.raises(UsageError) as error:
        explain(all_kinds(), asked)
    assert (error.value.message, error.value.hint) == (said, hint)


def test_what_is_printed(tmp_path: Path) -> None:
    """For a person the keys with their meaning; for a script the same as a document."""
    said = CliRunner().invoke(app, ["explain", "smart_group.conditions"]).output
    assert said.startswith(
        "smart_groups.conditions: list of mapping\n\n  Conditions; people must meet all of them.\n\nKeys:\n  field "
    )
    document = json.loads(CliRunner().invoke(app, ["explain", "group", "--format", "json"]).output)
    assert (document["format"], document["path"]) == ("lmsconf.explain/1", "groups")
    assert document["keys"][0] == {
        "name": "name",
        "type": "text",
        "meaning": "The name in the workspace.",
        "needed": True,
    }


def test_the_document_fits_its_schema() -> None:
    """Of a whole manifest and of every key in it; a document with an unknown key does not fit."""
    rules = json.loads(read_schema("explain.schema.json"))
    Draft202012Validator.check_schema(rules)
    validator = Draft202012Validator(rules)
    asked = {".".join(trail) for trail in paths(manifest_schema(all_kinds()))} | {""}
    documents = [json.loads(explain_json(explain(all_kinds(), one))) for one in asked]
    assert [error.message for one in documents for error in validator.iter_errors(one)] == []
    assert not validator.is_valid({**documents[0], "extra": 1})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_the_commands(shell: str) -> None:
    """The script names the program and the variable that asks it."""
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert "_LMSCONF_COMPLETE" in done.output


def test_the_shell_is_answered() -> None:
    """What the script asks for is answered: the commands that begin so."""
    env = {"_LMSCONF_COMPLETE": "bash_complete", "COMP_WORDS": "lmsconf ex", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], env=env, prog_name="lmsconf")
    assert "plain,explain" in done.output.split()
