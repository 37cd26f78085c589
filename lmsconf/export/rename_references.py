"""Renaming of a resource in all references to it, which would otherwise refer to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingOf

from lmsconf.manifest.edit.lists import choice_key
from lmsconf.manifest.edit.text_buffer import escape_variables, unescape_variables
from lmsconf.manifest.edit.tree_builder import Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import YamlEditor, replace_value
from lmsconf.model.address import Address
from lmsconf.model.names import normalize_name
from lmsconf.planner.kind import Kind
from lmsconf.planner.manifest_entries import ANY, KEYS, Trail


def rename_references(
    editors: Iterable[YamlEditor], kinds: MappingOf[str, Kind], kind: str, old: str, new: str
) -> None:
    """Rename a resource in every reference to it."""
    trails = [trail for other_kind in kinds.values() for trail in other_kind.references.get(kind, ())]
    for page, node in _reached(editors, trails):
        _rename(page, node, old, new, kinds[kind].normalize_name)


def rename_part_references(
    editors: Iterable[YamlEditor], kinds: MappingOf[str, Kind], address: Address, old: str, new: str
) -> None:
    """Rename a part of a resource, such as a choice of a field, in every reference to it."""
    editors = list(editors)
    for kind in kinds.values():
        for reference in kind.part_references.get(address.kind, ()):
            for page, node in _reached(editors, [reference.at]):
                if reference.owner is not None and not _names(node, reference.owner, address.name):
                    continue
                above = () if reference.owner is not None else (address.name,)
                for item in (item for part in reference.parts for item in _below(node, (*above, *part))):
                    _rename(page, item, old, new, normalize_name)


def _names(node: Node, key: str, name: str) -> bool:
    """Whether the value of a key of the node is a name."""
    value = node.get(key) if isinstance(node, Mapping) else None
    return value is not None and choice_key(unescape_variables(value.value())) == name


def _rename(page: YamlEditor, node: Node, old: str, new: str, same: Callable[[str], str]) -> None:
    if isinstance(node, Scalar) and same(str(unescape_variables(node.text))) == same(old):
        replace_value(page, node, escape_variables(new))


def _reached(pages: Iterable[YamlEditor], trails: Iterable[Trail]) -> Iterator[tuple[YamlEditor, Node]]:
    trails = list(trails)
    for page in pages:
        for root in page.roots:
            for trail in trails:
                yield from ((page, node) for node in _below(root, trail))


def _below(node: Node, trail: Trail) -> Iterator[Node]:
    """Yield every node that a path matches; an alias is not followed, since its target is matched itself."""
    if not trail:
        yield node
        return
    step, rest = trail[0], trail[1:]
    if step == KEYS and isinstance(node, Mapping):
        yield from (pair.key for pair in node.pairs)
    elif step == ANY and isinstance(node, Sequence):
        for item in node.items:
            yield from _below(item, rest)
    elif isinstance(node, Mapping):
        for pair in node.pairs:
            if step in (ANY, normalize_name(pair.key.text)):
                yield from _below(pair.value, rest)
