"""Kind names, as used in addresses. A kind refers to another kind only inside an Address."""

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
"""Not a kind: the listing of people with administrator rights, read when a plan may revoke some."""
HOLDERS: Final = "choice_holders"
"""Not a kind: the number of people who hold each choice, in whole snapshots."""
ANSWERS: Final = "answers"
"""Not a kind: the answers of all people, kept only if a field or a choice is deleted."""
UNNAMED_TARGETS: Final = "unnamed_targets"
"""Not a kind: assignments of undeclared content, read only as far as a guard needs their number."""
EDITS: Final = "target_edits"
"""Not a kind: last editor and time of each assignment. Kept apart from the rows because it is not compared."""

IN_PROGRESS: Final = "in_progress"
"""Not a kind: who is in progress on content that is replaced, by its assignment, read only before it is replaced."""

EVERYONE: Final = Address(EVERYBODY, "")
"""The audience of all people. It prints as `everyone`."""


def choices_registry_kind(field: str) -> str:
    """Return the kind under which the NameRegistry holds the choices of a field."""
    return f"choice of {field}"
