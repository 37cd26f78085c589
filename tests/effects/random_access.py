"""Random workspaces and manifests about who has what: windows, overlaps, answers, archiving, deletions, all kinds.

Also archive dates live and declared, swaps of names by pins, renamed fields, lists from CSV files, `for_each` over some
or no values, and what ownership deletes.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, TypeVar

T = TypeVar("T")
Entry = dict[str, Any]

NOW: Final = 1_767_225_600  # 2026-01-01T00:00:00Z
_DAY: Final = 86_400
_STARTS: Final = (None, None, None, -365 * _DAY, -_DAY, -1, 0, 1, 60, 10 * _DAY, 30 * _DAY, 40 * _DAY, 27_000 * _DAY)
_ENDS: Final = (None, None, None, -_DAY, -1, 0, 1, 60, _DAY, 5 * _DAY, 29 * _DAY, 30 * _DAY, 31 * _DAY, 400 * _DAY)
_GAPS: Final = ((None, 5 * _DAY), (None, _DAY), (0, None), (10 * _DAY, None), (5 * _DAY + 1, None))
"""Windows whose hull is everything, with or without a gap."""
_STATES: Final = ("APPROVED", "IN_PROGRESS", "NOT_STARTED", "EXPIRED", "FAILED")
_EXPIRY: Final = (-_DAY, -1, 0, 1, 30 * _DAY, 30 * _DAY + 1, 60 * _DAY, 61 * _DAY, 90 * _DAY, 91 * _DAY, 400 * _DAY)
"""Of a certificate, from now."""
_CHOICES: Final = {"Dept": ["Sales", "Care", "IT", "Legal"], "Skills": ["x", "y", "z"], "Old": ["a", "b"]}
_TYPES: Final = {"Dept": "CHOICE", "Skills": "MULTI_SELECT", "Old": "CHOICE", "Badge": "TEXT"}
_NAMES: Final = ("anna", "Bo", "Åsa", "straße", "cy+x", "di", "e.f", "gil", "hugo", "ida", "jo", "kim", "liv", "mo")
ROOTS: Final = ("root1@x.example", "root2@x.example")
_ARCHIVE: Final = (-_DAY, 0, 1, 60, 5 * _DAY, 20 * _DAY, 30 * _DAY, 30 * _DAY + 1, 31 * _DAY, 27_000 * _DAY)
"""Archive dates, from now."""


def iso(instant: int) -> str:
    """A time as manifests and seeds write it."""
    return datetime.fromtimestamp(instant, UTC).isoformat().replace("+00:00", "Z")


@dataclass
class Case:
    """A workspace and manifests for it: what the seed, the manifest and the settings of a project hold."""

    world: Entry = field(default_factory=dict)
    wish: Entry = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Further files in the folder of manifests."""
    leave_alone: tuple[str, ...] = ()
    ownership: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dialect: dict[str, str | int] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    additive: bool = False

    def seed(self) -> Entry:
        return self.world

    def document(self) -> Entry:
        return self.wish


class RandomCase:
    """Makes one case. Not all manifests make sense: a plan may refuse them, and then the case is another."""

    def __init__(self, seed: str, dialect: dict[str, str | int], *, systems: bool = False) -> None:
        self._random = Random(seed)  # noqa: S311  no secret
        self._systems = systems
        self._unsure = self._chance(6)
        self._gaps = self._chance(6)
        rule = self._pick(("condition", "removed-choice", "never"))
        self.case = Case(dialect={**dialect, "custom-fields.in-use": rule})
        if self._chance(3):
            self.case.dialect["content-targets.on-existing"] = "recreate"

    def make(self) -> Case:
        """The case."""
        self._workspace()
        self._manifests()
        if self._chance(8):
            self.case.only = tuple(self._some(("group/*", "smart_group/*", "user/*", "content_target/*", "*1*"), 1, 2))
        elif self._chance(10):
            self.case.excluded = (
                self._pick(("group/*", "smart_group/S1*", "user/a*", "content_target/* -> everyone")),
            )
        # What an additive plan adds to a group that it does not rename, apply takes for a change of another group.
        self.case.additive = self._chance(10) and "previously" not in str(self.case.wish)
        return self.case

    # Dice

    def _chance(self, of: int) -> bool:
        return self._random.randrange(of) == 0

    def _pick(self, items: Sequence[T]) -> T:
        return self._random.choice(items)

    def _some(self, items: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        top = len(items) if most is None else min(most, len(items))
        return self._random.sample(list(items), self._random.randint(min(least, top), top))

    # The workspace

    def _workspace(self) -> None:
        fields = ["Dept", "Skills", *self._some(["Old", "Badge"])]
        self.fields = {name: list(_CHOICES.get(name, [])) for name in fields}
        count = self._random.randint(3, len(_NAMES))
        self.people = [f"{name}@x.example" for name in self._random.sample(_NAMES, count)]
        if self._chance(6):  # enough for guards to look at shares
            self.people += [f"more{number}@x.example" for number in range(self._random.randint(8, 16))]
        people: list[Entry] = [{"email": email, "admin": True} for email in ROOTS]
        for email in self.people:
            said: Entry = {"email": email, "answers": self._answers(live=True)}
            if self._chance(6):
                said["archived"] = True
            elif self._chance(6):
                said["custom_archive_date"] = iso(NOW + self._pick(_ARCHIVE[2:]))
            people.append(said)
        everybody = [*self.people, ROOTS[0]]
        self.groups = [f"G{n}" for n in range(self._random.randint(0, 4))]
        self.smart = [
            f"S{n}" for n in range(self._random.randint(2, 9) if self._systems else self._random.randint(0, 4))
        ]
        self.contents = [(f"c-{n}", f"Course {n}") for n in range(self._random.randint(1, 4))]
        if self._chance(4):
            self.contents.append(("c-twin", "Course 0"))
        self.case.world = {
            "custom_fields": [
                {"name": name, "type": _TYPES[name], **({"choices": choices} if choices else {})}
                for name, choices in self.fields.items()
            ],
            "people": people,
            "groups": [{"name": name, "id": f"id-of-{name}", "members": self._some(everybody)} for name in self.groups],
            "smart_groups": [
                {"name": name, "id": f"id-of-{name}", "conditions": self._conditions(self.fields)}
                for name in self.smart
            ],
            "content": [{"id": id, "name": name} for id, name in self.contents],
            "content_targets": [],
        }
        self._history(self.people)
        self.targets: list[tuple[str, object]] = []
        for _, name in self.contents:
            # A seed names content by its name alone, so that twins have no assignments to begin with.
            if sum(name == other for _, other in self.contents) > 1:
                continue
            for audience in self._audiences(self.groups, self.smart):
                entry: Entry = {"content": name, "assign_to": [audience], **self._value()}
                self.case.world["content_targets"].append(entry)
                self.targets.append((name, audience))

    def _answers(self, *, live: bool) -> Entry:
        said: Entry = {}
        for name, choices in self.fields.items():
            if self._chance(4 if live else 2):
                continue
            if not live and self._chance(4):
                said[name] = None
            elif _TYPES[name] == "TEXT":
                said[name] = self._pick(("one", "two"))
            elif _TYPES[name] == "CHOICE":
                said[name] = self._pick(choices)
            else:
                said[name] = self._some(choices, least=1)
        return said

    def _conditions(self, fields: dict[str, list[str]]) -> list[Entry]:
        number = self._pick((1, 1, 1, 2, 2, 3))
        # Where they are what the case is about, a third of the smart groups have system conditions.
        where = self._random.randrange(number) if self._systems and self._chance(3) else None
        return [self._condition(fields, place == where) for place in range(number)]

    def _condition(self, fields: dict[str, list[str]], has_system: bool) -> Entry:
        """A condition on choices; one with a system condition may lack them, or be on a text."""
        name = self._pick([name for name in fields if fields[name]])
        said: Entry = {"field": name, "choices": self._some(fields[name], least=1, most=3)}
        if has_system:
            said["system_condition"] = self._pick(("IS_ANY", "IS_ANY", "SOMETHING_NEW"))
            if self._chance(2):
                del said["choices"]
                if "Badge" in fields and self._chance(4):
                    said["field"] = "Badge"
        if self._systems:
            return said
        if self._chance(5):
            said["system_condition"] = "IS_ANY"
        if self._unsure and self._chance(2):
            said["system_condition"] = self._pick(("SOMETHING_NEW", "IS_ANY"))
            if self._chance(2):
                del said["choices"]
            if "Badge" in fields and self._chance(2):
                said = {"field": "Badge", "system_condition": "IS_ANY"}
        return said

    def _audiences(self, groups: Sequence[str], smart: Sequence[str]) -> list[object]:
        every: list[object] = [{"group": name} for name in groups] + [{"smart_group": name} for name in smart]
        every += [{"user": email} for email in self._some(self.people, most=3)]
        if self._gaps:
            return [*self._some(every, most=5), "everyone"]
        every += ["everyone"] if self._chance(3) else []
        return self._some(every, most=5)

    def _value(self) -> Entry:
        said: Entry = {}
        if self._chance(2):
            said["mandatory"] = self._chance(2)
        if self._gaps or self._chance(2):
            start, end = self._pick(_GAPS) if self._gaps else (self._pick(_STARTS), self._pick(_ENDS))
            said |= {"visible_from": iso(NOW + start)} if start is not None else {}
            said |= {"visible_until": iso(NOW + end)} if end is not None else {}
        return said

    def _history(self, people: Sequence[str]) -> None:
        """How far some people are, and certificates of some, where the content has a name of its own."""
        single = [name for _, name in self.contents if [one for _, one in self.contents].count(name) == 1]
        pairs = [(email, name) for email in people for name in single]
        self.case.world["participations"] = [
            {"user": email, "content": name, "state": self._pick(_STATES)} for email, name in pairs if self._chance(3)
        ]
        self.case.world["certificates"] = [
            {"user": email, "content": name, "issued": iso(NOW - 400 * _DAY), "expires": iso(NOW + self._pick(_EXPIRY))}
            for email, name in pairs
            if self._chance(4)
        ]

    # The manifests

    def _manifests(self) -> None:
        sections: Entry = {"users": [], "custom_fields": [], "groups": [], "smart_groups": [], "content_targets": []}
        absent: Entry = {name: [] for name in ("custom_fields", "groups", "smart_groups", "content_targets")}
        self.sections, self.absent = sections, absent
        steps = [self._people, self._custom_fields, self._manual_groups, self._smart_groups, self._content_targets]
        wanted = {step for step in steps if not self._chance(3)} or {self._pick(steps)}
        self.groups_after, self.smart_after = list(self.groups), list(self.smart)
        for kind in ("group", "smart_group", "custom_field"):
            if self._chance(8):
                self.case.ownership[kind] = (self._pick(("*", "?1*", "O*", "[!D]*")),)
        if self._chance(10):
            self.case.leave_alone = (self._pick(("group/G0", "smart_group/*", "content_target/Course 0 -> *")),)
        for step in steps:
            if step in wanted:
                step()
        document = {name: entries for name, entries in sections.items() if entries}
        document["absent"] = {name: entries for name, entries in absent.items() if entries} or {"groups": []}
        self.case.wish = document

    def _custom_fields(self) -> None:
        for name in self._some([one for one in self.fields if self.fields[one]], most=2):
            answered = any(name in one.get("answers", {}) for one in self.sections["users"])
            if self._chance(5) and not answered:
                self.absent["custom_fields"].append(name)
                continue
            keep = [choice for choice in self.fields[name] if not self._chance(4)] or self.fields[name][:1]
            listed: list[object] = [
                {"name": f"{choice} renamed", "previously": [choice]} if self._chance(6) else choice for choice in keep
            ]
            if self._chance(6) and len(self.fields[name]) > 1:
                listed = self._swapped_choices(name)
            said: Entry = {"name": name, "choices": [*listed, *self._some(["new"])]}
            if self._chance(8):
                said["choices"] = {"include": ["new"], "exclude": self._some(self.fields[name], most=1)}
            if self._chance(6) and not answered:
                said |= {"name": f"{name} now", "previously": [name]}
            self.sections["custom_fields"].append(said)
            for person in self.sections["users"]:
                if "new" in str(said["choices"]) and name in person.get("answers", {}) and self._chance(2):
                    person["answers"][name] = "new" if _TYPES[name] == "CHOICE" else ["new"]

    def _swapped_choices(self, name: str) -> list[object]:
        """All choices of a field, two of them under each other's name."""
        first, second = self._random.sample(self.fields[name], 2)
        other = {first: second, second: first}
        return [
            {"name": choice, "id": self._choice_id(name, other[choice])} if choice in other else choice
            for choice in self.fields[name]
        ]

    def _choice_id(self, field: str, choice: str) -> str:
        """The id that a new sandbox gives to a choice: they are counted."""
        every = [(name, one) for name, choices in self.fields.items() for one in choices]
        return f"ch-{every.index((field, choice)) + 1}"

    def _people(self) -> None:
        for email in self._some(self.people, most=5):
            said: Entry = {"email": email.upper() if email.isascii() and self._chance(3) else email}
            if not self._chance(3):
                said["answers"] = self._answers(live=False)
            if self._chance(3):
                said["archived"] = self._chance(2)
            if self._chance(5):
                said["first_name"] = "Other"
            if self._chance(5) and "archived" not in said:
                said["custom_archive_date"] = self._pick(("2026-01-10", None, *(iso(NOW + one) for one in _ARCHIVE)))
            if self._chance(8):
                said |= {"email": f"renamed.{email}", "previously": [email]}
                self.people[self.people.index(email)] = str(said["email"])
            self.sections["users"].append(said)
        for number in range(self._pick((0, 0, 1, 2))):
            said = {"email": f"new{number}@x.example", "first_name": "N", "last_name": "Ew", "language": "sv"}
            answers = {name: value for name, value in self._answers(live=True).items() if value is not None}
            said |= {"answers": answers} | ({"archived": self._chance(2)} if self._chance(4) else {})
            self.sections["users"].append(said)
            self.people.append(str(said["email"]))

    def _members(self) -> object:
        if self._chance(5):
            return self._from_csv(self._some(self.people))
        if not self._chance(3):
            return self._some([*self.people, ROOTS[0]])
        some = self._some(self.people)
        cut = self._random.randint(0, len(some))
        return {"include": some[:cut], "exclude": some[cut:]}

    def _from_csv(self, people: Sequence[str]) -> Entry:
        """A list of people as rows of a CSV file, beside rows that it leaves out."""
        number = len(self.case.files)
        rows = [*(f"{email},in" for email in people), *(f"{email},out" for email in self._some(self.people))]
        self.case.files[f"hr{number}.csv"] = "\n".join(["email,state", *rows]) + "\n"
        return {"file": f"hr{number}.csv", "column": "email", "where": {"state": "in"}, "allow_empty": True}

    def _loop(self, values: Sequence[str], key: str, body: str) -> None:
        """A file with one entry for each value; none where there are none."""
        listed = ", ".join(f'"{value}"' for value in values)
        self.case.files[f"{key}.yaml"] = f"{key}:\n  - {{for_each: {{one: [{listed}]}}, {body}}}\n"

    def _manual_groups(self) -> None:
        looped = self._some(self.groups) if self._chance(4) else []
        if looped or self._chance(12):
            people = ", ".join(f'"{email}"' for email in self._some(self.people))
            self._loop(looped, "groups", f"name: $(one), members: [{people}]")
        left = [name for name in self.groups if name not in looped]
        self._change("groups", left, self.groups_after, lambda: {"members": self._members()})

    def _smart_groups(self) -> None:
        left = {name: choices for name, choices in self.fields.items() if name not in self.absent["custom_fields"]}
        for said in self.sections["custom_fields"]:
            name = said.get("previously", [said["name"]])[0]
            choices = left.pop(name)
            if isinstance(said["choices"], list):
                listed = [one["name"] if isinstance(one, dict) else one for one in said["choices"]]
            else:
                listed = ["new", *(one for one in choices if one not in said["choices"]["exclude"])]
            left[said["name"]] = listed
        if any(left.values()):
            self._change("smart_groups", self.smart, self.smart_after, lambda: {"conditions": self._conditions(left)})

    def _change(self, section: str, names: list[str], after: list[str], more: Callable[[], Entry]) -> None:
        """Two groups go under each other's name, by their ids; or some are deleted, renamed, declared and created."""
        entries = self.sections[section]
        if self._chance(6) and len(names) > 1:
            first, second = self._random.sample(names, 2)
            for name, other in ((first, second), (second, first)):
                entries.append({"name": name, "id": f"id-of-{other}"} | (more() if self._chance(2) else {}))
            return
        for name in names:
            fate = self._random.randrange(6)
            if fate == 0:
                self.absent[section].append(name)
                after.remove(name)
            elif fate == 1:
                said, now = more(), f"{name} (2)"
                after[after.index(name)] = now
                entries.append({"name": now, "previously": [name]} | (said if self._chance(2) else {}))
            elif fate < 4:
                entries.append({"name": name} | more())
        if self._chance(3):
            entries.append({"name": "Brand new"} | more())
            after.append("Brand new")

    def _content_targets(self) -> None:
        if self._chance(3):
            self.case.ownership["content_target"] = (self._pick(("declared_content", "all")),)
        lost = [(name, audience) for name, audience in self.targets if self._is_left(audience) and self._chance(3)]
        for name, audience in lost:
            self.absent["content_targets"].append({"content": name, "assign_to": [audience]})
        spoken: set[str] = set()
        for id, name in self._some(self.contents, least=1):
            if name in spoken:
                continue  # two entries that speak of one name may not mean two contents
            spoken.add(name)
            twin = sum(name == other for _, other in self.contents) > 1
            audiences = [one for one in self._audiences(self.groups_after, self.smart_after) if (name, one) not in lost]
            kept = [one for of, one in self.targets if of == name and self._is_left(one) and (of, one) not in lost]
            audiences += [one for one in self._some(kept) if one not in audiences]
            if audiences and not twin and self._chance(8):
                body = json.dumps({"assign_to": audiences, **self._value()}, ensure_ascii=False)
                self._loop([name], "content_targets", f"content: $(one), {body[1:-1]}")
            elif audiences:
                content: object = {"name": name, "id": id} if twin else name
                self.sections["content_targets"].append(
                    {"content": content, "assign_to": [self._assigned(one) for one in audiences], **self._value()}
                )

    def _is_left(self, audience: object) -> bool:
        """Whether the audience has its name still."""
        if not isinstance(audience, dict):
            return True
        lists = {"group": self.groups_after, "smart_group": self.smart_after, "user": self.people}
        return all(name in lists[key] for key, name in audience.items())

    def _assigned(self, audience: object) -> object:
        if self._chance(2):
            return audience
        return (audience if isinstance(audience, dict) else {"everyone": True}) | self._value()
