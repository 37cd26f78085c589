"""Effects on people for the samples of views: those of the plan that has every form, and others made beside them."""

from __future__ import annotations

from views.document_samples import BASICS, NORDICS, PEOPLE

from lmsconf.model.address import Address, RemoteId
from lmsconf.model.effects import AccessChange, AccessCounts, Basis, CauseCount, ContentEffects, PersonEffect

LOSSES = PEOPLE.effects
CONTENTS = LOSSES.contents


def counts(**numbers: int) -> AccessCounts:
    """These numbers, and 0 for all others."""
    return AccessCounts(**{**dict.fromkeys(AccessCounts.__struct_fields__, 0), **numbers})


def content(
    name: str,
    id: str,
    numbers: AccessCounts,
    *causes: CauseCount,
    people: tuple[int, int, int] | None,
    basis: Basis = Basis.EXACT,
    progress: dict[str, int] | None = None,
    expiring: dict[int, int] | None = None,
) -> ContentEffects:
    """The effects on a content. people: who has it before and after, and who keeps it."""
    before, after, keep = people or (None, None, None)
    return ContentEffects(
        content=name,
        id=RemoteId(id),
        before=before,
        after=after,
        keep=keep,
        counts=numbers,
        basis=basis,
        progress=progress,
        certificates_expiring=expiring,
        causes=causes,
    )


def cause(address: Address, gain: int | None = 0, lose: int | None = 0) -> CauseCount:
    return CauseCount(address=address, gain=gain, lose=lose)


def person(number: int) -> PersonEffect:
    """A row of `--people`."""
    return PersonEffect(
        email=f"p{number:02}@acme.example",
        content=("GDPR basics", "Fire safety")[number % 2],
        content_id=RemoteId("c-42"),
        change=AccessChange.LOSE,
        before="mandatory",
        after="none",
        from_before="2026-01-01T00:00:00Z",
        until_before=None,
        from_after=None,
        until_after=None,
        shortened=False,
        causes=(str(NORDICS), str(BASICS)),
    )


NAMES = tuple(map(person, range(30)))
