"""Drift reports that show every form a view must word, built by hand."""

from __future__ import annotations

from datetime import date

from msgspec.structs import replace
from views.document_samples import (
    BASICS,
    COACHES,
    DELETE,
    DEPARTMENT,
    EMPTY,
    EVERYONE,
    EVIL,
    INTRO,
    NORDICS,
    UPDATE,
    call,
    change,
)

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import (
    DriftCause,
    DriftFinding,
    DriftReport,
    DriftState,
    FieldDrift,
    IgnoredFinding,
    IgnoreRule,
    LastEdit,
    ManagedResource,
    ManagedShare,
)
from lmsconf.model.plan import Action, Change, FieldChange, Plan, RenameCandidate, UnmanagedResources
from lmsconf.planner.drift import TAKE_OVER

FILE = "manifests/people.yaml"
INTERNS = Address.of("group", "Summer interns 2024")
TEAM = Address.of("group", "Team 1")
RUNNERS, CHOIR, READERS = (Address.of("group", name) for name in ("Runners", "Choir", "Readers"))
JOGGERS = RenameCandidate(
    address=Address.of("group", "Joggers"),
    id=RemoteId("g-8"),
    why="the same members",
    line='previously: ["Joggers"]',
    is_earlier_name=True,
)

NONE = DriftReport(
    workspace="production",
    url="https://lms.example/api",
    people=412,
    created_at="2026-03-01T08:00:00Z",
    timezone="Europe/Stockholm",
    manifests_digest="ab" * 32,
    manifests_files=(FILE, "manifests/targets.yaml"),
    managed=(
        ManagedResource(BASICS, SourceLocation(FILE, 31, 5)),
        ManagedResource(COACHES, SourceLocation(FILE, 12, 5)),
    ),
    findings=(),
    ignored=(),
    coverage=(
        ManagedShare(kind="content_target", managed=1, live=1),
        ManagedShare(kind="group", managed=1, live=3, left_alone=1),
    ),
    unmanaged=(UnmanagedResources(kind="group", addresses=(TEAM,), left_alone=1),),
    counts_unmanaged=False,
    problems=(),
)

ALL = replace(
    NONE,
    managed=tuple(
        sorted(
            ManagedResource(address, SourceLocation(FILE, line, 5))
            for address, line in (
                *((DEPARTMENT, 3), (COACHES, 12), (NORDICS, 20), (BASICS, 31), (INTERNS, 40)),
                *((RUNNERS, 44), (CHOIR, 46), (READERS, 48)),
            )
        )
    ),
    findings=(
        DriftFinding(
            address=BASICS,
            state=DriftState.CHANGED,
            id=RemoteId("k-1/SMART_GROUP/s-1"),
            about={"owner": "compliance"},
            source=SourceLocation(FILE, 31, 5),
            declared={"mandatory": True, "visible_until": None},
            live={"mandatory": False, "visible_until": "2026-06-30T23:59:59+02:00"},
            fields=(
                FieldDrift(path="mandatory", declared=True, live=False),
                FieldDrift(path="visible_until", declared=None, live="2026-06-30T23:59:59+02:00"),
            ),
            edit=LastEdit("eva@acme.example", "2026-02-28T17:05:00+01:00"),
            restore=f"lmsconf apply --only '{BASICS}'",
            accept=f"lmsconf drift --accept '{BASICS}'",
        ),
        DriftFinding(
            address=INTRO,
            state=DriftState.UNDECLARED,
            id=RemoteId("k-2/EVERYONE/EVERYONE"),
            live={"mandatory": False},
            reason="it is owned, and no manifest declares it",
            edit=LastEdit(None, "2026-02-28T17:05:00+01:00"),
            restore="lmsconf apply",
            accept=f"lmsconf {TAKE_OVER}",
        ),
        DriftFinding(
            address=COACHES,
            state=DriftState.CHANGED,
            id=RemoteId("g-1"),
            source=SourceLocation(FILE, 12, 5),
            declared={"name": "Onboarding coaches"},
            live={"name": "Coaches"},
            fields=(
                FieldDrift(path="name", declared="Onboarding coaches", live="Coaches"),
                FieldDrift(path="members", missing=("bo.ek@acme.example",), extra=("cy.dahl@acme.example",)),
                FieldDrift(path="managers", extra=tuple(f"m{n:02}@acme.example" for n in range(24))),
            ),
            restore="lmsconf apply --only 'group/Onboarding coaches'",
            accept="lmsconf drift --accept 'group/Onboarding coaches'",
        ),
        DriftFinding(
            address=INTERNS,
            state=DriftState.MISSING,
            source=SourceLocation(FILE, 40, 5),
            declared={"name": "Summer interns 2024"},
            restore="lmsconf apply --only 'group/Summer interns 2024'",
            accept="lmsconf drift --accept 'group/Summer interns 2024'",
        ),
        DriftFinding(
            address=RUNNERS,
            state=DriftState.RENAMED,
            id=RemoteId("g-8"),
            source=SourceLocation(FILE, 44, 5),
            declared={"name": "Runners"},
            live={"name": "Joggers"},
            fields=(FieldDrift(path="name", declared="Runners", live="Joggers"),),
            candidates=(JOGGERS,),
            restore="lmsconf apply --only group/Runners",
            accept="lmsconf drift --accept group/Runners",
        ),
        DriftFinding(
            address=CHOIR,
            state=DriftState.RENAMED,
            source=SourceLocation(FILE, 46, 5),
            declared={"name": "Choir", "members": ["bo.ek@acme.example", "cy.dahl@acme.example"]},
            candidates=(JOGGERS, replace(JOGGERS, id=RemoteId("g-9"), line='id: {"production": "g-9"}')),
        ),
        DriftFinding(
            address=READERS,
            state=DriftState.MISSING,
            source=SourceLocation(FILE, 48, 5),
            declared={"name": "Readers"},
            candidates=(
                RenameCandidate(
                    address=Address.of("group", "Reader"),
                    id=RemoteId("g-7"),
                    why="a close name",
                    line='previously: ["Reader"]',
                    is_earlier_name=True,
                ),
            ),
            accept="lmsconf drift --accept group/Readers",
        ),
        DriftFinding(address=TEAM, state=DriftState.UNMANAGED, accept=f"lmsconf {TAKE_OVER}"),
        DriftFinding(
            address=NORDICS,
            state=DriftState.MISSING,
            source=SourceLocation(FILE, 20, 5),
            declared={"name": "Sales Nordics"},
            restore="lmsconf apply --only 'smart_group/Sales Nordics'",
            accept="lmsconf drift --accept 'smart_group/Sales Nordics'",
        ),
    ),
    ignored=(
        IgnoredFinding(
            finding=DriftFinding(
                address=DEPARTMENT,
                state=DriftState.CHANGED,
                id=RemoteId("f-1"),
                source=SourceLocation(FILE, 3, 5),
                declared={"choices": ["Sales", "Legal"]},
                live={"choices": ["Sales"]},
                fields=(FieldDrift(path="choices", missing=("Legal",)),),
            ),
            entry=IgnoreRule(
                pattern="custom_field/*",
                reason="HR is moving fields over",
                until=date(2027, 1, 1),
                source=SourceLocation("lmsconf.yaml", 9, 5),
            ),
        ),
    ),
    coverage=(
        ManagedShare(kind="content_target", managed=2, live=2),
        ManagedShare(kind="custom_field", managed=1, live=1),
        ManagedShare(kind="group", managed=1, live=3, left_alone=1),
        ManagedShare(kind="smart_group", managed=0, live=0),
    ),
    counts_unmanaged=True,
    problems=(
        Problem(
            code="drift/ignore-expired",
            severity=Severity.WARNING,
            message="ignore: group/UI * held until 2026-01-01 and hides nothing any more (course builders)",
            hint="Remove it from the project file, or set a later date.",
            source=SourceLocation("lmsconf.yaml", 10, 5),
        ),
    ),
)

BROKEN = replace(
    NONE,
    people=None,
    coverage=(
        ManagedShare(kind="group", managed=0, live=2, incomplete="a page brought only known ids"),
        ManagedShare(kind="smart_group", managed=0, live=0),
    ),
    problems=(
        Problem(
            code="read/incomplete",
            message=f"{COACHES}: it is not known whether it exists",
            hint="Nothing is created from an incomplete list. Plan again once it can be read.",
            source=SourceLocation(FILE, 12, 5),
            address=str(COACHES),
        ),
        Problem(code="select/nothing", message="nothing to compare with"),
    ),
)

_EVIL = Address.of("group", EVIL)
HOSTILE = replace(
    NONE,
    workspace=EVIL,
    url=f"https://lms.example/{EVIL}",
    managed=(
        ManagedResource(_EVIL, SourceLocation(EVIL, 1, 1)),
        ManagedResource(Address.of("group", f"{EVIL}!"), SourceLocation(EVIL, 2, 1)),
    ),
    findings=(
        DriftFinding(
            address=_EVIL,
            state=DriftState.CHANGED,
            about={EVIL: EVIL},
            source=SourceLocation(EVIL, 1, 1),
            declared={EVIL: EVIL},
            live={EVIL: [EVIL]},
            fields=(
                FieldDrift(path=EVIL, declared=EVIL, live="]]> --> [click](https://evil.example)"),
                FieldDrift(path="members", missing=(EVIL,), extra=("::warning::x", "")),
            ),
            reason=EVIL,
            edit=LastEdit(EVIL, EVIL),
            restore=f"lmsconf apply --only '{EVIL}'",
            accept=f"lmsconf drift --accept '{EVIL}'",
        ),
    ),
    ignored=(
        IgnoredFinding(
            finding=DriftFinding(
                address=Address("content_target", f"{_EVIL.text} -> {EVERYONE}"), state=DriftState.UNDECLARED
            ),
            entry=IgnoreRule(pattern=EVIL, reason=EVIL, until=None, source=SourceLocation(EVIL, 3, 1)),
        ),
    ),
    coverage=(ManagedShare(kind=EVIL, managed=1, live=3, incomplete=EVIL),),
    unmanaged=(UnmanagedResources(kind="group", addresses=(Address.of("group", EVIL),)),),
    problems=(Problem(code="x", message=EVIL, hint=f"{EVIL}\n::stop-commands::x", source=SourceLocation(EVIL, 4)),),
)

BASED = replace(
    ALL,
    base="origin/main",
    findings=(
        replace(ALL.findings[2], cause=DriftCause.BY_HAND, unapplied=("members",), accept=None),
        replace(ALL.findings[1], cause=DriftCause.BY_HAND),
    ),
    not_applied=tuple(
        replace(one, cause=DriftCause.NOT_APPLIED, accept=None) for one in (ALL.findings[0], ALL.findings[3])
    ),
    counts_unmanaged=False,
)

DRIFTS = {"none": NONE, "all": ALL, "based": BASED, "broken": BROKEN, "hostile": HOSTILE}


# Plans of any size, with every action on every kind.


_ACTIONS = (*(Action.DELETE,) * 2, *(Action.UPDATE,) * 3, Action.REPLACE, *(Action.CREATE,) * 4)
_KINDS = ("group", "smart_group", "custom_field")


def large(changes: int, people: int = 40) -> Plan:
    """A plan of so many changes, with as many calls, some of which wait for others.

    people: a list of a change has fewer of them.
    """
    made = tuple(_change(number, people) for number in range(changes))
    return replace(
        EMPTY,
        changes=made,
        calls=tuple(
            call(n, one.address, "groups.touch", "POST", f"/groups/{n}", {"n": n}, needs=_needs(n))
            for n, one in enumerate(made)
        ),
        guards=DELETE.guards,
        unmanaged=UPDATE.unmanaged,
        problems=tuple(
            Problem(
                code="people/archived",
                severity=Severity.WARNING,
                message=f"person{n}@acme.example is archived",
                source=SourceLocation("manifests/people.yaml", n + 1),
            )
            for n in range(changes // 10)
        ),
    )


def _needs(number: int) -> tuple[str, ...]:
    return (f"c{number - 1 - number % 7}",) if number > 10 and number % 9 == 0 else ()


def _change(number: int, people: int) -> Change:
    action = _ACTIONS[number % len(_ACTIONS)]
    group = Address.of(_KINDS[number % 3], f"Team {number:05} of department {number % 37}")
    target = Address("content_target", f"Course {number:05} -> {group}")
    members = [f"p{n}@acme.example" for n in range(min(number % 40, people))]
    form: Json = {"members": members, "managers": ["m@acme.example"]}
    return change(
        group if number % 2 else target,
        action,
        line=number + 1,
        before=form if action is Action.DELETE else None,
        after=form if action is Action.CREATE else None,
        fields=_fields(action, number, people),
    )


def _fields(action: Action, number: int, people: int) -> tuple[FieldChange, ...]:
    if action is Action.REPLACE:
        return (FieldChange(path="mandatory", before=True, after=False),)
    if action is Action.UPDATE:
        gone = tuple(f"p{n}@acme.example" for n in range(min(number % 30, people)))
        return (FieldChange(path="members", added=("new@acme.example",), removed=gone),)
    return ()
