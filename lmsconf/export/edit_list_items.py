"""Edits of entries that declare several resources, one for each item of a list, as content and its audiences."""

from __future__ import annotations

from lmsconf.manifest.edit.lists import literal, remove_key, set_key
from lmsconf.manifest.edit.text_buffer import plain_text
from lmsconf.manifest.edit.tree_builder import UNCHANGED, Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import Refused, YamlEditor
from lmsconf.model.drift import DriftFinding
from lmsconf.model.values import Json
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.manifest_entries import EntryItems


def set_item_key(editor: YamlEditor, kind: AnyKind, items: EntryItems, item: Node, key: str, live: Json) -> None:
    """Set the live value of one key: on its item, or on the whole entry. Raises Refused.

    A value that several items share is kept, and overridden on the item that differs.
    """
    block = _block(editor, items, item)
    siblings = item.parent
    alone = isinstance(siblings, Sequence) and len(siblings.items) == 1
    own = isinstance(item, Mapping) and item.get(key) is not None
    long = kind.expand_item(plain_text(item.text)) if isinstance(item, Scalar) else None
    if block.get(key) is not None and alone and not own:
        _set(editor, block, key, live, default=None)
    elif isinstance(item, Mapping):
        _set(editor, item, key, live, default=block.get(key))
    elif long is not None:
        editor.check(item)
        item.becomes = {**(item.becomes if isinstance(item.becomes, dict) else long), key: live}
    else:
        raise _elsewhere(editor, "this", items, item)


def _set(page: YamlEditor, owner: Mapping, key: str, live: Json, default: Node | None) -> None:
    """Set a value; None removes the key, unless the entry sets a value for all items that must be overridden."""
    if live is None and default is None:
        remove_key(page, owner, key)
    else:
        set_key(page, owner, key, live)


def remove_item(editor: YamlEditor, items: EntryItems, item: Node) -> None:
    """Remove an item; if it is the last, remove the entry. Raises Refused."""
    siblings, block = item.parent, _block(editor, items, item)
    if not isinstance(siblings, Sequence) or not isinstance(block.parent, Sequence):
        raise _elsewhere(editor, "this", items, item)
    editor.check(item)
    siblings.removed.add(siblings.items.index(item))
    siblings.commented = True
    if len(siblings.removed) == len(siblings.items):
        editor.check(block)
        block.parent.removed.add(block.parent.items.index(block))
        block.parent.commented = True


def find_absent_item(editor: YamlEditor, kind: AnyKind, items: EntryItems, entry: Node, finding: DriftFinding) -> Node:
    """Return the item that a finding is about in an entry under `absent`. Raises Refused."""
    subjects = literal(editor, _get(entry, items.subject), entry)
    if isinstance(subjects, Sequence) and len(subjects.items) > 1:
        hint = "Write what differs as an entry of its own, and run it again."
        raise Refused(f"this entry speaks of several {items.subject}s", editor.where(entry), hint)
    body = {items.subject: plain_text(subjects.value())}
    for item in literal(editor, _get(entry, items.key), entry).parts():
        if finding.address in kind.item_addresses(body, plain_text(item.value())):
            return item
    raise _elsewhere(editor, "its", items, entry)


def _get(entry: Node, key: str) -> Node | None:
    return entry.get(key) if isinstance(entry, Mapping) else None


def _block(page: YamlEditor, items: EntryItems, item: Node) -> Mapping:
    """Return the entry that contains an item. Raises Refused."""
    block = item.parent.parent if item.parent is not None else None
    if not isinstance(block, Mapping) or (item.becomes is not UNCHANGED and not isinstance(item.becomes, dict)):
        raise _elsewhere(page, "this", items, item)
    return block


def _elsewhere(page: YamlEditor, which: str, items: EntryItems, node: Node) -> Refused:
    return Refused(f"{which} {items.noun} is not written out here", page.where(node))
