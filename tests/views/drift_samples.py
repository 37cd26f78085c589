"""Drift reports that show every form a view must word, read back from tests/golden; and plans of any size."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace
from views.document_samples import BASICS, COACHES, DEPARTMENT, EVIL, NORDICS, PLANS, change, golden_document

from lmsconf.documents.json_documents import from_json
from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import DriftReport
from lmsconf.model.plan import Action, Change, FieldChange, Plan

_FEW = [BASICS, COACHES]
_GROUPS = ("Summer interns 2024", "Runners", "Choir", "Readers")
_MANY = [*_FEW, DEPARTMENT, NORDICS, *(Address.of("group", name) for name in _GROUPS)]


def _report(name: str, managed: Iterable[Address]) -> DriftReport:
    """A report of tests/golden. managed: what is declared, and its line; a document has only their number."""
    said: Any = golden_document(f"drift_{name}")
    values = {
        **said,
        "workspace": said["workspace"]["name"],
        "url": said["workspace"]["url"],
        "manifests_digest": said["manifests"]["digest"],
        "manifests_files": said["manifests"]["files"],
        "managed": [],
        "reads_all": said["read"] == "everything",
        "findings": list(map(_finding, said["findings"])),
        "not_applied": list(map(_finding, said["not_applied"])),
        "ignored": list(map(_finding, said["ignored"])),
    }
    return replace(from_json(values, DriftReport), managed=tuple(sorted(managed)))


def _finding(said: Any) -> Json:
    """The values of a finding, as DriftFinding names them."""
    edit = [said["changed_by"], said["changed_at"]]
    candidates = [{**one, "is_earlier_name": True} for one in said["candidates"]]
    names = {"declared": "before", "live": "after", "missing": "removed", "extra": "added"}
    fields = [{names.get(key, key): value for key, value in one.items()} for one in said["fields"]]
    values = {"candidates": candidates, "fields": fields, "edit": edit if any(edit) else None}
    return {**said, **said["hint"], **values}


ALL = _report("all", _MANY)
HOSTILE = _report("hostile", [Address.of("group", EVIL), Address.of("group", f"{EVIL}!")])
DRIFTS = {
    "none": _report("none", _FEW),
    "all": ALL,
    "based": _report("based", _MANY),
    "broken": _report("broken", _FEW),
    "hostile": HOSTILE,
}


# Plans of any size, with every action on every kind.


_ACTIONS = (*(Action.DELETE,) * 2, *(Action.UPDATE,) * 3, Action.REPLACE, *(Action.CREATE,) * 4)
_KINDS = ("group", "smart_group", "custom_field")


def large(changes: int, people: int = 40) -> Plan:
    """A plan of so many changes, with as many calls, some of which wait for others.

    people: a list of a change has fewer of them.
    """
    made = tuple(_change(number, people) for number in range(changes))
    return replace(
        PLANS["empty"],
        changes=made,
        calls=tuple(
            Call(
                id=f"c{n}",
                address=one.address,
                operation="groups.touch",
                method="POST",
                path=f"/groups/{n}",
                query={},
                body={"n": n},
                needs=(f"c{n - 1 - n % 7}",) if n > 10 and n % 9 == 0 else (),
            )
            for n, one in enumerate(made)
        ),
        guards=PLANS["delete"].guards,
        unmanaged=PLANS["update"].unmanaged,
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


def _change(number: int, people: int) -> Change:
    action = _ACTIONS[number % len(_ACTIONS)]
    group = Address.of(_KINDS[number % 3], f"Team {number:05} of department {number % 37}")
    target = Address("content_target", f"Course {number:05} -> {group}")
    members = [f"p{n}@acme.example" for n in range(min(number % 40, people))]
    form: Json = {"members": members, "managers": ["m@acme.example"]}
    gone = tuple(f"p{n}@acme.example" for n in range(min(number % 30, people)))
    fields = {
        Action.REPLACE: (FieldChange(path="mandatory", before=True, after=False),),
        Action.UPDATE: (FieldChange(path="members", added=("new@acme.example",), removed=gone),),
    }
    return change(
        group if number % 2 else target,
        action,
        line=number + 1,
        before=form if action is Action.DELETE else None,
        after=form if action is Action.CREATE else None,
        fields=fields.get(action, ()),
    )
