"""Lists of people, choices and conditions: what the workspace has more goes in, what it lacks goes out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from collections.abc import Sequence as Some
from typing import Final, cast

from lmsconf.manifest.edit.text_buffer import plain_text, raw_text
from lmsconf.manifest.edit.tree_builder import Alias, Mapping, Node, Scalar, Sequence
from lmsconf.manifest.edit.yaml_editor import Refused, YamlEditor
from lmsconf.model.names import email, normal
from lmsconf.model.values import Json

Same = Callable[[Json], Hashable]
"""Two items are one where this says the same of both; None of what cannot be told."""

ELSEWHERE: Final = "Change it there by hand, or write the list out here."
MAY_NOT_BE_EMPTY: Final = ("choices", "conditions")
"""Lists that a manifest leaves out rather than empty."""


def person(item: Json) -> Hashable:
    """Who is meant: an e-mail without case."""
    return email(item) if isinstance(item, str) else None


def choice(item: Json) -> Hashable:
    """Which choice is meant, whatever else is said of it."""
    name = item.get("name") if isinstance(item, dict) else item
    return normal(name) if isinstance(name, str) else None


def condition(item: Json) -> Hashable:
    """What a condition asks for, its system condition aside; None where it does not write out its choices."""
    if not isinstance(item, dict) or not item.keys() <= {"field", "choices", "system_condition"}:
        return None
    choices = item.get("choices", [])
    return normal(str(item.get("field"))), frozenset(map(choice, choices if isinstance(choices, list) else []))


SAME: Final[dict[str, Same]] = {"members": person, "managers": person, "choices": choice, "applications": choice}


def change_list(page: YamlEditor, entry: Mapping, key: str, missing: Some[Json], extra: Some[Json]) -> None:
    """Takes out of the list under a key what is missing in the workspace, and adds what that has beyond it."""
    node = literal(page, entry.get(key), entry)
    if isinstance(node, Mapping) and node.get("include") is None and node.get("exclude") is None:
        raise Refused(f"{key} come from elsewhere", page.where(node), ELSEWHERE)
    if isinstance(node, Mapping):
        _take(page, node.get("include"), node, missing, SAME[key])
        # What the workspace has, and must not: it is no longer said that it must not.
        _take(page, node.get("exclude"), node, extra, SAME[key])
        if not any(_is_left(node.get(part)) for part in ("include", "exclude")):
            remove_key(page, entry, key)
        return
    change_items(page, node, missing, extra, SAME[key])
    if isinstance(node, Sequence) and key in MAY_NOT_BE_EMPTY:
        leave_out_empty(page, entry, key, node)


def _is_left(node: Node | None) -> bool:
    """Whether a list still names anybody."""
    return node is not None and not (isinstance(node, Sequence) and len(node.gone) == len(node.items))


def change_items(page: YamlEditor, node: Node, missing: Some[Json], extra: Some[Json], same: Same) -> None:
    """The same for a list that names all there is."""
    _take(page, node, node, missing, same)
    if extra and not isinstance(node, Sequence):
        raise Refused("this list comes from elsewhere", page.where(node), ELSEWHERE)
    if extra and isinstance(node, Sequence):
        page.check(node)
        node.more.extend(raw_text(item) for item in extra)


def leave_out_empty(page: YamlEditor, entry: Mapping, key: str, node: Sequence) -> None:
    """A list that may not be empty is left out where nothing is left in it: then it is not managed."""
    if len(node.gone) == len(node.items) and not node.more:
        remove_key(page, entry, key)


def _take(page: YamlEditor, node: Node | None, above: Node, items: Iterable[Json], same: Same) -> None:
    wanted = {same(item): item for item in items}
    if not wanted:
        return
    found = set()
    listed = literal(page, node, above)
    if not isinstance(listed, Sequence):
        raise Refused("this list comes from elsewhere", page.where(listed), ELSEWHERE)
    page.check(listed)
    for at, item in enumerate(listed.items):
        said = None if at in listed.gone or isinstance(item, Alias) else same(plain_text(item.value()))
        if said in wanted:
            page.check(item)
            listed.gone.add(at)
            found.add(said)
    for lost in (item for one, item in wanted.items() if one not in found):
        message = f"{lost if isinstance(lost, str) else 'an item'} does not stand in this list itself"
        raise Refused(message, page.where(listed), f"An alias, a variable, a set or a file says it. {ELSEWHERE}")


def literal(page: YamlEditor, node: Node | None, above: Node) -> Node:
    """The node, if the file says its value right there. Raises Refused."""
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
    """A single value under a key, which is added where it is not there."""
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
    """Takes a key out, with its value."""
    at = entry.position(key)
    if at is not None:
        page.check(entry.pairs[at].value)
        entry.gone.add(at)


Said = dict[str, Json]


def change_conditions(page: YamlEditor, entry: Mapping, missing: Some[Json], extra: Some[Json]) -> None:
    """Conditions on the same field are changed where they stand; others come and go as a whole."""
    node = literal(page, entry.get("conditions"), entry)
    if not isinstance(node, Sequence):
        raise Refused("the conditions come from elsewhere", page.where(node), ELSEWHERE)
    page.check(node)
    come = cast("list[Said]", list(extra))
    for gone in cast("list[Said]", missing):
        at = _find(page, node, gone)
        item = node.items[at]
        twin = next((one for one in come if one["field"] == gone["field"]), None)
        if twin is None or not isinstance(item, Mapping):
            node.gone.add(at)
        else:
            come.remove(twin)
            _turn(page, item, twin)
    node.more.extend(raw_text(item) for item in come)
    leave_out_empty(page, entry, "conditions", node)


def _find(page: YamlEditor, node: Sequence, wanted: Said) -> int:
    """Which item says that condition: with its system condition, else with none."""
    fit = [
        at
        for at, item in enumerate(node.items)
        if at not in node.gone
        and isinstance(item, Mapping)
        and not item.shared
        and condition(plain_text(item.value())) == condition(wanted)
    ]
    for system in (wanted.get("system_condition"), None):
        for at in fit:
            said = node.items[at].value()
            if isinstance(said, dict) and said.get("system_condition") == raw_text(system):
                return at
    message = f"the condition on {wanted['field']} does not stand in this list itself"
    raise Refused(message, page.where(node), f"An alias, a variable or a set says it. {ELSEWHERE}")


def _turn(page: YamlEditor, item: Mapping, wanted: Said) -> None:
    """Makes a condition say what another one on the same field says."""
    old = cast(Said, item.value())
    before, after = _choices(plain_text(old)), _choices(wanted)
    known = {choice(one) for one in before}
    kept = {choice(one) for one in after}
    if after and before:
        gone = [one for one in before if choice(one) not in kept]
        come = [one for one in after if choice(one) not in known]
        change_items(page, literal(page, item.get("choices"), item), gone, come, choice)
    elif after:
        item.more["choices"] = raw_text(after)
    else:
        remove_key(page, item, "choices")
    # A condition that says no system condition keeps the one that is live, as long as it says any choice.
    if "system_condition" in old or not after:
        if "system_condition" in wanted:
            set_key(page, item, "system_condition", raw_text(wanted["system_condition"]))
        else:
            remove_key(page, item, "system_condition")


def _choices(said: Json) -> list[Json]:
    found = said.get("choices", []) if isinstance(said, dict) else []
    return found if isinstance(found, list) else []
