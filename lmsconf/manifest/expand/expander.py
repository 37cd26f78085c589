"""Expansion of sets, `use`, `except`, windows and CSV files into plain entries, once all files are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias, cast

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.shared.manifest_entry import ANY, LISTS
from lmsconf.manifest.expand.sets import (
    WINDOW,
    NamedSets,
    PeopleExpander,
    UndeclaredNames,
    put_windows,
    referenced_names,
)
from lmsconf.manifest.expand.table_files import TableFiles, matching_keys
from lmsconf.manifest.expand.variables import Reporter, Variables
from lmsconf.manifest.file_set import ManifestFileReader
from lmsconf.manifest.nodes import (
    CHOICES,
    CONDITION_SETS,
    CONDITIONS,
    EXCEPT,
    PEOPLE_SETS,
    USE,
    WINDOWS,
    EntrySourceMap,
    KeyPath,
    Map,
    Seq,
    combine_items,
)
from lmsconf.manifest.schema_check import SchemaValidator
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import did_you_mean, list_names, normalize_name, quote_name

_ChoiceNames: TypeAlias = "tuple[str, ...] | None"


class ConditionExpander(Struct):
    """Expand `use` and `except` in the conditions of an entry, once all fields and sets are gathered.

    `only_in` allows one field to be declared differently per workspace.
    """

    _sets: NamedSets
    _choices: dict[str, set[_ChoiceNames]] = field(default_factory=lambda: defaultdict(set))

    def add_field(self, body: Map) -> None:
        """Add the choices of one field declaration."""
        choices = body.get(CHOICES)
        names = (item["name"] if isinstance(item, dict) else item for item in cast("list[Json]", choices or ()))
        listed = tuple(normalize_name(str(name)) for name in names) if isinstance(choices, list) else None
        self._choices[normalize_name(str(body["name"]))].add(listed)

    def _choices_of_field(self, name: str) -> tuple[str, ...] | str:
        """Return all choices of a field, or the reason why they are unknown, as text."""
        declarations = self._choices.get(normalize_name(name))
        if declarations is None:
            return "is not declared here"
        if len(declarations) > 1:
            return "is declared with other choices for other workspaces"
        (listed,) = declarations
        return "is declared without the whole list of its choices" if listed is None else listed

    def expand(self, body: Map, places: EntrySourceMap) -> Map:
        """Return the entry with its conditions expanded."""
        own = body.get(CONDITIONS)
        shortened = isinstance(own, list) and any(EXCEPT in cast("Map", condition) for condition in own)
        if USE not in body and not shortened:
            return body
        expanded: list[tuple[Json, SourceLocation]] = [
            (self._plain(cast(Map, condition), places, (CONDITIONS, number)), places.at(CONDITIONS, number))
            for number, condition in enumerate(own if isinstance(own, list) else ())
        ]
        for name, path in referenced_names(body, USE) if USE in body else ():
            expanded += _missing_from(expanded, self._of_set(name, places.at(*path)))
        return _with(body, combine_items(expanded))

    def _of_set(self, name: str, where: SourceLocation) -> list[tuple[Json, SourceLocation]]:
        """Return the conditions of a set, each with its location in the set."""
        condition_set = self._sets.find(name, where)
        if condition_set is None:
            return []
        places = condition_set.places
        return [
            (self._plain(cast(Map, condition), places, (number,)), places.at(number))
            for number, condition in enumerate(cast("list[Json]", condition_set.value or []))
        ]

    def _plain(self, condition: Map, places: EntrySourceMap, path: KeyPath) -> Map:
        """Return the condition with `except` replaced by `choices`."""
        if EXCEPT not in condition:
            return condition
        name = str(condition["field"])
        at = f"except: the field {quote_name(name)}"
        known = self._choices_of_field(name)
        if CHOICES in condition:
            message = "choices and except exclude each other"
            self._sets.reporter.refuse("manifest/together", message, places.key(*path, EXCEPT), "Keep one of them.")
        elif isinstance(known, tuple):
            return self._but(condition, known, places, (*path, EXCEPT))
        elif self._sets.undeclared.may_have_field(name):
            self._sets.reporter.refused += 1  # an error of its declaration says so already
        else:
            hint = "List all its choices where it is declared, or write the choices here."
            self._sets.reporter.refuse("reference/except", f"{at} {known}", places.at(*path, "field"), hint)
        return condition

    def _but(self, condition: Map, known: tuple[str, ...], places: EntrySourceMap, path: KeyPath) -> Map:
        """Return the condition with all choices except those it lists."""
        name = quote_name(str(condition["field"]))
        excluded = [normalize_name(str(item)) for item in cast("list[Json]", condition[EXCEPT])]
        for number, item in enumerate(excluded):
            if item not in known:
                hint = " ".join(filter(None, [f"It has {list_names(known)}.", did_you_mean(item, known)]))
                message = f"except: the field {name} has no choice {quote_name(item)}"
                self._sets.reporter.refuse("reference/unknown-choice", message, places.at(*path, number), hint)
        left = [one for one in known if one not in excluded]
        if not left:
            message = f"except: no choice of the field {name} is left"
            self._sets.reporter.refuse(
                "reference/except", message, places.key(*path), "Keep one, or remove the condition."
            )
        where = places.at(*path)
        return _replaced(condition, EXCEPT, CHOICES, combine_items((one, where) for one in left))


def _missing_from(
    before: list[tuple[Json, SourceLocation]], more: list[tuple[Json, SourceLocation]]
) -> list[tuple[Json, SourceLocation]]:
    """Return the conditions of a set that `before` lacks: conditions are combined with AND, so repeats add nothing."""
    known = {_sense(cast(Map, condition)) for condition, _ in before}
    return [(condition, where) for condition, where in more if _sense(cast(Map, condition)) not in known]


def _sense(condition: Mapping[str, Json]) -> str:
    """Return a comparison key of a condition, independent of the order of its choices."""
    choices = sorted({normalize_name(str(item)) for item in cast("list[Json]", condition.get(CHOICES, []))})
    return repr((normalize_name(str(condition["field"])), choices, condition.get("system_condition")))


def _replaced(node: Map, old: str, new: str, value: Json) -> Map:
    """Return the mapping with one key replaced by another key and value, at the same position."""
    return node.changed({new if key == old else key: value if key == old else one for key, one in node.items()})


def _with(body: Map, conditions: Seq) -> Map:
    """Return the entry with the given conditions and without `use`."""
    if CONDITIONS not in body:
        return _replaced(body, USE, CONDITIONS, conditions)
    plain = body.without(USE)
    plain[CONDITIONS] = conditions
    return plain


_PEOPLE: Final = tuple((key, *part) for key in LISTS for part in ((), ("include",), ("exclude",)))
"""The paths of all lists of people in an entry, which may name sets and files."""
_WINDOWS: Final = ((WINDOW,), ("assign_to", ANY, WINDOW))
"""The paths of all references to windows."""


class EntryExpander:
    """Expand entries, given the sets of all files. conditions: knows all declared fields before any `expand`."""

    def __init__(
        self,
        files: ManifestFileReader,
        sets: Mapping[str, SchemaValidator],
        reporter: Reporter,
        undeclared: UndeclaredNames,
    ) -> None:
        self._reporter = reporter
        self._sets = {section: NamedSets(section, shape, reporter, undeclared) for section, shape in sets.items()}
        self.tables = TableFiles(files, reporter.problems)
        self._people = PeopleExpander(self._sets[PEOPLE_SETS], self.tables)
        self.conditions = ConditionExpander(self._sets[CONDITION_SETS])

    def collect_sets(self, layers: Iterable[Iterable[EntrySourceMap]], variables: Variables) -> None:
        """Collect the sets of the documents of each folder, since any of them may be used in any file."""
        for layer, documents in enumerate(layers):
            for document in documents:
                for sets in self._sets.values():
                    sets.collect_sets(document, layer, variables)

    def expand(self, body: Map, places: EntrySourceMap) -> Map | None:
        """Return the expanded entry; None after reporting a problem."""
        lists = [found for trail in _PEOPLE for found in matching_keys(body, trail, ())]
        before = self._reporter.refused
        self._people.expand(lists, places)
        whole = self.conditions.expand(body, places)
        windows = [found for trail in _WINDOWS for found in matching_keys(body, trail, ())]
        put_windows(self._sets[WINDOWS], windows, places)
        return whole if self._reporter.refused == before else None

    def unused_set_notes(self) -> Iterator[Problem]:
        """Yield a note for each unused set."""
        for sets in self._sets.values():
            yield from sets.unused_set_notes()
