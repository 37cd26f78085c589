"""Load folders of manifests: desired resources, delete entries, and the problems of all files together.

A later folder is an overlay: it adds to those before it, and changes the entries that it names. An entry of
an overlay that names a resource of an earlier folder changes the keys that it has and leaves the others.
Entries that declare several resources, such as assignments, replace the declaration of each.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.kinds.assignment.parse import item_addresses, parse_test
from lmsconf.kinds.kind_table import parse, parse_absent
from lmsconf.kinds.shared.manifest_entry import EntryItems, ManifestEntry
from lmsconf.manifest.entries_from_tables import TableFiles
from lmsconf.manifest.file_set import ManifestFileReader, files_digest, find_manifests, read_manifest
from lmsconf.manifest.named_sets import EntryExpander
from lmsconf.manifest.nodes import VARIABLE_START, EntrySourceMap, KeyPath, Map, Seq, merge_mappings
from lmsconf.manifest.problems import (
    ENOUGH,
    PeopleNames,
    UndeclaredNames,
    find_conflicts,
    nothing_declared_problem,
    sort_and_limit,
    unknown_workspace_problems,
    valid_part,
)
from lmsconf.manifest.schema_check import (
    ABSENT,
    SchemaFinding,
    Section,
    entry_lists,
    has_sections,
    new_findings,
    sections_by_path,
    sections_validator,
    set_validators,
)
from lmsconf.manifest.variables import Entry, Reporter, Variables
from lmsconf.manifest.yaml_reader import AliasBudget, YamlReadResult, read_yaml
from lmsconf.model.access import AccessTest
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.support.strict_json import map_texts

EntryKey: TypeAlias = "tuple[KeyPath, str]"
"""The section of an entry, and the name of what it declares as names are compared."""
ParsedEntry: TypeAlias = "tuple[Entry, list[DesiredResource[Any]]]"
"""An entry after its expansion, and what it declares."""


def entry_key(section: Section, body: Json) -> EntryKey | None:
    """Return what an entry is found by; None if its declarations are compared one by one."""
    # Entries limited to some workspaces are alternatives of one name: none of them is the one to change.
    name = members(body).get(section.kind.name_key)
    if not section.is_declared or section.kind.entry_items is not None or "only_in" in members(body):
        return None
    return (section.path, section.kind.normalize_name(name)) if isinstance(name, str) else None


def without_replaced(parsed: Sequence[ParsedEntry]) -> Iterator[ParsedEntry]:
    """Yield the entries without what a later folder declares again, for the same workspaces."""
    last: dict[tuple[Address, frozenset[str] | None], int] = {}
    for entry, resources in parsed:
        for resource in () if entry.is_part else resources:
            key = resource.address, resource.only_in
            last[key] = max(entry.layer, last.get(key, 0))
    for entry, resources in parsed:
        left = [one for one in resources if entry.is_part or last[one.address, one.only_in] == entry.layer]
        is_whole = entry.section.kind.entry_items is None or len(left) == len(resources)
        for one in (entry,) if is_whole else _with_items(entry, left):
            yield one, left
            left = []


def _with_items(entry: Entry, left: Iterable[DesiredResource[Any]]) -> Iterator[Entry]:
    """Yield an entry for each of its contents, with the items that declare what is left, if there are any."""
    items, addresses = cast(EntryItems, entry.section.kind.entry_items), {resource.address for resource in left}
    body = cast("dict[str, Json]", entry.body)
    subjects = body[items.subject]
    for subject in subjects if isinstance(subjects, list) else [subjects]:
        one = {**body, items.subject: subject}
        listed = [
            item for item in cast("list[Json]", body[items.key]) if not addresses.isdisjoint(item_addresses(one, item))
        ]
        if listed:
            yield replace(entry, body={**one, items.key: listed})


ExpandedEntries: TypeAlias = "list[tuple[KeyPath, Json]]"
"""Entries after expansion, each with the keys that lead to its section."""


def load_folder(
    folder: Path,
    root: Path,
    *,
    overlays: Sequence[Path] = (),
    timezone: tzinfo | None = None,
    variables: Mapping[str, Json] | None = None,
    workspaces: Collection[str] | None = None,
    expanded: ExpandedEntries | None = None,
    unsaved_contents: Mapping[str, bytes] | None = None,
) -> Manifests:
    """Load all manifests below `folder`; paths are relative to `root`. Errors are returned in `problems`, not raised.

    overlays: folders whose manifests add to those of `folder` and change them, later ones last.
    variables: name → value of `$(name)`. workspaces: the names that an entry may refer to; None allows any.
    expanded: filled with each entry after its expansion. unsaved_contents: path → content to use instead of what is
    on disk.
    """
    reader = ManifestFileReader(root, unsaved_contents)
    loading = _Loading(reader, timezone, variables or {}, workspaces)
    loading.run((folder, *overlays))
    if expanded is not None:
        expanded += [(entry.section.path, entry.body) for entry, _ in loading.parsed]
    return Manifests(
        declared=tuple(loading.declared()),
        absent=tuple(loading.absent),
        tests=tuple(loading.tests),
        problems=tuple(sort_and_limit(dict.fromkeys(loading.problems))),
        files=tuple(sorted(reader.digests)),
        digest=files_digest(reader.digests),
    )


class _Loading(Struct):
    """State of one load: the resources declared so far, and the problems."""

    files: ManifestFileReader
    timezone: tzinfo | None
    known: Mapping[str, Json]
    workspaces: Collection[str] | None
    absent: list[DeleteEntry[Any]] = field(default_factory=list)
    tests: list[AccessTest] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    undeclared: UndeclaredNames = field(default_factory=UndeclaredNames)
    _sound: dict[EntryKey | int, Entry] = field(default_factory=dict)
    parsed: list[ParsedEntry] = field(default_factory=list)
    _people: PeopleNames = field(default_factory=PeopleNames)
    _errors: int = 0
    _counted: int = 0

    def run(self, folders: Sequence[Path]) -> None:
        """Read, expand, check and parse every manifest of each folder."""
        budget = AliasBudget()
        layers = [self._documents(folder, budget) for folder in folders]
        for document in chain.from_iterable(layers):
            if self._is_enough():
                return
            for finding in sections_validator().validate(document.value):
                from lmsconf.manifest.schema_messages import problems_of  # only for a problem

                self.problems += islice(problems_of(finding, document), ENOUGH + 1)
                self.undeclared.doubt_sections(finding)
        try:
            self._entries_of(layers)
        except ProblemsFound as exhausted:
            self.problems += exhausted.problems
        if len(folders) > 1:
            self.parsed = [*without_replaced(self.parsed)]
        if not self._is_enough():
            self.problems += islice(
                find_conflicts(self.declared(), self.absent, self.declared(is_part=True)), ENOUGH + 1
            )

    def declared(self, *, is_part: bool = False) -> list[DesiredResource[Any]]:
        """Return what whole entries declare, or what entries do whose other keys have errors."""
        return [resource for entry, declared in self.parsed if entry.is_part is is_part for resource in declared]

    def _is_enough(self) -> bool:
        """Whether the error limit is reached. Counts only the problems added since the last call."""
        self._errors += sum(problem.is_error for problem in self.problems[self._counted :])
        self._counted = len(self.problems)
        return self._errors > ENOUGH

    def _entries_of(self, layers: Sequence[Sequence[EntrySourceMap]]) -> None:
        """Expand and parse all entries of all files.

        Parsing begins after all are read, since a set or a declared choice may be used before its definition.
        """
        reporter = Reporter(self.problems)
        variables = Variables(self.known, reporter)
        tables = TableFiles(self.files, self.problems)
        expander = EntryExpander(set_validators(), tables, reporter, self.undeclared)
        self._people.documents = [*chain.from_iterable(layers)]
        for layer, documents in enumerate(layers):
            for document in documents:
                expander.collect_sets(document, layer, variables)
        for layer, documents in enumerate(layers):
            self._add_layer(layer, documents, variables, tables)
        for entry in self._sound.values():
            if entry.section.is_declared and entry.section.kind.parts_key is not None:
                expander.add_field(cast(Map, entry.body))
        for entry in self._sound.values():
            if self._is_enough():
                return
            plain = expander.expand(cast(Map, entry.body), entry.places)
            if plain is not None:
                self._parse(entry.of(plain))
        if not any(problem.is_error for problem in self.problems):
            expander.note_unused_sets()

    def _add_layer(
        self, layer: int, documents: Iterable[EntrySourceMap], variables: Variables, tables: TableFiles
    ) -> None:
        """Add the entries of one folder, each in place of the one that it changes.

        Of each, it is what fits its schema, with variables and `for_each` expanded but not sets.
        """
        sections, values = sections_by_path(), [one.value for one in documents if isinstance(one.value, Map)]
        for path, items in chain.from_iterable(map(entry_lists, values)):
            for entry in self._entries(sections[path], items, layer, variables, tables) if path in sections else ():
                key = entry_key(entry.section, entry.body)
                known = None if key is None else self._sound.get(key)
                # A second entry of this folder for one resource stays beside the first: it is a duplicate.
                is_beside = known is not None and (entry.is_part or known.layer == layer)
                self._sound[len(self._sound) if key is None or is_beside else key] = replace(entry, layer=layer)

    def _documents(self, folder: Path, budget: AliasBudget) -> list[EntrySourceMap]:
        documents: list[EntrySourceMap] = []
        try:
            paths = find_manifests(folder, self.files)
            self.files.check_total_size(paths)
        except ProblemsFound as unreadable:
            self.problems += unreadable.problems
            return documents
        for path in paths:
            try:
                reading = read_yaml(self.files.relative_path(path), read_manifest(path, self.files), budget=budget)
            except ProblemsFound as unreadable:
                reading = YamlReadResult(problems=[*unreadable.problems])
            documents += reading.documents
            self.problems += reading.problems
            self.undeclared.everything |= bool(reading.problems)
        if not any(map(has_sections, documents)) and not self.problems:
            self.problems.append(
                nothing_declared_problem(
                    self.files.relative_path(folder), [self.files.relative_path(path) for path in paths], documents
                )
            )
        return documents

    def _entries(
        self, section: Section, items: Seq, layer: int, variables: Variables, tables: TableFiles
    ) -> Iterator[Entry]:
        for number, item in enumerate(items):
            if self._is_enough():
                return
            at = cast(int, items.mark(number))
            reported: set[Hashable] = set()
            for one in variables.expand_entry(section, item, items.source, at):
                entry = self._merged(one, layer)
                is_sheet = section.sheet is not None and isinstance(entry.body, Map) and "file" in entry.body
                shape = section.sheet if is_sheet and section.sheet is not None else section.shape
                findings = shape.validate(entry.body)
                if findings or not entry.is_complete:
                    self._tell(entry, new_findings(findings, reported))
                    if section.is_declared and not is_sheet:
                        # What fits its schema, to check what that refers to, and what refers to it.
                        part = valid_part(section.shape, entry.body, findings) if entry.is_complete else None
                        if part is not None:
                            yield replace(entry.of(part), is_part=True)
                        if section.kind.parts_key is not None:
                            self.undeclared.doubt_field(entry.body)
                elif is_sheet:
                    yield from self._rows(entry, tables)
                elif isinstance(entry.body, Map):
                    yield entry
                else:
                    # A plain text stands for an entry with this name.
                    yield entry.of(Map(items.source, {section.kind.name_key: entry.body}, [at, at]))

    def _merged(self, entry: Entry, layer: int) -> Entry:
        """Return an entry on top of the one of an earlier folder that it changes, if any."""
        key = entry_key(entry.section, entry.body)
        base = None if key is None else self._sound.get(key)
        if base is None or base.layer == layer:
            return entry
        body = merge_mappings(cast(Map, base.body), cast(Map, entry.body))
        return replace(entry, body=body, places=base.places.of(body))

    def _rows(self, entry: Entry, tables: TableFiles) -> Iterator[Entry]:
        """Yield the entries that an entry reads from a file, one for each row that fits the schema of an entry."""
        from lmsconf.manifest.entries_from_tables import sheet_entries  # few manifests have one

        reported: set[Hashable] = set()
        for body in sheet_entries(entry.section.kind, cast(Map, entry.body), entry.places, tables):
            if findings := entry.section.shape.validate(body):
                self._tell(entry.of(body), new_findings(findings, reported))
            else:
                yield entry.of(body)
            if self._is_enough():
                return

    def _parse(self, entry: Entry) -> None:
        section, body = entry.section, cast(Map, entry.body)
        resources: list[DesiredResource[Any]] = []
        self.problems += unknown_workspace_problems(body, entry.places, self.workspaces)
        parsed = ManifestEntry(
            body=map_texts(body, str, keys=True),
            places=entry.places,
            timezone=self.timezone,
            report=self.problems.append,
        )
        if section.is_test:
            self.tests.extend(filter(None, [parse_test(parsed)]))
        elif section.path[0] == ABSENT:
            self.absent.extend(parse_absent(section.kind.name, parsed))
        else:
            resources += parse(section.kind.name, parsed)
        self.parsed.append((entry, resources))

    def _tell(self, entry: Entry, findings: Iterable[SchemaFinding]) -> None:
        from lmsconf.manifest.schema_messages import problems_of  # only for a problem

        section = entry.section
        name = members(entry.body).get("name")
        # A name with line breaks would break the one-line message.
        is_name = isinstance(name, str) and name.strip() and not any(char in name for char in "\t\r\n")
        address = str(Address.of(section.kind.name, cast(str, name))) if is_name and not section.is_test else None
        for finding in findings:
            if entry.is_complete or not (isinstance(finding.value, str) and VARIABLE_START in finding.value):
                problems = problems_of(finding, entry.places, address or section.name, address=address)
                self.problems += islice((self._people.with_hint(problem, finding) for problem in problems), ENOUGH + 1)
