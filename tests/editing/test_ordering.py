"""`lmsconf fmt`: keys and lists in order, and nothing else changes."""

# a manifest in one piece

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest.cases import Case, cases
from sampling import examples
from texts import listed_cases

from lmsconf.errors import ProblemsFound
from lmsconf.manifest.edit.ordering import order_manifest
from lmsconf.manifest.load import load_folder
from lmsconf.manifest.schema_check import manifest_schema
from lmsconf.manifest.yaml_reader import read_yaml

SCHEMA = manifest_schema()
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def ordered(text: str) -> str:
    """The text in order, which is in order then."""
    after = order_manifest("a.yaml", text, SCHEMA)
    assert order_manifest("a.yaml", after, SCHEMA) == after
    return after


@pytest.mark.parametrize("case", cases(Path(__file__).parent / "ordered.txt"), ids=lambda case: case.title)
def test_what_is_ordered(case: Case) -> None:
    """Before and after, to the last byte."""
    assert ordered(case.text) == case.told
    assert ordered(case.told) == case.told


def test_line_ends_and_block_scalars_stay() -> None:
    """Line ends of Windows, and what looks like a comment in a text; a line break is added at the end of a file."""
    before = "groups:\r\n  - name: b\r\n    about: {z: 1}\r\n  - name: a\r\n---\r\nabsent: {groups: [d, c]}\r\n"
    after = "groups:\r\n  - name: a\r\n  - name: b\r\n    about: {z: 1}\r\n---\r\nabsent: {groups: [c, d]}\r\n"
    assert ordered(before) == after
    text = "    description: |\n      one\n\n      # no comment\n"
    before = f"custom_fields:\n  - name: a\n{text}    type: TEXT"
    assert ordered(before) == f"custom_fields:\n  - name: a\n    type: TEXT\n{text}"


@listed_cases("text", "why", "line")
def test_what_cannot_be_ordered_is_left(text: str, why: str, line: int) -> None:
    """With a warning at the place, and the way out."""
    with pytest.raises(ProblemsFound) as raised:
        order_manifest("a.yaml", text, SCHEMA)
    (problem,) = raised.value.problems
    assert why in problem.message
    assert (problem.code, problem.severity, problem.source and problem.source.line) == ("fmt/left", "warning", line)
    assert problem.hint


def test_yaml_that_cannot_be_read_is_an_error() -> None:
    """With the message that every command has for it."""
    with pytest.raises(ProblemsFound, match="groups"):
        order_manifest("a.yaml", "groups: []\ngroups: []\n", SCHEMA)


def declared(root: Path, text: str) -> dict[object, object]:
    """What a manifest declares, wherever it stands."""
    (root / "a.yaml").write_text(text, encoding="utf-8")
    found = load_folder(root, root)
    assert not [one for one in found.problems if one.is_error]
    assert len(found.declared) == len({one.address for one in found.declared})
    return {one.address: (one.spec, one.pins, one.previously, one.only_in, one.about) for one in found.declared}


def drawn(chance: random.Random) -> str:
    """A manifest in a random order and style: each comment says what it is about."""
    lines: list[str] = []
    for section in chance.sample(["groups", "custom_fields", "smart_groups"], 3):
        lines += [""] * chance.randint(0, 1) + [f"{section}:"]
        indent = " " * chance.choice([0, 2])
        commented = chance.random() < 0.5
        for name in chance.sample(["Öl", "b: c", "a", "Beta", "007", "no #1"], chance.randint(1, 5)):
            lines += [""] * chance.randint(0, 1)
            lines += [f"{indent}# above {section} {name!r}"] * commented
            lines += _entry(chance, section, name, indent)
    return "\n".join(lines) + "\n" * chance.randint(0, 1)


def _entry(chance: random.Random, section: str, name: str, indent: str) -> Iterator[str]:
    quoted = "'" + name + "'" if chance.random() < 0.5 else '"' + name + '"'
    people = chance.sample(["z@x.se", "A@x.se", "'b@x.se'"], 2)
    block = "".join(f"\n{indent}    - {one}  # {one!r} of {section} {name!r}" for one in people)
    of_people = f"[{', '.join(people)}]" if chance.random() < 0.5 else block
    keys: dict[str, dict[str, str]] = {
        "groups": {"members": of_people, "managers": "[]", "about": "{b: 1, a: 2}", "previously": "[Old, Ancient]"},
        "custom_fields": {"type": "TEXT", "description": f">-\n{indent}    folded # no comment\n{indent}    text"},
        "smart_groups": {"conditions": "[{choices: [b, a], field: F}]", "managers": of_people},
    }
    pairs = [("name", quoted), *keys[section].items()]
    chance.shuffle(pairs)
    if all("\n" not in value for _, value in pairs) and chance.random() < 0.3:
        yield f"{indent}- {{{', '.join(f'{key}: {value}' for key, value in pairs)}}}  # beside {section} {name!r}"
        return
    for number, (key, value) in enumerate(pairs):
        lead = "  " if number else "- "
        gap = "" if value.startswith("\n") else " "
        beside = f"  # beside {section} {name!r}" if key == "name" else ""
        yield f"{indent}{lead}{key}:{gap}{value}{beside}"


@given(st.integers(0, 2**64))
@settings(max_examples=examples(100), derandomize=True, database=None, deadline=None)
def test_any_order_and_style(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Equal declarations before and after; no comment is lost, and each stays with what it is about."""
    before = drawn(random.Random(seed))  # noqa: S311  # it draws cases
    after = ordered(before)
    root = tmp_path_factory.mktemp("ordered")
    assert declared(root, after) == declared(root, before)
    assert Counter(after.splitlines()) >= Counter(line for line in before.splitlines() if line.lstrip().startswith("#"))
    assert sorted(re.findall("# .*", after)) == sorted(re.findall("# .*", before))
    lines = after.splitlines()
    for number, line in enumerate(lines):
        if match := re.match(r" *# above (.*)", line):
            entry = "\n".join(lines[number:])
            assert f"# beside {match[1]}" in entry.split("# above", 2)[1]
        if match := re.search(r"# beside \S+ (.*)", line):
            assert match[1][1:-1] in line.partition("# beside")[0]
    for document in read_yaml("a.yaml", after).documents:
        assert isinstance(document.value, dict)
        assert list(document.value) == [key for key in SCHEMA["properties"] if key in document.value]  # type: ignore[union-attr]  # the schema is an object
        for entries in document.value.values():
            names: list[Any] = [entry["name"] for entry in entries]  # type: ignore[index, union-attr, call-overload]  # entries are mappings
            assert names == sorted(names, key=lambda name: (name.casefold(), name))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/manifests/**/*.yaml")), ids=lambda path: path.stem)
def test_the_examples(path: Path) -> None:
    """Manifests that people wrote: all can be ordered, and no line of them is lost."""
    before = path.read_text(encoding="utf-8")
    assert Counter(ordered(before).split()) == Counter(before.split()) or "," in before
