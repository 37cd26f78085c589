"""Seeds: a first workspace from a YAML file, in the words of the manifests, or from the same values made by a program.

    people:          {email, first_name, last_name, admin, manager, archived, id,
                      answers: {field: a choice, a list of choices, or a text}}
    custom_fields:   {name, type, choices: [name], description, hidden, locked, optional}
    groups:          {name, members: [e-mail], managers: [e-mail], id}
    smart_groups:    {name, conditions: [{field, choices, system_condition}], managers: [e-mail], id}
    content:         {name, type, description, price, id}
    content_targets: {content, mandatory, visible_from, visible_until,
                      assign_to: [everyone | {group: name} | {smart_group: name} | {user: e-mail}]}

Every scalar is read as text, so that `NO` and `2026-01-05` are what they look like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import yaml

from lmsconf.errors import LmsconfError, Problem, ProblemsFound, Where
from lmsconf.sandbox.desk import Desk
from lmsconf.sandbox.plainyaml import documents
from lmsconf.sandbox.planting import Planting
from lmsconf.sandbox.store import Ledger
from lmsconf.wire import Wire

SECTIONS: Final[Mapping[str, frozenset[str]]] = {
    "people": frozenset(("email", "first_name", "last_name", "answers", "admin", "manager", "archived", "id")),
    "custom_fields": frozenset(("name", "type", "choices", "description", "hidden", "locked", "optional")),
    "groups": frozenset(("name", "members", "managers", "id")),
    "smart_groups": frozenset(("name", "conditions", "managers", "id")),
    "content": frozenset(("name", "type", "description", "price", "id")),
    "content_targets": frozenset(("content", "assign_to", "mandatory", "visible_from", "visible_until")),
}
"""Section → the keys of its entries."""


def load(path: Path) -> Mapping[str, object]:
    """The values of a seed file. Raises ProblemsFound where it is not YAML, LmsconfError where it cannot be read."""
    try:
        found = documents(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LmsconfError(f"{path}: cannot be read: {error.strerror}", hint="Check the path of the seed") from error
    except UnicodeDecodeError as error:
        raise ProblemsFound([_problem(str(path), "it is not UTF-8")]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = Where(str(path), mark.line + 1, mark.column + 1) if mark else Where(str(path))
        raise ProblemsFound([Problem(code="seed/yaml", message=str(error.problem), source=place)]) from error
    except yaml.YAMLError as error:
        raise ProblemsFound([_problem(str(path), str(error))]) from error
    if len(found) > 1:
        raise ProblemsFound([_problem(str(path), "it holds more than one document")])
    if not found or not isinstance(found[0], dict):
        raise ProblemsFound([_problem(str(path), f"it holds no sections such as {', '.join(SECTIONS)}")])
    return found[0]


def plant(ledger: Ledger, values: Mapping[str, object], *, source: str = "seed", wire: Wire | None = None) -> None:
    """Fills an empty workspace. Raises ProblemsFound with everything that is wrong, and then it stays empty."""
    problems = list(_misshapen(values))
    if not problems:
        planting = Planting(Desk(ledger, (wire or Wire.default()).behaviour))
        with ledger.in_bulk():
            # A section comes after those that it names things of.
            planting.custom_fields(_section(values, "custom_fields"))
            planting.people(_section(values, "people"))
            planting.groups(_section(values, "groups"))
            planting.smart_groups(_section(values, "smart_groups"))
            planting.content(_section(values, "content"))
            planting.content_targets(_section(values, "content_targets"))
            problems = planting.problems
    if problems:
        raise ProblemsFound([_problem(source, message) for message in problems])


def _section(values: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """The entries of a section that is in shape; none where it is left out or empty."""
    return cast("list[Mapping[str, object]]", values.get(name) or [])


def _misshapen(values: Mapping[str, object]) -> Iterator[str]:
    """What is wrong before any entry is understood: unknown sections and keys, lists and mappings that are none."""
    for name, entries in values.items():
        if name not in SECTIONS:
            yield f"unknown section {name!r}; there are {', '.join(SECTIONS)}"
        elif not isinstance(entries or [], list):
            yield f"{name}: it is no list"
        else:
            known = SECTIONS[name]
            for place, entry in enumerate(cast("list[object]", entries or [])):
                if not isinstance(entry, dict):
                    yield f"{name}[{place}]: it is no mapping"
                elif not entry.keys() <= known:
                    unknown = sorted(map(str, entry.keys() - known))
                    yield f"{name}[{place}]: unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}"


def _problem(file: str, message: str) -> Problem:
    return Problem(code="seed/invalid", message=message, source=Where(file), hint="Correct the seed and run again.")
