"""Exported entries → files: one per kind, sorted for reading and lookup."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

from lmsconf.export.rows import SECTIONS, Saying, Unsaid
from lmsconf.kinds.shared.names import CONTENT_TARGET
from lmsconf.manifest.edit.yaml_text import entry_lines, in_comment
from lmsconf.model.names import look
from lmsconf.model.values import Json
from lmsconf.planner.kind import AnyKind

Item = TypeVar("Item", Saying, Unsaid)

_VALUE: Final = ("mandatory", "visible_from", "visible_until")
_AUDIENCES: Final = ("everyone", "smart_group", "group", "user")
_SHOWN: Final = 20
"""How many rows that could not be exported are listed in a file; the others are counted."""


def files(
    sayings: Iterable[Saying], unsaid: Iterable[Unsaid], kinds: Mapping[str, AnyKind], workspace: str
) -> dict[str, str]:
    """Map each section to the text of its file; kinds without an entry have none."""
    found: dict[str, str] = {}
    said, missing = _by_kind(sayings), _by_kind(unsaid)
    for kind in SECTIONS:
        if said[kind]:
            section = kinds[kind].section
            found[section] = _file(kind, section, said[kind], missing[kind], workspace)
    return found


def _by_kind(items: Iterable[Item]) -> defaultdict[str, list[Item]]:
    found: defaultdict[str, list[Item]] = defaultdict(list)
    for one in items:
        found[one.address.kind].append(one)
    return found


def _file(kind: str, section: str, said: Sequence[Saying], missing: Sequence[Unsaid], workspace: str) -> str:
    entries = _assignments(said) if kind == CONTENT_TARGET else _entries(said)
    lines = [f"# What workspace {in_comment(workspace)} held when it was exported.", *_missing(missing)]
    lines += ["", f"{section}:"]
    blocks = [[*(f"  # {in_comment(note)}" for note in notes), *entry_lines(body, "  ")] for body, notes in entries]
    between = _any_long(blocks)
    for number, block in enumerate(blocks):
        lines += [*([""] if number and between else []), *block]
    return "\n".join(lines) + "\n"


def _any_long(blocks: Sequence[Sequence[str]]) -> bool:
    return any(len(block) > 1 for block in blocks)


def _missing(missing: Sequence[Unsaid]) -> Iterator[str]:
    """Yield comment lines that list what was left out, and why."""
    if missing:
        yield "# Left out, because no manifest can say it as it is:"
        yield from (f"#   {in_comment(line)}" for line in map(told, missing[:_SHOWN]))
        if len(missing) > _SHOWN:
            yield f"#   … and {len(missing) - _SHOWN:,} more"


def told(one: Unsaid) -> str:
    """Format a row that was left out: `group/Sales (id g-2): another one has its name`."""
    return f"{one.address} (id {one.id}): {one.why}"


def _entries(said: Iterable[Saying]) -> Iterator[tuple[Mapping[str, Json], Sequence[str]]]:
    for one in sorted(said, key=lambda one: (look(one.address.name), one.id)):
        yield one.body, one.notes


def _assignments(said: Iterable[Saying]) -> Iterator[tuple[Mapping[str, Json], Sequence[str]]]:
    """Group assignments into one entry per content: values that all audiences share once, others at each audience."""
    by_content: defaultdict[str, list[Saying]] = defaultdict(list)
    for one in said:
        by_content[str((one.body["content"], one.body.get("only_in")))].append(one)
    for same in sorted(by_content.values(), key=lambda same: (look(_content(same[0])), same[0].id)):
        first = same[0].body
        shared = {key: first[key] for key in _VALUE if all(one.body.get(key) == first.get(key) for one in same)
                  and key in first}  # fmt: skip
        audiences = sorted((_audience(one, shared) for one in same), key=_order)
        limits = {key: first[key] for key in ("only_in",) if key in first}
        yield {"content": first["content"], **shared, "assign_to": audiences, **limits}, ()


def _content(one: Saying) -> str:
    content = one.body["content"]
    return str(content["name"] if isinstance(content, dict) else content)


def _audience(one: Saying, shared: Mapping[str, Json]) -> Json:
    to = cast("Mapping[str, Json]", cast("list[Json]", one.body["assign_to"])[0])
    mine = {key: one.body[key] for key in _VALUE if key in one.body and key not in shared}
    return "everyone" if "everyone" in to and not mine else {**to, **mine}


def _order(audience: Json) -> tuple[int, str]:
    said = audience if isinstance(audience, dict) else {"everyone": True}
    key = next(key for key in _AUDIENCES if key in said)
    return _AUDIENCES.index(key), look(str(said[key]))
