"""The README's table of the API, counted from what there is: `python -m tests.api.readme_table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from lmsconf.api.client import Client
from lmsconf.api.service import Service
from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.sandbox.handlers import find_handler

from .writer import attribute, snake

README = Path(__file__).parent.parent.parent / "README.md"
HEAD = "| group of the specification | `service.` | operations | in client | in sandbox | assumptions |"


def table() -> str:
    """One row for each group: its operations, how many of them client and sandbox have, and what is assumed."""
    service = Service(Client("http://127.0.0.1", "unused"))
    groups: dict[str, list[Operation]] = {}
    for operation in ApiSpec.default().operations.values():
        groups.setdefault(operation.group, []).append(operation)
    rows = [_row(group, held, service) for group, held in groups.items()]
    every = [operation for held in groups.values() for operation in held]
    return "\n".join([HEAD, "|---|---|---|---|---|---|", *rows, _row("all", every, service), ""])


def _row(group: str, held: list[Operation], service: Service) -> str:
    names = {attribute(one.id) for one in held}
    spoken = sum(hasattr(getattr(service, attribute(one.id), None), snake(one.id.partition(".")[2])) for one in held)
    answered = sum(find_handler(one.id) is not None for one in held)
    assumed = len({key for one in held for key in one.dialect_keys})
    where = f"`{names.pop()}`" if len(names) == 1 else ""
    return f"| {group} | {where} | {len(held)} | {spoken} | {answered} | {assumed} |"


def shown(page: str) -> str:
    """The table as a page has it."""
    start = page.index(HEAD)
    return page[start : page.index("\n\n", start) + 1]


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(text.replace(shown(text), table()), encoding="utf-8")
