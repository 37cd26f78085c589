"""Who has what in a workspace, and what changed between two looks at it: plain sets and dictionaries, by section 9.

Shares no code with lmsconf. Times are whole seconds since 1970; windows include both of their ends.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any, NamedTuple

Get = Callable[..., dict[str, Any]]
"""GET of a path with a query, or POST where there is a body, as JSON."""
Window = tuple[int | None, int | None]
Value = tuple[bool, int | None, int | None]
"""An assignment: mandatory, from, until."""
Paths = frozenset[tuple[str, Value]]
"""The assignments through which somebody has a content, by their audience."""
NO_PATH: Paths = frozenset()
COUNTS = ("gain", "lose", "to_mandatory", "to_optional", "window", "shortened")
LONG_PAGES = {"paging.limit": 1000}
"""What a dialect says of pages where a workspace is looked at: the embedded service computes a listing for each."""
_MONTH = 30 * 86_400


@dataclass(slots=True)
class Look:
    """A workspace as the API tells it. People are user ids; an audience is an address such as `group/Sales`."""

    emails: dict[str, str] = field(default_factory=dict)
    archived: set[str] = field(default_factory=set)
    ends: dict[str, int] = field(default_factory=dict)
    """When accounts will be archived."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    members: dict[str, frozenset[str]] = field(default_factory=dict)
    """Group id → people."""
    names: dict[str, str] = field(default_factory=dict)
    """Group id → address."""
    conditions: dict[str, tuple[tuple[str, tuple[str, ...], str], ...]] = field(default_factory=dict)
    """Smart group id → field, choices and system condition of each."""
    fields: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Field id → name and type."""
    contents: dict[str, str] = field(default_factory=dict)
    assignments: dict[tuple[str, str], Value] = field(default_factory=dict)
    """Content id and audience id → its value."""
    results: dict[tuple[str, str], tuple[str, int | None]] = field(default_factory=dict)
    """Content id and person → state, and when the certificate expires."""

    def active(self) -> set[str]:
        """People who are not archived."""
        return self.emails.keys() - self.archived

    def address_of(self, audience: str) -> str:
        """An audience as plans spell it."""
        if audience in self.emails:
            return f"user/{self.emails[audience].lower()}"
        return self.names.get(audience, "everyone")


def look(get: Get) -> Look:
    """Ask for everything: people, fields, groups with their members, contents with their targets."""
    seen = Look()
    for person in _pages(get, "/users", "users"):
        seen.emails[person["userId"]] = person["email"]
        seen.answers[person["userId"]] = dict(person.get("customFields") or {})
        if person.get("archivedAt") is not None:
            seen.archived.add(person["userId"])
        elif person.get("customArchiveDate") is not None:
            seen.ends[person["userId"]] = person["customArchiveDate"] // 1000
    for one in get("/custom-fields")["customFields"]:
        seen.fields[one["customFieldId"]] = (one["name"], one["type"])
    for group in _pages(get, "/groups", "groups"):
        id = group["groupId"]
        seen.names[id] = f"group/{group['name']}"
        seen.members[id] = frozenset(get(f"/groups/{id}/members")["userIds"])
    for group in _pages(get, "/smart-groups", "smartGroups"):
        id = group["smartGroupId"]
        whole = get(f"/smart-groups/{id}", "includeMembers=true")
        seen.names[id] = f"smart_group/{group['name']}"
        seen.members[id] = frozenset(whole["members"])
        seen.conditions[id] = tuple(
            (one["customFieldId"], tuple(sorted(one.get("choiceIds") or ())), one.get("systemCondition") or "")
            for one in whole["conditions"]
        )
    for content in _pages(get, "/content/all", "courses"):
        id = content["courseId"]
        seen.contents[id] = content["name"]
        for target in get("/content/targets", f"contentId={id}")["targets"]:
            value = (bool(target["mandatory"]), seconds(target.get("startTime")), seconds(target.get("finishTime")))
            seen.assignments[id, target["targetId"]] = value
    while rows := get("/analyse/results", "", {"options": {"skip": len(seen.results), "limit": 1000}})["list"]:
        for row in rows:
            expires = row.get("certificateExpiresAt")
            seen.results[row["contentId"], row["userId"]] = (row["state"], expires and expires // 1000)
    return seen


def seconds(said: str | None) -> int | None:
    """A time of the API or of a plan; None is open."""
    if said is None or said == "":
        return None
    if said.lstrip("-").isdigit():
        return int(said) // 1000
    return int(datetime.fromisoformat(said).astimezone(UTC).timestamp())


def _pages(get: Get, path: str, key: str) -> Iterable[dict[str, Any]]:
    skip = 0
    while rows := get(path, f"skip={skip}&limit=1000")[key]:
        yield from rows
        skip += len(rows)


class Line(NamedTuple):
    """One person and one content: what changed, in the columns of `--people`. `paths` differ between the looks.

    Section 9 does not say which e-mail a row has if the plan changes it; this is the one before.
    """

    person: str
    paths: Paths
    email: str
    content: str
    content_id: str
    change: str
    before: str
    after: str
    hull_before: Window
    hull_after: Window
    shortened: bool


@dataclass(slots=True)
class Evaluated:
    """What changed between two looks. `unsure` are the groups whose members nobody can foretell."""

    lines: list[Line]
    contents: dict[str, Counter[str]]
    """Content id → counts, of those with any change."""
    groups: dict[str, dict[str, int]]
    """Group id → before, after, join and leave, of those whose membership changes."""
    people: dict[str, int]
    mandatory: int
    """People who get a content as mandatory that was not."""
    losing: int
    """People who lose a content, or whose windows are cut short."""
    worst: float
    """The largest part of at least twenty people who had a content that loses it."""
    active: int
    progress: dict[str, Counter[str]]
    """Content id → how far those are who lose it, and under `30`, `60`, `90` whose certificate expires by then."""
    unsure: set[str]
    """Groups that have no members to tell: their members can change, and no or several meanings are left."""
    unsure_contents: set[str]
    estimated: set[str]
    """Groups and contents that rest on live members of a smart group that does not follow from choices."""


def evaluate(before: Look, after: Look, now: int, read: Collection[str] | None = None) -> Evaluated:
    """Compare two looks at time `now`. People archived at `now` count nowhere.

    `read` are the smart groups whose members were looked at before; all of them, if it is not said.
    """
    present_before = before.active()
    present_after = after.active() - before.archived
    lines: list[Line] = []
    cut: set[str] = set()
    soon: set[str] = set()
    contents: dict[str, Counter[str]] = {}
    worst = 0.0
    for content in before.contents.keys() | after.contents.keys():
        was, will = _paths(before, content, present_before, now), _paths(after, content, present_after, now)
        counts: Counter[str] = Counter(before=len(was), after=len(will), keep=0, **dict.fromkeys(COUNTS, 0))
        name = before.contents.get(content) or after.contents[content]
        for person in was.keys() | will.keys():
            email = before.emails.get(person) or after.emails[person]
            line = _line((person, email, name, content), was.get(person, NO_PATH), will.get(person, NO_PATH), now)
            counts[line.change] += 1
            counts["shortened"] += line.shortened
            if line.shortened:
                cut.add(email)
            end = _sooner_end(before, after, person)
            if was.get(person) and will.get(person) and _ends_within(was[person], now, end):
                soon.add(email)
            if line.change != "keep":
                lines.append(line)
        if any(counts[count] for count in COUNTS):
            contents[content] = counts
        if len(was) >= 20:
            worst = max(worst, counts["lose"] / len(was))
    shown = _what_words_may_mean(before, before.conditions.keys() if read is None else read)
    unsure = {id for id in after.conditions if _cannot_be_foretold(before, after, id, shown)}
    inexact = {id for one in (before, after) for id in one.conditions if not follows_from_choices(one, id)}
    groups = _groups(before, after, present_before, present_after)
    people = {count: len({line.email for line in lines if line.change == count}) for count in COUNTS}
    people["shortened"] = len(cut)
    must = {line.email for line in lines if line.after == "mandatory" and line.before != "mandatory"}
    losing = {line.email for line in lines if line.change == "lose"} | cut | soon
    counted = (people, len(must), len(losing), worst, len(present_before))
    rests = (unsure, _resting(before, after, unsure), inexact | _resting(before, after, inexact))
    progress = {content: _progress(before, content, lines, now) for content in contents}
    return Evaluated(lines, contents, groups, *counted, progress, *rests)


def _progress(look: Look, content: str, lines: Iterable[Line], now: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        if line.content_id == content and line.change == "lose":
            state, expires = look.results.get((content, line.person), ("NOT_STARTED", None))
            counts[state.lower()] += 1
            for days in (30, 60, 90):
                counts[str(days)] += expires is not None and now <= expires <= now + days * 86_400
    return counts


def _resting(before: Look, after: Look, groups: set[str]) -> set[str]:
    """The contents that are assigned to one of the groups."""
    return {content for look in (before, after) for content, audience in look.assignments if audience in groups}


def _paths(look: Look, content: str, present: set[str], now: int) -> dict[str, Paths]:
    """Person → the assignments through which they have the content: audience id and value."""
    found: dict[str, set[tuple[str, Value]]] = {}
    for (of, audience), value in look.assignments.items():
        until = value[2]
        if of != content or (until is not None and until < now):
            continue
        if audience in look.members:
            held: Iterable[str] = look.members[audience]
        else:
            held = [audience] if audience in look.emails else look.emails
        for person in set(held) & present:
            found.setdefault(person, set()).add((audience, value))
    return {person: frozenset(paths) for person, paths in found.items()}


def _sooner_end(before: Look, after: Look, person: str) -> int | None:
    """When an account will be archived that was not to be so early before."""
    was, will = before.ends.get(person), after.ends.get(person)
    return will if will is not None and (was is None or will < was) else None


def _line(who: tuple[str, str, str, str], was: Paths, will: Paths, now: int) -> Line:
    person, *columns = who
    words, hulls = (_word(was), _word(will)), (_hull(was), _hull(will))
    if not was or not will:
        change = "gain" if will else "lose"
    elif words[0] != words[1]:
        change = f"to_{words[1]}"
    else:  # a gap that opens within the hull is told by `shortened` alone
        change = "keep" if hulls[0] == hulls[1] else "window"
    shortened = bool(was and will) and _loses_an_instant(was, will, now)
    return Line(person, was ^ will, *columns, change, *words, *hulls, shortened)


def _word(paths: Paths) -> str:
    if not paths:
        return "none"
    return "mandatory" if any(mandatory for _, (mandatory, _, _) in paths) else "optional"


def _hull(paths: Paths) -> Window:
    """From the earliest beginning to the latest end; open where one is."""
    starts, ends = ([value[at] for _, value in paths] for at in (1, 2))
    start = None if None in starts else min((one for one in starts if one is not None), default=None)
    return start, None if None in ends else max((one for one in ends if one is not None), default=None)


def _ends_within(was: Paths, now: int, end: int | None) -> bool:
    """Whether an account ends within thirty days, while a window is open or is still to open until then."""
    last = now + _MONTH
    return (
        end is not None
        and any((start is None or start <= last) and (until is None or end <= until) for _, (_, start, until) in was)
        and end <= last
    )


def _loses_an_instant(was: Paths, will: Paths, now: int) -> bool:
    """Whether a second between now and thirty days from now is in a window before and in none after.

    If there is one, then also one at which a window before begins, or just after a window after ends, or a bound.
    """
    tried = {now, now + _MONTH}
    tried |= {start for _, (_, start, _) in was if start is not None}
    tried |= {end + 1 for _, (_, _, end) in will if end is not None}
    return any(_covered(was, at) and not _covered(will, at) for at in tried if now <= at <= now + _MONTH)


def _covered(paths: Paths, at: int) -> bool:
    return any((start is None or start <= at) and (end is None or at <= end) for _, (_, start, end) in paths)


def _groups(before: Look, after: Look, present_before: set[str], present_after: set[str]) -> dict[str, dict[str, int]]:
    changed = {}
    for id in before.members.keys() | after.members.keys():
        was = before.members.get(id, frozenset()) & present_before
        will = after.members.get(id, frozenset()) & present_after
        if was != will:
            changed[id] = {"before": len(was), "after": len(will), "join": len(will - was), "leave": len(was - will)}
    return changed


def follows_from_choices(look: Look, id: str) -> bool:
    """Whether all conditions of a smart group are choices of fields that have them, with no system condition."""
    return all(
        choices and system == "" and look.fields[one][1] != "TEXT"
        for one, choices, system in look.conditions.get(id, ())
    )


Use = tuple[str, bool]
"""A system condition, and whether it is beside choices."""
Meaning = dict[Use, str]
"""What each use means: `any`, `all` or `choices`."""


def _uses(look: Look, id: str) -> set[Use]:
    return {(system, bool(choices)) for _, choices, system in look.conditions.get(id, ()) if system}


def _has_text(look: Look, id: str) -> bool:
    return any(look.fields[one][1] == "TEXT" for one, _, _ in look.conditions.get(id, ()))


def _what_words_may_mean(look: Look, read: Collection[str]) -> list[Meaning]:
    """All combinations of meanings that give exactly the members of every group that was read."""
    groups = [id for id in look.conditions if id in read and _uses(look, id) and not _has_text(look, id)]
    uses = sorted({use for id in groups for use in _uses(look, id)})
    every = (dict(zip(uses, means, strict=True)) for means in product(("any", "all", "choices"), repeat=len(uses)))
    return [one for one in every if all(_meeting(look, id, one) == look.members[id] & look.active() for id in groups)]


def _meeting(look: Look, id: str, meaning: Meaning) -> frozenset[str]:
    """The active people who meet all conditions of a smart group."""
    found = look.active()
    for field_id, choices, system in look.conditions[id]:
        means = meaning[system, bool(choices)] if system else "choices"
        if means != "all":
            picked = {person: _picked(look, person, field_id) for person in found}
            found = {person for person in found if picked[person] & set(choices) or (means == "any" and picked[person])}
    return frozenset(found)


def _picked(look: Look, person: str, field_id: str) -> set[str]:
    """The ids of the choices that somebody has answered."""
    answer = look.answers.get(person, {}).get(look.fields[field_id][0]) or {}
    return {choice["choiceId"] for choice in answer.get("choices", ())}


def _said_by(look: Look, person: str, name: str) -> object:
    """An answer without the names of its choices."""
    answer = look.answers.get(person, {}).get(name)
    return {choice["choiceId"] for choice in answer["choices"]} if answer and "choices" in answer else answer


def _cannot_be_foretold(before: Look, after: Look, id: str, shown: Sequence[Meaning]) -> bool:
    """Whether a smart group's members can change, and the meanings that are left do not tell how."""
    if follows_from_choices(after, id) or not _can_change(before, after, id):
        return False
    if _has_text(after, id):
        return True
    new = sorted(_uses(after, id) - {use for one in shown for use in one})
    # Unless members show something else, IS_ANY beside choices means these.
    open_to = [("choices",) if use == ("IS_ANY", True) else ("any", "all", "choices") for use in new]
    every = [dict(zip(new, means, strict=True)) for means in product(*open_to)]
    return len({_meeting(after, id, one | more) for more in every for one in shown}) != 1


def _can_change(before: Look, after: Look, id: str) -> bool:
    """Whether conditions or the answers that they look at differ, or somebody new meets all that are choices alone."""
    was, will = before.conditions.get(id, ()), after.conditions[id]
    if was != will:
        return True
    plain = [(one, choices) for one, choices, system in will if choices and not system]
    new = after.active() - before.emails.keys()
    if any(all(_picked(after, person, one) & set(choices) for one, choices in plain) for person in new):
        return True
    names = {(before.fields.get(one, after.fields[one])[0], after.fields[one][0]) for one, _, _ in will}
    return any(
        _said_by(before, person, old) != _said_by(after, person, new)
        for person in after.emails.keys() & before.emails.keys()
        for old, new in names
    )


def explaining(line: Line, before: Look, after: Look) -> list[set[str]]:
    """For each path that exists only before or only after: the addresses that could be why."""
    every = []
    for audience, _ in line.paths:
        could = {look.address_of(line.person) for look in (before, after) if line.person in look.emails}
        for look in (before, after):
            address = look.address_of(audience)
            could |= {f"content_target/{line.content} -> {address}", address}
            fields = [one for one, _, _ in look.conditions.get(audience, ())]
            could |= {
                f"custom_field/{side.fields[one][0]}"
                for side in (before, after)
                for one in fields
                if one in side.fields
            }
        every.append(could - {"everyone"})
    return every
