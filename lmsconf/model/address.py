"""Resource identity without remote ids: Address (kind and name), and Ref, the placeholder of an id in a call."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NewType

RemoteId = NewType("RemoteId", str)
"""An id assigned by the service. In a manifest it appears only as a pin (`id:`)."""

_ESCAPED = re.compile(r"\\|/| -> ")
_ESCAPE = re.compile(r"\\( -> |.)", re.DOTALL)
_BARE_SLASH = re.compile(r"(?<![\\*?\]])/")


def escape(name: str) -> str:
    r"""Escape a name for an address: put a backslash before each `\`, `/` and ` -> `."""
    return _ESCAPED.sub(lambda match: "\\" + match[0], name)


def unescape(text: str) -> str:
    """Undo `escape`."""
    return _ESCAPE.sub(lambda match: match[1], text)


def escape_slashes(pattern: str) -> str:
    """Escape the slashes of a shell pattern that cannot match an escaped one."""
    return _BARE_SLASH.sub(r"\\/", pattern)


EVERYBODY: Final = "everyone"
"""The audience of all people: not a resource, so its address is this single word."""
_KIND: Final = re.compile("[a-z_]+")


class Address(NamedTuple):
    """The address of a resource, `group/Onboarding coaches`: its kind and its escaped name.

    An audience that is not a resource is a single word without a slash: `everyone`, or an unresolved audience.
    """

    kind: str
    text: str

    @classmethod
    def of(cls, kind: str, name: str) -> Address:
        """Return the address of a resource with this unescaped name."""
        return cls(kind, escape(name))

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address; the inverse of `str`. Raises ValueError where there is no kind."""
        kind, _, rest = text.partition("/")
        if not kind:
            raise ValueError(f"{text!r} is not an address such as group/Sales")
        return cls(kind, rest)

    @property
    def name(self) -> str:
        """The unescaped name."""
        return unescape(self.text)

    def __str__(self) -> str:
        # A live resource may have an empty name; it keeps its slash.
        is_word = not self.text and (self.kind == EVERYBODY or not _KIND.fullmatch(self.kind))
        return self.kind if is_word else f"{self.kind}/{self.text}"


class Ref(NamedTuple):
    """A resource, or a part of one (a choice of a field), that a call makes, uses, releases or ends.

    In a path or a body it is the placeholder of an id; the executor replaces it by the id before sending.
    """

    address: Address
    part: str | None = None

    def __str__(self) -> str:
        return str(self.address) if self.part is None else f"{self.address}#{escape(self.part)}"
