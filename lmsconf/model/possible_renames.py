"""Possible renames: live resources that a creation may be under a new name."""

from __future__ import annotations

from dataclasses import dataclass

from lmsconf.model.address import Address, RemoteId


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameCandidate:
    """A live resource that a creation may be under a new name.

    why: what they have in common. line: the manifest line that makes it a rename: `previously:` with its name, or `id:`
    where another live resource has the same name. is_earlier_name: whether it is `previously:`.
    """

    address: Address
    id: RemoteId
    why: str
    line: str
    is_earlier_name: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleRename:
    """A creation that may be a rename of a live resource.

    alike: live resources with the same content. close: those with similar content or name, which is no proof. Resources
    declared under `absent` are in neither.
    """

    address: Address
    alike: tuple[RenameCandidate, ...] = ()
    close: tuple[RenameCandidate, ...] = ()
