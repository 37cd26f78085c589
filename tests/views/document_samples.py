"""Plans and reports that show every form a view must word: the documents of tests/golden, read back.

A form that is new is written into one of the JSON files by hand; `--update-golden` then renews its digest and seal.
"""

import re
from pathlib import Path

from lmsconf.documents import plan_file, reports
from lmsconf.documents.json_documents import parse_document
from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import AccessCounts, Basis, CauseCount, ContentEffects, PersonEffect
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import FULL_UNDO, Action, Change, FieldChange, Plan, Undo

GOLDEN = Path(__file__).parent.parent / "golden"
HASH = "5f" * 32
DEPARTMENT = Address.of("custom_field", "Department")
COACHES = Address.of("group", "Onboarding coaches")
NORDICS = Address.of("smart_group", "Sales Nordics")
BASICS = Address("content_target", f"GDPR basics -> {NORDICS}")
EVIL = "\x1b[31mred\x07\u202egnp.exe\u2028\r\n::error::pwned ##[set-env] /\\ -> <b>@all</b> | `x` \x9b2J\ud800"
"""The name of everything in the hostile samples."""


def golden_document(name: str) -> dict[str, Json]:
    """A JSON document of tests/golden, where its seal and the tool that wrote it are hidden."""
    text = (GOLDEN / f"{name}.json").read_bytes().decode()
    return parse_document(re.sub(r'^  "(tool|seal)": …,?$', r'  "\1": "",', text, flags=re.MULTILINE))


# Digests and seals are not looked at: a key that is new in the format does not keep the samples from being read.
PLANS: dict[str, Plan] = {
    name: plan_file._plan(golden_document(f"plan_{name}"))
    for name in (
        *("rehearsed", "rehearsed_hostile", "empty", "create", "update", "delete", "mixed"),
        *("people", "people_unknown", "people_off", "hostile"),
    )
}
REPORTS: dict[str, ApplyReport] = {
    name: reports._apply_report(golden_document(f"apply_{name}"))
    for name in ("complete", "partial", "stopped", "diverged", "doubled", "unread", "lost", "touched", "edited")
}
EMPTY, CREATE, UPDATE, DELETE = (PLANS[name] for name in ("empty", "create", "update", "delete"))
MIXED, PEOPLE, HOSTILE = PLANS["mixed"], PLANS["people"], PLANS["hostile"]
COMPLETE, PARTIAL, LOST = REPORTS["complete"], REPORTS["partial"], REPORTS["lost"]


def change(
    address: Address,
    action: Action,
    *,
    id: str | None = None,
    line: int | None = None,
    before: Json = None,
    after: Json = None,
    fields: tuple[FieldChange, ...] = (),
    problems: tuple[Problem, ...] = (),
    about: dict[str, Json] | None = None,
    defaults: tuple[str, ...] = (),
    undo: Undo = FULL_UNDO,
) -> Change:
    return Change(
        address=address,
        action=action,
        id=None if id is None else RemoteId(id),
        about=about,
        source=None if line is None else SourceLocation("manifests/people.yaml", line, 5),
        before=before,
        after=after,
        fields=fields,
        problems=problems,
        defaults=defaults,
        undo=undo,
    )


def call(
    number: int, address: Address, operation: str, method: str, path: str, body: object = None, **more: object
) -> Call:
    needs = more.get("needs", ())
    assert isinstance(needs, tuple)
    return Call(
        id=f"c{number}",
        address=address,
        operation=operation,
        method=method,
        path=path,
        query={},
        body=body,
        needs=needs,
        may_be_refused=bool(more.get("may_be_refused")),
    )


def outcome(
    number: int,
    address: Address,
    operation: str,
    status: CallStatus,
    reason: str | None = None,
    *people: str,
    **more: str,
) -> CallOutcome:
    return CallOutcome(
        call=f"c{number}",
        address=address,
        operation=operation,
        status=status,
        reason=reason,
        hint=more.get("hint"),
        id=more.get("id"),
        people=people,
    )


# Effects on people: those of the plan that has every form, and others made beside them.


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
        change="lose",
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
