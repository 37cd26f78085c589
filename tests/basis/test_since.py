"""`plan --base --since`: what a change touches is read, the rest comes from a snapshot; refused where it cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf

SEED = """
people: [{email: anna@x.example, id: p-1}, {email: bo@x.example, id: p-2}, {email: cleo@x.example, id: p-3}]
groups:
  - {name: Coaches, id: g-1, members: [anna@x.example]}
  - {name: Mentors, id: g-2, members: [bo@x.example]}
  - {name: Readers, id: g-3}
custom_fields: [{name: Country, type: CHOICE, choices: [SE]}]
content: [{name: GDPR, id: c-1}]
content_targets: [{content: GDPR, assign_to: [{group: Readers}]}]
"""
BASE = """
groups:
  - {name: Coaches, members: [anna@x.example]}
  - {name: Mentors, members: [anna@x.example]}
  - {name: Readers}
content_targets: [{content: GDPR, assign_to: [{group: Readers}]}]
"""
CHANGE = BASE.replace("{name: Coaches, members: [anna@x.example]}", "{name: Coaches, members: [bo@x.example]}")
ALL = ("--format", "json")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a snapshot, and the base's manifests in a folder beside it."""
    made = Project(tmp_path / "project", SEED)
    Project(tmp_path / "base", SEED).write(BASE)
    made.write(CHANGE)
    assert lmsconf(made.root, "snapshot", "../night.json").code == 0
    return made


def since(project: Project, *more: str) -> Ran:
    return lmsconf(project.root, "plan", "--base", "../base", "--since", "../night.json", *more)


def addresses(ran: Ran) -> dict[str, dict[str, object]]:
    assert ran.code == 0, ran.err
    changes = cast("list[dict[str, object]]", ran.document["changes"])
    return {str(change["address"]): change for change in changes}


def set_options(project: Project, options: str) -> None:
    """The same options in the project files of the change and of the base."""
    for root in (project.root, project.root.parent / "base"):
        Project(root, SEED).write_options(options)


def note(ran: Ran, code: str = "since/read") -> str:
    problems = cast("list[dict[str, str]]", ran.document["problems"])
    return next(one["message"] for one in problems if one["code"] == code)


def edit(project: Project, **values: object) -> None:
    """Change keys of the saved snapshot."""
    file = project.root.parent / "night.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_only_what_the_change_touches_is_planned(project: Project) -> None:
    """Mentors differ too, but not because of this change: the plan does not speak of them, and says so."""
    ran = since(project, *ALL)
    changes = addresses(ran)
    assert set(changes) == {"group/Coaches"}
    assert changes["group/Coaches"]["origin"] == "from this change"
    assert ran.document["partial"] is True
    assert "1 resource of the manifests that this change touches or needs, read now" in note(ran)
    assert "3 resources that it does not touch, not read and not planned" in note(ran)
    assert "just now" in note(ran)
    only = lmsconf(project.root, "plan", "--base", "../base", "--only", "group/Coaches", *ALL)
    for key in ("changes", "calls", "digest", "fingerprints", "guards", "effects", "selection"):
        if key != "effects":
            assert ran.document[key] == only.document[key], key
    theirs, mine = (
        {key: value for key, value in cast("dict[str, object]", one.document["effects"]).items() if key != "requests"}
        for one in (only, ran)
    )
    assert mine == theirs


def test_every_view_says_what_was_read(project: Project) -> None:
    """Text, markdown and page."""
    for view in ("text", "markdown", "html"):
        said = since(project, "--format", view).out.replace("\\", "")
        assert "covers only the resources that this change touches and what they need" in said, view
        assert "that it does not touch, not read and not planned" in said, view
        assert "snapshot taken just now" in said, view


def test_a_saved_plan_is_applied(project: Project) -> None:
    """Apply reads what the plan touches, and the rest of the manifests stays as it is."""
    assert since(project, "--out", "plan.json").code == 0
    shown = lmsconf(project.root, "show", "plan.json")
    assert "resources that this change touches" in shown.out
    applied = lmsconf(project.root, "apply", "plan.json", "--auto-approve", *ALL)
    assert applied.code == 0, applied.err + applied.out
    assert addresses(since(project, *ALL)) == {}
    assert set(addresses(lmsconf(project.root, "plan", *ALL))) == {"group/Mentors"}


def test_touched_resources_are_live(project: Project) -> None:
    """Members and names that somebody edited since the snapshot."""
    project.send("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": ["p-3"]})
    change = addresses(since(project, *ALL))["group/Coaches"]
    assert cast("dict[str, object]", change["before"])["members"] == ["anna@x.example", "cleo@x.example"]
    project.send("manual-groups.rename", {"groupId": "g-1"}, {"name": "Trainers"})
    assert addresses(since(project, *ALL))["group/Coaches"]["action"] == "create"


def test_apply_stops_where_what_the_plan_names_was_edited(project: Project) -> None:
    """An edit of what the plan touches, after it was made: exit 3; of anything else: done."""
    assert since(project, "--out", "plan.json").code == 0
    project.send("manual-groups.add-members", {"groupId": "g-2"}, {"userIds": ["p-3"]})
    project.send("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": ["p-3"]})
    assert lmsconf(project.root, "apply", "plan.json", "--auto-approve").code == 3
    project.send("manual-groups.remove-member", {"groupId": "g-1", "userId": "p-3"})
    assert lmsconf(project.root, "apply", "plan.json", "--auto-approve").code == 0


def test_a_snapshot_with_wrong_ids_changes_nobody(project: Project) -> None:
    """A file that gives one person the id of another: apply looks, and stops."""
    file = project.root.parent / "night.json"
    data = json.loads(file.read_text())
    data["user"] = [{**row, "id": {"p-2": "p-3", "p-3": "p-2"}.get(row["id"], row["id"])} for row in data["user"]]
    data["user"].sort(key=lambda row: row["id"])
    file.write_text(json.dumps(data))
    assert since(project, "--out", "plan.json").code == 0
    assert lmsconf(project.root, "apply", "plan.json", "--auto-approve").code == 3


def test_nothing_is_wrong_on_the_word_of_a_snapshot(project: Project) -> None:
    """A person or a content that the snapshot does not know is looked for in the workspace."""
    project.send("manual-groups.create", body={"name": "Newcomers"})
    more = CHANGE.replace("[{group: Readers}]}]", "[{group: Readers}, {group: Newcomers}]}]")
    project.write(more.replace("  - {name: Readers}", "  - {name: Readers}\n  - {name: Newcomers}"))
    ran = since(project, "--no-effects", *ALL)
    assert set(addresses(ran)) == {"group/Coaches", "content_target/GDPR -> group/Newcomers"}
    assert "nothing is taken from it" not in note(ran)
    project.write(more.replace("bo@x.example", "anna@x.example"))
    ran = since(project, "--no-effects", *ALL)
    assert set(addresses(ran)) == {"content_target/GDPR -> group/Newcomers"}
    assert "nothing is taken from it" in note(ran)


def test_no_number_about_people_rests_on_a_snapshot(project: Project) -> None:
    """Somebody deleted an audience and made it anew: the effects of its assignment are those of its new members."""
    assign = "[{group: Readers}, {group: Staff}]}]"
    project.send("manual-groups.create", body={"name": "Staff"})
    assert lmsconf(project.root, "snapshot", "../night.json").code == 0
    saved = json.loads((project.root.parent / "night.json").read_text())
    old = next(row["id"] for row in saved["group"] if row["name"] == "Staff")
    project.send("manual-groups.delete", {"groupId": old})
    created = cast("dict[str, str]", project.send("manual-groups.create", body={"name": "Staff"}))
    project.send("manual-groups.add-members", {"groupId": created["groupId"]}, {"userIds": ["p-1", "p-2"]})
    project.write(BASE.replace("[{group: Readers}]}]", assign))
    ran = since(project, *ALL)
    assert set(addresses(ran)) == {"content_target/GDPR -> group/Staff"}
    effects = cast("dict[str, dict[str, int]]", ran.document["effects"])
    assert effects["people"]["gain"] == 2
    tested = BASE.replace("  - {name: Readers}", "  - {name: Readers, members: [anna@x.example]}")
    project.write(tested + "tests: [{user: bo@x.example, has_not: GDPR}]\n")
    ran = since(project, *ALL)
    assert "nothing is taken from it" in note(ran)


def test_people_and_deletions_are_read_as_with_only(project: Project) -> None:
    """Where a snapshot does not decide, nothing is taken from it."""
    project.write(BASE + "users: [{email: anna@x.example, first_name: Anna}]\n")
    assert "nothing is taken from it" in note(since(project, *ALL))
    project.write(
        BASE.replace("  - {name: Coaches, members: [anna@x.example]}\n", "") + "absent: {groups: [Coaches]}\n"
    )
    ran = since(project, *ALL)
    assert {at: one["action"] for at, one in addresses(ran).items()} == {"group/Coaches": "delete"}


def test_a_condition_names_the_field_that_is_live(project: Project) -> None:
    """A field that somebody has made again since the snapshot has another id, and the call sends that."""
    old = project.fields()["Country"]
    project.send("custom-fields.delete", {"customFieldId": str(old["customFieldId"])})
    made = {"name": "Country", "type": "CHOICE", "choices": [{"name": "SE"}]}
    project.send("custom-fields.create", body={"name": "Other", "type": "TEXT"})
    project.send("custom-fields.create", body=made)
    project.write(BASE + "smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE]}]}]\n")
    ran = since(project, "--no-effects", *ALL)
    assert "nothing is taken from it" not in note(ran)
    live = str(project.fields()["Country"]["customFieldId"])
    assert live != old["customFieldId"]
    [call] = cast("list[dict[str, object]]", ran.document["calls"])
    assert f'"{live}"' in json.dumps(call["body"])


def test_a_creation_takes_no_name_that_is_live(project: Project) -> None:
    """The names of a kind in which something is created are live, whatever the snapshot says."""
    project.write(BASE + "smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE]}]}]\n")
    ran = since(project, "--no-effects", *ALL)
    assert addresses(ran)["smart_group/Nordics"]["action"] == "create"
    assert "nothing is taken from it" not in note(ran)
    # A lint speaks of live people, so nothing is from the snapshot.
    assert "nothing is taken from it" in note(since(project, *ALL))
    project.write(BASE.replace("  - {name: Readers}", "  - {name: Readers}\n  - {name: Fresh, members: []}"))
    project.send("manual-groups.create", body={"name": "Fresh"})
    assert addresses(since(project, *ALL)) == {}


def test_a_change_that_touches_nothing_plans_nothing(project: Project) -> None:
    """No declaration differs: no change, and no sentence about the workspace as a whole."""
    project.write("# Another comment." + BASE)
    ran = since(project, *ALL)
    assert addresses(ran) == {}
    assert ran.document["partial"] is True
    assert note(ran).startswith("0 resources of the manifests")
    said = since(project).out
    assert "The workspace matches" not in said


def test_what_is_let_go_of_is_named(project: Project) -> None:
    """Without ownership it stays; whether it is live was not read. With ownership --since is refused."""
    project.write(CHANGE.replace("  - {name: Mentors, members: [anna@x.example]}\n", ""))
    assert "group/Mentors; whether they are live was not read" in note(since(project, *ALL), "since/no-longer-declared")
    set_options(project, "ownership: {groups: ['*']}\n")
    ran = since(project)
    assert ran.code == 1
    assert "ownership" in ran.err
    assert "Without --since" in ran.err


def test_undeclared_owned_resources_stay(project: Project) -> None:
    """Ownership deletes nothing in such a plan."""
    project.send("manual-groups.create", body={"name": "By hand"})
    set_options(project, "ownership: {groups: ['*']}\n")
    assert set(addresses(since(project, *ALL))) == {"group/Coaches"}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"taken_at": "2099-01-01T00:00:00Z"}, "in the future"),
        ({"taken_at": "2001-01-01T00:00:00Z"}, "older than plans may be (7 d)"),
        ({"taken_at": "yesterday"}, "cannot be read"),
        ({"taken_at": "2026-01-01"}, "cannot be read"),
        ({"workspace": {"name": "other", "url": "sandbox:workspace.db"}}, "it is of workspace other"),
        ({"workspace": {"name": "sandbox", "url": "https://x.example"}}, "https://x.example"),
        ({"incomplete": {"group": "the listing ended early"}}, "does not contain all groups: the listing ended early"),
        ({"pseudonyms": {"salt": "x", "named": [], "note": ""}}, "it is redacted"),
    ],
)
def test_an_unfit_snapshot_is_refused(project: Project, values: Mapping[str, object], why: str) -> None:
    """Exit 1, with the reason, and no plan."""
    edit(project, **values)
    ran = since(project)
    assert ran.code == 1
    assert why in " ".join(re.sub(r"[│|]", " ", ran.err).split())
    assert ran.out == ""


def test_a_snapshot_without_a_kind_is_refused(project: Project) -> None:
    """A listing that is missing was not read."""
    file = project.root.parent / "night.json"
    data = json.loads(file.read_text())
    del data["smart_group"]
    file.write_text(json.dumps(data))
    assert since(project).code == 1


def test_the_age_is_bounded_by_the_project(project: Project) -> None:
    """`plans: {valid_for:}` holds for the snapshot, too; within it the age is told."""
    taken = datetime.now(UTC) - timedelta(hours=3)
    edit(project, taken_at=taken.strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert "3 hours ago" in note(since(project, *ALL))
    set_options(project, "plans: {valid_for: 2h}\n")
    assert since(project).code == 1


def test_changed_settings_are_refused(project: Project) -> None:
    """A setting that may change any resource, in the project file of the change: everything must be read."""
    project.write_options("guards: {deletes: {count: 1}}\n")
    assert set(addresses(since(project, *ALL))) == {"group/Coaches"}
    project.write_options("people: {unknown: skip}\n")
    ran = since(project)
    assert ran.code == 1
    assert "people.unknown differs from ../base" in ran.err


def test_a_base_with_errors_is_refused(project: Project) -> None:
    """What a change touches is not known then."""
    (project.root.parent / "base" / "manifests" / "all.yaml").write_text("groups: [{nam: x}]\n")
    ran = since(project)
    assert ran.code == 1
    assert "have errors" in ran.err


@pytest.mark.parametrize(
    "options",
    [
        ("--since", "../night.json"),
        ("--since", "../night.json", "--base", "../base", "--snapshot", "../night.json"),
        ("--since", "../night.json", "--base", "../base", "--only", "group/Coaches"),
    ],
)
def test_options_that_do_not_go_together(project: Project, options: tuple[str, ...]) -> None:
    """Exit 64."""
    assert lmsconf(project.root, "plan", *options).code == 64


def test_a_pending_change_of_what_is_needed_is_told(project: Project) -> None:
    """A change of an assignment needs its group, which is planned with it, as pending."""
    assign = "content_targets: [{content: GDPR, assign_to: [{group: Readers}, {group: Mentors}]}]"
    project.write(BASE.replace("content_targets: [{content: GDPR, assign_to: [{group: Readers}]}]", assign))
    origins = {at: one["origin"] for at, one in addresses(since(project, *ALL)).items()}
    assert origins == {
        "group/Mentors": "already pending",
        "content_target/GDPR -> group/Mentors": "from this change",
    }


def test_guards_stop_such_a_plan(project: Project) -> None:
    """A guard that trips does so on live sizes."""
    set_options(project, "guards: {removals: {count: 0}}\n")
    ran = since(project, *ALL)
    guards = cast("list[dict[str, object]]", ran.document["guards"])
    assert next(one for one in guards if one["name"] == "removals")["tripped"] is True
    assert "nothing is taken from it" in note(ran)


def test_a_renaming_by_hand_since_then_is_still_told(project: Project) -> None:
    """A creation that may be a group that came by hand since: its members are compared, as without --since."""
    project.send("manual-groups.create", body={"name": "Squad"})
    listed = cast(
        "dict[str, list[dict[str, str]]]", project.ask("manual-groups.list", None, {"skip": "0", "limit": "9"})
    )
    squad = next(row["groupId"] for row in listed["groups"] if row["name"] == "Squad")
    everybody = {"userIds": ["p-1", "p-2", "p-3"]}
    project.send("manual-groups.add-members", {"groupId": squad}, everybody)
    team = "  - {name: Team, members: [anna@x.example, bo@x.example, cleo@x.example]}\n"
    project.write(BASE.replace("  - {name: Readers}\n", "  - {name: Readers}\n" + team))
    ran = since(project, *ALL)
    assert set(addresses(ran)) == {"group/Team"}
    guards = cast("list[dict[str, object]]", ran.document["guards"])
    assert next(one for one in guards if one["name"] == "recreates")["tripped"] is True


def test_a_group_without_declared_lists_is_as_apply_reads_it(project: Project) -> None:
    """Its fingerprint is that of the same rows, so the saved plan is not stale."""
    project.write(
        BASE.replace("{name: Readers}", "{name: Lecturers, previously: [Readers]}").replace(
            "group: Readers", "group: Lecturers"
        )
    )
    ran = since(project, "--no-effects", "--out", "plan.json", *ALL)
    assert "nothing is taken from it" not in note(ran)
    assert set(addresses(ran)) == {"group/Lecturers"}
    applied = lmsconf(project.root, "apply", "plan.json", "--auto-approve")
    assert applied.code == 0, applied.err


def test_a_renamed_resource_is_not_let_go_of(project: Project) -> None:
    """Its earlier name is under `previously`, or its id is pinned: that is no resource that is no longer declared."""
    project.write(BASE.replace("{name: Mentors,", "{name: Guides, previously: [Mentors],"))
    codes = {one["code"] for one in cast("list[dict[str, str]]", since(project, *ALL).document["problems"])}
    assert "since/no-longer-declared" not in codes


def test_an_assignment_to_a_renamed_group_is_not_let_go_of(project: Project) -> None:
    """It is declared for the new name; one to another audience is no longer declared."""
    renamed = BASE.replace("{name: Readers}", "{name: Book club, previously: [Readers]}", 1)
    project.write(renamed.replace("{group: Readers}", "{group: Book club}"))
    ran = since(project, *ALL)
    assert list(addresses(ran)) == ["group/Book club"]
    codes = {one["code"] for one in cast("list[dict[str, str]]", ran.document["problems"])}
    assert "since/no-longer-declared" not in codes
    set_options(project, "ownership: {content_targets: declared_content}\n")
    assert since(project, *ALL).code == 0
    set_options(project, "")
    project.write(renamed.replace("{group: Readers}", "everyone"))
    left = note(since(project, *ALL), "since/no-longer-declared")
    assert "content_target/GDPR -> group/Readers; whether" in left


def test_a_replaced_assignment_is_not_called_left(project: Project) -> None:
    """The plan deletes it, so no note tells that this plan does not."""
    seed = SEED.replace("content: [{name: GDPR, id: c-1}]", "content: [{name: GDPR, id: c-1}, {name: GDPR 2, id: c-2}]")
    (project.root / "workspace.yaml").write_text(seed)
    (project.root / "workspace.db").unlink(missing_ok=True)
    assert lmsconf(project.root, "snapshot", "../night.json").code == 0
    project.write(
        BASE.replace("content_targets: [{content: GDPR,", "content_targets: [{content: GDPR 2,").replace(
            "assign_to: [{group: Readers}]}]",
            "assign_to: [{group: Readers}], replaces: {content: GDPR, then: remove}}]",
        )
    )
    ran = since(project, *ALL)
    assert addresses(ran)["content_target/GDPR -> group/Readers"]["action"] == "delete"
    codes = {one["code"] for one in cast("list[dict[str, str]]", ran.document["problems"])}
    assert "since/no-longer-declared" not in codes


def test_a_large_change_is_refused(project: Project) -> None:
    """More than 500 resources: everything must be read."""
    project.write("groups:\n" + "".join(f"  - {{name: G{number}}}\n" for number in range(501)))
    ran = since(project)
    assert ran.code == 1
    assert "500 at most" in ran.err


def test_undeclared_resources_are_not_counted(project: Project) -> None:
    """They were not looked at."""
    project.write(CHANGE.replace("  - {name: Readers}\n", ""))
    project.send("manual-groups.create", body={"name": "By hand"})
    assert since(project, *ALL).document["unmanaged"] == []
