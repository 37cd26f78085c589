"""Effects on people that show every form a view must word, built by hand."""

from __future__ import annotations

from lmsconf.errors import Problem
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import CallResult, CallStatus
from lmsconf.model.effects import (
    AccessChange,
    AccessCounts,
    Basis,
    Calibration,
    CauseCount,
    ContentEffects,
    Effects,
    GroupEffects,
    PersonEffect,
)
from lmsconf.model.plan import (
    Change,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsalReceipt,
    RehearsedAssumption,
    RehearsedGroup,
)

NORDICS = Address.of("smart_group", "Sales Nordics")
COACHES = Address.of("group", "Onboarding coaches")
BASICS = Address("content_target", f"GDPR basics -> {NORDICS}")


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


PERSON = Address.of("user", "bo.ek@acme.example")
PROGRESS = {"not_started": 20, "in_progress": 12, "approved": 6, "failed": 0, "expired": 0}
CONTENTS = (
    content(
        "GDPR basics",
        "c-42",
        counts(gain=4, lose=38, to_optional=2),
        cause(NORDICS, gain=4, lose=38),
        people=(300, 266, 260),
        progress=PROGRESS,
        expiring={30: 1, 60: 3, 90: 3},
    ),
    content(
        "Fire safety",
        "c-1",
        counts(lose=1),
        cause(COACHES, lose=1),
        cause(PERSON),
        people=(12, 11, 11),
        progress=dict.fromkeys(PROGRESS, 0) | {"in_progress": 1},
        expiring={30: 0, 60: 0, 90: 1},
    ),
    content("First aid", "c-9", counts(lose=2), cause(NORDICS, lose=2), people=(20, 18, 18)),
    content("Export control", "c-2", counts(to_mandatory=1_200), cause(BASICS), people=(1_500, 1_500, 300)),
    content(
        "Crisis drill", "c-3", counts(window=12, shortened=12), cause(BASICS), people=(85, 85, 73), basis=Basis.ESTIMATE
    ),
    content("Phishing drill", "c-4", counts(gain=412_000), cause(BASICS, gain=412_000), people=(0, 412_000, 0)),
    content("Forklift licence", "c-5", counts(to_optional=6), cause(BASICS), people=(110, 110, 104)),
    content("Performance reviews", "c-6", counts(window=5), cause(BASICS), people=(80, 80, 75)),
)
GROUPS = (
    GroupEffects(address=COACHES, before=14, after=15, join=2, leave=1, basis=Basis.EXACT),
    GroupEffects(address=NORDICS, before=47, after=9, join=0, leave=38, basis=Basis.ESTIMATE),
)
LOSSES = Effects(
    basis=Basis.ESTIMATE,
    reasons=(f"{NORDICS}: its conditions give 46 members, and the service lists 47",),
    requests=12,
    people=counts(gain=412_000, lose=41, to_mandatory=1_200, to_optional=8, window=17, shortened=12),
    contents=CONTENTS,
    groups=GROUPS,
    calibration=Calibration(groups=31, exact=30),
)
UNKNOWN = Effects(
    basis=Basis.UNKNOWN,
    reasons=(
        f"{NORDICS}: the effect of the system condition IS_WITHIN is not known, so its members after the plan are not "
        "known",
        *(f"the members of group/Team {n} were not read" for n in range(6)),
    ),
    requests=1,
    people=AccessCounts(),
    contents=(
        content("GDPR basics", "c-42", AccessCounts(), cause(NORDICS, None, None), people=None, basis=Basis.UNKNOWN),
        content("Intro", "c-1", AccessCounts(lose=0, shortened=0), people=None, basis=Basis.UNKNOWN),
        CONTENTS[2],
    ),
    groups=(GroupEffects(address=NORDICS, before=47, after=None, join=None, leave=None, basis=Basis.UNKNOWN),),
    calibration=Calibration(groups=1, exact=1),
)


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


def hostile(evil: str) -> Effects:
    """Effects that are made of a hostile name."""
    group, nobody = Address.of("group", evil), Address.of("user", evil)
    return Effects(
        basis=Basis.ESTIMATE,
        reasons=(evil, evil * 20),
        people=counts(lose=2, gain=1),
        contents=(
            content(
                evil,
                evil,
                counts(lose=2, gain=1),
                cause(group, 1, 2),
                cause(nobody, 0, 1),
                people=(3, 2, 1),
                progress={**PROGRESS, "not_started": 2, "in_progress": 0, "approved": 0},
                expiring={30: 0, 60: 0, 90: 0},
            ),
            content(f" {evil}*", "c-2", AccessCounts(), people=None, basis=Basis.UNKNOWN),
        ),
        groups=(GroupEffects(address=group, before=3, after=1, join=0, leave=2, basis=Basis.EXACT),),
    )


# Rehearsals that show every form a view must word, built by hand.


_HASH = "7c" * 32


def refused(address: Address, remaining: tuple[Change, ...], text: str) -> Rehearsal:
    """A rehearsal in which calls were refused and skipped, and groups are not as predicted.

    text: what the service answers, and what everything is called that a service or a file names.
    """
    return Rehearsal(
        receipt=RehearsalReceipt(
            plan_digest=_HASH,
            snapshot_digest=_HASH,
            outcome=RehearsalOutcome.REFUSED,
            at="2026-03-01T08:00:00Z",
            tool="lmsconf 0.1.0",
        ),
        taken_at="2026-03-01T08:00:00Z",
        calls=6,
        done=3,
        failed=(
            _failed("c4", address, CallStatus.FAILED, text, text),
            _failed("c5", address, CallStatus.BLOCKED, "c4 was not done", None),
            _failed("c6", address, CallStatus.NOT_ATTEMPTED, None, None),
        ),
        remaining=remaining,
        problems=(Problem(code="apply/no-effect", message=text, hint=text),),
        assumptions=(
            RehearsedAssumption(key="manual-groups.rename.name", value="name", operations=("x", "y"), declared=False),
            RehearsedAssumption(key="content-targets.everyone", value=text, operations=("z",), declared=True),
        ),
        memberships=(
            RehearsedGroup(address=address, before=2, predicted=3, reached=3, basis=Basis.EXACT),
            RehearsedGroup(address=address, before=2, predicted=3, reached=4, basis=Basis.EXACT),
            RehearsedGroup(address=address, before=None, predicted=None, reached=1_204, basis=Basis.UNKNOWN),
            RehearsedGroup(address=address, before=0, predicted=3, reached=None, basis=Basis.EXACT),
        ),
        pace=RehearsalPace(requests=1_204, rate=5.0, is_limit=True),
    )


def _failed(call: str, address: Address, status: CallStatus, reason: str | None, hint: str | None) -> CallResult:
    return CallResult(
        call=call, address=address, operation="manual-groups.rename", status=status, reason=reason, hint=hint
    )
