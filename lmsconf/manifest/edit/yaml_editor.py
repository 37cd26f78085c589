"""Edit one manifest: pending edits of its nodes, and of its lists of people, choices and conditions → its new text.

The new text is parsed again before it is returned.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, cast

from msgspec import UNSET

from lmsconf.errors import ProblemsFound, SourceLocation, problem_found
from lmsconf.manifest.edit.text_edits import (
    TextBuffer,
    TextEdit,
    UnsafeEdit,
    block_edits,
    bracket_edits,
    escape_variables,
    replacement_edit,
    unescape_variables,
)
from lmsconf.manifest.edit.tree_builder import Node, node_and_descendants, parse_documents
from lmsconf.manifest.schema_check import alternative_schemas
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email, normalize_name

BY_HAND = "Change this place by hand, and run it again."


def refused_edit(message: str, where: SourceLocation, hint: str = BY_HAND) -> ProblemsFound:
    """Return the error for an edit that cannot be made safely."""
    return problem_found("editing/refused", message, hint, where)


class YamlEditor:
    """A manifest with pending edits. name: its path in the project."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self._buffer = TextBuffer(data.decode("utf-8-sig"))

    @cached_property
    def roots(self) -> list[Node]:
        """The root node of each document."""
        return parse_documents(self.name, self._buffer.text)

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes, each before its parts."""
        return [node for root in self.roots for node in node_and_descendants(root)]

    @cached_property
    def nodes_by_place(self) -> dict[tuple[int, int], Node]:
        """Map line and column to the node that begins there: the mapping, where its first key begins there too."""
        return {(node.where.line, node.where.column): node for node in reversed(self.nodes)}

    def edited_bytes(self) -> bytes:
        """Return the edited file.

        Raises ProblemsFound for an edit that cannot be made in place, and if the new text does not parse to the
        expected value.
        """
        try:
            text = self._buffer.apply_edits(piece for root in self.roots for piece in self._pieces(root))
        except UnsafeEdit as unsafe:
            node, why = unsafe.args
            raise refused_edit(f"this cannot be edited in place: {why}", node.where) from unsafe
        again = read_yaml(self.name, text)
        wanted = [value for value in (root.value() for root in self.roots) if value is not None]
        if again.problems or [document.value for document in again.documents] != wanted:
            raise refused_edit(
                "this cannot be edited in place: its meaning would change",
                next(node for node in self.nodes if node.is_changed).where,
            )
        return text.encode("utf-8-sig" if self.data.startswith(codecs.BOM_UTF8) else "utf-8")

    def _pieces(self, node: Node) -> Iterator[TextEdit]:
        """Yield the text edits of a node and its descendants."""
        if node.replacement is not UNSET:
            yield replacement_edit(self._buffer, node, node.value())
            return
        if node.is_changed:
            yield from (bracket_edits if node.flow else block_edits)(self._buffer, node)
        for child in chain.from_iterable(node.kept()):
            yield from self._pieces(child)


def refuse_shared(node: Node, removed: Sequence[Node] = ()) -> None:
    """Check that neither the node nor one that it is in is shared through an alias. Raises ProblemsFound.

    removed: what is removed with it; an alias among them does not count.
    """
    if node.aliases > sum(one.target is node for one in removed):
        raise refused_edit(
            f"&{node.anchor} is repeated by an alias elsewhere",
            node.where,
            "Replace each alias by the value, or change it here by hand for all of them.",
        )
    if node.parent is not None:
        refuse_shared(node.parent)


def replace_value(node: Node, raw: Json) -> None:
    """Replace the value of a node. Raises ProblemsFound."""
    refuse_shared(node)
    if node.value() != raw:
        node.replacement = raw


ComparisonKey = Callable[[Json], Hashable]
"""Comparison key of an item: items with equal keys are the same; None if it cannot be determined."""

ELSEWHERE: Final = "Change it there by hand, or write the whole list here."


def person_key(item: Json) -> Hashable:
    """Compare people by e-mail, ignoring case."""
    return normalize_email(item) if isinstance(item, str) else None


def choice_key(item: Json) -> Hashable:
    """Compare choices by name, ignoring other keys."""
    name = item.get("name") if isinstance(item, dict) else item
    return normalize_name(name) if isinstance(name, str) else None


def condition_key(item: Json) -> Hashable:
    """Compare conditions by field and choices, ignoring the system condition; None if choices are not written out."""
    if not isinstance(item, dict) or "except" in item:
        return None
    choices = item.get("choices", [])
    return normalize_name(str(item.get("field"))), frozenset(
        map(choice_key, choices if isinstance(choices, list) else [])
    )


def comparison_key_for(schema: Mapping[str, Json]) -> ComparisonKey | None:
    """Return how the items of a list are compared, given the schema of its key; None if the key holds no list."""
    is_list = any(form.get("type") == "array" for form in alternative_schemas(schema))
    return (person_key if schema.get("x-people") else choice_key) if is_list else None


def change_list(
    entry: Node,
    key: str,
    comparison_key: ComparisonKey,
    missing: Sequence[Json],
    extra: Sequence[Json],
) -> None:
    """Make the list under a key match the live one. Raises ProblemsFound.

    missing: declared items that the live list lacks, which are removed. extra: live items that are not declared, which
    are added. Of a list with `include` and `exclude`, missing items are removed from `include`, extra ones from
    `exclude`; the key is removed if nothing remains in either.
    """
    node = require_literal(entry.get(key), entry)
    if node.kind == "mapping":
        if node.get("include") is None and node.get("exclude") is None:
            raise refused_edit(f"{key} are defined elsewhere", node.where, ELSEWHERE)
        _take(node.get("include"), node, missing, comparison_key)
        # A live item under `exclude` is no longer excluded.
        _take(node.get("exclude"), node, extra, comparison_key)
        if all(part.kind == "list" and not part.kept() for part in node.items):
            remove_key(entry, key)
    else:
        change_items(node, missing, extra, comparison_key)
    if key in ("choices", "previously"):  # a manifest leaves them out rather than giving an empty list
        remove_emptied_list(entry, key, node)


def change_items(node: Node, missing: Sequence[Json], extra: Sequence[Json], comparison_key: ComparisonKey) -> None:
    """Remove and add items of a list that is complete, without `include` and `exclude`. Raises ProblemsFound."""
    _take(node, node, missing, comparison_key)
    if extra:
        _require_list(node)
        node.added += tuple(escape_variables(item) for item in extra)


def _require_list(node: Node, what: str = "this list is") -> None:
    """Return if a node is a list that no alias repeats. Raises ProblemsFound."""
    if node.kind != "list":
        raise refused_edit(f"{what} defined elsewhere", node.where, ELSEWHERE)
    refuse_shared(node)


def remove_emptied_list(entry: Node, key: str, node: Node) -> None:
    """Remove the key of an emptied list that must not be empty: it is then not managed."""
    if node.kind == "list" and not node.kept() and not node.added:
        remove_key(entry, key)


def _take(node: Node | None, above: Node, items: Iterable[Json], same: ComparisonKey) -> None:
    wanted = {same(item): item for item in items}
    if not wanted:
        return
    listed = require_literal(node, above)
    _require_list(listed)
    # An alias of a text is an item like others.
    own = {
        at: same(unescape_variables(item.value()))
        for at, item in enumerate(listed.items)
        if at not in listed.removed and (item.target is None or item.target.kind == "scalar")
    }
    matched = {at: listed.items[at] for at, key in own.items() if key in wanted}
    for item in matched.values():
        refuse_shared(item, [*matched.values()])
    listed.removed |= matched.keys()
    found = {own[at] for at in matched}
    for lost in (item for key, item in wanted.items() if key not in found):
        raise refused_edit(
            f"{lost if isinstance(lost, str) else 'an item'} is not in this list itself",
            listed.where,
            f"It comes from an alias, a variable, a set or a file. {ELSEWHERE}",
        )


def require_literal(node: Node | None, parent: Node) -> Node:
    """Return the node if its value is written there; raise ProblemsFound for None, an alias or a variable."""
    if node is None:
        raise refused_edit("what differs is not written out here", parent.where, ELSEWHERE)
    if node.kind == "alias":
        raise refused_edit("this comes from an alias", node.where, "Replace the alias by its value, and run it again.")
    if "$(" in node.text.replace("$$(", ""):
        raise refused_edit(
            f"this comes from a variable: {node.text}",
            node.where,
            "Change the variable, or replace it by its value, and run it again.",
        )
    return node


def set_key(entry: Node, key: str, raw: Json) -> None:
    """Set the value under a key, adding the key if needed. Raises ProblemsFound."""
    node = entry.get(key)
    if node is not None:
        replace_value(require_literal(node, entry), raw)
    else:
        refuse_shared(entry)
        entry.added_keys[key] = raw


def set_or_remove_key(entry: Node, key: str, raw: Json, default: Node | None = None) -> None:
    """Set the value under a key; None removes it, unless it overrides a default. Raises ProblemsFound."""
    if raw is None and default is None:
        remove_key(entry, key)
    else:
        set_key(entry, key, raw)


def remove_key(entry: Node, key: str) -> None:
    """Remove a key and its value. Raises ProblemsFound."""
    node = entry.get(key)
    if node is not None:
        refuse_shared(node)
        entry.removed |= {entry.items.index(node)}


Condition = dict[str, Json]


def change_conditions(entry: Node, missing: Sequence[Json], extra: Sequence[Json]) -> None:
    """Edit conditions on a field that has a declared and a live one; add and remove others. Raises ProblemsFound."""
    node = require_literal(entry.get("conditions"), entry)
    _require_list(node, "the conditions are")
    added = cast("list[Condition]", list(extra))
    for declared in cast("list[Condition]", missing):
        at = _find(node, declared)
        same = next((one for one in added if one["field"] == declared["field"]), None)
        if same is None:
            node.removed |= {at}
        else:
            added.remove(same)
            _turn(node.items[at], same)
    node.added += tuple(escape_variables(item) for item in added)
    remove_emptied_list(entry, "conditions", node)


def _find(node: Node, wanted: Condition) -> int:
    """Return the index of the item with that condition: with its system condition, else with none.

    Raises ProblemsFound.
    """
    fit = [
        at
        for at, item in enumerate(node.items)
        if at not in node.removed
        and item.kind == "mapping"
        and not item.aliases
        and condition_key(unescape_variables(item.value())) == condition_key(wanted)
    ]
    systems = {at: cast(Condition, node.items[at].value()).get("system_condition") for at in fit}
    for system in (escape_variables(wanted.get("system_condition")), None):
        if system in systems.values():
            return next(at for at in fit if systems[at] == system)
    raise refused_edit(
        f"the condition on {wanted['field']} is not in this list itself",
        node.where,
        f"It comes from an alias, a variable or a set. {ELSEWHERE}",
    )


def _turn(item: Node, wanted: Condition) -> None:
    """Change a condition to another one on the same field. Raises ProblemsFound."""
    old = cast(Condition, item.value())
    before = cast("list[Json]", unescape_variables(old.get("choices", [])))
    after = cast("list[Json]", wanted.get("choices", []))
    if after and before:
        change_list(item, "choices", choice_key, _without(before, after), _without(after, before))
    elif after:
        set_key(item, "choices", escape_variables(after))
    else:
        remove_key(item, "choices")
    # A condition without a system condition keeps the live one, if it lists any choice.
    if "system_condition" in old or not after:
        set_or_remove_key(item, "system_condition", escape_variables(wanted.get("system_condition")))


def _without(choices: Sequence[Json], others: Sequence[Json]) -> list[Json]:
    known = set(map(choice_key, others))
    return [one for one in choices if choice_key(one) not in known]
