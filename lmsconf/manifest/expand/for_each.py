"""`for_each`: one copy of an entry for each value of a list, made before the entry's shape is checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Final, cast

from msgspec import Struct

from lmsconf.errors import Problem, Severity
from lmsconf.manifest.expand.variables import Variables, child_nodes, referenced_variables
from lmsconf.manifest.validation.check import SchemaValidator
from lmsconf.manifest.yaml.nodes import EntrySourceMap, Map, Mark, Seq, Source, store_marks
from lmsconf.model.canonical_json import Json

FOR_EACH: Final = "for_each"
COPIES: Final = 10_000
"""Maximum number of entries that `for_each` may expand to, in all files together."""
FOR_EACH_SCHEMA: Final[dict[str, Json]] = {
    "type": "object",
    "description": "Expands the entry for each value, which is $(name) in it; for several names, for each combination.",
    "minProperties": 1,
    "additionalProperties": {
        "type": "array",
        "description": "The values: a list, or a variable that is a list.",
        "items": {"type": ["string", "number", "boolean"]},
    },
}
_NUMERIC: Final = tuple("+-.0123456789")
_SHOWN: Final = 40
_UNQUOTED: Final = re.compile(r"[^\W_][\w.@+-]*")


class ExpandedEntry(Struct, frozen=True):
    """An entry after expansion of variables and `for_each`. is_whole: all its variables are defined.

    copy: the index of this copy among those of the same entry.
    """

    body: Json
    places: EntrySourceMap
    is_complete: bool = True
    copy: int = 0


_SHAPE: Final = SchemaValidator({"type": "object", "properties": {FOR_EACH: FOR_EACH_SCHEMA}})


class ForEachExpander:
    """Expand variables and `for_each` in entries."""

    def __init__(self, variables: Variables, report: Callable[[Problem], None]) -> None:
        self._variables = variables
        self._report = report
        self._left = COPIES

    def expand_entry(self, item: Json, source: Source, at: Mark, section: str) -> Iterator[ExpandedEntry]:
        """Yield the entries that one entry expands to. Raises ExpansionLimitExceeded beyond the limits of expansion."""
        if isinstance(item, Map) and FOR_EACH in item:
            yield from self._copies(item, source, at, section)
        else:
            yield self._entry(self._variables, item, source, at, 0)

    def _entry(self, variables: Variables, item: Json, source: Source, at: Mark, copy: int) -> ExpandedEntry:
        problems_before = variables.problem_count
        body = variables.substitute(item, source, at)
        return ExpandedEntry(
            body, EntrySourceMap(body, source, at, variables.each), variables.problem_count == problems_before, copy
        )

    def _copies(self, item: Map, source: Source, at: Mark, within: str) -> Iterator[ExpandedEntry]:
        places = EntrySourceMap(item, source, at)
        wanted = self._wanted(item, places, within)
        if wanted is None:
            return
        plain = drop_keys(item, FOR_EACH)
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
        for number, values in enumerate(product(*wanted.values())):
            chosen = dict(zip(wanted, values, strict=True))
            each = ", ".join(f"{name}={display_value(value)}" for name, value in chosen.items())
            entry = self._entry(self._variables.with_more(chosen, each), plain, source, at, number)
            yield entry
            if not entry.is_complete:
                return

    def _wanted(self, item: Map, places: EntrySourceMap, within: str) -> Mapping[str, list[Json]] | None:
        """Return the values of each name; None if there are none, or after reporting a problem."""
        problems_before = self._variables.problem_count
        expanded = self._variables.substitute(item[FOR_EACH], *_place(item))
        places = places.of(_with(item, expanded))
        if self._variables.problem_count != problems_before:
            return None
        findings = _SHAPE.validate({FOR_EACH: expanded})
        for finding in findings:
            from lmsconf.manifest.validation import messages

            for problem in messages.problems_from_finding(
                finding, places, message_prefix=within, code_area="manifest", address=None
            ):
                self._report(problem)
        if findings:
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
        self._report(Problem(code=code, severity=severity, message=f"for_each: {message}", hint=hint, source=where))


_UNUSED: Final = "Without it all entries would be equal. Use it in the name, or remove it from for_each."


def display_value(value: Json) -> str:
    """Format a value for display beside a location: short, on one line, quoted unless it is a plain word."""
    text = value if isinstance(value, str) else json.dumps(value)
    clipped = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return text if _UNQUOTED.fullmatch(clipped) else json.dumps(clipped, ensure_ascii=False)


def drop_keys(item: Map, *keys: str) -> Map:
    """Return the mapping without some keys; all other parts keep their positions."""
    kept = Map(item.source)
    marks: list[Mark] = []
    for number, (key, value) in enumerate(item.items()):
        if key not in keys:
            kept[key] = value
            first = item.first + 2 * number
            marks += item.source.marks[first : first + 2]
    store_marks(kept, marks)
    return kept


def _with(item: Map, expanded: Json) -> Map:
    """Return the entry with `for_each` replaced by its expansion."""
    copy = Map(item.source)
    copy.update(item)
    copy[FOR_EACH] = expanded
    copy.first = item.first
    return copy


def _place(item: Map) -> tuple[Source, Mark]:
    return item.source, cast(Mark, item.mark(FOR_EACH))


def _size(node: Json) -> int:
    """Count the values in a value, itself included."""
    return 1 + sum(_size(child) for _, child, _ in child_nodes(node)) if isinstance(node, Map | Seq) else 1
