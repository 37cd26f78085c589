"""Edit manifests so that they declare the live state of findings: remove, rename, set keys and items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.kinds.assignment.parse import item_addresses
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import Kind
from lmsconf.kinds.shared.manifest_entry import ANY, KEYS, EntryItems, Trail, format_shortest_time
from lmsconf.manifest.edit.text_edits import escape_variables, unescape_variables
from lmsconf.manifest.edit.tree_builder import UNCHANGED, Node
from lmsconf.manifest.edit.yaml_editor import (
    YamlEditor,
    change_conditions,
    change_items,
    change_list,
    choice_key,
    comparison_key_for,
    refused_edit,
    remove_key,
    replace_value,
    require_literal,
    set_key,
)
from lmsconf.manifest.file_set import MANIFEST_ENDINGS
from lmsconf.manifest.schema_check import declared_section, property_schema
from lmsconf.manifest.sets import WINDOW
from lmsconf.model.address import EVERYBODY, Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftFinding, DriftState, FieldDrift
from lmsconf.model.names import normalize_name
from lmsconf.model.time_formats import parse_response_time
from lmsconf.planner.drift import TAKE_OVER
from lmsconf.support.files import read_text


class ManifestEditor(Struct):
    """Edits of manifests that accept findings; collects the problems and the renamed resources."""

    manifests: Manifests
    root: Path
    timezone: tzinfo | None
    pages: dict[str, YamlEditor] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    renamed: dict[Address, Address] = field(default_factory=dict)
    _renames: list[tuple[DriftFinding, FieldDrift, Node]] = field(default_factory=list)
    _declared_at: Counter[SourceLocation] = field(default_factory=Counter)

    def accept(self, findings: Iterable[DriftFinding]) -> None:
        """Add the edits for every finding; those that are refused become problems."""
        self._declared_at = Counter(resource.source for resource in self.manifests.declared)
        together: defaultdict[SourceLocation, list[DriftFinding]] = defaultdict(list)
        for finding in findings:
            if finding.source is None:
                self.problems.append(
                    Problem(
                        code="editing/undeclared",
                        message=f"{finding.address}: no manifest declares it, so there is nothing to edit",
                        hint=f"`lmsconf {TAKE_OVER}` writes a manifest for it.",
                        address=str(finding.address),
                    )
                )
            else:
                together[finding.source].append(finding)
        for source, entry_findings in sorted(together.items()):
            self._tried(entry_findings, source)
        for finding, change, entry in self._renames:
            try:
                self._rename(finding, change, entry)
            except ProblemsFound as refused:
                self._refuse(finding, refused)

    def edited(self) -> dict[str, bytes]:
        """Return the changed files, path → bytes; empty if there are problems."""
        if self.problems:
            return {}
        changed: dict[str, bytes] = {}
        for page in self.pages.values():
            try:
                if page.is_changed:
                    changed[page.name] = page.edited_bytes()
            except ProblemsFound as refused:
                self.problems += refused.problems
        return changed

    def _tried(self, findings: list[DriftFinding], source: SourceLocation) -> None:
        try:
            if (reason := findings[0].reason) is not None:
                raise refused_edit(f"an entry about another resource says so: {reason}", source, "Change that entry.")
            if findings[0].state is DriftState.UNDECLARED:
                for finding in findings:
                    self._drop_absent(finding, source)
            else:
                self._refuse_part(findings, source)
                self._take_over(findings[0], source)
        except ProblemsFound as refused:
            self._refuse(findings[0], refused)

    def _refuse(self, finding: DriftFinding, refused: ProblemsFound) -> None:
        for problem in refused.problems:
            message = f"{finding.address}: {problem.message}"
            self.problems.append(replace(problem, message=message, address=str(finding.address)))

    def _refuse_part(self, findings: list[DriftFinding], source: SourceLocation) -> None:
        """Check that all resources that the entry declares drifted alike. Raises ProblemsFound."""
        first, kind = findings[0], KINDS[findings[0].address.kind]
        alike = all((finding.state, finding.fields) == (first.state, first.fields) for finding in findings)
        if source.each or self._declared_at[source] > len(findings) or not alike:
            cause = "for_each writes out this entry" if source.each else f"this line declares several {kind.plural}"
            raise refused_edit(
                f"{cause}, and they would no longer be equal",
                source,
                "Write the difference as a separate entry, and run it again.",
            )

    def page(self, name: str) -> YamlEditor:
        """Return the editor of a manifest, by path in the project."""
        if name not in self.pages:
            self.pages[name] = YamlEditor(name, read_text(self.root / name).encode())
        return self.pages[name]

    def _node(self, finding: DriftFinding, source: SourceLocation) -> tuple[YamlEditor, Node]:
        if not source.file.endswith(MANIFEST_ENDINGS):
            hint = "Change the sheet by hand, or write the entry in a manifest."
            raise refused_edit("it is a row of a sheet", source, hint)
        page = self.page(source.file)
        node = page.nodes_by_place.get((source.line, source.column))
        if node is None or node.kind == "alias":
            raise refused_edit("it is not written out here", source)
        page.refuse_shared(node)
        return page, node

    def _drop_absent(self, finding: DriftFinding, source: SourceLocation) -> None:
        """Remove the entry of a live resource from `absent`."""
        page, node = self._node(finding, source)
        items = KINDS[finding.address.kind].entry_items
        _remove_declaration(page, items, node if items is None else find_absent_item(page, items, node, finding))

    def _take_over(self, finding: DriftFinding, source: SourceLocation) -> None:
        if finding.state is DriftState.RENAMED and finding.live is None:
            # The user must choose one of the candidates.
            names = " and ".join(str(candidate.address) for candidate in finding.candidates)
            lines = " or ".join(candidate.line for candidate in finding.candidates)
            hint = f"Write {lines} beside its name, or the new name by hand."
            raise refused_edit(f"it may be any of {names}", source, hint)
        page, node = self._node(finding, source)
        kind = KINDS[finding.address.kind]
        items = kind.entry_items
        if finding.state not in (DriftState.CHANGED, DriftState.RENAMED):
            _remove_declaration(page, items, node)
            return
        for change in finding.fields:
            if items is not None:
                set_item_key(page, kind, items, node, change.path, self._live(kind, change))
            elif node.kind == "mapping":
                self._field(page, finding, node, change)
            else:
                raise refused_edit("only its name is written here", source)

    def _field(self, page: YamlEditor, finding: DriftFinding, entry: Node, change: FieldDrift) -> None:
        kind = KINDS[finding.address.kind]
        head, _, rest = change.path.partition(".")
        if head == kind.name_key or (head == kind.parts_key and rest):
            self._renames.append((finding, change, entry))
        elif head == "conditions":
            change_conditions(page, entry, change.missing, change.extra)
        elif (same := comparison_key_for(property_schema(declared_section(kind).shape.schema, head))) is not None:
            change_list(page, entry, head, same, change.missing, change.extra)
        elif rest:
            self._under(page, kind, require_literal(page, entry.get(head), entry), rest, change)
        else:
            set_key(page, entry, head, self._live(kind, change))

    def _under(self, page: YamlEditor, kind: Kind, node: Node, key: str, change: FieldDrift) -> None:
        """Edit one key of a mapping in the entry, such as metadata or answers. Raises ProblemsFound."""
        if node.kind != "mapping":
            raise refused_edit("this is not a mapping", page.location_of(node))
        key = next((own.text for own, _ in node.parts if normalize_name(own.text) == key), key)
        if change.missing or change.extra:
            change_items(page, require_literal(page, node.get(key), node), change.missing, change.extra, choice_key)
        else:
            set_key(page, node, key, self._live(kind, change))

    def _live(self, kind: Kind, change: FieldDrift) -> Json:
        """Return the live value in manifest form, with `$(` escaped."""
        if change.path in kind.time_keys and isinstance(change.live, str):
            try:
                moment = parse_response_time(change.live)
            except ValueError:
                return escape_variables(change.live)
            return format_shortest_time(moment, self.timezone, end_of_day=kind.time_keys[change.path])
        return escape_variables(change.live)

    def _rename(self, finding: DriftFinding, change: FieldDrift, entry: Node) -> None:
        """Rename a resource or a choice in its entry and in every reference to it. Raises ProblemsFound."""
        page = self.page(cast(SourceLocation, finding.source).file)
        old, new = str(change.declared), str(change.live)
        everywhere = [self.page(name) for name in self.manifests.files if name.endswith(MANIFEST_ENDINGS)]
        key = change.path.partition(".")[0]
        if key == KINDS[finding.address.kind].name_key:
            replace_value(page, require_literal(page, entry.get(change.path), entry), escape_variables(new))
            _forget(page, entry, new)
            self.renamed[Address.of(finding.address.kind, new)] = finding.address
            rename_references(everywhere, finding.address.kind, old, new)
            return
        node = entry.get(key)
        parts = node.items if node is not None and node.kind == "mapping" else [node]
        items = [item for part in parts if part is not None and part.kind == "list" for item in part.items]
        item = next((one for one in items if choice_key(unescape_variables(one.value())) == normalize_name(old)), None)
        item = require_literal(page, item, entry)
        named = require_literal(page, item.get("name"), item) if item.kind == "mapping" else item
        replace_value(page, named, escape_variables(new))
        _forget(page, item, new)
        rename_part_references(everywhere, finding.address, normalize_name(old), new)


def _remove(page: YamlEditor, node: Node) -> None:
    """Remove an entry from its section, with the comment about it. Raises ProblemsFound."""
    if node.parent is None or node.parent.kind != "list":
        raise refused_edit("this is not an entry of a section", page.location_of(node))
    page.refuse_shared(node)
    node.parent.removed.add(node.parent.items.index(node))
    node.parent.commented = True


def _forget(page: YamlEditor, entry: Node, name: str) -> None:
    """Remove a name from `previously`, since it is the current name again."""
    node = entry.get("previously")
    if node is None or node.kind != "list":
        return
    removed = [
        at for at, item in enumerate(node.items) if choice_key(unescape_variables(item.value())) == normalize_name(name)
    ]
    if removed and len(removed) == len(node.items):
        remove_key(page, entry, "previously")
    elif removed:
        page.refuse_shared(node)
        node.removed.update(removed)


def set_item_key(editor: YamlEditor, kind: Kind, items: EntryItems, item: Node, key: str, live: Json) -> None:
    """Set the live value of one key: on its item, or on the whole entry. Raises ProblemsFound.

    A value that several items share is kept, and overridden on the item that differs.
    """
    block = _block(editor, items, item)
    siblings = item.parent
    default = block.get(key) or (block.get(WINDOW) if key in kind.time_keys else None)
    if key in kind.time_keys:
        _refuse_window(editor, item, key)
    alone = siblings is not None and siblings.kind == "list" and len(siblings.items) == 1
    is_everybody = unescape_variables(item.text) == EVERYBODY
    if block.get(key) is not None and alone and item.get(key) is None:
        _set(editor, block, key, live, default=None)
    elif item.kind == "mapping":
        _set(editor, item, key, live, default=default)
    elif is_everybody:
        editor.refuse_shared(item)
        long = item.replacement if isinstance(item.replacement, dict) else {EVERYBODY: True}
        item.replacement = {**long, key: live}
    else:
        raise _elsewhere(editor, "this", items, item)


def _refuse_window(editor: YamlEditor, item: Node, key: str) -> None:
    """Refuse to set a time beside the window that an item names. Raises ProblemsFound."""
    window = item.get(WINDOW)
    if window is not None:
        raise refused_edit(
            f"{key} comes from a window",
            editor.location_of(window),
            "Change the window, or write visible_from and visible_until here in its place.",
        )


def _set(page: YamlEditor, owner: Node, key: str, live: Json, default: Node | None) -> None:
    """Set a value; None removes the key, unless the entry sets a value for all items that must be overridden."""
    if live is None and default is None:
        remove_key(page, owner, key)
    else:
        set_key(page, owner, key, live)


def _remove_declaration(editor: YamlEditor, items: EntryItems | None, item: Node) -> None:
    """Remove an entry; for a kind with items an item, and the entry with its last one. Raises ProblemsFound."""
    if items is None:
        _remove(editor, item)
        return
    block = _block(editor, items, item)
    if item.parent is None or any(one is None or one.kind != "list" for one in (item.parent, block.parent)):
        raise _elsewhere(editor, "this", items, item)
    _remove(editor, item)
    if not item.parent.kept():
        _remove(editor, block)


def find_absent_item(editor: YamlEditor, items: EntryItems, entry: Node, finding: DriftFinding) -> Node:
    """Return the item that a finding is about in an entry under `absent`. Raises ProblemsFound."""
    subjects = require_literal(editor, entry.get(items.subject), entry)
    if subjects.kind == "list" and len(subjects.items) > 1:
        raise refused_edit(
            f"this entry declares several {items.subject}s",
            editor.location_of(entry),
            "Write the difference as a separate entry, and run it again.",
        )
    body = {items.subject: unescape_variables(subjects.value())}
    for item in require_literal(editor, entry.get(items.key), entry).items:
        if finding.address in item_addresses(body, unescape_variables(item.value())):
            return item
    raise _elsewhere(editor, "its", items, entry)


def _block(page: YamlEditor, items: EntryItems, item: Node) -> Node:
    """Return the entry that contains an item. Raises ProblemsFound."""
    block = item.parent.parent if item.parent is not None else None
    if (
        block is None
        or block.kind != "mapping"
        or (item.replacement is not UNCHANGED and not isinstance(item.replacement, dict))
    ):
        raise _elsewhere(page, "this", items, item)
    return block


def _elsewhere(page: YamlEditor, which: str, items: EntryItems, node: Node) -> ProblemsFound:
    return refused_edit(f"{which} {items.noun} is not written out here", page.location_of(node))


def rename_references(editors: Sequence[YamlEditor], kind: str, old: str, new: str) -> None:
    """Rename a resource in every reference to it."""
    trails = [trail for other_kind in KINDS.values() for trail in other_kind.references.get(kind, ())]
    for page, node in _reached(editors, trails):
        _rename_node(page, node, old, new, KINDS[kind].normalize_name)


def rename_part_references(editors: Sequence[YamlEditor], address: Address, old: str, new: str) -> None:
    """Rename a part of a resource, such as a choice of a field, in every reference to it."""
    for kind in KINDS.values():
        for reference in kind.part_references.get(address.kind, ()):
            for page, node in _reached(editors, [reference.at]):
                if reference.owner is not None and not _names(node, reference.owner, address.name):
                    continue
                above = () if reference.owner is not None else (address.name,)
                for item in (item for part in reference.parts for item in _below(node, (*above, *part))):
                    _rename_node(page, item, old, new, normalize_name)


def _names(node: Node, key: str, name: str) -> bool:
    """Whether the value of a key of the node is a name."""
    value = node.get(key)
    return value is not None and choice_key(unescape_variables(value.value())) == name


def _rename_node(page: YamlEditor, node: Node, old: str, new: str, same: Callable[[str], str]) -> None:
    if node.kind == "scalar" and same(str(unescape_variables(node.text))) == same(old):
        replace_value(page, node, escape_variables(new))


def _reached(pages: Sequence[YamlEditor], trails: Sequence[Trail]) -> Iterator[tuple[YamlEditor, Node]]:
    roots = ((page, root) for page in pages for root in page.roots)
    yield from ((page, node) for page, root in roots for trail in trails for node in _below(root, trail))


def _below(node: Node, trail: Trail) -> Iterator[Node]:
    """Yield every node that a path matches; an alias is not followed, since its target is matched itself."""
    if not trail:
        yield node
        return
    step, rest = trail[0], trail[1:]
    if step == KEYS and node.kind == "mapping":
        yield from (key for key, _ in node.parts)
    for part in node.parts:
        if step == ANY or (len(part) > 1 and step == normalize_name(part[0].text)):
            yield from _below(part[-1], rest)
