"""Random manifests over a random workspace: some of it declared, renamed, pinned or unwanted, some things new.

A wish also knows what it speaks of, key by key, so that everything else can be watched.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from hypothesis import strategies as st
from laws.random_workspaces import (
    TYPES,
    Dice,
    Entry,
    Field,
    Group,
    RandomWorkspace,
    answer,
    answer_all,
    condition,
    worlds,
)

from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP
from lmsconf.model.address import Address
from lmsconf.model.names import casefold_name, exact_pattern, normalize_email, normalize_name

FLAGS: Final = ("hidden", "locked", "optional")
WIRE: Final = {"hidden": "isHidden", "locked": "isLocked", "optional": "isOptional"}
MOMENTS: Final = ("2024-02-29", "2025-06-01T12:30", "2025-06-01T12:30:00+02:00", None)
ENDS: Final = ("2027-12-31", "2026-06-01T12:30:00Z", "2026-10-25T01:59:59", None)
ELSEWHERE: Final = "elsewhere"
SECTIONS: Final = {kind: f"{kind}s" for kind in (CUSTOM_FIELD, GROUP, SMART_GROUP, CONTENT_TARGET)}

Spoken = frozenset[str]
"""The keys of a live thing that a manifest speaks of, as the API spells them; `members-` means some of the members."""
ALL: Final[Spoken] = frozenset({"*"})


@dataclass(slots=True)
class RandomManifests:
    """Manifests, and what they speak of: kind and id → keys, or ALL of it.

    named: for lists of which only a part is spoken of, the ids that are.
    """

    sections: dict[str, list[Entry]] = field(default_factory=dict)
    absent: dict[str, list[Entry]] = field(default_factory=dict)
    ownership: dict[str, tuple[str, ...]] = field(default_factory=dict)
    leave_alone: tuple[str, ...] = ()
    spoken: dict[tuple[str, str], Spoken] = field(default_factory=dict)
    named: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        """The manifests as one document."""
        sections: dict[str, object] = {key: entries for key, entries in self.sections.items() if entries}
        gone = {key: entries for key, entries in self.absent.items() if entries}
        return {**sections, "absent": gone or {"groups": []}}


@dataclass(slots=True)
class Outcome:
    """What becomes of one live thing: `entry` declares it under `name`; without one it goes, or is left alone.

    live, was: its name as it is, and normalized. alone: whether it is the only one of its kind with that name.
    """

    id: str
    live: str
    was: str
    name: str
    alone: bool = True
    entry: Entry = field(default_factory=dict)
    goes: bool = False
    changed: bool = False


@st.composite
def wishes(draw: st.DrawFn) -> tuple[RandomWorkspace, RandomManifests]:
    """A workspace, and manifests that make sense for it."""
    world = draw(worlds())
    return world, _Wishing(Dice(draw), world).run()


@st.composite
def answered_wishes(draw: st.DrawFn, *, declared: bool = True) -> tuple[RandomWorkspace, RandomManifests]:
    """The same with people's answers to custom fields, live and, if so asked, declared."""
    world, dice = draw(worlds()), Dice(draw)
    answer_all(dice, world)
    return world, _Wishing(dice, world).run(answers=declared)


class _Wishing:
    """Decides kind by kind, since later ones name what is left of earlier ones."""

    def __init__(self, dice: Dice, world: RandomWorkspace) -> None:
        self.dice, self.world, self.wish = dice, world, RandomManifests()
        self.fields: dict[str, list[str]] = {}
        self.types: dict[str, str] = {}
        self.shaky: set[str] = set()
        self.numbers = count(1)
        self.declared: list[Address] = []

    def run(self, *, answers: bool = False) -> RandomManifests:
        self._own()
        self._custom_fields()
        if answers:
            self._answers()
        self._content_targets(self._groups(), self._smart_groups())
        self._leave_nothing_declared_alone()
        return self.wish

    def _own(self) -> None:
        for kind in (GROUP, SMART_GROUP):
            if self.dice.chance(6):
                self.wish.ownership[kind] = self.dice.pick((("all",), ("*a*", "!S*")))
        if self.dice.chance(5):
            self.wish.ownership[CONTENT_TARGET] = (self.dice.pick(("declared_content", "all")),)
        if self.dice.chance(4):
            patterns = {GROUP: "group/*S*", SMART_GROUP: "smart_group/*", CONTENT_TARGET: "content_target/*everyone"}
            lives = {GROUP: self.world.groups, SMART_GROUP: self.world.smart_groups}
            for kind in self.wish.ownership:
                # What has the name of a declaration is not left alone, and may be its owned twin.
                if len({normalize_name(one.name) for one in lives.get(kind, ())}) < len(lives.get(kind, ("",))):
                    del patterns[kind]
            if patterns:
                self.wish.leave_alone = (self.dice.pick(list(patterns.values())),)

    def _leave_nothing_declared_alone(self) -> None:
        """Takes all that is declared or absent, by its name and the one that it has now, out of what is left alone."""
        wish = self.wish
        for kind in (GROUP, SMART_GROUP):
            named = (str(entry["name"]) for entry in wish.sections.get(SECTIONS[kind], ()))
            self.declared += [Address.of(kind, normalize_name(name)) for name in named]
        exceptions = {f"!{exact_pattern(str(address))}" for address in self.declared}
        assignments = SECTIONS[CONTENT_TARGET]
        for entry in (*wish.sections.get(assignments, ()), *wish.absent.get(assignments, ())):
            said = entry["content"]
            for content in said if isinstance(said, list) else [said]:
                name = normalize_name(str(content["name"] if isinstance(content, dict) else content))
                content_name = exact_pattern(Address.of(GROUP, name).text)
                # A group may have that name, too.
                for audience in ("everyone", "group/everyone", "smart_group/everyone"):
                    exceptions.add(f"!content_target/{content_name} -> {audience}")
        if wish.leave_alone:
            wish.leave_alone = (*wish.leave_alone, *sorted(exceptions))

    # Names

    def _fates(self, kind: str, lives: Sequence[Field | Group]) -> list[Outcome]:
        """What becomes of each live thing of a kind, as far as names go; new names look like nothing else."""
        times = Counter(normalize_name(one.name) for one in lives)
        names = [(one, normalize_name(one.name)) for one in lives]
        fates = [Outcome(one.id, one.name, was, was, times[was] == 1) for one, was in names]
        taken: set[str] = set()
        for fate in fates:
            doom = self.dice.number(0, 9)
            if doom >= 4 and fate.was not in taken:
                fate.entry = {"name": self.dice.pick((fate.live, fate.was))}
                if doom >= 8:
                    self._rename(fate, pinned=not fate.alone or self.dice.chance(2))
                elif not fate.alone:
                    self._pin(fate)
                taken.add(fate.name)
        for fate in fates:
            if not fate.entry and fate.was not in taken and self.dice.chance(6):
                fate.goes = True
                taken.add(fate.was)
                entry: Entry = {"name": fate.live} | ({} if fate.alone else {"id": fate.id})
                self.wish.absent.setdefault(SECTIONS[kind], []).append(entry)
                self.declared.append(Address.of(kind, fate.was))
            if not fate.entry and not fate.goes:
                fate.goes = self._owned(kind, fate.was)
        declared = [fate for fate in fates if fate.entry]
        self._swap([fate for fate in declared if fate.live == fate.name and fate.alone])
        self._chain([fate for fate in declared if fate.alone])
        looks = Counter(casefold_name(Address.of(kind, fate.name).text) for fate in declared)
        self.declared += [Address.of(kind, fate.was) for fate in declared]
        for fate in declared:
            if looks[casefold_name(Address.of(kind, fate.name).text)] > 1:
                self._pin(fate)
        self.wish.spoken |= {(kind, fate.id): ALL for fate in fates if fate.goes}
        return fates

    def _owned(self, kind: str, name: str) -> bool:
        patterns = self.wish.ownership.get(kind, ())
        left_alone = any(matched(str(Address.of(kind, name)), pattern) for pattern in self.wish.leave_alone)
        taken = "all" in patterns or ("*a*" in patterns and "a" in name and not name.startswith("S"))
        return taken and not left_alone

    def _rename(self, fate: Outcome, *, pinned: bool) -> None:
        fate.name = f"{self.dice.name()} renamed {next(self.numbers)}"
        fate.entry["name"] = fate.name
        fate.changed = True
        if pinned:
            self._pin(fate)
        else:
            fate.entry["previously"] = [*(["Never was"] if self.dice.chance(3) else []), fate.live]

    def _pin(self, fate: Outcome) -> None:
        fate.entry.pop("previously", None)
        fate.entry["id"] = self.dice.pick((fate.id, {"sandbox": fate.id, ELSEWHERE: "other"}))

    def _chain(self, fates: Sequence[Outcome]) -> None:
        """One thing takes the name that another one gives up."""
        moved = [one for one in fates if one.changed and "previously" in one.entry]
        still = [one for one in fates if not one.changed and one.live == one.name]
        if moved and still and self.dice.chance(2):
            fate, first = self.dice.pick(still), self.dice.pick(moved)
            fate.name, fate.changed = first.was, True
            fate.entry.update(name=first.live, previously=[fate.live])

    def _swap(self, fates: Sequence[Outcome]) -> None:
        """Two or three things change names in a circle."""
        if len(fates) < 2 or not self.dice.chance(4):
            return
        circle = self.dice.some(fates, least=2, most=3)
        names = [fate.name for fate in circle]
        for fate, name in zip(circle, [*names[1:], names[0]], strict=True):
            fate.name, fate.changed, fate.entry["name"] = name, True, name
            self._pin(fate)

    def _add(self, kind: str, entry: Entry) -> None:
        if self.dice.chance(8):
            entry["about"] = {"owner": "someone", "since": 2025}
        self.wish.sections.setdefault(SECTIONS[kind], []).append(entry)

    def _new(self, kind: str) -> Iterable[Entry]:
        for _ in range(self.dice.number(0, 2)):
            yield {"name": f"{self.dice.name()} new {next(self.numbers)}"}
        if self.dice.chance(10):
            extra: Entry = {"name": f"Not here {next(self.numbers)}", "only_in": [ELSEWHERE]}
            self.wish.sections.setdefault(SECTIONS[kind], []).append(extra)

    # Custom fields

    def _custom_fields(self) -> None:
        dice, strict = self.dice, self.world.dialect["custom-fields.in-use"] == "condition"
        fates = self._fates(CUSTOM_FIELD, self.world.fields)
        for fate, live in zip(fates, self.world.fields, strict=True):
            if fate.goes:
                self.shaky.add(fate.live)
                continue
            names = [name for _, name in live.choices]
            if fate.entry:
                names = self._field(fate, live)
                if strict and fate.changed:
                    self.shaky.add(fate.live)
            self.fields[fate.name], self.types[fate.name] = names, live.type
        for entry in self._new(CUSTOM_FIELD):
            if len(self.fields) == MOST_FIELDS:
                break
            entry["type"] = type = dice.pick(TYPES)
            fresh = [] if type == "TEXT" else [f"{dice.name()} {n}" for n in range(dice.number(1, 3))]
            entry.update({"choices": fresh} if fresh else {})
            entry.update({key: dice.chance(2) for key in dice.some(FLAGS)})
            entry.update({"description": dice.pick((None, dice.name()))} if dice.chance(2) else {})
            self.fields[normalize_name(str(entry["name"]))] = fresh
            self.types[normalize_name(str(entry["name"]))] = type
            self._add(CUSTOM_FIELD, entry)
        self.renamed = {fate.live: fate.name for fate in fates if not fate.goes}

    def _field(self, fate: Outcome, live: Field) -> list[str]:
        """Completes the entry of a live field, and says which choices it will have."""
        dice, entry = self.dice, fate.entry
        names = [name for _, name in live.choices]
        keys = {"name"}
        if dice.chance(2):
            entry["type"] = live.type
        for key in dice.some(FLAGS):
            entry[key] = dice.chance(2)
            keys.add(WIRE[key])
            fate.changed |= entry[key] != live.details.get(key, False)
        if dice.chance(3):
            entry["description"] = dice.pick((None, "", dice.name()))
            keys.add("description")
            fate.changed |= (entry["description"] or None) != live.details.get("description")
        if live.type != "TEXT" and dice.chance(2):
            names = self._choices(fate, live, keys)
        self._add(CUSTOM_FIELD, entry)
        self.wish.spoken[CUSTOM_FIELD, live.id] = frozenset(keys)
        return names

    def _choices(self, fate: Outcome, live: Field, keys: set[str]) -> list[str]:
        dice, entry = self.dice, fate.entry
        names, said, named = list[str](), list[object](), set[str]()
        for id, name in dice.some(live.choices, least=1):
            item: object = name
            if dice.chance(4):
                fresh = f"{dice.name()} was {next(self.numbers)}"
                ties: tuple[Entry, Entry] = {"id": id}, {"previously": [name]}
                item = {"name": fresh, **dice.pick(ties)}
                name = fresh
            elif dice.chance(4):
                item = {"name": name, "id": id}
            said.append(item)
            names.append(normalize_name(name))
            named.add(id)
        for _ in range(dice.number(0, 2)):
            names.append(f"{dice.name()} more {next(self.numbers)}")
            said.append(names[-1])
        left = [(id, name) for id, name in live.choices if id not in named]
        fate.changed |= set(names) != {normalize_name(name) for _, name in live.choices}
        if dice.chance(3):
            out = dice.some(left)
            entry["choices"] = {"include": said, "exclude": [name for _, name in out]}
            keys.add("choices-")
            self.wish.named[CUSTOM_FIELD, live.id, "choices"] = frozenset(named | {id for id, _ in out})
            return [*names, *(name for id, name in left if (id, name) not in out)]
        entry["choices"] = said
        keys.add("choices")
        return names

    def _answers(self) -> None:
        """Declares answers of some people to fields as they are after the plan."""
        dice = self.dice
        known = [name for name, choices in self.fields.items() if choices or self.types[name] == "TEXT"]
        for email in dice.some(list(self.world.people)) if known else ():
            said = {
                name: None if dice.chance(4) else answer(dice, self.types[name], self.fields[name])
                for name in dice.some(known, least=1, most=3)
            }
            self.wish.sections.setdefault("users", []).append({"email": email, "answers": said})

    # Groups

    def _people(self, kind: str, id: str, key: str) -> tuple[object, str]:
        """A list of people in some spelling, and under which key it is spoken of."""
        people = list(self.world.people)
        some = [self.dice.pick((one, one.upper() if one.isascii() else one)) for one in self.dice.some(people)]
        if not self.dice.chance(3):
            return some, key
        out = [one for one in self.dice.some(people) if normalize_email(one) not in map(normalize_email, some)]
        ids = {normalize_email(one): id for one, id in self.world.people.items()}
        self.wish.named[kind, id, key] = frozenset(ids[normalize_email(one)] for one in [*some, *out])
        return {"include": some, "exclude": out}, f"{key}-"

    def _groups(self) -> list[Outcome]:
        fates = self._fates(GROUP, self.world.groups)
        for fate in fates:
            if fate.entry:
                keys = {"name"}
                for key in self.dice.some(("members", "managers")):
                    fate.entry[key], spoken = self._people(GROUP, fate.id, key)
                    keys.add(spoken)
                self._add(GROUP, fate.entry)
                self.wish.spoken[GROUP, fate.id] = frozenset(keys)
        for entry in self._new(GROUP):
            for key in self.dice.some(("members", "managers")):
                entry[key], _ = self._people(GROUP, "", key)
            self._add(GROUP, entry)
            fates.append(Outcome("", "", "", normalize_name(str(entry["name"])), entry=entry))
        return fates

    def _smart_groups(self) -> list[Outcome]:
        dice = self.dice
        fates = self._fates(SMART_GROUP, self.world.smart_groups)
        shaky = {self.renamed.get(name) for name in self.shaky}
        sure = {name: choices for name, choices in self.fields.items() if name not in shaky}
        for fate, live in zip(fates, self.world.smart_groups, strict=True):
            if fate.goes:
                continue
            uneasy = any(not self._stays(one) for one in live.conditions)
            if uneasy and (not sure or dice.chance(6)):
                uneasy = False  # it may be in the way; the plan foretells that
            declared = [one for one in fates if one.entry]
            if uneasy and not fate.entry and fate.was not in {one.name for one in declared}:
                if not fate.alone or casefold_name(live.name) in {casefold_name(one.name) for one in declared}:
                    continue
                fate.entry = {"name": fate.name}
            if not fate.entry:
                continue
            keys = {"name"}
            if sure and (uneasy or dice.chance(3)):
                keys.add("conditions")
                fate.entry["conditions"] = [condition(dice, sure) for _ in range(dice.number(1, 3))]
            if dice.chance(2):
                fate.entry["managers"], spoken = self._people(SMART_GROUP, fate.id, "managers")
                keys.add(spoken)
            self._add(SMART_GROUP, fate.entry)
            self.wish.spoken[SMART_GROUP, fate.id] = frozenset(keys)
        for entry in self._new(SMART_GROUP) if self.fields else ():
            entry["conditions"] = [condition(dice, self.fields) for _ in range(dice.number(1, 2))]
            if dice.chance(2):
                entry["managers"], _ = self._people(SMART_GROUP, "", "managers")
            self._add(SMART_GROUP, entry)
            fates.append(Outcome("", "", "", normalize_name(str(entry["name"])), entry=entry))
        return fates

    def _stays(self, said: Entry) -> bool:
        """Whether a live condition names only what no change has to take away."""
        name = str(said["field"])
        if name in self.shaky:
            return False
        live = next(one for one in self.world.fields if one.name == name)
        declared = self.wish.named.get((CUSTOM_FIELD, live.id, "choices")) is not None
        spoken = "choices" in self.wish.spoken.get((CUSTOM_FIELD, live.id), ())
        return not (declared or spoken) or "choices" not in said

    # Assignments

    def _content_targets(self, groups: list[Outcome], smart: list[Outcome]) -> None:
        dice, world = self.dice, self.world
        audiences: list[tuple[str, Entry | str]] = [("EVERYONE", "everyone")]
        for key, fates in (("group", groups), ("smart_group", smart)):
            times = Counter(fate.name for fate in fates)
            audiences += [(f.id, {key: f.name}) for f in fates if times[f.name] == 1 and not f.goes]
        audiences += [(id, {"user": one}) for one, id in world.people.items()]
        times = Counter(normalize_name(name) for name in world.contents.values())
        spoken_content = set()
        for id, name in world.contents.items():
            content: object = name
            if times[normalize_name(name)] > 1:
                # Two entries that speak of one name may not mean two contents.
                if normalize_name(name) in spoken_content:
                    continue
                content = {"name": name, "id": id}
            if not dice.chance(2):
                continue
            spoken_content.add(normalize_name(name))
            chosen = dice.some(audiences, least=1, most=4)
            wanted = dice.number(0, len(chosen))
            if chosen[:wanted]:
                self._assign(id, content, chosen[:wanted])
            if chosen[wanted:]:
                self._unassign(id, content, chosen[wanted:])

    def _assign(self, id: str, content: object, audiences: list[tuple[str, Entry | str]]) -> None:
        dice = self.dice
        entry: Entry = {"content": content, "assign_to": []}
        entry.update({"mandatory": dice.chance(2)} if dice.chance(2) else {})
        entry.update({"visible_from": dice.pick(MOMENTS)} if dice.chance(2) else {})
        items: list[object] = []
        for audience, said in audiences:
            own: Entry = {"mandatory": dice.chance(2)} if dice.chance(3) else {}
            own.update({"visible_until": dice.pick(ENDS)} if dice.chance(3) else {})
            whole: Entry = {"everyone": True} if isinstance(said, str) else dict(said)
            items.append(whole | own if own else said)
            self.wish.spoken[CONTENT_TARGET, f"{id}/{audience}"] = ALL
        entry["assign_to"] = items
        self._add(CONTENT_TARGET, entry)

    def _unassign(self, id: str, content: object, audiences: list[tuple[str, Entry | str]]) -> None:
        for audience, _ in audiences:
            self.wish.spoken[CONTENT_TARGET, f"{id}/{audience}"] = ALL
        entry: Entry = {"content": content, "assign_to": [said for _, said in audiences]}
        self.wish.absent.setdefault(SECTIONS[CONTENT_TARGET], []).append(entry)


def matched(address: str, pattern: str) -> bool:
    """Whether a `leave_alone` pattern of this module fits, without asking lmsconf."""
    start, _, rest = pattern.partition("*")
    parts = [part for part in rest.split("*") if part]
    return address.startswith(start) and all(part in address[len(start) :] for part in parts)
