"""Dialect keys put into a project file: what stood there stays as it stood."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmsconf.doctor.probe.project_file_edit import UneditableLayout, set_dialect_keys
from lmsconf.manifest.yaml_reader import read_yaml

WORKSPACES = "workspaces:\n  production: {url: 'https://lms.example'}\n"
FOUND: dict[str, str | int] = {"a.name": "newName", "paging.limit": 50}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"# top\n{WORKSPACES}timezone: UTC   # last",
            f"# top\n{WORKSPACES}timezone: UTC   # last\ndialect:\n  a.name: newName\n  paging.limit: 50\n",
        ),
        (
            f"dialect:   # ours\n  # first\n  b.name: x   # why\n  # end\n{WORKSPACES}",
            f"dialect:   # ours\n  # first\n  b.name: x   # why\n"
            f"  a.name: newName\n  paging.limit: 50\n  # end\n{WORKSPACES}",
        ),
        (
            f"dialect:\n    a.name: 'old # one'   # why\n{WORKSPACES}",
            f"dialect:\n    a.name: 'newName'   # why\n    paging.limit: 50\n{WORKSPACES}",
        ),
        (
            f"dialect:\n  a.name: old one # why\n  paging.limit:   7\n{WORKSPACES}",
            f"dialect:\n  a.name: newName # why\n  paging.limit:   50\n{WORKSPACES}",
        ),
        (
            f"dialect: {{}}   # nothing yet\n{WORKSPACES}",
            f"dialect: {{a.name: newName, paging.limit: 50}}   # nothing yet\n{WORKSPACES}",
        ),
        (
            f"dialect: {{b.name: x, a.name: old}}   # why\n{WORKSPACES}",
            f"dialect: {{b.name: x, a.name: newName, paging.limit: 50}}   # why\n{WORKSPACES}",
        ),
        (
            f"dialect: {{\n  b.name: x,  # why\n}}\n{WORKSPACES}",
            f"dialect: {{\n  b.name: x,  # why\n  a.name: newName,\n  paging.limit: 50,\n}}\n{WORKSPACES}",
        ),
        (
            f"dialect:\n  b.name: >-\n    folded\n    text\n{WORKSPACES}",
            f"dialect:\n  b.name: >-\n    folded\n    text\n  a.name: newName\n  paging.limit: 50\n{WORKSPACES}",
        ),
        (
            "workspaces:\n  production:\n    url: 'https://lms.example'\n    dialect:\n      a.name: old # here\n",
            "workspaces:\n  production:\n    url: 'https://lms.example'\n    dialect:\n      a.name: newName # here\n"
            "dialect:\n  paging.limit: 50\n",
        ),
        (
            WORKSPACES.replace("\n", "\r\n"),
            (WORKSPACES + "dialect:\n  a.name: newName\n  paging.limit: 50\n").replace("\n", "\r\n"),
        ),
    ],
    ids=["none", "block", "quoted", "plain", "empty", "flow", "flow-lines", "folded", "workspace", "crlf"],
)  # fmt: skip
def test_keys_are_put_beside_what_is_there(before: str, after: str) -> None:
    """Comments, order, quotes and line ends stay; only the values that are wanted are new."""
    assert set_dialect_keys(before, FOUND, "production") == after


@pytest.mark.parametrize("value", ["null", "true", "no", "7", "1e3", "a: b", "", "é", "~", "it's", 'say "x"', "# no"])
def test_values_mean_what_they_are(value: str) -> None:
    """A text that YAML would take for something else is quoted."""
    text = set_dialect_keys(WORKSPACES, {"a.name": value}, "production")
    (document,) = read_yaml("", text).documents
    assert document.value["dialect"] == {"a.name": value}


@pytest.mark.parametrize(
    "text",
    [
        "{workspaces: {production: {url: 'https://lms.example'}}}\n",
        f"{WORKSPACES}...\n",
        f"x-shared: &shared {{b.name: x}}\ndialect: *shared\n{WORKSPACES}",
        f"dialect:\n{WORKSPACES}",
    ],
)
def test_what_cannot_be_edited_safely_is_left(text: str) -> None:
    """A layout in which the new text would mean something else is refused, with the lines to paste."""
    with pytest.raises(UneditableLayout) as refused:
        set_dialect_keys(text, FOUND, "production")
    assert refused.value.hint == "Add this to it:\ndialect:\n  a.name: newName\n  paging.limit: 50"


KEYS = st.sampled_from(["a.name", "b.name", "c-d.name", "paging.limit"])
WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=8)


@given(st.dictionaries(KEYS, WORDS), st.dictionaries(KEYS, WORDS, min_size=1), st.booleans())
def test_any_keys_beside_any_others(old: dict[str, str], new: dict[str, str], flow: bool) -> None:
    """Whatever stood under `dialect:`, afterwards it says the old and the new, and nothing else is touched."""
    pairs = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in old.items()]
    section = f"dialect: {{{', '.join(pairs)}}}  # c\n" if flow else "\n  ".join(["dialect:  # c", *pairs]) + "\n"
    text = (section if old or flow else "") + WORKSPACES
    edited = set_dialect_keys(text, new, "production")
    (document,) = read_yaml("", edited).documents
    assert document.value["dialect"] == {**old, **new}
    assert edited.replace(WORKSPACES, "") != edited
    assert ("# c" in edited) is ("# c" in text)
