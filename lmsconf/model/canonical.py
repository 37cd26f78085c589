"""One text for equal values: what digests and seals are taken of."""

from __future__ import annotations

import hashlib
import json


def canonical(value: object) -> bytes:
    """The value as JSON in UTF-8 with sorted keys and no spaces. Raises TypeError or ValueError for what JSON lacks."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # A live name may hold half a surrogate pair; it must not be the reason that a plan cannot be made.
    return text.encode("utf-8", "surrogatepass")


def sha256(value: object) -> str:
    """The hexadecimal SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()
