"""One line of a journal ⇄ a mapping, and values in it as JSON.

Each line is a JSON object with a checksum, which reveals a damaged line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from lmsconf.documents.document import escape_invisible
from lmsconf.model.canonical_json import Json, canonical_json, sha256_of_bytes
from lmsconf.model.recorded_run import ChainLink, ManifestsCommit

FORMAT: Final = "lmsconf.journal/1"
_SUM: Final = "sum"
_LENGTH: Final = 8


def encode_line(entry: Mapping[str, Json]) -> bytes:
    """Return the entry as a line, with its checksum and line feed."""
    content = canonical_json(entry)
    whole = content[:-1] + f',"{_SUM}":"{_sum(content)}"}}\n'.encode()
    return escape_invisible(whole.decode("utf-8", "surrogatepass")).encode()


def decode_line(line: bytes) -> dict[str, Json] | None:
    """Return the entry that `encode_line` was given; None for a line that is truncated or was changed."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict) or entry.pop(_SUM, None) != _sum(canonical_json(entry)):
            return None
    except (ValueError, RecursionError):
        return None
    return entry


def decode_lines(content: bytes) -> Iterator[dict[str, Json] | None]:
    """Yield the entries of a journal; None for each damaged line."""
    return (decode_line(line) for line in content.split(b"\n") if line)


def chain_json(link: ChainLink) -> dict[str, Json]:
    return {
        "number": link.number,
        "previous": link.previous,
        "previous_sha256": link.previous_sha256,
        "oldest": link.oldest,
    }


def commit_json(commit: ManifestsCommit) -> dict[str, Json]:
    return {"commit": commit.commit, "clean": commit.clean, "reason": commit.reason}


def _sum(content: bytes) -> str:
    return sha256_of_bytes(content)[:_LENGTH]
