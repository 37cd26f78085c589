"""YAML text → values with positions: what plain words mean, and what strict reading refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from call_count import Effort

from lmsconf.errors import SourceLocation
from lmsconf.manifest.nodes import EntrySourceMap
from lmsconf.manifest.yaml_reader import EXPANDED, AliasBudget, YamlReadResult, read_yaml
from lmsconf.model.canonical_json import Json


def one(text: str) -> Json:
    """The value of the only document, which nothing is wrong with."""
    reading = read_yaml("a.yaml", text)
    assert reading.problems == []
    (document,) = reading.documents
    return document.value


def codes(reading: YamlReadResult) -> list[str]:
    return [f"{problem.source} {problem.code}" for problem in reading.problems]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("NO", "NO"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("12e03", 12000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        (".", "."),
        ("1.2.3", "1.2.3"),
        ("2026-01-05", "2026-01-05"),
        ("2026-01-05T08:00:00Z", "2026-01-05T08:00:00Z"),
        ("=", "="),
        ('"12"', "12"),
        ("'true'", "true"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("$$(x)", "$$(x)"),
    ],
)
def test_plain_words(word: str, value: Json) -> None:
    """Plain words follow the YAML 1.2 core schema; quotes make text of everything."""
    assert one(f"key: {word}") == {"key": value}
    assert type(one(f"key: {word}")["key"]) is type(value)


def test_numbers_without_end() -> None:
    """What JSON cannot hold is no number here."""
    for word in (".inf", "-.INF", ".nan", "1e999", "9" * 5000):
        reading = read_yaml("a.yaml", f"key: {word}")
        assert codes(reading) == ["a.yaml:1:6 yaml/number"]
        assert reading.documents[0].value == {"key": word}


def test_every_document_of_a_stream() -> None:
    """All documents of a stream are read; empty ones are no documents."""
    reading = read_yaml("a.yaml", "---\na: 1\n---\n# nothing\n---\nb: 2\n...\n")
    assert [document.value for document in reading.documents] == [{"a": 1}, {"b": 2}]


def test_places() -> None:
    """Every value, key and item is found where it stands, in characters, also behind letters of several bytes."""
    text = "å: {ö: [x, Ärlig], name: n}\nlist:\n  - a: 1\n    b: null\n  - two\n"
    (document,) = read_yaml("a.yaml", text).documents
    places = EntrySourceMap(document.value, document.source, document.at)
    assert places.at() == SourceLocation("a.yaml", 1, 1)
    assert places.at("å", "ö", 1) == SourceLocation("a.yaml", 1, 12)
    assert places.key("å", "name") == SourceLocation("a.yaml", 1, 20)
    assert places.at("list", 0, "b") == SourceLocation("a.yaml", 4, 8)
    assert places.at("list", 1) == SourceLocation("a.yaml", 5, 5)
    assert places.at("list", 1, "deeper", 3) == SourceLocation("a.yaml", 5, 5)
    assert places.at("list", 7) == SourceLocation("a.yaml", 3, 3)


def test_finding_a_text() -> None:
    """A text is found at or below a path, exactly or as people compare names; what is missing gives the path itself."""
    text = "members: {include: [Bo.Ek@acme.example, cy@acme.example], exclude: [bo.ek@acme.example]}\nname: Bo\n"
    (document,) = read_yaml("a.yaml", text).documents
    places = EntrySourceMap(document.value, document.source, document.at)
    assert places.find("cy@acme.example", "members") == SourceLocation("a.yaml", 1, 41)
    assert places.find("bo.ek@acme.example", "members") == SourceLocation("a.yaml", 1, 69)
    assert places.find("bo.ek@acme.example", "members", "include") == SourceLocation("a.yaml", 1, 21)
    assert places.find("dee@acme.example", "members") == SourceLocation("a.yaml", 1, 10)
    (document,) = read_yaml("a.yaml", "[b, a, c, a]").documents
    assert EntrySourceMap(document.value, document.source, document.at).find("a") == SourceLocation("a.yaml", 1, 5)


def test_aliases_stand_for_their_anchor() -> None:
    """An alias is the anchored value, positions included."""
    reading = read_yaml(
        "a.yaml", "x-people: &us [a@b, c@d]\ngroups:\n  - {name: A, members: *us}\n  - {name: B, members: *us}\n"
    )
    (document,) = reading.documents
    assert document.value["groups"][1]["members"] == ["a@b", "c@d"]
    places = EntrySourceMap(document.value, document.source, document.at)
    assert places.at("groups", 1, "members", 1) == SourceLocation("a.yaml", 1, 21)


def test_anchors_end_with_their_document() -> None:
    """A document knows no anchor of the one before."""
    assert codes(read_yaml("a.yaml", "a: &x [1]\n---\nb: *x\n")) == ["a.yaml:3:4 yaml/unknown-alias"]


def test_alias_bomb() -> None:
    """Aliases of aliases end at a bound, at once, over all files of a run together."""
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with Effort() as effort:
        reading = read_yaml("a.yaml", bomb)
    assert [problem.code for problem in reading.problems] == ["yaml/too-many-aliases"]
    assert effort.calls < 10_000
    assert read_yaml("a.yaml", "a: &a [[1, 2], 3]\nb: *a\n", budget=AliasBudget(left=5)).problems == []
    assert read_yaml("a.yaml", "a: &a [[1, 2], 3]\nb: *a\n", budget=AliasBudget(left=4)).problems != []
    spent = AliasBudget(left=3)
    text = "a: &a [1, 2]\nb: *a\n"
    assert read_yaml("a.yaml", text, budget=spent).problems == []
    assert [problem.code for problem in read_yaml("b.yaml", text, budget=spent).problems] == ["yaml/too-many-aliases"]
    assert EXPANDED == 100_000


def test_depth() -> None:
    """Fifty levels are read; more are refused without recursion, also when aliases stack them."""
    assert read_yaml("a.yaml", "a: " + "[" * 48 + "]" * 48).problems == []
    with Effort() as effort:
        assert codes(read_yaml("a.yaml", "[" * 900)) == ["a.yaml:1:51 yaml/too-deep"]
        (beyond,) = codes(read_yaml("a.yaml", "[" * 10_000))
    assert effort.calls < 10_000
    assert beyond in {"a.yaml:1:51 yaml/too-deep", "a.yaml:1:1001 yaml/too-deep"}  # libyaml 0.2.6 stops at 1,000 itself
    tower = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60))
    assert [problem.code for problem in read_yaml("a.yaml", tower).problems] == ["yaml/too-deep"]


@pytest.mark.parametrize("char", ["\x00", "\x07", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\u200f", "\u2028"])
def test_forbidden_characters(char: str) -> None:
    """Control characters, and those that turn the direction of reading, are refused, but for escapes in quotes."""
    assert codes(read_yaml("a.yaml", f"a: b\nname: x{char}y # z\n")) == ["a.yaml:2:8 yaml/character"]
    assert one(f'name: "x\\u{ord(char):04x}y"\n') == {"name": f"x{char}y"}
    assert codes(read_yaml("a.yaml", f"# in a comment {char}\na: b\n")) == ["a.yaml:1:16 yaml/character"]


def test_a_text_may_be_as_long_as_the_limit() -> None:
    """100,000 characters; one more is refused, and the error says where."""
    assert one("a: " + "x" * 100_000) == {"a": "x" * 100_000}
    (problem,) = read_yaml("a.yaml", "a: " + "x" * 100_001).problems
    assert (str(problem.source), problem.message) == ("a.yaml:1:4", "this text is longer than 100,000 characters")


def test_binary_file() -> None:
    """A file that is no text at all is told about at once, once a line."""
    with Effort() as effort:
        found = codes(read_yaml("a.yaml", "\x00" * 1_000_000 + "\n\x01"))
    assert found == ["a.yaml:1:1 yaml/character", "a.yaml:2:1 yaml/character"]
    assert effort.calls < 1_000


def test_texts_of_several_lines() -> None:
    """Line breaks and tabs may stand in text, and lines may end as on Windows."""
    assert one("a: |\n  one\n  two\tthree\n") == {"a": "one\ntwo\tthree\n"}
    assert one("a: 1\r\nb: [x,\r\n  y]\r\n") == {"a": 1, "b": ["x", "y"]}


def test_without_libyaml() -> None:
    """Where libyaml is missing, the parser in Python gives the same values, positions and problems."""
    program = (
        "import sys; sys.modules['yaml.cyaml'] = None\n"
        "from lmsconf.manifest.yaml_reader import read_yaml\n"
        "good = read_yaml('a.yaml', 'a: [1, {b: \"x\"}]\\n---\\nc: &x yes\\nd: *x\\n')\n"
        "print([document.value for document in good.documents], good.documents[0].source.marks[0])\n"
        "bad = read_yaml('a.yaml', 'groups:\\n  - name: @home\\n')\n"
        "print(bad.problems[0].message, bad.problems[0].source)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"[{{'a': [1, {{'b': 'x'}}]}}, {{'c': 'yes', 'd': 'yes'}}] {1 << 32 | 9}\n"
        'a text cannot begin with "@" a.yaml:2:11\n'
    )
