"""Malformed manifests: what is said of each, word by word."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from manifest.cases import ZONE, Case, cases, loaded, shown
from manifest.schema_writer import passes
from texts import listed_cases, text_of

from lmsconf.manifest.load import load_folder
from lmsconf.manifest.schema_check import SchemaValidator, manifest_schema
from lmsconf.manifest.schema_messages import WORDED
from lmsconf.model.canonical_json import Json
from lmsconf.support.files import read_schema

pytestmark = pytest.mark.sampled(day=8)

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
CASES = [case for path in sorted(HERE.glob("malformed*.txt")) for case in cases(path)]
VARIABLES: dict[str, Json] = {
    "region": "Nordics",
    "nordics": ["SE", "NO"],
    "strict": True,
    "tens": list("0123456789"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_malformed_manifest(case: Case, tmp_path: Path) -> None:
    """A malformed manifest is told about at file, line and column, with the reason and the way out."""
    found = loaded(tmp_path, case.text, variables=VARIABLES, timezone=None)
    assert shown(found.problems) == case.told
    assert found.problems


def test_all_files_are_told_about_in_one_run(tmp_path: Path) -> None:
    """Problems of YAML, shape, references and people in several files come together, in the order of the files."""
    (tmp_path / "broken.yaml").write_bytes(b"groups: []\n# caf\xe9\n")
    found = loaded(tmp_path, text_of(__file__, "malformed_several.txt"))
    assert [f"{problem.source} {problem.code}" for problem in found.problems] == [
        "a.yaml:2:11 yaml/syntax",
        "b.yml:1:1 manifest/unknown-key",
        "broken.yaml:2:6 manifest/encoding",
        "hr/c.yaml:1:65 reference/unknown-choice",
        "hr/people.csv:1:1 people/column",
    ]


@listed_cases("schema", "value")
def test_what_the_schema_forbids_is_found(schema: dict[str, object], value: object) -> None:
    """A value that the schema forbids is found, however the schema is rewritten."""
    validator = SchemaValidator(schema)
    assert validator.validate(value)
    assert not passes(validator.strict_schema, value)


def test_every_problem_has_a_way_out() -> None:
    """Under every error of the tables stands a hint that says what to do."""
    for case in CASES:
        lines = case.told.splitlines()
        for line, below in zip(lines, [*lines[1:], ""], strict=True):
            assert line.startswith("  ") or below.startswith("  "), line


@listed_cases("mistake", "pasted")
def test_a_way_out_can_be_pasted(mistake: str, pasted: str, tmp_path: Path) -> None:
    """What is offered in place of a mistake is sound where the mistake stood."""
    (problem,) = loaded(tmp_path, f"{mistake}\n").problems
    assert pasted in str(problem.hint)
    assert problem.source
    begin = problem.source.column - 1
    end = mistake.index("'", begin + 1) + 1 if mistake[begin] == "'" else begin
    while end < len(mistake) and mistake[end] not in "]},":
        end += 1
    assert loaded(tmp_path, f"{mistake[:begin]}{pasted}{mistake[end:]}\n").problems == ()


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


@listed_cases("template", "value", "empty")
def test_an_empty_value_is_an_error(tmp_path: Path, template: str, value: str, empty: str) -> None:
    """It would mean nothing, or all that there is; a value of one character is none."""
    codes = [
        [problem.code.partition("/")[0] for problem in loaded(tmp_path, text).problems]
        for text in (f"{template.replace('VALUE', one)}\n@ p.csv\ne\na@x.se\n" for one in (value, empty))
    ]
    assert codes == [[], ["manifest"]]


def variants(document: dict[str, Any]) -> Iterator[object]:
    """The same document, with one value or key of an entry made wrong."""
    for entries in chain(document.values(), document.get("absent", {}).values()):
        for entry in entries if isinstance(entries, list) else ():
            for key in list(entry) if isinstance(entry, dict) else ():
                kept = entry.pop(key)
                # `about` takes any value.
                for name, value in ((key, {"nonsense": [7]}), (f"{key}x", kept))[key == "about" :]:
                    entry[name] = value
                    yield document
                    del entry[name]
                entry[key] = kept


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("acme/manifests/**/*.yaml")), ids=lambda path: f"{path.parts[-3]}-{path.stem}"
)
def test_one_wrong_key_is_one_problem(path: Path) -> None:
    """Each value of each entry of the examples made wrong, one at a time: nothing else is found in the project."""
    folder = next(parent for parent in path.parents if parent.name == "manifests")
    root = folder.parent
    for document in yaml.load_all(path.read_text(encoding="utf-8"), yaml.BaseLoader):
        for wrong in variants(document):
            text = yaml.safe_dump(wrong, allow_unicode=True).replace("'true'", "true").replace("'false'", "false")
            drafts = {path.relative_to(root).as_posix(): text.encode()}
            found = load_folder(folder, root, timezone=ZONE, unsaved_contents=drafts)
            codes = [problem.code for problem in found.problems if problem.is_error]
            assert codes, text
            assert all(code.startswith("manifest/") for code in codes), text
