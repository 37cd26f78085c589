"""Small pure functions of the model, at their limits."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, date, datetime, time

import pytest

from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address
from lmsconf.model.forms import form_to_json, sort_items
from lmsconf.model.names import confusable_skeleton, nearest_name, normalize_name
from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallStatus
from lmsconf.model.plan import Action, Change
from lmsconf.model.scope import VerifiedScope, VerifyMode
from lmsconf.model.settings_changes import IN_USE, diff_settings
from lmsconf.model.text_limits import is_representable
from lmsconf.model.time_formats import local_to_utc
from lmsconf.planner.redaction import pseudonym


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


@pytest.mark.parametrize("offset", ["Z", "+01", "+0130", "+01:30", "-0330"])
def test_offsets_of_times_have_three_spellings(offset: str) -> None:
    """Hours alone, hours and minutes together, and with a colon."""
    minutes = {"Z": 0, "+01": 60, "+0130": 90, "+01:30": 90, "-0330": -210}[offset]
    moment = local_to_utc(date(2026, 1, 2), time(12, 0), offset)
    assert moment.tzinfo is UTC
    assert (datetime(2026, 1, 2, 12, tzinfo=UTC) - moment).total_seconds() == minutes * 60


@pytest.mark.parametrize(
    ("char", "is_invisible"), [("\ufe00", True), ("\ufe0f", True), ("\ufdff", False), ("\ufe10", False)]
)
def test_variation_selectors_are_invisible(char: str, is_invisible: bool) -> None:
    """The sixteen of them are dropped where names are compared by their looks, and their neighbours are not."""
    assert (confusable_skeleton(f"Sales{char}") == confusable_skeleton("Sales")) is is_invisible


@pytest.mark.parametrize(("marks", "is_composed"), [(29, True), (30, True), (31, False)])
def test_a_pile_of_marks_is_not_normalised(marks: int, is_composed: bool) -> None:
    """Up to thirty combining marks in a row a long name is brought to NFC; with more it stays as it is."""
    name = "x" * 300 + "e" + "\u0301" * marks
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
        ("never", None, False),
        ("condition", "never", True),
        ("removed-choice", "condition", False),
    ],
)
def test_fewer_refusals_are_a_weaker_setting(base: str | None, now: str | None, is_weaker: bool) -> None:
    """What counts as a field in use: each value refuses less than the one before it, and none is the strictest."""
    (change,) = diff_settings({IN_USE: base} if base else {}, {IN_USE: now} if now else {})
    assert change.weaker is is_weaker


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
