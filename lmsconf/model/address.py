"""Resource identity without remote ids: Address (kind and name), and Ref, the placeholder of an id in a call."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Final, NamedTuple, NewType

from lmsconf.model.control_characters import escape_invisible

RemoteId = NewType("RemoteId", str)
"""An id assigned by the service. In a manifest it appears only as a pin (`id:`)."""


def text_of_id(value: object) -> str | None:
    """Return an id in a response as text; None if there is none. Some services write ids as numbers."""
    return (str(value) or None) if isinstance(value, str | int) and not isinstance(value, bool) else None


_ESCAPED = re.compile(r"\\| ->(?= |$)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_TYPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U(00[0-9a-f]{6})|(.))", re.DOTALL)
_LONE = re.compile(r"(\\(?:[\\/]| ->(?=[ *?\[]|$)))|\\")
_SHORT: Final = {"n": "\n", "r": "\r", "t": "\t", "/": "/", "*": "[*]", "?": "[?]", "[": "[[]"}
"""What is behind a backslash → what is meant."""


def escape(name: str) -> str:
    r"""Escape a name for an address: put a backslash before each `\` and ` -> `; a `/` needs none."""
    return _ESCAPED.sub(lambda match: "\\" + match[0], name)


def unescape(text: str) -> str:
    """Undo `escape`."""
    return _ESCAPE.sub(lambda match: match[1], text) if "\\" in text else text


def decode_typed(text: str) -> str:
    r"""Return the address, or the pattern, that a person typed or pasted from a view.

    Views show invisible characters as `\x1b`. `\*` is a star; `\/` is how earlier versions wrote a slash.
    """
    return _TYPED.sub(_decoded, text)


def double_lone_backslashes(pattern: str) -> str:
    r"""Double each backslash that is not before `\`, `/` or ` -> `: such a pattern has no second reading.

    Once `\*` in a file meant a backslash and a wildcard; as typed, it means a star.
    """
    return _LONE.sub(lambda match: match[1] or "\\\\", pattern)


def _decoded(match: re.Match[str]) -> str:
    if code := match[1] or match[2] or match[3]:
        number = int(code, 16)
        return escape(chr(number)) if number <= sys.maxunicode else match[0]
    return _SHORT.get(match[4], match[0])


def shell_quoted(address: Address) -> str:
    """Return an address as an argument on one line: the option that takes it decodes the escapes of a view."""
    return shlex.quote(escape_invisible(str(address)))


EVERYBODY: Final = "everyone"
"""The audience of all people: not a resource, so its address is this single word."""


class Address(str):
    """The address of a resource, `group/Onboarding coaches`: its kind and its escaped name.

    An audience that is not a resource is a single word without a slash: `everyone`, or an unresolved audience.
    """

    __slots__ = ("kind", "text")
    kind: str
    text: str

    def __new__(cls, kind: str, text: str) -> Address:
        # A live resource may have an empty name; it keeps its slash.
        is_word = not text and (kind == EVERYBODY or not re.fullmatch("[a-z_]+", kind))
        made = super().__new__(cls, kind if is_word else f"{kind}/{text}")
        made.kind, made.text = kind, text
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # those of its own __new__
        return self.kind, self.text

    @classmethod
    def of(cls, kind: str, name: str) -> Address:
        """Return the address of a resource with this unescaped name."""
        return cls(kind, escape(name))

    @classmethod
    def parse(cls, text: str) -> Address:
        r"""Parse an address; the inverse of `str`. Raises ValueError where there is no kind.

        Files of earlier versions have a backslash before a `/`.
        """
        kind, _, rest = text.partition("/")
        if "\\/" in rest:
            rest = _ESCAPE.sub(lambda match: match[0] if match[1] != "/" else "/", rest)
        if not kind:
            raise ValueError(f"{text!r} is not an address such as group/Sales")
        return cls(kind, rest)

    @property
    def name(self) -> str:
        """The unescaped name."""
        return unescape(self.text)


class Ref(NamedTuple):
    """A resource, or a part of one (a choice of a field), that a call makes, uses, releases or ends.

    In a path or a body it is the placeholder of an id; the executor replaces it by the id before sending.
    """

    address: Address
    part: str | None = None

    def __str__(self) -> str:
        return str(self.address) if self.part is None else f"{self.address}#{escape(self.part)}"
