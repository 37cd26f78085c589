"""Named sets of people and of conditions, and named windows: defined once, referenced by name; expansion of entries.

Sets, `use`, `except`, windows and CSV files become plain entries once all files are read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec import Struct, field

from lmsconf.errors import Problem, ProblemsFound, Severity, SourceLocation
from lmsconf.kinds.shared.manifest_entry import ANY, LISTS
from lmsconf.manifest.entries_from_tables import FILE, KeyMatch, TableFiles, matching_keys
from lmsconf.manifest.file_set import ManifestFileReader
from lmsconf.manifest.nodes import (
    ALLOW_EMPTY,
    CHOICES,
    CONDITION_SETS,
    CONDITIONS,
    EXCEPT,
    PEOPLE_SETS,
    SET,
    USE,
    WINDOWS,
    CombinedSource,
    EntrySourceMap,
    KeyPath,
    Map,
    Mark,
    Seq,
    combine_items,
)
from lmsconf.manifest.problems import UndeclaredNames, shape_problems
from lmsconf.manifest.schema_check import SchemaValidator, properties
from lmsconf.manifest.variables import Reporter, Variables
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import did_you_mean, known_names, list_names, normalize_name, quote_name

_EMPTIED: Final = re.compile(r"\$\(|-\s|\[\s*[^\s\]#]")
"""Matches the text of a list that is not empty as written, and so was emptied by its variables."""
_NOUNS: Final = {
    PEOPLE_SETS: ("people set", "set"),
    CONDITION_SETS: ("condition set", "set"),
    WINDOWS: ("window", "window"),
}
"""Section → what messages call one of its sets, and what the codes of problems do."""


class NamedSet(Struct):
    """One set or window. value: its content; None if it is invalid. where: the location of its name.

    places: those of its value. layer: the index of its folder. used: whether anything references it.
    """

    value: Json
    where: SourceLocation
    places: EntrySourceMap
    layer: int = 0
    used: bool = False


class NamedSets(Struct):
    """The sets or windows of one section, from all files."""

    section: str
    noun: str
    code_area: str
    shape: SchemaValidator
    reporter: Reporter
    undeclared: UndeclaredNames
    known: dict[str, NamedSet] = field(default_factory=dict)

    def collect_sets(self, document: EntrySourceMap, layer: int, variables: Variables) -> None:
        """Add the sets of one document, in place of those of earlier folders. A name twice in a folder is an error."""
        definitions = document.value.get(self.section) if isinstance(document.value, Map) else None
        if not isinstance(definitions, Map):
            return
        for key, value, at in definitions.parts():
            where = definitions.source.where(cast(Mark, definitions.mark(key, 0)))
            name = normalize_name(cast(str, key))
            first = self.known.get(name)
            if first is not None and first.layer == layer:
                hint = f"See {first.where}. Keep one of the two, or give one another name."
                message = f"{self.noun} {quote_name(name)}: declared twice"
                self.reporter.tell(f"{self.code_area}/twice", message, where, hint)
                continue
            before = self.reporter.refused
            whole = variables.substitute(value, definitions.source, at)
            places = EntrySourceMap(whole, definitions.source, at)
            is_refused = self.reporter.refused != before
            within = f"{self.noun} {quote_name(name)}"
            wrong = [] if is_refused else shape_problems(self.shape, whole, places, within)
            self.reporter.problems += wrong
            self.known[name] = NamedSet(None if is_refused or wrong else whole, where, places, layer)

    def find(self, name: str, where: SourceLocation) -> NamedSet | None:
        """Return the set with that name; None after reporting that there is none, or an error where it may stand."""
        named_set = self.known.get(normalize_name(name))
        if named_set is not None:
            named_set.used = True
        elif self.undeclared.everything or self.section in self.undeclared.sections:
            self.reporter.refused += 1
        else:
            known = known_names(self.known) if self.known else f"Write it under {self.section}:."
            message = f"there is no {self.noun} {quote_name(name)}"
            hint = did_you_mean(name, self.known) or known
            self.reporter.refuse(f"reference/unknown-{self.code_area}", message, where, hint)
        return named_set


class PeopleExpander(Struct):
    """Replace `{set: NAME}` and `{file, column}` by the people that they stand for."""

    _sets: NamedSets
    _tables: TableFiles
    _people: dict[str, Seq | None] = field(default_factory=dict)

    def expand(self, lists: Iterable[KeyMatch], places: EntrySourceMap) -> None:
        """Replace every reference in an entry, in place; refuse one that is unknown, invalid or empty."""
        for node, step, path in lists:
            value = node[step]
            if isinstance(value, Map) and (SET in value or FILE in value):
                people = self._named(value, places, path) if SET in value else self._listed(value, places, path)
                node[step] = value if people is None else people
            elif isinstance(value, Seq) and Map in {*map(type, value)}:
                node[step] = self._mixed(value, places, path)
            elif isinstance(value, Seq) and not value and _EMPTIED.match(places.rest(*path)):
                self._refuse_nobody("the variables of this list name", places.at(*path), "For nobody, write [] here.")

    def _refuse_nobody(self, subject: str, where: SourceLocation, hint: str) -> None:
        """Report a list that expansion made empty: an error unless allowed, as it is for a CSV file."""
        self._sets.reporter.refuse("people/nobody", f"{subject} nobody", where, hint)

    def _mixed(self, items: Seq, places: EntrySourceMap, path: KeyPath) -> Seq:
        """Expand a list that mixes sets and people; each person keeps the location where the e-mail is written."""
        listed: list[tuple[Json, SourceLocation]] = []
        for number, item in enumerate(items):
            if not isinstance(item, Map):
                listed.append((item, places.at(*path, number)))
            elif (people := self._named(item, places, (*path, number))) is not None:
                listed += [(email, people.source.where(at)) for _, email, at in people.parts()]
        return combine_items(listed)

    def _named(self, reference: Map, places: EntrySourceMap, path: KeyPath) -> Seq | None:
        """Return the people of a set. An empty one is an error without `allow_empty` at the reference or its file."""
        name = normalize_name(str(reference[SET]))
        people_set = self._sets.find(name, places.at(*path, SET))
        if people_set is None:
            return None
        if name not in self._people:
            value = people_set.value
            self._people[name] = (
                self._listed(value, people_set.places, ()) if isinstance(value, Map) else cast("Seq | None", value)
            )
        people = self._people[name]
        self._sets.reporter.refused += people is None
        may_be = reference.get(ALLOW_EMPTY) is True or isinstance(people_set.value, Map)
        if people is not None and not people and not may_be:
            hint = "Name somebody in it, or write `allow_empty: true` beside `set`."
            self._refuse_nobody(f"the people set {quote_name(name)} names", places.at(*path, SET), hint)
            return None
        return people

    def _listed(self, reference: Map, places: EntrySourceMap, path: KeyPath) -> Seq | None:
        """Return the people in a file; None after reporting why it cannot be used."""
        try:
            return self._tables.people(reference, path, places)
        except ProblemsFound as wrong:
            self._sets.reporter.problems += wrong.problems
            self._sets.reporter.refused += 1
            return None


def referenced_names(body: Mapping[str, Json], key: str) -> list[tuple[str, KeyPath]]:
    """Return the names under a key that holds one name or a list, each with its path."""
    value = body[key]
    if isinstance(value, list):
        return [(str(item), (key, number)) for number, item in enumerate(value)]
    return [(str(value), (key,))]


WINDOW: Final = "window"


def put_windows(windows: NamedSets, named: Iterable[KeyMatch], places: EntrySourceMap) -> None:
    """Replace each `window: NAME` of an entry by the times of the window, in place, each located in its definition.

    Refuse a window that is unknown or invalid, or used together with a time.
    """
    times = properties(windows.shape.schema)
    for node, _, path in named:
        if WINDOW not in node:  # an alias has brought it in twice
            continue
        own = next((key for key in times if key in node), None)
        if own is not None:
            message, where = f"{WINDOW} and {own} exclude each other", places.key(*path[:-1], own)
            windows.reporter.refuse("manifest/together", message, where, "Keep one of them.")
        elif (window := windows.find(str(node[WINDOW]), places.at(*path))) and isinstance(window.value, Map):
            _put_times(node, window.places, window.value, [*times], path, places)
        else:
            windows.reporter.refused += 1


def _put_times(
    node: Map, defined: EntrySourceMap, window: Map, times: Sequence[str], path: KeyPath, places: EntrySourceMap
) -> None:
    """Replace the key at the end of `path` by the times of a window, which is at `defined`."""
    put = [(key, window[key], defined.key(key), defined.at(key)) for key in times if key in window]
    above, where = path[:-1], places.at(*path)
    if above:
        # An end that the window leaves out is open: null in an item, whose entry may have a time for all items.
        put += [(key, None, where, where) for key in times if key not in window]
    pairs: list[tuple[str, Json, SourceLocation, SourceLocation]] = []
    for key, value in node.items():
        pairs += put if key == WINDOW else [(key, value, places.key(*above, key), places.at(*above, key))]
    source = CombinedSource([place for _, _, *both in pairs for place in both])
    node.become(Map(source, {key: value for key, value, *_ in pairs}, range(2 * len(pairs))))


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
        expanded = self._listed(own if isinstance(own, list) else (), places, CONDITIONS)
        for name, path in referenced_names(body, USE) if USE in body else ():
            found = self._sets.find(name, places.at(*path))
            # Conditions are combined with AND, so repeats add nothing.
            known = {_sense(condition) for condition, _ in expanded}
            more = () if found is None else self._listed(cast("list[Json]", found.value or []), found.places)
            expanded += [one for one in more if _sense(one[0]) not in known]
        return _with(body, combine_items(expanded))

    def _listed(self, conditions: Iterable[Json], places: EntrySourceMap, *at: str) -> list[tuple[Map, SourceLocation]]:
        """Return the conditions of an entry or a set, each with its location there."""
        return [
            (self._plain(cast(Map, condition), places, (*at, number)), places.at(*at, number))
            for number, condition in enumerate(conditions)
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
        self._sets = {
            section: NamedSets(section, *_NOUNS[section], shape, reporter, undeclared)
            for section, shape in sets.items()
        }
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
        listed = ((sets, name, one) for sets in self._sets.values() for name, one in sets.known.items())
        for sets, name, named_set in listed:
            if not named_set.used:
                yield Problem(
                    code=f"{sets.code_area}/unused",
                    severity=Severity.NOTE,
                    message=f"nothing uses the {sets.noun} {quote_name(name)}",
                    hint="Remove it, or use it.",
                    source=named_set.where,
                )
