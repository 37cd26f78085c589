"""What makes manifests shorter: `for_each`, sets and `except` mean what a plain manifest would say at length."""

from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from call_count import Effort
from json_schemas import schema_validator
from jsonschema import Draft202012Validator
from manifest.cases import Case, cases, loaded
from texts import listed_cases, text_of

from lmsconf.errors import Problem
from lmsconf.kinds.kind_table import KINDS
from lmsconf.manifest.load import ExpandedEntries
from lmsconf.manifest.schema_check import declared_section
from lmsconf.manifest.variables import Reporter, Variables
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.project.config_reader import read_project_file
from lmsconf.workspace.export_files import expanded_manifest

VARIABLES: dict[str, Json] = {
    "none": [],
    "countries": ["SE", "NO"],
    "strict": True,
    "leads": ["anna.berg@acme.example", "bo.ek@acme.example"],
    "part": "Q1",
}
SHORT = [text_of(__file__, f"expansion_{name}.yaml") for name in ("fields", "sets", "groups", "targets")]
PLAIN = text_of(__file__, "expansion_plain.yaml")
PEOPLE = "@ hr/people.csv\nemail,team\nlea@acme.example,A\nzoe@acme.example,B\n"


def expanded(root: Path, *files: str, **options: Any) -> Manifests:
    """What files mean that are beside a list of people."""
    text = "".join(f"@ {number}.yaml\n{file}\n" for number, file in enumerate(files))
    return loaded(root, text + PEOPLE, variables=VARIABLES, **options)


def meaning(found: Manifests) -> tuple[set[str], set[str]]:
    """What is declared and absent, whatever the order and the places."""
    return (
        {f"{one.address} {one.spec!r} {one.pins} {one.previously} {one.only_in}" for one in found.declared},
        {f"{one.address} {one.until}" for one in found.absent},
    )


def test_short_manifests_mean_what_plain_ones_say(tmp_path: Path) -> None:
    """Variables, for_each, sets and except, over several files, declare exactly what is written out beside them."""
    short, plain = expanded(tmp_path / "short", *SHORT), expanded(tmp_path / "plain", PLAIN)
    assert [str(problem) for problem in (*short.problems, *plain.problems)] == []
    assert meaning(short) == meaning(plain)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_files_does_not_matter(tmp_path: Path, seed: int) -> None:
    """Sections in any order over any files, used before they are declared or after, mean the same."""
    before = expanded(tmp_path / "before", *SHORT)
    documents = Random(seed).sample(SHORT, len(SHORT))  # noqa: S311  # an order is no secret
    cut = 1 + seed % 3
    after = expanded(tmp_path / "after", "---\n".join(documents[cut:]), "---\n".join(documents[:cut]))
    assert after.problems == ()
    assert meaning(after) == meaning(before)


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("expanded.txt")), ids=lambda case: case.title)
def test_what_is_printed(case: Case, tmp_path: Path) -> None:
    """`validate --expanded` prints what the short manifest stands for."""
    entries: ExpandedEntries = []
    assert expanded(tmp_path, case.text, expanded=entries).problems == ()
    assert expanded_manifest(entries) == case.told


def test_what_is_printed_is_a_plain_manifest(tmp_path: Path) -> None:
    """The expanded manifest means the same, needs no variable, fits each kind's plain schema, and expands to itself."""
    first: ExpandedEntries = []
    second: ExpandedEntries = []
    short = expanded(tmp_path / "short", *SHORT, expanded=first)
    plain = loaded(tmp_path / "plain", expanded_manifest(first), expanded=second)
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
    for text in SHORT:
        assert list(schema.iter_errors(read_yaml("a.yaml", text).documents[0].value)) == []
    for wrong in (
        "groups: [{name: A, members: Sales}]",
        "groups: [{name: A, for_each: [x]}]",
        "custom_fields: [{name: A, hidden: x$(a)}]",
    ):
        assert list(schema.iter_errors(read_yaml("a.yaml", wrong).documents[0].value)), wrong


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
    found = expanded(tmp_path, text)
    errors = [(problem.code, str(problem.source)) for problem in found.problems if problem.is_error]
    assert errors == ([("people/nobody", f"0.yaml:{place}")] if place else [])


@pytest.mark.sampled(daily=False)
def test_entries_cannot_grow_without_bound(tmp_path: Path) -> None:
    """A few bytes that stand for millions of values, or for as many entries, are refused at once."""
    people = ", ".join(f"p{number}@acme.example" for number in range(2_000))
    digits = ", ".join(map(str, range(1_000)))
    text = f"groups: [{{name: A $(a), for_each: {{a: [{digits}]}}, members: [{people}]}}]"
    with Effort() as effort:
        assert {problem.code for problem in expanded(tmp_path, text).problems} == {"variable/too-many"}
    assert effort.calls < 500_000
    names = "".join(f", n{number}: [{digits}]" for number in range(50)).removeprefix(", ")
    uses = "".join(f"$(n{number})" for number in range(50))
    text = f"groups: [{{name: {uses}, for_each: {{{names}}}}}]"
    with Effort() as effort:
        assert {problem.code for problem in expanded(tmp_path, text).problems} == {"for_each/too-many"}
    assert effort.calls < 5_000_000


def test_what_is_unknown_to_every_copy_hides_nothing_else(tmp_path: Path) -> None:
    """A variable that two thousand copies lack is one problem, and others are told beside it."""
    text = f"groups: [{{name: A $(n) $(m), for_each: {{n: {list(range(2_000))}}}}}, {{name: B, use: C}}]"
    assert [problem.code for problem in expanded(tmp_path, text).problems] == [
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


@listed_cases("text", "value")
def test_what_a_variable_becomes(text: str, value: Json) -> None:
    """A whole plain text becomes what the variable is; in quotes and inside a text it is put in as text, and once."""
    told: list[Problem] = []
    (document,) = read_yaml("a.yaml", text).documents
    found = Variables(KNOWN, Reporter(told)).substitute(document.value, document.source, document.mark)
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
