"""`lmsconf snapshot --redact`: people that the manifests do not name are left out, and plans are still made."""

import hashlib
import hmac
import json
import random
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from flow.project import Project
from flow.shell import lmsconf
from json_schemas import schema_validator
from msgspec.structs import replace
from texts import text_of

from lmsconf.documents.snapshot_file import loads
from lmsconf.kinds.user.types import HolderRow
from lmsconf.model.address import RemoteId
from lmsconf.model.declarations import Manifests
from lmsconf.model.snapshot import Listing
from lmsconf.planner.snapshot_redaction import UnnamedRow, restore_snapshot
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

pytestmark = pytest.mark.sampled(day=8, daily=False)

STAFF = 100
NAMED = sorted(f"person{number}@acme.example" for number in range(40))
"""Whom the manifests name, in lists, as managers, in assignments and under `users:`."""
OPTIONS = "timezone: Europe/Stockholm\nguards: {min_admins: 1}\n"


def staff(people: int = STAFF) -> list[dict[str, Any]]:
    """Everybody, with all that could tell who it is."""
    return [
        {
            "email": f"Person{number}@acme.example",
            "id": f"u-{number:04}",
            "first_name": f"First{number}",
            "last_name": f"Last{number}",
            "language": "sv" if number % 3 else "en",
            "admin": number % 50 == 7,
            "manager": number % 20 == 3,
            "archived": number % 31 == 5,
            "metadata": {"badge": f"badge-{number}"},
            "answers": {"Country": "SE" if number % 2 else "NO", "Nickname": f"nick-{number}"},
        }
        for number in range(people)
    ]


def seed(people: int = STAFF) -> str:
    """A workspace whose groups are a fingerprint of nearly everybody: who is in which is drawn at random."""
    draw = random.Random(5)  # noqa: S311  # a game, no secret
    emails = [str(one["email"]) for one in staff(people)]
    groups = [
        {"name": f"Group {number}", "members": draw.sample(emails, people // 7), "managers": draw.sample(emails, 3)}
        for number in range(24)
    ]
    groups.append({"name": "Reports of person45@ACME.example (all)", "members": emails[35:55]})
    groups.append({"name": "Reports of person7@acme.example", "members": emails[:10]})
    seed = yaml.safe_load(text_of(__file__, "redacted_seed.yaml"))
    seed["smart_groups"][0]["managers"] = draw.sample(emails, 5)
    seed["content_targets"] += [
        {
            "content": content["name"],
            "assign_to": [{"user": email} for email in draw.sample(emails, people // 8)],
            "visible_until": "2031-03-04T05:06:07Z",
        }
        for content in seed["content"]
    ]
    return json.dumps({**seed, "people": staff(people), "groups": groups})


def manifests() -> str:
    """Lists that are whole and lists that are not, people in assignments, and people of their own."""
    text = text_of(__file__, "redacted_manifests.yaml")
    users = [f"{{user: {one}}}" for one in NAMED]
    lists = {"TEN USERS": users[20:30], "ALL USERS": users, "FIRST": NAMED[:10], "NEXT": NAMED[10:20], "ALL": NAMED}
    for words, people in lists.items():
        text = text.replace(words, ", ".join(people))
    return text


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a whole snapshot and a redacted one of the same moment."""
    made = Project(tmp_path_factory.mktemp("redacted"), seed(), OPTIONS)
    made.write(manifests())
    for name, options in (("all.json", ()), ("red.json", ("--redact",)), ("again.json", ("--redact",))):
        lmsconf(made.root, "snapshot", name, *options, code=0)
    return made


def read(project: Project, name: str) -> dict[str, Any]:
    found = json.loads((project.root / name).read_text())
    assert isinstance(found, dict)
    return found


def guesses(text: str) -> Iterator[str]:
    """The spellings in which somebody could be hashed."""
    local, _, host = text.partition("@")
    for one in (text, text.casefold(), text.upper(), text.title(), local, local.casefold(), f"{text}\n"):
        yield from (one, unicodedata.normalize("NFC", one), unicodedata.normalize("NFKC", one), f"{one}:{host}")


def digests(salt: str, text: str) -> Iterator[str]:
    """The hashes that an attacker would try, with the salt as text and as bytes, before, behind and as a key."""
    data = text.encode()
    for key in (salt.encode(), bytes.fromhex(salt)):
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b"):
            yield hmac.new(key, data, name).hexdigest()
            for message in (key + data, data + key, key + b":" + data, data):
                yield hashlib.new(name, message).hexdigest()


def test_brute_force_with_the_full_staff_list_tells_nobody_else(project: Project) -> None:
    """Of a hundred people only those in the manifests are found, by whatever hash, spelling, id or name."""
    text = (project.root / "red.json").read_text()
    salt = read(project, "red.json")["pseudonyms"]["salt"]
    # Of a million guesses some share eight digits with something by chance; twelve they do not.
    words = {word for found in re.findall(r"[0-9a-f]{12,}", text) for word in (found, found[:16], found[:12])}
    told = set()
    for one in staff():
        email = one["email"].casefold()
        own = (one["email"], one["id"], one["first_name"], one["last_name"], one["metadata"]["badge"])
        clues = {clue for clue in (*own, one["answers"]["Nickname"]) if f'"{clue}"' in text}
        if email in text.casefold():
            clues.add("its e-mail")
        for guess in {*guesses(one["email"]), *guesses(one["id"]), *guesses(f"{one['first_name']} {one['last_name']}")}:
            if any(digest[:length] in words for digest in digests(salt, guess) for length in (12, 16)):
                clues.add("a hash")
        if clues:
            told.add(email)
    assert told - {*NAMED} == set()
    assert told == {*NAMED}, "people in the manifests are found, or this looks for the wrong thing"


def test_nothing_links_the_lists_of_somebody_whom_no_manifest_names(project: Project) -> None:
    """Who knows who is in which group learns nothing: lists hold the ids of named people only, and otherwise counts."""
    red, whole = read(project, "red.json"), read(project, "all.json")
    ids = {one["id"] for one in staff() if one["email"].casefold() in NAMED}
    others = [row for row in red["user"] if row["id"] not in ids]
    assert len(others) == STAFF - len(NAMED)
    assert all(row.keys() == {"id", "email", "archived"} for row in others)
    free = {row["id"] for row in others}
    rest = json.dumps({key: value for key, value in red.items() if key != "user"})
    assert not any(id in rest or label in rest for row in others for id, label in [(row["id"], row["email"])])
    assert [row["id"] for row in red["user"]] == sorted(row["id"] for row in red["user"])
    for kind, lists in (("group", ("members", "managers")), ("smart_group", ("managers",))):
        for hidden, shown in zip(red[kind], whole[kind], strict=True):
            for key in lists:
                counted = [
                    row["active"] + row["archived"] + row["unknown"]
                    for row in red["unnamed_people"]
                    if (row["kind"], row["of"], row["list"]) == (kind, hidden["id"], key)
                ]
                assert set(hidden[key]) == set(shown[key]) & ids
                assert sum(counted) == len(shown[key]) - len(hidden[key])
    assert not free & {row["target"] for row in red["content_target"]}
    assert {row["target"] for row in red["content_target"] if row["type"] == "USER"} <= ids
    assert {row["id"] for row in red["admin"]} <= ids


def test_labels_and_ids_are_new_in_each_snapshot(project: Project) -> None:
    """Two snapshots of one workspace share no label, no id and no salt, but for the ids of people who are named."""
    one, other = read(project, "red.json"), read(project, "again.json")
    ids = {row["id"] for row in staff() if row["email"].casefold() in NAMED}
    assert {row["id"] for row in one["user"]} & {row["id"] for row in other["user"]} == ids
    assert not {row["email"] for row in one["user"]} & {row["email"] for row in other["user"]}
    assert one["pseudonyms"]["salt"] != other["pseudonyms"]["salt"]
    assert "pseudonymous" in str(one)
    schema_validator("snapshot").validate(one)


def test_e_mails_in_names_and_texts_go_where_no_manifest_names_them(project: Project) -> None:
    """In the name of a group and in the text of a field; what the manifests name stays, so that names still compare."""
    red = read(project, "red.json")
    names = {row["name"] for row in red["group"]}
    assert "Reports of person7@acme.example" in names
    assert any(re.fullmatch(r"Reports of person-[0-9a-f]{16} \(all\)", name) for name in names)
    assert "person46" not in json.dumps(red["custom_field"])


def plans(project: Project) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan of the workspace, and that of the redacted snapshot, against which effects on people are not known."""
    arguments = ("plan", "--no-effects", "--format", "json")
    live = lmsconf(project.root, *arguments, code=0)
    return live.document, lmsconf(project.root, *arguments, "--snapshot", "red.json", code=0).document


def test_a_plan_of_named_people_is_the_live_one(project: Project) -> None:
    """Every change and every call is equal where only named people are in it; so are the guards and the counts."""
    live, offline = plans(project)
    assert len(live["changes"]) > 20
    for one, other in zip(offline["changes"], live["changes"], strict=True):
        assert {**one, "problems": None} == {**other, "problems": None}
    for key in ("summary", "guards", "measures"):
        assert offline[key] == live[key], key
    assert [call["path"] for call in offline["calls"]] == [call["path"] for call in live["calls"]]
    assert "snapshot/redacted" in [problem["code"] for problem in offline["problems"]]


def test_people_whom_nobody_names_are_counted_as_the_live_plan_counts_them(tmp_path: Path) -> None:
    """Whole lists, a deleted group, owned assignments and admins: the guards see the same numbers."""
    project = Project(tmp_path, seed(60), OPTIONS + "ownership: {content_targets: declared_content}\n")
    project.write(text_of(__file__, "redacted_whole.yaml"))
    assert lmsconf(project.root, "snapshot", "red.json", "--redact").code == 0
    live, offline = plans(project)
    for key in ("summary", "guards"):
        assert offline[key] == live[key], key
    assert sorted(map(str, offline["measures"])) == sorted(map(str, live["measures"]))
    assert "unnamed person 1" in str(offline)
    assert {*re.findall(r"person\d+@", str(offline))} <= {"person1@", "person7@"}


def test_numbers_of_lists_that_are_not_there_make_no_people(project: Project) -> None:
    """A file with two million people in a group that it does not have is read as one without that number."""
    snapshot = loads((project.root / "red.json").read_text())
    gone = UnnamedRow("group", RemoteId("gone"), "members", 2_000_000, 0, 0)
    numbers = Listing(rows=(gone, *snapshot.rows(UnnamedRow)))
    told = replace(snapshot, listings={**snapshot.listings, UnnamedRow.listing: numbers})
    assert restore_snapshot(told, Manifests()) == restore_snapshot(snapshot, Manifests())


def test_who_is_named_and_not_live_is_an_error_as_ever(tmp_path: Path) -> None:
    """The snapshot knows who was named in the manifests when it was taken, so it tells that one of them is missing."""
    project = Project(tmp_path, "groups: [{name: A}]\n")
    project.write("groups: [{name: A, members: {include: [nobody@acme.example]}}]")
    assert lmsconf(project.root, "snapshot", "red.json", "--redact").code == 0
    ran = lmsconf(project.root, "plan", "--snapshot", "red.json", code=1)
    assert "nobody@acme.example is not a person of this workspace" in ran.err


def test_a_comparison_with_other_manifests_takes_a_redacted_snapshot(project: Project, tmp_path: Path) -> None:
    """`--base`: who is new on either side is not compared, and changes still say where they come from."""
    (tmp_path / "all.yaml").write_text("groups: [{name: New group, members: {include: [person70@acme.example]}}]\n")
    arguments = ("plan", "--snapshot", "red.json", "--base", str(tmp_path), "--format", "json")
    ran = lmsconf(project.root, *arguments, code=0)
    assert {change["origin"] for change in ran.document["changes"]} == {"from this change"}


@pytest.mark.parametrize("command", ["export new --snapshot", "sandbox seed --db other.db --seed"])
def test_what_needs_people_refuses_a_redacted_snapshot(project: Project, command: str) -> None:
    """Exit 1 with a sentence: it can be neither exported nor seeded, as a whole one can."""
    ran = lmsconf(project.root, *command.split(), "red.json", code=1)
    assert "snapshot" in ran.err
    assert "redacted" in ran.err
    lmsconf(project.root, *command.split(), "all.json", code=0)


@pytest.mark.parametrize("case", ["reason", "answer", "metadata"])
def test_what_a_service_says_beside_its_rows_goes_too(tmp_path: Path, case: str) -> None:
    """A response quoted as a reason, a text answer that looks like a choice, metadata that no manifest names."""
    it = Project(tmp_path, "people: [{email: a@x.example, metadata: {plan: A, badge: secret}}]\n")
    it.write("users: [{email: a@x.example, metadata: {plan: B}}]\n")
    with Connection(it.settings) as connection:
        reader, manifests = WorkspaceReader(settings=it.settings, connection=connection), load_manifests(it.settings)
        live = reader.snapshot(manifests=manifests)
        holders = Listing(rows=(HolderRow(RemoteId("secret"), 1),), incomplete="secret" if case == "reason" else None)
        listings = live.listings if case == "metadata" else {**live.listings, HolderRow.listing: holders}
        assert "secret" in str(replace(live, listings=listings))
        assert "secret" not in str(reader.redact_snapshot(replace(live, listings=listings), manifests))
