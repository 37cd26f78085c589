"""What `drift --accept` writes: edit manifests so that they declare the live state of findings.

Remove, rename, set keys and items.
"""

from __future__ import annotations

import difflib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import cast

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.kinds.assignment.parse import item_addresses
from lmsconf.kinds.assignment.types import readable_time
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import Kind
from lmsconf.kinds.shared.manifest_entry import ANY, KEYS, EntryItems, Trail, format_shortest_time
from lmsconf.manifest.edit.text_edits import escape_variables, unescape_variables
from lmsconf.manifest.edit.tree_builder import Node
from lmsconf.manifest.edit.yaml_editor import (
    YamlEditor,
    change_conditions,
    change_items,
    change_list,
    choice_key,
    comparison_key_for,
    refuse_shared,
    refused_edit,
    replace_value,
    require_literal,
    set_key,
    set_or_remove_key,
)
from lmsconf.manifest.file_set import MANIFEST_ENDINGS
from lmsconf.manifest.schema_check import declared_section, property_schema
from lmsconf.model.address import EVERYBODY, Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftFinding, DriftState
from lmsconf.model.names import grouped, normalize_name
from lmsconf.model.plan import FieldChange
from lmsconf.planner.drift import TAKE_OVER
from lmsconf.project.settings import Settings
from lmsconf.support.files import read_text


class ManifestEdits(Struct, frozen=True, kw_only=True):
    """Edited manifests, not written yet. before and after: path in the project → the file's bytes.

    beyond: which of `accepted` nobody asked for. renamed: new address of a resource → its old address. problems: of
    what is refused; nothing is edited then.
    """

    accepted: tuple[DriftFinding, ...]
    renamed: Mapping[Address, Address]
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    problems: tuple[Problem, ...]
    beyond: tuple[Address, ...] = ()

    @property
    def diff(self) -> str:
        """Unified diff of all files."""
        return "".join(file_diff(name, self.before[name], self.after[name]) for name in sorted(self.after))


def file_diff(name: str, before: bytes, after: bytes) -> str:
    """Return the unified diff of one file."""
    # Lines end with line feeds alone: str.splitlines knows others.
    old, new = (io.StringIO(data.decode("utf-8"), newline="\n").readlines() for data in (before, after))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    )


class ManifestEditor(Struct):
    """Edits of manifests that accept findings; collects the problems and the renamed resources."""

    manifests: Manifests
    settings: Settings
    pages: dict[str, YamlEditor] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    renamed: dict[Address, Address] = field(default_factory=dict)
    _renames: list[tuple[DriftFinding, FieldChange, Node]] = field(default_factory=list)

    def accept(self, findings: Sequence[DriftFinding]) -> ManifestEdits:
        """Return the files with the edits for every finding, or what is refused."""
        self.problems += (
            Problem(
                code="editing/undeclared",
                message=f"{finding.address}: no manifest declares it, so there is nothing to edit",
                hint=f"`lmsconf {TAKE_OVER}` writes a manifest for it.",
                address=str(finding.address),
            )
            for finding in findings
            if finding.source is None
        )
        declared = Counter(one.source for one in self.manifests.declared)
        located = [(finding.source, finding) for finding in findings if finding.source is not None]
        for source, together in sorted(grouped(located, lambda one: one[0]).items()):
            with self._refusals(together[0][1]):
                self._edit([finding for _, finding in together], source, declared[source])
        for finding, change, entry in self._renames:
            with self._refusals(finding):
                self._rename(finding, change, entry)
        changed: dict[str, bytes] = {}
        edited = [page for page in self.pages.values() if any(node.is_changed for node in page.nodes)]
        for page in edited if not self.problems else ():
            with self._refusals():
                changed[page.name] = page.edited_bytes()
        return ManifestEdits(
            accepted=tuple(findings),
            renamed=self.renamed,
            before={name: self.pages[name].data for name in changed},
            after=changed,
            problems=tuple(self.problems),
        )

    @contextmanager
    def _refusals(self, finding: DriftFinding | None = None) -> Iterator[None]:
        """Keep the problems of an edit that is refused, those of a finding with its address."""
        try:
            yield
        except ProblemsFound as refused:
            self.problems += (
                one
                if finding is None
                else replace(one, message=f"{finding.address}: {one.message}", address=str(finding.address))
                for one in refused.problems
            )

    def _edit(self, findings: list[DriftFinding], source: SourceLocation, declared: int) -> None:
        """Edit the entry that several findings are about. declared: how many resources it declares.

        Raises ProblemsFound.
        """
        first, kind = findings[0], KINDS[findings[0].address.kind]
        if first.reason is not None:
            raise refused_edit(f"an entry about another resource says so: {first.reason}", source, "Change that entry.")
        if first.state is DriftState.UNDECLARED:
            node, items = self._node(source), kind.entry_items
            for finding in findings:
                _remove_declaration(items, node if items is None else find_absent_item(items, node, finding))
            return
        alike = all((finding.state, finding.fields) == (first.state, first.fields) for finding in findings)
        if source.each or declared > len(findings) or not alike:
            cause = "for_each writes out this entry" if source.each else f"this line declares several {kind.plural}"
            raise refused_edit(
                f"{cause}, and they would no longer be equal",
                source,
                "Write the difference as a separate entry, and run it again.",
            )
        self._take_over(first, source)

    def page(self, name: str) -> YamlEditor:
        """Return the editor of a manifest, by path in the project."""
        if name not in self.pages:
            self.pages[name] = YamlEditor(name, read_text(self.settings.root / name).encode())
        return self.pages[name]

    def _node(self, source: SourceLocation) -> Node:
        """Return what is written at a place. Raises ProblemsFound for a row of a sheet, an alias, and its value."""
        if not source.file.endswith(MANIFEST_ENDINGS):
            raise refused_edit(
                "it is a row of a sheet", source, "Change the sheet by hand, or write the entry in a manifest."
            )
        node = self.page(source.file).nodes_by_place.get((source.line, source.column))
        if node is None or node.kind == "alias":
            raise refused_edit("it is not written out here", source)
        refuse_shared(node)
        return node

    def _take_over(self, finding: DriftFinding, source: SourceLocation) -> None:
        if finding.state is DriftState.RENAMED and finding.live is None:
            # The user must choose one of the candidates.
            raise refused_edit(
                f"it may be any of {' and '.join(str(candidate.address) for candidate in finding.candidates)}",
                source,
                f"Write {' or '.join(candidate.line for candidate in finding.candidates)} beside its name, or the new "
                "name by hand.",
            )
        node, kind = self._node(source), KINDS[finding.address.kind]
        if finding.state not in (DriftState.CHANGED, DriftState.RENAMED):
            _remove_declaration(kind.entry_items, node)
            return
        for change in finding.fields:
            if kind.entry_items is not None:
                set_item_key(kind, kind.entry_items, node, change.path, self._live(kind, change))
            elif node.kind == "mapping":
                self._field(kind, finding, node, change)
            else:
                raise refused_edit("only its name is written here", source)

    def _field(self, kind: Kind, finding: DriftFinding, entry: Node, change: FieldChange) -> None:
        head, _, rest = change.path.partition(".")
        if head == kind.name_key or (head == kind.parts_key and rest):
            self._renames.append((finding, change, entry))
        elif head == "conditions":
            change_conditions(entry, change.removed, change.added)
        elif (same := comparison_key_for(property_schema(declared_section(kind).shape.schema, head))) is not None:
            change_list(entry, head, same, change.removed, change.added)
        elif rest:
            self._under(kind, require_literal(entry.get(head), entry), rest, change)
        else:
            set_key(entry, head, self._live(kind, change))

    def _under(self, kind: Kind, node: Node, key: str, change: FieldChange) -> None:
        """Edit one key of a mapping in the entry, such as metadata or answers. Raises ProblemsFound."""
        if node.kind != "mapping":
            raise refused_edit("this is not a mapping", node.where)
        key = next((own.text for own, _ in node.parts if normalize_name(own.text) == key), key)
        if change.removed or change.added:
            change_items(require_literal(node.get(key), node), change.removed, change.added, choice_key)
        else:
            set_key(node, key, self._live(kind, change))

    def _live(self, kind: Kind, change: FieldChange) -> Json:
        """Return the live value in manifest form, with `$(` escaped."""
        moment = readable_time(change.after) if isinstance(change.after, str) else None
        if change.path in kind.time_keys and isinstance(moment, datetime):
            return format_shortest_time(moment, self.settings.policy.timezone, end_of_day=kind.time_keys[change.path])
        return escape_variables(change.after)

    def _rename(self, finding: DriftFinding, change: FieldChange, entry: Node) -> None:
        """Rename a resource or a choice in its entry and in every reference to it. Raises ProblemsFound."""
        old, new, key = str(change.before), str(change.after), change.path.partition(".")[0]
        kind = KINDS[finding.address.kind]
        if key == kind.name_key:
            owner, named, same = entry, require_literal(entry.get(key), entry), kind.normalize_name
            self.renamed[Address.of(kind.name, new)] = finding.address
            uses = self._reached(trail for other in KINDS.values() for trail in other.references.get(kind.name, ()))
        else:
            # The choices, or those under `include` and `exclude`.
            items = chain(_below(entry, (key, ANY)), _below(entry, (key, ANY, ANY)))
            matching = (one for one in items if choice_key(unescape_variables(one.value())) == normalize_name(old))
            owner = require_literal(next(matching, None), entry)
            named = require_literal(owner.get("name"), owner) if owner.kind == "mapping" else owner
            same = normalize_name
            uses = self._uses_of_part(finding.address)
        replace_value(named, escape_variables(new))
        _forget(owner, new)
        for use in uses:
            if use.kind == "scalar" and same(str(unescape_variables(use.text))) == same(old):
                replace_value(use, escape_variables(new))

    def _uses_of_part(self, address: Address) -> Iterator[Node]:
        """Yield every node that may name a part of a resource, such as a choice of a field."""
        for reference in (one for kind in KINDS.values() for one in kind.part_references.get(address.kind, ())):
            above = () if reference.owner is not None else (address.name,)
            for node in self._reached([reference.at]):
                owner = None if reference.owner is None else node.get(reference.owner)
                if reference.owner is None or (
                    owner is not None and choice_key(unescape_variables(owner.value())) == address.name
                ):
                    yield from (item for part in reference.parts for item in _below(node, (*above, *part)))

    def _reached(self, trails: Iterable[Trail]) -> Iterator[Node]:
        """Yield every node of a manifest that one of the paths matches."""
        names = (name for name in self.manifests.files if name.endswith(MANIFEST_ENDINGS))
        roots = [root for name in names for root in self.page(name).roots]
        return (node for trail in trails for root in roots for node in _below(root, trail))


def _remove(node: Node) -> None:
    """Remove an entry from its section, with the comment about it. Raises ProblemsFound."""
    if node.parent is None or node.parent.kind != "list":
        raise refused_edit("this is not an entry of a section", node.where)
    refuse_shared(node)
    node.parent.removed |= {node.parent.items.index(node)}
    node.parent.commented = True


def _forget(entry: Node, name: str) -> None:
    """Remove a name from `previously`, since it is the current name again."""
    node = entry.get("previously")
    names = [] if node is None or node.kind != "list" else cast("list[Json]", unescape_variables(node.value()))
    if normalize_name(name) in map(choice_key, names):
        change_list(entry, "previously", choice_key, [name], [])


def set_item_key(kind: Kind, items: EntryItems, item: Node, key: str, live: Json) -> None:
    """Set the live value of one key: on its item, or on the whole entry. Raises ProblemsFound.

    A value that several items share is kept, and overridden on the item that differs.
    """
    block, siblings = _block(items, item), item.parent
    window, default = (item.get("window"), block.get("window")) if key in kind.time_keys else (None, None)
    if window is not None:
        raise refused_edit(
            f"{key} comes from a window",
            window.where,
            "Change the window, or write visible_from and visible_until here in its place.",
        )
    alone = siblings is not None and siblings.kind == "list" and len(siblings.items) == 1
    if block.get(key) is not None and alone and item.get(key) is None:
        set_or_remove_key(block, key, live)
    elif item.kind == "mapping":
        set_or_remove_key(item, key, live, block.get(key) or default)
    elif unescape_variables(item.text) == EVERYBODY:
        refuse_shared(item)
        item.replacement = {
            **(item.replacement if isinstance(item.replacement, dict) else {EVERYBODY: True}),
            key: live,
        }
    else:
        raise _elsewhere("this", items, item)


def _remove_declaration(items: EntryItems | None, item: Node) -> None:
    """Remove an entry; for a kind with items an item, and the entry with its last one. Raises ProblemsFound."""
    block = None if items is None else _block(items, item)
    _remove(item)
    if block is not None and item.parent is not None and not item.parent.kept():
        _remove(block)


def find_absent_item(items: EntryItems, entry: Node, finding: DriftFinding) -> Node:
    """Return the item that a finding is about in an entry under `absent`. Raises ProblemsFound."""
    subjects = require_literal(entry.get(items.subject), entry)
    if subjects.kind == "list" and len(subjects.items) > 1:
        raise refused_edit(
            f"this entry declares several {items.subject}s",
            entry.where,
            "Write the difference as a separate entry, and run it again.",
        )
    body = {items.subject: unescape_variables(subjects.value())}
    for item in require_literal(entry.get(items.key), entry).items:
        if finding.address in item_addresses(body, unescape_variables(item.value())):
            return item
    raise _elsewhere("its", items, entry)


def _block(items: EntryItems, item: Node) -> Node:
    """Return the entry that contains an item. Raises ProblemsFound."""
    block = item.parent.parent if item.parent is not None else None
    if (
        block is None
        or block.kind != "mapping"
        or (item.replacement is not UNSET and not isinstance(item.replacement, dict))
    ):
        raise _elsewhere("this", items, item)
    return block


def _elsewhere(which: str, items: EntryItems, node: Node) -> ProblemsFound:
    return refused_edit(f"{which} {items.noun} is not written out here", node.where)


def _below(node: Node, trail: Trail) -> Iterator[Node]:
    """Yield every node that a path matches; an alias is not followed, since its target is matched itself."""
    if not trail:
        yield node
    elif trail[0] == KEYS and node.kind == "mapping":
        yield from (key for key, _ in node.parts)
    else:
        for part in node.parts:
            if trail[0] == ANY or (node.kind == "mapping" and trail[0] == normalize_name(part[0].text)):
                yield from _below(part[-1], trail[1:])
