"""Synthetic workspaces of any size, as the values of a seed file: equal arguments give equal values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import cycle
from random import Random
from typing import Final, TypeAlias, TypeVar

Entry: TypeAlias = "dict[str, object]"
S = TypeVar("S")
T = TypeVar("T")


def _listed(text: str) -> list[str]:
    return text.split(", ")


_FIRST: Final = _listed(
    "Anna, Bo, Cy, Dina, Erik, Freja, Gustav, Hanna, Ida, Jonas, Karin, Lars, Maja, Nils, Olga, Per, Rosa, Sven, "
    "Tove, Ulla, Viktor, Wilma, Ylva, Åsa, Özge, Amir, Beatriz, Chen, Dmitri, Emeka, Fatima, Giulia, Hiroshi, Ines, "
    "Jamal, Katarzyna, Liam, Mei, Noor, Omar"
)
_LAST: Final = _listed(
    "Berg, Ek, Dahl, Lind, Holm, Nyström, Öberg, Sjögren, Åkesson, Lund, Strand, Falk, Hall, Norén, Ström, Wik, "
    "Haddad, Silva, Wang, Ivanov, Okafor, Rossi, Tanaka, García, Kowalska, Murphy, Khan, Nguyen, Schmidt, Dubois, "
    "Novak, Jensen, Hansen, Virtanen"
)
_FIELDS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    (
        "Department",
        "CHOICE",
        ("Sales", "Engineering", "Finance", "Support", "Operations", "People and Culture", "Legal"),
    ),
    ("Country", "CHOICE", ("SE", "NO", "FI", "DK", "DE", "ES", "UK")),
    ("Skills", "MULTI_SELECT", ("Python", "SQL", "Negotiation", "First aid", "Forklift", "Excel", "Welding")),
    ("Seniority", "CHOICE", ("Junior", "Regular", "Senior", "Lead")),
    ("Employment", "CHOICE", ("Permanent", "Temporary", "Contractor", "Intern")),
    ("Site", "CHOICE", ("Stockholm", "Göteborg", "Oslo", "Helsinki", "København", "Remote")),
    ("Languages", "MULTI_SELECT", ("Swedish", "English", "Finnish", "Norwegian", "German", "Spanish")),
    ("Shift", "CHOICE", ("Day", "Evening", "Night")),
    ("Contract year", "CHOICE", ("2022", "2023", "2024", "2025", "2026")),
    ("Badge number", "TEXT", ()),
)
_TOPICS: Final = _listed(
    "GDPR basics, Fire safety, First aid, Onboarding, Code of conduct, Security awareness, Forklift licence, Sales "
    "methods, Leadership, Data protection, Anti-bribery, Accessibility, Incident response, Feedback, Project "
    "planning, Work at height"
)
_TEAMS: Final = _listed(
    "Onboarding coaches, Safety officers, Works council, Mentors, Key users, Reviewers, Instructors, Night crew, "
    "Trainees, Project office, First responders, Language café"
)
_TYPES: Final = ("COURSE", "COURSE", "COURSE", "PROGRAM", "SCORM", "MEETUP")
_LANGUAGES: Final = ("en", "sv", "de", "no", "nl", "fi", "uk", "es")


def generate_seed(
    *,
    users: int = 400,
    groups: int = 25,
    smart_groups: int = 25,
    fields: int = 9,
    contents: int = 40,
    assignments: int = 120,
    participations: int = 200,
    seed: int = 0,
) -> dict[str, list[Entry]]:
    """The values of a seed file. Raises ValueError for more fields than a workspace can have."""
    if not 0 <= fields <= len(_FIELDS):
        raise ValueError(f"a workspace has at most {len(_FIELDS)} custom fields")
    dice = Random(seed)  # noqa: S311  synthetic data needs no secrecy
    people = [_person(dice, number, fields) for number in range(users)]
    emails = [str(person["email"]) for person in people]
    made_groups = [_group(dice, name, emails) for name in _names(_TEAMS, groups)]
    made_smart_groups = [_smart_group(dice, number, fields, emails) for number in range(smart_groups if fields else 0)]
    made_contents = [_content(dice, name, kind) for name, kind in zip(_names(_TOPICS, contents), cycle(_TYPES))]
    audiences: list[object] = [
        "everyone",
        *({"group": group["name"]} for group in made_groups),
        *({"smart_group": group["name"]} for group in made_smart_groups),
        *({"user": email} for email in emails[:20]),
    ]
    done = [_participation(dice, *pair) for pair in _pairs(dice, participations, emails, made_contents)]
    return {
        "custom_fields": [
            {"name": name, "type": type, **({"choices": list(choices)} if choices else {})}
            for name, type, choices in _FIELDS[:fields]
        ],
        "people": people,
        "groups": made_groups,
        "smart_groups": made_smart_groups,
        "content": made_contents,
        "content_targets": [_assignment(dice, *pair) for pair in _pairs(dice, assignments, made_contents, audiences)],
        "participations": done,
        "certificates": [_certificate(dice, one) for one in done if one["state"] in ("APPROVED", "EXPIRED")],
    }


def _person(dice: Random, number: int, fields: int) -> Entry:
    """A person with a name, a unique e-mail, and answers to most fields."""
    first, last = dice.choice(_FIRST), dice.choice(_LAST)
    answered = [field for field in _FIELDS[:fields] if dice.random() > 0.1]
    answers = {
        name: dice.sample(choices, dice.randint(1, 3))
        if type == "MULTI_SELECT"
        else dice.choice(choices or (f"B-{10_000 + number}",))
        for name, type, choices in answered
    }
    employee: Entry = {
        "language": _LANGUAGES[number % len(_LANGUAGES)],
        "metadata": {"employeeId": f"E-{10_000 + number}"},
    }
    return {
        "email": f"{_plain(first)}.{_plain(last)}.{number + 1}@acme.example",
        "first_name": first,
        "last_name": last,
        "answers": answers,
        **(employee if number % 3 == 0 else {}),
        **({"admin": True} if number % 100 == 0 else {}),
        **({"manager": True} if number % 20 == 0 else {}),
        **({"archived": True} if number % 50 == 49 else {}),
    }


def _group(dice: Random, name: str, emails: Sequence[str]) -> Entry:
    return {"name": name, "members": _some(dice, emails, 2, 30), "managers": _some(dice, emails, 0, 2)}


def _smart_group(dice: Random, number: int, fields: int, emails: Sequence[str]) -> Entry:
    """A smart group. The first hundred have one or two conditions; further ones have more, for narrow audiences."""
    depth = dice.randint(1, 2) if number < 100 else dice.randint(2, 4)
    usable = [(name, choices) for name, _, choices in _FIELDS[:fields] if choices]
    fields_of_conditions = dice.sample(usable, min(len(usable), depth))
    picked = {name: dice.sample(choices, dice.randint(1, 2)) for name, choices in fields_of_conditions}
    return {
        "name": f"{', '.join(map(' or '.join, picked.values()))} {number + 1}",
        "conditions": [{"field": field, "choices": choices} for field, choices in picked.items()],
        "managers": _some(dice, emails, 0, 2),
    }


def _content(dice: Random, name: str, kind: str) -> Entry:
    occasion = {"starts": "2026-09-01T07:00:00Z", "attending": dice.randint(0, 20)}
    return {
        "name": name,
        "type": kind,
        "description": f"What everybody should know: {name}",
        "price": dice.choice((0, 0, 0, 490)),
        **({"occasions": [occasion]} if kind == "MEETUP" else {}),
    }


def _assignment(dice: Random, content: Entry, audience: object) -> Entry:
    return {
        "content": content["name"],
        # YAML would write the same object in two places as an anchor and its alias.
        "assign_to": [copy(audience)],
        **({"mandatory": True} if dice.random() < 0.5 else {}),
        **({"visible_from": f"2026-{dice.randint(1, 12):02}-01T00:00:00Z"} if dice.random() < 0.3 else {}),
        **({"visible_until": f"2027-{dice.randint(1, 12):02}-28T23:59:59Z"} if dice.random() < 0.2 else {}),
    }


def _participation(dice: Random, email: str, content: Entry) -> Entry:
    state = dice.choice(("APPROVED", "APPROVED", "APPROVED", "IN_PROGRESS", "NOT_STARTED", "FAILED", "EXPIRED"))
    begun = f"2025-{dice.randint(1, 6):02}-{dice.randint(1, 28):02}T08:00:00Z"
    changed = f"2025-{dice.randint(7, 12):02}-{dice.randint(1, 28):02}T15:30:00Z"
    return {
        "user": email,
        "content": content["name"],
        "state": state,
        "enrolled": begun,
        "updated": changed,
        **({"percentage": dice.randint(1, 99)} if state == "IN_PROGRESS" else {}),
        "events": [{"status": "IN_PROGRESS", "at": begun}, {"status": state, "at": changed}],
    }


def _certificate(dice: Random, participation: Entry) -> Entry:
    """The certificate of an approved participation: valid for some years, or expired."""
    year = 2025 if participation["state"] == "EXPIRED" else dice.randint(2027, 2029)
    return {
        "user": participation["user"],
        "content": participation["content"],
        "issued": participation["updated"],
        "expires": f"{year}-12-31T23:59:59Z",
        "notify": True,
    }


def _pairs(dice: Random, wanted: int, ones: Sequence[S], others: Sequence[T]) -> Iterator[tuple[S, T]]:
    """That many pairs, no two alike, or all that there are."""
    places = range(len(ones) * len(others))
    picked = dice.sample(places, min(wanted, len(places)))
    return ((ones[place % len(ones)], others[place // len(ones)]) for place in picked)


def _some(dice: Random, emails: Sequence[str], least: int, most: int) -> list[str]:
    return dice.sample(emails, min(len(emails), dice.randint(least, most)))


def _names(words: Sequence[str], wanted: int) -> list[str]:
    """That many unique names: `Mentors`, and `Mentors 2` when the words are used up."""
    rounds = (divmod(place, len(words)) for place in range(wanted))
    return [words[word] if lap == 0 else f"{words[word]} {lap + 1}" for lap, word in rounds]


def _plain(name: str) -> str:
    return name.lower().translate(str.maketrans("åäöøéíó", "aaooeio"))
