"""Service: every operation as a typed method, in the specification's names whatever the dialect says."""

import json
from collections.abc import Callable, Mapping

import httpx
import pytest
from texts import listed_cases

from lmsconf.api import Service
from lmsconf.errors import InvalidResponse, ProblemsFound

from .network import CANARY, Network, client, pages, raw, said, typed_call


def service(
    *script: httpx.Response, network: Network | None = None, dialect: dict[str, str | int] | None = None
) -> Service:
    """A service on a scripted network."""
    return Service(client(*script, network=network, dialect=dialect))


def sent(request: httpx.Request) -> object:
    """The JSON that a request carries."""
    return json.loads(request.content) if request.content else None


def test_the_asking_person_goes_as_a_header() -> None:
    """The optional header of a progress record's status is sent when it is given, under the dialect's name."""
    network = Network(said(200, {"progressId": "p", "status": "DONE"}))
    key = "certificates.status.Service-Calling-User-Id"
    given = service(network=network, dialect={key: "Acme-Calling-User-Id", "certificates.status.status": "state"})
    given.certificates.status("p", service_calling_user_id="u-7")
    given.certificates.status("p")
    assert [request.headers.get("acme-calling-user-id") for request in network.requests] == ["u-7", None]
    with pytest.raises(ValueError, match="cannot be the header"):
        given.certificates.status("p", service_calling_user_id="u\r\nX-Evil: 1")
    assert len(network.requests) == 2


def test_the_dialect_stays_inside() -> None:
    """With other names on the wire, arguments and answers keep those of the specification."""
    network = Network(said(200, {"meetups": [{"title": "Fika", "dates": [{"from": 5}]}]}))
    dialect: dict[str, str | int] = {
        "content.meetups.name": "title",
        "content.meetups.occasions": "dates",
        "content.meetups.occasions.startTime": "from",
        "analytics.contentName": "title",
        "users.update-custom-field-choice.wrapper": "answers",
    }
    given = service(network=network, dialect=dialect)
    assert given.content.meetups() == {"meetups": [{"name": "Fika", "occasions": [{"startTime": 5}]}]}
    given.analytics.statistics(content_name="GDPR")
    given.users.update_custom_field_choice("u", choice={"f": "c"})
    assert [sent(request) for request in network.requests[1:]] == [{"title": "GDPR"}, {"answers": {"f": "c"}}]


@pytest.mark.parametrize(
    ("most", "batches"),
    [(2, [[]]), (1, [["a"]]), (1, [["a"], ["b"]]), (2, [["a", "b"], ["c"]]), (3, [["a", "b", "c"]])],
)
def test_people_are_added_in_batches(most: int, batches: list[list[str]]) -> None:
    """As many at a time as the dialect allows, and no call without anybody in it but for an empty list."""
    network = Network(*[raw(200)] * 4)
    groups = service(network=network, dialect={"manual-groups.add.batch": most}).groups
    groups.add_members("g", [one for batch in batches for one in batch])
    assert [sent(request) for request in network.requests] == [{"userIds": batch} for batch in batches]


def test_a_post_that_only_reads_is_tried_again() -> None:
    """A search may be sent again after a passing failure, as no creation may: nothing could be done twice."""
    network = Network(said(503, None), said(200, {"users": []}))
    assert service(network=network).users.search(text="a") == {"users": []}
    assert len(network.requests) == 2


def paged(answering: Callable[[httpx.Request], httpx.Response], **dialect: str | int) -> tuple[Service, Network]:
    """A service whose listings come in pages."""
    network = Network(answering=answering)
    return service(network=network, dialect={"paging.limit": 3, **dialect}), network


def test_listings_are_read_page_after_page() -> None:
    """An iterator asks for the next page when it is needed, goes on by what came, and ends at the service's count."""
    given, network = paged(pages("users", "userId", map(str, range(7)), total="matchCount", cap=2))
    rows = given.users.list_all(filter="x")
    assert next(rows)["userId"] == "0"
    assert len(network.requests) == 1
    assert [row["userId"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert [dict(request.url.params) for request in network.requests[:2]] == [
        {"filter": "x", "skip": "0", "limit": "3"},
        {"filter": "x", "skip": "2", "limit": "3"},
    ]
    assert len(network.requests) == 4


@pytest.mark.parametrize(
    ("listing", "first", "others", "message"),
    [
        ("groups.list_all", *[{"groups": [{"groupId": "a", "name": "A"}]}] * 2, "only rows that were already read"),
        ("analytics.results_all", *[{"list": [{"userId": "u"}]}] * 2, "only rows that were already read"),
        ("users.list_all", {"users": [{"userId": "u"}], "matchCount": 2}, {"users": [], "matchCount": 2},
         "1 users received, but the service counts 2"),
        ("users.list_all", {"users": None}, {}, "missing its list of users"),
    ],
    ids=["repeats", "repeats without ids", "too few", "no list"],
)  # fmt: skip
def test_a_listing_that_is_not_whole_is_an_error(listing: str, first: object, others: object, message: str) -> None:
    """A service that ignores `skip` would go on for ever; and fewer rows than it counts are not passed off as all."""
    given, _ = paged(lambda request: said(200, first if request.url.params.get("skip") == "0" else others))
    with pytest.raises(InvalidResponse, match=message):
        typed_call(given, listing, {})


def test_pages_are_asked_for_where_the_operation_says_so() -> None:
    """A search has skip and limit in its body, and results have them among their options, which stay otherwise."""

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        skip = body.get("options", body)["skip"]
        return said(200, {"list": [{"userId": str(skip)}] if skip < 2 else [], "users": [], "matchCount": 0})

    given, network = paged(answer)
    rows = given.analytics.results_all(content_ids=["c"], options={"orderBy": "updatedAt"})
    assert [row["userId"] for row in rows] == ["0", "1"]
    assert sent(network.requests[1]) == {
        "contentIds": ["c"],
        "options": {"orderBy": "updatedAt", "skip": 1, "limit": 3},
    }
    assert list(given.users.search_all(text="a")) == []
    assert sent(network.requests[-1]) == {"text": "a", "skip": 0, "limit": 3}


def misused(method: str, given: Mapping[str, object]) -> str:
    """What is said of a call that is none, and of which the service hears nothing."""
    network = Network(said(200, {}))
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the caller looks at what it says
        typed_call(service(network=network), method, given)
    assert network.requests == []
    return str(caught.value)


@listed_cases("method", "given", "message")
def test_misuse_is_told_before_anything_is_sent(method: str, given: dict[str, object], message: str) -> None:
    """A value that the description does not allow is a ValueError that names it, and the service hears nothing."""
    assert message in misused(method, given)


def test_what_only_python_has_is_misuse_too() -> None:
    """A tuple is no list, and a key is text."""
    assert "userIds cannot be a tuple" in misused("groups.add_members", {"group_id": "g", "user_ids": ("u",)})
    assert "users.update-custom-field-choice: TEXT must be named by propertyName definition" in misused(
        "users.update_custom_field_choice", {"user_id": "u", "text": {1: "c"}}
    )


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ({"nope": "x"}, "dialect has no key 'nope'"),
        ({"nope": "x", "nor": "x"}, "dialect has no key 'nope'; and 1 more problem"),
        ({"nope": "x", "nor": "x", "paging.limit": 0}, "dialect has no key 'nope'; and 2 more problems"),
    ],
)
def test_a_wrong_dialect_says_what_is_wrong(dialect: dict[str, str | int], text: str) -> None:
    """The error's text is the first problem and how many more there are, so a traceback is enough to mend it."""
    with pytest.raises(ProblemsFound) as caught:
        Service.at("https://lms.example/api", CANARY, dialect=dialect)
    assert str(caught.value) == text
