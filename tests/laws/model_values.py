"""What a model's workspace is made of: people, fields, groups and assignments, each a plain value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

Said = dict[str, object]
Answers = dict[str, "str | list[str]"]
"""Field id → a text, or the ids of choices."""

GROUP: Final = "GROUP"
SMART_GROUP: Final = "SMART_GROUP"
USER: Final = "USER"
EVERYONE: Final = "EVERYONE"


@dataclass
class Person:
    """One account. Instants are epoch milliseconds."""

    email: str
    first_name: str
    last_name: str
    language: str
    created_at: int
    admin: bool = False
    manager: bool = False
    archived_at: int | None = None
    archive_date: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    applications: set[str] = field(default_factory=lambda: {"learn"})
    answers: Answers = field(default_factory=dict)


@dataclass
class Field:
    """One custom field; `choices` are names by id, and `details` what else was said of it."""

    name: str
    type: str
    choices: dict[str, str]
    details: Said


@dataclass
class Condition:
    """One condition of a smart group."""

    field: str
    choices: list[str]
    system: str | None

    def met_by(self, answers: Answers) -> bool:
        """Whether somebody with these answers meets it: with one of its choices, or with any answer at all."""
        if not self.choices:
            return self.system is not None and self.field in answers
        return any(choice in answers.get(self.field, []) for choice in self.choices)


@dataclass
class Group:
    """A group of either kind: a manual one has members put in by hand, a smart one has conditions."""

    kind: str
    name: str
    managers: set[str]
    members: set[str] = field(default_factory=set)
    conditions: list[Condition] = field(default_factory=list)


@dataclass
class Target:
    """One assignment."""

    mandatory: bool
    start: int | None
    finish: int | None
    created_at: int
    updated_at: int
