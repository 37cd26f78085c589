"""Malformed manifests: what is said of each, word by word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmsconf.manifest.load import load_folder
from lmsconf.manifest.schema_check import SchemaValidator
from lmsconf.manifest.schema_messages import WORDED
from lmsconf.manifest.schemas import manifest_schema
from lmsconf.model.canonical_json import Json
from lmsconf.support.folders import read_schema
from manifest.cases import Case, cases, shown

CASES = [case for path in sorted(Path(__file__).parent.glob("malformed*.txt")) for case in cases(path)]
VARIABLES: dict[str, Json] = {
    "region": "Nordics",
    "nordics": ["SE", "NO"],
    "strict": True,
    "tens": list("0123456789"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_malformed_manifest(case: Case, tmp_path: Path) -> None:
    """A malformed manifest is told about at file, line and column, with the reason and the way out."""
    (tmp_path / "a.yaml").write_text(case.text, encoding="utf-8")
    found = load_folder(tmp_path, tmp_path, variables=VARIABLES)
    assert shown(found.problems) == case.told
    assert found.problems


def test_all_files_are_told_about_in_one_run(tmp_path: Path) -> None:
    """Problems of YAML, shape, references and people in several files come together, in the order of the files."""
    folder = tmp_path / "manifests"
    (folder / "hr").mkdir(parents=True)
    (folder / "a.yaml").write_text("groups:\n  - name: @home\n")
    (folder / "b.yml").write_text("grups: []\n")
    (folder / "hr" / "c.yaml").write_text(
        "smart_groups: [{name: A, conditions: [{field: Region, choices: [Nrth]}]}]\n"
        "groups: [{name: B, members: {file: people.csv, column: mail}}]\n"
    )
    (folder / "hr" / "people.csv").write_text("email,team\nbo.ek@acme.example,A\n")
    (folder / "z.yaml").write_text("custom_fields: [{name: Region, type: CHOICE, choices: [North]}]\n")
    (folder / "broken.yaml").write_bytes(b"groups: []\n# caf\xe9\n")
    assert [str(problem.source) + " " + problem.code for problem in load_folder(folder, tmp_path).problems] == [
        "manifests/a.yaml:2:11 yaml/syntax",
        "manifests/b.yml:1:1 manifest/unknown-key",
        "manifests/broken.yaml:2:6 manifest/encoding",
        "manifests/hr/c.yaml:1:65 reference/unknown-choice",
        "manifests/hr/people.csv:1:1 people/column",
    ]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": True}, 1),
        ({"oneOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]}, {"b": 1}),
        (
            {"type": "object", "properties": {"description": {"type": "string"}}, "additionalProperties": False},
            {"d": 1},
        ),
        ({"type": "integer", "minimum": 0}, True),
        ({"enum": ["a", "b"]}, "c"),
        ({"oneOf": [{"enum": ["a"]}, {"const": False}]}, 0),
        ({"type": "string", "minLength": 1}, "a\n"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a\tb": "c"}),
        ({"type": "string", "pattern": "^[a-z]+$"}, "a\n"),
    ],
)
def test_what_the_schema_forbids_is_found(schema: dict[str, object], value: object) -> None:
    """A value that the schema forbids is found, however the schema is rewritten."""
    assert SchemaValidator(schema).validate(value)


@pytest.mark.parametrize("description", ["|\n      Several\n      lines\n", '"a\\tb"', '" "'])
def test_descriptions_may_hold_what_names_may_not(description: str, tmp_path: Path) -> None:
    """A description may go over several lines, hold tabs, or be blank, and what is only passed on may too."""
    (tmp_path / "a.yaml").write_text(
        f"custom_fields:\n  - name: Team\n    type: TEXT\n    description: {description}\n"
        'smart_groups: [{name: A, conditions: [{field: Team, system_condition: "IS\\nANY"}], about: {why: "a\\nb"}}]\n'
        'users: [{email: bo.ek@acme.example, answers: {Team: "two\\nlines"}}]\n'
    )
    found = load_folder(tmp_path, tmp_path)
    assert found.problems == ()
    assert len(found.declared) == 3


def test_every_problem_has_a_way_out() -> None:
    """Under every error of the tables stands a hint that says what to do."""
    for case in CASES:
        lines = case.told.splitlines()
        for line, below in zip(lines, [*lines[1:], ""], strict=True):
            assert line.startswith("  ") or below.startswith("  "), line


@pytest.mark.parametrize(
    ("mistake", "pasted"),
    [
        ("content_targets: [{content: A, assign_to: [Staff]}]", "{group: Staff}"),
        ("content_targets: [{content: A, assign_to: ['true, \"x\"']}]", '{smart_group: "true, \\"x\\""}'),
        ("content_targets: [{content: A, assign_to: [p00@acme.example]}]", "{user: p00@acme.example}"),
        ("groups: [{name: A, members: a@acme.example}]", "[a@acme.example]"),
        ("groups: Sales", "[{name: Sales}]"),
        ("groups: ['null']", '{name: "null"}'),
        ("groups: [5]", '{name: "5"}'),
        ("absent: {groups: [{name: A, until: 31.12.2027}]}", "2027-12-31"),
    ],
)
def test_a_way_out_can_be_pasted(mistake: str, pasted: str, tmp_path: Path) -> None:
    """What is offered in place of a mistake is sound where the mistake stood."""
    (tmp_path / "a.yaml").write_text(f"{mistake}\n")
    (problem,) = load_folder(tmp_path, tmp_path).problems
    assert pasted in str(problem.hint)
    assert problem.source
    begin = problem.source.column - 1
    end = mistake.index("'", begin + 1) + 1 if mistake[begin] == "'" else begin
    while end < len(mistake) and mistake[end] not in "]},":
        end += 1
    (tmp_path / "a.yaml").write_text(f"{mistake[:begin]}{pasted}{mistake[end:]}\n")
    assert load_folder(tmp_path, tmp_path).problems == ()


def test_every_keyword_has_its_words() -> None:
    """The schemas use no keyword that has no message of its own."""
    schemas = [manifest_schema(), json.loads(read_schema("project.schema.json"))]
    used = {keyword for schema in schemas for keyword in _keywords(schema)}
    assert used <= WORDED | {"oneOf", "anyOf", "items", "properties", "patternProperties", "$ref", "$defs", "$schema"}
    assert {"minItems", "oneOf", "$ref"} <= used


def _keywords(schema: Json) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    for key, part in schema.items():
        if key in ("description", "title") or key.startswith("x-"):
            continue
        yield key
        below: list[Json] = []
        if key in ("properties", "patternProperties", "$defs"):
            below = list(part.values()) if isinstance(part, dict) else []
        elif key in ("oneOf", "anyOf"):
            below = part if isinstance(part, list) else []
        elif isinstance(part, dict):
            below = [part]
        for inner in below:
            yield from _keywords(inner)
