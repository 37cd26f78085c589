"""The content catalog: read-only, resolves the content names of assignments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmsconf.kinds.shared.kind_names import CONTENT
from lmsconf.kinds.shared.response_json import optional_text, require_text
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json


@dataclass(frozen=True, slots=True)
class ContentRow:
    """A course, program, SCORM package or meetup of the catalog."""

    listing = CONTENT

    id: RemoteId
    name: str
    type: str


def parse_content_row(data: Mapping[str, Json]) -> ContentRow:
    """Parse a catalog item; its id is `courseId` whatever its type (API specification, Content catalog item)."""
    return ContentRow(
        RemoteId(require_text(data, "courseId")), optional_text(data, "name"), optional_text(data, "contentType")
    )
