"""Names that may be declared where nobody can read it: a reference to one of them is not reported on its own."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from lmsconf.manifest.expand.for_each import drop_keys
from lmsconf.manifest.validation.check import SchemaFinding, SchemaValidator
from lmsconf.manifest.validation.schema_query import properties
from lmsconf.manifest.yaml.nodes import Map
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import nearest_name, normalize_name


class UndeclaredNames(Struct):
    """What was not read because of an error that is reported already.

    sections: sections of which a name may be missing. fields: names of fields whose choices may be missing; any_field:
    that of some field.
    """

    everything: bool = False
    sections: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    any_field: bool = False

    def doubt_all(self) -> None:
        """A file could not be read whole, and may declare anything."""
        self.everything = True

    def doubt_sections(self, finding: SchemaFinding) -> None:
        """A section of a manifest has the wrong shape, or a name that may be meant for one."""
        if finding.path:
            self.sections.add(str(finding.path[0]))
        elif finding.keyword == "additionalProperties" and isinstance(finding.value, dict):
            known = properties(finding.schema)
            unknown = finding.value.keys() - known.keys()
            self.sections |= {near for key in unknown if (near := nearest_name(key, known)) is not None}
        else:
            self.everything = True

    def doubt_field(self, body: Json) -> None:
        """An entry that declares a field has the wrong shape."""
        name = body.get("name") if isinstance(body, dict) else None
        if isinstance(name, str):
            self.fields.add(normalize_name(name))
        else:
            self.any_field = True

    def may_have(self, section: str) -> bool:
        """Whether a name of this section may be declared where it was not read."""
        return self.everything or section in self.sections

    def may_have_field(self, name: str) -> bool:
        """Whether the choices of this field may be declared where they were not read."""
        return self.everything or self.any_field or bool(self.sections) or normalize_name(name) in self.fields


def valid_part(shape: SchemaValidator, body: Json, findings: Sequence[SchemaFinding]) -> Map | None:
    """Return an entry without the keys that its findings are about; None if the rest does not fit the schema either.

    A key is left out whole: of a list with one wrong item nobody can tell what it would have named.
    """
    if not isinstance(body, Map):
        return None
    dropped: set[str] = set()
    for finding in findings:
        if finding.path:
            dropped.add(str(finding.path[0]))
        elif finding.keyword == "additionalProperties":
            dropped |= body.keys() - properties(finding.schema).keys()
        else:
            return None
    part = drop_keys(body, *dropped)
    return None if shape.validate(part) else part
