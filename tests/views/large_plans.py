"""Plans of any size, with every action on every kind."""

from __future__ import annotations

from document_samples import DELETE, EMPTY, UPDATE, call, change
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Change, FieldChange, Plan

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
