"""Edits of entries that declare several resources, one for each item of a list, as content and its audiences."""

from __future__ import annotations

from lmsconf.kinds.content_target.parse import item_addresses
from lmsconf.manifest.edit.lists import remove_key, require_literal, set_key
from lmsconf.manifest.edit.text_buffer import unescape_variables
from lmsconf.manifest.edit.tree_builder import UNCHANGED, Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import EditRefused, YamlEditor
from lmsconf.manifest.expand.windows import WINDOW
from lmsconf.model.address import EVERYBODY
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import DriftFinding
from lmsconf.planner.kind import Kind
from lmsconf.planner.manifest_entries import EntryItems


def set_item_key(editor: YamlEditor, kind: Kind, items: EntryItems, item: Node, key: str, live: Json) -> None:
    """Set the live value of one key: on its item, or on the whole entry. Raises EditRefused.

    A value that several items share is kept, and overridden on the item that differs.
    """
    block = _block(editor, items, item)
    siblings = item.parent
    default = block.get(key) or (block.get(WINDOW) if key in kind.time_keys else None)
    if key in kind.time_keys and isinstance(item, Mapping):
        _refuse_window(editor, item, key)
    alone = isinstance(siblings, Sequence) and len(siblings.items) == 1
    own = isinstance(item, Mapping) and item.get(key) is not None
    is_everybody = isinstance(item, Scalar) and unescape_variables(item.text) == EVERYBODY
    if block.get(key) is not None and alone and not own:
        _set(editor, block, key, live, default=None)
    elif isinstance(item, Mapping):
        _set(editor, item, key, live, default=default)
    elif is_everybody:
        editor.refuse_shared(item)
        long = item.replacement if isinstance(item.replacement, dict) else {EVERYBODY: True}
        item.replacement = {**long, key: live}
    else:
        raise _elsewhere(editor, "this", items, item)


def _refuse_window(editor: YamlEditor, item: Mapping, key: str) -> None:
    """Refuse to set a time beside the window that an item names. Raises EditRefused."""
    window = item.get(WINDOW)
    if window is not None:
        hint = "Change the window, or write visible_from and visible_until here in its place."
        raise EditRefused(f"{key} comes from a window", editor.location_of(window), hint)


def _set(page: YamlEditor, owner: Mapping, key: str, live: Json, default: Node | None) -> None:
    """Set a value; None removes the key, unless the entry sets a value for all items that must be overridden."""
    if live is None and default is None:
        remove_key(page, owner, key)
    else:
        set_key(page, owner, key, live)


def remove_item(editor: YamlEditor, items: EntryItems, item: Node) -> None:
    """Remove an item; if it is the last, remove the entry. Raises EditRefused."""
    siblings, block = item.parent, _block(editor, items, item)
    if not isinstance(siblings, Sequence) or not isinstance(block.parent, Sequence):
        raise _elsewhere(editor, "this", items, item)
    editor.refuse_shared(item)
    siblings.removed.add(siblings.items.index(item))
    siblings.commented = True
    if len(siblings.removed) == len(siblings.items):
        editor.refuse_shared(block)
        block.parent.removed.add(block.parent.items.index(block))
        block.parent.commented = True


def find_absent_item(editor: YamlEditor, items: EntryItems, entry: Node, finding: DriftFinding) -> Node:
    """Return the item that a finding is about in an entry under `absent`. Raises EditRefused."""
    subjects = require_literal(editor, _get(entry, items.subject), entry)
    if isinstance(subjects, Sequence) and len(subjects.items) > 1:
        hint = "Write the difference as a separate entry, and run it again."
        raise EditRefused(f"this entry declares several {items.subject}s", editor.location_of(entry), hint)
    body = {items.subject: unescape_variables(subjects.value())}
    for item in require_literal(editor, _get(entry, items.key), entry).children():
        if finding.address in item_addresses(body, unescape_variables(item.value())):
            return item
    raise _elsewhere(editor, "its", items, entry)


def _get(entry: Node, key: str) -> Node | None:
    return entry.get(key) if isinstance(entry, Mapping) else None


def _block(page: YamlEditor, items: EntryItems, item: Node) -> Mapping:
    """Return the entry that contains an item. Raises EditRefused."""
    block = item.parent.parent if item.parent is not None else None
    if not isinstance(block, Mapping) or (item.replacement is not UNCHANGED and not isinstance(item.replacement, dict)):
        raise _elsewhere(page, "this", items, item)
    return block


def _elsewhere(page: YamlEditor, which: str, items: EntryItems, node: Node) -> EditRefused:
    return EditRefused(f"{which} {items.noun} is not written out here", page.location_of(node))
