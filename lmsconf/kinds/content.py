"""The content catalog: read only, so that assignments can name content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmsconf.core.address import RemoteId
from lmsconf.core.values import Json
from lmsconf.kinds.answers import label, text


@dataclass(frozen=True, slots=True)
class ContentRow:
    """A course, program, SCORM package or meetup of the catalog."""

    id: RemoteId
    name: str
    type: str


def content_row(data: Mapping[str, Json]) -> ContentRow:
    """A catalog item as the service describes it; its id is called `courseId` whatever it is."""
    return ContentRow(RemoteId(text(data, "courseId")), label(data, "name"), label(data, "contentType"))
