"""The guide's tables about the API, counted from what there is: `python -m tests.api.guide_tables` writes them anew."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import yaml

from lmsconf.api.client import Client
from lmsconf.api.sdk.service import Service
from lmsconf.api.spec import ApiSpec, Operation
from lmsconf.api.spec.dialect_candidates import assumed_keys, candidate_values
from lmsconf.api.spec.operations import load_api_description
from lmsconf.kinds.kind_table import KINDS
from lmsconf.sandbox.service import HANDLERS
from lmsconf.support.files import read_schema

from .writer import DOCUMENT, attribute, snake

GUIDE = Path(__file__).parent.parent.parent / "lmsconf" / "guide"
EXPERIMENTS: Final[dict[str, dict[str, str]]] = yaml.safe_load(
    (Path(__file__).parent / "texts" / "probe_experiments.yaml").read_text(encoding="utf-8")
)
"""Key → what a probe does to learn it, in the order in which that is done, and what it needs."""
GROUPS = "| group of the specification | `service.` | operations | in client | in sandbox | assumptions |"
POINTS = "| key | question | values, the default first | how it is learnt | a wrong guess |"
_SHOWN = 7
NAMES = "| operation | other assumed names |"


def tables() -> dict[tuple[str, str], str]:
    """Each table by its page and its first line."""
    return {
        ("client-library", GROUPS): _table(GROUPS, _groups()),
        ("service-dialect", POINTS): _table(POINTS, _points()),
        ("service-dialect", NAMES): _table(NAMES, _names()),
    }


def _table(head: str, rows: Iterator[str]) -> str:
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows, ""])


def _groups() -> Iterator[str]:
    """One row for each group: its operations, how many of them client and sandbox have, and what is assumed."""
    service = Service(Client("http://127.0.0.1", "unused"))
    groups: dict[str, list[Operation]] = {}
    for operation in ApiSpec.default().operations.values():
        tags = DOCUMENT["paths"][operation.path][operation.method.lower()]["tags"]
        groups.setdefault(tags[0], []).append(operation)
    yield from (_group(group, held, service) for group, held in groups.items())
    yield _group("all", [operation for held in groups.values() for operation in held], service)


def _group(group: str, held: list[Operation], service: Service) -> str:
    names = {attribute(one.id) for one in held}
    spoken = sum(hasattr(getattr(service, attribute(one.id), None), snake(one.id.partition(".")[2])) for one in held)
    answered = sum(one.id in HANDLERS for one in held)
    assumed = len({key for one in held for key in one.dialect_keys})
    where = f"`{names.pop()}`" if len(names) == 1 else ""
    return f"| {group} | {where} | {len(held)} | {spoken} | {answered} | {assumed} |"


def relied_on() -> list[str]:
    """The keys that manifests of any kind rest on, in the order of the description."""
    operations = {operation for kind in KINDS.values() for operation in kind.operations}
    return [*assumed_keys(ApiSpec.default(), operations)]


def guesses() -> dict[str, dict[str, str]]:
    """Key → what a wrong guess would do, and of a name, the question."""
    return cast("dict[str, dict[str, str]]", json.loads(read_schema("openapi.json"))["x-guesses"])


def _points() -> Iterator[str]:
    """One row for each key that manifests rest on."""
    known, said = load_api_description(), guesses()
    for key in sorted(relied_on()):
        behaviour = known.behaviours.get(key, {})
        question = str(behaviour.get("description") or said[key]["question"])
        listed = _values(key, behaviour)
        yield f"| `{key}` | {question} | {listed} | {_learnt(key)} | {said[key]['wrong']} |"


def _values(key: str, behaviour: Mapping[str, object]) -> str:
    if behaviour.get("type") == "integer":
        return f"`{behaviour['default']}`, or any other number"
    few = cast("list[str] | None", behaviour.get("values"))
    values = few or [str(value) for value in candidate_values(key, ApiSpec.default().behaviour(key))]
    shown, more = ", ".join(f"`{value}`" for value in values[:_SHOWN]), len(values) - _SHOWN
    tried = f", {more} more that the probe tries" if more > 0 else ""
    return shown + ("" if few else f"{tried}, or any other text")


def _learnt(key: str) -> str:
    does, needs = EXPERIMENTS[key]["does"], EXPERIMENTS[key].get("needs")
    return f"{does[0].upper()}{does[1:]}" + (f"; needs {needs}" if needs else "")


def _names() -> Iterator[str]:
    """One row for each operation with names that no manifest rests on: a key is its name, a dot, and the name."""
    operations: dict[str, list[str]] = {}
    for key, name in load_api_description().names.items():
        operation, rest = ".".join(key.split(".")[:-1][:2]), key.split(".")[2:] or [name]
        assert rest[-1] == name
        if key not in relied_on():
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
