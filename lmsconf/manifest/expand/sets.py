"""Named sets of people and of conditions, and named windows: defined once, referenced by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.manifest.expand.people import KeyMatch, TablePeopleExpander
from lmsconf.manifest.expand.undeclared import UndeclaredNames
from lmsconf.manifest.expand.variables import Variables, child_nodes
from lmsconf.manifest.validation.check import SchemaValidator
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath, Map, Mark, Seq, Source, combine_items, store_marks
from lmsconf.manifest.yaml.read_result import Document
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import did_you_mean, known_names, normalize_name, quote_name

PEOPLE_SETS: Final = "people_sets"
CONDITION_SETS: Final = "condition_sets"
WINDOWS: Final = "windows"
SET_SECTIONS: Final = (CONDITION_SETS, PEOPLE_SETS, WINDOWS)
SET: Final = "set"
ALLOW_EMPTY: Final = "allow_empty"
Report: TypeAlias = Callable[[Problem], None]
_EMPTIED: Final = re.compile(r"\$\(|-\s|\[\s*[^\s\]#]")
"""Matches the text of a list that is not empty as written, and so was emptied by its variables."""
_NOUNS: Final = {PEOPLE_SETS: "people set", CONDITION_SETS: "condition set", WINDOWS: "window"}


class NamedSet(Struct):
    """One set or window. value: its content; None if it is invalid. where: the location of its name.

    source and at: the position of its value. layer: the index of its folder. used: whether anything references it.
    """

    value: Json
    where: SourceLocation
    source: Source
    at: Mark
    layer: int = 0
    used: bool = False

    @property
    def places(self) -> EntrySourceMap:
        return EntrySourceMap(self.value, self.source, self.at)


class NamedSets(Struct):
    """The sets or windows of one section, from all files."""

    section: str
    shape: SchemaValidator
    report: Report
    undeclared: UndeclaredNames
    _known: dict[str, NamedSet] = field(default_factory=dict)

    def collect_sets(self, document: Document, layer: int, variables: Variables) -> None:
        """Add the sets of one document, in place of those of earlier folders. A name twice in a folder is an error."""
        definitions = document.value.get(self.section) if isinstance(document.value, Map) else None
        if not isinstance(definitions, Map):
            return
        for key, value, at in child_nodes(definitions):
            where = definitions.source.where(cast(Mark, definitions.key_mark(cast(str, key))))
            name = normalize_name(cast(str, key))
            first = self._known.get(name)
            if first is not None and first.layer == layer:
                hint = f"See {first.where}. Keep one of the two, or give one another name."
                self._tell(f"{self._code_area}/twice", f"{self._noun} {quote_name(name)}: declared twice", where, hint)
                continue
            checked = self._checked(name, value, definitions.source, at, where, variables)
            self._known[name] = replace(checked, layer=layer)

    def _checked(
        self, name: str, value: Json, source: Source, at: Mark, where: SourceLocation, variables: Variables
    ) -> NamedSet:
        problems_before = variables.problem_count
        whole = variables.substitute(value, source, at)
        places = EntrySourceMap(whole, source, at)
        findings = self.shape.validate(whole)
        if variables.problem_count == problems_before:
            for finding in findings:
                from lmsconf.manifest.validation import messages

                within = f"{self._noun} {quote_name(name)}"
                for problem in messages.problems_from_finding(
                    finding, places, message_prefix=within, code_area="manifest", address=None
                ):
                    self.report(problem)
        return NamedSet(None if findings or variables.problem_count != problems_before else whole, where, source, at)

    def find(self, name: str, where: SourceLocation) -> NamedSet | None:
        """Return the set with that name; None after reporting that there is none, or an error where it may stand."""
        named_set = self._known.get(normalize_name(name))
        if named_set is None and self.undeclared.may_have(self.section):
            return None
        if named_set is None:
            hint = did_you_mean(name, self._known) or self._way_out()
            self._tell(
                f"reference/unknown-{self._code_area}", f"there is no {self._noun} {quote_name(name)}", where, hint
            )
            return None
        named_set.used = True
        return named_set

    def _way_out(self) -> str:
        return known_names(self._known) if self._known else f"Write it under {self.section}:."

    def unused_set_notes(self) -> Iterator[Problem]:
        """Yield a note for each unused set."""
        for name, named_set in self._known.items():
            if not named_set.used:
                yield Problem(
                    code=f"{self._code_area}/unused",
                    severity=Severity.NOTE,
                    message=f"nothing uses the {self._noun} {quote_name(name)}",
                    hint="Remove it, or use it.",
                    source=named_set.where,
                )

    @property
    def _noun(self) -> str:
        return _NOUNS[self.section]

    @property
    def _code_area(self) -> str:
        return "window" if self.section == WINDOWS else "set"

    def _tell(self, code: str, message: str, where: SourceLocation, hint: str) -> None:
        self.report(Problem(code=code, message=message, hint=hint, source=where))


class PeopleSetExpander:
    """Replace `{set: NAME}` by the people of the set, as a whole list or as an item of one."""

    def __init__(self, sets: NamedSets, files: TablePeopleExpander) -> None:
        self._sets = sets
        self._files = files
        self._people: dict[str, Seq | None] = {}

    def expand(self, lists: Iterable[KeyMatch], places: EntrySourceMap) -> bool:
        """Replace every set reference in an entry, in place; return False if a set is unknown, invalid or empty."""
        whole = True
        for node, step, path in lists:
            value = node[step]
            if isinstance(value, Map) and SET in value:
                people = self._named(value, places, path)
            elif isinstance(value, Seq) and Map in {*map(type, value)}:
                people = self._mixed(value, places, path)
            elif isinstance(value, Seq) and not value and _EMPTIED.match(places.rest(*path)):
                self._tell_nobody("the variables of this list name", places.at(*path), "For nobody, write [] here.")
                people = None
            else:
                continue
            whole = whole and people is not None
            node[step] = people if people is not None else value
        return whole

    def _tell_nobody(self, subject: str, where: SourceLocation, hint: str) -> None:
        """Report a list that expansion made empty: an error unless allowed, as it is for a CSV file."""
        self._sets.report(Problem(code="people/nobody", message=f"{subject} nobody", hint=hint, source=where))

    def _mixed(self, items: Seq, places: EntrySourceMap, path: KeyPath) -> Seq | None:
        """Expand a list that mixes sets and people; each person keeps the location where the e-mail is written."""
        listed: list[tuple[Json, SourceLocation]] = []
        whole = True
        for number, item in enumerate(items):
            if not isinstance(item, Map):
                listed.append((item, places.at(*path, number)))
                continue
            people = self._named(item, places, (*path, number))
            whole = whole and people is not None
            listed += (
                [(email, people.source.where(at)) for _, email, at in child_nodes(people)] if people is not None else []
            )
        return combine_items(listed) if whole else None

    def _named(self, reference: Map, places: EntrySourceMap, path: KeyPath) -> Seq | None:
        """Return the people of a set. An empty one is an error without `allow_empty` at the reference or its file."""
        name = normalize_name(str(reference[SET]))
        people_set = self._sets.find(name, places.at(*path, SET))
        if people_set is None:
            return None
        if name not in self._people:
            self._people[name] = self._read(people_set)
        people = self._people[name]
        may_be = reference.get(ALLOW_EMPTY) is True or isinstance(people_set.value, Map)
        if people is not None and not people and not may_be:
            hint = "Name somebody in it, or write `allow_empty: true` beside `set`."
            self._tell_nobody(f"the people set {quote_name(name)} names", places.at(*path, SET), hint)
            return None
        return people

    def _read(self, people_set: NamedSet) -> Seq | None:
        """Return the people of a set, from its CSV file if it has one; None if the file or the set is invalid."""
        if isinstance(people_set.value, Map):
            holder = Map(people_set.source)
            holder[SET] = people_set.value
            store_marks(holder, [people_set.at, people_set.at])
            whole = self._files.expand(
                [(holder, SET, (SET,))], EntrySourceMap(holder, people_set.source, people_set.at)
            )
            return cast(Seq, holder[SET]) if whole else None
        return cast("Seq | None", people_set.value)


def referenced_names(body: Mapping[str, Json], key: str) -> list[tuple[str, KeyPath]]:
    """Return the names under a key that holds one name or a list, each with its path."""
    value = body[key]
    if isinstance(value, list):
        return [(str(item), (key, number)) for number, item in enumerate(value)]
    return [(str(value), (key,))]
