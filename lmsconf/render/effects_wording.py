"""Effects on people in words, shared by all formats. Results are not escaped.

effects_headline       one sentence with the number of people by what changes for them
effects_caveats        why numbers are estimates or not known, and what is not counted
predicted_line         the same sentence for an apply report
first_sentences        a sentence for each of the first contents, losses first, with its causes and their places
ContentName, CodeText  the parts of a sentence that a format marks up
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from lmsconf.kinds.shared.kind_names import resource_title, short_title
from lmsconf.model.address import Address
from lmsconf.model.effects import (
    AccessCounts,
    Basis,
    CauseCount,
    ContentEffects,
    Effects,
    PredictedTotals,
)
from lmsconf.model.names import count_noun
from lmsconf.model.plan import Change, Plan, total_taken

EFFECTS_HEADING: Final = "Effects on people"
NOT_KNOWN: Final = "not known"
NOT_COUNTED: Final = "Access through programs or purchases is not counted."
NOT_COMPUTED: Final = "not computed (--no-effects)."
GROUP_NOUNS: Final = ("group", "groups")
"""How groups and smart groups are counted together."""
MOST_PEOPLE: Final = 5_000
"""How many people a page shows. With more it has none: a search that finds only some would mislead."""


class AccessChangeWords(Struct, frozen=True):
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


def count_words(number: int, in_group: str = "") -> dict[str, str]:
    """Return the words for the placeholders of AccessChangeWords."""
    return {
        "people": count_noun(number, "person", "people"),
        "number": f"{number:,}",
        "lose": "loses" if number == 1 else "lose",
        "gain": "gains" if number == 1 else "gain",
        "in_group": in_group,
    }


def format_count(number: int | None) -> str:
    """`1,200`, or `not known`."""
    return NOT_KNOWN if number is None else f"{number:,}"


_UNCHANGED: Final = "nobody's access to content changes"


def effects_headline(plan: Plan) -> str:
    """Return the numbers of people by what changes for them, over all contents, as one sentence without a subject."""
    effects = plan.effects
    if effects.basis is Basis.OFF or effects.people.any:
        return totals_sentence(effects.totals, total_taken("mandatory", plan.measures))
    but_for = (
        ", but for accounts that the plan unarchives"
        if any(problem.code == "people/unarchived" for problem in plan.all_problems)
        else ""
    )
    members = f"; members change in {count_noun(len(effects.groups), *GROUP_NOUNS)}" if effects.groups else ""
    return f"{_UNCHANGED}{but_for}{members}."


def tells_effects(plan: Plan) -> bool:
    """Whether a plan says anything about people: it changes something, or its effects were not computed."""
    return bool(plan.changes) or plan.effects.basis is Basis.OFF


def totals_sentence(totals: PredictedTotals, required: int | None = None) -> str:
    """Return totals as one sentence: `38 people lose content, 4 gain content.`

    required: for how many people a content becomes mandatory, where that is more than those who had it as optional.
    """
    people = totals.people
    match totals:
        case PredictedTotals(basis=Basis.OFF):
            return NOT_COMPUTED
        case PredictedTotals(people=AccessCounts(lose=None)):
            return "how many people lose or gain content is not known."
        case PredictedTotals(people=AccessCounts(gain=None)):
            return "nobody loses content; how many people gain content is not known."
        case PredictedTotals(people=AccessCounts(any=False)):
            return f"{_UNCHANGED}."
    clauses = [] if people.lose else ["nobody loses content"]
    for change in CHANGE_WORDS:
        if change.name == "to_mandatory" and required and required != people.to_mandatory:
            clauses.append(f"content becomes mandatory for {required:,}")
        elif number := getattr(people, change.name):
            words = count_words(number)
            # Only the first number says what it counts.
            clauses.append(change.total.format(**{**words, "people": words["number" if clauses else "people"]}))
    return f"{', '.join(clauses)}{' (estimate)' if totals.basis is Basis.ESTIMATE else ''}."


def predicted_line(predicted: PredictedTotals | None) -> str:
    """Return what a plan predicted, for an apply report; empty if nobody's access changes."""
    if predicted is None or not predicted.people.any:
        return ""
    return f"Predicted effects on people: {totals_sentence(predicted)}"


def effects_caveats(effects: Effects) -> Iterator[str]:
    """Yield why numbers are estimates or not known, what is not counted, and what was read."""
    if effects.basis is Basis.OFF:
        return
    if effects.reasons:
        heading = {
            Basis.ESTIMATE: "Why these numbers are an estimate",
            Basis.UNKNOWN: "Why numbers are not known",
        }.get(effects.basis, "Note")
        reasons = [(one if len(one) <= 300 else f"{one[:300]}…").rstrip(".") for one in effects.reasons[:5]]
        if len(effects.reasons) > 5:
            reasons.append(f"and {len(effects.reasons) - 5:,} more reasons")
        yield f"{heading}: {'; '.join(reasons)}."
    if effects.contents or effects.people.any:
        compared, said = effects.calibration, NOT_COUNTED
        if effects.requests:
            said += f" {count_noun(effects.requests, 'request was', 'requests were')} sent to know this."
        if compared.groups:
            have = count_noun(compared.exact, "has", "have")
            said += f" Of {count_noun(compared.groups, 'smart group')} compared, {have} the predicted members."
        yield said


def access(word: str, start: str | None, finish: str | None) -> str:
    """`mandatory, until 2026-12-31T22:59:59Z`."""
    return ", ".join([word, *filter(None, (f"from {start}" if start else "", f"until {finish}" if finish else ""))])


MOST_CAUSES: Final = 3
"""How many causes a sentence names, and a row of a table of limited size."""


class ContentName(str):
    """The name of a content within a sentence."""


class CodeText(str):
    """An address or a source location within a sentence."""


Phrase: TypeAlias = "tuple[str, ...]"
"""The parts of a sentence: ContentName, CodeText and plain text."""
CausePlaces: TypeAlias = "Mapping[Address, Phrase]"


def cause_places(plan: Plan) -> CausePlaces:
    """Return where each change is declared, or why it is made without a declaration."""
    return {change.address: _place(change) for change in plan.changes}


def _place(change: Change) -> Phrase:
    """`, manifests/groups.yaml:16`, to be written behind an address."""
    place = change.source
    if place is None:
        return () if change.reason is None else (f" ({change.reason})",)
    if not (place.line or place.cell):  # the run that is undone: the plan names it once
        return ()
    return ", ", CodeText(f"{place.file}, {place.cell}" if place.cell else f"{place.file}:{place.line}")


def sort_contents(contents: Sequence[ContentEffects]) -> list[ContentEffects]:
    """Sort by what changes: losses, the largest first, then what is not known, becomes mandatory, and so on."""
    return sorted(contents, key=lambda content: (*_rank(content.counts), content.content, content.id))


def _changes(counts: AccessCounts) -> list[tuple[AccessChangeWords, int]]:
    """Return the changes that concern anybody, with how many; not `window` where all are cut short."""
    left_out = "window" if counts.shortened == counts.window else ""
    words = (change for change in CHANGE_WORDS if change.name != left_out)
    return [(change, number) for change in words if (number := getattr(counts, change.name))]


def _rank(counts: AccessCounts) -> tuple[int, int]:
    if counts.lose is None or counts.gain is None:
        return (1 if counts.lose is None else 5), 0
    ranks = ((2 * CHANGE_WORDS.index(change), -number) for change, number in _changes(counts))
    return next(ranks, (2 * len(CHANGE_WORDS), 0))


def first_sentences(plan: Plan, places: CausePlaces) -> list[tuple[Phrase, Phrase]]:
    """Return what changes for people of each of the first contents, losses first, and what causes it."""
    groups = frozenset(group.address for group in plan.effects.groups)
    return [(_effect(one, groups), _causes(one, places)) for one in sort_contents(plan.effects.contents)[:5]]


def _effect(content: ContentEffects, groups: frozenset[Address]) -> Phrase:
    name, counts = ContentName(content.content), content.counts
    match counts:
        case AccessCounts(lose=None):
            return ("How many people lose or gain ", name, " is not known.")
        case AccessCounts(gain=None):
            return ("Nobody loses ", name, "; how many people gain it is not known.")
    numbers = _changes(counts)
    if not numbers:
        return (name, " changes for nobody.")
    (first, number), *others = numbers
    words = count_words(number, _in_group(content, groups) if first.name == "lose" else "")
    before, behind = (part.format(**words) for part in first.lead)
    details = f": {loss_details(content)}" if counts.lose else ""
    estimate = "Estimate: " if content.basis is Basis.ESTIMATE else ""
    also = "; ".join(change.tail.format(**count_words(number)) for change, number in others)
    more = f" {also[0].upper()}{also[1:]}." if also else ""
    return tuple(filter(None, (estimate, before, name, f"{behind}{details}.{more}")))


def _in_group(content: ContentEffects, groups: frozenset[Address]) -> str:
    """Return `in Sales Nordics ` if everybody who loses a content is in one group whose members change."""
    only = [one for one in content.causes if one.address in groups and one.lose == content.counts.lose]
    return f"in {short_title(only[0].address)} " if only and len(content.causes) == 1 else ""


_PROGRESS: Final = {
    "in_progress": ("is in progress", "are in progress"),
    "approved": ("is approved", "are approved"),
    "failed": ("has failed", "have failed"),
    "expired": ("has expired", "have expired"),
    "not_started": ("has not started", "have not started"),
}


def loss_details(content: ContentEffects) -> str:
    """Return how far those are who lose a content, and how many of their certificates expire soon."""
    progress, lose = content.progress, content.counts.lose
    if progress is None:
        clauses = ["how far they are is not known"]
    elif progress.get("not_started") == lose:
        clauses = ["not started" if lose == 1 else "none of them has started it"]
    else:
        states = (*_PROGRESS, *(state for state in progress if state not in _PROGRESS))
        numbers = [(state, progress[state]) for state in states if progress.get(state)]
        clauses = [
            # Of a single person only the state.
            state.replace("_", " ")
            if lose == 1
            else f"{number:,}{'' if place else ' of them'} {_PROGRESS.get(state, (state, state))[number != 1]}"
            for place, (state, number) in enumerate(numbers)
        ]
    return ", ".join([*clauses, *_certificates(content)])


def _certificates(content: ContentEffects) -> Iterator[str]:
    expiring = content.certificates_expiring or {}
    if content.certificates_expiring is None and content.progress is not None:
        yield "which certificates expire soon is not known"
    first = 60 if expiring.get(60) else next((days for days in sorted(expiring) if expiring[days]), 0)
    if number := expiring.get(first):
        held = count_noun(number, "holds a certificate that expires", "hold certificates that expire")
        yield f"{held} within {first} days"


def _causes(content: ContentEffects, places: CausePlaces) -> Phrase:
    if not content.causes:
        return ()
    if len(content.causes) == 1:
        return ("Cause: ", *cause_phrase(content.causes[0], places)[:-1], ".")  # its count stands before
    # In a sentence about a loss, what others gain through is only counted.
    chosen = [cause for cause in content.causes if cause.lose or not content.counts.lose][:MOST_CAUSES]
    parts = [part for cause in chosen for part in ("; ", *cause_phrase(cause, places))]
    more = len(content.causes) - len(chosen)
    return ("Causes: ", *parts[1:], f"; and {more:,} more." if more > 0 else ".")


def cause_phrase(cause: CauseCount, places: CausePlaces) -> Phrase:
    """`smart_group/Sales Nordics, manifests/groups.yaml:16: 38 lose`. The last part, the count, may be empty."""
    counted = cause_counts(cause)
    return CodeText(resource_title(cause.address)), *places.get(cause.address, ()), counted and f": {counted}"


def cause_counts(cause: CauseCount) -> str:
    """`38 lose, 4 gain`; empty if nobody loses or gains through it."""
    if cause.lose is None or cause.gain is None:
        return "" if cause.lose is None else NOT_KNOWN
    return ", ".join(f"{number:,} {verb}" for number, verb in ((cause.lose, "lose"), (cause.gain, "gain")) if number)


def more_contents(plan: Plan, listed: int) -> str | None:
    """`and 22 more contents`, of those that no sentence is about; None if all were listed."""
    rest = len(plan.effects.contents) - listed
    return f"and {count_noun(rest, 'more content')}" if rest > 0 else None
