"""Malformed manifests: what is said of each, word by word."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from flow.project import Project
from manifest.cases import Case, cases, shown
from manifest.schema_writer import passes
from texts import listed_cases

from lmsconf.manifest.load import load_folder
from lmsconf.manifest.schema_check import SchemaValidator, manifest_schema
from lmsconf.manifest.schema_messages import WORDED
from lmsconf.model.canonical_json import Json
from lmsconf.support.files import read_schema
from lmsconf.workspace.project_manifests import load_manifests

pytestmark = pytest.mark.sampled(day=8)

CASES = [case for path in sorted(Path(__file__).parent.glob("malformed*.txt")) for case in cases(path)]
VARIABLES: dict[str, Json] = {
    "region": "Nordics",
    "nordics": ["SE", "NO"],
    "strict": True,
    "tens": list("0123456789"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_malformed_manifest(case: Case, tmp_path: Path) -> None:
    """A malformed manifest is told about at file, line and column, with the reason and the way out."""
    (tmp_path / "a.yaml").write_text(case.text, encoding="utf-8")
    found = load_folder(tmp_path, tmp_path, variables=VARIABLES)
    assert shown(found.problems) == case.told
    assert found.problems


def test_all_files_are_told_about_in_one_run(tmp_path: Path) -> None:
    """Problems of YAML, shape, references and people in several files come together, in the order of the files."""
    folder = tmp_path / "manifests"
    (folder / "hr").mkdir(parents=True)
    (folder / "a.yaml").write_text("groups:\n  - name: @home\n")
    (folder / "b.yml").write_text("grups: []\n")
    (folder / "hr" / "c.yaml").write_text(
        "smart_groups: [{name: A, conditions: [{field: Region, choices: [Nrth]}]}]\n"
        "groups: [{name: B, members: {file: people.csv, column: mail}}]\n"
    )
    (folder / "hr" / "people.csv").write_text("email,team\nbo.ek@acme.example,A\n")
    (folder / "z.yaml").write_text("custom_fields: [{name: Region, type: CHOICE, choices: [North]}]\n")
    (folder / "broken.yaml").write_bytes(b"groups: []\n# caf\xe9\n")
    assert [str(problem.source) + " " + problem.code for problem in load_folder(folder, tmp_path).problems] == [
        "manifests/a.yaml:2:11 yaml/syntax",
        "manifests/b.yml:1:1 manifest/unknown-key",
        "manifests/broken.yaml:2:6 manifest/encoding",
        "manifests/hr/c.yaml:1:65 reference/unknown-choice",
        "manifests/hr/people.csv:1:1 people/column",
    ]


@listed_cases("schema", "value")
def test_what_the_schema_forbids_is_found(schema: dict[str, object], value: object) -> None:
    """A value that the schema forbids is found, however the schema is rewritten."""
    validator = SchemaValidator(schema)
    assert validator.validate(value)
    assert not passes(validator.strict_schema, value)


@pytest.mark.parametrize("description", ["|\n      Several\n      lines\n", '"a\\tb"', '" "'])
def test_descriptions_may_hold_what_names_may_not(description: str, tmp_path: Path) -> None:
    """A description may go over several lines, hold tabs, or be blank, and what is only passed on may too."""
    (tmp_path / "a.yaml").write_text(
        f"custom_fields:\n  - name: Team\n    type: TEXT\n    description: {description}\n"
        'smart_groups: [{name: A, conditions: [{field: Team, system_condition: "IS\\nANY"}], about: {why: "a\\nb"}}]\n'
        'users: [{email: bo.ek@acme.example, answers: {Team: "two\\nlines"}}]\n'
    )
    found = load_folder(tmp_path, tmp_path)
    assert found.problems == ()
    assert len(found.declared) == 3


def test_every_problem_has_a_way_out() -> None:
    """Under every error of the tables stands a hint that says what to do."""
    for case in CASES:
        lines = case.told.splitlines()
        for line, below in zip(lines, [*lines[1:], ""], strict=True):
            assert line.startswith("  ") or below.startswith("  "), line


@listed_cases("mistake", "pasted")
def test_a_way_out_can_be_pasted(mistake: str, pasted: str, tmp_path: Path) -> None:
    """What is offered in place of a mistake is sound where the mistake stood."""
    (tmp_path / "a.yaml").write_text(f"{mistake}\n")
    (problem,) = load_folder(tmp_path, tmp_path).problems
    assert pasted in str(problem.hint)
    assert problem.source
    begin = problem.source.column - 1
    end = mistake.index("'", begin + 1) + 1 if mistake[begin] == "'" else begin
    while end < len(mistake) and mistake[end] not in "]},":
        end += 1
    (tmp_path / "a.yaml").write_text(f"{mistake[:begin]}{pasted}{mistake[end:]}\n")
    assert load_folder(tmp_path, tmp_path).problems == ()


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


# What a manifest cannot leave empty: names, ids, lists of conditions and choices.


GROUP = "groups: [{name: A, MORE}]"
FIELD = "custom_fields: [{name: F, type: CHOICE, MORE}]"
SMART = "smart_groups: [{name: S, conditions: MORE}]"


@pytest.mark.parametrize(
    ("template", "value", "empty"),
    [
        ("groups: [{name: VALUE}]", "B", '""'),
        ("absent: {groups: [{name: VALUE}]}", "B", '""'),
        (GROUP.replace("MORE", "id: VALUE"), "g", '""'),
        (GROUP.replace("MORE", "id: {sandbox: VALUE}"), "g", '""'),
        (GROUP.replace("MORE", "id: VALUE"), "{sandbox: g}", "{}"),
        (GROUP.replace("MORE", "previously: [VALUE]"), "B", '""'),
        (GROUP.replace("MORE", "only_in: [VALUE]"), "sandbox", '""'),
        (GROUP.replace("MORE", "only_in: VALUE"), "[sandbox]", "[]"),
        (GROUP.replace("MORE", "members: VALUE"), "{include: [a@x.se]}", "{}"),
        (GROUP.replace("MORE", "members: {VALUE}"), "exclude: []", "others: []"),
        (GROUP.replace("MORE", "members: {file: p.csv, column: eVALUE}"), ", allow_empty: true", ", empty: true"),
        (FIELD.replace("MORE", "choices: VALUE"), "[A]", "[]"),
        (FIELD.replace("MORE", "choices: [VALUE]"), "A", '""'),
        (FIELD.replace("MORE", "choices: VALUE"), "{include: [A]}", "{}"),
        (FIELD.replace("MORE", "choices: {include: [A]VALUE}"), ", exclude: [B]", ", others: [B]"),
        (FIELD.replace("MORE", "choices: [A], migrate: {from: VALUE}"), "B", '""'),
        (FIELD.replace("MORE", "choices: [A], migrate: {from: B, choices: {C: VALUE}}"), "A", '""'),
        (SMART.replace("MORE", "VALUE"), "[{field: F, choices: [A]}]", "[]"),
        (SMART.replace("MORE", "[{field: F, choices: VALUE}]"), "[A]", "[]"),
        (SMART.replace("MORE", "[{field: F, choices: [VALUE]}]"), "A", '""'),
        (SMART.replace("MORE", "[{field: F, system_condition: VALUE}]"), "I", '""'),
        (SMART.replace("MORE", "[{field: FVALUE}]"), ", choices: [A]", ""),
    ],
)
def test_an_empty_value_is_an_error(tmp_path: Path, template: str, value: str, empty: str) -> None:
    """It would mean nothing, or all that there is; a value of one character is none."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "p.csv").write_text("e\na@x.se\n")
    it = Project(tmp_path)
    codes = []
    for one in (value, empty):
        it.write(template.replace("VALUE", one))
        codes.append([problem.code.partition("/")[0] for problem in load_manifests(it.settings).problems])
    assert codes == [[], ["manifest"]]


# An error of shape hides no other error, and causes none.


EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SHAPE = "manifest/unknown-key"


def told(root: Path, *manifests: str) -> list[str]:
    """The codes of the errors in manifests, in their order."""
    for number, text in enumerate(manifests):
        (root / f"{number}.yaml").write_text(text, encoding="utf-8")
    found = load_folder(root, root, timezone=ZoneInfo("Europe/Stockholm"))
    return [problem.code for problem in found.problems if problem.is_error]


A_FIELD = "custom_fields: [{name: Country, type: CHOICE, choices: [SE, FI]%s}]\n"
A_GROUP = "smart_groups: [{name: A, conditions: [{field: Country, %s}]%s}]\n"


@pytest.mark.parametrize(
    ("manifests", "codes"),
    [
        ((A_FIELD % "", A_GROUP % ("choices: [DK]", ", maangers: []")), ["reference/unknown-choice", SHAPE]),
        ((A_FIELD % ", hiden: true", A_GROUP % ("choices: [DK]", "")), [SHAPE, "reference/unknown-choice"]),
        ((A_FIELD % ", hidden: 7", A_GROUP % ("except: [DK]", "")), ["manifest/type", "reference/unknown-choice"]),
        (("groups: [{name: A, members: {set: B}, nots: 1}]\n",), ["reference/unknown-set", SHAPE]),
        (("groups: [{name: A, memebrs: []}]\ncontent_targets: [{content: B, window: Q, assign_to: [everyone]}]\n",),
         [SHAPE, "reference/unknown-window"]),
    ],
)  # fmt: skip
def test_what_an_entry_refers_to_is_checked_too(manifests: tuple[str, ...], codes: list[str], tmp_path: Path) -> None:
    """In an entry with a wrong key, and where such an entry is referred to."""
    assert told(tmp_path, *manifests) == codes


@pytest.mark.parametrize(
    ("manifests", "codes"),
    [
        ((A_FIELD % "", A_GROUP % ("except: [SE]", "")), []),
        ((A_FIELD.replace("[SE, FI]", "[SE, {nam: FI}]") % "", A_GROUP % ("except: [SE]", "")), None),
        ((A_FIELD.replace("[SE, FI]", "[SE, {nam: FI}]") % "", A_GROUP % ("choices: [FI]", "")), None),
        ((A_FIELD.replace("name", "nam") % "", A_GROUP % ("except: [SE]", "")), None),
        ((A_FIELD.replace("custom_fields", "custom_feilds") % "", A_GROUP % ("except: [SE]", "")), [SHAPE]),
        (("people_sets: {Leads: {fil: a.csv}}\n", "groups: [{name: A, members: {set: Leads}}]\n"), None),
        (("people_sets: [Leads]\n", "groups: [{name: A, members: {set: Leads}}]\n"), ["manifest/type"]),
        (("peple_sets: {Leads: []}\n", "groups: [{name: A, members: {set: Leads}}]\n"), [SHAPE]),
        (("people_sets: {Leads: [a@b.example]\n", "groups: [{name: A, members: {set: Leads}}]\n"), ["yaml/syntax"]),
        (("windows: {Q: {visible_form: 2026-01-01}}\n",
          "content_targets: [{content: B, window: Q, assign_to: [everyone]}]\n"), None),
        # Without the misspelt key, both would be declared for the same workspaces.
        (("groups: [{name: A, only_im: [one]}, {name: A, only_in: [two]}]\n",), [SHAPE]),
        (("groups: [{name: A, only_in: one}, {name: A, only_in: [two]}]\n",), ["manifest/type"]),
        (("groups: [{name: A, di: g-1}, {name: a}]\n",), [SHAPE]),
    ],
)  # fmt: skip
def test_an_error_of_shape_causes_no_other(manifests: tuple[str, ...], codes: list[str] | None, tmp_path: Path) -> None:
    """A reference to what has the wrong shape, or may stand where nobody can read it, is not unknown."""
    found = told(tmp_path, *manifests)
    assert not [code for code in found if not code.startswith(("manifest/", "yaml/"))]
    assert found == codes or (codes is None and found)


def variants(value: object) -> Iterator[object]:
    """The same document, with one value or key of an entry made wrong."""
    if not isinstance(value, dict):
        return
    for section, entries in value.items():
        parts = {section: entries} if isinstance(entries, list) else entries if section == "absent" else {}
        for items in parts.values():
            for entry in items if isinstance(items, list) else ():
                if isinstance(entry, dict):
                    yield from _wrong(value, entry)


def _wrong(document: object, entry: dict[str, Any]) -> Iterator[object]:
    for key in list(entry):
        kept = dict(entry)
        # `about` takes any value.
        for wrong in ({key: {"nonsense": [7]}} if key != "about" else {}, {f"{key}x": kept[key]}):
            if not wrong:
                continue
            del entry[key]
            entry.update(wrong)
            yield document
            entry.clear()
            entry.update(kept)


@pytest.mark.sampled
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
            found = load_folder(folder, root, timezone=ZoneInfo("Europe/Stockholm"), unsaved_contents=drafts)
            codes = [problem.code for problem in found.problems if problem.is_error]
            assert codes, text
            assert all(code.startswith("manifest/") for code in codes), text
