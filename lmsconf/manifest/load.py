"""A folder of manifests → what they declare, and every problem of every file at once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import cast

from lmsconf.core.address import Address
from lmsconf.core.kind import Entry, Kind
from lmsconf.core.names import did_you_mean
from lmsconf.core.plan import Manifests
from lmsconf.core.values import Absent, Declared, Json
from lmsconf.errors import Problem, Severity, Where
from lmsconf.manifest import cross, faults
from lmsconf.manifest.check import Shape
from lmsconf.manifest.files import Budget, Document, read
from lmsconf.manifest.folder import Shelf, Unreadable, manifest_files
from lmsconf.manifest.nodes import EntryPlaces, Map, Seq, Trail, settle
from lmsconf.manifest.people import PeopleFiles, people_trails
from lmsconf.manifest.schemas import ABSENT, absent_entry_schema, outline_schema, short_key


def load(
    folder: Path,
    root: Path,
    kinds: Mapping[str, Kind],
    *,
    timezone: tzinfo | None = None,
    variables: Mapping[str, str] | None = None,
    workspaces: Collection[str] | None = None,
) -> Manifests:
    """Everything below `folder`; paths are relative to `root`. What is wrong is told in `problems`, not raised.

    variables: what `$(name)` stands for. workspaces: those that an entry may name; left out, any.
    """
    loading = _Loading(Shelf(root), kinds, timezone, variables or {}, workspaces)
    loading.run(folder)
    told = [*loading.problems, *cross.problems(loading.declared, loading.absent, kinds)]
    return Manifests(
        declared=tuple(loading.declared),
        absent=tuple(loading.absent),
        problems=tuple(sorted(dict.fromkeys(told), key=_order)),
        files=loading.shelf.names,
        digest=loading.shelf.digest,
    )


def _order(problem: Problem) -> tuple[Where, str]:
    return problem.source or Where(""), problem.message


@dataclass(frozen=True, slots=True)
class _Section:
    """How the entries of one section are checked: their kind, the shape of an entry, and where it may name people."""

    kind: Kind
    path: Trail
    shape: Shape
    people: tuple[Trail, ...]
    gone: bool

    @property
    def name(self) -> str:
        return ".".join(str(step) for step in self.path)


@cache
def _sections(of: Hashable) -> tuple[_Section, _Section]:
    """What a kind's entries look like, declared and absent. Kept, since compiling a schema takes a while."""
    kind = cast(Kind, of)
    declared = _Section(kind, (kind.section,), Shape(kind.schema), people_trails(kind.schema), gone=False)
    absent = _Section(kind, (ABSENT, kind.section), Shape(absent_entry_schema(kind)), (), gone=True)
    return declared, absent


@dataclass(slots=True)
class _Loading:
    """One run: what was declared so far, and what was wrong."""

    shelf: Shelf
    kinds: Mapping[str, Kind]
    timezone: tzinfo | None
    variables: Mapping[str, str]
    workspaces: Collection[str] | None
    declared: list[Declared] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def run(self, folder: Path) -> None:
        """Reads, checks and parses every manifest."""
        documents = self._documents(folder)
        outline = Shape(outline_schema(self.kinds))
        sections = {
            section.path: section for kind in self.kinds.values() for section in _sections(cast(Hashable, kind))
        }
        people = PeopleFiles(self.shelf, self.problems.append)
        for document in documents:
            self._check_outline(document, outline)
            if isinstance(document.value, Map):
                for path, items in _lists(document.value):
                    if path in sections:
                        self._entries(sections[path], items, people)

    def _documents(self, folder: Path) -> list[Document]:
        documents: list[Document] = []
        budget = Budget()
        try:
            paths = manifest_files(folder, self.shelf)
        except Unreadable as unreadable:
            self.problems.append(unreadable.problem)
            return documents
        for path in paths:
            try:
                text = self.shelf.text(path)
            except Unreadable as unreadable:
                self.problems.append(unreadable.problem)
                continue
            reading = read(self.shelf.name(path), text, variables=self.variables, budget=budget)
            documents += reading.documents
            self.problems += reading.problems
        if not documents and not self.problems:
            self.problems.append(_nothing(self.shelf.name(folder)))
        return documents

    def _check_outline(self, document: Document, outline: Shape) -> None:
        places = EntryPlaces(document.value, document.source, document.at)
        for finding in outline.findings(document.value):
            self.problems += faults.problems(finding, places, within=None, area="manifest", address=None)

    def _entries(self, section: _Section, items: Seq, people: PeopleFiles) -> None:
        for number, item in enumerate(items):
            at = cast(int, items.mark(number))
            places = EntryPlaces(item, items.source, at)
            if findings := section.shape.findings(item):
                self._tell(section, item, findings, places)
                continue
            body = item if isinstance(item, Map) else _named(short_key(section.kind) or "name", item, items, at)
            if people.expand(body, section.people, places):
                self._parse(section, body, EntryPlaces(body, items.source, at))

    def _parse(self, section: _Section, body: Map, places: EntryPlaces) -> None:
        self.problems += _unknown_workspaces(body, places, self.workspaces)
        entry = Entry(body=body, places=places, timezone=self.timezone, report=self.problems.append)
        if section.gone:
            self.absent.extend(section.kind.parse_absent(entry))
        else:
            self.declared.extend(section.kind.parse(entry))

    def _tell(self, section: _Section, item: Json, findings: list[faults.Finding], places: EntryPlaces) -> None:
        name = item.get("name") if isinstance(item, dict) else None
        address = str(Address.of(section.kind.name, name)) if isinstance(name, str) and name else None
        for finding in findings:
            self.problems += faults.problems(
                finding, places, within=address or section.name, area="manifest", address=address
            )


def _lists(value: Map) -> Iterator[tuple[Trail, Seq]]:
    """The lists of entries in one document, with the keys that lead to each."""
    for key, items in value.items():
        if isinstance(items, Seq):
            yield (key,), items
        elif key == ABSENT and isinstance(items, Map):
            yield from (((key, below), part) for below, part in items.items() if isinstance(part, Seq))


def _named(key: str, name: Json, items: Seq, at: int) -> Map:
    """What a plain name is short for."""
    body = Map(items.source)
    body[key] = name
    settle(body, [at, at])
    return body


def _unknown_workspaces(body: Map, places: EntryPlaces, known: Collection[str] | None) -> Iterator[Problem]:
    """Workspaces that an entry names and the project lacks: it would be limited to nothing, or pinned nowhere."""
    if known is None:
        return
    for key in ("only_in", "id"):
        said = body.get(key)
        for name in cast("Iterable[str]", said) if isinstance(said, list | dict) else ():
            if name not in known:
                yield Problem(
                    code="reference/unknown-workspace",
                    severity=Severity.WARNING,
                    message=f'{key}: there is no workspace "{name}"',
                    hint=did_you_mean(name, known) or f"There is {', '.join(known)}.",
                    source=places.key(key, name) if isinstance(said, dict) else places.find(name, key),
                )


def _nothing(folder: str) -> Problem:
    return Problem(
        code="manifest/nothing",
        message="there is no manifest here",
        hint="Manifests are files that end in .yaml or .yml; names that begin with . or _ are skipped.",
        source=Where(folder),
    )
