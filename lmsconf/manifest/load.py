"""Load folders of manifests: desired resources, delete entries, and the problems of all files together.

A later folder is an overlay: it adds to those before it, and changes the entries that it names. An entry of
an overlay that names a resource of an earlier folder changes the keys that it has and leaves the others.
Entries that declare several resources, such as assignments, replace the declaration of each.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import islice
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
from lmsconf.manifest.nodes import VARIABLE_START, EntrySourceMap, KeyPath, Map, merge_mappings
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
    SchemaFinding,
    Section,
    entry_lists,
    has_sections,
    new_findings,
    sections_validator,
    set_validators,
)
from lmsconf.manifest.variables import Entry, Reporter, Variables
from lmsconf.manifest.yaml_reader import AliasBudget, read_yaml
from lmsconf.model.access import AccessTest
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.support.strict_json import map_texts

EntryKey: TypeAlias = "tuple[KeyPath, str]"
"""The section of an entry, and the name of what it declares as names are compared."""
ParsedEntry: TypeAlias = "tuple[Entry, list[DesiredResource[Any]]]"
"""An entry after its expansion, and what it declares."""


def entry_key(entry: Entry) -> EntryKey | None:
    """Return what an entry is found by; None if its declarations are compared one by one."""
    # Entries limited to some workspaces are alternatives of one name: none of them is the one to change.
    section, body = entry.section, members(entry.body)
    name = body.get(section.kind.name_key)
    if not section.is_declared or section.kind.entry_items is not None or "only_in" in body:
        return None
    return (section.path, section.kind.normalize_name(name)) if isinstance(name, str) else None


def without_replaced(parsed: Sequence[ParsedEntry]) -> Iterator[ParsedEntry]:
    """Yield the entries without what a later folder declares again, for the same workspaces."""
    last = {
        (resource.address, resource.only_in): entry.layer
        for entry, resources in sorted(parsed, key=lambda one: one[0].layer)
        for resource in (() if entry.is_part else resources)
    }
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
            yield entry.of({**one, items.key: listed})


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
    reader, problems = ManifestFileReader(root, unsaved_contents or {}), list[Problem]()
    known = Variables(variables or {}, Reporter(problems))
    loading = _Loading(timezone, workspaces, problems, known, TableFiles(reader, problems))
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

    timezone: tzinfo | None
    workspaces: Collection[str] | None
    problems: list[Problem]
    variables: Variables
    tables: TableFiles
    absent: list[DeleteEntry[Any]] = field(default_factory=list)
    tests: list[AccessTest] = field(default_factory=list)
    undeclared: UndeclaredNames = field(default_factory=UndeclaredNames)
    parsed: list[ParsedEntry] = field(default_factory=list)
    _sound: dict[EntryKey | int | None, Entry] = field(default_factory=dict)
    _people: PeopleNames = field(default_factory=PeopleNames)
    _errors: int = 0
    _counted: int = 0

    def run(self, folders: Sequence[Path]) -> None:
        """Read, expand, check and parse every manifest of each folder."""
        budget = AliasBudget()
        documents = [(layer, one) for layer, folder in enumerate(folders) for one in self._documents(folder, budget)]
        self._people.documents = [document for _, document in documents]
        try:
            for _, document in documents:
                self._check_sections(document)
            self._parse_entries(documents)
            if len(folders) > 1:
                self.parsed = [*without_replaced(self.parsed)]
            conflicts = find_conflicts(self.declared(), self.absent, self.declared(is_part=True))
            self._stop_if_enough()
            self.problems += islice(conflicts, ENOUGH + 1)
        except ProblemsFound as exhausted:
            self.problems += exhausted.problems

    def declared(self, *, is_part: bool = False) -> list[DesiredResource[Any]]:
        """Return what whole entries declare, or what entries do whose other keys have errors."""
        return [resource for entry, declared in self.parsed if entry.is_part is is_part for resource in declared]

    def _stop_if_enough(self) -> None:
        """Raise ProblemsFound, without any, at the error limit. Counts only problems since the last call."""
        self._errors += sum(problem.is_error for problem in self.problems[self._counted :])
        self._counted = len(self.problems)
        if self._errors > ENOUGH:
            raise ProblemsFound([])

    def _documents(self, folder: Path, budget: AliasBudget) -> list[EntrySourceMap]:
        files, documents = self.tables.files, list[EntrySourceMap]()
        try:
            paths = find_manifests(folder, files)
            files.check_total_size(paths)
        except ProblemsFound as unreadable:
            self.problems += unreadable.problems
            return []
        before = len(self.problems)
        for path in paths:
            try:
                reading = read_yaml(files.relative_path(path), read_manifest(path, files), budget=budget)
                documents += reading.documents
                self.problems += reading.problems
            except ProblemsFound as unreadable:
                self.problems += unreadable.problems
        self.undeclared.everything |= len(self.problems) > before
        if not any(map(has_sections, documents)) and not self.problems:
            names = [*map(files.relative_path, paths)]
            self.problems.append(nothing_declared_problem(files.relative_path(folder), names, documents))
        return documents

    def _check_sections(self, document: EntrySourceMap) -> None:
        self._stop_if_enough()
        for finding in sections_validator().validate(document.value):
            from lmsconf.manifest.schema_messages import problems_of  # only for a problem

            self.problems += islice(problems_of(finding, document), ENOUGH + 1)
            self.undeclared.doubt_sections(finding)

    def _parse_entries(self, documents: Sequence[tuple[int, EntrySourceMap]]) -> None:
        """Expand and parse all entries of all files. documents: each with the index of its folder.

        Parsing begins after all are read, since a set or a declared choice may be used before its definition.
        """
        expander = EntryExpander(set_validators(), self.tables, self.variables.reporter, self.undeclared)
        for layer, document in documents:
            expander.collect_sets(document, layer, self.variables)
        for layer, document in documents:
            self._add_document(document, layer)
        for entry in self._sound.values():
            if entry.section.is_declared and entry.section.kind.parts_key is not None:
                expander.add_field(cast(Map, entry.body))
        for entry in self._sound.values():
            self._stop_if_enough()
            plain = expander.expand(entry.places)
            if plain is not None:
                self._parse(entry.of(plain))
        if not any(problem.is_error for problem in self.problems):
            expander.note_unused_sets()

    def _add_document(self, document: EntrySourceMap, layer: int) -> None:
        """Add the entries of one document, each in place of the one of an earlier folder that it changes.

        Of each, it is what fits its schema, with variables and `for_each` expanded but not sets.
        """
        for section, items in entry_lists(document):
            for entry in self._entries(section, items, layer):
                key = entry_key(entry)
                known = self._sound.get(key)
                # A second entry of this folder for one resource stays beside the first: it is a duplicate.
                is_beside = known is not None and (entry.is_part or known.layer == layer)
                self._sound[len(self._sound) if key is None or is_beside else key] = entry

    def _entries(self, section: Section, items: EntrySourceMap, layer: int) -> Iterator[Entry]:
        """Yield what the items of a section stand for, as far as it fits its schema."""
        for _, item in items.parts():
            self._stop_if_enough()
            reported: set[Hashable] = set()
            for entry in self.variables.expand_entry(section, item):
                yield from self._fitting(self._merged(entry, layer), reported)

    def _merged(self, entry: Entry, layer: int) -> Entry:
        """Return an entry of a folder, on top of the one of an earlier folder that it changes, if any."""
        base = self._sound.get(entry_key(entry))
        if base is None or base.layer == layer:
            return replace(entry, layer=layer)
        body = merge_mappings(cast(Map, base.body), cast(Map, entry.body))
        return replace(entry, places=base.places.of(body), layer=layer)

    def _fitting(self, entry: Entry, reported: set[Hashable]) -> Iterator[Entry]:
        """Yield the entry, a part of it, or those of its sheet: what fits the schema. Report what does not.

        reported: the findings of other copies of the entry.
        """
        section, body = entry.section, entry.body
        sheet = section.sheet if isinstance(body, Map) and "file" in body else None
        findings = (sheet or section.shape).validate(body)
        if findings or not entry.is_complete:
            self._tell(entry, new_findings(findings, reported))
            if section.is_declared and sheet is None:
                # What fits its schema, to check what that refers to, and what refers to it.
                part = valid_part(section.shape, body, findings) if entry.is_complete else None
                if part is not None:
                    yield replace(entry.of(part), is_part=True)
                if section.kind.parts_key is not None:
                    self.undeclared.doubt_field(body)
        elif sheet is not None:
            from lmsconf.manifest.entries_from_tables import sheet_entries  # few manifests have one

            of_rows: set[Hashable] = set()
            for row in sheet_entries(section.kind, entry.places, self.tables):
                self._stop_if_enough()
                yield from self._fitting(entry.of(row), of_rows)
        elif isinstance(body, Map):
            yield entry
        else:
            # A plain text stands for an entry with this name.
            source, at = entry.places.place()
            yield entry.of(Map(source, {section.kind.name_key: body}, [at, at]))

    def _parse(self, entry: Entry) -> None:
        section = entry.section
        resources: list[DesiredResource[Any]] = []
        self.problems += unknown_workspace_problems(entry.places, self.workspaces)
        parsed = ManifestEntry(
            body=map_texts(entry.body, str, keys=True),
            places=entry.places,
            timezone=self.timezone,
            report=self.problems.append,
        )
        match section.path:
            case ("tests",):
                self.tests.extend(filter(None, [parse_test(parsed)]))
            case ("absent", _):
                self.absent.extend(parse_absent(section.kind.name, parsed))
            case _:
                resources += parse(section.kind.name, parsed)
        self.parsed.append((entry, resources))

    def _tell(self, entry: Entry, findings: Iterable[SchemaFinding]) -> None:
        from lmsconf.manifest.schema_messages import problems_of  # only for a problem

        section = entry.section
        name = members(entry.body).get("name")
        # A name with line breaks would break the one-line message.
        is_name = isinstance(name, str) and name.strip() and not any(char in name for char in "\t\r\n")
        address = (
            str(Address.of(section.kind.name, cast(str, name))) if is_name and section.path != ("tests",) else None
        )
        for finding in findings:
            if entry.is_complete or not (isinstance(finding.value, str) and VARIABLE_START in finding.value):
                problems = problems_of(finding, entry.places, address or section.name, address=address)
                self.problems += islice((self._people.with_hint(problem, finding) for problem in problems), ENOUGH + 1)
