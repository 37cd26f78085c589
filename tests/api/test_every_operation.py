"""The typed client and the sandbox, end to end: every operation once, each answer in the shape of the description."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from wire.second_dialect import second_dialect

from lmsconf.api import Service
from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.model.canonical_json import Json
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

from .guide_tables import EXPERIMENTS, GUIDE, guesses, relied_on, shown, tables
from .writer import TARGET, written

DEFAULT: dict[str, str | int] = {}
OTHER: dict[str, str | int] = {
    **second_dialect(),
    "manual-groups.who-can-manage": "given",
    "smart-groups.system-condition.alone": "any-answer",
    "smart-groups.system-condition.with-choices": "any-answer",
    "content-targets.time-zone": "Asia/Kolkata",
    "users.list.match-count": "all",
    "content-targets.default-start": "now",
    "content-targets.time-precision": "minute",
}
"""Every name and every behaviour other than assumed, but for one that forbids what nearly every test does."""


class RecordingClient(Client):
    """A client that looks at every answer as it comes, and keeps what was called."""

    def __init__(self, spec: ApiSpec, url: str = "http://sandbox", transport: Sandbox | None = None) -> None:
        super().__init__(url, "sandbox", spec=spec, transport=transport)
        self.called: set[str] = set()

    def call(self, operation: str, **given: Any) -> Json:
        answer = super().call(operation, **given)
        expected = self.spec[operation].success
        if expected is not None:
            jsonschema.Draft202012Validator(expected).validate(answer)
        self.called.add(operation)
        return answer


@pytest.fixture(params=[DEFAULT, OTHER], ids=["assumed names", "all names otherwise"])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A service on a workspace with one content item, in two dialects."""
    spec = ApiSpec(request.param)
    sandbox = Sandbox(spec=spec)
    with sandbox.store.write_transaction() as repository:
        fill_workspace(repository, {"content": [{"name": "Fire safety", "id": "c-1"}]}, source="here", spec=spec)
    yield Service(RecordingClient(spec, transport=sandbox))
    sandbox.close_workspace()


def test_every_operation_in_one_life(service: Service) -> None:
    """A person's and a group's whole life uses all 60 operations, the same in the assumed names and in others."""
    anna, bo = _people(service)
    field = _fields(service, anna)
    _rights(service, bo)
    _groups(service, anna, bo)
    _smart_groups(service, field, anna, bo)
    _learning(service, anna)
    service.custom_fields.replace(field, "Unit", "CHOICE", choices=[{"name": "East"}])
    service.custom_fields.delete(field)
    service.users.delete(bo)
    assert [user["userId"] for user in service.users.list_all()] == [anna]
    assert isinstance(service.client, RecordingClient)
    assert service.client.called == service.client.spec.operations.keys()


def _people(service: Service) -> tuple[str, str]:
    """Two people, made and changed. Gives their ids."""
    users = service.users
    anna = users.create("anna@x.example", first_name="Anna", last_name="Berg", language="sv", send_welcome_email=False)
    bo = users.create("bo@x.example")
    assert (anna["newUser"], users.create("bo@x.example")) == (True, {"userId": bo["userId"], "newUser": False})
    id = bo["userId"]
    users.update_email(id, "bo.ek@x.example")
    users.update_fullname(id, first_name="Bo")
    users.update_language(id, "no")
    users.update_metadata(id, {"cost centre": "7"})
    users.set_custom_archived_date(id, 4_102_444_800_000)
    assert users.get(id)["customArchiveDate"] == 4_102_444_800_000
    users.set_custom_archived_date(id, None)
    users.archive(id)
    users.unarchive(id)
    assert "customArchiveDate" not in users.get(id)
    assert users.set_order_details(id, phone="1", address={"zip": "2"})["address"] == {"zip": "2"}
    assert users.disable_payment(id, True)["disablePayment"] is True
    assert users.order_details(id)["phone"] == "1"
    assert [row["userId"] for row in users.search_all(text="bo", metadata={"cost centre": "7"})] == [id]
    assert [row["userId"] for row in users.extended_info_all()] == [anna["userId"], id]
    assert "secret" in service.auth.create(user_id=id, redirect_uri="https://a.example")["preSignedInLink"]
    return anna["userId"], id


def _fields(service: Service, anna: str) -> str:
    """A field, answered by Anna. Gives its id."""
    field = service.custom_fields.create("Unit", "CHOICE", choices=[{"name": "North"}, {"name": "South"}])
    assert (
        service.custom_fields.list()["customFields"] == service.users.custom_field_choice()["customFields"] == [field]
    )
    id, choice = field["customFieldId"], field["choices"][0]["choiceId"]
    for answers in ({id: choice}, {id: None}, {id: choice}):
        service.users.update_custom_field_choice(anna, choice=answers)
        assert ("Unit" in service.users.get(anna)["customFields"]) is (answers[id] is not None)
    return field["customFieldId"]


def _rights(service: Service, bo: str) -> None:
    """Rights given and taken."""
    access = service.user_access
    for has, change in ((True, "ADD"), (False, "REMOVE")):
        access.set(bo, change, "analyse")
        access.make_admin(bo, has)
        access.make_manager(bo, has)
        found = service.users.get(bo)
        assert (found["admin"], found["manager"], "analyse" in found["applicationIds"]) == (has, has, has)


def _groups(service: Service, anna: str, bo: str) -> None:
    """A manual group from its making to its end, with an assignment."""
    groups, targets = service.groups, service.content_targets
    id = groups.create("Coaches", member_ids=[anna], manager_ids=[bo])["groupId"]
    groups.rename(id, "Trainers")
    groups.add_members(id, [bo])
    groups.add_managers(id, [anna])
    groups.remove_member(id, anna)
    groups.remove_manager(id, bo)
    assert (groups.members(id)["userIds"], groups.managers(id)["userIds"]) == ([bo], [anna])
    assert [row["name"] for row in groups.list_all()] == ["Trainers"]
    targets.create("c-1", target_id=id, mandatory=True)
    (target,) = targets.list("c-1")["targets"]
    assert target["mandatory"] is True
    assert [item["courseId"] for item in service.content.list_all(group_ids=[id])] == ["c-1"]
    targets.delete(target["targetId"], target["targetType"], target["contentId"])
    assert targets.list("c-1")["targets"] == []
    targets.create("c-1", target_id="EVERYONE", start_time="2026-01-05T08:00:00Z", finish_time=None)
    (target,) = targets.list("c-1")["targets"]
    assert (target["targetId"], "startTime" in target, "finishTime" in target) == ("EVERYONE", True, False)
    assert [item["visibleForGroups"] for item in service.content.list_all(group_ids=["EVERYONE"])] == [["EVERYONE"]]
    targets.delete("EVERYONE", target["targetType"], "c-1")
    groups.delete(id)


def _smart_groups(service: Service, field: str, anna: str, bo: str) -> None:
    """A smart group from its making to its end."""
    groups = service.smart_groups
    id = groups.create("Units", [{"customFieldId": field, "systemCondition": "IS_ANY"}], managers=[bo])["smartGroupId"]
    groups.rename(id, "All units")
    groups.replace_conditions(id, [{"customFieldId": field, "systemCondition": "IS_ANY"}])
    groups.add_managers(id, [anna])
    groups.remove_manager(id, bo)
    assert groups.managers(id)["userIds"] == [anna]
    assert groups.get(id, include_members=True)["members"] == [anna]
    assert [row["name"] for row in groups.list_all(filter="UNIT")] == ["All units"]
    groups.delete(id)
    groups.delete(id)


def _learning(service: Service, anna: str) -> None:
    """A certificate, made and removed, and what there is to see of it."""
    made = service.certificates.start(anna, "c-1", "COURSE", issued_at=1_700_000_000_000, expires_at=4_102_444_800_000)
    assert service.certificates.status(made["progressId"], service_calling_user_id=anna)["progressId"]
    service.certificates.invite()
    (held,) = service.user_certificates.of_user(anna)["certificates"]
    assert (held["issued"], held["expiresAt"]) == (1_700_000_000_000, 4_102_444_800_000)
    assert service.user_certificates.list(user_ids=[anna])["usersWithCertificates"]
    (flat,) = service.user_certificates.list(user_ids=[anna], flat_view=True)["certificates"]
    assert flat["contentId"] == service.content.get("c-1")["courseId"] == "c-1"
    assert [row["userId"] for row in service.analytics.results_all(content_name="fire")] == [anna]
    assert service.analytics.statistics(content_ids=["c-1"])["statistics"]["approvedCount"] == 1
    assert service.analytics.event_logs("c-1", anna)
    assert service.content.meetups() == {"meetups": []}
    service.certificates.delete(anna, "c-1")
    assert service.user_certificates.of_user(anna)["certificates"] == []


# The typed client is what its writer makes of the description, and holds every operation.


def test_the_typed_client_is_up_to_date() -> None:
    """Every file of `lmsconf/client/api` is what `python -m tests.api.writer` would write."""
    there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py")}
    assert there == written()


# What the guide says of the API is so: its tables are counted, its script is short and runs.


TABLES = tables()


@pytest.mark.parametrize(("page", "head"), TABLES)
def test_the_tables_of_the_guide_are_current(page: str, head: str) -> None:
    """They are what `python -m tests.api.guide_tables` would write."""
    assert shown((GUIDE / f"{page}.md").read_text(encoding="utf-8"), head) == TABLES[page, head]


def test_every_point_has_an_experiment() -> None:
    """The probe tries all that manifests rest on; and what a wrong guess would do is said, and the question."""
    assert EXPERIMENTS.keys() == set(relied_on()) == guesses().keys()
    assert all(key in load_api_description().behaviours or guesses()[key]["question"] for key in relied_on())
