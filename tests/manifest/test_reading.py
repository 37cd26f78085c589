"""YAML text → values with positions: what plain words mean, and what strict reading refuses."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import pytest
from call_count import Effort
from jsonschema import Draft202012Validator
from manifest.schema_writer import TARGET, code, digest, ours, passes
from texts import listed_cases

from lmsconf.errors import SourceLocation
from lmsconf.kinds.assignment.types import AUDIENCES
from lmsconf.kinds.custom_field.types import TYPES
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import required_keys
from lmsconf.kinds.user.types import APPLICATIONS, KEYS
from lmsconf.manifest import schema_code
from lmsconf.manifest.schema_check import (
    Schema,
    SchemaValidator,
    Section,
    branches_of,
    declared_section,
    identifying_keys,
    manifest_schema,
    properties,
    property_schema,
    sections_by_path,
    types_of_schema,
)
from lmsconf.manifest.yaml_reader import EXPANDED, AliasBudget, YamlReadResult, read_yaml
from lmsconf.model.address import EVERYBODY
from lmsconf.model.canonical_json import Json
from lmsconf.support.files import read_schema

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def one(text: str) -> Json:
    """The value of the only document, which nothing is wrong with."""
    reading = read_yaml("a.yaml", text)
    assert reading.problems == []
    (document,) = reading.documents
    return document.value


def codes(reading: YamlReadResult) -> list[str]:
    return [f"{problem.source} {problem.code}" for problem in reading.problems]


@listed_cases("word", "value")
def test_plain_words(word: str, value: Json) -> None:
    """Plain words follow the YAML 1.2 core schema; quotes make text of everything."""
    assert one(f"key: {word}") == {"key": value}
    assert type(one(f"key: {word}")["key"]) is type(value)


def test_every_document_of_a_stream() -> None:
    """All documents of a stream are read; empty ones are no documents."""
    reading = read_yaml("a.yaml", "---\na: 1\n---\n# nothing\n---\nb: 2\n...\n")
    assert [document.value for document in reading.documents] == [{"a": 1}, {"b": 2}]


def test_places() -> None:
    """Every value, key and item is found where it stands, in characters, also behind letters of several bytes."""
    (places,) = read_yaml("a.yaml", "å: {ö: [x, Ärlig], name: n}\nlist:\n  - a: 1\n    b: null\n  - two\n").documents
    assert places.at() == SourceLocation("a.yaml", 1, 1)
    assert places.at("å", "ö", 1) == SourceLocation("a.yaml", 1, 12)
    assert places.key("å", "name") == SourceLocation("a.yaml", 1, 20)
    assert places.at("list", 0, "b") == SourceLocation("a.yaml", 4, 8)
    assert places.at("list", 1) == SourceLocation("a.yaml", 5, 5)
    assert places.at("list", 1, "deeper", 3) == SourceLocation("a.yaml", 5, 5)
    assert places.at("list", 7) == SourceLocation("a.yaml", 3, 3)


def test_values_are_small() -> None:
    """A manifest may have a million mappings and lists: none of them has a dictionary of attributes."""
    (places,) = read_yaml("a.yaml", "a: [x]\n").documents
    assert isinstance(places.value, dict)
    assert not any(hasattr(node, "__dict__") for node in (places.value, places.value["a"]))


def test_alias_bomb() -> None:
    """Aliases of aliases end at a bound, at once, over all files of a run together."""
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with Effort() as effort:
        reading = read_yaml("a.yaml", bomb)
    assert [problem.code for problem in reading.problems] == ["yaml/too-many-aliases"]
    assert effort.calls < 10_000
    for left, text in ((5, "a: &a [[1, 2], 3]\nb: *a\n"), (3, "a: &a [1, 2]\nb: *a\n")):
        assert read_yaml("a.yaml", text, budget=AliasBudget(left=left - 1)).problems != []
        spent = AliasBudget(left=left)
        assert read_yaml("a.yaml", text, budget=spent).problems == []
        assert [problem.code for problem in read_yaml("b.yaml", text, budget=spent).problems] == [
            "yaml/too-many-aliases"
        ]
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


def test_without_libyaml() -> None:
    """Where libyaml is missing, the parser in Python gives the same values, positions and problems."""
    program = (
        "import sys; sys.modules['yaml.cyaml'] = None\n"
        "from lmsconf.manifest.yaml_reader import read_yaml\n"
        "good = read_yaml('a.yaml', 'a: [1, {b: \"x\"}]\\n---\\nc: &x yes\\nd: *x\\n')\n"
        "print([document.value for document in good.documents], good.documents[0].value['a'][1].marks[0])\n"
        "bad = read_yaml('a.yaml', 'groups:\\n  - name: @home\\n')\n"
        "print(bad.problems[0].message, bad.problems[0].source)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == (
        f"[{{'a': [1, {{'b': 'x'}}]}}, {{'c': 'yes', 'd': 'yes'}}] {1 << 32 | 9}\n"
        'a text cannot begin with "@" a.yaml:2:11\n'
    )


# The schemas that editors use and values are checked by.


def test_schemas_list_what_kinds_know() -> None:
    """The schemas name the sections of all kinds, and the words that the service has for types and applications."""
    whole, owned = manifest_schema(), json.loads(read_schema("project.schema.json"))["$defs"]["ownership"]["properties"]
    sections = [kind.section for kind in KINDS.values()]
    assert [key for key in properties(whole) if key in sections] == sections
    assert [*properties(property_schema(whole, "absent"))] == [*owned] == sections
    assert [section for section, said in owned.items() if not said.keys() - {"description"}] == ["users"]
    for kind in KINDS.values():
        entry = declared_section(kind).shape.schema
        assert entry["required"] == [*required_keys(kind)] or kind.entry_items is not None
        assert set(properties(entry)) >= required_keys(kind)
    field, person = (properties(declared_section(KINDS[name]).shape.schema) for name in ("custom_field", "user"))
    assert cast("Schema", field["type"])["enum"] == [*TYPES]
    assert [key for key in person if key in KEYS] == [*KEYS]
    assert json.dumps([*APPLICATIONS]) in json.dumps(person["applications"])
    items = cast("Schema", properties(declared_section(KINDS["content_target"]).shape.schema)["assign_to"])["items"]
    assert [identifying_keys(form)[0] for form in branches_of(cast("Schema", items))[1:]] == [*AUDIENCES, EVERYBODY]


def test_branches_of_a_union_exclude_each_other() -> None:
    """The quick check before jsonschema ends with the first branch that fits, where the schemas say `oneOf`.

    Both files are valid JSON Schema of the draft that they name.
    """
    schemas = [manifest_schema(), json.loads(read_schema("project.schema.json"))]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    unions = [union for schema in schemas for union in _unions(schema)]
    assert len(unions) > 20
    assert [union for union in unions if any(not _exclude(one, other) for one, other in combinations(union, 2))] == []


def _unions(schema: object) -> Iterator[list[dict[str, Any]]]:
    if isinstance(schema, dict) and isinstance(schema.get("oneOf"), list):
        yield schema["oneOf"]
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _unions(part)


def _exclude(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether no value fits both: of different types, or mappings of which one needs a key that the other refuses."""
    if types_of_schema(one).isdisjoint(types_of_schema(other)):
        return True
    if "enum" in one and "enum" in other:
        return not {*one["enum"]} & {*other["enum"]}
    pairs = ((one, other), (other, one))
    return any(
        not b.get("additionalProperties", True) and {*a.get("required", [])} - {*b["properties"]} for a, b in pairs
    )


@listed_cases("schema")
def test_code_of_a_schema_judges_as_jsonschema_judges(schema: dict[str, Json]) -> None:
    """The code of a schema passes all that is valid, and nothing that is not."""
    values: list[Any] = [
        *(None, True, False, 0, 1, -1, 0.5, 1.0, 10**30, "", "a", "aa", "a\n", "b", "éé"),
        *([], ["a"], ["a", 1], ["", ""], ["a", "b", "c"], [[]], [{}], [{"a": 1}]),
        *({}, {"a": 1}, {"a": "1"}, {"a": {}}, {"a": {"b": 1}}, {"b": 1}, {"b": "c"}, {"a": 0, "b": 1}),
        *({"x-a": 1}, {"a\nb": 1}, {"ab": 2}, {"description": ""}, {"description": "d"}, {"a": True}),
    ]
    judge = Draft202012Validator(schema)
    assert [passes(schema, value) for value in values] == [judge.is_valid(value) for value in values]


def test_code_of_our_schemas_is_current() -> None:
    """The code is that of the schemas as they are; `python -m tests.manifest.schema_writer` writes it anew."""
    assert digest(ours()) == schema_code.SCHEMAS
    if version("fastjsonschema") == schema_code.MADE_BY:  # others may make other code of the same schemas
        assert TARGET.read_text(encoding="utf-8") == code(ours())


@pytest.mark.parametrize("section", sections_by_path().values(), ids=lambda section: section.name)
def test_entries_that_the_code_passes_are_valid(section: Section) -> None:
    """Entries of the examples, each with one value changed, are judged alike with the code and without it."""
    by_code, by_jsonschema = section.shape, SchemaValidator(section.shape.schema)
    for entry in entries_of(section):
        for changed in (entry, *changes_of(entry)):
            assert by_code.validate(changed) == by_jsonschema.validate(changed), changed


def entries_of(section: Section) -> list[Any]:
    """The entries of the examples in a section, one of each set of keys."""
    found: dict[str, Any] = {}
    for file in sorted(EXAMPLES.glob("*/manifests/**/*.yaml")):
        for document in read_yaml(file.name, file.read_text(encoding="utf-8")).documents:
            below: Any = document.value
            for key in section.path:
                below = below.get(key, {}) if isinstance(below, dict) else {}
            found |= {str(entry.keys() if isinstance(entry, dict) else type(entry)): entry for entry in below}
    return [*found.values()]


def changes_of(entry: Any) -> Iterator[Any]:
    """An entry with another value, with one key less, and with another value of each key."""
    values: tuple[Any, ...] = (None, True, 0, "", "a\nb", [], {}, ["a"], [1], {"a": 1}, {"name": "a"}, "2026-02-30")
    yield from values
    if isinstance(entry, dict):
        yield {**entry, "unknown": "a"}
        for key, value in entry.items():
            yield {name: kept for name, kept in entry.items() if name != key}
            yield from ({**entry, key: other} for other in values)
            if isinstance(value, dict | list):
                below = value if isinstance(value, dict) else value[0] if value else None
                nested = changes_of(below) if isinstance(below, dict) else ()
                yield from ({**entry, key: one if isinstance(value, dict) else [one]} for one in nested)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("example", ["quickstart", "acme", "countries"])
def test_valid_projects_need_no_jsonschema(example: str) -> None:
    """Importing it takes as long as all the rest of `validate`: only errors need it."""
    root = Path(__file__).parent.parent.parent
    program = (
        "import sys\nfrom lmsconf.cli import main\n"
        f"try: main(['-C', {str(root / 'examples' / example)!r}, 'validate'])\n"
        "except SystemExit as end: assert not end.code\n"
        "print({'jsonschema'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "set()"
