"""Drift reports that show every form a view must word, read back from tests/golden; and plans of any size."""

from collections.abc import Iterable
from typing import cast

from msgspec.structs import replace
from views.document_samples import (
    BASICS,
    COACHES,
    DELETE,
    DEPARTMENT,
    EMPTY,
    EVIL,
    NORDICS,
    UPDATE,
    call,
    change,
    golden_document,
)

from lmsconf.documents.json_documents import from_json
from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import DriftReport
from lmsconf.model.plan import Action, Change, FieldChange, Plan

_FEW = [BASICS, COACHES]
_GROUPS = ("Summer interns 2024", "Runners", "Choir", "Readers")
_MANY = [*_FEW, DEPARTMENT, NORDICS, *(Address.of("group", name) for name in _GROUPS)]


def _report(name: str, managed: Iterable[Address]) -> DriftReport:
    """A report of tests/golden. managed: what is declared, and its line; a document has only their number."""
    document = cast("dict[str, dict[str, Json]]", golden_document(f"drift_{name}"))
    values: dict[str, object] = {
        **document,
        "workspace": document["workspace"]["name"],
        "url": document["workspace"]["url"],
        "manifests_digest": document["manifests"]["digest"],
        "manifests_files": document["manifests"]["files"],
        "managed": [],
        "reads_all": document["read"] == "everything",
        "findings": list(map(_finding, document["findings"])),
        "not_applied": list(map(_finding, document["not_applied"])),
        "ignored": [{"finding": _finding(one), "entry": one["ignored_by"]} for one in _rows(document["ignored"])],
    }
    found = from_json(cast("Json", values), DriftReport)
    return replace(found, managed=tuple(sorted(managed)))


def _rows(value: object) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", value)


def _finding(document: object) -> object:
    """The values of a finding, as DriftFinding names them."""
    said = cast("dict[str, Json]", document)
    edit = [said["changed_by"], said["changed_at"]]
    return {
        **said,
        **cast("dict[str, Json]", said["hint"]),
        "candidates": [{**one, "is_earlier_name": True} for one in _rows(said["candidates"])],
        "edit": edit if any(edit) else None,
    }


_EVIL = Address.of("group", EVIL)
NONE, BROKEN = (_report(name, _FEW) for name in ("none", "broken"))
ALL, BASED = (_report(name, _MANY) for name in ("all", "based"))
HOSTILE = _report("hostile", [_EVIL, Address.of("group", f"{EVIL}!")])
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
