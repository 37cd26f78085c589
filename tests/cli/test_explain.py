"""`lmsconf explain`: what a key means, from the schema that manifests are checked by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from json_schemas import schema_validator

import lmsconf
from lmsconf.cli import app
from lmsconf.errors import UsageError
from lmsconf.manifest.explain import explain, explainable
from lmsconf.manifest.schemas import manifest_schema
from lmsconf.model.lints import RULES
from lmsconf.model.policy import GUARDS
from lmsconf.model.problem_codes import MEANINGS, meaning_of
from lmsconf.project.base_trust import PARTS
from lmsconf.render.help_pages import explain_json


def paths(schema: Mapping[str, object], trail: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path of keys that the schema has, in two levels."""
    for one in (schema, schema.get("items", {})):
        found = one.get("properties", {}) if isinstance(one, dict) else {}
        for name, part in found.items():
            yield (*trail, name)
            if len(trail) < 2:
                yield from paths(part, (*trail, name))


@pytest.mark.parametrize("path", sorted({".".join(trail) for trail in paths(manifest_schema())}))
def test_every_key_is_explained(path: str) -> None:
    """Each has a type in words; each that people write has a meaning."""
    found = explain(path)
    assert found.path == path
    assert "anything" not in found.type
    assert found.meaning


@pytest.mark.parametrize(
    ("asked", "said", "hint"),
    [
        ("grops", 'there is no kind, section or key "grops"', 'Did you mean "groups"?'),
        ("group.member", 'groups has no key "member"', 'Did you mean "members"?'),
        ("group.name.first", 'groups.name has no key "first"', "It has no keys."),
    ],
)
def test_an_unknown_word(asked: str, said: str, hint: str) -> None:
    """The nearest word that is there is offered."""
    with pytest.raises(UsageError) as error:
        explain(asked)
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
    validator = schema_validator("explain")
    asked = {".".join(trail) for trail in paths(manifest_schema())} | {""}
    documents = [json.loads(explain_json(explain(one))) for one in asked]
    assert [error.message for one in documents for error in validator.iter_errors(one)] == []
    assert not validator.is_valid({**documents[0], "extra": 1})


def project_paths(path: str = "project") -> Iterator[str]:
    """Every path of keys of the project file."""
    for key in explain(path).keys:
        below = f"{path}.{key.name}"
        yield below
        if "/" not in key.name:
            yield from project_paths(below)


@pytest.mark.parametrize("path", sorted(project_paths()))
def test_every_key_of_the_project_file_is_explained(path: str) -> None:
    """Without the word before it too, where no section of a manifest has the same name."""
    found = explain(path)
    assert found.path == path.removeprefix("project.")
    assert found.type.startswith("key of lmsconf.yaml: ")
    assert found.meaning
    assert explain(found.path) == found or found.path == "lint"


@pytest.mark.parametrize(
    ("asked", "path", "meaning"),
    [
        ("guards", "guards", "Where a plan stops"),
        ("workspaces.url", "workspaces.url", "sandbox:FILE"),
        ("workspaces.production.url", "workspaces.url", "sandbox:FILE"),
        ("for_each", "for_each", "A key of: custom_fields, users, groups"),
        ("set", "set", "groups.members"),
        ("people_sets", "people_sets", "{set: NAME}"),
        ("tests", "tests", "planned state"),
        ("windows", "windows", "window: NAME"),
        ("default_workspace", "default_workspace", "The workspace"),
        ("description", "custom_fields.description", "null clears it"),
        ("reference/unknown-choice", "reference/unknown-choice", "has no choice of this name"),
        ("project/unknown-key", "project/unknown-key", "No such key"),
        ("lint/closed-window", "lint/closed-window", "is over"),
    ],
)
def test_other_things_are_explained(asked: str, path: str, meaning: str) -> None:
    """The project file, keys that may stand in many places, sets, loops, tests, windows, lints and codes."""
    found = explain(asked)
    assert found.path == path
    assert meaning in found.meaning


def test_a_key_with_several_meanings_is_explained_place_by_place() -> None:
    """`name` is that of a field, of a group, of content: each path is listed with what it means there."""
    found = explain("name")
    assert {"groups.name", "custom_fields.name", "tests.name"} <= {key.name for key in found.keys}
    assert all(key.meaning for key in found.keys)
    assert not any(key.name.startswith("absent.") for key in found.keys)


def test_without_an_argument_all_is_listed() -> None:
    """Sections, and the words that list what else there is; each of them is explained."""
    names = [key.name for key in explain("").keys]
    assert names[-3:] == ["project", "lint", "codes"]
    assert all(explain(name).keys for name in names)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("gards", '"guards"'),
        ("guards.delets", '"deletes"'),
        ("workspaces.production.tokn", '"token"'),
        ("for_eech", '"for_each"'),
        ("referense/unknown-choice", '"reference/unknown-choice"'),
        ("lint/closed-windw", '"lint/closed-window"'),
        ("visible_untill", '"visible_until"'),
    ],
)
def test_the_nearest_of_all_is_offered(asked: str, hint: str) -> None:
    """Of keys, wherever they may stand, and of codes."""
    with pytest.raises(UsageError) as error:
        explain(asked)
    assert error.value.hint == f"Did you mean {hint}?"


_CODE = re.compile(r'"([a-z][a-z_-]*/[a-z][a-z-]*)"')
_NO_CODES = {"application/json", "application/gzip", "text/html", "examples/acme", "github/lmsconf-"}


def test_every_code_is_explained() -> None:
    """Each code that stands in the program has a meaning, and no other has one."""
    root = Path(lmsconf.__file__).parent
    files = (file for file in root.rglob("*.py") if file.name != "problem_codes.py")
    codes = {code for file in files for code in _CODE.findall(file.read_text(encoding="utf-8"))} - _NO_CODES
    assert {
        code for code in codes if meaning_of(code) is None and code not in RULES and not code.endswith("-")
    } == set()
    built = ("guard/", "trust/", "manifest/", "sheet/", "set/", "window/", "reference/unknown-", "usage", "interrupted")
    assert {code for code in MEANINGS if code not in codes and not code.startswith(built)} == set()
    assert {f"guard/{name}" for name in GUARDS} | {f"trust/{part}" for part in PARTS} <= MEANINGS.keys()


@pytest.mark.parametrize(
    ("begun", "offered"),
    [
        ("gua", "guards"),
        ("group.mem", "group.members"),
        ("lint/cl", "lint/closed-window"),
        ("for", "for_each"),
        ("workspaces.to", "workspaces.token"),
    ],
)
def test_what_can_be_explained_is_completed(begun: str, offered: str) -> None:
    """Words of a path, and codes."""
    found = [one for one in explainable(begun) if one.startswith(begun)]
    assert found[0] == offered
    assert all("/" in one for one in found[1:])
