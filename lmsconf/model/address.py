"""Names before and after ids exist: an Address is what people call a resource, a Ref stands where its id will go."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NewType

RemoteId = NewType("RemoteId", str)
"""An id of the service. In a manifest only as a pin."""

_ESCAPED = re.compile(r"\\|/| -> ")
_ESCAPE = re.compile(r"\\( -> |.)", re.DOTALL)


def escape(name: str) -> str:
    r"""A name as it stands in an address: `\`, `/` and ` -> ` each behind a backslash."""
    return _ESCAPED.sub(lambda found: "\\" + found[0], name)


def unescape(text: str) -> str:
    """The name that `escape` was given."""
    return _ESCAPE.sub(lambda found: found[1], text)


EVERYBODY: Final = "everyone"
"""The one audience that is no resource, and stands in addresses as this word."""
_KIND: Final = re.compile("[a-z_]+")


class Address(NamedTuple):
    """What people call a resource, `group/Onboarding coaches`: its kind, and its name in escaped form.

    What is no resource of any kind is a word by itself: `everyone`, or an audience that nothing explains.
    """

    kind: str
    text: str

    @classmethod
    def of(cls, kind: str, name: str) -> Address:
        """The address of the resource with that plain name."""
        return cls(kind, escape(name))

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that prints as `text`. Raises ValueError where there is no kind."""
        kind, _, rest = text.partition("/")
        if not kind:
            raise ValueError(f"{text!r} is not an address such as group/Sales")
        return cls(kind, rest)

    @property
    def name(self) -> str:
        """The plain name."""
        return unescape(self.text)

    def __str__(self) -> str:
        # A live resource may have an empty name, and is one all the same.
        is_word = not self.text and (self.kind == EVERYBODY or not _KIND.fullmatch(self.kind))
        return self.kind if is_word else f"{self.kind}/{self.text}"


class Ref(NamedTuple):
    """A resource, or a part of one (a field's choice), that a call makes, uses, frees or ends.

    Inside a path or a body it stands for an id that is not known yet; the applier puts the id in its place.
    """

    address: Address
    part: str | None = None

    def __str__(self) -> str:
        return str(self.address) if self.part is None else f"{self.address}#{escape(self.part)}"
