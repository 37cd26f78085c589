"""`export --by`: a folder for each team; and live resources as entries, with notes on what cannot be said of them."""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from flow.project import Project
from flow.shell import lmsconf
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from texts import listed_cases, text_of

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.custom_field.types import parse_field_row
from lmsconf.kinds.export import field_entry_body, named_entries, people_lists_body, person_entries
from lmsconf.kinds.group import GroupRow
from lmsconf.kinds.kind_functions import match_kind
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.user.types import PersonRow
from lmsconf.manifest.edit.text_edits import escape_for_comment, format_entry_lines
from lmsconf.manifest.load import load_folder
from lmsconf.manifest.variables import Reporter, Variables
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.control_characters import is_representable
from lmsconf.model.guards import Policy
from lmsconf.model.snapshot import Listing, Snapshot

SEED = text_of(__file__, "by_team_seed.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, SEED, "")


def files(root: Path) -> dict[str, list[str]]:
    """File → the addresses that it declares."""
    found = load_folder(root / "manifests", root)
    assert not [one for one in found.problems if one.is_error]
    by_file: dict[str, list[str]] = {}
    for one in found.declared:
        assert one.source is not None
        by_file.setdefault(one.source.file.removeprefix("manifests/"), []).append(one.address.text)
    return by_file


@listed_cases("by", "written")
def test_each_team_has_a_folder(project: Project, by: str, written: dict[str, list[str]]) -> None:
    """A group whose members all answered the same, a smart group with one choice, and what is assigned to them; or
    what begins with the same words: case makes no other team, and an assignment goes with its content."""
    assert lmsconf(project.root, "export", "--by", by).code == 0
    assert files(project.root) == written
    assert lmsconf(project.root, "plan", "--detailed-exitcode").code == 0
    first = (project.root / "manifests" / "sales" / "groups.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../../schemas/manifest.schema.json"


def test_people_and_fields_with_several_answers(project: Project) -> None:
    """A person belongs to the team of the only answer; everything is as without --by, but for the files."""
    assert lmsconf(project.root, "export", "--kind", "users", "--kind", "groups", "--by", "Skills").code == 0
    split = files(project.root)
    assert split["go/users.yaml"] == ["anna.berg@acme.example"]
    assert len(split["users.yaml"]) == 3
    assert len(split["groups.yaml"]) == 5


HOSTILE = ["../../x", "CON", ".hidden", "_kept", "a/b", "a b", "A  B", "\u202eb", "😀", "é", "e\u0301", "x" * 90]


def test_names_that_are_no_names_of_folders(tmp_path: Path) -> None:
    """Every folder is one name below the folder of manifests, and is read; what would collide has a number."""
    names = [f"{team}: {number}" for number, team in enumerate(HOSTILE)]
    groups = [{"name": name, "members": []} for name in names if "\u202e" not in name]
    project = Project(tmp_path, yaml.safe_dump({"groups": groups}, allow_unicode=True), "")
    assert lmsconf(project.root, "export", "--by", "prefix:: ").code == 0
    found = files(project.root)
    assert Counter(name for part in found.values() for name in part) == Counter(
        group["name"].replace("e\u0301", "é") for group in groups
    )
    assert sorted(found) == sorted(
        f"{folder}/groups.yaml"
        for folder in ("x", "team-con", "hidden", "kept", "a-b", "a-b-2", "a-b-3", "team", "é", "x" * 60)
    )
    written = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.yaml")}
    assert written == {"manifests", "lmsconf.yaml", "workspace.yaml"}
    assert lmsconf(project.root, "plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("Departmnt", 'Did you mean "Department"?'),
        ("prefix:", "the separator is missing"),
        ("prefix", "To split by the beginning of names"),
    ],
)
def test_what_cannot_be_split_by(by: str, said: str, project: Project) -> None:
    """A wrong command line; nothing is written."""
    assert said in lmsconf(project.root, "export", "--by", by, code=64).err
    assert not list((project.root / "manifests").glob("**/*.yaml"))


def test_too_many_teams(tmp_path: Path) -> None:
    """More folders than anybody would read are refused."""
    seed = yaml.safe_dump({"groups": [{"name": f"{number} - x", "members": []} for number in range(201)]})
    assert "201 folders" in lmsconf(Project(tmp_path, seed, "").root, "export", "--by", "prefix: - ", code=1).err


def test_a_link_is_not_followed(project: Project, tmp_path: Path) -> None:
    """Nothing is written through a link that has the name of a team's folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / "manifests").mkdir(exist_ok=True)
    (project.root / "manifests" / "a.yaml").write_text("groups: [{name: Empty}]\n")
    (project.root / "manifests" / "_later").symlink_to(outside)
    target = project.root / "other"
    target.mkdir()
    (target / "sales").symlink_to(outside)
    assert "link" in lmsconf(project.root, "export", str(target), "--into", "--by", "Department", code=1).err
    assert not list(outside.iterdir())


# Live resources as manifest entries: what can be said of them, and notes on what cannot.


def live(**more: Json) -> dict[str, Json]:
    """A field as the service lists it."""
    return {"id": "f", "customFieldId": "f", "name": "Dept", "type": "CHOICE", **more}


@listed_cases("names", "choices", "notes")
def test_choices_that_a_manifest_can_tell_apart_are_declared(names: list[str], choices: Json, notes: list[str]) -> None:
    """All of them as a list in their order; else those with a name of their own, and a count of the others."""
    rows: list[Json] = [{"choiceId": f"c-{number}", "name": name} for number, name in enumerate(names)]
    keys, found = field_entry_body(parse_field_row(live(choices=rows)))
    assert keys == {"type": "CHOICE"} | ({} if choices is None else {"choices": choices})
    assert list(found) == notes


def test_only_what_differs_from_the_default_is_declared() -> None:
    """A flag that is set and a description; of a type that manifests do not know there is a note."""
    keys, notes = field_entry_body(
        parse_field_row(live(type="DATE", description="Since", isHidden=True, isLocked=False))
    )
    assert keys == {"description": "Since", "hidden": True}
    assert list(notes) == ["its type DATE is not supported in manifests"]


def live_names(*people: PersonRow, groups: tuple[GroupRow, ...] = ()) -> PlanContext:
    """A workspace with these people and groups."""
    policy = Policy(workspace="w", today=date(2026, 6, 1))
    listings: dict[str, Listing[Any]] = {"user": Listing(rows=people), "group": Listing(rows=groups)}
    snapshot = Snapshot(workspace="w", url="u", taken_at="t", people=None, listings=listings)
    planning = PlanContext(snapshot, policy, ApiSpec.default(), lambda address: True)
    match_kind(planning, "group", (), ())
    return planning


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
    found = [(one.id, one.reason or one.body) for one in person_entries(live)]
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
    keys, notes = people_lists_body(live, {"members": [f"u-{n}" for n in (1, 2, 3, 4, 9)], "managers": None})
    assert keys == {"members": ["anna@acme.example"]}
    assert list(notes) == [
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
    rows = (GroupRow(RemoteId("g-1"), "A"), GroupRow(RemoteId("g-2"), name))
    found = list(named_entries(live_names(groups=rows), "group"))[1]
    assert (found.id, found.reason) == ("g-2", reason)


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
    values = [variables.substitute(one.value, one.source, one.mark) for one in reading.documents]
    assert reading.problems == [], text
    assert values == [{"groups": [entry]}]


@listed_cases("entry", "lines")
def test_a_value_is_written_as_a_person_would(entry: dict[str, Json], lines: list[str]) -> None:
    """A word that YAML takes for text stands as it is, also one that older YAML took for a boolean or a date. A short
    list stands beside its key; a long one below it, and so do several mappings."""
    assert list(format_entry_lines(entry, "")) == lines


def test_a_comment_stays_one_line() -> None:
    """A name in a comment cannot end it, and nothing unseen stands in it."""
    assert escape_for_comment("a\nb\u202ec\ud800") == "a\\u000ab\\u202ec\\ud800"
