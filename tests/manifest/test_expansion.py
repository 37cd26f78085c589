"""What makes manifests shorter: `for_each`, sets and `except` mean what a plain manifest would say at length."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import pytest
from call_count import Effort
from json_schemas import schema_validator
from jsonschema import Draft202012Validator
from texts import listed_cases, text_of

from lmsconf.errors import Problem
from lmsconf.kinds.kind_table import KINDS
from lmsconf.manifest.load import ExpandedEntries, load_folder
from lmsconf.manifest.nodes import EntrySourceMap
from lmsconf.manifest.schema_check import declared_section
from lmsconf.manifest.variables import Reporter, Variables
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.project.config_reader import read_project_file
from lmsconf.workspace.manifest_files import expanded_manifest

VARIABLES: dict[str, Json] = {
    "none": [],
    "countries": ["SE", "NO"],
    "strict": True,
    "leads": ["anna.berg@acme.example", "bo.ek@acme.example"],
}
FIELDS = """\
custom_fields:
  - {name: Country, type: CHOICE, choices: $(countries)}
  - {name: Employment, type: CHOICE, choices: [Permanent, {name: Contractor, previously: [External]}, Temp]}
"""
SETS = text_of(__file__, "expansion_sets.yaml")
GROUPS = text_of(__file__, "expansion_groups.yaml")
TARGETS = text_of(__file__, "expansion_targets.yaml")
PLAIN = text_of(__file__, "expansion_plain.yaml")
SHORT = {"fields.yaml": FIELDS, "sets.yaml": SETS, "hr.yaml": GROUPS, "targets.yaml": TARGETS}


def loaded(root: Path, files: dict[str, str], expanded: ExpandedEntries | None = None) -> Manifests:
    (root / "hr").mkdir(parents=True, exist_ok=True)
    (root / "hr" / "people.csv").write_text("email,team\nlea@acme.example,A\nzoe@acme.example,B\n")
    for name, text in files.items():
        (root / name).write_text(text)
    return load_folder(root, root, variables=VARIABLES, expanded=expanded)


def meaning(found: Manifests) -> tuple[set[str], set[str]]:
    """What is declared and absent, whatever the order and the places."""
    return (
        {f"{one.address} {one.spec!r} {one.pins} {one.previously} {one.only_in}" for one in found.declared},
        {f"{one.address} {one.until}" for one in found.absent},
    )


def test_short_manifests_mean_what_plain_ones_say(tmp_path: Path) -> None:
    """Variables, for_each, sets and except, over several files, declare exactly what is written out beside them."""
    short, plain = loaded(tmp_path / "short", SHORT), loaded(tmp_path / "plain", {"a.yaml": PLAIN})
    assert [str(problem) for problem in (*short.problems, *plain.problems)] == []
    assert meaning(short) == meaning(plain)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_files_does_not_matter(tmp_path: Path, seed: int) -> None:
    """Sections in any order over any files, used before they are declared or after, mean the same."""
    before = loaded(tmp_path / "before", SHORT)
    documents = list(SHORT.values())
    order = Random(seed)  # noqa: S311  # an order is no secret
    order.shuffle(documents)
    cut = order.randint(1, 3)
    mixed = {"b.yaml": "---\n".join(documents[:cut]), "a.yml": "---\n".join(documents[cut:])}
    after = loaded(tmp_path / "after", mixed)
    assert after.problems == ()
    assert meaning(after) == meaning(before)


def test_what_is_printed_is_a_plain_manifest(tmp_path: Path) -> None:
    """The expanded manifest means the same, needs no variable, fits each kind's plain schema, and expands to itself."""
    first: ExpandedEntries = []
    second: ExpandedEntries = []
    short = loaded(tmp_path / "short", SHORT, first)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.yaml").write_text(expanded_manifest(first))
    plain = load_folder(tmp_path / "plain", tmp_path / "plain", expanded=second)
    assert plain.problems == ()
    assert meaning(plain) == meaning(short)
    assert expanded_manifest(second) == expanded_manifest(first)
    said = read_yaml("a.yaml", expanded_manifest(first)).documents[0].value
    assert isinstance(said, dict)
    for kind in KINDS.values():
        shape = Draft202012Validator(cast("dict[str, Json]", _plain(dict(declared_section(kind).shape.schema))))
        for entry in said.get(kind.section, ()):
            assert [*shape.iter_errors(entry)] == []


def _plain(schema: Json) -> Json:
    """Return a schema without what is expanded: `for_each`, `use`, `except` and sets."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema if not isinstance(one, dict) or one.get("required") not in _EXPANDED]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(part) for key, part in schema.items() if key not in ("for_each", "use", "except")}


_EXPANDED = (["set"], ["except"])


def test_editors_take_short_manifests() -> None:
    """The schema for editors finds nothing wrong with variables, for_each and sets, and still finds what is wrong."""
    schema = schema_validator("manifest")
    for text in SHORT.values():
        assert list(schema.iter_errors(read_yaml("a.yaml", text).documents[0].value)) == []
    for wrong in (
        "groups: [{name: A, members: Sales}]",
        "groups: [{name: A, for_each: [x]}]",
        "custom_fields: [{name: A, hidden: x$(a)}]",
    ):
        assert list(schema.iter_errors(read_yaml("a.yaml", wrong).documents[0].value)), wrong


def test_a_condition_that_comes_twice_counts_once(tmp_path: Path) -> None:
    """Sets may share a condition, and a group may say it too: one is left, and what a group says twice stays."""
    text = """\
condition_sets:
  A: [{field: F, choices: [x, y]}, {field: G, choices: [z]}]
  B: [{field: F, choices: [y, x]}]
smart_groups:
  - {name: Both, use: [A, B]}
  - {name: Own, conditions: [{field: G, choices: [z]}, {field: G, choices: [z]}], use: A}
"""
    found = loaded(tmp_path, {"a.yaml": text})
    conditions = {one.address.name: one.spec.conditions for one in found.declared}
    assert [len(said) for said in conditions.values()] == [2, 3]


@listed_cases("members", "place")
def test_an_empty_list_that_nobody_sees_is_an_error(tmp_path: Path, members: str, place: str | None) -> None:
    """A set or a variable without people is told where it is used, unless that is said to be right; [] means nobody."""
    text = f"""\
x-none: &none []
groups: [{{name: A, members: {members}}}]
people_sets:
  Nobody: []
  Somebody: [cy.dahl@acme.example]
  File: {{file: hr/people.csv, column: email, where: {{email: x}}, allow_empty: true}}
"""
    found = loaded(tmp_path, {"a.yaml": text})
    errors = [(problem.code, str(problem.source)) for problem in found.problems if problem.is_error]
    assert errors == ([("people/nobody", f"a.yaml:{place}")] if place else [])


@pytest.mark.sampled
def test_entries_cannot_grow_without_bound(tmp_path: Path) -> None:
    """A few bytes that stand for millions of values, or for as many entries, are refused at once."""
    people = ", ".join(f"p{number}@acme.example" for number in range(2_000))
    digits = ", ".join(map(str, range(1_000)))
    text = f"groups: [{{name: A $(a), for_each: {{a: [{digits}]}}, members: [{people}]}}]"
    with Effort() as effort:
        assert {problem.code for problem in loaded(tmp_path, {"a.yaml": text}).problems} == {"variable/too-many"}
    assert effort.calls < 500_000
    names = "".join(f", n{number}: [{digits}]" for number in range(50)).removeprefix(", ")
    uses = "".join(f"$(n{number})" for number in range(50))
    text = f"groups: [{{name: {uses}, for_each: {{{names}}}}}]"
    with Effort() as effort:
        assert {problem.code for problem in loaded(tmp_path, {"a.yaml": text}).problems} == {"for_each/too-many"}
    assert effort.calls < 5_000_000


def test_what_is_unknown_to_every_copy_hides_nothing_else(tmp_path: Path) -> None:
    """A variable that two thousand copies lack is one problem, and others are told beside it."""
    text = f"groups: [{{name: A $(n) $(m), for_each: {{n: {list(range(2_000))}}}}}, {{name: B, use: C}}]"
    assert [problem.code for problem in loaded(tmp_path, {"a.yaml": text}).problems] == [
        "variable/undefined",
        "manifest/unknown-key",
    ]


# Variables: what `$(name)` becomes, and where that stands.


KNOWN: dict[str, Json] = {
    "team": "Sales",
    "year": "2026",
    "strict": True,
    "nordics": ["SE", "NO"],
    "none": [],
    "title": "$(team)",
}


def written_out(text: str, told: list[Problem] | None = None) -> tuple[Json, EntrySourceMap]:
    document = read_yaml("a.yaml", text).documents[0]
    variables = Variables(KNOWN, Reporter(told if told is not None else []))
    value = variables.substitute(document.value, document.source, document.mark)
    return value, EntrySourceMap(value, document.source, document.mark)


@listed_cases("text", "value")
def test_what_a_variable_becomes(text: str, value: Json) -> None:
    """A whole plain text becomes what the variable is; in quotes and inside a text it is put in as text, and once."""
    told: list[Problem] = []
    found, _ = written_out(text, told)
    assert isinstance(found, dict)
    assert repr(found["a"]) == repr(value)
    assert told == []


def test_variables_of_a_project(tmp_path: Path) -> None:
    """Texts, true and false, lists; a number is the text that the file spells; a workspace's own goes further."""
    (tmp_path / "lmsconf.yaml").write_text(
        "workspaces:\n"
        '  test: {url: "sandbox:", vars: {countries: [SE, NO, 007], x: y}}\n'
        "vars: {countries: [DE], version: 1.10, strict: true, x: z}\n"
    )
    assert read_project_file(tmp_path).variables("test") == {
        "countries": ["SE", "NO", "007"],
        "version": "1.10",
        "strict": True,
        "x": "y",
    }
