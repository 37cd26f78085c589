"""Seed files: read as they look, planted whole or not at all; and workspaces that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from manifest.cases import cases
from texts import text_of

from lmsconf.errors import ProblemsFound
from lmsconf.sandbox.seed import dump_seed, fill_workspace, load_seed
from lmsconf.sandbox.service import Sandbox
from lmsconf.sandbox.store import Store
from lmsconf.sandbox.synthetic_seed import generate_seed

from .conftest import Caller

WORKSPACE = text_of(__file__, "sandbox_seed_workspace.yaml")


@pytest.fixture
def planted(tmp_path):
    """The workspace above."""
    (tmp_path / "seed.yaml").write_text(WORKSPACE, encoding="utf-8")
    sandbox = Sandbox(seed=tmp_path / "seed.yaml")
    yield Caller(sandbox)
    sandbox.close_workspace()


def problems(values: object) -> list[str]:
    """What is wrong with a seed, once it is seen that nothing of it was planted."""
    store = Store()
    with pytest.raises(ProblemsFound) as found, store.write_transaction() as repository:
        fill_workspace(repository, values, source="seed.yaml")
    with store.read_transaction() as repository:
        assert repository.is_empty()
    assert {str(problem.source) for problem in found.value.problems} == {"seed.yaml"}
    return [problem.message for problem in found.value.problems]


def test_people_and_answers_are_planted(planted):
    """Scalars are the texts they look like (NO, a date); ids that are given are kept; e-mails match without case."""
    anna, bo = planted.ok("GET", "/users")["users"]
    assert (anna["userId"], bo["userId"]) == ("u-7", "u-1")
    assert (anna["email"], anna["firstName"], anna["lastName"]) == ("Anna.Berg@acme.example", "Anna", "")
    assert anna["customFields"] == {
        "Country": {"choices": [{"choiceId": "ch-2", "name": "NO"}]},
        "Since": {"text": "2026-01-05"},
        "Skills": {"choices": [{"choiceId": "ch-4", "name": "SQL"}]},
    }
    assert "archivedAt" in bo
    assert planted.ok("GET", "/users/u-1")["manager"] is True


def test_fields_and_groups_are_planted(planted):
    """Fields keep what is said of them; groups have their people; smart groups their conditions."""
    field = planted.ok("GET", "/custom-fields")["customFields"][0]
    assert (field["description"], field["isHidden"], field["isOptional"]) == ("Where", True, False)
    assert "isLocked" not in field
    assert planted.ok("GET", "/groups/g-1/members") == {"userIds": ["u-7"]}
    assert planted.ok("GET", "/groups/g-1/managers") == {"userIds": ["u-1"]}
    assert planted.ok("GET", "/smart-groups/sg-1", includeMembers="true") == {
        "smartGroupId": "sg-1",
        "name": "Nordics",
        "conditions": [
            {"customFieldId": "f-1", "choiceIds": ["ch-2", "ch-1"]},
            {"customFieldId": "f-2", "choiceIds": [], "systemCondition": "IS_ANY"},
        ],
        "managers": ["u-7"],
        "members": ["u-7"],
    }


def test_content_and_targets_are_planted(planted):
    """Content has its id, type and price; one entry assigns it to several audiences."""
    content = planted.ok("GET", "/content/c-42")
    assert (content["contentType"], content["price"], content["description"]) == ("PROGRAM", 490, "Yes")
    targets = planted.ok("GET", "/content/targets", contentId="c-42")["targets"]
    assert [one["targetId"] for one in targets] == ["EVERYONE", "lead", "sg-1", "u-1"]
    assert {(one["mandatory"], one["startTime"]) for one in targets} == {(True, "2026-01-04T23:00:00Z")}


MORE = text_of(__file__, "sandbox_seed_more.yaml")


@pytest.fixture
def lived_in(tmp_path):
    """A workspace in which something happened."""
    (tmp_path / "seed.yaml").write_text(MORE, encoding="utf-8")
    sandbox = Sandbox(seed=tmp_path / "seed.yaml")
    yield Caller(sandbox)
    sandbox.close_workspace()


def test_all_about_a_person_is_planted(lived_in):
    """A person may have a language, metadata, applications, an archive date and order details."""
    anna = lived_in.ok("GET", "/users/u-1")
    said = {"language": "sv", "metadata": {"employeeId": "007"}, "customArchiveDate": 1_893_456_000_000}
    assert anna == anna | said | {"applicationIds": ["create", "learn"]}
    details = lived_in.ok("GET", "/users/u-1/order-details")
    assert details == details | {"companyName": "Acme", "address": {"city": "Oslo"}}
    assert details["companyPayment"] is details["disablePayment"] is True
    assert len(lived_in.ok("GET", "/users/u-2")["applicationIds"]) == 5


def test_what_people_did_is_planted(lived_in):
    """Participations have their events, or one that says where they stand; certificates keep their ids."""
    (event,) = lived_in.ok("GET", "/analyse/event-logs/content/c-1/user/u-1")
    assert (event["status"], event["timestamp"]) == ("APPROVED", "2025-02-01T00:00:00Z")
    (event,) = lived_in.ok("GET", "/analyse/event-logs/content/c-3/user/u-1")
    assert (event["revisionNumber"], event["mandatory"], event["manually"]) == (3, True, True)
    rows = lived_in.ok("POST", "/analyse/results", {"options": {"orderBy": "contentId", "order": "ASC"}})["list"]
    assert [(one["state"], one["percentageProgress"]) for one in rows] == [("APPROVED", 100), ("IN_PROGRESS", 30)]
    (one,) = lived_in.ok("GET", "/users/u-1/certificates")["certificates"]
    assert (one["certificateId"], one["expiredNotificationEnabled"]) == ("x-1", True)
    assert lived_in.ok("GET", "/content/c-2")["partOfPrograms"] == ["c-3"]


PERSON = {"email": "anna@acme.example"}


@pytest.mark.parametrize("case", cases(Path(__file__).parent / "wrong_seeds.txt"), ids=lambda case: case.title)
def test_a_wrong_seed_is_refused_whole(case):
    """What is wrong is said with the file and the entry, and nothing is planted."""
    assert problems(yaml.safe_load(case.text)) == case.told.splitlines()


def test_a_key_with_nothing_after_it_means_none(tmp_path):
    """A list or a mapping with nothing after its key is an empty one, also in a part of an entry."""
    (tmp_path / "seed.yaml").write_text(
        """
people: [{email: anna@acme.example, answers: , metadata: , applications: , order_details: {address: }}]
custom_fields: [{name: Country, type: CHOICE, choices: }]
groups: [{name: x, members: , managers: }]
smart_groups: [{name: y, managers: , conditions: [{field: Country, choices: , system_condition: IS_ANY}]}]
content: [{name: z, programs: , occasions: }]
content_targets: [{content: z, assign_to: }]
participations: [{user: anna@acme.example, content: z, state: FAILED, events: }]
certificates:
""",
        encoding="utf-8",
    )
    with Store().write_transaction() as repository:
        fill_workspace(repository, load_seed(tmp_path / "seed.yaml"))
        made = repository.column("SELECT prefix FROM counters WHERE last > 0 ORDER BY prefix")
        assert made == ["c", "f", "g", "p", "sg", "u"]
        assert (
            repository.number("SELECT count(*) FROM members") == repository.number("SELECT count(*) FROM targets") == 0
        )
        assert repository.column("SELECT applications FROM people") == ["[]"]
        assert repository.column("SELECT details FROM orders") == ['{"address":{}}']


@pytest.mark.parametrize(
    ("written", "read"),
    [("true", 1), ("False", 0), (True, 1), ("1", 1), (0, 0), ("yes", None), ("", None), (2, None), ("null", None)],
)
def test_what_is_a_boolean(written, read):
    """A boolean is true or false, or 1 or 0, as a text too; anything else is refused."""
    values = {"people": [{**PERSON, "archived": written}]}
    if read is None:
        assert problems(values) == ["people[0]: archived is neither true nor false"]
    else:
        with Store().write_transaction() as repository:
            fill_workspace(repository, values)
            assert repository.number("SELECT archived_at IS NOT NULL FROM people") == read


@pytest.mark.parametrize(
    ("written", "read"),
    [("5", 5), (7, 7), ("5.0", 5), ("1e3", 1000), ("-5", None), (5.5, None), (True, None), ("07", None), ("", None)],
)
def test_what_is_a_whole_number(written, read):
    """A number is a whole one and not negative, as a text too; anything else is refused."""
    values = {"content": [{"name": "x", "price": written}]}
    if read is None:
        wanted = "at least 0" if written == "-5" else "a whole number"
        assert problems(values) == [f"content[0]: price is not {wanted}"]
    else:
        with Store().write_transaction() as repository:
            fill_workspace(repository, values)
            assert repository.number("SELECT price FROM contents") == read


def test_a_nul_is_kept(tmp_path):
    """A NUL in any text of a seed is in the responses, and filters find it, as one that a request sent."""
    (tmp_path / "seed.yaml").write_text(
        'people:\n- {email: a@x.example, first_name: "An\\0na", answers: {"Co\\0de": "7\\0"}, '
        'metadata: {"k\\0": "v\\0"}}\n'
        'custom_fields: [{name: "Co\\0de", type: TEXT}]\n',
        encoding="utf-8",
    )
    caller = Caller(Sandbox(seed=tmp_path / "seed.yaml"))
    (anna,) = caller.ok("GET", "/users", filter="n\0n")["users"]
    assert (anna["firstName"], anna["customFields"], anna["metadata"]) == (
        "An\0na",
        {"Co\0de": {"text": "7\0"}},
        {"k\0": "v\0"},
    )
    assert caller.ok("POST", "/users/search", {"metadata": {"k\0": "v\0"}})["matchCount"] == 1


def test_a_seed_that_is_nested_too_deep_is_refused():
    """Conditions within conditions are a problem of their section, however deep."""
    entry: dict[str, object] = {"name": "x"}
    for _ in range(600):
        entry = {"name": "x", "conditions": [entry]}
    (message,) = problems({"smart_groups": [entry]})
    assert message.startswith("smart_groups: a value cannot be stored: ")


def test_all_problems_are_told_together():
    """One run tells everything that is wrong in a seed."""
    values = {"people": [{}, PERSON, {}], "groups": [{"name": "x", "managers": ["no@acme.example"]}]}
    assert [message.partition(":")[0] for message in problems(values)] == ["people[0]", "people[2]", "groups[0]"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"groups: [\n", "seed.yaml:2:1: did not find expected node content"),
        (b"groups:\n- {name: a, name: b}\n", "seed.yaml:2:3: a key is a duplicate"),
        (b"- 1\n", "seed.yaml: it has no sections such as people"),
        (b"", "seed.yaml: it has no sections such as people"),
        (b"groups: []\n---\npeople: []\n", "seed.yaml: it contains more than one document"),
        (b"groups:\n- {[a]: b}\n", "seed.yaml:2:3: a key is not text"),
        (b"groups: &all\n- *all\n", "seed.yaml:1:9: found unconstructable recursive node"),
        (b"groups: " + b"[" * 2000 + b"]" * 2000, "seed.yaml: its lists and mappings are nested too deep"),
        (b"groups: \xff", "seed.yaml: it is not UTF-8"),
    ],
)
def test_a_file_that_is_no_seed(tmp_path, monkeypatch, text, message):
    """A file that is not YAML, or holds something else, is an error with its place."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "seed.yaml"
    path.write_bytes(text)
    with pytest.raises(ProblemsFound) as found:
        load_seed(path.relative_to(tmp_path))
    (problem,) = found.value.problems
    assert f"{problem.source}: {problem.message}".startswith(message)


SIZES = {
    "users": 60,
    "groups": 14,
    "smart_groups": 30,
    "fields": 10,
    "contents": 20,
    "assignments": 90,
    "participations": 70,
}


def test_a_made_up_workspace_has_the_size_asked_for():
    """A made-up workspace has as many of everything as was asked for, no two with the same name, and can be planted."""
    values = generate_seed(**SIZES)
    counts = {"people": 60, "groups": 14, "smart_groups": 30, "custom_fields": 10, "content": 20, "content_targets": 90}
    counts["participations"] = 70
    assert {section: len(entries) for section, entries in values.items() if section != "certificates"} == counts
    assert 0 < len(values["certificates"]) < 70
    for section in ("custom_fields", "groups", "smart_groups", "content"):
        assert len({entry["name"] for entry in values[section]}) == counts[section]
    with Store().write_transaction() as repository:
        fill_workspace(repository, values)
        assert repository.number("SELECT count(*) FROM targets") == 90


def test_a_seed_file_reads_as_it_was_written(tmp_path):
    """What is written as YAML reads back the same, for any reader, also where text looks like something else."""
    names = [
        "NO",
        "true",
        "null",
        "12",
        "1e3",
        "a: b",
        "- x",
        "#c",
        "é\u2028\u0085\ufeff\U0001f600",
        '"',
        "",
        " x ",
        "a, b",
        "~",
        "Y",
        "[x]",
    ]
    values = {"groups": [{"name": name, "members": []} for name in names]}
    path = tmp_path / "seed.yaml"
    path.write_text(dump_seed(values), encoding="utf-8", newline="")
    assert load_seed(path) == values
    assert yaml.safe_load(dump_seed(values)) == values
