"""`for_each`: one copy of an entry for each value of a list; source positions are kept."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Severity
from lmsconf.manifest.expand.variables import Variables, referenced_variables
from lmsconf.manifest.nodes import FOR_EACH, EntrySourceMap, Map, Mark, Seq, Source
from lmsconf.manifest.whole_schema import Section, for_each_validator
from lmsconf.model.canonical_json import Json

COPIES: Final = 10_000
"""Maximum number of entries that `for_each` may expand to, in all files together."""
_NUMERIC: Final = tuple("+-.0123456789")
_SHOWN: Final = 40
_UNQUOTED: Final = re.compile(r"[^\W_][\w.@+-]*")


class Entry(Struct, frozen=True):
    """An entry of a section, after expansion of variables and `for_each`.

    is_complete: all its variables are defined. is_part: without the keys that do not fit its schema, so it is checked
    and not planned. layer: the index of its folder, 0 for the first. changes: the index of the entry of an earlier
    folder that it changes; None if it adds one.
    """

    section: Section
    body: Json
    places: EntrySourceMap
    is_complete: bool = True
    is_part: bool = False
    layer: int = 0
    changes: int | None = None

    def of(self, body: Map) -> Entry:
        """Return the entry with `body`, to which it was expanded."""
        return replace(self, body=body, places=self.places.of(body))


class ForEachExpander:
    """Expand variables and `for_each` in entries."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._reporter = variables.reporter
        self._left = COPIES

    def expand_entry(self, section: Section, item: Json, source: Source, at: Mark) -> Iterator[Entry]:
        """Yield the entries that one entry expands to. Raises ProblemsFound beyond the limits of expansion."""
        if isinstance(item, Map) and FOR_EACH in item:
            yield from self._copies(section, item, source, at)
        else:
            yield self._entry(section, self._variables, item, source, at)

    def _entry(self, section: Section, variables: Variables, item: Json, source: Source, at: Mark) -> Entry:
        before = self._reporter.refused
        body = variables.substitute(item, source, at)
        places = EntrySourceMap(body, source, at, variables.each)
        return Entry(section, body, places, self._reporter.refused == before)

    def _copies(self, section: Section, item: Map, source: Source, at: Mark) -> Iterator[Entry]:
        places = EntrySourceMap(item, source, at)
        wanted = self._wanted(item, places, section.name)
        if wanted is None:
            return
        plain = item.without(FOR_EACH)
        used = set(referenced_variables(plain))
        for name in wanted:
            if name not in used:
                self._tell("for_each/unused", f"this entry does not use $({name})", places, name, _UNUSED)
                return
        count = math.prod(map(len, wanted.values()))
        self._left -= count
        if self._left < 0:
            message = f"with this entry, the project has more than {COPIES:,} entries"
            self._tell("for_each/too-many", message, places, None, "Write shorter lists, or split the project.")
            return
        self._variables.limit.take(count * _size(plain), places.at(FOR_EACH))
        for values in product(*wanted.values()):
            chosen = dict(zip(wanted, values, strict=True))
            each = ", ".join(f"{name}={display_value(value)}" for name, value in chosen.items())
            variables = replace(self._variables, values={**self._variables.values, **chosen}, each=each)
            entry = self._entry(section, variables, plain, source, at)
            yield entry
            if not entry.is_complete:
                return

    def _wanted(self, item: Map, places: EntrySourceMap, within: str) -> Mapping[str, list[Json]] | None:
        """Return the values of each name; None if there are none, or after reporting a problem."""
        before = self._reporter.refused
        expanded = self._variables.substitute(item[FOR_EACH], item.source, cast(Mark, item.mark(FOR_EACH)))
        places = places.of(item.changed({**item, FOR_EACH: expanded}))
        findings = for_each_validator().validate({FOR_EACH: expanded}) if self._reporter.refused == before else []
        for finding in findings:
            from lmsconf.manifest.schema_messages import problems_of

            self._reporter.problems += problems_of(finding, places, within)
        if findings or self._reporter.refused != before:
            return None
        lists = {name: self._values(name, values, places) for name, values in cast("Map", expanded).items()}
        for name, values in lists.items():
            if name in self._variables.values:
                message = f"$({name}) is a variable of the project file already"
                self._tell("for_each/taken", message, places, name, "Choose another name here.")
                return None
            if not values:
                message, hint = f"{name} has no values, so this entry expands to nothing", "Remove the entry."
                self._tell("for_each/empty", message, places, name, hint, Severity.NOTE)
                return None
        return lists

    def _values(self, name: str, values: Json, places: EntrySourceMap) -> list[Json]:
        """Return the values in the form of variables: a number becomes text, as the file spells it."""
        converted: list[Json] = []
        for number, value in enumerate(cast("list[Json]", values)):
            word = json.dumps(value) if isinstance(value, int | float) else ""
            spelt = places.written(FOR_EACH, name, number)
            # For an alias, the file spells only the alias's name.
            converted.append(value if isinstance(value, str | bool) else spelt if spelt[:1] in _NUMERIC else word)
        return converted

    def _tell(
        self,
        code: str,
        message: str,
        places: EntrySourceMap,
        name: str | None,
        hint: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        where = places.key(FOR_EACH, name) if name else places.key(FOR_EACH)
        self._reporter.tell(code, f"for_each: {message}", where, hint, severity)


_UNUSED: Final = "Without it all entries would be equal. Use it in the name, or remove it from for_each."


def display_value(value: Json) -> str:
    """Format a value for display beside a location: short, on one line, quoted unless it is a plain word."""
    text = value if isinstance(value, str) else json.dumps(value)
    clipped = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return text if _UNQUOTED.fullmatch(clipped) else json.dumps(clipped, ensure_ascii=False)


def _size(node: Json) -> int:
    """Count the values in a value, itself included."""
    return 1 + sum(_size(child) for _, child, _ in node.parts()) if isinstance(node, Map | Seq) else 1
