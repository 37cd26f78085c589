"""The rules, defaults and limits that the specification states, each with the test of this folder that shows it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.handlers import CHOICES
from sandbox.unspecified import chosen

DESCRIPTION = Path(__file__).parent.parent.parent / "schemas" / "openapi.json"

RULES = {
    "Every endpoint needs the bearer credential": "test_a_credential_is_required",
    "Up to three API keys are active at a time": "test_three_api_keys_at_most",
    "POST /auth: userId takes precedence over email": "test_the_user_id_takes_precedence",
    "POST /auth: redirectUri is optional, by default empty": "test_a_link_leads_on",
    "POST /auth: the link expires": "test_a_link_signs_a_user_in",
    "GET /users: filter, by default all": "test_users_are_searched_by_name_and_mail",
    "GET /users, /users/extended-info, /groups, /smart-groups: skip 0, limit 100": "test_lists_begin_at_0_with_100",
    "GET /users: matchCount and the page that was asked for": "test_users_are_paged_in_the_order_they_came",
    "GET /users: custom fields by name": "test_answers_are_keyed_by_field_name",
    "GET /users/extended-info: groups, managers' groups, applications": "test_extended_info_tells_groups_and_rights",
    "GET /users/{userId}: one user": "test_one_user",
    "POST /users: userId and newUser": "test_an_account_is_created",
    "POST /users: newUser is false for an account that exists": "test_an_account_that_exists_is_not_created_again",
    "Every user needs an email-shaped identifier": "test_an_email_is_shaped_like_one",
    "DELETE /users/{userId}": "test_an_account_is_deleted_with_all_that_is_about_it",
    "archive sets archivedAt, unarchive makes active": "test_an_account_is_archived_and_comes_back",
    "archive of an admin is 400": "test_an_admin_is_not_archived",
    "An account is archived at its custom archive date": "test_an_account_is_archived_at_its_date",
    "null clears the custom archive date": "test_an_archive_date_is_cleared",
    "Admins and managers have no custom archive date": "test_admins_and_managers_have_no_archive_date",
    "POST /users/search: text matches name or email": "test_a_search_is_for_a_part_of_name_or_email",
    "POST /users/search: metadata pairs": "test_a_search_is_for_metadata",
    "POST /users/search: pages": "test_a_search_is_paged",
    "POST /users/search: includeGroups": "test_a_search_tells_groups_only_when_asked",
    "GET /users/custom-field-choice is what GET /custom-fields is": "test_the_deprecated_list_of_fields",
    "update-custom-field-choice: values depend on the definitions": "test_an_answer_fits_its_field",
    "update-email validates the format": "test_an_email_is_changed",
    "update-fullname: either or both": "test_a_name_is_changed_in_part",
    "update-language: a lowercase code": "test_a_language_is_changed",
    "update-metadata replaces or updates": "test_metadata_is_replaced_or_merged",
    "Metadata maps strings to strings": "test_metadata_holds_texts",
    "order-details are stored and answered": "test_order_details_are_stored",
    "disable-payment answers the order details": "test_payment_is_disabled_and_enabled",
    "access: ADD and REMOVE of five applications": "test_applications_are_given_and_taken",
    "access: no other action, no other application": "test_other_actions_and_applications",
    "make-admin and make-manager set the flag to endow": "test_rights_are_granted_and_revoked",
    "GET /users/certificates: grouped by user unless flatView": "test_certificates_by_user",
    "GET /users/certificates: flatView": "test_certificates_in_a_flat_view",
    "GET /users/{userId}/certificates": "test_one_users_certificates",
    "participation: required body": "test_what_a_generation_needs",
    "participation: dates are validated": "test_the_dates_of_a_certificate_are_checked",
    "participation: the account is verified": "test_account_and_content_are_checked",
    "participation: a progress record is started": "test_a_generation_issues_a_certificate",
    "invite has no effect": "test_an_invitation_does_nothing",
    "A certificate is removed without naming the content's type": "test_a_certificate_is_removed",
    "status: the calling user's header is optional": "test_anybody_may_ask_for_the_status",
    "Manual groups: created with members and managers": "test_a_group_begins_with_its_people",
    "Manual groups: pages of the list": "test_group_names_may_repeat_and_are_paged",
    "Manual groups: rename": "test_renaming_keeps_everything_else",
    "Manual groups: delete": "test_a_deleted_group_leaves_nothing",
    "Manual groups: people are added": "test_adding_is_a_union",
    "Manual groups: people are removed": "test_removing_people",
    "Smart groups: filter is a case-insensitive part of the name": "test_smart_groups_are_searched_by_name",
    "Smart groups: rename": "test_smart_group_is_renamed",
    "Smart groups: managers are added": "test_adding_is_a_union",
    "Smart groups: managers are removed": "test_removing_people",
    "Smart groups: members only with includeMembers": "test_a_smart_group_in_full",
    "Smart groups: conditions are combined with AND": "test_conditions_are_joined_by_and_choices_by_or",
    "Smart groups: at least one condition, valid for its field": "test_conditions_fit_the_fields",
    "Smart groups: replacing discards all conditions and recalculates": "test_replacing_conditions_discards_all_before",
    "Smart groups: members follow from answers": "test_members_follow_from_answers",
    "Smart groups: DELETE is idempotent": "test_deleting_a_smart_group_is_idempotent",
    "Custom fields: ten at most": "test_ten_fields_at_most",
    "Custom fields: POST answers the created field": "test_post_returns_the_created_field",
    "Custom fields: choices are required for CHOICE and MULTI_SELECT": "test_choices_are_required",
    "Custom fields: existing choices carry choiceId": "test_put_keeps_and_makes_choices",
    "Custom fields: DELETE": "test_delete_takes_the_answers",
    "Custom fields: 403 while in use": "test_in_use_while_a_condition_names_the_field",
    "GET /content/all: skip 0, limit 100": "test_a_catalog_page_holds_at_most_a_hundred",
    "GET /content/all: limit is capped to 100": "test_a_catalog_page_holds_at_most_a_hundred",
    "GET /content/all: onlySellable": "test_only_what_is_for_sale",
    "GET /content/all: groupIds[]": "test_content_of_some_groups",
    "GET /content/{contentId}": "test_one_content_item",
    "GET /content/meetups: by default for EVERYONE, last updated first": "test_meetups_of_everyone",
    "GET /content/meetups: the first 100 content ids": "test_at_most_a_hundred_meetups",
    "GET /content/targets: contentId is required": "test_targets_are_listed_for_a_content",
    "POST /content/targets: userId or targetId": "test_wrong_assignments_are_refused",
    "DELETE /content/targets: access is taken away": "test_an_assignment_is_taken_away",
    "DELETE /content/targets: all three are required": "test_a_deletion_names_all_three",
    "Analytics: every filter, for results and statistics": "test_filters",
    "Analytics: options page and order results": "test_results_are_ordered",
    "Analytics: statistics take no options": "test_statistics_count_states",
    "Event logs: most recent first": "test_the_event_log_has_the_newest_first",
}
"""Rule → test. A rule without a test, and a test that is not there, are defects."""
STATED = {
    "auth.create redirectUri default": "test_a_link_leads_on",
    "auth.create body anyOf": "test_the_user_id_takes_precedence",
    "users.list filter default": "test_users_are_searched_by_name_and_mail",
    "users.extended-info filter default": "test_users_are_searched_by_name_and_mail",
    "smart-groups.list filter default": "test_smart_groups_are_searched_by_name",
    "content.list skip default": "test_a_catalog_page_holds_at_most_a_hundred",
    "content.list limit default": "test_a_catalog_page_holds_at_most_a_hundred",
    "content.list limit x-cap": "test_a_catalog_page_holds_at_most_a_hundred",
    "content.list onlySellable default": "test_only_what_is_for_sale",
    "content.meetups groupIds[[][]] default": "test_meetups_of_everyone",
    "content-targets.list contentId required": "test_targets_are_listed_for_a_content",
    "content-targets.create body oneOf": "test_wrong_assignments_are_refused",
    "users.search body.skip default": "test_a_search_begins_at_0_with_100",
    "users.search body.limit default": "test_a_search_begins_at_0_with_100",
    "users.search body.includeGroups default": "test_a_search_tells_groups_only_when_asked",
    "users.custom-field-choice deprecated": "test_the_deprecated_list_of_fields",
    "users.archive 400": "test_an_admin_is_not_archived",
    "users.create body.language pattern": "test_a_language_is_a_lowercase_code",
    "users.update-language body.language pattern": "test_a_language_is_a_lowercase_code",
    "user-access.set action enum": "test_other_actions_and_applications",
    "user-access.set body.applicationId enum": "test_other_actions_and_applications",
    "smart-groups.get includeMembers default": "test_a_smart_group_in_full",
    "smart-groups.* body.conditions*": "test_conditions_fit_the_fields",
    "custom-fields.* body.type enum": "test_a_field_is_of_one_of_three_types",
    "custom-fields.* body.choices[[][]] required": "test_put_refuses_wrong_choice_ids",
    "custom-fields.* 403": "test_in_use_while_a_condition_names_the_field",
    "analytics.* body.attributes[[][]] required": "test_filters_fit_the_description",
    "analytics.* body.* enum": "test_filters_fit_the_description",
    "* skip default": "test_lists_begin_at_0_with_100",
    "* limit default": "test_lists_begin_at_0_with_100",
    "* body required": "test_what_is_required_is_required",
}
"""What the description states of an operation, as a shell pattern → the test that the sandbox holds it. First fit."""


def stated() -> Iterator[str]:
    """Everything that the description demands, limits or fills in, but for the range of whole numbers."""
    document = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    for methods in document["paths"].values():
        for one in methods.values():
            name = one["operationId"]
            yield from (f"{name} deprecated" for _ in range(bool(one.get("deprecated"))))
            yield from (f"{name} {status}" for status in one["responses"] if status.startswith("4"))
            for parameter in one.get("parameters", []):
                told = _followed(parameter, document)
                if told["in"] == "query" and told.get("required"):
                    yield f"{name} {told['name']} required"
                yield from (f"{name} {word}" for word in _demands(told["schema"], told["name"], document))
            if "requestBody" in one:
                schema = _followed(one["requestBody"], document)["content"]["application/json"]["schema"]
                yield from (f"{name} {word}" for word in _demands(schema, "body", document))


def _followed(value: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        value = reduce(lambda at, key: at[key], value["$ref"].split("/")[1:], document)
    return value


def _demands(schema: dict[str, Any], at: str, document: dict[str, Any]) -> Iterator[str]:
    schema = _followed(schema, document)
    words = ("default", "enum", "minItems", "maxItems", "pattern", "x-cap", "oneOf", "anyOf", "required")
    yield from (f"{at} {word}" for word in words if word in schema)
    for key, part in schema.get("properties", {}).items():
        yield from _demands(part, f"{at}.{key}", document)
    if "items" in schema:
        yield from _demands(schema["items"], f"{at}[]", document)


def test_what_the_description_states_has_its_test():
    """Every default, limit, list of values, required key and documented refusal of any operation is in a table."""
    fits = {fact: next((one for one in STATED if fnmatchcase(fact, one)), None) for fact in stated()}
    assert [fact for fact, found in fits.items() if found is None] == []
    assert STATED.keys() == set(fits.values())
    assert len(fits) > 60


NEEDED = [
    (operation, key)
    for operation in ApiSpec.default().operations.values()
    for key in ((operation.body or {}).get("required", []))
]


@pytest.mark.parametrize(("operation", "key"), NEEDED, ids=lambda value: getattr(value, "id", value))
def test_what_is_required_is_required(api, operation, key):
    """A body without a key that it needs is a 400 that names the key, whatever else is asked for."""
    path = operation.path.replace("{action}", "ADD")
    for name in operation.path_schemas:
        path = path.replace(f"{{{name}}}", "u-1")
    body = {other: None for other in operation.body["required"] if other != key}
    if "oneOf" in operation.body:
        body["targetId"] = "g-1"
    status, message = api.no(operation.method, path, body)
    assert status == 400
    assert f"'{key}'" in message


def test_a_search_begins_at_0_with_100(open_workspace):
    """skip is 0 and limit 100 where a search leaves them out."""
    more = {"people": [{"email": f"p{number}@acme.example"} for number in range(101)]}
    more |= {"groups": [], "content_targets": []}
    api = open_workspace({"paging.limit": 1000}, more=more)
    everybody = api.ok("POST", "/users/search", {"skip": 0, "limit": 200})["users"]
    found = api.ok("POST", "/users/search", {})
    assert len(everybody) > 100
    assert found["users"] == everybody[:100]


@pytest.mark.parametrize("type", ["text", "NUMBER", "", 7, None])
def test_a_field_is_of_one_of_three_types(api, type):
    """CHOICE, TEXT and MULTI_SELECT are all there are."""
    before = api.ok("GET", "/custom-fields")
    assert api.no("POST", "/custom-fields", {"name": "New", "type": type})[0] == 400
    assert api.ok("GET", "/custom-fields") == before


def test_each_rule_has_its_test():
    """Every test that the tables name is in this folder, and says in its docstring what it shows."""
    told = {
        node.name: ast.get_docstring(node)
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert {*RULES.values(), *STATED.values()} <= told.keys()
    assert all(told.values())


# What is left of a smart group when a field or choice goes that it names, and of answers to fields of one name.


NEVER = {"custom-fields.in-use": "never"}


def groups_of(api, user: str) -> list[object]:
    """The ids of the groups that somebody is in."""
    people = api.ok("GET", "/users/extended-info")["users"]
    return [group["groupId"] for person in people if person["userId"] == user for group in person["memberOfGroups"]]


@chosen("smart-groups.left")
def test_a_field_takes_its_conditions_along(open_workspace):
    """Where a field in use may go, the conditions on other fields still decide, in every view of the members."""
    api = open_workspace(NEVER)
    both = [{"customFieldId": "f-1", "choiceIds": ["ch-2"]}, {"customFieldId": "f-2", "choiceIds": ["ch-5"]}]
    group = api.ok("POST", "/smart-groups", {"name": "Both", "conditions": both})["smartGroupId"]
    assert api.ok("GET", f"/smart-groups/{group}", includeMembers=True)["members"] == ["u-3"]
    api.ok("DELETE", "/custom-fields/f-1")
    shown = api.ok("GET", f"/smart-groups/{group}", includeMembers=True)
    assert (shown["conditions"], shown["members"]) == (both[1:], ["u-1", "u-3"])
    assert [group in groups_of(api, user) for user in ("u-1", "u-2", "u-3")] == [True, False, True]
    api.ok("DELETE", "/custom-fields/f-2")
    shown = api.ok("GET", f"/smart-groups/{group}", includeMembers=True)
    assert (shown["conditions"], shown["members"], groups_of(api, "u-3")) == ([], [], [])


@chosen("smart-groups.left")
def test_a_condition_is_what_it_shows(open_workspace):
    """IS_ANY beside choices means those choices; when the last of them has gone it means any answer."""
    api = open_workspace(NEVER)
    conditions = [{"customFieldId": "f-1", "choiceIds": ["ch-2"], "systemCondition": "IS_ANY"}]
    group = api.ok("POST", "/smart-groups", {"name": "Engineers", "conditions": conditions})["smartGroupId"]
    assert api.ok("GET", f"/smart-groups/{group}", includeMembers=True)["members"] == ["u-3"]
    kept = [{"choiceId": "ch-1", "name": "Sales"}, {"choiceId": "ch-3", "name": "Legal"}]
    api.ok("PUT", "/custom-fields/f-1", {"name": "Department", "type": "CHOICE", "choices": kept})
    shown = api.ok("GET", f"/smart-groups/{group}", includeMembers=True)
    assert shown["conditions"] == [{**conditions[0], "choiceIds": []}]
    assert shown["members"] == ["u-1", "u-2"]


@chosen("users.answers.twins")
def test_of_two_fields_with_one_name_the_younger_is_shown(api):
    """A person's answers are keyed by name, so of two fields with one name the younger's is shown, of whatever type."""
    made = api.ok("POST", "/custom-fields", {"name": "Badge", "type": "MULTI_SELECT", "choices": [{"name": "Gold"}]})
    (gold,) = made["choices"]
    api.ok("POST", "/users/u-1/update-custom-field-choice", {made["id"]: [gold["choiceId"]]})
    assert api.ok("GET", "/users/u-1")["customFields"]["Badge"] == {"choices": [gold]}
    api.ok("DELETE", f"/custom-fields/{made['id']}")
    assert api.ok("GET", "/users/u-1")["customFields"]["Badge"] == {"text": "B-1"}


# What was chosen where the specification is silent is listed, and each choice has a test that shows it.


def shown() -> set[str]:
    """The names that tests of this folder are marked with."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = [one for one in node.decorator_list if isinstance(one, ast.Call)]
                names = [one.args for one in marks if isinstance(one.func, ast.Name) and one.func.id == "chosen"]
                found |= {ast.literal_eval(name) for some in names for name in some}
    return found


def test_each_choice_has_a_test():
    """Every choice is shown by a test, and every test that shows one names one that is listed."""
    assert shown() == CHOICES.keys()


def test_choices_are_sentences():
    """A choice is told in a sentence, each in its own."""
    assert all(text[0].isupper() and text.endswith(".") for text in CHOICES.values())
    assert len(set(CHOICES.values())) == len(CHOICES)
