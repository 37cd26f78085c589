"""Canonical JSON: equal values give equal bytes, the input of digests and seals."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
else:
    Json = Any  # msgspec, which reads the annotations of structs, has no recursive types

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: object) -> bytes:
    """Return JSON in UTF-8, keys sorted, no spaces. Raises TypeError or ValueError for values that JSON cannot hold."""
    # A live name may contain a lone surrogate, which must not prevent a plan.
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def members(value: Json) -> dict[str, Json]:
    """Return the members of an object, such as a manifest form; none for any other value."""
    return value if isinstance(value, dict) else {}


def sha256(value: object) -> str:
    """Return the hexadecimal SHA-256 of the canonical JSON."""
    return sha256_of_bytes(canonical_json(value))


def sha256_of_bytes(content: bytes) -> str:
    """Return the hexadecimal SHA-256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()
