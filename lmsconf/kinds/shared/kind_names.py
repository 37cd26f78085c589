"""Names of kinds, as in addresses, and the names by which views show a resource."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lmsconf.model.address import EVERYBODY, Address, unescape
from lmsconf.model.names import quote_if_ambiguous

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
_PARTS: Final = re.compile(r"((?:\\(?: -> |.)|(?! -> )[^\\])*) -> (.*)", re.DOTALL)
"""Content and audience of an address; either name may contain an escaped ` -> `."""


def choices_registry_kind(field: str) -> str:
    """Return the kind under which the NameRegistry holds the choices of a field."""
    return f"choice of {field}"


def split_address(address: Address) -> tuple[str, str] | None:
    """Return the content's name and the audience's address; None if the address is not that of an assignment."""
    parts = _PARTS.fullmatch(address.text) if address.kind == CONTENT_TARGET else None
    return (unescape(parts[1]), parts[2]) if parts else None


def resource_title(address: Address) -> str:
    """Return the display name of a resource: `group/Sales`, `assignment of GDPR basics to group/Sales`."""
    return f"assignment of {short_title(address)}" if split_address(address) else str(address)


def short_title(address: Address) -> str:
    """Return the display name without the kind, for use beside it: `Sales`, `GDPR basics to group/Sales`."""
    parts = split_address(address)
    return f"{quote_if_ambiguous(parts[0])} to {parts[1]}" if parts else quote_if_ambiguous(address.name)


def title_keys(address: Address) -> frozenset[str]:
    """Return the keys of a resource whose values its title contains."""
    return frozenset({"content", "assign_to"} if address.kind == CONTENT_TARGET else {"name"})


def spellings(address: Address, noun: str) -> Iterator[str]:
    """Yield the texts by which views name a resource: of an assignment, also the content, and as graphs label it."""
    short = short_title(address)
    yield from (address.name, short, resource_title(address), f"{noun} {short}", f"{address.name} ({noun})")
    if parts := split_address(address):
        yield from (parts[0], f"{parts[0]} ({CONTENT})")
