"""Edits of lists of people, choices and conditions, so that they match the live lists."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence as Some
from typing import Final, cast

from lmsconf.manifest.edit.text_buffer import escape_variables, unescape_variables
from lmsconf.manifest.edit.tree_builder import Alias, Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import EditRefused, YamlEditor
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email, normalize_name

ComparisonKey = Callable[[Json], Hashable]
"""Comparison key of an item: items with equal keys are the same; None if it cannot be determined."""

ELSEWHERE: Final = "Change it there by hand, or write the whole list here."
MAY_NOT_BE_EMPTY: Final = ("choices", "conditions")
"""Keys that a manifest leaves out rather than giving an empty list."""


def person_key(item: Json) -> Hashable:
    """Compare people by e-mail, ignoring case."""
    return normalize_email(item) if isinstance(item, str) else None


def choice_key(item: Json) -> Hashable:
    """Compare choices by name, ignoring other keys."""
    name = item.get("name") if isinstance(item, dict) else item
    return normalize_name(name) if isinstance(name, str) else None


def condition_key(item: Json) -> Hashable:
    """Compare conditions by field and choices, ignoring the system condition; None if choices are not written out."""
    if not isinstance(item, dict) or not item.keys() <= {"field", "choices", "system_condition"}:
        return None
    choices = item.get("choices", [])
    return normalize_name(str(item.get("field"))), frozenset(
        map(choice_key, choices if isinstance(choices, list) else [])
    )


def comparison_key_for(schema: MappingOf[str, Json]) -> ComparisonKey | None:
    """Return how the items of a list are compared, given the schema of its key; None if the key holds no list."""
    forms = [form for form in _items(schema.get("oneOf")) if isinstance(form, dict)]
    is_list = any(form.get("type") == "array" for form in (schema, *forms))
    return (person_key if schema.get("x-people") else choice_key) if is_list else None


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def change_list(
    editor: YamlEditor, entry: Mapping, key: str, comparison_key: ComparisonKey, missing: Some[Json], extra: Some[Json]
) -> None:
    """Make the list under a key match the live one. Raises EditRefused.

    missing: declared items that the live list lacks, which are removed. extra: live items that are not declared, which
    are added. Of a list with `include` and `exclude`, missing items are removed from `include`, extra ones from
    `exclude`; the key is removed if nothing remains in either.
    """
    node = require_literal(editor, entry.get(key), entry)
    if isinstance(node, Mapping) and node.get("include") is None and node.get("exclude") is None:
        raise EditRefused(f"{key} are defined elsewhere", editor.location_of(node), ELSEWHERE)
    if isinstance(node, Mapping):
        _take(editor, node.get("include"), node, missing, comparison_key)
        # A live item under `exclude` is no longer excluded.
        _take(editor, node.get("exclude"), node, extra, comparison_key)
        if not any(_is_left(node.get(part)) for part in ("include", "exclude")):
            remove_key(editor, entry, key)
        return
    change_items(editor, node, missing, extra, comparison_key)
    if isinstance(node, Sequence) and key in MAY_NOT_BE_EMPTY:
        remove_emptied_list(editor, entry, key, node)


def _is_left(node: Node | None) -> bool:
    """Whether a list has items that are not removed."""
    return node is not None and not (isinstance(node, Sequence) and len(node.removed) == len(node.items))


def change_items(
    editor: YamlEditor, node: Node, missing: Some[Json], extra: Some[Json], comparison_key: ComparisonKey
) -> None:
    """Remove and add items of a list that is complete, without `include` and `exclude`. Raises EditRefused."""
    _take(editor, node, node, missing, comparison_key)
    if extra and not isinstance(node, Sequence):
        raise EditRefused("this list is defined elsewhere", editor.location_of(node), ELSEWHERE)
    if extra and isinstance(node, Sequence):
        editor.refuse_shared(node)
        node.added.extend(escape_variables(item) for item in extra)


def remove_emptied_list(editor: YamlEditor, entry: Mapping, key: str, node: Sequence) -> None:
    """Remove the key of an emptied list that must not be empty: it is then not managed."""
    if len(node.removed) == len(node.items) and not node.added:
        remove_key(editor, entry, key)


def _take(editor: YamlEditor, node: Node | None, above: Node, items: Iterable[Json], same: ComparisonKey) -> None:
    wanted = {same(item): item for item in items}
    if not wanted:
        return
    matched = set()
    listed = require_literal(editor, node, above)
    if not isinstance(listed, Sequence):
        raise EditRefused("this list is defined elsewhere", editor.location_of(listed), ELSEWHERE)
    editor.refuse_shared(listed)
    for at, item in enumerate(listed.items):
        key = None if at in listed.removed or isinstance(item, Alias) else same(unescape_variables(item.value()))
        if key in wanted:
            editor.refuse_shared(item)
            listed.removed.add(at)
            matched.add(key)
    for lost in (item for key, item in wanted.items() if key not in matched):
        message = f"{lost if isinstance(lost, str) else 'an item'} is not in this list itself"
        raise EditRefused(
            message, editor.location_of(listed), f"It comes from an alias, a variable, a set or a file. {ELSEWHERE}"
        )


def require_literal(editor: YamlEditor, node: Node | None, parent: Node) -> Node:
    """Return the node if its value is written there literally. Raises EditRefused for None, an alias or a variable."""
    if node is None:
        raise EditRefused("what differs is not written out here", editor.location_of(parent), ELSEWHERE)
    if isinstance(node, Alias):
        hint = "Replace the alias by its value, and run it again."
        raise EditRefused("this comes from an alias", editor.location_of(node), hint)
    if isinstance(node, Scalar) and "$(" in node.text.replace("$$(", ""):
        hint = "Change the variable, or replace it by its value, and run it again."
        raise EditRefused(f"this comes from a variable: {node.text}", editor.location_of(node), hint)
    return node


def set_key(editor: YamlEditor, entry: Mapping, key: str, raw: Json) -> None:
    """Set the value under a key, adding the key if needed. Raises EditRefused."""
    at = entry.position(key)
    if at is None:
        editor.refuse_shared(entry)
        if not entry.pairs:
            raise EditRefused("this mapping is empty", editor.location_of(entry))
        entry.added[key] = raw
        return
    node = require_literal(editor, entry.pairs[at].value, entry)
    editor.refuse_shared(node)
    if node.value() != raw:
        node.replacement = raw


def remove_key(editor: YamlEditor, entry: Mapping, key: str) -> None:
    """Remove a key and its value. Raises EditRefused."""
    at = entry.position(key)
    if at is not None:
        editor.refuse_shared(entry.pairs[at].value)
        entry.removed.add(at)


Condition = dict[str, Json]


def change_conditions(editor: YamlEditor, entry: Mapping, missing: Some[Json], extra: Some[Json]) -> None:
    """Edit conditions on a field that has both a declared and a live one; add and remove others. Raises EditRefused."""
    node = require_literal(editor, entry.get("conditions"), entry)
    if not isinstance(node, Sequence):
        raise EditRefused("the conditions are defined elsewhere", editor.location_of(node), ELSEWHERE)
    editor.refuse_shared(node)
    added = cast("list[Condition]", list(extra))
    for declared in cast("list[Condition]", missing):
        at = _find(editor, node, declared)
        item = node.items[at]
        twin = next((one for one in added if one["field"] == declared["field"]), None)
        if twin is None or not isinstance(item, Mapping):
            node.removed.add(at)
        else:
            added.remove(twin)
            _turn(editor, item, twin)
    node.added.extend(escape_variables(item) for item in added)
    remove_emptied_list(editor, entry, "conditions", node)


def _find(editor: YamlEditor, node: Sequence, wanted: Condition) -> int:
    """Return the index of the item with that condition: with its system condition, else with none.

    Raises EditRefused.
    """
    fit = [
        at
        for at, item in enumerate(node.items)
        if at not in node.removed
        and isinstance(item, Mapping)
        and not item.shared
        and condition_key(unescape_variables(item.value())) == condition_key(wanted)
    ]
    for system in (wanted.get("system_condition"), None):
        for at in fit:
            value = node.items[at].value()
            if isinstance(value, dict) and value.get("system_condition") == escape_variables(system):
                return at
    message = f"the condition on {wanted['field']} is not in this list itself"
    raise EditRefused(message, editor.location_of(node), f"It comes from an alias, a variable or a set. {ELSEWHERE}")


def _turn(editor: YamlEditor, item: Mapping, wanted: Condition) -> None:
    """Change a condition to another one on the same field. Raises EditRefused."""
    old = cast(Condition, item.value())
    before, after = _choices(unescape_variables(old)), _choices(wanted)
    known = {choice_key(one) for one in before}
    kept = {choice_key(one) for one in after}
    if after and before:
        removed = [one for one in before if choice_key(one) not in kept]
        added = [one for one in after if choice_key(one) not in known]
        change_items(editor, require_literal(editor, item.get("choices"), item), removed, added, choice_key)
    elif after:
        item.added["choices"] = escape_variables(after)
    else:
        remove_key(editor, item, "choices")
    # A condition without a system condition keeps the live one, if it lists any choice.
    if "system_condition" in old or not after:
        if "system_condition" in wanted:
            set_key(editor, item, "system_condition", escape_variables(wanted["system_condition"]))
        else:
            remove_key(editor, item, "system_condition")


def _choices(raw: Json) -> list[Json]:
    return _items(raw.get("choices")) if isinstance(raw, dict) else []
