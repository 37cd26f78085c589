"""`--mask-people`: whatever is shown goes through here, and comes out without e-mails, ids and data of people.

Everything that is told leaves through `cli.frame`: values before they are worded, texts before they are written. Each
person is `person 1`, `person 2` and so on in the order in which they are told, the same through all of one run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Final, TypeVar, cast

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import Problem
from lmsconf.kinds.shared.names import USER
from lmsconf.model.address import Address
from lmsconf.model.drift import Edit
from lmsconf.model.names import email
from lmsconf.model.values import Call, Change, Plan

HIDDEN: Final = "(masked)"
_ADDRESS: Final = re.compile(
    r"[^\s@\"'<>()\[\]{},;:|\\/=`*][^\s@\"<>()\[\]{},;:|\\/=`*]*@[^\s@\"'<>()\[\]{},;:|\\/=`*]*[^\s@\"'<>()\[\]{},;:|\\/=`*.?!]"
)
_WHOLE: Final = re.compile(r"[^@\s]+@[^@\s]+")
_ESCAPED: Final = re.compile(r"[\w.!#$&+-]*(?:%40|\\u0040|&#64;|&#x40;|&commat;)[\w.-]*\w", re.IGNORECASE)
_USER_ID: Final = re.compile(r"\b(user id )[^\s,;\"']+")
_IN_PATH: Final = re.compile(r"(/(?:users|members|managers)/)([^/\s\"'?]+)")
_QUOTED_ANSWER: Final = re.compile(r"(answered \d{3}[^:\n]*|with a body that cannot be used|It begins): .*")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|(\bids? )[^\s,;]+(?:, [^\s,;]+)*")
_ABOUT_PEOPLE: Final = ("person/", "people/", "user/")
_PERSONAL: Final = frozenset({"before", "after", "added", "removed", "declared", "live", "missing", "extra"})
Value = TypeVar("Value")


class Mask:
    """The people of one run by the labels that stand for them."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._operations = ApiSpec.default().operations
        segments = (segment for one in self._operations.values() for segment in one.path.split("/"))
        self._words = frozenset(segment for segment in segments if not segment.startswith("{"))

    def label(self, address: str) -> str:
        """What stands for a person."""
        return self._labels.setdefault(email(address), f"person {len(self._labels) + 1}")

    def lines(self, text: str) -> str:
        """A text of many lines."""
        return "".join(self.text(line) for line in text.splitlines(keepends=True))

    def text(self, text: str) -> str:
        """A text without e-mails, ids of people, and what a service said in an answer."""
        if _WHOLE.fullmatch(text):
            return self.label(text)
        text = _ADDRESS.sub(lambda found: self.label(found[0]), text)
        text = _ESCAPED.sub(HIDDEN, text)
        text = _USER_ID.sub(rf"\1{HIDDEN}", text)
        text = _IN_PATH.sub(lambda found: found[0] if found[2] in self._words else found[1] + HIDDEN, text)
        return _QUOTED_ANSWER.sub(rf"\1: {HIDDEN}", text)

    def value(self, value: Value) -> Value:
        """A value in which every text is masked, with what is said of people themselves left out."""
        return cast("Value", self._value(value))

    def _value(self, value: object) -> object:
        if isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Edit):
            return Edit(None if value.by is None else HIDDEN, value.at)
        if isinstance(value, Address):
            return self._address(value)
        if isinstance(value, Mapping):
            return {self._value(key): self._value(item) for key, item in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self._value(item) for item in value])  # type: ignore[arg-type]  # its own fields
        if isinstance(value, tuple | list | frozenset | set):
            return type(value)(map(self._value, value))
        if is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value)
        return value

    def _dataclass(self, value: object) -> object:
        if isinstance(value, Plan):
            from lmsconf.documents.plan_file import plan_digest

            # What is shown is no plan any more; the digest is still that of the plan.
            value = replace(value, masked_digest=plan_digest(value), fingerprints={})
        if isinstance(value, Call):
            value = self._call(value)
        if isinstance(value, Problem):
            value = _problem(value)
        about = getattr(value, "address", None)
        if not isinstance(about, Address) or not _is_about_people(about):
            return self._fields(value)
        if about.kind == USER:
            return self._person(value)
        # An assignment is known by the id of its audience.
        return self._fields(value, **_without_id(value))

    def _fields(self, value: object, **known: object) -> object:
        """The value, each of its fields masked but for those that are known."""
        found = {one.name: self._value(getattr(value, one.name)) for one in fields(cast("Change", value)) if one.init}
        return replace(cast("Change", value), **{**found, **known})  # type: ignore[arg-type]  # its own fields

    def _person(self, value: object) -> object:
        """What is said of a person: which keys change, and to nobody's eyes from what to what."""
        known = _without_id(value)
        for one in fields(cast("Change", value)):
            said = getattr(value, one.name)
            if one.name in _PERSONAL:
                known[one.name] = self._hidden(said)
            elif one.name == "fields":
                known[one.name] = tuple(map(self._compared, said))
        return self._fields(value, **known)

    def _compared(self, value: object) -> object:
        """One key of a person, seen from both sides."""
        found = {
            one.name: self._hidden(getattr(value, one.name)) if one.name in _PERSONAL else getattr(value, one.name)
            for one in fields(cast("Change", value))
        }
        return replace(cast("Change", value), **found)  # type: ignore[arg-type]  # its own fields

    def _hidden(self, value: object) -> object:
        """A value of a person: its shape, and what it says only where that is an e-mail, yes or no."""
        if isinstance(value, str):
            return self.text(value) if _WHOLE.fullmatch(value) else HIDDEN
        if isinstance(value, Mapping):
            return {key: self._hidden(item) for key, item in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(map(self._hidden, value))
        return value if value is None or isinstance(value, bool) else HIDDEN

    def _address(self, address: Address) -> Address:
        if address.kind == USER:
            return Address.of(USER, self.label(address.name))
        return Address(self.text(address.kind), self.text(address.text))

    def _call(self, call: Call) -> Call:
        """A call without the ids of people, in its path and in its body."""
        known = self._operations.get(call.operation)
        template = known.path.split("/") if known else []
        parts = call.path.split("/")
        is_person = [one == "{userId}" for one in template]
        if len(template) == len(parts):
            parts = [HIDDEN if hides else part for part, hides in zip(parts, is_person, strict=True)]
        names_people = bool(call.people) or any(is_person) or _is_about_people(call.address)
        body = self._hidden(call.body) if names_people else call.body
        return replace(call, path="/".join(parts), body=body)


def _is_about_people(address: Address) -> bool:
    """Whether it is a person, or an assignment to one."""
    return address.kind == USER or f" -> {USER}/" in address.text


def _without_id(value: object) -> dict[str, object]:
    """What takes the id of a person out of a value; the id of a call is none."""
    return {"id": None} if hasattr(value, "id") and not isinstance(value, Call) else {}


def _problem(problem: Problem) -> Problem:
    """A problem about people, without what it quotes of them: cells, names and ids."""
    about = (problem.address or "").startswith(f"{USER}/")
    if not about and not problem.code.startswith(_ABOUT_PEOPLE):
        return problem
    hint = None if problem.hint is None else _unquoted(problem.hint)
    return replace(problem, message=_unquoted(problem.message), hint=hint)


def _unquoted(text: str) -> str:
    return _QUOTED.sub(lambda found: (found[1] or "") + HIDDEN, text)
