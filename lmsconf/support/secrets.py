"""Redact secrets from output: tokens, credentials and pre-signed links.

A response may echo the token, or contain links that grant access by themselves. All response text is redacted before it
becomes part of an error, and so is everything that reports problems, tracebacks included.
"""

from __future__ import annotations

import json
import re
from typing import Final
from urllib.parse import quote

HIDDEN: Final = "***"
_NAMES: Final = (
    r"x-(?:amz|goog|ms)-(?:signature|credential|security-token)|awsaccesskeyid|googleaccessid|key-pair-id|policy"
    r"|sig|signature|jwt|assertion|(?:access|refresh|id|auth|login|session|security)?[_-]?token|api[_-]?key"
    r"|(?:client[_-]?)?secret|password|passwd|authorization"
)
_IS: Final = r"(?:=|%3d|\\u003d)"
# Texts, compiled by `re` when they are first used: few commands meet a secret, and these take a millisecond.
_LINK: Final = r"(?i)(https?:(?:\\?/){2})([^\s\"'<>/\\?#]+)([^\s\"'<>]*)"
_KEYED: Final = rf"(?i)(?:[?&;#]|%3f|%26|\\u0026|\b)(?:{_NAMES}){_IS}"
_RULES: Final = (
    (r"(?i)\b(bearer|basic)((?:\s|%20|\+)+)[\w.~+/=-]{8,}", rf"\1\2{HIDDEN}"),
    (r"\beyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]*)*", HIDDEN),  # a JSON Web Token
    (rf"(?i)(\"(?:{_NAMES})\"\s*:\s*\")(?:[^\"\\]|\\.)+", rf"\1{HIDDEN}"),
    (rf"(?i)(\\\"(?:{_NAMES})\\\"\s*:\s*\\\")(?:(?!\\\").)+", rf"\1{HIDDEN}"),
    (rf"(?i)(\b(?:{_NAMES}){_IS})(?!{re.escape(HIDDEN)})[^\s\"'<>&,;}}\\]+", rf"\1{HIDDEN}"),
)
"""What is redacted, in this order, and what is written in its place."""

_known: set[str] = set()


def register_secret(token: str) -> None:
    """Register a token to be redacted from now on, also where it is escaped in JSON or a URL."""
    if len(token) >= 8:  # a shorter text occurs in ordinary words and is not a token
        _known.update(escaped_forms(token))


def escaped_forms(token: str) -> set[str]:
    """Return the token as plain text, escaped for JSON and quoted for a URL."""
    return {token, json.dumps(token)[1:-1], quote(token, safe=""), quote(token)}


def redact_registered_tokens(text: str) -> str:
    """Redact the registered tokens only."""
    # Longest first, as one token may contain another.
    for token in sorted(_known, key=len, reverse=True):
        text = text.replace(token, HIDDEN)
    return text


def redact_secrets(text: str) -> str:
    """Redact everything that looks like a secret: registered tokens, JWTs, credentials and pre-signed links."""
    text = re.sub(_LINK, _link, redact_registered_tokens(text))
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    return text


def _link(match: re.Match[str]) -> str:
    """Redact the user info of a link; of a pre-signed link, keep only scheme and host."""
    scheme, place, rest = match.groups()
    host = place.rpartition("@")[2]
    shown = place if host == place else f"{HIDDEN}@{host}"
    return f"{scheme}{shown}/{HIDDEN}" if re.search(_KEYED, rest) else f"{scheme}{shown}{rest}"
