"""Live resources as manifest entries: what can be said of them, and notes on what cannot."""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.custom_field.types import parse_field_row
from lmsconf.kinds.export import field_entry_body, people_lists_body, person_entries
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.user.types import PersonRow
from lmsconf.manifest.edit.yaml_text import escape_for_comment, format_entry_lines
from lmsconf.manifest.expand.variables import Reporter, Variables
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import is_representable
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import PlanContext
from lmsconf.planner.manifest_entries import EntryBody, LiveNames, UnexportableRow

SHARED = "choices that share a name, or have none: "


def live(**more: Json) -> dict[str, Json]:
    """A field as the service lists it."""
    return {"id": "f", "customFieldId": "f", "name": "Dept", "type": "CHOICE", **more}


@pytest.mark.parametrize(
    ("names", "choices", "notes"),
    [
        ([], None, []),
        (["B", "A"], ["B", "A"], []),
        (["A", "B", "A"], {"include": ["B"]}, [f"{SHARED}2"]),
        (["A", "a\nb", "\ud800"], {"include": ["A", "a\nb"]}, [f"{SHARED}1"]),
        (["A", "A", "A"], None, [f"{SHARED}3"]),
    ],
)
def test_choices_that_a_manifest_can_tell_apart_are_declared(names: list[str], choices: Json, notes: list[str]) -> None:
    """All of them as a list in their order; else those with a name of their own, and a count of the others."""
    rows: list[Json] = [{"choiceId": f"c-{number}", "name": name} for number, name in enumerate(names)]
    entry = field_entry_body(parse_field_row(live(choices=rows)))
    assert entry.keys == {"type": "CHOICE"} | ({} if choices is None else {"choices": choices})
    assert list(entry.notes) == notes


def test_only_what_differs_from_the_default_is_declared() -> None:
    """A flag that is set and a description; of a type that manifests do not know there is a note."""
    entry = field_entry_body(parse_field_row(live(type="DATE", description="Since", isHidden=True, isLocked=False)))
    assert entry.keys == {"description": "Since", "hidden": True}
    assert list(entry.notes) == ["its type DATE is not supported in manifests"]


class CatalogEntry(NamedTuple):
    """What a name is looked up for."""

    id: str
    name: str


def live_names(*people: PersonRow, content: tuple[CatalogEntry, ...] = ()) -> LiveNames:
    """A workspace with these people and contents."""
    policy = Policy(workspace="w", today=date(2026, 6, 1))
    listings: dict[str, Listing[Any]] = {"user": Listing(rows=people), "content": Listing(rows=content)}
    snapshot = Snapshot(workspace="w", url="u", taken_at="t", people=None, listings=listings)
    planning = PlanContext(snapshot, policy, SpecCallTemplates(ApiSpec.default()), lambda address: True)
    return LiveNames(planning, policy)


def test_a_person_without_an_e_mail_of_her_own_is_no_entry() -> None:
    """Each of two people with one e-mail is left out, with the reason; of others an answer of nothing is."""
    live = live_names(
        PersonRow(
            RemoteId("u-1"),
            "anna@acme.example",
            applications=frozenset({"learn", "create"}),
            answers=(AnswerRow("Dept", frozenset({"c-1"}), None), AnswerRow("Skills", frozenset(), None)),
        ),
        PersonRow(RemoteId("u-2"), "twin@acme.example"),
        PersonRow(RemoteId("u-3"), "Twin@acme.example"),
    )
    anna = {"email": "anna@acme.example", "applications": ["create", "learn"], "answers": {"Dept": "c-1"}}
    found = [(one.id, one.reason if isinstance(one, UnexportableRow) else one.body) for one in person_entries(live)]
    reason = "no e-mail that names one person only"
    assert sorted(found, key=str) == [("u-1", anna), ("u-2", reason), ("u-3", reason)]


def test_people_who_cannot_be_named_are_left_out_with_the_reason() -> None:
    """The archived, those who share an e-mail, and ids that no list of people explains."""
    live = live_names(
        PersonRow(RemoteId("u-1"), "anna@acme.example"),
        PersonRow(RemoteId("u-2"), "old@acme.example", archived=True),
        PersonRow(RemoteId("u-3"), "twin@acme.example"),
        PersonRow(RemoteId("u-4"), "Twin@acme.example"),
    )
    entry = people_lists_body(live, {"members": [f"u-{n}" for n in (1, 2, 3, 4, 9)], "managers": None})
    assert entry.keys == {"members": ["anna@acme.example"]}
    assert list(entry.notes) == [
        "1 member left out: archived",
        "2 members left out: more than one person has the e-mail",
        "1 member left out: no list of people contains the id",
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it has no name"),
        ("\ud800", "its name contains characters that a manifest must not contain"),
        ("A", "another resource has its name, and is declared"),
    ],
)
def test_what_no_manifest_can_name_is_left_out_with_the_reason(name: str, reason: str) -> None:
    """An empty name, one with half of a surrogate pair, and one that the first of two has."""
    rows = (CatalogEntry("c-1", "A"), CatalogEntry("c-2", name))
    found = live_names(content=rows).exported_entry("content", rows[1], EntryBody({}))
    assert isinstance(found, UnexportableRow)
    assert (found.id, found.reason) == ("c-2", reason)


# Values become the YAML that the manifests' own reader takes for the same, in quotes only where they must be.


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
