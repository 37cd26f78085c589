"""Variables: what `$(name)` becomes, and where that stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import Problem
from lmsconf.manifest.expand.variables import VALUES, Reporter, Variables, referenced_variables
from lmsconf.manifest.nodes import EntrySourceMap
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.canonical_json import Json
from lmsconf.project.config_reader import read_project_file

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
    value = variables.substitute(document.value, document.source, document.at)
    return value, EntrySourceMap(value, document.source, document.at)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: $(team)", "Sales"),
        ("a: $(team) $(year)", "Sales 2026"),
        ("a: $( year )", "2026"),
        ("a: $(strict)", True),
        ('a: "$(strict)"', "true"),
        ("a: '$(strict)'", "true"),
        ("a: |-\n  $(strict)\n", "true"),
        ("a: !!str $(strict)", True),
        ("a: is $(strict)", "is true"),
        ("a: $(nordics)", ["SE", "NO"]),
        ("a: [DK, $(nordics), $(none), $(team)]", ["DK", "SE", "NO", "Sales"]),
        ("a: {b: [$(none)]}", {"b": []}),
        ("a: $$(team)", "$(team)"),
        ("a: $$(team) $(team)", "$(team) Sales"),
        ("a: $(title)", "$(team)"),
        ("a: &x $(strict)\nb: *x", True),
    ],
)
def test_what_a_variable_becomes(text: str, value: Json) -> None:
    """A whole plain text becomes what the variable is; in quotes and inside a text it is put in as text, and once."""
    told: list[Problem] = []
    found, _ = written_out(text, told)
    assert isinstance(found, dict)
    assert repr(found["a"]) == repr(value)
    assert told == []


def test_keys_are_texts() -> None:
    """A key is what it says."""
    assert written_out("$(team): 1")[0] == {"$(team)": 1}


def test_places_are_kept() -> None:
    """What comes from a variable stands where the variable does, and everything else where it stood."""
    _, places = written_out("a: [DK, $(nordics), FI]\nb: {c: $(team), d: x}\ne: y\n")
    assert [str(places.at("a", number)) for number in range(4)] == [
        "a.yaml:1:5",
        "a.yaml:1:9",
        "a.yaml:1:9",
        "a.yaml:1:21",
    ]
    assert str(places.find("NO")) == "a.yaml:1:9"
    assert (str(places.at("b", "d")), str(places.key("e"))) == ("a.yaml:2:20", "a.yaml:3:1")


def test_what_holds_no_variable_is_not_copied() -> None:
    """Ten thousand people are the same list afterwards."""
    document = read_yaml("a.yaml", "a: [x, y]\nb: $(team)\n").documents[0]
    found = Variables(KNOWN, Reporter([])).substitute(document.value, document.source, document.at)
    assert isinstance(found, dict)
    assert isinstance(document.value, dict)
    assert found["a"] is document.value["a"]
    assert document.value["b"] == "$(team)"


def test_an_alias_has_the_variable_put_in() -> None:
    """A value with a variable in it has it put in also where an alias stands for it."""
    assert written_out("a: &a {n: $(team)}\nb: *a\n")[0] == {"a": {"n": "Sales"}, "b": {"n": "Sales"}}


def test_names() -> None:
    """The names in a value are those that would be put in, at any depth."""
    document = read_yaml("a.yaml", "a: [$(x), {b: 'c $( y ) $$(z)'}]\n$(k): 1\n").documents[0]
    assert list(referenced_variables(document.value)) == ["x", "y"]


def test_lists_cannot_grow_without_bound() -> None:
    """A short manifest that stands for millions of values is refused before they are made."""
    document = read_yaml("a.yaml", f"a: [{', '.join(['$(long)'] * 2_000)}]").documents[0]
    variables = Variables({"long": ["x"] * (VALUES // 1_000)}, Reporter([]))
    with pytest.raises(match="1,000,000 values"):
        variables.substitute(document.value, document.source, document.at)


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
