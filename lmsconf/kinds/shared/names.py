"""What the kinds are called in addresses. A kind names another kind only inside an Address."""

from __future__ import annotations

from typing import Final

from lmsconf.model.address import EVERYBODY, Address

CUSTOM_FIELD: Final = "custom_field"
GROUP: Final = "group"
SMART_GROUP: Final = "smart_group"
CONTENT: Final = "content"
CONTENT_TARGET: Final = "content_target"
USER: Final = "user"
ADMIN: Final = "admin"
"""No kind of its own: a listing of who has administrator rights, read only when somebody may lose them."""
HOLDERS: Final = "choice_holders"
"""No kind either: how many people hold each choice, in snapshots."""
ANSWERS: Final = "answers"
"""Nor this: everybody's answers, kept only where a field or a choice goes."""
UNNAMED_TARGETS: Final = "unnamed_targets"
"""Nor this: assignments of content that no manifest names, counted only as far as a guard needs to know how many."""
UNNAMED: Final = "unnamed_people"
"""Nor this: the number of undeclared people in each list of a redacted snapshot."""
EDITS: Final = "target_edits"
"""Nor this: who changed each assignment last and when. No part of what it is, so it is kept apart from the rows."""

RESERVED: Final = "lmsconf-lock "
"""How the name of the lock object begins, which is a group only because the API has nothing else to lock with."""

EVERYONE: Final = Address(EVERYBODY, "")
"""The audience that is everybody. It prints as `everyone`."""


def choice_scope(field: str) -> str:
    """Under what the book keeps the choices of a field."""
    return f"choice of {field}"
