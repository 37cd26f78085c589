"""What msgspec's structs lack: equality without some fields."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct


def equal_but_for(one: Struct, other: object, aside: Collection[str]) -> bool:
    """Return whether two structs of one type are equal in all fields but those set aside."""
    names = [name for name in one.__struct_fields__ if name not in aside]
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in names)
