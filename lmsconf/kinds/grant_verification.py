"""How the effect of a call that grants access is verified: which ids it grants, and a read that shows who has them.

The service lists answers by the name of the field, with ids or names of choices; requests have ids of fields, and ids
or names of choices (API specification, Users).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from lmsconf.api.spec.operations import CUSTOM_FIELDS
from lmsconf.api.spec.value_encoding import ANSWERS, decode_answers_body
from lmsconf.kinds.assignment.types import TargetRow, parse_target_row
from lmsconf.kinds.custom_field.types import FieldRow, parse_field_row
from lmsconf.kinds.shared.kind_names import GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.responses import AnswerRow, id_set, object_list, require_object, try_parse_answers
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import Call, GetRequest
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import normalize_name

_ASSIGNS: Final = "content-targets.create"
_MAKES_ADMIN: Final = "user-access.make-admin"
_REVOKING: Final = frozenset(
    {
        "users.archive",
        "manual-groups.remove-member",
        "manual-groups.remove-manager",
        "manual-groups.delete",
        "smart-groups.remove-manager",
        "smart-groups.delete",
        "content-targets.delete",
        "custom-fields.delete",
    }
)
"""The operations that take away access, or the answers that access rests on."""


class SentCall(Struct, frozen=True):
    """The path parameters and the body of a call as it was sent, with ids in place of references."""

    path: Mapping[str, str]
    body: object

    def body_value(self, key: str) -> object:
        """Return a value of the body; None if it has none."""
        return self.body.get(key) if isinstance(self.body, Mapping) else None

    def listed_ids(self) -> frozenset[str]:
        """Return the ids in the lists of the body, whatever the names of their fields."""
        lists = self.body.values() if isinstance(self.body, Mapping) else ()
        return frozenset(str(item) for value in lists if isinstance(value, list) for item in value)


class GrantVerification(Struct, frozen=True):
    """How the effect of one granting operation is verified.

    granted: the ids that a call grants. visible: reads the ids that are granted now. missing: the message if some are
    not visible, with the places {missing} and {granted} for their number. spared: what is therefore not done.
    """

    granted: Callable[[SentCall], Collection[Hashable]]
    visible: Callable[[GetRequest, SentCall], Collection[Hashable]]
    missing: str
    spared: str = "nobody is removed"


def grant_verification(call: Call, *, any_audience: bool = False) -> GrantVerification | None:
    """Return how the effect of a call that grants access is verified; None for any other call.

    The id of everyone, or of one person, may be listed as another id, so of assignments only those to groups are
    verified, unless any are: those that the change of a replaced assignment depends on.
    """
    audience = call.address.name.rpartition(" -> ")[2].partition("/")[0]
    is_uncertain = call.operation == _ASSIGNS and not any_audience and audience not in (GROUP, SMART_GROUP)
    is_revocation = call.operation == _MAKES_ADMIN and not call.path.endswith("/true")
    return None if is_uncertain or is_revocation else _VERIFICATIONS.get(call.operation)


def revokes_access(call: Call) -> bool:
    """Return whether a call takes away access, so that the grants it depends on are verified before it is sent.

    The path of one that takes away administrator or manager rights ends in `false`.
    """
    return call.operation in _REVOKING or (call.address.kind == USER and call.path.endswith("/false"))


def _additions_to(operation: str, key: str) -> GrantVerification:
    """Return how additions to a list of people are verified: `operation` reads the ids in the list, under `key`."""

    def visible(get: GetRequest, sent: SentCall) -> frozenset[RemoteId]:
        return id_set(require_object(get(operation, path=sent.path), "a group"), key)

    return GrantVerification(SentCall.listed_ids, visible, "{missing} of {granted} are not in the list")


def _person(sent: SentCall) -> frozenset[str]:
    return frozenset({sent.path["userId"]})


def _admins(get: GetRequest, sent: SentCall) -> frozenset[str]:
    """Return the person of a call, if an administrator; otherwise nobody."""
    person = require_object(get("users.get", path={"userId": sent.path["userId"]}), "a person")
    return _person(sent) if person.get("admin") is True else frozenset()


def _target(sent: SentCall) -> frozenset[str]:
    return frozenset({str(sent.body_value("targetId") or sent.body_value("userId"))})


def targets_of(get: GetRequest, sent: SentCall) -> list[TargetRow]:
    """Return the live assignments of a call's content to its audience, if that is listed by the id sent."""
    content = RemoteId(str(sent.body_value("contentId")))
    answer = require_object(get("content-targets.list", query={"contentId": content}), "the targets")
    rows = (parse_target_row(content, one) for one in object_list(answer, "targets"))
    return [row for row in rows if row.target in _target(sent)]


def _answers(call: SentCall) -> frozenset[tuple[str, str]]:
    """Return the parts of the answers that a call sets: (field, choice by id or by name, or text)."""
    return frozenset((field, normalize_name(value)) for field, value in decode_answers_body(call.body))


def _visible_answers(get: GetRequest, call: SentCall) -> set[tuple[str, str]]:
    """Return which of the answers of a call the person has now."""
    person = require_object(get("users.get", path=dict(call.path)), "a user")
    sent, ids = _answers(call), set(_choice_ids(person.get("customFields")))
    visible = {(field, value) for field, value in sent if value in ids}
    if len(visible) == len(sent):
        return visible
    # Texts, and choices that are shown by name, may be those of another field: only its definition tells.
    fields: dict[str, FieldRow] = {row.id: row for row in read_fields(get)}
    held = {answer.field: answer for answer in try_parse_answers(person) or ()}
    return visible | {(field, value) for field, value in sent if _has(held, fields.get(field), value)}


def _choice_ids(value: Json) -> Iterator[str]:
    """Yield the ids of choices in a JSON value: the values of `choiceId` and `choiceIds`."""
    for key, part in members(value).items():
        if key in ("choiceId", "choiceIds"):
            yield from map(str, part if isinstance(part, list) else [part])
        else:
            yield from _choice_ids(part)
    for item in value if isinstance(value, list) else ():
        yield from _choice_ids(item)


def read_fields(get: GetRequest) -> list[FieldRow]:
    """Return all custom fields as they are now."""
    data = require_object(get(CUSTOM_FIELDS.name), "the custom fields")
    return list(map(parse_field_row, object_list(data, CUSTOM_FIELDS.rows)))


def _has(held: Mapping[str, AnswerRow], field: FieldRow | None, wanted: str) -> bool:
    """Whether an answer is among those of a person, which name the field by its name or its id."""
    answer = (held.get(normalize_name(field.name)) or held.get(field.id)) if field else None
    if field is None or answer is None:
        return False
    if field.type == "TEXT":
        return normalize_name(answer.as_text) == wanted
    both = ({str(choice.id), normalize_name(choice.name)} for choice in field.choices)
    shown = {wanted}.union(*(one for one in both if wanted in one))
    return not shown.isdisjoint(map(normalize_name, answer.picked))


ANSWERS_GIVEN: Final = GrantVerification(
    _answers,
    _visible_answers,
    "{missing} of {granted} are not among the person's answers",
    "what they were copied from is not deleted",
)
"""How answers to custom fields are verified."""
_VERIFICATIONS: Final = {
    "manual-groups.add-members": _additions_to("manual-groups.members", "userIds"),
    "manual-groups.add-managers": _additions_to("manual-groups.managers", "userIds"),
    "smart-groups.add-managers": _additions_to("smart-groups.get", "managers"),
    _MAKES_ADMIN: GrantVerification(_person, _admins, "the person is not an administrator"),
    ANSWERS: ANSWERS_GIVEN,
    _ASSIGNS: GrantVerification(
        _target, lambda get, sent: {row.target for row in targets_of(get, sent)}, "the content is not assigned"
    ),
}
"""Operation → how what it grants is verified."""
