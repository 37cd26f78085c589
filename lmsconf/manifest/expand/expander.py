"""Expansion of sets, `use`, `except` and CSV files into plain entries, once all files are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmsconf.errors import Problem
from lmsconf.manifest.expand.conditions import ChoicesByField, ConditionExpander
from lmsconf.manifest.expand.people import CsvPeopleExpander
from lmsconf.manifest.expand.sets import CONDITION_SETS, PEOPLE_SETS, NamedSets, PeopleSetExpander, Report
from lmsconf.manifest.expand.variables import Variables
from lmsconf.manifest.file_set import ManifestFileReader
from lmsconf.manifest.validation.check import SchemaValidator
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath, Map
from lmsconf.manifest.yaml.read_result import Document


class EntryExpander:
    """Expand entries, given the sets of all files and the choices of all declared fields."""

    def __init__(self, files: ManifestFileReader, sets: Mapping[str, SchemaValidator], report: Report) -> None:
        self._sets = {section: NamedSets(section, shape, report) for section, shape in sets.items()}
        self._choices = ChoicesByField()
        self._files = CsvPeopleExpander(files, report)
        self._people = PeopleSetExpander(self._sets[PEOPLE_SETS], self._files)
        self._conditions = ConditionExpander(self._sets[CONDITION_SETS], self._choices, report)

    def collect_sets(self, documents: Iterable[Document], variables: Variables) -> None:
        """Collect the sets of all documents, since any of them may be used in any file."""
        for document in documents:
            for sets in self._sets.values():
                sets.collect_sets(document, variables)

    def add_declared_choices(self, body: Map) -> None:
        """Add the choices of a declared field; to be called for all fields before any `expand`."""
        self._choices.take(body)

    def expand(
        self, body: Map, people_paths: tuple[KeyPath, ...], places: EntrySourceMap, *, has_conditions: bool
    ) -> Map | None:
        """Return the expanded entry; None after reporting a problem.

        people_paths: the paths of its lists of people. has_conditions: whether it has conditions.
        """
        named = self._people.expand(body, people_paths, places)
        listed = self._files.expand(body, people_paths, places)
        whole = self._conditions.expand(body, places) if has_conditions else body
        return whole if named and listed else None

    def unused_set_notes(self) -> Iterator[Problem]:
        """Yield a note for each unused set."""
        for sets in self._sets.values():
            yield from sets.unused_set_notes()
