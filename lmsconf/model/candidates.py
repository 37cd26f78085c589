"""What something to be created may be instead: a live resource under another name."""

from __future__ import annotations

from dataclasses import dataclass

from lmsconf.model.address import Address, RemoteId


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A live resource that something to be created may be under a new name.

    why: what they have in common. line: what to write beside the declared name, so that it is renamed. is_earlier_name:
    that is `previously:` and its name, which no other live resource has.
    """

    address: Address
    id: RemoteId
    why: str
    line: str
    is_earlier_name: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleRename:
    """A creation that may be a live resource under a new name.

    alike: live resources with the same content. close: those of close content or name, which prove nothing. What a
    manifest wants gone is in neither.
    """

    address: Address
    alike: tuple[Candidate, ...] = ()
    close: tuple[Candidate, ...] = ()
