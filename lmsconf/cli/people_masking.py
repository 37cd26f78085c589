"""`--mask-people`: remove e-mails, ids and personal data from all output.

`cli.output` applies it to values before they are rendered and to text before it is written. A person is
labelled `person 1`, `person 2` and so on in order of first appearance; a label is stable within one run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import partial
from threading import Lock
from typing import Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import Problem
from lmsconf.kinds.assignment.types import is_about_people
from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.access import ConditionResult
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Call
from lmsconf.model.drift import LastEdit
from lmsconf.model.names import normalize_email
from lmsconf.model.plan import Plan

HIDDEN: Final = "(masked)"
_ADDRESS: Final = re.compile(
    r"[^\s@\"'<>()\[\]{},;:|\\/=`*][^\s@\"<>()\[\]{},;:|\\/=`*]*@[^\s@\"'<>()\[\]{},;:|\\/=`*]*[^\s@\"'<>()\[\]{},;:|\\/=`*.?!]"
)
# An e-mail, or the address of a resource whose name is one.
_WHOLE: Final = re.compile(rf"((?:{'|'.join(KINDS)})/)?([^@\s/][^@\s]*@[^@\s]+)")
_ESCAPED: Final = re.compile(r"[\w.!#$&+-]*(?:%40|\\u0040|&#64;|&#x40;|&commat;)[\w.-]*\w", re.IGNORECASE)
_USER_ID: Final = re.compile(r"\b(user id )[^\s,;\"']+")
# Ids in paths are percent-encoded: any other character is of the text around the path.
_IN_PATH: Final = re.compile(r"(/(?:users|members|managers)/)([^/\s\"'?&<>(){},;`\\]+)")
_QUOTED_ANSWER: Final = re.compile(r"(answered \d{3}[^:\n]*|with a body that cannot be used|It begins): .*")
# In a rendered line, not again what is masked already: behind it is the end of a string or an element, or a code.
_ANSWER_IN_LINE: Final = re.compile(
    _QUOTED_ANSWER.pattern.replace(": .*", r": (?!\(masked\)(?:$|[\"<\\&]| \[[a-z/-]+\]$)).*")
)
_QUOTED: Final = re.compile(r"\"[^\"]*\"|(\bids? )[^\s,;]+(?:, [^\s,;]+)*")

_PEOPLE: Final = frozenset(name for name, kind in KINDS.items() if kind.is_person)
_PERSONAL: Final = frozenset({"before", "after", "added", "removed", "declared", "live", "missing", "extra"})
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
Value = TypeVar("Value")


class PeopleMask:
    """The masking of one run: normalised e-mail → label."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._lock = Lock()
        self._operations = ApiSpec.default().operations
        segments = "/".join(operation.path for operation in self._operations.values()).split("/")
        self._words = frozenset(segment for segment in segments if not segment.startswith("{"))

    def label(self, address: str) -> str:
        """Return the label of a person, assigning the next one to a new e-mail. Thread-safe."""
        with self._lock:
            return self._labels.setdefault(normalize_email(address), f"person {len(self._labels) + 1}")

    def mask_lines(self, text: str) -> str:
        """Mask a text of several lines, line by line."""
        return "".join(self._masked(line, _ANSWER_IN_LINE) for line in text.splitlines(keepends=True))

    def mask_text(self, text: str) -> str:
        """Replace e-mails with labels; hide user ids and quoted bodies of responses."""
        return self._masked(text, _QUOTED_ANSWER)

    def _masked(self, text: str, answer: re.Pattern[str]) -> str:
        """answer: matches the quoted body of a response."""
        if whole := _WHOLE.fullmatch(text):
            return (whole[1] or "") + self.label(whole[2])
        text = _ADDRESS.sub(lambda match: self.label(match[0]), text)
        text = _ESCAPED.sub(HIDDEN, text)
        text = _USER_ID.sub(rf"\1{HIDDEN}", text)
        text = _IN_PATH.sub(lambda match: match[0] if match[2] in self._words else match[1] + HIDDEN, text)
        return answer.sub(rf"\1: {HIDDEN}", text)

    def mask_value(self, value: Value) -> Value:
        """Return a copy with every string masked and all field values of people hidden."""
        return cast("Value", self._value(value))

    def _value(self, value: object, is_personal: bool = False) -> object:
        """is_personal: whether the value is of a resource that is a person."""
        mask = partial(self._value, is_personal=is_personal)
        match value:
            case Enum():
                return value
            case Address() if value.kind in _PEOPLE:
                return Address.of(value.kind, self.label(value.name))
            case Address():
                return Address(self.mask_text(value.kind), self.mask_text(value.text))
            case str():
                return self.mask_text(value)
            case LastEdit():
                return value._replace(by=value.by and HIDDEN)
            case Mapping():
                return {mask(key): mask(item) for key, item in value.items()}
            case tuple() if hasattr(value, "_fields"):
                return type(value)(*map(mask, value))  # type: ignore[arg-type]  # its own fields
            case tuple() | list() | frozenset() | set():
                return type(value)(map(mask, value))
            case Struct():
                return self._struct(value, is_personal)
        return value

    def _struct(self, value: Struct, is_personal: bool) -> Struct:
        """Return a copy of a struct with each field masked; of a person, values are hidden: keys show what changes."""
        value, about = self._masked_by_type(value), getattr(value, "address", None)
        if isinstance(about, Address):
            is_personal = about.kind in _PEOPLE
        fields = asdict(value)
        # The hidden ones first: so the numbers of people follow the values of a change, and not its place.
        hidden = {name: self._hidden(fields[name]) for name in fields if is_personal and name in _PERSONAL}
        masked = hidden | {name: self._value(item, is_personal) for name, item in fields.items() if name not in hidden}
        # The remote id of an assignment is the id of its audience, here of a person. A call's is not a remote one.
        if isinstance(about, Address) and is_about_people(about) and not isinstance(value, Call):
            masked |= dict.fromkeys(masked.keys() & {"id"})
        return replace(value, **masked)

    def _masked_by_type(self, value: Struct) -> Struct:
        """Hide what only the type of a struct tells: fingerprints, user ids in a call, texts that a problem quotes."""
        match value:
            case Plan():
                from lmsconf.documents.plan_file import plan_digest

                # The digest shown must be that of the unmasked plan, not of this copy.
                return replace(value, masked_digest=plan_digest(value), fingerprints={})
            case Call():
                return self._call(value)
            case Problem() if _is_about_people(value):
                return replace(value, message=_unquoted(value.message), hint=value.hint and _unquoted(value.hint))
            case ConditionResult(answer=[_, *_]):
                return replace(value, answer=(HIDDEN,))
        return value

    def _hidden(self, value: object) -> object:
        """Hide a value but keep its structure; an e-mail becomes a label, booleans and None stay."""
        match value:
            case None | bool():
                return value
            case str() if _WHOLE.fullmatch(value):
                return self.mask_text(value)
            case Mapping():
                return {key: self._hidden(item) for key, item in value.items()}
            case Ref():  # a tuple, too
                return self._value(value, is_personal=False)
            case tuple() | list():
                return type(value)(map(self._hidden, value))
        return HIDDEN

    def _call(self, call: Call) -> Call:
        """Return a call without user ids in its path and, if it concerns people, with the values of its body hidden."""
        known = self._operations.get(call.operation)
        template = known.path if known else ""
        parameters = _PARAMETER.findall(template)
        if call.people or "userId" in parameters or is_about_people(call.address):
            call = replace(call, body=self._hidden(call.body))
        # The value may be `{user/…}`, the person that another call creates.
        if values := re.fullmatch(_PARAMETER.sub("(.+)", template), call.path):
            named = dict(zip(parameters, values.groups(), strict=True)) | {"userId": HIDDEN}
            call = replace(call, path=template.format_map(named))
        return call


def _is_about_people(problem: Problem) -> bool:
    kind = (problem.address or "").partition("/")[0]
    return kind in _PEOPLE or problem.code.startswith(("person/", "people/", "user/"))


def _unquoted(text: str) -> str:
    """Return a text without what it quotes, and without ids."""
    return _QUOTED.sub(lambda match: (match[1] or "") + HIDDEN, text)
