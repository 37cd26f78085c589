"""What the effects of a plan on people take, once everything is read: time, memory, and how they grow.

python tests/benchmarks/bench_effects.py
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Mapping
from random import Random
from time import process_time

from lmsconf.kinds.content_target.types import TargetRow
from lmsconf.kinds.custom_field.types import ChoiceRow, FieldRow
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.smart_group.types import ConditionRow, SmartGroupRow
from lmsconf.kinds.user.answer_index import AnswerIndex
from lmsconf.kinds.user.types import AnswersRow
from lmsconf.model.address import Address, RemoteId
from lmsconf.planner.audience.facts import AccessFacts, LiveSmartGroup
from lmsconf.planner.audience.people_sets import Terms, Window
from lmsconf.planner.audience.prediction import predict_access
from lmsconf.planner.audience.scope import (
    AccessScope,
    ChangedAssignment,
    ChangedGroup,
    ChangedSmartGroup,
    Condition,
)

NOW = 1_780_000_000
SECONDS, MEBIBYTES = 5.0, 500
PEOPLE, GROUPS, CHANGED_GROUPS, ASSIGNMENTS, CHANGED_ASSIGNMENTS, CONTENTS = 200_000, 5_000, 500, 20_000, 2_000, 500
_FIELDS, _CHOICES = 3, 20


def facts_of(people: int, scale: float) -> tuple[AccessFacts, AccessScope]:
    """A workspace and a change: half of the groups are smart, with their live members; one has half of the people."""
    draw = Random(1)  # noqa: S311  no secret is drawn
    fields = tuple(
        FieldRow(
            RemoteId(f"f{n}"),
            f"Field {n}",
            "CHOICE",
            tuple(ChoiceRow(RemoteId(f"f{n}c{c}"), f"C{c}") for c in range(_CHOICES)),
        )
        for n in range(_FIELDS)
    )
    answers = {
        (n, c): (f"Field {n}", AnswerRow(f"Field {n}", frozenset({f"f{n}c{c}"}), None))
        for n in range(_FIELDS)
        for c in range(_CHOICES)
    }
    everybody = tuple(
        AnswersRow(
            RemoteId(f"u{n:07}"),
            tuple(answers[field, draw.randrange(_CHOICES)] for field in range(_FIELDS)),
            email=f"p{n}@acme.example",
            archived=n % 50 == 0,
        )
        for n in range(people)
    )
    half = int(GROUPS * scale) // 2
    groups = {RemoteId(f"g{n}"): GroupRow(RemoteId(f"g{n}"), f"Group {n}") for n in range(half)}
    members = {
        id: frozenset(everybody[draw.randrange(people)].id for _ in range(people // 2 if n == 0 else 40))
        for n, id in enumerate(groups)
    }
    answering: dict[str, set[RemoteId]] = {}
    for person in everybody:
        for _, answer in person.answers or ():
            for choice in answer.choices if answer is not None else ():
                answering.setdefault(choice, set()).add(person.id)
    smart = {RemoteId(f"s{n}"): SmartGroupRow(RemoteId(f"s{n}"), f"Smart {n}") for n in range(half)}
    conditions: dict[RemoteId, LiveSmartGroup] = {}
    for n, (id, row) in enumerate(smart.items()):
        live = tuple(
            ConditionRow(RemoteId(f"f{field}"), frozenset({RemoteId(f"f{field}c{(n * 7 + field) % _CHOICES}")}), None)
            for field in range(2)
        )
        both = frozenset.intersection(*(frozenset().union(*(answering[c] for c in one.choices)) for one in live))
        conditions[id] = LiveSmartGroup(SmartGroupRow(id, row.name, live, frozenset()), both)
    contents = [RemoteId(f"c{n}") for n in range(int(CONTENTS * scale))]
    audiences = [*groups, *smart]
    rows = [
        TargetRow(contents[n % len(contents)], audiences[(n * 13) % len(audiences)], "GROUP", n % 3 == 0, None, None)
        for n in range(int(ASSIGNMENTS * scale))
    ]
    targets: dict[RemoteId, list[TargetRow]] = {id: [] for id in contents}
    for row in rows:
        targets[row.content].append(row)
    facts = AccessFacts(
        people=AnswerIndex(everybody, has_answers=True),
        fields=fields,
        contents={id: f"Content {id}" for id in contents},
        groups=groups,
        smart_groups=smart,
        members=members,
        conditions=conditions,
        targets={id: tuple(listed) for id, listed in targets.items()},
        everyone="EVERYONE",
        affected=frozenset(contents),
    )
    return facts, _changes(facts, rows, scale)


def _changes(facts: AccessFacts, rows: list[TargetRow], scale: float) -> AccessScope:
    """Members who leave, conditions that are narrowed, windows that close."""
    changed = int(CHANGED_GROUPS * scale) // 2
    emails: Mapping[RemoteId, str] = {person.id: person.email for person in facts.people.people}
    groups = {
        id: ChangedGroup(
            address=Address.of("group", row.name),
            leaves=frozenset(emails[one] for one in sorted(facts.members[id])[:10]),
            joins=frozenset(),
        )
        for id, row in list(facts.groups.items())[:changed]
    }
    smart = {
        id: ChangedSmartGroup(
            address=Address.of("smart_group", row.name),
            conditions=(
                *(
                    Condition(one.field, frozenset(one.choices), None)
                    for one in facts.conditions[id].row.conditions or ()
                ),
                Condition(RemoteId("f2"), frozenset({RemoteId("f2c1")}), None),
            ),
        )
        for id, row in list(facts.smart_groups.items())[:changed]
    }
    assignments = [
        ChangedAssignment(
            address=Address.of("content_target", f"{row.content} to {row.target}"),
            content=row.content,
            audience=None,
            row=row,
            terms=Terms(row.mandatory, Window(None, NOW + 86_400 * (n % 60))),
        )
        for n, row in enumerate(rows[: int(CHANGED_ASSIGNMENTS * scale)])
    ]
    return AccessScope(
        assignments=assignments, groups=dict(groups), smart_groups=dict(smart), takes=True, requires=True
    )


def measure(people: int, scale: float, *, rows: bool) -> None:
    """Print seconds, mebibytes beyond the facts, contents and people who lose; in a process of its own."""
    facts, scope = facts_of(people, scale)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = process_time()
    predicted = predict_access(facts, scope, NOW, rows=rows)
    took = process_time() - start
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    effects = predicted.effects
    print(f"{took:.2f} {more:.0f} {len(effects.contents)} {effects.people.lose} {len(effects.rows or ())}")


def main() -> None:
    """Run every size in a process of its own, and print what it took beside the aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("PEOPLE", "SCALE", "ROWS"), help=argparse.SUPPRESS)
    one = parser.parse_args().one
    if one:
        measure(int(one[0]), float(one[1]), rows=one[2] == "1")
        return
    took: dict[int, float] = {}
    for people in (25_000, 50_000, 100_000, PEOPLE):
        seconds, more, contents, lose, _ = _run(people, people / PEOPLE, rows=False)
        took[people] = float(seconds)
        print(f"  {people:>7,} people  {seconds:>6} s  {more:>4} MiB  {contents} contents, {lose} people lose")
    print(f"  {GROUPS:,} groups, {CHANGED_GROUPS} change; {ASSIGNMENTS:,} assignments, {CHANGED_ASSIGNMENTS:,} change")
    verdict = "kept" if took[PEOPLE] <= SECONDS else "MISSED"
    print(f"  {took[PEOPLE]:.2f} s of computing, target ≤ {SECONDS:g}, ratio {took[PEOPLE] / SECONDS:.2f}: {verdict}")
    seconds, more, _, _, rows = _run(PEOPLE, 1.0, rows=True)
    print(f"  with --people: {seconds} s, {more} MiB, {rows} rows")


def _run(people: int, scale: float, *, rows: bool) -> list[str]:
    command = [sys.executable, __file__, "--one", str(people), str(scale), str(int(rows))]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


if __name__ == "__main__":
    main()
