"""Calls that a service accepts without the planned effect: what is there instead, and the value that explains it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

from .conftest import Open
from .served_project import BO, PROJECT, ServedProject

ANSWERS = "users.update-custom-field-choice"
MORE: Mapping[str, object] = {
    "custom_fields": [
        {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]},
        {"name": "Badge", "type": "TEXT", "description": "Old"},
        {"name": "Desk", "type": "TEXT"},
    ],
    "people": [
        {"email": "anna.berg@acme.example", "admin": True},
        {"email": BO, "answers": {"Department": "Sales", "Desk": "2"}, "metadata": {"cost": "1"}},
        *({"email": f"p{number}@acme.example"} for number in range(5)),
    ],
    "groups": [{"name": "Coaches", "members": [BO], "managers": ["anna.berg@acme.example"]}],
    "content_targets": [{"content": "GDPR basics", "assign_to": ["everyone"], "visible_from": "2026-01-05T08:00:00Z"}],
}
Change = Callable[[str, str, dict[str, Any]], dict[str, Any] | None]
"""(method, path, body) → the body that the service goes by; None: it goes by nothing, and says that it did."""


class Own(Sandbox):
    """A service that goes by another body than it was sent."""

    change: ClassVar[Change] = staticmethod(lambda method, path, body: body)

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method in ("GET", "DELETE") or not body:
            return super().answer(method, path, query, headers, body)
        taken = self.change(method, path, json.loads(body))
        if taken is None:
            return json_response(200, {})
        return super().answer(method, path, query, headers, json.dumps(taken).encode())


def without(ending: str, *names: str) -> Change:
    """The service does not know these parts of the body of requests whose path ends so."""

    def change(method: str, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if not path.endswith(ending):
            return body
        rest = {name: value for name, value in body.items() if name not in names}
        return rest or None

    return change


def in_full_minutes(method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The service cuts the seconds off the end of a window."""
    return {name: str(value).replace(":59Z", ":00Z") if name == "finishTime" else value for name, value in body.items()}


def unless_there(method: str, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The service leaves an assignment to everyone as it is."""
    return None if body.get("targetId") == "EVERYONE" else body


GROUP = "groups: [{name: Coaches, members: {include: [p0@acme.example]}}]"
WHOLE = f"groups: [{{name: Coaches, members: [{BO}, p0@acme.example]}}]"
EVERYONE = "content_targets: [{content: GDPR basics, assign_to: [{everyone: true, MORE}]}]"
NEW = "content_targets: [{content: Fire safety, assign_to: [{group: Coaches, MORE}]}]"
VALUES: list[tuple[Mapping[str, str], Change | None, str, str, Mapping[str, str]]] = [
    (
        {"manual-groups.add.mode": "replace"},
        None,
        WHOLE,
        f"members lack {BO} (the list now holds only the 1 person who was added: the service replaces)",
        {"manual-groups.add.mode": "replace"},
    ),
    (
        {f"{ANSWERS}.omitted": "clear"},
        None,
        f'users: [{{email: {BO}, answers: {{Desk: "3", Department: Sales}}}}]',
        'answers.Department is (none), not "Sales" (the service clears the answers that a call omits)',
        {f"{ANSWERS}.omitted": "clear"},
    ),
    (
        {},
        in_full_minutes,
        NEW.replace("MORE", "visible_until: 2035-06-30"),
        'visible_until is "2035-06-30T23:59:00+00:00", not "2035-06-30T23:59:59+00:00" (the service cuts seconds off)',
        {"content-targets.time-precision": "minute"},
    ),
    (
        {},
        unless_there,
        EVERYONE.replace("MORE", "mandatory: true, visible_from: 2026-01-05T08:00:00Z"),
        "mandatory is false, not true (an assignment that is there stays as it is)",
        {"content-targets.on-existing": "recreate"},
    ),
    (
        {},
        lambda method, path, body: {**body, "description": "Old"} if method == "PUT" else body,
        "custom_fields: [{name: Badge, description: null}]",
        'description is "Old", not (none)',
        {"custom-fields.clear-description": '"null"'},
    ),
    (
        {"users.update-metadata.mode": "merge"},
        None,
        f"users: [{{email: {BO}, metadata: {{cost: null}}}}]",
        'metadata.cost is "1", not (none) (the service keeps what a call omits)',
        {"users.update-metadata.mode": "merge"},
    ),
]
"""The service's dialect, what it goes by, a manifest, what is said of what is there, and the lines to paste."""
KEYS: list[tuple[Change, str, str, list[str]]] = [
    (
        without("/members", "userIds"),
        GROUP,
        "members lack p0@acme.example (nobody was added)",
        ["manual-groups.add-members.userIds (now userIds)"],
    ),
    (
        without("/managers", "userIds"),
        GROUP.replace("members", "managers"),
        "managers lack p0@acme.example (nobody was added, as where managers need the right)",
        ["manual-groups.add-managers.userIds (now userIds)", "manual-groups.who-can-manage (now anybody)"],
    ),
    (
        without("/users", "firstName"),
        "users: [{email: nia@acme.example, first_name: Nia, last_name: Ny, language: sv}]",
        'first_name is "", not "Nia"',
        ["users.create.firstName (now firstName)"],
    ),
    (
        without("/targets", "mandatory"),
        NEW.replace("MORE", "mandatory: true"),
        "mandatory is false, not true",
        ["content-targets.create.mandatory (now mandatory)"],
    ),
    (
        without("/targets", "startTime"),
        NEW.replace("MORE", "visible_from: 2031-01-05"),
        'visible_from is (none), not "2031-01-05T00:00:00+00:00"',
        ["content-targets.create.startTime (now startTime)"],
    ),
    (
        lambda method, path, body: {**body, "startTime": "2026-01-05T08:00:00Z"} if "contentId" in body else body,
        EVERYONE.replace("MORE", "mandatory: true, visible_from: null"),
        'visible_from is "2026-01-05T08:00:00+00:00", not (none) (null does not open it; omit or empty may)',
        ["content-targets.clear-time (now null)"],
    ),
    (
        lambda method, path, body: None if path.endswith("/set-custom-archived-date") else body,
        f"users: [{{email: {BO}, custom_archive_date: 2030-01-01}}]",
        'custom_archive_date is (none), not "2030-01-01T00:00:00+00:00"',
        ["users.set-custom-archived-date.date (now date)"],
    ),
    (
        lambda method, path, body: None if path.endswith("-choice") else body,
        f"users: [{{email: {BO}, answers: {{Department: Engineering}}}}]",
        'answers.Department is "Sales", not "Engineering"',
        [f"{ANSWERS}.value (now id)", f"{ANSWERS}.value-text (now text)"],
    ),
    (
        lambda method, path, body: None if path.endswith("-choice") else body,
        f"users: [{{email: {BO}, answers: {{Department: null}}}}]",
        'answers.Department is "Sales", not (none)',
        [f"{ANSWERS}.clear-choice (now empty)", f"{ANSWERS}.clear-text (now empty)"],
    ),
    (
        lambda method, path, body: None if path.endswith("/rename") else body,
        "groups: [{name: Trainers, previously: [Coaches]}]",
        'name is "Coaches", not "Trainers"',
        ["manual-groups.rename.name (now name)"],
    ),
    (
        lambda method, path, body: None if path.endswith("/update-fullname") else body,
        f"users: [{{email: {BO}, first_name: Bosse}}]",
        'first_name is "", not "Bosse"',
        [],
    ),
]
"""What a service goes by, a manifest, what is said of what is there, and the keys to look at."""


def stating_all(
    open_clinic: Open, dialect: Mapping[str, str], change: Change | None, manifest: str
) -> tuple[ServedProject, str]:
    """A project that states every key as it is assumed, and what its apply says."""
    made = Sandbox if change is None else type("Drawn", (Own,), {"change": staticmethod(change)})
    clinic = open_clinic(dialect, MORE, made=made)
    default, known = ApiSpec.default(), load_api_description()
    stated = {key: default.behaviour(key) for key in (*known.behaviours, *known.names)}
    options = "timezone: UTC\nguards: off\npeople: {create: true}\n"
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in stated.items())
    (clinic.folder / "lmsconf.yaml").write_text(f"{PROJECT}{options}dialect:\n{lines}", encoding="utf-8")
    (clinic.folder / "manifests" / "all.yaml").write_text(manifest, encoding="utf-8")
    code, out = clinic.run("apply", "--auto-approve")
    assert code == 6, out + clinic.err
    return clinic, out


@pytest.mark.sampled
@pytest.mark.parametrize(("dialect", "change", "manifest", "said", "values"), VALUES)
def test_the_report_says_what_is_there_and_what_to_set(
    open_clinic: Open,
    dialect: Mapping[str, str],
    change: Change | None,
    manifest: str,
    said: str,
    values: Mapping[str, str],
) -> None:
    """Though the project states every key: the value that explains what is read back, as lines to paste."""
    _, out = stating_all(open_clinic, dialect, change, manifest)
    assert f"the service accepted the calls, but it is still not as planned: {said} [apply/no-effect]" in out
    lines = "".join(f"      {key}: {value}\n" for key, value in values.items())
    assert f"  Set in the project file, and apply again:\n    dialect:\n{lines}" in out


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize(("change", "manifest", "said", "keys"), KEYS)
def test_the_report_says_what_is_there_and_where_to_look(
    open_clinic: Open, change: Change, manifest: str, said: str, keys: list[str]
) -> None:
    """Where several values would explain it, the keys of what is not as planned are named, and no others."""
    _, out = stating_all(open_clinic, {}, change, manifest)
    assert f"but it is still not as planned: {said} [apply/no-effect]" in out
    look = f"Check the dialect keys {', '.join(keys)}, or find them out with `lmsconf doctor --probe`."
    assert (look if keys else "Plan again to see what remains.") in out
