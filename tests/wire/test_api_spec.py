"""ApiSpec: routes, paths and bodies in the words of a project's dialect."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.errors import Problem, ProblemsFound
from lmsconf.model.address import Address, Ref

SPEC = ApiSpec.default()
CHOSEN = {"action": "REMOVE", "endow": "true"}
"""Path parameters that take no other values."""


def problem(dialect: dict[str, object]) -> Problem:
    """The one problem that a dialect has."""
    with pytest.raises(ProblemsFound) as caught:
        ApiSpec(dialect)
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize("operation", SPEC.operations.values(), ids=lambda operation: operation.id)
def test_a_filled_path_leads_back(operation: Operation) -> None:
    """Whatever characters ids hold, a request is routed to its own operation with the same ids."""
    for value in ("u-1", "a/b", "a b?c#d%2F", "..a", "é😀", "{groupId}", "extended-info.", "+&=;"):
        path = {name: CHOSEN.get(name, value) for name in operation.path_parameter_names}
        found = SPEC.match_route(operation.method, operation.fill_path(path))
        assert found is not None
        assert (found[0].id, found[1]) == (operation.id, path)


@given(st.text(min_size=1))
def test_a_segment_stays_a_segment(value: str) -> None:
    """An id is either refused or stands in the path as exactly one segment that decodes to it."""
    try:
        filled = SPEC["users.get"].fill_path({"userId": value})
    except ValueError:
        return
    assert filled.startswith("/users/")
    assert "/" not in filled[7:]
    assert unquote(filled[7:]) == value
    assert filled[7:] not in (".", "..")
    assert filled.isascii()


@pytest.mark.parametrize("value", ["", ".", "..", "a\nb", "\x00", "\x7f", "\x85", "\ud800"])
def test_ids_that_could_reach_elsewhere_are_refused(value: str) -> None:
    """Empty ids, dots, control characters and half characters never become a path."""
    with pytest.raises(ValueError, match=r"path|surrogates"):
        SPEC["users.get"].fill_path({"userId": value})


@pytest.mark.parametrize("path", [{}, {"groupId": "g", "userId": "u"}, {"userId": "u"}])
def test_path_parameters_are_exactly_those_of_the_path(path: dict[str, str]) -> None:
    """A missing, other or additional path parameter is refused."""
    with pytest.raises(ValueError, match=r"manual-groups\.rename takes the path parameters \['groupId'\]"):
        SPEC["manual-groups.rename"].fill_path(path)


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", "/users/extended-info", "users.extended-info"),
        ("GET", "/users/u-1", "users.get"),
        ("GET", "/content/all", "content.list"),
        ("GET", "/content/targets", "content-targets.list"),
        ("GET", "/content/c-1", "content.get"),
        ("DELETE", "/content/targets", "content-targets.delete"),
    ],
)
def test_fixed_parts_win_over_parameters(method: str, path: str, operation: str) -> None:
    """A path that is one by itself is never taken for another one's parameter."""
    found = SPEC.match_route(method, path)
    assert found is not None
    assert found[0].id == operation


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/users/"),
        ("DELETE", "/groups/"),
        ("GET", "/nothing"),
        ("PATCH", "/groups"),
        ("GET", "/groups/g/members/"),
        ("GET", ""),
    ],
)
def test_what_is_no_operation_has_no_route(method: str, path: str) -> None:
    """An unknown path, a wrong method or an empty parameter is no operation."""
    assert SPEC.match_route(method, path) is None


def test_a_dialect_renames_in_schema_and_body() -> None:
    """An override of a wire name changes what is sent and what is expected, and nothing else."""
    spec = ApiSpec({"manual-groups.rename.name": "newName"})
    assert spec.body_to_wire("manual-groups.rename", name="A") == {"newName": "A"}
    body = spec["manual-groups.rename"].body
    assert body is not None
    assert (list(body["properties"]), body["required"]) == (["newName"], ["newName"])
    assert spec.behaviour("manual-groups.rename.name") == "newName"
    assert spec.body_to_wire("smart-groups.rename", name="A") == {"name": "A"}
    assert SPEC.body_to_wire("manual-groups.rename", name="A") == {"name": "A"}


def test_a_body_keeps_what_it_is_given() -> None:
    """Values pass untouched, names that still wait for their id too; a name that the body lacks is refused."""
    ref = Ref(Address.of("group", "Sales"))
    assert SPEC.body_to_wire("content-targets.create", contentId="c", targetId=ref, startTime=None) == {
        "contentId": "c",
        "targetId": ref,
        "startTime": None,
    }
    with pytest.raises(ValueError, match=r"content-targets\.create has no body property \['dueDate'\]"):
        SPEC.body_to_wire("content-targets.create", dueDate="2026-01-05")


def test_behaviours_have_defaults_and_overrides() -> None:
    """A behaviour is its default until the project says otherwise; numbers may be written as text."""
    assert (SPEC.behaviour("content-targets.everyone"), SPEC.integer_behaviour("paging.limit")) == ("EVERYONE", 100)
    spec = ApiSpec({"content-targets.everyone": "ALL", "paging.limit": 50, "manual-groups.add.batch": "20"})
    assert spec.behaviour("content-targets.everyone") == "ALL"
    assert (spec.behaviour("paging.limit"), spec.integer_behaviour("manual-groups.add.batch")) == ("50", 20)


def test_an_operation_knows_what_it_leans_on() -> None:
    """The keys to look at when a call had no effect: its assumed names and behaviours."""
    assert SPEC.dialect_keys("manual-groups.rename") == ("manual-groups.rename.name",)
    assert "content-targets.on-existing" in SPEC.dialect_keys("content-targets.create")
    assert SPEC.dialect_keys("smart-groups.rename") == ()


def test_an_unknown_key_is_told_with_the_nearest() -> None:
    """A key that does not exist is an error that offers the one that was probably meant."""
    found = problem({"manual-groups.rename.nmae": "x"})
    assert (found.code, found.message) == ("dialect/unknown-key", "dialect has no key 'manual-groups.rename.nmae'")
    assert found.hint == "Did you mean manual-groups.rename.name?"
    assert problem({"zzz": "x"}).hint == "Keys look like paging.limit."


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("content-targets.on-existing", "replace", "It is one of update, recreate."),
        ("paging.limit", 0, "It is a whole number from 1."),
        ("paging.limit", True, "It is a whole number from 1."),
        ("paging.limit", "many", "It is a whole number from 1."),
        ("paging.limit", "9" * 5000, "It is a whole number from 1."),
        ("manual-groups.rename.name", "", "It is a text that is not empty."),
        ("manual-groups.rename.name", 5, 'It is a text that is not empty, such as "5".'),
        ("content-targets.everyone", None, "It is a text that is not empty."),
        ("content-targets.everyone", "", "It is a text that is not empty."),
        ("content-targets.everyone", 5, 'It is a text that is not empty, such as "5".'),
    ],
)
def test_a_value_that_a_key_cannot_have_is_an_error(key: str, value: object, hint: str) -> None:
    """Enumerations, numbers and names are checked, and the way out is said."""
    found = problem({key: value})
    assert (found.code, found.message, found.hint) == ("dialect/value", f"dialect {key} cannot be {value!r}", hint)


@pytest.mark.parametrize(
    ("operation", "path", "message"),
    [
        ("user-access.make-admin", {"userId": "u", "endow": "True"}, "endow is one of true, false"),
        ("user-access.set", {"userId": "u", "action": "GRANT"}, "action is one of ADD, REMOVE"),
    ],
)
def test_a_path_takes_only_the_values_it_has(operation: str, path: dict[str, str], message: str) -> None:
    """A path parameter that is a choice or a truth value is refused where it is none."""
    with pytest.raises(ValueError, match=message):
        SPEC[operation].fill_path(path)


def test_names_below_the_first_level_follow_the_dialect() -> None:
    """A part inside a part of a body has a key of its own, and its schema and what is sent change with it."""
    spec = ApiSpec({"users.set-order-details.address": "place", "users.set-order-details.address.zip": "postcode"})
    assert spec.body_to_wire("users.set-order-details", address={"zip": "1", "city": "Umeå"}, note="n") == {
        "place": {"postcode": "1", "city": "Umeå"},
        "note": "n",
    }
    body = spec["users.set-order-details"].body or {}
    assert list(body["properties"]["place"]["properties"]) == ["street", "city", "country", "phone", "postcode"]
    names = spec["users.set-order-details"].request_names
    assert names.from_wire({"place": {"postcode": "1"}}) == {"address": {"zip": "1"}}


def test_names_in_an_answer_follow_the_dialect() -> None:
    """An answer in a dialect's names is heard in the description's own, also in lists, and the other way about."""
    spec = ApiSpec({"content.meetups.occasions": "dates", "content.meetups.occasions.startTime": "from"})
    names = spec["content.meetups"].response_names
    body = {"meetups": [{"name": "A", "dates": [{"from": 1, "else": 2}]}]}
    assert names.from_wire(body) == {"meetups": [{"name": "A", "occasions": [{"startTime": 1, "else": 2}]}]}
    assert names.to_wire(names.from_wire(body)) == body


def test_one_key_may_serve_two_operations() -> None:
    """The filters of results and statistics are the same, so one key names a part of both."""
    spec = ApiSpec({"analytics.contentName": "title"})
    for operation in ("analytics.results", "analytics.statistics"):
        assert spec.body_to_wire(operation, contentName="GDPR") == {"title": "GDPR"}
    assert SPEC.behaviour("analytics.contentName") == "contentName"


def test_a_map_of_ids_takes_any_name() -> None:
    """Answers to custom fields are keyed by ids, which no description knows."""
    assert SPEC.body_to_wire("users.update-custom-field-choice", **{"f-1": "ch-1"}) == {"f-1": "ch-1"}


def test_headers_follow_the_dialect() -> None:
    """The name of a header is the dialect's; one that is no name, or means something else, is refused."""
    key = "certificates.status.Service-Calling-User-Id"
    assert ApiSpec({key: "Acme-Calling-User-Id"})["certificates.status"].headers == {
        "Service-Calling-User-Id": "Acme-Calling-User-Id"
    }
    for value in ("Authorization", "a b", "x\r\ny", "Content-Type"):
        assert problem({key: value}).code == "dialect/value"


def test_two_parts_of_a_body_cannot_share_a_name() -> None:
    """A wire name that another part of the same body has would lose one of the two."""
    assert problem({"content-targets.create.mandatory": "contentId"}).code == "dialect/clash"
    assert problem({"users.set-order-details.address.city": "zip"}).code == "dialect/clash"
    assert problem({"content.meetups.occasions.startTime": "occasionId"}).code == "dialect/clash"
    assert ApiSpec(
        {"content-targets.create.startTime": "finishTime", "content-targets.create.finishTime": "end"}
    ).body_to_wire("content-targets.create", startTime="a", finishTime="b") == {"finishTime": "a", "end": "b"}


def test_all_problems_of_a_dialect_are_told_together() -> None:
    """Two mistakes are two problems in one run."""
    with pytest.raises(ProblemsFound) as caught:
        ApiSpec({"nothing": "x", "paging.limit": -1})
    assert [found.code for found in caught.value.problems] == ["dialect/unknown-key", "dialect/value"]
