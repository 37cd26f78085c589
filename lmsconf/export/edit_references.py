"""Renaming of a resource in all references to it, which would otherwise refer to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from lmsconf.kinds.shared.names import CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.manifest.edit.lists import choice
from lmsconf.manifest.edit.text_buffer import plain_text, raw_text
from lmsconf.manifest.edit.tree_builder import Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import YamlEditor, become
from lmsconf.model.names import email, normal

Trail = tuple[str, ...]
ANY: Final = "*"
"""Path step: each item of a list, or each value of a mapping."""
KEYS: Final = "(keys)"
"""Path step: each key of a mapping."""

_CONDITIONS: Final[tuple[Trail, ...]] = (("smart_groups", ANY, "conditions", ANY), ("condition_sets", ANY, ANY))
_AUDIENCES: Final[tuple[Trail, ...]] = (
    ("content_targets", ANY, "assign_to", ANY),
    ("absent", "content_targets", ANY, "assign_to", ANY),
)
_PEOPLE: Final[tuple[Trail, ...]] = (
    ("groups", ANY, "members"),
    ("groups", ANY, "managers"),
    ("smart_groups", ANY, "managers"),
)
SPOTS: Final[dict[str, tuple[Trail, ...]]] = {
    CUSTOM_FIELD: (*((*trail, "field") for trail in _CONDITIONS), ("users", ANY, "answers", KEYS)),
    GROUP: tuple((*trail, "group") for trail in _AUDIENCES),
    SMART_GROUP: tuple((*trail, "smart_group") for trail in _AUDIENCES),
    USER: (
        *((*trail, *part, ANY) for trail in _PEOPLE for part in ((), ("include",), ("exclude",))),
        ("people_sets", ANY, ANY),
        *((*trail, "user") for trail in _AUDIENCES),
    ),
}
"""Kind → the paths of references to its resources, from the root of a document."""


def rename_everywhere(pages: Iterable[YamlEditor], kind: str, old: str, new: str) -> None:
    """Rename a resource in every reference to it."""
    same: Callable[[str], str] = email if kind == USER else normal
    for page, node in _reached(pages, SPOTS.get(kind, ())):
        _rename(page, node, old, new, same)


def rename_choice(pages: Iterable[YamlEditor], field: str, old: str, new: str) -> None:
    """Rename a choice in the conditions on its field, and in people's answers."""
    pages = list(pages)
    for page, node in _reached(pages, _CONDITIONS):
        said = node.get("field") if isinstance(node, Mapping) else None
        if isinstance(node, Mapping) and said is not None and choice(plain_text(said.value())) == field:
            for key in ("choices", "except"):
                for item in _below(node, (key, ANY)):
                    _rename(page, item, old, new, normal)
    for page, node in _reached(pages, (("users", ANY, "answers"),)):
        for trail in ((field,), (field, ANY)):
            for item in _below(node, trail):
                _rename(page, item, old, new, normal)


def _rename(page: YamlEditor, node: Node, old: str, new: str, same: Callable[[str], str]) -> None:
    if isinstance(node, Scalar) and same(str(plain_text(node.text))) == same(old):
        become(page, node, raw_text(new))


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
            if step in (ANY, normal(pair.key.text)):
                yield from _below(pair.value, rest)
