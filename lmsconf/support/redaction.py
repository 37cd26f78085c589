"""Takes secrets out of text that leaves: tokens, and links whose query is a key in itself.

What a service says may repeat what it was sent, and hold links that let anybody in. Every text of a service goes
through `redacted` before it becomes part of an error, and so does all that tells of problems, tracebacks as well.
"""

from __future__ import annotations

import json
import re
from typing import Final
from urllib.parse import quote

HIDDEN: Final = "***"
_SHORTEST: Final = 8
"""A shorter token would be found in ordinary words, and is none."""
_NAMES: Final = (
    r"x-(?:amz|goog|ms)-(?:signature|credential|security-token)|awsaccesskeyid|googleaccessid|key-pair-id|policy"
    r"|sig|signature|jwt|assertion|(?:access|refresh|id|auth|login|session|security)?[_-]?token|api[_-]?key"
    r"|(?:client[_-]?)?secret|password|passwd|authorization"
)
_IS: Final = r"(?:=|%3d|\\u003d)"
_LINK: Final = re.compile(r"(?i)(https?:(?:\\?/){2})([^\s\"'<>/\\?#]+)([^\s\"'<>]*)")
_KEYED: Final = re.compile(rf"(?i)(?:[?&;#]|%3f|%26|\\u0026|\b)(?:{_NAMES}){_IS}")
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)((?:\s|%20|\+)+)[\w.~+/=-]{8,}")
_JWT: Final = re.compile(r"\beyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]*)*")
_PAIR: Final = re.compile(rf"(?i)(\b(?:{_NAMES}){_IS})(?!{re.escape(HIDDEN)})[^\s\"'<>&,;}}\\]+")
_MEMBER: Final = re.compile(rf"(?i)(\"(?:{_NAMES})\"\s*:\s*\")(?:[^\"\\]|\\.)+")
_QUOTED_MEMBER: Final = re.compile(rf"(?i)(\\\"(?:{_NAMES})\\\"\s*:\s*\\\")(?:(?!\\\").)+")

_known: set[str] = set()


def keep_secret(token: str) -> None:
    """From now on, no text holds this token, nor the forms that JSON and URLs give it."""
    if len(token) >= _SHORTEST:
        _known.update(forms(token))


def forms(token: str) -> set[str]:
    """The token as it may stand in a text, in JSON and in a URL."""
    return {token, json.dumps(token)[1:-1], quote(token, safe=""), quote(token)}


def without_tokens(text: str) -> str:
    """The text without the tokens that this process knows."""
    # The longest first: one token may begin with another.
    for token in sorted(_known, key=len, reverse=True):
        text = text.replace(token, HIDDEN)
    return text


def redacted(text: str) -> str:
    """The text without anything that looks like a key: known tokens, JWTs, credentials, and pre-signed links."""
    text = _LINK.sub(_link, without_tokens(text))
    text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
    text = _JWT.sub(HIDDEN, text)
    text = _QUOTED_MEMBER.sub(rf"\1{HIDDEN}", _MEMBER.sub(rf"\1{HIDDEN}", text))
    return _PAIR.sub(rf"\1{HIDDEN}", text)


def _link(found: re.Match[str]) -> str:
    """The link without who uses it; of one that is a key in itself, only where it leads."""
    scheme, place, rest = found.groups()
    host = place.rpartition("@")[2]
    shown = place if host == place else f"{HIDDEN}@{host}"
    return f"{scheme}{shown}/{HIDDEN}" if _KEYED.search(rest) else f"{scheme}{shown}{rest}"
