"""Service: every operation as a typed method, in the specification's names whatever the dialect says."""

import json
import re
import socket
import threading
from collections.abc import Callable

import httpx
import pytest
from waiting import HANGS

from lmsconf.api import LEFT_OUT, Service
from lmsconf.errors import InvalidResponse, ProblemsFound, WriteOutcomeUnknown

from .network import CANARY, Network, client, pages, raw, said

Call = Callable[[Service], object]


def service(
    *script: httpx.Response, network: Network | None = None, dialect: dict[str, str | int] | None = None
) -> Service:
    """A service on a scripted network."""
    return Service(client(*script, network=network, dialect=dialect))


def sent(request: httpx.Request) -> object:
    """The JSON that a request carries."""
    return json.loads(request.content) if request.content else None


def test_either_identifier_signs_in() -> None:
    """POST /auth takes the user's id or the e-mail, and sends only what is given."""
    network = Network(said(200, {"preSignedInLink": "https://a.example/x", "expiresAt": 1_767_225_600_000}))
    given = service(network=network)
    assert given.auth.create(email="a@x.example")["expiresAt"] == 1_767_225_600_000
    given.auth.create(user_id="u")
    assert [sent(request) for request in network.requests] == [{"email": "a@x.example"}, {"userId": "u"}]


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


def test_null_and_left_out_differ() -> None:
    """None clears what can be cleared; LEFT_OUT, the default, sends nothing."""
    network = Network(raw(204))
    given = service(network=network)
    given.content_targets.create("c", user_id="u", start_time=None, finish_time=LEFT_OUT)
    assert sent(network.requests[0]) == {"contentId": "c", "userId": "u", "startTime": None}


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
    """A search may be sent again after a passing failure; a creation may not, for it could be done twice."""
    network = Network(said(503, None), said(200, {"users": []}))
    assert service(network=network).users.search(text="a") == {"users": []}
    assert len(network.requests) == 2
    network = Network(said(502, None))
    with pytest.raises(WriteOutcomeUnknown):
        service(network=network).users.create("a@x.example")
    assert len(network.requests) == 1


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


def test_a_listing_that_repeats_itself_is_an_error() -> None:
    """A service that ignores `skip` would go on for ever: the second equal page is a InvalidResponse."""
    given, _ = paged(lambda request: said(200, {"groups": [{"groupId": "a", "name": "A"}]}))
    with pytest.raises(InvalidResponse, match="only rows that were already read"):
        list(given.groups.list_all())
    given, _ = paged(lambda request: said(200, {"list": [{"userId": "u"}]}))
    with pytest.raises(InvalidResponse, match="only rows that were already read"):
        list(given.analytics.results_all())


def test_a_listing_that_is_not_whole_is_an_error() -> None:
    """Fewer rows than the service counts are not passed off as all of them, and neither is a page without a list."""
    given, _ = paged(lambda request: said(200, {"matchCount": 2, "users": _first(request, [{"userId": "u"}])}))
    with pytest.raises(InvalidResponse, match="1 users received, but the service counts 2"):
        list(given.users.list_all())
    given, _ = paged(lambda request: said(200, {"users": None}))
    with pytest.raises(InvalidResponse, match="missing its list of users"):
        list(given.users.list_all())


def _first(request: httpx.Request, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows on the first page, none on the others."""
    return rows if request.url.params["skip"] == "0" else []


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


MISUSES: list[tuple[Call, str]] = [
    (lambda s: s.users.get(None), "users.get: path.userId must be string"),
    (lambda s: s.users.delete(None), "users.delete: path.userId must be string"),
    (lambda s: s.users.delete(""), "users.delete: path.userId must be longer than"),
    (lambda s: s.users.get(7), "users.get: path.userId must be string"),
    (lambda s: s.user_access.make_admin("u", "no"), "path.endow must be boolean"),
    (lambda s: s.user_access.set("u", "GRANT", "learn"), "path.action must be one of ['ADD', 'REMOVE']"),
    (lambda s: s.users.disable_payment("u", "false"),
     "users.disable-payment: body.disablePayment must be boolean"),
    (lambda s: s.users.list(limit=-1), "users.list: query.limit must be bigger than or equal to 0"),
    (lambda s: s.users.list(limit=2**31), "users.list: query.limit must be smaller than or equal to 2147483647"),
    (lambda s: s.users.list(limit=1.0), "users.list: limit cannot be a float"),
    (lambda s: s.users.list(skip=True), "users.list: query.skip must be integer"),
    (lambda s: next(s.users.list_all(filter=5)), "users.list: query.filter must be string"),
    (lambda s: s.users.search(limit=-1), "users.search: body.limit must be bigger than or equal to 0"),
    (lambda s: s.users.search(metadata={"a": 1}), "body.metadata.a must be string"),
    (lambda s: s.auth.create(), "auth.create: body must contain at least one of userId, email"),
    (lambda s: s.users.create(None), "users.create: body must contain ['email'] properties"),
    (lambda s: s.custom_fields.create("A", "CHOICE"), "custom-fields.create: body must contain ['choices'] properties"),
    (lambda s: s.custom_fields.create("A", "DATE"), "body.type must be one of ['CHOICE', 'TEXT', 'MULTI_SELECT']"),
    (lambda s: s.custom_fields.create("A", "CHOICE", choices=[{}]),
     "custom-fields.create: body.choices[0] must contain ['name'] properties"),
    (lambda s: s.content_targets.create("c"), "body must contain exactly one of userId, targetId"),
    (lambda s: s.content_targets.create("c", user_id="u", start_time=[5]),
     "content-targets.create: body.startTime must be string or integer or null"),
    (lambda s: s.content_targets.delete("", "GROUP", "c"), "content-targets.delete: body.targetId must be longer than"),
    (lambda s: s.content_targets.list(""), "content-targets.list: query.contentId must be longer than"),
    (lambda s: s.content.list(group_ids=[]), "content.list: query.groupIds[] must contain at least 1 items"),
    (lambda s: s.content.list(group_ids=[""]), "query.groupIds[][0] must be longer than"),
    (lambda s: s.content.list(group_ids="g"), "content.list: query.groupIds[] must be array"),
    (lambda s: s.analytics.results(group_ids=[]), "analytics.results: body.groupIds must contain at least 1 items"),
    (lambda s: s.groups.add_members("g", ("u",)), "userIds cannot be a tuple"),
    (lambda s: s.users.update_custom_field_choice("u", choice=["f"]), "CHOICE must be object"),
    (lambda s: s.users.update_custom_field_choice("u", choice={"f": ["c"]}),
     "users.update-custom-field-choice: CHOICE.f must be string or null"),
    (lambda s: s.users.update_custom_field_choice("u", text={"f": 1}),
     "users.update-custom-field-choice: TEXT.f must be string or null"),
    (lambda s: s.users.update_custom_field_choice("u", multi_select={"f": ["c", 1]}),
     "users.update-custom-field-choice: MULTI_SELECT.f[1] must be string"),
    (lambda s: s.users.update_custom_field_choice("u", multi_select={"f": None}),
     "users.update-custom-field-choice: MULTI_SELECT.f must be array"),
    (lambda s: s.users.update_custom_field_choice("u", text={1: "c"}),
     "users.update-custom-field-choice: TEXT must be named by propertyName definition"),
    (lambda s: s.users.update_custom_field_choice("u", choice={"f": "c"}, text={"f": "c"}),
     "users.update-custom-field-choice: f is answered twice"),
    (lambda s: s.certificates.status("p", service_calling_user_id=5),
     "headers.Service-Calling-User-Id must be string"),
]  # fmt: skip
"""A call that is none, and what is said of it."""


@pytest.mark.parametrize(("call", "message"), MISUSES, ids=[message for _, message in MISUSES])
def test_misuse_is_told_before_anything_is_sent(call: Call, message: str) -> None:
    """A value that the description does not allow is a ValueError that names it, and the service hears nothing."""
    network = Network(said(200, {}))
    with pytest.raises(ValueError, match=re.escape(message)):
        call(service(network=network))
    assert network.requests == []


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


def test_a_service_closes_its_connection() -> None:
    """At the end of `with`, the other side of its connection sees that it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        at = f"http://127.0.0.1:{listening.getsockname()[1]}"
        seen: list[bytes] = []

        def peer() -> None:
            accepted, _ = listening.accept()
            with accepted:
                accepted.settimeout(HANGS)
                accepted.recv(65536)
                accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n" + b'{"userIds":[]}')
                seen.append(accepted.recv(65536))

        thread = threading.Thread(target=peer, daemon=True)
        thread.start()
        with Service.at(at, CANARY) as given:
            assert given.groups.members("g") == {"userIds": []}
            assert seen == []
        thread.join(HANGS)
        assert seen == [b""]
