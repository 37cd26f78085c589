"""Plans and reports that show every form a view must word, built by hand."""

from __future__ import annotations

from datetime import date

from msgspec.structs import replace
from views import effect_samples

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import EFFECTS_OFF, NO_EFFECTS
from lmsconf.model.outcomes import ApplyReport, CallOutcome, VerifiedScope, VerifyMode
from lmsconf.model.plan import (
    FULL_UNDO,
    Action,
    Assumption,
    Change,
    FieldChange,
    GuardCount,
    GuardResult,
    Plan,
    PlanScope,
    SettingChange,
    Undo,
    UndoLevel,
    UnmanagedResources,
)
from lmsconf.model.policy import GuardLimit, GuardLimits, Policy

EVERYONE = Address("everyone", "")
HASH = "5f" * 32
POLICY = Policy(workspace="production", today=date(2026, 3, 1))


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


EMPTY = Plan(
    workspace="production",
    url="https://lms.example/api",
    people=412,
    created_at="2026-03-01T08:00:00Z",
    expires_at="2026-03-08T08:00:00Z",
    policy=POLICY.settings_json(),
    manifests_digest="ab" * 32,
    manifests_files=("manifests/people.yaml", "manifests/targets.yaml"),
    offline=False,
    timezone="Europe/Stockholm",
    changes=(),
    calls=(),
    guards=(),
    unmanaged=(),
    fingerprints={},
    problems=(),
    effects=NO_EFFECTS,
)

DEPARTMENT = Address.of("custom_field", "Department")
COACHES = Address.of("group", "Onboarding coaches")
NORDICS = Address.of("smart_group", "Sales Nordics")
BASICS = Address("content_target", f"GDPR basics -> {NORDICS}")
INTRO = Address("content_target", "Old intro -> everyone")

CREATE = replace(
    EMPTY,
    people=1,
    changes=(
        change(
            DEPARTMENT,
            Action.CREATE,
            line=3,
            about={"owner": "hr-systems", "ticket": "LD-412", "years": [2026, 2027]},
            after={
                "type": "CHOICE",
                "choices": ["Sales", "Engineering", "People and Culture", " padded "],
                "hidden": False,
            },
            defaults=("description", "locked"),
        ),
        change(
            COACHES,
            Action.CREATE,
            line=12,
            after={
                "managers": [],
                "members": {
                    "include": [f"person{n:03}@acme.example" for n in range(410)],
                    "exclude": ["cy@acme.example"],
                },
            },
        ),
        change(
            NORDICS,
            Action.CREATE,
            line=20,
            after={
                "conditions": [
                    {"field": "Department", "choices": ["Engineering", "Sales"], "system_condition": "IS_ANY"},
                    {"field": "Country", "choices": ["NO", "SE"]},
                    {"field": "City", "choices": ["Oslo or Bergen"], "system_condition": "IS_NONE"},
                    {"field": "Title", "system_condition": "IS_EMPTY"},
                ],
                "managers": ["anna.berg@acme.example"],
            },
        ),
        change(
            BASICS,
            Action.CREATE,
            line=31,
            after={"mandatory": True, "visible_from": "2026-01-05T00:00:00+01:00", "visible_until": None},
        ),
    ),
    calls=(
        call(1, DEPARTMENT, "custom-fields.create", "POST", "/custom-fields", {"name": "Department", "type": "CHOICE"}),
        call(2, COACHES, "manual-groups.create", "POST", "/groups", {"name": "Onboarding coaches"}),
        call(
            3,
            COACHES,
            "manual-groups.add-members",
            "POST",
            "/groups/{group/Onboarding coaches}/members",
            {"userIds": ["u-1", "u-2"]},
            needs=("c2",),
        ),
        call(
            4,
            NORDICS,
            "smart-groups.create",
            "POST",
            "/smart-groups",
            {
                "name": "Sales Nordics",
                "conditions": [{"customFieldId": Ref(DEPARTMENT), "choiceIds": [Ref(DEPARTMENT, "Sales")]}],
            },
            needs=("c1",),
        ),
        call(
            5,
            BASICS,
            "content-targets.create",
            "POST",
            "/content/targets",
            {"contentId": "k-1", "targetId": Ref(NORDICS), "mandatory": True},
            needs=("c4",),
        ),
    ),
    assumptions=(
        Assumption(key="content-targets.create.mandatory", value="mandatory", known=False, calls=1),
        Assumption(key="content-targets.everyone", value="EVERYONE", known=True, calls=1),
        Assumption(key="manual-groups.add-members.userIds", value="userIds", known=False, calls=2),
    ),
    assumed_calls=3,
)

UPDATE = replace(
    EMPTY,
    selection=PlanScope(only=("group/A",)),
    changes=(
        change(
            DEPARTMENT,
            Action.UPDATE,
            id="f-1",
            line=3,
            before={"choices": ["HR", "Sales"], "description": "Old"},
            after={"choices": ["People and Culture", "Legal"], "description": None},
            fields=(
                FieldChange(path="description", before="Old", after=None),
                FieldChange(path="choices", added=("Legal",), removed=("Sales",)),
                FieldChange(path="choices.HR", before="HR", after="People and Culture"),
            ),
            problems=(
                Problem(
                    code="refusal/in-use",
                    severity=Severity.WARNING,
                    message="custom_field/Department: may be refused, because smart_group/Sales Nordics uses the field",
                    hint="Allow the attempt with --allow refusals=1, or make the change by hand:\nSettings, Fields.",
                    source=SourceLocation("manifests/people.yaml", 3, 5),
                    address=str(DEPARTMENT),
                ),
            ),
        ),
        change(
            COACHES,
            Action.UPDATE,
            id="g-1",
            line=12,
            before={"name": "Coaches"},
            after={"name": "Onboarding coaches"},
            fields=(
                FieldChange(path="name", before="Coaches", after="Onboarding coaches"),
                FieldChange(path="members", added=("bo.ek@acme.example",), removed=("cy.dahl@acme.example",)),
                FieldChange(path="managers", removed=tuple(f"m{n:04}@acme.example" for n in range(1200))),
            ),
        ),
        change(
            NORDICS,
            Action.UPDATE,
            id="s-1",
            line=20,
            before={},
            after={},
            fields=(
                FieldChange(
                    path="conditions",
                    added=({"field": "Department", "choices": ["Engineering", "Sales"]},),
                    removed=({"field": "Department", "choices": ["Sales"]},),
                ),
            ),
        ),
        change(
            BASICS,
            Action.REPLACE,
            id="t-1",
            line=31,
            before={"mandatory": False},
            after={"mandatory": True},
            fields=(FieldChange(path="mandatory", before=False, after=True),),
        ),
    ),
    calls=(
        call(1, COACHES, "manual-groups.rename", "POST", "/groups/g-1/rename", {"name": "Onboarding coaches"}),
        call(
            2,
            DEPARTMENT,
            "custom-fields.replace",
            "PUT",
            "/custom-fields/f-1",
            {"name": "Department"},
            may_be_refused=True,
        ),
    ),
    guards=(
        GuardResult(
            name="removals",
            limit={"count": 50, "share": 0.1},
            total=1203,
            tripped=False,
            allow="removals=1203",
            reason="1203 removals, and the limit is 50",
            allowed_by="Contractors leave",
        ),
    ),
    measures=(GuardCount(guard="removals", of="group/Onboarding coaches members", taken=1, size=40),),
    unmanaged=(
        UnmanagedResources(
            kind="group", addresses=tuple(Address.of("group", f"Team {n}") for n in range(12)), left_alone=3
        ),
        UnmanagedResources(kind="content_target", addresses=(INTRO,)),
        UnmanagedResources(kind="smart_group", addresses=(), left_alone=1),
    ),
    fingerprints={str(COACHES): HASH, str(DEPARTMENT): HASH},
    problems=(
        Problem(
            code="people/archived",
            severity=Severity.WARNING,
            message="bo.ek@acme.example is archived",
            hint="Take the person out of the list.",
            source=SourceLocation("hr/leaders.csv", 7),
            address=str(COACHES),
        ),
        Problem(code="identity/rename-done", severity=Severity.NOTE, message="`previously: Coaches` can go"),
    ),
    left_out=(INTRO,),
)

RELAXED = replace(
    POLICY,
    guards=GuardLimits(min_admins=1).with_limits({"removals": None, "updates": GuardLimit(count=500, share=0.3)}),
    create_people=True,
    settle=0,
)
DELETE = replace(
    EMPTY,
    people=None,
    policy=RELAXED.settings_json(),
    base="main",
    settings_changed=(
        SettingChange(path="guards.removals", base={"count": 50, "share": 0.1}, now="off", weaker=True),
        SettingChange(path="leave_alone", base=[], now=["group/UI *"], weaker=False),
        SettingChange(path="settle", base=30.0, now=0.0, weaker=True),
    ),
    offline=True,
    changes=(
        change(INTRO, Action.DELETE, id="t-9", before={"mandatory": True, "visible_until": None}),
        change(
            Address.of("group", "Summer interns 2024"),
            Action.DELETE,
            id="g-4",
            line=44,
            before={
                "members": [f"intern{n:02}@acme.example" for n in range(25)],
                "managers": ["anna.berg@acme.example"],
            },
            undo=Undo(level=UndoLevel.PARTIAL, reason="the group comes back with another id"),
        ),
    ),
    calls=(
        call(
            1,
            INTRO,
            "content-targets.delete",
            "DELETE",
            "/content/targets",
            {"targetId": "EVERYONE", "targetType": "GROUP", "contentId": "k-2"},
        ),
        call(
            2,
            Address.of("group", "Summer interns 2024"),
            "manual-groups.delete",
            "DELETE",
            "/groups/g-4",
            needs=("c1",),
        ),
    ),
    guards=(
        GuardResult(
            name="deletes",
            limit={"count": 1, "share": None},
            total=2,
            tripped=True,
            allow="deletes=2",
            reason="2 deletes, and the limit is 1",
        ),
        GuardResult(
            name="removals",
            limit={"count": 50, "share": 0.1},
            total=27,
            tripped=True,
            allow="removals=27",
            reason="25 of 25 in members of group/Summer interns 2024, and the limit is 10%",
        ),
        GuardResult(name="recreates", limit={"count": 0}, total=0, tripped=False, allow=None),
    ),
)

EVIL = "\x1b[31mred\x07\u202egnp.exe\u2028\r\n::error::pwned ##[set-env] /\\ -> <b>@all</b> | `x` \x9b2J\ud800"
HOSTILE = replace(
    EMPTY,
    base=EVIL,
    settings_changed=(SettingChange(path=f"vars.{EVIL}", base=EVIL, now=[EVIL], weaker=False),),
    workspace=EVIL,
    url="https://lms.example/\x1b]0;title\x07",
    changes=(
        change(
            Address.of("group", EVIL),
            Action.CREATE,
            line=1,
            about={EVIL: EVIL},
            after={"members": [EVIL, "::warning::x", ""], EVIL: EVIL},
        ),
        change(
            Address("content_target", f"{Address.of('x', EVIL).text} -> {Address.of('smart_group', 'a -> b')}"),
            Action.UPDATE,
            fields=(
                FieldChange(path=EVIL, before=EVIL, after=None),
                FieldChange(
                    path="conditions", added=({"field": EVIL, "choices": [EVIL, '"'], "system_condition": EVIL},)
                ),
            ),
            problems=(Problem(code="x", message=EVIL, hint=f"::stop-commands::{EVIL}\n{EVIL}", address=EVIL),),
        ),
    ),
    unmanaged=(UnmanagedResources(kind="group", addresses=(Address.of("group", EVIL),)),),
    problems=(Problem(code="x", message=EVIL, hint=EVIL, source=SourceLocation(f"::{EVIL}", 1, 1)),),
    guards=(GuardResult(name=EVIL, limit={}, total=1, tripped=True, allow=f"{EVIL}=1", reason=EVIL),),
    effects=effect_samples.hostile(EVIL),
    assumptions=(Assumption(key=EVIL, value=EVIL, known=False, calls=1),),
    assumed_calls=1,
)

MIXED = replace(
    EMPTY,
    changes=(
        CREATE.changes[0],
        replace(UPDATE.changes[1], fields=UPDATE.changes[1].fields[:2]),
        replace(CREATE.changes[2], action=Action.UPDATE, fields=UPDATE.changes[0].fields[:1]),
        replace(CREATE.changes[3], reason="its audience is made anew"),
        *DELETE.changes,
    ),
    calls=(
        *CREATE.calls[:1],
        call(2, COACHES, "manual-groups.rename", "POST", "/groups/g-1/rename", {"name": "Onboarding coaches"}),
        *CREATE.calls[3:],
        call(6, INTRO, "content-targets.delete", "DELETE", "/content/targets", {"contentId": "k-2"}, needs=("c5",)),
    ),
    guards=(*DELETE.guards, *UPDATE.guards),
    unmanaged=UPDATE.unmanaged,
    problems=(
        Problem(
            code="refusal/protected",
            message="group/All staff: it is protected, but the plan would rename it",
            hint="Remove the change from the manifests, or the resource from `guards.protect`.",
            source=SourceLocation("manifests/people.yaml", 50, 5),
            address="group/All staff",
        ),
        *UPDATE.problems,
    ),
    assumptions=(
        *(Assumption(key=f"a.{n}", value="b", known=False, calls=n) for n in range(1, 5)),
        Assumption(key="content-targets.on-existing", value="update", known=False, calls=1_204),
    ),
    assumed_calls=1_205,
)

PEOPLE = replace(
    EMPTY,
    changes=(replace(UPDATE.changes[1], fields=UPDATE.changes[1].fields[:2]), *UPDATE.changes[2:]),
    guards=(
        GuardResult(
            name="people",
            limit={"count": 20, "share": 0.1},
            total=53,
            tripped=True,
            allow="people=53",
            reason="53 people lose content or a part of its window, and the limit is 20",
        ),
    ),
    measures=(GuardCount(guard="mandatory", of="all people", taken=1_250, size=412_000),),
    effects=effect_samples.LOSSES,
)
NOT_KNOWN = replace(
    PEOPLE,
    guards=(
        replace(
            PEOPLE.guards[0],
            total=None,
            allow="people=unknown",
            reason="the number of people who lose content is not known, and the limit is 20",
        ),
    ),
    effects=effect_samples.UNKNOWN,
)
OFF = replace(NOT_KNOWN, effects=EFFECTS_OFF)

REHEARSED = replace(
    UPDATE,
    rehearsal=effect_samples.refused(COACHES, UPDATE.changes[1:2], "409 conflict: the name is taken"),
)
HOSTILE_REHEARSAL = replace(
    HOSTILE, rehearsal=effect_samples.refused(Address.of("group", EVIL), HOSTILE.changes[:1], EVIL)
)

PLANS = {
    "rehearsed": REHEARSED,
    "rehearsed_hostile": HOSTILE_REHEARSAL,
    "empty": EMPTY,
    "create": CREATE,
    "update": UPDATE,
    "delete": DELETE,
    "mixed": MIXED,
    "people": PEOPLE,
    "people_unknown": NOT_KNOWN,
    "people_off": OFF,
    "hostile": HOSTILE,
}


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


COMPLETE = ApplyReport(
    plan_digest=HASH,
    workspace="production",
    url="https://lms.example/api",
    people=412,
    started_at="2026-03-01T08:00:00Z",
    finished_at="2026-03-01T08:00:09Z",
    outcomes=(
        outcome(1, DEPARTMENT, "custom-fields.create", CallStatus.DONE, id="f-1"),
        outcome(2, COACHES, "manual-groups.create", CallStatus.DONE, id="g-1"),
        outcome(
            3, COACHES, "manual-groups.add-members", CallStatus.DONE, None, *(f"p{n}@acme.example" for n in range(5))
        ),
    ),
    verified=VerifiedScope(scope=VerifyMode.ALL, resources=2),
    converged=True,
    residue=(),
    problems=(),
    meta={"commit": "9f3c", "approver": "cy"},
    exit=0,
    predicted=effect_samples.LOSSES.totals,
)

PARTIAL = replace(
    COMPLETE,
    outcomes=(
        outcome(
            1, DEPARTMENT, "custom-fields.replace", CallStatus.FAILED, "403: the field is in use", hint="Free it first."
        ),
        outcome(2, NORDICS, "smart-groups.create", CallStatus.BLOCKED, "custom_field/Department failed"),
        outcome(3, BASICS, "content-targets.create", CallStatus.BLOCKED, "custom_field/Department failed"),
        outcome(4, COACHES, "manual-groups.add-members", CallStatus.DONE, None, "bo@acme.example", "cy@acme.example"),
        outcome(5, INTRO, "content-targets.delete", CallStatus.NOT_ATTEMPTED, "the run was interrupted"),
    ),
    converged=False,
    residue=UPDATE.changes[3:],
    problems=(Problem(code="apply/interrupted", message="interrupted by Ctrl-C", hint="Run again."),),
    exit=5,
)

STOPPED = replace(
    COMPLETE,
    people=None,
    outcomes=(
        outcome(1, Address.of("group", EVIL), "manual-groups.create", CallStatus.FAILED, EVIL, hint=EVIL),
        outcome(2, Address.of("group", EVIL), "manual-groups.add-members", CallStatus.BLOCKED, None, EVIL),
    ),
    verified=VerifiedScope(reason="The run was stopped before that."),
    converged=None,
    meta={EVIL: EVIL},
    exit=7,
)

DIVERGED = replace(
    COMPLETE,
    converged=False,
    residue=(replace(UPDATE.changes[1], fields=UPDATE.changes[1].fields[:2]),),
    problems=(
        Problem(
            code="apply/no-effect",
            message=f"{COACHES}: the service accepted the calls, but it is still not as planned",
            hint="Check the dialect keys manual-groups.add-members.userIds.",
            address=str(COACHES),
        ),
    ),
    exit=6,
)

DOUBLED = replace(
    COMPLETE,
    outcomes=(outcome(1, INTRO, "content-targets.create", CallStatus.DONE),),
    converged=False,
    problems=(
        Problem(
            code="identity/live-twice",
            message=f"{INTRO}: it is live more than once",
            hint="Delete one of them in the product.",
            address=str(INTRO),
        ),
        Problem(code="journal/failed", message="the journal is not complete", severity=Severity.WARNING),
    ),
    exit=6,
)

UNREAD = replace(COMPLETE, verified=VerifiedScope(reason="GET /groups: no answer"), converged=None, exit=6)

TOUCHED = replace(
    COMPLETE,
    verified=VerifiedScope(
        scope=VerifyMode.TOUCHED, resources=2, reason="Nothing else was checked (--verify touched)."
    ),
)

EDITED = replace(
    COMPLETE,
    converged=False,
    residue=(*DIVERGED.residue, *DELETE.changes[:1]),
    exit=6,
)

LOST = replace(
    COMPLETE,
    outcomes=(
        outcome(
            1,
            COACHES,
            "manual-groups.create",
            CallStatus.FAILED,
            "POST /groups at lms.example: the connection was cut",
            hint="Nobody can tell whether it was done. Apply once more.",
        ),
        outcome(2, COACHES, "manual-groups.add-members", CallStatus.BLOCKED, "it needs c1, which was not done"),
    ),
    verified=VerifiedScope(reason="The run was stopped before that."),
    converged=None,
    exit=5,
)

REPORTS = {
    "complete": COMPLETE,
    "partial": PARTIAL,
    "stopped": STOPPED,
    "diverged": DIVERGED,
    "doubled": DOUBLED,
    "unread": UNREAD,
    "lost": LOST,
    "touched": TOUCHED,
    "edited": EDITED,
}
