"""Names with characters that probably nobody meant to write: pasted quotation marks, invisible ones, look-alikes."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from lmsconf.model.names import TWINS, is_unseen, quote_name

_OPENING: Final = "\"'`\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b"
_CLOSING: Final = "\"'`\u00b4\u201c\u201d\u2018\u2019"
_PASTED: Final = "\u201c\u201d\u201e\u201f"
_JOINERS: Final = "\u200c\u200d\ufe0e\ufe0f"
"""Invisible characters that emoji and the scripts of Persian and of India need."""
_WORD: Final = re.compile(r"[^\W\d_]+")


def suspicion(name: str) -> str | None:
    """Return what is probably wrong with a name, as the rest of a sentence that begins with it; None for nothing."""
    if _is_quoted(name):
        return f"includes quotation marks: {quote_name(name)}"
    unseen = next(filter(_is_hidden, name), None)
    if unseen is not None:
        return f"includes {_called(unseen)}, which cannot be seen"
    for word in _WORD.findall(name):
        twin = next((char for char in word if ord(char) in TWINS), None)
        if twin is not None and any(char.isascii() for char in word):
            return f"includes {_called(twin)}, which looks like {chr(TWINS[ord(twin)])}, among Latin letters"
    return None


def _is_quoted(name: str) -> bool:
    """Whether the whole name is in quotation marks, or one that a text editor has put there is left over."""
    if len(name) > 1 and name[0] in _OPENING and name[-1] in _CLOSING:
        inner = name[1:-1]
        return not any(char in inner for char in name[0] + name[-1])
    marks = [place for place, char in enumerate(name) if char in _PASTED]
    return marks in ([0], [len(name) - 1])


def _is_hidden(char: str) -> bool:
    if char.isascii() or char in _JOINERS:
        return False
    # The wide blank is an ordinary one between wide letters.
    return is_unseen(char) or (unicodedata.category(char) == "Zs" and char != "\u3000")


def _called(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip()
