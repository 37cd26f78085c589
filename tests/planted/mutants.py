"""Small changes of every sort to the modules that must not be wrong: python -m tests.planted.mutants [MODULE…].

A seeded sample is drawn from all that the rules allow, each mutant is planted by itself, and its module's tests run.
`SAMPLE=20` draws so many of each module, `SEED=7` others. Exit 1 where the score is below 85 %.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from .faults import ROOT
from .ground import Fate, Found, grounds

_WIDTH: Final = 2
_SECONDS: Final = 400.0
_SCORE: Final = 0.85
_SHOWN: Final = 70

# A second dialect would only take twice as long to say the same.
_ONE_DIALECT: Final = ("-k", "not second")
_NAMES: Final = (*_ONE_DIALECT, "tests/flow/test_minimal_calls.py", "tests/flow/test_identity.py")
_PLANNER: Final = (
    *_NAMES,
    "tests/flow/test_deletion.py",
    "tests/flow/test_commands.py",
    "tests/flow/test_guards.py",
)
_STEPS: Final = (*_PLANNER, "tests/flow", "tests/manifest/test_malformed.py", "tests/laws/test_selection.py")
_GUARDS: Final = (
    *_ONE_DIALECT,
    "tests/core/test_guard.py",
    "tests/flow/test_guards.py",
    "tests/integrity/test_small_slips.py",
    "tests/integrity/test_guards.py",
    "tests/flow/test_users.py",
)
_APPLIER: Final = (
    *_ONE_DIALECT,
    "tests/flow/test_settling.py",
    "tests/flow/test_contract_cli.py",
    "tests/simulation/test_mutants.py",
    "tests/integrity/test_late_lists.py",
    "tests/integrity/test_small_slips.py",
)
_REDACTION: Final = ("tests/client/test_redact.py", "tests/cli/test_redaction.py", "tests/hostile/test_canaries.py")
_JOURNAL: Final = ("tests/journal",)
TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "lmsconf/core/plan.py": (*_PLANNER, "tests/integrity/test_small_slips.py", "tests/integrity/test_stale_plans.py"),
    "lmsconf/core/calls.py": ("tests/core/test_calls.py", *_NAMES),
    "lmsconf/core/graph.py": ("tests/core/test_graph.py", *_NAMES),
    "lmsconf/core/diff.py": ("tests/core/test_diff.py", *_NAMES),
    "lmsconf/core/measure.py": _GUARDS,
    "lmsconf/core/guard.py": _GUARDS,
    "lmsconf/core/identity.py": ("tests/core/test_identity.py", *_NAMES),
    "lmsconf/core/apply.py": ("tests/core/test_apply.py", *_APPLIER, "tests/flow/test_guards.py"),
    "lmsconf/sending.py": ("tests/integrity/test_small_slips.py", "tests/flow/test_reading.py", *_APPLIER),
    "lmsconf/granting.py": ("tests/integrity/test_late_lists.py",),
    "lmsconf/redact.py": _REDACTION,
    "lmsconf/core/freshness.py": ("tests/integrity/test_stale_plans.py", "tests/integrity/test_plan_files.py"),
    "lmsconf/kinds/field_steps.py": _STEPS,
    "lmsconf/kinds/target_steps.py": _STEPS,
    "lmsconf/kinds/target_identity.py": _STEPS,
    "lmsconf/kinds/moves.py": _STEPS,
    "lmsconf/kinds/manual_group.py": _STEPS,
    "lmsconf/kinds/smart_group.py": _STEPS,
    "lmsconf/kinds/content_target.py": _STEPS,
    "lmsconf/settling.py": ("tests/test_settling.py", *_APPLIER),
    "lmsconf/journal/arrivals.py": _JOURNAL,
    "lmsconf/journal/folder.py": _JOURNAL,
    "lmsconf/journal/lines.py": _JOURNAL,
    "lmsconf/journal/lock.py": _JOURNAL,
    "lmsconf/journal/reading.py": _JOURNAL,
    "lmsconf/journal/writing.py": _JOURNAL,
    "lmsconf/views/escape.py": ("tests/hostile/test_escape.py", "tests/views/test_escape.py"),
}
"""Module → the tests that a mutant of it has to get past."""

_COMPARED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ORDERED: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_DROPPED: Final = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One node of a module, and what is put in its place."""

    file: str
    tree: ast.Module
    old: ast.AST
    new: ast.AST

    @property
    def text(self) -> str:
        """What the module reads."""
        return ast.unparse(_without(self.tree, self.old, self.new))

    def __str__(self) -> str:
        before, after = (" ".join(ast.unparse(node).split())[:_SHOWN] for node in (self.old, self.new))
        return f"{self.file}:{getattr(self.old, 'lineno', 0)} `{before}` → `{after}`"


def mutants(file: str, root: Path = ROOT) -> list[Mutant]:
    """All that the rules make of a module, from its first line to its last."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    return [Mutant(file, tree, old, new) for old in _nodes(tree) for new in _changed(old)]


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """What is carried out: no annotations, decorators, docstrings, nor what only a type checker reads."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not _is_idle(node):
                yield node
                yield from _nodes(node)


def _is_idle(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """What may be put in the place of a node."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield ast.Compare(left, [_COMPARED[type(op)]()], [right])
            if isinstance(op, _ORDERED):
                yield ast.Compare(right, [op], [left])
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield ast.BinOp(right, ast.Sub(), left)
            yield ast.BinOp(left, ast.Add(), right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case _ if isinstance(node, _DROPPED):
            yield ast.Pass()


def _without(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    """A tree in which one node is another; all else is shared."""

    def copied(node: ast.AST) -> ast.AST:
        if node is old:
            return new
        return type(node)(**{name: _each(value) for name, value in ast.iter_fields(node)})

    def _each(value: object) -> object:
        if isinstance(value, list):
            return [_each(one) for one in value]
        return copied(value) if isinstance(value, ast.AST) else value

    made = copied(tree)
    assert isinstance(made, ast.Module)
    return ast.fix_missing_locations(made)


def sample(files: Sequence[str], each: int, seed: int) -> list[Mutant]:
    """So many mutants of each module, always the same ones of the same seed."""
    found: list[Mutant] = []
    for file in files:
        every = mutants(file)
        found.extend(Random(f"{seed} {file}").sample(every, min(each, len(every))))  # noqa: S311  # no secret
    return found


def main(names: Sequence[str]) -> int:
    """Plants a sample, prints what became of each mutant, and the score: those found, of all that ran.

    One that cannot be imported, or runs for ever, is found as well.
    """
    chosen = [file for file in TESTS if not names or any(name in file for name in names)]
    drawn = sample(chosen, int(os.environ.get("SAMPLE", "8")), int(os.environ.get("SEED", "1")))
    with grounds(_WIDTH) as tried, ThreadPoolExecutor(_WIDTH) as pool:
        healthy = tried({}, list(dict.fromkeys(test for file in chosen for test in TESTS[file])), 4 * _SECONDS)
        if healthy.fate is not Fate.MISSED:
            print(f"the tests fail with nothing planted: {healthy.by or healthy.fate}")
            return 1

        def planted(mutant: Mutant) -> Found:
            found = tried({mutant.file: mutant.text}, TESTS[mutant.file], _SECONDS)
            print(f"{found.fate:7} {found.seconds:5.1f} s  {mutant}", flush=True)
            return found

        survived = sum(found.fate is Fate.MISSED for found in pool.map(planted, drawn))
    score = 1 - survived / len(drawn) if drawn else 1.0
    print(f"{len(drawn) - survived} of {len(drawn)} mutants are found: {score:.0%}.")
    return int(score < _SCORE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
