"""Entries as a plain manifest would say them: sets, `except` and CSV files written out, once all files are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmsconf.errors import Problem
from lmsconf.manifest.expand.conditions import Conditions, DeclaredChoices
from lmsconf.manifest.expand.people import PeopleFiles
from lmsconf.manifest.expand.sets import CONDITION_SETS, PEOPLE_SETS, PeopleSets, Report, Sets
from lmsconf.manifest.expand.variables import Variables
from lmsconf.manifest.file_set import FileSet
from lmsconf.manifest.validation.check import Shape
from lmsconf.manifest.yaml.files import Document
from lmsconf.manifest.yaml.nodes import EntryPlaces, Map, Trail


class Expander:
    """Knows the sets of all files and the choices of all fields, and writes entries out with them."""

    def __init__(self, shelf: FileSet, sets: Mapping[str, Shape], report: Report) -> None:
        self._sets = {section: Sets(section, shape, report) for section, shape in sets.items()}
        self._choices = DeclaredChoices()
        self._files = PeopleFiles(shelf, report)
        self._people = PeopleSets(self._sets[PEOPLE_SETS], self._files)
        self._conditions = Conditions(self._sets[CONDITION_SETS], self._choices, report)

    def gather(self, documents: Iterable[Document], variables: Variables) -> None:
        """Takes in the sets of all documents, since any of them may be used in any file."""
        for document in documents:
            for sets in self._sets.values():
                sets.gather(document, variables)

    def declare(self, body: Map) -> None:
        """Takes in a field that lists its choices, before any condition is written out."""
        self._choices.take(body)

    def expand(self, body: Map, people: tuple[Trail, ...], places: EntryPlaces, *, conditions: bool) -> Map | None:
        """The entry written out; None, which is told, where that cannot be done."""
        named = self._people.expand(body, people, places)
        listed = self._files.expand(body, people, places)
        whole = self._conditions.expand(body, places) if conditions else body
        return whole if named and listed else None

    def unused(self) -> Iterator[Problem]:
        """A note for each set that nothing uses."""
        for sets in self._sets.values():
            yield from sets.unused()
