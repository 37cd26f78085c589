"""Every view of what a person has and of who is in an audience, as it was read and found good."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from document_samples import EVIL
from json_schemas import schema_validator
from msgspec.structs import replace

from lmsconf.documents.reports import access_json, audience_json
from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.access import (
    AccessRoute,
    AnswerCount,
    AnswerState,
    AudienceMember,
    AudienceReport,
    ConditionResult,
    HeldContent,
    PersonAccess,
    PersonContent,
    ReportHeader,
    RouteSide,
)
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.effects import Basis
from lmsconf.render.people_reports import access_csv, access_text, audience_csv, audience_text

Compare = Callable[[str, str], None]
HEADER = ReportHeader(
    workspace="production",
    url="https://lms.example/api",
    people=1200,
    created_at="2026-03-01T08:00:00Z",
    planned=True,
    basis=Basis.EXACT,
    reasons=(),
    requests=17,
)
UNKNOWN = replace(
    HEADER, basis=Basis.UNKNOWN, reasons=("smart_group/Odd: the effect of the system condition IS_ODD is not known",)
)
BROKEN = replace(
    HEADER,
    planned=False,
    people=None,
    problems=(
        Problem(code="manifest/unknown-key", message="groups: unknown key", source=SourceLocation("a.yaml", 3, 5)),
    ),
)
NORDICS = Address("smart_group", "Sales Nordics")


def condition(answer: tuple[str, ...] | None, met: bool | None, *choices: str) -> ConditionResult:
    return ConditionResult(field="Country", choices=choices, system_condition=None, answer=answer, met=met)


def side(member: bool | None, *conditions: ConditionResult, is_over: bool = False) -> RouteSide:
    return RouteSide(
        mandatory=True,
        visible_from="2026-01-05T00:00:00+01:00",
        visible_until="2026-02-01T00:00:00+01:00" if is_over else None,
        is_over=is_over,
        member=member,
        conditions=conditions,
    )


def content(
    name: str, change: str | None, before: str | None, after: str | None, *routes: AccessRoute
) -> PersonContent:
    sides = (None if word is None else HeldContent(word=word) for word in (before, after))
    return PersonContent(
        content=name, id=RemoteId("c-1"), before=next(sides), after=next(sides), change=change, routes=routes
    )


def route(audience: Address, before: RouteSide | None, after: RouteSide | None) -> AccessRoute:
    return AccessRoute(
        address=Address("content_target", f"GDPR basics -> {audience}"), audience=audience, before=before, after=after
    )


LOST = content(
    "GDPR basics",
    "lose",
    "mandatory",
    "none",
    route(
        NORDICS, side(True, condition(("FI",), True, "FI", "SE")), side(False, condition(("FI",), False, "NO", "SE"))
    ),
)
OVER = content("Old intro", "none", "none", "none", route(Address("everyone", ""), side(True, is_over=True), None))
GAINED = content("Coaching", "gain", "none", "optional", route(Address("group", "Coaches"), None, side(True)))
KEPT = content("Fire safety", "keep", "optional", "optional", route(NORDICS, side(True), side(True)))
DOUBTFUL = content(
    "Odd one", None, "optional", None, route(NORDICS, side(True), side(None, condition(None, None, "SE")))
)
PERSON = PersonAccess(
    header=HEADER, email="bo.ek@acme.example", is_live=True, stays=True, content=None, contents=(LOST, GAINED, KEPT)
)
PEOPLE = {
    "changed": PERSON,
    "nothing": replace(PERSON, contents=()),
    "unknown": replace(PERSON, header=UNKNOWN, contents=(DOUBTFUL,)),
    "one": replace(PERSON, content="Old intro", contents=(OVER,)),
    "broken": replace(
        PERSON,
        header=BROKEN,
        stays=None,
        contents=(content("GDPR basics", None, "mandatory", None, route(NORDICS, side(True), None)),),
    ),
    "new": replace(PERSON, is_live=False, contents=(GAINED,)),
    "archived": replace(PERSON, stays=False, contents=(LOST,)),
    "hostile": replace(PERSON, email=f"{EVIL}@x", contents=(replace(LOST, content=EVIL),)),
}


def count(choice: str | None, before: int | None, after: int | None, state: str = "answered") -> AnswerCount:
    return AnswerCount(state=AnswerState(state), choice=choice, before=before, after=after)


GROUP = AudienceReport(
    header=HEADER, address=NORDICS, is_live=True, stays=True, before=1047, after=9, join=1, leave=1039
)
COUNTED = replace(
    GROUP,
    by="Country",
    answers=(
        count("SE", 1000, 8),
        count("DE", 0, 0),
        count(None, 40, 1, "no_answer"),
        count(None, 7, 0, "not_known"),
    ),
)
AUDIENCES = {
    "counted": COUNTED,
    "plain": GROUP,
    "members": replace(
        GROUP,
        members=(
            AudienceMember(email="ann@acme.example", before=True, after=True),
            AudienceMember(email="bo@acme.example", before=True, after=False),
            AudienceMember(email="cy@acme.example", before=False, after=True),
        ),
    ),
    "unknown": replace(
        GROUP, header=UNKNOWN, after=None, join=None, leave=None, by="Country", answers=(count("SE", 9, None),)
    ),
    "broken": replace(COUNTED, header=BROKEN, stays=None, after=None, join=None, leave=None),
    "new": replace(GROUP, is_live=False, before=0, after=1, join=1, leave=0),
    "deleted": replace(GROUP, stays=False, after=0, join=0, leave=1047),
    "hostile": replace(
        COUNTED,
        address=Address("group", EVIL),
        by=EVIL,
        answers=(count(EVIL, 1, 2), count("SE or FI", 2, 1), count("=1+1", 0, 1), count(" %x|y", 0, 1)),
    ),
}
ACCESS_VIEWS = {"txt": access_text, "json": access_json, "csv": access_csv}
AUDIENCE_VIEWS = {"txt": audience_text, "json": audience_json, "csv": audience_csv}


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("view", ACCESS_VIEWS)
def test_what_a_person_has_reads_as_it_did(name: str, view: str, golden: Compare) -> None:
    """Each report reads in each format as its golden file does."""
    golden(f"access_{name}.{view}", _stable(ACCESS_VIEWS[view](PEOPLE[name])))


@pytest.mark.parametrize("name", AUDIENCES)
@pytest.mark.parametrize("view", AUDIENCE_VIEWS)
def test_who_is_in_an_audience_reads_as_it_did(name: str, view: str, golden: Compare) -> None:
    """Each report reads in each format as its golden file does."""
    golden(f"audience_{name}.{view}", _stable(AUDIENCE_VIEWS[view](AUDIENCES[name])))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        *(("access", access_json(report)) for report in PEOPLE.values()),
        *(("audience", audience_json(report)) for report in AUDIENCES.values()),
    ],
)
def test_documents_fit_their_schemas(schema: str, text: str) -> None:
    """Every document is what its JSON Schema says, and one with an unknown key is not."""
    validator, document = schema_validator(schema), json.loads(text)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "extra": 1})


def _stable(text: str) -> str:
    """The text without the version of lmsconf."""
    lines = text.splitlines(keepends=True)
    return "".join('  "tool": …,\n' if line.startswith('  "tool"') else line for line in lines)
