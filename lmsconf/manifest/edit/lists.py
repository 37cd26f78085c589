"""Edits of lists of people, choices and conditions, so that they match the live lists."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence as Some
from typing import Final, cast

from lmsconf.manifest.edit.text_buffer import plain_text, raw_text
from lmsconf.manifest.edit.tree_builder import Alias, Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import Refused, YamlEditor
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.model.values import Json

Same = Callable[[Json], Hashable]
"""Comparison key of an item: items with equal keys are the same; None if it cannot be determined."""

ELSEWHERE: Final = "Change it there by hand, or write the list out here."
MAY_NOT_BE_EMPTY: Final = ("choices", "conditions")
"""Keys that a manifest leaves out rather than giving an empty list."""


def person(item: Json) -> Hashable:
    """Compare people by e-mail, ignoring case."""
    return normalize_email(item) if isinstance(item, str) else None


def choice(item: Json) -> Hashable:
    """Compare choices by name, ignoring other keys."""
    name = item.get("name") if isinstance(item, dict) else item
    return normalize_name(name) if isinstance(name, str) else None


def condition(item: Json) -> Hashable:
    """Compare conditions by field and choices, ignoring the system condition; None if choices are not written out."""
    if not isinstance(item, dict) or not item.keys() <= {"field", "choices", "system_condition"}:
        return None
    choices = item.get("choices", [])
    return normalize_name(str(item.get("field"))), frozenset(map(choice, choices if isinstance(choices, list) else []))


def comparison(schema: MappingOf[str, Json]) -> Same | None:
    """Return how the items of a list are compared, given the schema of its key; None if the key holds no list."""
    forms = [form for form in _items(schema.get("oneOf")) if isinstance(form, dict)]
    is_list = any(form.get("type") == "array" for form in (schema, *forms))
    return (person if schema.get("x-people") else choice) if is_list else None


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def change_list(page: YamlEditor, entry: Mapping, key: str, same: Same, missing: Some[Json], extra: Some[Json]) -> None:
    """Make the list under a key match the live one. Raises Refused.

    missing: declared items that the live list lacks, which are removed. extra: live items that are not declared, which
    are added. Of a list with `include` and `exclude`, missing items are removed from `include`, extra ones from
    `exclude`; the key is removed if nothing remains in either.
    """
    node = literal(page, entry.get(key), entry)
    if isinstance(node, Mapping) and node.get("include") is None and node.get("exclude") is None:
        raise Refused(f"{key} come from elsewhere", page.where(node), ELSEWHERE)
    if isinstance(node, Mapping):
        _take(page, node.get("include"), node, missing, same)
        # A live item under `exclude` is no longer excluded.
        _take(page, node.get("exclude"), node, extra, same)
        if not any(_is_left(node.get(part)) for part in ("include", "exclude")):
            remove_key(page, entry, key)
        return
    change_items(page, node, missing, extra, same)
    if isinstance(node, Sequence) and key in MAY_NOT_BE_EMPTY:
        leave_out_empty(page, entry, key, node)


def _is_left(node: Node | None) -> bool:
    """Whether a list has items that are not removed."""
    return node is not None and not (isinstance(node, Sequence) and len(node.removed) == len(node.items))


def change_items(page: YamlEditor, node: Node, missing: Some[Json], extra: Some[Json], same: Same) -> None:
    """Remove and add items of a list that is complete, without `include` and `exclude`. Raises Refused."""
    _take(page, node, node, missing, same)
    if extra and not isinstance(node, Sequence):
        raise Refused("this list comes from elsewhere", page.where(node), ELSEWHERE)
    if extra and isinstance(node, Sequence):
        page.check(node)
        node.more.extend(raw_text(item) for item in extra)


def leave_out_empty(page: YamlEditor, entry: Mapping, key: str, node: Sequence) -> None:
    """Remove the key of an emptied list that must not be empty: it is then not managed."""
    if len(node.removed) == len(node.items) and not node.more:
        remove_key(page, entry, key)


def _take(page: YamlEditor, node: Node | None, above: Node, items: Iterable[Json], same: Same) -> None:
    wanted = {same(item): item for item in items}
    if not wanted:
        return
    matched = set()
    listed = literal(page, node, above)
    if not isinstance(listed, Sequence):
        raise Refused("this list comes from elsewhere", page.where(listed), ELSEWHERE)
    page.check(listed)
    for at, item in enumerate(listed.items):
        key = None if at in listed.removed or isinstance(item, Alias) else same(plain_text(item.value()))
        if key in wanted:
            page.check(item)
            listed.removed.add(at)
            matched.add(key)
    for lost in (item for key, item in wanted.items() if key not in matched):
        message = f"{lost if isinstance(lost, str) else 'an item'} does not stand in this list itself"
        raise Refused(message, page.where(listed), f"An alias, a variable, a set or a file says it. {ELSEWHERE}")


def literal(page: YamlEditor, node: Node | None, above: Node) -> Node:
    """Return the node if its value is written there literally. Raises Refused for None, an alias or a variable."""
    if node is None:
        raise Refused("what differs is not written out here", page.where(above), ELSEWHERE)
    if isinstance(node, Alias):
        hint = "Write the value out in place of the alias, and run it again."
        raise Refused("an alias says this", page.where(node), hint)
    if isinstance(node, Scalar) and "$(" in node.text.replace("$$(", ""):
        hint = "Change the variable, or write the value out, and run it again."
        raise Refused(f"a variable says this: {node.text}", page.where(node), hint)
    return node


def set_key(page: YamlEditor, entry: Mapping, key: str, raw: Json) -> None:
    """Set the value under a key, adding the key if needed. Raises Refused."""
    at = entry.position(key)
    if at is None:
        page.check(entry)
        if not entry.pairs:
            raise Refused("this mapping is empty", page.where(entry))
        entry.more[key] = raw
        return
    node = literal(page, entry.pairs[at].value, entry)
    page.check(node)
    if node.value() != raw:
        node.becomes = raw


def remove_key(page: YamlEditor, entry: Mapping, key: str) -> None:
    """Remove a key and its value. Raises Refused."""
    at = entry.position(key)
    if at is not None:
        page.check(entry.pairs[at].value)
        entry.removed.add(at)


Condition = dict[str, Json]


def change_conditions(page: YamlEditor, entry: Mapping, missing: Some[Json], extra: Some[Json]) -> None:
    """Edit conditions on a field that has both a declared and a live one; add and remove others. Raises Refused."""
    node = literal(page, entry.get("conditions"), entry)
    if not isinstance(node, Sequence):
        raise Refused("the conditions come from elsewhere", page.where(node), ELSEWHERE)
    page.check(node)
    added = cast("list[Condition]", list(extra))
    for declared in cast("list[Condition]", missing):
        at = _find(page, node, declared)
        item = node.items[at]
        twin = next((one for one in added if one["field"] == declared["field"]), None)
        if twin is None or not isinstance(item, Mapping):
            node.removed.add(at)
        else:
            added.remove(twin)
            _turn(page, item, twin)
    node.more.extend(raw_text(item) for item in added)
    leave_out_empty(page, entry, "conditions", node)


def _find(page: YamlEditor, node: Sequence, wanted: Condition) -> int:
    """Return the index of the item with that condition: with its system condition, else with none. Raises Refused."""
    fit = [
        at
        for at, item in enumerate(node.items)
        if at not in node.removed
        and isinstance(item, Mapping)
        and not item.shared
        and condition(plain_text(item.value())) == condition(wanted)
    ]
    for system in (wanted.get("system_condition"), None):
        for at in fit:
            value = node.items[at].value()
            if isinstance(value, dict) and value.get("system_condition") == raw_text(system):
                return at
    message = f"the condition on {wanted['field']} does not stand in this list itself"
    raise Refused(message, page.where(node), f"An alias, a variable or a set says it. {ELSEWHERE}")


def _turn(page: YamlEditor, item: Mapping, wanted: Condition) -> None:
    """Change a condition to another one on the same field. Raises Refused."""
    old = cast(Condition, item.value())
    before, after = _choices(plain_text(old)), _choices(wanted)
    known = {choice(one) for one in before}
    kept = {choice(one) for one in after}
    if after and before:
        removed = [one for one in before if choice(one) not in kept]
        added = [one for one in after if choice(one) not in known]
        change_items(page, literal(page, item.get("choices"), item), removed, added, choice)
    elif after:
        item.more["choices"] = raw_text(after)
    else:
        remove_key(page, item, "choices")
    # A condition without a system condition keeps the live one, if it lists any choice.
    if "system_condition" in old or not after:
        if "system_condition" in wanted:
            set_key(page, item, "system_condition", raw_text(wanted["system_condition"]))
        else:
            remove_key(page, item, "system_condition")


def _choices(raw: Json) -> list[Json]:
    return _items(raw.get("choices")) if isinstance(raw, dict) else []
