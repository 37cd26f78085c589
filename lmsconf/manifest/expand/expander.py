"""Expansion of sets, `use`, `except` and CSV files into plain entries, once all files are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from lmsconf.errors import Problem
from lmsconf.manifest.expand.conditions import ChoicesByField, ConditionExpander
from lmsconf.manifest.expand.people import TablePeopleExpander, matching_keys
from lmsconf.manifest.expand.sets import CONDITION_SETS, PEOPLE_SETS, WINDOWS, NamedSets, PeopleSetExpander, Report
from lmsconf.manifest.expand.table_files import TableFiles
from lmsconf.manifest.expand.undeclared import UndeclaredNames
from lmsconf.manifest.expand.variables import Variables
from lmsconf.manifest.file_set import ManifestFileReader
from lmsconf.manifest.validation.check import SchemaValidator
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath, Map
from lmsconf.manifest.yaml.read_result import Document

if TYPE_CHECKING:
    from lmsconf.manifest.sections import Section


class EntryExpander:
    """Expand entries, given the sets of all files and the choices of all declared fields."""

    def __init__(
        self,
        files: ManifestFileReader,
        sets: Mapping[str, SchemaValidator],
        report: Report,
        undeclared: UndeclaredNames,
    ) -> None:
        self._report = report
        self._sets = {section: NamedSets(section, shape, report, undeclared) for section, shape in sets.items()}
        self._choices = ChoicesByField(undeclared)
        self.tables = TableFiles(files, report)
        self._files = TablePeopleExpander(self.tables, report)
        self._people = PeopleSetExpander(self._sets[PEOPLE_SETS], self._files)
        self._conditions = ConditionExpander(self._sets[CONDITION_SETS], self._choices, report)

    def collect_sets(self, layers: Iterable[Iterable[Document]], variables: Variables) -> None:
        """Collect the sets of the documents of each folder, since any of them may be used in any file."""
        for layer, documents in enumerate(layers):
            for document in documents:
                for sets in self._sets.values():
                    sets.collect_sets(document, layer, variables)

    def add_declared_choices(self, body: Map) -> None:
        """Add the choices of a declared field; to be called for all fields before any `expand`."""
        self._choices.take(body)

    def expand(self, body: Map, section: Section, places: EntrySourceMap, *, has_conditions: bool) -> Map | None:
        """Return the expanded entry of a section; None after reporting a problem."""
        lists = [found for trail in section.people for found in matching_keys(body, trail, ())]
        named = self._people.expand(lists, places)
        listed = self._files.expand(lists, places)
        whole = self._conditions.expand(body, places) if has_conditions else body
        if any(any(matching_keys(body, trail, ())) for trail in section.windows):
            whole = self._with_windows(body, section.windows, places)
        return whole if named and listed else None

    def _with_windows(self, body: Map, paths: tuple[KeyPath, ...], places: EntrySourceMap) -> Map | None:
        from lmsconf.manifest.expand.windows import WindowExpander  # few manifests have windows

        return WindowExpander(self._sets[WINDOWS], self._report).expand(body, paths, places)

    def unused_set_notes(self) -> Iterator[Problem]:
        """Yield a note for each unused set."""
        for sets in self._sets.values():
            yield from sets.unused_set_notes()
