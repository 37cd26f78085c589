"""The guide's tables about the API, counted from what there is: `python -m tests.api.guide_tables` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from lmsconf.api.client import Client
from lmsconf.api.service import Service
from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.api.spec.operations import load_api_description
from lmsconf.sandbox.handlers import find_handler

from .writer import attribute, snake

GUIDE = Path(__file__).parent.parent.parent / "lmsconf" / "guide"
GROUPS = "| group of the specification | `service.` | operations | in client | in sandbox | assumptions |"
BEHAVIOURS = "| key | question | default | other values |"
NAMES = "| operation | assumed names |"


def tables() -> dict[tuple[str, str], str]:
    """Each table by its page and its first line."""
    return {
        ("client-library", GROUPS): _table(GROUPS, _groups()),
        ("service-dialect", BEHAVIOURS): _table(BEHAVIOURS, _behaviours()),
        ("service-dialect", NAMES): _table(NAMES, _names()),
    }


def _table(head: str, rows: Iterator[str]) -> str:
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows, ""])


def _groups() -> Iterator[str]:
    """One row for each group: its operations, how many of them client and sandbox have, and what is assumed."""
    service = Service(Client("http://127.0.0.1", "unused"))
    groups: dict[str, list[Operation]] = {}
    for operation in ApiSpec.default().operations.values():
        groups.setdefault(operation.group, []).append(operation)
    yield from (_group(group, held, service) for group, held in groups.items())
    yield _group("all", [operation for held in groups.values() for operation in held], service)


def _group(group: str, held: list[Operation], service: Service) -> str:
    names = {attribute(one.id) for one in held}
    spoken = sum(hasattr(getattr(service, attribute(one.id), None), snake(one.id.partition(".")[2])) for one in held)
    answered = sum(find_handler(one.id) is not None for one in held)
    assumed = len({key for one in held for key in one.dialect_keys})
    where = f"`{names.pop()}`" if len(names) == 1 else ""
    return f"| {group} | {where} | {len(held)} | {spoken} | {answered} | {assumed} |"


def _behaviours() -> Iterator[str]:
    for key, behaviour in load_api_description().behaviours.items():
        default = str(behaviour["default"])
        values = cast("list[str] | None", behaviour["values"])
        others = ", ".join(f"`{value}`" for value in values if value != default) if values else "any"
        yield f"| `{key}` | {behaviour['description']} | `{default}` | {others} |"


def _names() -> Iterator[str]:
    """One row for each operation: a key is its name, a dot, and the assumed name."""
    operations: dict[str, list[str]] = {}
    for key, name in load_api_description().names.items():
        operation, rest = ".".join(key.split(".")[:-1][:2]), key.split(".")[2:] or [name]
        assert rest[-1] == name
        operations.setdefault(operation, []).append(".".join(rest))
    yield from (
        f"| `{operation}` | {', '.join(f'`{name}`' for name in names)} |" for operation, names in operations.items()
    )


def shown(page: str, head: str) -> str:
    """The table as a page has it."""
    start = page.index(head)
    return page[start : page.index("\n\n", start) + 1]


if __name__ == "__main__":
    for (name, head), table in tables().items():
        path = GUIDE / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(shown(text, head), table), encoding="utf-8")
