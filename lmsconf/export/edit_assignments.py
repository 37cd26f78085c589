"""Edits of content assignments: one entry may set values for several audiences at once."""

from __future__ import annotations

from typing import Final

from lmsconf.kinds.content_target.values import AUDIENCES, target_address
from lmsconf.kinds.shared.names import EVERYONE, USER
from lmsconf.manifest.edit.lists import literal, remove_key, set_key
from lmsconf.manifest.edit.text_buffer import plain_text
from lmsconf.manifest.edit.tree_builder import UNCHANGED, Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import Refused, YamlEditor
from lmsconf.model.address import Address
from lmsconf.model.drift import DriftFinding
from lmsconf.model.names import email, normal
from lmsconf.model.values import Json

_EVERYONE: Final = "everyone"


def set_on_assignment(page: YamlEditor, item: Node, key: str, live: Json) -> None:
    """Set the live value of one key of an assignment: on its audience, or on the whole entry. Raises Refused.

    A value that several audiences share is kept, and overridden on the audience that differs.
    """
    block = _block(page, item)
    audiences = item.parent
    alone = isinstance(audiences, Sequence) and len(audiences.items) == 1
    own = isinstance(item, Mapping) and item.get(key) is not None
    if block.get(key) is not None and alone and not own:
        _set(page, block, key, live, default=None)
    elif isinstance(item, Mapping):
        _set(page, item, key, live, default=block.get(key))
    elif isinstance(item, Scalar) and plain_text(item.text) == _EVERYONE:
        page.check(item)
        said = item.becomes if isinstance(item.becomes, dict) else {_EVERYONE: True}
        item.becomes = {**said, key: live}
    else:
        raise Refused("this audience is not written out here", page.where(item))


def _set(page: YamlEditor, owner: Mapping, key: str, live: Json, default: Node | None) -> None:
    """Set a value; None removes the key, unless the entry sets a value for all audiences that must be overridden."""
    if live is None and default is None:
        remove_key(page, owner, key)
    else:
        set_key(page, owner, key, live)


def remove_audience(page: YamlEditor, item: Node) -> None:
    """Remove an audience; if it is the last, remove the entry. Raises Refused."""
    audiences, block = item.parent, _block(page, item)
    if not isinstance(audiences, Sequence) or not isinstance(block.parent, Sequence):
        raise Refused("this audience is not written out here", page.where(item))
    page.check(item)
    audiences.gone.add(audiences.items.index(item))
    audiences.commented = True
    if len(audiences.gone) == len(audiences.items):
        page.check(block)
        block.parent.gone.add(block.parent.items.index(block))
        block.parent.commented = True


def audience_item(page: YamlEditor, entry: Node, finding: DriftFinding) -> Node:
    """Return the audience that a finding is about in an entry under `absent`. Raises Refused."""
    contents = literal(page, entry.get("content") if isinstance(entry, Mapping) else None, entry)
    if isinstance(contents, Sequence) and len(contents.items) > 1:
        hint = "Write what differs as an entry of its own, and run it again."
        raise Refused("this entry speaks of several contents", page.where(entry), hint)
    name = _name(contents)
    audiences = literal(page, entry.get("assign_to") if isinstance(entry, Mapping) else None, entry)
    for item in audiences.parts():
        if target_address(name, _audience(plain_text(item.value()))) == finding.address:
            return item
    raise Refused("its audience is not written out here", page.where(entry))


def _name(contents: Node) -> str:
    said = plain_text(contents.value())
    first = said[0] if isinstance(said, list) and said else said
    return normal(str(first["name"] if isinstance(first, dict) else first))


def _audience(said: Json) -> Address:
    for key, kind in AUDIENCES.items():
        if isinstance(said, dict) and key in said:
            name = str(said[key])
            return Address.of(kind, email(name) if kind == USER else normal(name))
    return EVERYONE


def _block(page: YamlEditor, item: Node) -> Mapping:
    """Return the entry that contains an audience. Raises Refused."""
    block = item.parent.parent if item.parent is not None else None
    if not isinstance(block, Mapping) or (item.becomes is not UNCHANGED and not isinstance(item.becomes, dict)):
        raise Refused("this audience is not written out here", page.where(item))
    return block
