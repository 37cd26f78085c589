"""Small pure functions of the model, at their limits."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, date, datetime, time
from types import SimpleNamespace
from typing import cast

import pytest

from lmsconf.api.messages import decode
from lmsconf.apply.replanning import exit_code
from lmsconf.apply.scheduler import RunResult
from lmsconf.errors import ExitCode, Problem, Severity
from lmsconf.kinds import all_kinds
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import ManagedShare
from lmsconf.model.effects import Basis
from lmsconf.model.forms import form_to_json, sort_items
from lmsconf.model.names import confusable_skeleton, did_you_mean_email, is_representable, nearest_name, normalize_name
from lmsconf.model.outcomes import ApplyReport, CallOutcome, VerifiedScope, VerifyMode
from lmsconf.model.plan import Action, Change, Plan, RehearsalPace, RehearsedGroup, UndoLevel
from lmsconf.model.policy import IN_USE, Policy, diff_settings
from lmsconf.model.recorded_run import CallState, RecordedRun
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.model.time_formats import date_in_other_order, duration_in_words, local_to_utc, parse_response_time
from lmsconf.planner.audience.access_reports import nearest_person
from lmsconf.planner.audience.people_sets import (
    Audience,
    AudienceAssignment,
    Terms,
    Window,
    compare_access,
)
from lmsconf.planner.context import CallTemplates, PlanContext
from lmsconf.planner.missing_references import suggest_name
from lmsconf.planner.redaction import pseudonym
from lmsconf.planner.undo.extent import with_undo_limits
from lmsconf.planner.undo.names import map_references
from lmsconf.planner.undo.run import RunToUndo
from lmsconf.planner.undo.times import restores


def test_unordered_objects_are_sorted_by_their_values() -> None:
    """The order of the keys of an object does not decide where it stands."""
    assert sort_items([{"b": 1, "a": 2}, {"a": 1, "b": 3}]) == [{"a": 1, "b": 3}, {"b": 1, "a": 2}]
    assert sort_items([{"a": "é"}, {"a": "z"}, "é", "z"]) == ["z", {"a": "z"}, {"a": "é"}, "é"]


def test_a_value_that_no_manifest_has_is_an_error() -> None:
    """A form holds what a manifest can say, also inside of lists and keys; anything else is a mistake in the code."""
    assert form_to_json({"a": [1, None, {"b": frozenset({"y", "x"})}]}) == {"a": [1, None, {"b": ["x", "y"]}]}
    for value in (object(), [b"x"], {"a": datetime(2026, 1, 1, tzinfo=UTC)}):
        with pytest.raises(TypeError, match="is not allowed in a manifest form"):
            form_to_json(value)


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uD800", b"\\udc00", b"\\uDC00"])
def test_half_a_pair_of_surrogates_is_no_json(half: bytes) -> None:
    """It could not be written to a file or sent back; it may be spelt in small or in capital letters."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        decode(b'"' + half + b'"')


@pytest.mark.parametrize("offset", ["Z", "+01", "+0130", "+01:30", "-0330"])
def test_offsets_of_times_have_three_spellings(offset: str) -> None:
    """Hours alone, hours and minutes together, and with a colon."""
    minutes = {"Z": 0, "+01": 60, "+0130": 90, "+01:30": 90, "-0330": -210}[offset]
    moment = local_to_utc(date(2026, 1, 2), time(12, 0), offset)
    assert moment.tzinfo is UTC
    assert (datetime(2026, 1, 2, 12, tzinfo=UTC) - moment).total_seconds() == minutes * 60


@pytest.mark.parametrize("text", ["999999999999999", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_of_a_response_is_within_the_years_that_can_be_told(text: str) -> None:
    """Others are an error that says so, in milliseconds and with an offset."""
    with pytest.raises(ValueError, match="is outside the years 1 to 9999"):
        parse_response_time(text)


def test_fifty_unknown_names_get_a_hint() -> None:
    """Comparing thousands of unknown names with thousands of known ones would take minutes."""
    snapshot = Snapshot(workspace="w", url="", taken_at="", people=None)
    policy = Policy(workspace="w", today=date(2030, 1, 1))
    planning = PlanContext(snapshot, policy, cast(CallTemplates, None), lambda _: True)
    hints = [suggest_name(planning, "Salse", ["Sales"]) for _ in range(51)]
    assert hints == ['Did you mean "Sales"?'] * 50 + [None]


@pytest.mark.parametrize(
    ("char", "is_invisible"), [("\ufe00", True), ("\ufe0f", True), ("\ufdff", False), ("\ufe10", False)]
)
def test_variation_selectors_are_invisible(char: str, is_invisible: bool) -> None:
    """The sixteen of them are dropped where names are compared by their looks, and their neighbours are not."""
    assert (confusable_skeleton(f"Sales{char}") == confusable_skeleton("Sales")) is is_invisible


@pytest.mark.parametrize(("marks", "is_composed"), [(29, True), (30, True), (31, False)])
def test_a_pile_of_marks_is_not_normalised(marks: int, is_composed: bool) -> None:
    """Up to thirty combining marks in a row a long name is brought to NFC; with more it stays as it is."""
    pile = "\u0301" * marks
    for name in (f"{'x' * 300}e{pile}", f"{pile}{'x' * 300}e\u0301"):
        assert (normalize_name(name) != name) is is_composed


def report(converged: bool | None, *problems: Problem, done: bool = True) -> ApplyReport:
    group = Address.of("group", "Sales")
    change = Change(
        address=group, action=Action.UPDATE, id=None, about=None, source=None, before={}, after={}, fields=()
    )
    status = CallStatus.DONE if done else CallStatus.FAILED
    return ApplyReport(
        plan_digest="", workspace="w", url="https://lms.example", people=None, started_at="", finished_at="",
        outcomes=(CallOutcome(call="1", address=group, operation="manual-groups.rename", status=status),),
        verified=VerifiedScope(), converged=converged, residue=(change,), problems=problems, meta={}, exit=0,
    )  # fmt: skip


def test_a_run_that_was_not_read_back_shows_nothing() -> None:
    """Only a workspace that was read back shows what a run did; a change that was made and does not show is missing."""
    assert report(True).everything_seen is True
    assert report(None).everything_seen is False
    assert report(False).everything_seen is False
    assert report(False, done=False).everything_seen is True
    error = Problem(code="x/y", message="cannot be planned", severity=Severity.ERROR)
    assert report(False, error, done=False).everything_seen is False


def test_a_run_that_verified_nothing_counts_nothing() -> None:
    """Without a word on it nothing was verified, of no resource."""
    nothing = VerifiedScope(scope=VerifyMode.NONE, resources=0, partial=False, skipped=0, left_out=0, reason=None)
    assert VerifiedScope() == nothing


@pytest.mark.parametrize(
    ("base", "now", "is_weaker"),
    [
        (None, "never", True),
        (None, "condition", False),
        ("never", None, False),
        ("condition", "never", True),
        ("removed-choice", "condition", False),
    ],
)
def test_fewer_refusals_are_a_weaker_setting(base: str | None, now: str | None, is_weaker: bool) -> None:
    """What counts as a field in use: each value refuses less than the one before it, and none is the strictest."""
    (change,) = diff_settings({IN_USE: base} if base else {}, {IN_USE: now} if now else {})
    assert change.weaker is is_weaker


@pytest.mark.parametrize("path", ["guards.protect", "leave_alone"])
@pytest.mark.parametrize(
    ("base", "now", "is_weaker"),
    [
        (["group/*"], ["group/*", "!group/A"], True),
        (["group/*", "!group/A"], ["group/*"], False),
        (["group/*", "user/*"], ["group/*"], True),
        (["group/*"], ["group/*", "user/*"], False),
    ],
)
def test_what_protects_less_is_a_weaker_setting(path: str, base: list[Json], now: list[Json], is_weaker: bool) -> None:
    """A pattern less, or an exclusion more; the other way round the setting is stronger."""
    (change,) = diff_settings({path: base}, {path: now})
    assert change.weaker is is_weaker


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 second"),
        (89, "89 seconds"),
        (90, "1 minute 30 seconds"),
        (594, "9 minutes 50 seconds"),
        (595, "10 minutes"),
        (89 * 60, "89 minutes"),
        (90 * 60, "1 hour 30 minutes"),
        (130 * 60, "2 hours 10 minutes"),
        (180 * 60, "3 hours"),
    ],
)
def test_a_duration_is_told_in_two_units_at_most(seconds: float, words: str) -> None:
    """Rounded to seconds, to ten seconds or to minutes, the longer it is; a unit without a number is left out."""
    assert duration_in_words(seconds) == words


def test_only_long_names_are_looked_at_for_piles_of_marks() -> None:
    """Up to 200 characters a name is brought to NFC whatever it holds; a longer one gets no suggestion either."""
    pile = "e" + "\u0301" * 40
    for length, is_composed in ((200, True), (201, False)):
        name = "x" * (length - len(pile)) + pile
        assert len(name) == length
        assert (normalize_name(name) != name) is is_composed
        assert (confusable_skeleton(name) != name) is is_composed
        assert (nearest_name("x" * length, ["x" * (length - 1) + "y"]) is not None) is is_composed


def test_a_manifest_holds_texts_and_keys_up_to_a_length() -> None:
    """Half of the longest text, since it may be escaped, and keys of 500 characters."""
    assert is_representable("x" * 50_000)
    assert not is_representable(["x" * 50_001])
    assert is_representable({"k" * 500: [1, None, {"a": "b"}]})
    assert not is_representable({"k" * 501: "x"})


def test_a_pseudonym_can_be_made_by_anybody_with_the_salt() -> None:
    """The first 16 digits of the HMAC-SHA256 of the e-mail in lower case, keyed with the salt."""
    digest = hmac.new(b"salt", b"anna@acme.example", hashlib.sha256).hexdigest()
    assert pseudonym("salt", " Anna@acme.example ") == f"person-{digest[:16]}"


@pytest.mark.parametrize(
    ("predicted", "reached", "differs"), [(2, 2, False), (2, 3, True), (None, 3, False), (2, None, False)]
)
def test_a_group_reached_other_members_than_predicted(
    predicted: int | None, reached: int | None, differs: bool
) -> None:
    """Only where both numbers are known."""
    at = Address.of("group", "A")
    group = RehearsedGroup(address=at, before=1, predicted=predicted, reached=reached, basis=Basis.EXACT)
    assert group.differs is differs


@pytest.mark.parametrize(
    ("calls", "converged", "code"),
    [
        (1, True, ExitCode.OK),
        (1, None, ExitCode.NOT_CONVERGED),
        (1, False, ExitCode.NOT_CONVERGED),
        (0, None, ExitCode.OK),
        (0, False, ExitCode.NOT_CONVERGED),
    ],
)
def test_only_a_run_without_calls_needs_no_verification(calls: int, converged: bool | None, code: ExitCode) -> None:
    """A run whose calls are all done, and that was not verified, does not end as one that left nothing to do."""
    at, operation = Address.of("group", "A"), "manual-groups.create"
    done = [CallOutcome(call=f"c{n}", address=at, operation=operation, status=CallStatus.DONE) for n in range(calls)]
    assert exit_code(RunResult(outcomes=tuple(done)), converged) is code


@pytest.mark.parametrize(("rate", "seconds"), [(None, None), (4.0, 2.5)])
def test_a_rehearsed_apply_would_take_so_long(rate: float | None, seconds: float | None) -> None:
    """As long as its requests take at the rate of the service; not known without one."""
    assert RehearsalPace(requests=10, rate=rate).seconds == seconds


@pytest.mark.parametrize(
    ("managed", "live", "percent"), [(0, 0, None), (1, 3, 33.3), (9999, 10_000, 99.9), (3, 3, 100)]
)
def test_not_quite_all_is_less_than_a_hundred_percent(managed: int, live: int, percent: float | None) -> None:
    """However many there are."""
    assert ManagedShare(kind="group", managed=managed, live=live).percent == percent


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("31/12/2026", date(2026, 12, 31)),
        ("13/06/2026", date(2026, 6, 13)),
        ("12/06/2026", None),
        ("5.6.2026", date(2026, 6, 5)),
        ("05/06/2026", None),
        ("05/05/2026", date(2026, 5, 5)),
        ("31/13/2026", None),
        ("2026/12/31", date(2026, 12, 31)),
    ],
)
def test_a_date_in_another_order_is_understood_where_it_can_mean_one_day(text: str, meant: date | None) -> None:
    """With points the day is first; with slashes it may be the month."""
    assert date_in_other_order(text) == meant


@pytest.mark.parametrize(
    ("email", "near"),
    [
        *(("bo.eck@acme.example", "bo.ek@acme.example"), ("bo.ek@acne.example", "bo.ek@acme.example")),
        *(("bp@acme.example", "bo@acme.example"), ("new.joiner@acme.example", None), ("cy@acme.example", None)),
    ],
)
def test_an_e_mail_is_near_if_the_name_in_it_is(email: str, near: str | None) -> None:
    """A shared domain alone does not make somebody who is new a typing error."""
    known = ["bo.ek@acme.example", "bo@acme.example", "eeva.laine@acme.example"]
    assert did_you_mean_email(email, known) == (near and f'Did you mean "{near}"?')


@pytest.mark.parametrize(("others", "is_told"), [(4, True), (5, False)])
def test_five_e_mails_are_compared_by_the_name_in_them(others: int, is_told: bool) -> None:
    """Those that are nearest as a whole; of two names, three letters of five are enough."""
    known = ["abcxy@akme.sample", *(f"a123{n}@acme.example" for n in range(others))]
    assert did_you_mean_email("abcde@acme.example", known) == ('Did you mean "abcxy@akme.sample"?' if is_told else None)


def test_a_name_in_place_of_an_e_mail_gets_the_nearest_one() -> None:
    """A text with a domain is an e-mail already, and nobody else's is told for it."""
    emails = ["anna.berg@acme.example", "bo@acme.example"]
    assert nearest_person("Anna Berg", emails).endswith('Did you mean "anna.berg@acme.example"?')
    assert nearest_person("anna.berg@other.example", emails) == "Correct the e-mail."


def test_a_cause_has_those_whose_path_it_changes() -> None:
    """A new assignment has its audience, one that ends those before it, and one that stays those who join or leave."""
    at, terms = Address.of("group", "A"), Terms(mandatory=False, window=Window(None, None))
    audience = Audience(before=0b0110, after=0b1100)
    for before, after, people in ((None, terms, 0b1100), (terms, None, 0b0110), (terms, terms, 0b1010)):
        one = AudienceAssignment(audience=audience, before=before, after=after, cause=at)
        assert compare_access([one], 0, {}).causes == ((at, people),)


@pytest.mark.parametrize(
    ("before", "after", "live", "value"),
    [
        ("a", "b", "a", False),
        ("a", "b", "b", True),
        ("a", "b", "c", None),
        ({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}, True),
        ({"a": 1}, {"a": 2}, {"a": 1, "b": 1}, None),
        ({"a": 1}, None, None, True),
        (None, {"a": 1}, 5, None),
        ("", "b", None, False),
        (None, "b", [], False),
        (None, "b", "c", None),
        (None, {"include": ["a"], "exclude": ["c"]}, ["a", "b"], True),
        (None, {"include": ["a"], "exclude": ["c"]}, ["b"], None),
        (None, {"include": ["a"], "exclude": ["c"]}, ["a", "c"], None),
    ],
)
def test_the_way_back_of_one_value(before: Json, after: Json, live: Json, value: bool | None) -> None:
    """None is needed where it is as before, also in what an entry leaves out; it is not known where others changed it.

    An empty text or list is as good as none. A part of a list fits a list with all that it includes, and nothing that
    it excludes.
    """
    assert restores(before, after, live) is value


@pytest.mark.parametrize(
    ("row_type", "key", "level"), [(GroupRow, "name", UndoLevel.PARTIAL), (PersonRow, "email", UndoLevel.FULL)]
)
def test_a_name_that_another_group_has_is_not_given_back(
    row_type: type[GroupRow | PersonRow], key: str, level: UndoLevel
) -> None:
    """The plan that renames one of two groups of one name says so; an e-mail that two people have can be given back."""
    rows = (row_type(RemoteId("1"), "ann@acme.example"), row_type(RemoteId("2"), "ann@acme.example"))
    change = Change(
        address=Address.of(row_type.listing, "anna@acme.example"),
        action=Action.UPDATE,
        id=rows[0].id,
        about=None,
        source=None,
        before={key: "ann@acme.example"},
        after={key: "anna@acme.example"},
        fields=(),
    )
    live = Snapshot(workspace="", url="", taken_at="", people=2, listings={row_type.listing: Listing(rows=rows)})
    [limited] = with_undo_limits(all_kinds(), live, [change])
    assert limited.undo.level is level


@pytest.mark.parametrize(
    ("states", "only_deleted"),
    [
        ((CallState.DONE, CallState.DONE), False),
        ((CallState.DONE, CallState.FAILED), True),
        ((CallState.IN_FLIGHT, None), True),
        ((CallState.FAILED, CallState.DONE), False),
        ((None, None), False),
    ],
)
def test_a_replaced_resource_was_only_deleted(states: tuple[CallState | None, ...], only_deleted: bool) -> None:
    """Where the run has deleted it, or may have, and has not certainly created it again."""
    at = Address.of("content_target", "A -> everyone")
    calls = (call("c1", at, "content-targets.delete", "DELETE"), call("c2", at, "content-targets.create", "POST"))
    plan = cast("Plan", SimpleNamespace(calls=calls))
    recorded = [SimpleNamespace(call=one.id, state=state) for one, state in zip(calls, states, strict=True) if state]
    run = cast("RecordedRun", SimpleNamespace(name="1", opening=None, calls=recorded))
    change = cast("Change", SimpleNamespace(address=at))
    assert RunToUndo(run, plan, cast("Snapshot", None)).has_only_deleted(change) is only_deleted


def call(id: str, at: Address, operation: str, method: str, *people: str) -> Call:
    return Call(
        id=id, address=at, operation=operation, method=method, path="/", query={}, body=None, people=tuple(people)
    )


def test_people_whom_a_run_may_not_have_added() -> None:
    """Those of calls on that list of that resource which were not certainly done."""
    at, other = Address.of("group", "A"), Address.of("group", "B")
    calls = (
        call("c1", at, "manual-groups.add-members", "POST", "anna@acme.example"),
        call("c2", at, "manual-groups.add-members", "POST", "bo@acme.example"),
        call("c3", at, "manual-groups.add-managers", "POST", "cy@acme.example"),
        call("c4", other, "manual-groups.add-members", "POST", "dee@acme.example"),
    )
    recorded = [SimpleNamespace(call="c1", state=CallState.DONE), SimpleNamespace(call="c2", state=CallState.IN_FLIGHT)]
    run = cast("RecordedRun", SimpleNamespace(name="1", opening=None, calls=recorded))
    past = RunToUndo(run, cast("Plan", SimpleNamespace(calls=calls)), cast("Snapshot", None))
    assert past.unsure_people(cast("Change", SimpleNamespace(address=at)), "members") == {"bo@acme.example"}


def test_references_of_an_entry_are_renamed() -> None:
    """People in lists, a field with its choices, and an audience; the name of the entry itself stays."""

    def rename(kind: str, name: str) -> str:
        return f"{kind}:{name}"

    def rename_part(kind: str, name: str, part: str) -> str:
        return f"{kind}:{name}:{part}"

    kinds = all_kinds()
    group = map_references(kinds["group"], {"name": "A", "members": ["a@x.example"]}, rename, rename_part)
    assert group == {"name": "A", "members": ["user:a@x.example"]}
    conditions: Json = [{"field": "F", "choices": ["C"]}]
    smart = map_references(kinds["smart_group"], {"name": "S", "conditions": conditions}, rename, rename_part)
    assert smart == {
        "name": "S",
        "conditions": [{"field": "custom_field:F", "choices": ["custom_field:F:C"]}],
    }
