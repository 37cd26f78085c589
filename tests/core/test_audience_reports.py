"""What `audience` counts, and what a text may mean as an audience, on a small workspace in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from lmsconf.errors import ProblemsFound
from lmsconf.kinds import all_kinds
from lmsconf.model.access import AnswerCount, AnswerState, AudienceMember, AudienceReport, ConditionResult, ReportHeader
from lmsconf.model.address import EVERYBODY, Address, RemoteId
from lmsconf.model.effects import Basis
from lmsconf.planner.audience.access_reports import audience_report, find_audience, parse_audience
from lmsconf.planner.audience.people_sets import Audience
from lmsconf.planner.audience.state import FieldAnswers, NamedField, PlacedAssignment, WorkspaceAccess

HEADER = ReportHeader(
    workspace="w", url="", people=5, created_at="", planned=True, basis=Basis.EXACT, reasons=(), requests=0
)
PEOPLE = ("eve", "Bo", "cy", "dee", "Ann")
FIELDS = {
    "Skills": NamedField(
        has_choices=True,
        before=FieldAnswers(choices={"SQL": 0b00011, "Go": 0b00010}, unreadable=0b00100),
        after=FieldAnswers(choices={"SQL": 0b00010, "Go": 0b01010, "New": 0}, unreadable=0),
    ),
    "Site": NamedField(
        has_choices=True,
        before=FieldAnswers(choices={"Oslo": 0b11110}, unreadable=0),
        after=FieldAnswers(choices={"Oslo": 0b11110}, unreadable=0),
    ),
    "Badge": NamedField(
        has_choices=False,
        before=FieldAnswers(choices={}, unreadable=0),
        after=FieldAnswers(choices={}, unreadable=0),
    ),
}
AUDIENCES = {
    "group/Sales": Audience(before=0b00111, after=0b11110),
    "group/Salt": Audience(before=0, after=0),
    "group/Sals": Audience(before=0, after=0),
    "group/Sale": Audience(before=0, after=0),
    "group/Early": Audience(before=0b00110, after=None),
    "group/Late": Audience(before=None, after=0b00110),
    "smart_group/Sales": Audience(before=0b00001, after=0b00001, basis=Basis.ESTIMATE),
    "smart_group/Odd": Audience(before=0, after=0),
    "user/bo@acme.example": Audience(before=0b00010, after=0b00010),
    EVERYBODY: Audience(before=0b11111, after=0b11111),
}


class State(WorkspaceAccess):
    """Five people in some audiences, all of them there before the plan and after it."""

    now = 0
    emails = tuple(f"{name}@acme.example" for name in PEOPLE)
    active_before = active_after = live = 0b11111

    def __init__(self, *incomplete: str) -> None:
        self.incomplete, self.reasons = incomplete, ["a guess"]

    def format_time(self, seconds: int) -> str:
        return str(seconds)

    def person(self, email: str) -> int | None:
        return next((at for at, one in enumerate(self.emails) if one.casefold() == email.casefold()), None)

    def audience(self, address: Address) -> Audience | None:
        return AUDIENCES.get(str(address))

    def audience_names(self, kind: str) -> Sequence[str]:
        return [name.partition("/")[2] for name in AUDIENCES if name.startswith(f"{kind}/")]

    def exists(self, address: Address) -> tuple[bool, bool]:
        return address.name != "Late", address.name != "Early"

    def contents(self) -> Mapping[RemoteId, str]:
        return {}

    def assignments(self, content: RemoteId) -> Sequence[PlacedAssignment]:
        return ()

    def conditions(self, audience: Address, person: int) -> tuple[Sequence[ConditionResult], Sequence[ConditionResult]]:
        return (), ()

    def field(self, name: str) -> NamedField | None:
        return FIELDS.get(name)

    def field_names(self) -> Sequence[str]:
        return list(FIELDS)


def report(address: str, by: str | None = None, *, planned: bool = True, incomplete: str = "") -> AudienceReport:
    header, state = replace(HEADER, planned=planned), State(*filter(None, [incomplete]))
    return audience_report(state, header, Address.parse(address), by, members=True)


def test_a_report_counts_people_answers_and_members_on_both_sides() -> None:
    """Who joins and who leaves, a choice that is new, and the members by e-mail whatever its case."""
    found = report("group/Sales", "Skills")
    assert (found.is_live, found.stays, found.by, found.header.basis) == (True, True, "Skills", Basis.EXACT)
    assert (found.before, found.after, found.join, found.leave) == (3, 4, 2, 1)
    answered = AnswerState.ANSWERED
    assert found.answers == (
        AnswerCount(state=answered, choice="SQL", before=2, after=1),
        AnswerCount(state=answered, choice="Go", before=1, after=2),
        AnswerCount(state=answered, choice="New", before=0, after=0),
        AnswerCount(state=AnswerState.NONE, choice=None, before=0, after=2),
        AnswerCount(state=AnswerState.UNKNOWN, choice=None, before=1, after=0),
    )
    assert found.members == tuple(
        AudienceMember(email=f"{name}@acme.example", before=before, after=after)
        for name, before, after in (
            ("Ann", False, True),
            ("Bo", True, True),
            ("cy", True, True),
            ("dee", False, True),
            ("eve", True, False),
        )
    )


@pytest.mark.parametrize(
    ("address", "planned", "numbers", "answers", "members"),
    [
        (
            "group/Sales",
            False,
            (3, None, None, None),
            [("Oslo", 2, None), ("no_answer", 1, None)],
            [("Bo", True, None), ("cy", True, None), ("eve", True, None)],
        ),
        (
            "group/Early",
            True,
            (2, None, None, None),
            [("Oslo", 2, None)],
            [("Bo", True, None), ("cy", True, None)],
        ),
        (
            "group/Late",
            True,
            (None, 2, None, None),
            [("Oslo", None, 2)],
            [("Bo", None, True), ("cy", None, True)],
        ),
    ],
)
def test_a_side_that_is_not_known_has_no_numbers(
    address: str,
    planned: bool,
    numbers: tuple[int | None, ...],
    answers: list[tuple[str, int | None, int | None]],
    members: list[tuple[str, bool | None, bool | None]],
) -> None:
    """The other side has, and nobody is counted as without an answer for a side that is not known."""
    found = report(address, "Site", planned=planned)
    assert (found.before, found.after, found.join, found.leave) == numbers
    assert [(one.choice or one.state.value, one.before, one.after) for one in found.answers] == answers
    assert [(one.email.partition("@")[0], one.before, one.after) for one in found.members or ()] == members
    assert found.stays == (None if not planned else address != "group/Early")


@pytest.mark.parametrize(
    ("address", "incomplete", "basis", "before"),
    [
        ("user/BO@acme.example", "", Basis.EXACT, 1),
        ("everyone", "", Basis.EXACT, 5),
        ("smart_group/Sales", "", Basis.ESTIMATE, 1),
        ("group/Late", "", Basis.UNKNOWN, None),
        ("group/Sales", "a page is missing", Basis.UNKNOWN, None),
    ],
)
def test_a_report_says_how_far_it_can_be_trusted(
    address: str, incomplete: str, basis: Basis, before: int | None
) -> None:
    """With the reasons, unless it is exact; nobody is counted in a listing that is not complete."""
    found = report(address, incomplete=incomplete)
    reasons = tuple(filter(None, [incomplete, "a guess"])) if basis is not Basis.EXACT else ()
    assert (found.header.basis, found.header.reasons, found.before) == (basis, reasons, before)
    assert found.answers == ()
    assert not incomplete or (found.after, found.members) == (None, ())


def failed(address: str, by: str | None = None) -> tuple[str, str | None]:
    """The code and the hint of the error of a report."""
    with pytest.raises(ProblemsFound) as found:
        report(address, by)
    (problem,) = found.value.problems
    return problem.code, problem.hint


def test_an_unknown_audience_or_field_has_a_suggestion() -> None:
    """The same name in another kind, or else the three nearest of its own kind."""
    assert failed("content_target/A -> everyone")[0] == "audience/address"
    assert failed("smart_group/Salt") == ("audience/unknown", "Did you mean group/Salt?")
    assert failed("smart_group/Od") == ("audience/unknown", "Did you mean smart_group/Odd?")
    assert failed("group/Od") == ("audience/unknown", None)
    code, hint = failed("group/Sal")
    assert (code, str(hint).count("group/Sal"), str(hint).count(" or ")) == ("audience/unknown", 3, 2)
    assert failed("everyone", "Skill") == ("field/unknown", 'Did you mean "Skills"?')
    assert failed("everyone", "Badge") == ("field/text", None)


def of_any_kind(name: str) -> list[str]:
    """A name alone, as that of each kind that has names of its own."""
    return [str(Address.of(kind, name)) for kind in ("custom_field", "group", "smart_group")] + [
        str(Address.of("user", name.casefold()))
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("everyone", ["everyone"]),
        ("groups/Sales", ["group/Sales"]),
        ("people/Bo@acme.example", ["user/bo@acme.example"]),
        ("custom_field/Site", ["custom_field/Site"]),
        ("content_target/A -> groups/Sales", ["group/Sales"]),
        ("content_target/A -> everyone", ["everyone"]),
        ("assignment of A to group/Sales", ["group/Sales"]),
        ("assignment of A to B to groups/C to D", ["group/C to D"]),
        ("assignment of How to everyone", ["everyone"]),
        ("Sales", of_any_kind("Sales")),
        ("Sales (group)", ["group/Sales", *of_any_kind("Sales (group)")]),
        ("A\\\\B", of_any_kind("A\\B")),
        ("assignment of A", of_any_kind("assignment of A")),
        ("group of A to everyone", of_any_kind("group of A to everyone")),
        ("group/", None),
        ("/Sales", None),
        ("course/Sales", None),
        ("", None),
    ],
)
def test_a_text_may_mean_one_audience_or_that_name_of_any_kind(text: str, meant: list[str] | None) -> None:
    """An address, an assignment, the words of a view, or a name alone; None: it is no address of an audience."""
    if meant is None:
        with pytest.raises(ProblemsFound, match="is not the address of an audience"):
            parse_audience(text, all_kinds())
    else:
        assert sorted(map(str, parse_audience(text, all_kinds()))) == sorted(meant)


@pytest.mark.parametrize(
    ("candidates", "found"),
    [
        (["group/Nobody"], "group/Nobody"),
        (["custom_field/Odd", "group/Odd", "smart_group/Odd"], "smart_group/Odd"),
        (["group/Sales", "smart_group/Sales"], "Sales: 2 audiences match"),
        (["group/Odd", "custom_field/Odd"], "no audience is called"),
        ([], "no audience is called"),
    ],
)
def test_of_several_candidates_the_one_that_is_there_is_meant(candidates: list[str], found: str) -> None:
    """A candidate alone is meant in any case; several that are there, or none, are an error."""
    addresses = [Address.parse(one) for one in candidates]
    name = addresses[0].name if addresses else "nothing at all"
    if "/" in found:
        assert str(find_audience(State(), name, addresses)) == found
    else:
        with pytest.raises(ProblemsFound, match=found) as error:
            find_audience(State(), name, addresses)
        (problem,) = error.value.problems
        hint = {"Sales": "Write one of: group/Sales, smart_group/Sales.", "Odd": "Did you mean smart_group/Odd?"}
        assert problem.hint == hint.get(name, problem.hint)
        assert problem.hint
