"""Random small workspaces: what a seed holds, with names that are hard to get right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hypothesis import strategies as st

from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.model.names import normalize_name

T = TypeVar("T")

NAMES: Final = (
    "Sales", "SALES", " Sales", "Café", "Cafe\u0301", "a/b", "a -> b", "x -> group/a", "back\\slash", "\\", "/",
    "🚒 Fire", "日本語", "x" * 300, "no", "null", "1.5", "{a}", "[b]", "*", "!x", "#1", "a: b", "$(v)", "%41", "all",
    "everyone", "Straße", "STRASSE", "İ", "(vacant name)", "(old)", "lmsconf renames g1", "user id p1",
    "choice id ch-1", "e\u0323\u0301",
)  # fmt: skip
"""Look-alikes, one name in two normal forms, what addresses escape, and texts that mean something elsewhere."""

EMAILS: Final = (
    "anna@x.example",
    "BO@x.example",
    "Åsa@x.example",
    "straße@x.example",
    "e\u0301va@x.example",
    "f+g@x.io",
)
TYPES: Final = ("CHOICE", "MULTI_SELECT", "TEXT")
SYSTEMS: Final = ("IS_ANY", "IS_NOT", "SOMETHING_NEW")
WINDOWS: Final = (
    (None, None), ("2024-02-29T00:00:00Z", None), (None, "2027-12-31T22:59:59Z"),
    ("2025-06-01T12:30:00+02:00", "2026-06-01T12:30:00.000Z"),
)  # fmt: skip
Entry = dict[str, object]


class Dice:
    """Choices that hypothesis makes, so that it can make them simpler."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def chance(self, of: int) -> bool:
        """Once in `of` times."""
        return self.number(1, of) == of

    def pick(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)]

    def some(self, items: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        """Some of the items, none twice, in any order."""
        size = self.number(min(least, len(items)), min(len(items), len(items) if most is None else most))
        left, out = list(items), []
        for _ in range(size):
            out.append(left.pop(self.number(0, len(left) - 1)))
        return out

    def name(self) -> str:
        if self.number(0, 3):
            return self.pick(NAMES)
        return self._draw(st.text("aAbB åÅßé\u0301/\\>-:#'\"{}[]%&*!|`~@,.?🚒日", min_size=1, max_size=6))


@dataclass(slots=True, kw_only=True)
class Field:
    """A custom field; `choices` are ids and names."""

    id: str
    name: str
    type: str
    choices: list[tuple[str, str]] = field(default_factory=list)
    details: Entry = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Group:
    """A group of either kind. A manual one has members, by e-mail; a smart one has conditions, by name."""

    id: str
    name: str
    managers: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    conditions: list[Entry] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class RandomWorkspace:
    """What a workspace holds. Contents are id → name; targets name a content and an audience of the seed's words.

    answers: e-mail → name of a field → answer.
    """

    people: dict[str, str] = field(default_factory=dict)
    archived: set[str] = field(default_factory=set)
    admins: set[str] = field(default_factory=set)
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    smart_groups: list[Group] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)
    targets: list[tuple[str, object, Entry]] = field(default_factory=list)
    answers: dict[str, Entry] = field(default_factory=dict)
    dialect: dict[str, str | int] = field(default_factory=dict)

    def seed(self) -> dict[str, object]:
        """The world as the values of a seed file."""
        return {
            "people": [
                {"id": id, "email": email, "archived": email in self.archived, "admin": email in self.admins}
                | {"answers": self.answers.get(email, {})}
                for email, id in self.people.items()
            ],
            "custom_fields": [
                {"name": one.name, "type": one.type, **one.details}
                | ({} if one.type == "TEXT" else {"choices": [name for _, name in one.choices]})
                for one in self.fields
            ],
            "groups": [
                {"id": one.id, "name": one.name, "members": one.members, "managers": one.managers}
                for one in self.groups
            ],
            "smart_groups": [
                {"id": one.id, "name": one.name, "conditions": one.conditions, "managers": one.managers}
                for one in self.smart_groups
            ],
            "content": [{"id": id, "name": name} for id, name in self.contents.items()],
            "content_targets": [
                {"content": content, "assign_to": [audience], **value} for content, audience, value in self.targets
            ],
        }


@st.composite
def worlds(draw: st.DrawFn) -> RandomWorkspace:
    """A workspace with a few of everything, under any dialect."""
    dice, world = Dice(draw), RandomWorkspace()
    _dialect(dice, world)
    for number, email in enumerate(EMAILS[: dice.number(1, len(EMAILS))], 1):
        world.people[email] = f"p{number}"
        if dice.chance(5):
            world.archived.add(email)
    _fields(dice, world)
    people = list(world.people)
    for number in range(dice.number(0, 4)):
        members, managers = dice.some(people), dice.some(people, most=2)
        world.groups.append(Group(id=f"g{number}", name=dice.name(), members=members, managers=managers))
    for number in range(dice.number(0, 3) if world.fields else 0):
        conditions = [condition(dice, choices_of(world)) for _ in range(dice.number(1, 2))]
        managers = dice.some(people, most=2)
        world.smart_groups.append(Group(id=f"s{number}", name=dice.name(), managers=managers, conditions=conditions))
    _targets(dice, world)
    return world


def _dialect(dice: Dice, world: RandomWorkspace) -> None:
    rules: tuple[tuple[str, tuple[str | int, ...]], ...] = (
        ("custom-fields.in-use", ("condition", "removed-choice")),
        ("custom-fields.clear-description", ("empty", "null")),
        ("content-targets.on-existing", ("update", "recreate")),
        ("content-targets.time-format", ("auto", "iso", "iso-local", "epoch-ms", "epoch-ms-number")),
        ("content-targets.time-zone", ("UTC", "Asia/Kolkata")),
        ("content-targets.clear-time", ("null", "omit", "empty")),
        ("manual-groups.add.batch", (100, 1)),
        ("paging.limit", (100, 2)),
    )
    for key, values in rules:
        world.dialect[key] = dice.pick(values)


def _fields(dice: Dice, world: RandomWorkspace) -> None:
    choice_ids = 0
    names: list[str] = []
    for _ in range(dice.number(0, 3)):
        names.append(unlike(dice.name(), names))
        type, choices = dice.pick(TYPES), list[tuple[str, str]]()
        for _ in range(0 if type == "TEXT" else dice.number(1, 4)):
            choice_ids += 1
            choices.append((f"ch-{choice_ids}", unlike(dice.name(), [name for _, name in choices])))
        details = {key: dice.chance(2) for key in dice.some(("hidden", "locked", "optional"))}
        said: Entry = {"description": dice.name()} if dice.chance(2) else {}
        id = f"f-{len(world.fields) + 1}"
        world.fields.append(Field(id=id, name=names[-1], type=type, choices=choices, details={**details, **said}))
    if dice.chance(12):  # once in a while the workspace is full
        for number in range(len(world.fields) + 1, MOST_FIELDS + 1):
            world.fields.append(Field(id=f"f-{number}", name=f"Field {number}", type="TEXT"))


def unlike(name: str, others: Sequence[str]) -> str:
    """The name, or one made from it that none of the others is equal to after NFC."""
    taken = {normalize_name(other) for other in others}
    while normalize_name(name) in taken:
        name += "'"
    return name


def choices_of(world: RandomWorkspace) -> dict[str, list[str]]:
    """Each field's name with those of its choices."""
    return {one.name: [name for _, name in one.choices] for one in world.fields}


def condition(dice: Dice, fields: dict[str, list[str]]) -> Entry:
    """What a smart group may ask of one of the fields."""
    name = dice.pick(list(fields))
    said: Entry = {"field": name}
    if fields[name] and dice.number(0, 3):
        said["choices"] = dice.some(fields[name], least=1)
    if "choices" not in said or dice.chance(4):
        said["system_condition"] = dice.pick(SYSTEMS)
    return said


def answer(dice: Dice, type: str, choices: Sequence[str]) -> object:
    """What somebody may answer to a field of a type."""
    if type == "TEXT":
        return dice.name()
    return dice.some(choices, least=1) if type == "MULTI_SELECT" else dice.pick(choices)


def answer_all(dice: Dice, world: RandomWorkspace) -> None:
    """Let everybody answer some of the fields."""
    for email in world.people:
        for one in dice.some([one for one in world.fields if one.type == "TEXT" or one.choices], most=4):
            world.answers.setdefault(email, {})[one.name] = answer(dice, one.type, [name for _, name in one.choices])


def _targets(dice: Dice, world: RandomWorkspace) -> None:
    for number in range(dice.number(0, 3)):
        world.contents[f"c{number}"] = dice.name()
    alone = [name for name, times in Counter(world.contents.values()).items() if times == 1]
    audiences: list[object] = ["everyone"]
    for key, groups in (("group", world.groups), ("smart_group", world.smart_groups)):
        audiences += [{key: name} for name, times in Counter(one.name for one in groups).items() if times == 1]
    audiences += [{"user": email} for email in world.people]
    for content in alone:
        for audience in dice.some(audiences, most=3):
            start, finish = dice.pick(WINDOWS)
            value: Entry = {"mandatory": dice.chance(2)}
            value.update({"visible_from": start} if start else {})
            value.update({"visible_until": finish} if finish else {})
            world.targets.append((content, audience, value))
