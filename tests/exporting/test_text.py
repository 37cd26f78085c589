"""Values become the YAML that the manifests' own reader takes for the same, in quotes only where they must be."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from lmsconf.manifest.edit.yaml_text import escape_for_comment, format_entry_lines
from lmsconf.manifest.expand.variables import Reporter, Variables
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import is_representable

WORDS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
    st.text("abN:#-?,[]{}&*!|>'\"%@`=<~ .0123456789xe+_\n\t$()é", max_size=8),
    st.sampled_from(("NO", "null", "2026-01-05", "12:30", "$(a)", "$$(a)", "a" * 200, "<<", "---", "0x1F", ".5", "-")),
)
VALUES = st.recursive(
    st.one_of(WORDS, st.booleans(), st.integers()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, min_size=1, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=examples(400), derandomize=True, database=None, deadline=None)
@given(st.dictionaries(st.sampled_from(["name", "members", "about"]), VALUES, min_size=1).filter(is_representable))
def test_what_is_written_reads_as_what_it_was(entry: dict[str, Json]) -> None:
    """Whatever a value holds that can be said at all: `$(` stands for itself, and long lists go over several lines."""
    text = "\n".join(["groups:", *format_entry_lines(entry, "  ")]) + "\n"
    reading = read_yaml("x.yaml", text)
    variables = Variables({"a": "other"}, Reporter(reading.problems))
    values = [variables.substitute(one.value, one.source, one.at) for one in reading.documents]
    assert reading.problems == [], text
    assert values == [{"groups": [entry]}]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("NO", "- name: NO"),
        ("2026-01-05", "- name: 2026-01-05"),
        ("People and Culture, IT", "- name: People and Culture, IT"),
        ("true", '- name: "true"'),
        ("007", '- name: "007"'),
        ("a: b", '- name: "a: b"'),
        ("*star", '- name: "*star"'),
        ("a #1", '- name: "a #1"'),
        (["Sales, IT", "HR"], '- name: ["Sales, IT", HR]'),
    ],
)
def test_quotes_stand_only_where_they_must(value: Json, line: str) -> None:
    """A word that YAML takes for text stands as it is, also one that older YAML took for a boolean or a date."""
    assert list(format_entry_lines({"name": value}, "")) == [line]


def test_a_list_is_one_line_or_one_line_an_item() -> None:
    """A short list stands beside its key; a long one below it, and so do several mappings."""
    people = cast(Json, [f"person.number{number}@acme.example" for number in range(9)])
    assert list(format_entry_lines({"managers": ["a@x.example"]}, "")) == ["- managers: [a@x.example]"]
    assert list(format_entry_lines({"members": people}, ""))[1] == "    - person.number0@acme.example"
    both: Json = [{"field": "A", "choices": ["x"]}, {"field": "B", "choices": ["y"]}]
    lines = list(format_entry_lines({"conditions": both}, ""))
    assert lines[1:] == ["    - {field: A, choices: [x]}", "    - {field: B, choices: [y]}"]


def test_a_comment_stays_one_line() -> None:
    """A name in a comment cannot end it, and nothing unseen stands in it."""
    assert escape_for_comment("a\nb\u202ec\ud800") == "a\\u000ab\\u202ec\\ud800"
