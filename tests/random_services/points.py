"""What the API specification leaves to each service: the points, the values that honest services have, and a draw.

The table is literal on purpose: it shares nothing with the values that the probe tries.
"""

import random
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from typing import Final, NamedTuple, cast

Value = str | int
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "users.create.email": ("email", "emailAddress", "mail", "username", "userEmail", "login"),
    "users.create.firstName": ("firstName", "givenName", "first_name", "forename"),
    "users.create.lastName": ("lastName", "familyName", "last_name", "surname"),
    "users.create.language": ("language", "languageCode", "lang", "locale"),
    "users.create.sendWelcomeEmail": ("sendWelcomeEmail", "sendEmail", "sendInvitation", "welcomeEmail", "notify"),
    "users.set-custom-archived-date.date": ("date", "customArchiveDate", "archiveDate", "archivedAt", "timestamp"),
    "manual-groups.rename.name": ("name", "newName", "groupName", "title", "displayName"),
    "manual-groups.create.memberIds": ("memberIds", "members", "userIds", "memberUserIds"),
    "manual-groups.create.managerIds": ("managerIds", "managers", "managerUserIds"),
    "manual-groups.add-members.userIds": ("userIds", "users", "ids", "memberIds", "members"),
    "manual-groups.add-managers.userIds": ("userIds", "users", "ids", "managerIds", "managers"),
    "content-targets.create.mandatory": ("mandatory", "isMandatory", "required", "compulsory"),
    "content-targets.create.startTime": ("startTime", "visibleFrom", "startDate", "start", "availableFrom"),
    "content-targets.create.finishTime": ("finishTime", "visibleUntil", "finishDate", "endTime", "endDate", "until"),
}
"""Operation and the name of a part of its body, as the description has it → what services call it."""
ANSWERS: Final = (
    *("answer_key", "answer_choice", "answer_multi", "answer_text", "clear_choice", "clear_multi", "clear_text"),
    *("answer_omitted", "answer_shown", "answer_none"),
)
"""The points of answers to custom fields."""


def point(*values: Value) -> Value:
    """A point with its values, the first of them as the sandbox has it."""
    return cast("Value", field(default=values[0], metadata={"values": values}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """One service's values.

    answer_key      where the map from fields to answers is: `` the body itself, else the key that holds it
    answer_choice   the answer to a CHOICE field: `id`, `ids` a list, an object, or by `name` or `names`;
                    answer_multi and answer_text likewise
    clear_choice    what clears it: `null`, `empty` the form of an answer without a value, `list` an empty list, `any`
                    of these; clear_multi and clear_text likewise
    answer_omitted  answers that a body omits are kept or cleared
    answer_shown    how answers are read back; answer_none: how an unanswered field is
    add             POST of members and managers adds or replaces; batch: how many ids a call takes; counted: a batch is
                    counted as it is `named`, or without repeated ids
    stranger        unknown ids in a list of people are refused or passed over; likewise archived, and listed for
                    people who are there already
    removing        DELETE of a member or manager who is not there
    manage          who can manage: `anybody`, `with-right`, or the right is `given` along; losing the right ends
                    managing or not
    past_members    archived people are listed as members and managers or not; past_smart: as members of smart groups
    past_users      listings of people have archived ones: `all`, none (`active`), or only `/users` has them (`list`)
    unique          a second thing of a kind with that name: `no`, refused if `exact` or without `case`; trimmed;
                    longest: how many characters a name has at most
    everyone        EVERYONE among the groups: `absent`, `listed`, or `readable`: its members are listed, too
    deleting        a group with assignments: they go `along`, `stay`, or the deletion is refused
    in_use          a field is in use by a `condition`, by `answers`, by `either`, or by either of a `removed` choice
    put             PUT of a field resets or keeps omitted optional parts; clear_description likewise
    is_any          IS_ANY without choices holds for people with `any-answer`, for `all`, or for `nobody`;
                    is_any_beside: beside choices for people with one of the `choices`, or for those as well; system:
                    what a condition without a system condition shows, which then means the same
    existing        POST on an existing target: `reset` and `keep` update it, and treat omitted parts so; `refused`;
                    `ignored`
    clear_time      what opens an end of a window beside omitting it: `null`, `empty`, `both`, `neither`
    target_gone     DELETE of a target that is not there
    time_taken      the form of times in bodies, time_shown in responses; precision: what is kept of them
    types           the words of targetType, group_types of groupType
    order           of listings: `made`, `shuffled` in the same way each time, `reversed`
    page            the largest page; page_over: a larger limit is capped or refused; filter: what it looks at
    ids             `text`, `digits` counted by each kind, `uuid`
    refusal         the status of a refused request, missing of one about an unknown thing; errors: the body of both
    unset           optional values without a value are `absent`, `null` or `blank` texts; false likewise
    unknown         parts of a body that the service does not know are refused or passed over
    made, done      status of an answer with a new thing, and of one without content
    account         POST of an account that exists: `returned` or `refused`
    metadata        replaced or merged
    """

    answer_key: Value = point(
        "", "customFields", "answers", "values", "choices", "customFieldChoices", "selectedChoices"
    )
    answer_choice: Value = point("id", "ids", "choiceId", "choiceIds", "object-id", "name", "names")
    answer_multi: Value = point("ids", "choiceIds", "objects", "names")
    answer_text: Value = point("text", "object-text", "object-value")
    clear_choice: Value = point("empty", "null", "list", "any")
    clear_multi: Value = point("empty", "null", "any")
    clear_text: Value = point("empty", "null", "any")
    answer_omitted: Value = point("keep", "clear")
    answer_shown: Value = point("choices", "choice-ids", "values", "single", "typed", "value", "ids")
    answer_none: Value = point("absent", "null", "empty")
    add: Value = point("adds", "replaces")
    batch: Value = point(100, 2, 10, 1000)
    counted: Value = point("named", "distinct")
    stranger: Value = point("refused", "passed-over")
    archived: Value = point("taken", "refused", "passed-over")
    listed: Value = point("passed-over", "refused")
    removing: Value = point("done", "missing")
    manage: Value = point("anybody", "with-right", "given")
    losing: Value = point("stays", "ends")
    past_members: Value = point("listed", "absent")
    past_smart: Value = point("absent", "listed")
    past_users: Value = point("all", "active", "list")
    unique: Value = point("no", "exact", "case")
    trimmed: Value = point("no", "yes")
    longest: Value = point(255, 64, 40)
    everyone: Value = point("absent", "listed", "readable")
    deleting: Value = point("along", "stay", "refused")
    in_use: Value = point("condition", "answers", "either", "removed")
    put: Value = point("resets", "keeps")
    clear_description: Value = point("both", "null", "empty")
    is_any: Value = point("any-answer", "all", "nobody")
    system: Value = point("absent", "null", "IS_ANY", "IS_ONE_OF")
    existing: Value = point("reset", "keep", "refused", "ignored")
    clear_time: Value = point("null", "empty", "both", "neither")
    target_gone: Value = point("missing", "done")
    time_taken: Value = point("iso", "iso-ms", "iso-z", "local", "epoch", "number", "any")
    time_shown: Value = point("z", "ms-z", "+00:00", "+02:00", "+0000", "local", "epoch")
    precision: Value = point("second", "ms", "minute")
    types: Value = point("GROUP SMART_GROUP USER EVERYONE", "group smartGroup user everyone", "GROUP GROUP USER GROUP",
                         "MANUAL_GROUP SMART_GROUP USER ALL", "USER_GROUP DYNAMIC_GROUP PERSON USER_GROUP")  # fmt: skip
    group_types: Value = point("GROUP SMART_GROUP", "MANUAL SMART", "group smartGroup", "GROUP GROUP")
    order: Value = point("made", "shuffled", "reversed")
    page: Value = point(100, 10, 50, 500)
    page_over: Value = point("capped", "refused")
    filter: Value = point("contains", "email", "equals")
    ids: Value = point("text", "digits", "uuid")
    refusal: Value = point(400, 404, 409, 422)
    missing: Value = point(404, 400, 409, 422)
    errors: Value = point("json", "text", "html", "empty", "problem")
    unset: Value = point("absent", "null", "blank")
    false: Value = point("false", "absent", "null")
    unknown: Value = point("refused", "passed-over")
    made: Value = point(200, 201)
    done: Value = point(204, 200, 202)
    account: Value = point("returned", "refused")
    metadata: Value = point("replaced", "merged")
    is_any_beside: Value = point("choices", "any-answer", "all")
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, key: str) -> str:
        """The service's name for a part of a body."""
        return self.names.get(key, NAMES[key][0])

    def values(self) -> dict[str, Value]:
        """Point → value, with the names as points."""
        return {
            **{point: getattr(self, point) for point in TABLE if point not in NAMES},
            **{key: self.name(key) for key in NAMES},
        }

    def changed(self) -> dict[str, Value]:
        """The points whose value is not the first of the table."""
        return {point: value for point, value in self.values().items() if value != TABLE[point][0]}


TABLE: Final[Mapping[str, tuple[Value, ...]]] = {
    **{one.name: one.metadata["values"] for one in fields(Points) if one.name != "names"},
    **NAMES,
}
"""Point → its values, the first as the sandbox has it."""


def drawn(seed: int, *, settled: Set[str] = frozenset()) -> Points:
    """The service of a seed. settled: points that keep their first value, whatever is drawn."""
    dice = random.Random(seed)  # noqa: S311  no secret
    chosen = {point: dice.choice(values) for point, values in TABLE.items()}
    return made_of({point: value for point, value in chosen.items() if point not in settled})


def made_of(chosen: Mapping[str, Value]) -> Points:
    """The service with these values, made possible: a list that is replaced by each call cannot be written in parts."""
    if chosen.get("add") == "replaces" and int(chosen.get("batch", 100)) < 100:
        chosen = {**chosen, "batch": 100}
    if int(chosen.get("page", 100)) < 100 and chosen.get("page_over") == "refused":
        chosen = {**chosen, "page": 100}  # a limit of 100 is the default, and cannot be refused
    if chosen.get("system", "absent") not in ("absent", "null"):
        chosen = {**chosen, "is_any_beside": "choices"}
    names = {key: str(value) for key, value in chosen.items() if key in NAMES}
    return replace(Points(names=names), **{key: value for key, value in chosen.items() if key not in NAMES})


# Answers to custom fields as one service writes and shows them.


class Field(NamedTuple):
    """A field: its type, and the names of its choices by id."""

    id: str
    name: str
    type: str
    choices: Mapping[str, str]


class Unreadable(Exception):
    """The service does not take this as an answer."""


def read_answer(points: Points, field: Field, value: object) -> list[str] | str | None:
    """The ids of the choices, the text, or None for an answer to be cleared. Raises Unreadable."""
    if _clears(points, field, value):
        return None
    if field.type == "TEXT":
        text = _unwrapped(str(points.answer_text), value)
        if not isinstance(text, str) or not text:
            raise Unreadable(f"{field.name} takes another form of text")
        return text
    form = str(points.answer_choice if field.type == "CHOICE" else points.answer_multi)
    picked = _unwrapped(form, value)
    ids = (
        {name: id for id, name in field.choices.items()}
        if form in ("name", "names")
        else {id: id for id in field.choices}
    )
    chosen = [picked] if isinstance(picked, str) else picked
    if not isinstance(chosen, list) or not chosen or not all(isinstance(one, str) and one in ids for one in chosen):
        raise Unreadable(f"{field.name} has no such choice, or takes another form of answer")
    if field.type == "CHOICE" and len(chosen) > 1:
        raise Unreadable(f"{field.name} takes one choice")
    return [ids[one] for one in chosen]


def _unwrapped(form: str, value: object) -> object:
    """The choice, the choices or the text in a value of that form. Raises Unreadable for another form."""
    keys = {"choiceId": "choiceId", "choiceIds": "choiceIds", "object-id": "id", "object-text": "text",
            "object-value": "value"}  # fmt: skip
    if form in keys:
        if not isinstance(value, dict) or set(value) != {keys[form]}:
            raise Unreadable(f"an answer is an object with {keys[form]}")
        value = value[keys[form]]
    if form == "objects":
        if not isinstance(value, list) or not all(isinstance(one, dict) and set(one) == {"choiceId"} for one in value):
            raise Unreadable("an answer is a list of objects with choiceId")
        return [one["choiceId"] for one in value]
    if isinstance(value, list) != (form in ("ids", "names", "choiceIds", "objects")):
        raise Unreadable("an answer has another form")
    return value


def _clears(points: Points, field: Field, value: object) -> bool:
    """Whether the service takes that as no answer."""
    how, form = {
        "CHOICE": (points.clear_choice, str(points.answer_choice)),
        "MULTI_SELECT": (points.clear_multi, str(points.answer_multi)),
        "TEXT": (points.clear_text, str(points.answer_text)),
    }[field.type]
    empty: Mapping[str, object] = {"choiceId": {"choiceId": ""}, "choiceIds": {"choiceIds": []}, "ids": [], "names": [],
                                   "objects": [], "object-id": {"id": ""}, "object-text": {"text": ""},
                                   "object-value": {"value": ""}}  # fmt: skip
    forms: Mapping[object, Sequence[object]] = {"null": [None], "empty": [empty.get(form, "")], "list": [[]]}
    return value in (forms[how] if how != "any" else [one for each in forms.values() for one in each])


def shown_answers(points: Points, fields: Sequence[Field], given: Mapping[str, list[str] | str]) -> dict[str, object]:
    """The answers of a person by the names of the fields. given: field id → ids of choices, or a text."""
    shown: dict[str, object] = {}
    for one in fields:
        if one.id in given:
            shown[one.name] = _shown(points, one, given[one.id])
        elif points.answer_none != "absent":
            shown[one.name] = (
                None if points.answer_none == "null" else _shown(points, one, "" if one.type == "TEXT" else [])
            )
    return shown


def _shown(points: Points, field: Field, value: list[str] | str) -> dict[str, object]:
    """One answer, which the specification says is an object."""
    how = points.answer_shown
    if isinstance(value, str):
        text = {"choices": {"text": value}, "choice-ids": {"value": value}, "values": {"value": value},
                "single": {"text": value}, "typed": {"type": "TEXT", "choices": [], "text": value},
                "value": {"value": value}, "ids": {"text": value}}  # fmt: skip
        return dict(text[str(how)])
    names = [field.choices[id] for id in value]
    pairs = [{"choiceId": id, "name": field.choices[id]} for id in value]
    match how:
        case "choice-ids":
            return {"choiceIds": value}
        case "values":
            return {"values": names}
        case "single" if field.type == "CHOICE":
            return {"choiceId": value[0], "name": names[0]} if value else {"choiceId": None, "name": None}
        case "single":
            return {"choiceIds": value}
        case "typed":
            return {"type": field.type, "choices": pairs, "text": None}
        case "value" if field.type == "CHOICE":
            return {"value": names[0] if names else None}
        case "value":
            return {"value": names}
        case "ids":
            return {"choices": [{"id": one["choiceId"], "name": one["name"]} for one in pairs]}
    return {"choices": pairs}
