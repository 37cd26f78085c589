"""Expansion of sets, `use`, `except` and CSV files into plain entries, once all files are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmsconf.errors import Problem
from lmsconf.manifest.expand.conditions import Conditions, DeclaredChoices
from lmsconf.manifest.expand.people import PeopleFiles
from lmsconf.manifest.expand.sets import CONDITION_SETS, PEOPLE_SETS, PeopleSets, Report, Sets
from lmsconf.manifest.expand.variables import Variables
from lmsconf.manifest.file_set import FileSet
from lmsconf.manifest.validation.check import Shape
from lmsconf.manifest.yaml.nodes import EntryPlaces, Map, Trail
from lmsconf.manifest.yaml.strict_reader import Document


class Expander:
    """Expand entries, given the sets of all files and the choices of all declared fields."""

    def __init__(self, shelf: FileSet, sets: Mapping[str, Shape], report: Report) -> None:
        self._sets = {section: Sets(section, shape, report) for section, shape in sets.items()}
        self._choices = DeclaredChoices()
        self._files = PeopleFiles(shelf, report)
        self._people = PeopleSets(self._sets[PEOPLE_SETS], self._files)
        self._conditions = Conditions(self._sets[CONDITION_SETS], self._choices, report)

    def gather(self, documents: Iterable[Document], variables: Variables) -> None:
        """Collect the sets of all documents, since any of them may be used in any file."""
        for document in documents:
            for sets in self._sets.values():
                sets.gather(document, variables)

    def declare(self, body: Map) -> None:
        """Add the choices of a declared field; to be called for all fields before any `expand`."""
        self._choices.take(body)

    def expand(self, body: Map, people: tuple[Trail, ...], places: EntryPlaces, *, conditions: bool) -> Map | None:
        """Return the expanded entry; None after reporting a problem.

        people: the paths of its lists of people. conditions: whether it has conditions.
        """
        named = self._people.expand(body, people, places)
        listed = self._files.expand(body, people, places)
        whole = self._conditions.expand(body, places) if conditions else body
        return whole if named and listed else None

    def unused(self) -> Iterator[Problem]:
        """Yield a note for each unused set."""
        for sets in self._sets.values():
            yield from sets.unused()
