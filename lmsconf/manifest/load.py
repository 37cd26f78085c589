"""Load a folder of manifests: desired resources, delete entries, and the problems of all files together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from lmsconf.errors import Problem, Severity, SourceLocation, shorten
from lmsconf.manifest.expand.expander import EntryExpander
from lmsconf.manifest.expand.for_each import ExpandedEntry, ForEachExpander
from lmsconf.manifest.expand.people import people_list_paths
from lmsconf.manifest.expand.sets import CONDITION_SETS, PEOPLE_SETS, SET_SECTIONS
from lmsconf.manifest.expand.variables import ExpansionLimitExceeded, Variables
from lmsconf.manifest.file_set import ManifestFileReader, UnreadableFile, find_manifests, read_manifest
from lmsconf.manifest.schemas import (
    ABSENT,
    absent_entry_schema,
    declares_choices,
    entry_schema,
    has_conditions,
    identifying_key,
    sections_schema,
    set_schemas,
)
from lmsconf.manifest.validation import cross, messages
from lmsconf.manifest.validation.check import SchemaValidator
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath, Map, Seq, store_marks
from lmsconf.manifest.yaml.scalars import VARIABLE_START
from lmsconf.manifest.yaml.strict_reader import AliasBudget, Document, read_yaml
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import did_you_mean
from lmsconf.planner import kind as core
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.plan import Manifests

EntryCallback: TypeAlias = Callable[[KeyPath, Json], None]
"""Callback: receives the keys that lead to the section, and each entry after expansion."""
_SHOWN: Final = 5
ENOUGH: Final = 1_000
"""Loading stops after this many errors; the others are not reported."""


def load_folder(
    folder: Path,
    root: Path,
    kinds: Mapping[str, AnyKind],
    *,
    timezone: tzinfo | None = None,
    variables: Mapping[str, Json] | None = None,
    workspaces: Collection[str] | None = None,
    on_entry: EntryCallback | None = None,
    unsaved_contents: Mapping[str, bytes] | None = None,
) -> Manifests:
    """Load all manifests below `folder`; paths are relative to `root`. Errors are returned in `problems`, not raised.

    variables: name → value of `$(name)`. workspaces: the names that an entry may refer to; None allows any.
    on_entry: called with each entry after its expansion. unsaved_contents: path → content to use instead of what is
    on disk.
    """
    loading = _Loading(
        ManifestFileReader(root, unsaved_contents), kinds, timezone, variables or {}, workspaces, on_entry
    )
    loading.run(folder)
    problems = dict.fromkeys([*loading.problems, *loading.crossed()])
    return Manifests(
        declared=tuple(loading.declared),
        absent=tuple(loading.absent),
        problems=tuple(_ordered(problems)),
        files=loading.files.read_paths,
        digest=loading.files.content_digest,
    )


def _ordered(problems: Iterable[Problem]) -> list[Problem]:
    """Sort the problems by source location; beyond ENOUGH errors, cut the list and append a problem that reports so."""
    ordered = sorted(problems, key=lambda problem: (problem.source or SourceLocation(""), problem.message))
    if sum(problem.is_error for problem in ordered) <= ENOUGH:
        return ordered
    return [*ordered[:ENOUGH], _too_many(ordered[ENOUGH - 1].source)]


@dataclass(frozen=True, slots=True)
class _Section:
    """How the entries of one section are checked: their kind, the schema of an entry, the paths of lists of people."""

    kind: AnyKind
    path: KeyPath
    shape: SchemaValidator
    people: tuple[KeyPath, ...]
    is_absent: bool

    @property
    def name(self) -> str:
        return ".".join(str(step) for step in self.path)


@cache
def _sections(of: Hashable) -> tuple[_Section, _Section]:
    """Return the sections of a kind, declared and absent. Cached, since compiling a schema is slow."""
    kind = cast(AnyKind, of)
    declared = _Section(
        kind, (kind.section,), SchemaValidator(entry_schema(kind)), people_list_paths(kind.schema), is_absent=False
    )
    absent = _Section(kind, (ABSENT, kind.section), SchemaValidator(absent_entry_schema(kind)), (), is_absent=True)
    return declared, absent


@cache
def _outline(kinds: tuple[Hashable, ...]) -> SchemaValidator:
    """Return the compiled schema of a manifest without its entries. Cached, since compiling a schema is slow."""
    return SchemaValidator(sections_schema(_by_name(kinds)))


@cache
def _sets(kinds: tuple[Hashable, ...]) -> Mapping[str, SchemaValidator]:
    """Map each section of sets to the compiled schema of one set. Cached for the same reason."""
    schemas = set_schemas(_by_name(kinds))
    return {section: SchemaValidator(schemas.get(section, {})) for section in (PEOPLE_SETS, CONDITION_SETS)}


def _by_name(kinds: tuple[Hashable, ...]) -> dict[str, AnyKind]:
    return {kind.name: kind for kind in cast("tuple[AnyKind, ...]", kinds)}


_Sound: TypeAlias = "tuple[_Section, Map, EntrySourceMap]"


@dataclass(slots=True)
class _Loading:
    """State of one load: the resources declared so far, and the problems."""

    files: ManifestFileReader
    kinds: Mapping[str, AnyKind]
    timezone: tzinfo | None
    known: Mapping[str, Json]
    workspaces: Collection[str] | None
    on_entry: EntryCallback | None
    declared: list[DesiredResource[Any]] = field(default_factory=list)
    absent: list[DeleteEntry[Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _errors: int = 0
    _counted: int = 0

    def run(self, folder: Path) -> None:
        """Read, expand, check and parse every manifest."""
        documents = self._documents(folder)
        outline = _outline(tuple(self.kinds.values()))
        for document in documents:
            if self._is_enough():
                return
            self._check_outline(document, outline)
        try:
            self._entries_of(documents)
        except ExpansionLimitExceeded as exhausted:
            self.problems.append(exhausted.problem)

    def crossed(self) -> Iterator[Problem]:
        """Yield the problems of cross-resource checks, unless the error limit is reached already."""
        if not self._is_enough():
            yield from islice(cross.find_conflicts(self.declared, self.absent, self.kinds), ENOUGH + 1)

    def _is_enough(self) -> bool:
        """Whether the error limit is reached. Counts only the problems added since the last call."""
        self._errors += sum(problem.is_error for problem in self.problems[self._counted :])
        self._counted = len(self.problems)
        return self._errors > ENOUGH

    def _entries_of(self, documents: Sequence[Document]) -> None:
        """Expand and parse all entries of all files.

        Parsing begins after all are read, since a set or a declared choice may be used before its definition.
        """
        variables = Variables(self.known, self.problems.append)
        expander = EntryExpander(self.files, _sets(tuple(self.kinds.values())), self.problems.append)
        expander.collect_sets(documents, variables)
        sound = list(self._sound(documents, ForEachExpander(variables, self.problems.append)))
        for section, body, _ in sound:
            if not section.is_absent and declares_choices(section.kind):
                expander.add_declared_choices(body)
        for section, body, places in sound:
            if self._is_enough():
                return
            conditions = not section.is_absent and has_conditions(section.kind)
            plain = expander.expand(body, section.people, places, has_conditions=conditions)
            if plain is not None:
                self._parse(section, plain, places.of(plain))
        if not any(problem.is_error for problem in self.problems):
            self.problems += expander.unused_set_notes()

    def _sound(self, documents: Iterable[Document], writer: ForEachExpander) -> Iterator[_Sound]:
        """Yield every entry that fits its schema, with variables and `for_each` expanded but not sets."""
        sections = {
            section.path: section for kind in self.kinds.values() for section in _sections(cast(Hashable, kind))
        }
        for document in documents:
            for path, items in _lists(document.value) if isinstance(document.value, Map) else ():
                if path in sections:
                    yield from self._entries(sections[path], items, writer)

    def _documents(self, folder: Path) -> list[Document]:
        documents: list[Document] = []
        budget = AliasBudget()
        try:
            paths = find_manifests(folder, self.files)
            self.files.check_total_size(paths)
        except UnreadableFile as unreadable:
            self.problems.append(unreadable.problem)
            return documents
        for path in paths:
            try:
                text = read_manifest(path, self.files)
            except UnreadableFile as unreadable:
                self.problems.append(unreadable.problem)
                continue
            reading = read_yaml(self.files.relative_path(path), text, budget=budget)
            documents += reading.documents
            self.problems += reading.problems
        if not any(map(_has_sections, documents)) and not self.problems:
            names = [self.files.relative_path(path) for path in paths]
            self.problems.append(
                _silent(names, documents, self.kinds) if names else _nothing(self.files.relative_path(folder))
            )
        return documents

    def _check_outline(self, document: Document, outline: SchemaValidator) -> None:
        places = EntrySourceMap(document.value, document.source, document.at)
        for finding in outline.validate(document.value):
            problems = messages.problems_from_finding(
                finding, places, message_prefix=None, code_area="manifest", address=None
            )
            self.problems += islice(problems, ENOUGH + 1)

    def _entries(self, section: _Section, items: Seq, writer: ForEachExpander) -> Iterator[_Sound]:
        for number, item in enumerate(items):
            if self._is_enough():
                return
            at = cast(int, items.mark(number))
            reported: set[Hashable] = set()
            for entry in writer.expand_entry(item, items.source, at, section.name):
                findings = section.shape.validate(entry.body)
                if findings or not entry.is_complete:
                    self._tell(section, entry, _new(findings, reported))
                elif isinstance(entry.body, Map):
                    yield section, entry.body, entry.places
                else:
                    body = _named(identifying_key(section.kind) or "name", entry.body, items, at)
                    yield section, body, entry.places.of(body)

    def _parse(self, section: _Section, body: Map, places: EntrySourceMap) -> None:
        if self.on_entry is not None:
            self.on_entry(section.path, body)
        self.problems += _unknown_workspaces(body, places, self.workspaces)
        entry = core.ManifestEntry(body=body, places=places, timezone=self.timezone, report=self.problems.append)
        if section.is_absent:
            self.absent.extend(section.kind.parse_absent(entry))
        else:
            self.declared.extend(section.kind.parse(entry))

    def _tell(self, section: _Section, entry: ExpandedEntry, findings: Iterable[messages.SchemaFinding]) -> None:
        name = entry.body.get("name") if isinstance(entry.body, dict) else None
        # A name with line breaks would break the one-line message.
        is_name = isinstance(name, str) and name.strip() and not any(char in name for char in "\t\r\n")
        address = str(Address.of(section.kind.name, cast(str, name))) if is_name else None
        for finding in findings:
            if entry.is_complete or not (isinstance(finding.value, str) and VARIABLE_START in finding.value):
                problems = messages.problems_from_finding(
                    finding, entry.places, message_prefix=address or section.name, code_area="manifest", address=address
                )
                self.problems += islice(problems, ENOUGH + 1)


def _new(findings: Iterable[messages.SchemaFinding], reported: set[Hashable]) -> Iterator[messages.SchemaFinding]:
    """Yield the findings not reported yet for another copy of the same `for_each` entry."""
    for finding in findings:
        value = None if isinstance(finding.value, dict | list) else finding.value
        key = (finding.path, finding.keyword, value)
        if key not in reported:
            reported.add(key)
            yield finding


def _has_sections(document: Document) -> bool:
    """Whether a document has a section of entries.

    If no document had any, every owned resource would be planned for deletion.
    """
    value = document.value
    return not isinstance(value, Map) or any(not key.startswith("x-") and key not in SET_SECTIONS for key in value)


def _lists(value: Map) -> Iterator[tuple[KeyPath, Seq]]:
    """Yield the lists of entries in one document, with the keys that lead to each."""
    for key, items in value.items():
        if isinstance(items, Seq):
            yield (key,), items
        elif key == ABSENT and isinstance(items, Map):
            yield from (((key, below), part) for below, part in items.items() if isinstance(part, Seq))


def _named(key: str, name: Json, items: Seq, at: int) -> Map:
    """Return the mapping that a plain string abbreviates."""
    body = Map(items.source)
    body[key] = name
    store_marks(body, [at, at])
    return body


def _unknown_workspaces(body: Map, places: EntrySourceMap, known: Collection[str] | None) -> Iterator[Problem]:
    """Warn about workspaces that an entry names and the project does not have.

    The entry would apply to no workspace, or its `id` would be unused.
    """
    if known is None:
        return
    for key in ("only_in", "id"):
        value = body.get(key)
        for name in cast("Iterable[str]", value) if isinstance(value, list | dict) else ():
            if name not in known:
                yield Problem(
                    code="reference/unknown-workspace",
                    severity=Severity.WARNING,
                    message=f'{key}: there is no workspace "{shorten(name)}"',
                    hint=did_you_mean(name, known) or f"There is {', '.join(known)}.",
                    source=places.key(key, name) if isinstance(value, dict) else places.find(name, key),
                )


def _too_many(source: SourceLocation | None) -> Problem:
    message = f"the manifests have more than {ENOUGH:,} errors; the others are not told"
    return Problem(code="manifest/too-many-problems", message=message, source=source)


def _nothing(folder: str) -> Problem:
    return Problem(
        code="manifest/nothing",
        message="there is no manifest here",
        hint="Manifests are files that end in .yaml or .yml; names that begin with . or _ are skipped.",
        source=SourceLocation(folder),
    )


def _silent(files: Sequence[str], documents: Sequence[Document], kinds: Mapping[str, AnyKind]) -> Problem:
    """Return the problem of manifests that declare nothing."""
    nonempty = {document.source.path for document in documents}
    shown = ", ".join(files[:_SHOWN]) + (f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else "")
    verb, is_single = "is" if len(files) == 1 else "are", len(files) == 1
    why = f"{verb} empty, or only comments"
    if nonempty:
        why = f"{'holds' if is_single else 'hold'} only sets, or keys that are ignored"
    sections = ", ".join(kind.section for kind in kinds.values())
    return Problem(
        code="manifest/nothing",
        message=f"nothing is declared: {shown} {why}",
        hint=f"Write what shall be, under one of {sections}, {ABSENT}.",
        source=SourceLocation(files[0], 1, 1) if is_single else SourceLocation(files[0]),
    )
