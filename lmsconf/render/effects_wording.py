"""Effects on people in words, shared by all formats: numbers over all contents, and what they rest on.

Results are not escaped. `effects_sentences` has the sentences about single contents.

effects_headline  one sentence with the number of people by what changes for them
effects_caveats   why numbers are estimates or not known, and what is not counted
predicted_line    the same sentence for an apply report
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from lmsconf.model.effects import AccessChange, AccessCounts, Basis, Effects, PersonEffect, PredictedTotals
from lmsconf.model.plan import Plan
from lmsconf.render.resource_wording import count_noun

EFFECTS_HEADING: Final = "Effects on people"
NOT_KNOWN: Final = "not known"
NOT_COMPUTED: Final = "not computed (--no-effects)."
GROUP_NOUNS: Final = ("group", "groups")
"""How groups and smart groups are counted together."""
MOST_PEOPLE: Final = 5_000
"""How many people a page shows. With more it has none: a search that finds only some would mislead."""
_MOST_REASONS: Final = 5


class AccessChangeWords(NamedTuple):
    """The words for one number: `lead` around the name of a content, `tail` where another clause named it already.

    total: of people, over all contents.
    """

    name: str
    lead: tuple[str, str]
    tail: str
    total: str


CHANGE_WORDS: Final = (
    AccessChangeWords("lose", ("{people} {in_group}{lose} ", ""), "{people} {lose} it", "{people} {lose} content"),
    AccessChangeWords(
        "to_mandatory",
        ("", " becomes mandatory for {people} who had it as optional"),
        "it becomes mandatory for {number} who had it",
        "{people} must take what was optional",
    ),
    AccessChangeWords(
        "shortened",
        ("The window of ", " is cut short within the next 30 days for {people}"),
        "its window is cut short within the next 30 days for {number}",
        "for {number} a window is cut short within 30 days",
    ),
    AccessChangeWords("gain", ("{people} {gain} ", ""), "{people} {gain} it", "{people} {gain} content"),
    AccessChangeWords(
        "to_optional",
        ("", " becomes optional for {people} who had it as mandatory"),
        "it becomes optional for {number}",
        "{people} need not take what was mandatory",
    ),
    AccessChangeWords(
        "window",
        ("The window of ", " changes for {people}"),
        "its window changes for {number}",
        "for {number} the window changes",
    ),
)
"""Losses first, then who must, then windows that are cut short, gains last."""


def number_of(counts: AccessCounts, name: str) -> int | None:
    """Return one of the counts by its name."""
    number: int | None = getattr(counts, name)
    return number


def count_words(number: int, in_group: str = "") -> dict[str, str]:
    """Return the words for the placeholders of AccessChangeWords."""
    one = number == 1
    return {
        "people": count_noun(number, "person", "people"),
        "number": f"{number:,}",
        "lose": "loses" if one else "lose",
        "gain": "gains" if one else "gain",
        "in_group": in_group,
    }


def format_count(number: int | None) -> str:
    """`1,200`, or `not known`."""
    return NOT_KNOWN if number is None else f"{number:,}"


def effects_headline(plan: Plan) -> str:
    """Return the numbers of people by what changes for them, over all contents, as one sentence without a subject."""
    effects = plan.effects
    if effects.groups and effects.basis is not Basis.OFF and not effects.people.any:
        return f"nobody's access to content changes; members change in {count_noun(len(effects.groups), *GROUP_NOUNS)}."
    return totals_sentence(effects.totals, _required(plan))


def tells_effects(plan: Plan) -> bool:
    """Whether a plan says anything about people: it changes something, or its effects were not computed."""
    return bool(plan.changes) or plan.effects.basis is Basis.OFF


def _required(plan: Plan) -> int | None:
    """Return for how many people a content becomes mandatory, new assignments included, as the guard counts them."""
    counted = [measure.taken for measure in plan.measures if measure.guard == "mandatory" and measure.counts]
    return None if None in counted else sum(filter(None, counted))


def totals_sentence(totals: PredictedTotals, required: int | None = None) -> str:
    """Return totals as one sentence: `38 people lose content, 4 gain content.`

    required: for how many people a content becomes mandatory, where that is more than those who had it as optional.
    """
    people = totals.people
    if totals.basis is Basis.OFF:
        return NOT_COMPUTED
    if people.lose is None:
        return "how many people lose or gain content is not known."
    if people.gain is None:
        return "nobody loses content; how many people gain content is not known."
    if not people.any:
        return "nobody's access to content changes."
    clauses = [] if people.lose else ["nobody loses content"]
    for change in CHANGE_WORDS:
        if change.name == "to_mandatory" and required and required != people.to_mandatory:
            clauses.append(f"content becomes mandatory for {required:,}")
        elif number := number_of(people, change.name):
            words = count_words(number)
            # Only the first number says what it counts.
            clauses.append(change.total.format(**{**words, "people": words["number" if clauses else "people"]}))
    return f"{', '.join(clauses)}{' (estimate)' if totals.basis is Basis.ESTIMATE else ''}."


def predicted_line(predicted: PredictedTotals | None) -> str:
    """Return what a plan predicted, for an apply report; empty if nobody's access changes."""
    if predicted is None or not predicted.people.any:
        return ""
    return f"Predicted {EFFECTS_HEADING[:1].lower()}{EFFECTS_HEADING[1:]}: {totals_sentence(predicted)}"


def effects_caveats(effects: Effects) -> Iterator[str]:
    """Yield why numbers are estimates or not known, what is not counted, and what was read."""
    if effects.basis is Basis.OFF:
        return
    heading = _REASONS_HEADINGS.get(effects.basis, "Not known")
    reasons = [_limited(reason) for reason in effects.reasons[:_MOST_REASONS]]
    more = len(effects.reasons) - _MOST_REASONS
    if reasons:
        yield f"{heading}: {'; '.join(reasons)}{f'; and {more:,} more reasons' if more > 0 else ''}."
    if effects.contents or effects.people.any:
        yield " ".join(filter(None, ("Access through programs or purchases is not counted.", _calibrated(effects))))


_ACCESS_CHANGES: Final = {
    AccessChange.GAIN: "gains",
    AccessChange.LOSE: "loses",
    AccessChange.TO_MANDATORY: "becomes mandatory",
    AccessChange.TO_OPTIONAL: "becomes optional",
    AccessChange.WINDOW: "window changes",
}


def access_change(row: PersonEffect) -> str:
    """`window changes, cut short`: what changes for one person."""
    return f"{_ACCESS_CHANGES[row.change]}{', cut short' if row.shortened else ''}"


def access(word: str, start: str | None, finish: str | None) -> str:
    """`mandatory, until 2026-12-31T22:59:59Z`."""
    bounds = (f"from {start}" if start else "", f"until {finish}" if finish else "")
    return ", ".join([word, *filter(None, bounds)])


_REASONS_HEADINGS: Final = {
    Basis.ESTIMATE: "Why these numbers are an estimate",
    Basis.UNKNOWN: "Why numbers are not known",
}
_REASON_SIZE: Final = 300


def _limited(reason: str) -> str:
    text = reason if len(reason) <= _REASON_SIZE else f"{reason[:_REASON_SIZE]}…"
    return text.rstrip(".")


def _calibrated(effects: Effects) -> str:
    compared = effects.calibration
    sent = f"{count_noun(effects.requests, 'request')} {'was' if effects.requests == 1 else 'were'} sent to know this."
    groups = count_noun(compared.groups, "smart group")
    equal = (
        f"Of {groups} compared, {compared.exact:,} {'has' if compared.exact == 1 else 'have'} the predicted members."
    )
    return " ".join(filter(None, (sent if effects.requests else "", equal if compared.groups else "")))
