"""Small changes of every sort to the modules that must not be wrong: python -m tests.planted.mutants [MODULE…].

A seeded sample is drawn from all that the rules allow, each mutant is planted by itself, and the everyday tests that
reach its line run (`line_coverage`). `SAMPLE=20` draws so many of each module, `SEED=7` others, `WIDTH=1` runs one at a
time. Exit 1 where less than 95 % are found, or explained in survivors.md.
"""

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

from .line_coverage import everyday, reached
from .source_copy import ROOT, Outcome, RunResult, Try, grounds

_SECONDS: Final = 45.0
_TIMES_SLOWER: Final = 8
_STARTING: Final = 30.0
_LEAST: Final = 10.0
_SCORE: Final = 0.95
_SHOWN: Final = 70
_LARGE: Final = 20


def modules(root: Path = ROOT) -> list[str]:
    """What must not be wrong: what speaks to the service, plans, applies, writes down, locks, trusts and redacts."""
    packages = ("api", "model", "planner", "documents", "kinds", "apply")
    alone = (
        "support/files", "support/secrets", "support/url_rules", "render/escape",
        "project/credentials",
    )  # fmt: skip
    files = [file for package in packages for file in sorted((root / "lmsconf" / package).rglob("*.py"))]
    return [*(file.relative_to(root).as_posix() for file in files), *(f"lmsconf/{name}.py" for name in alone)]


_SWAPPED: Final = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot))
_COMPARED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    one: other for pair in _SWAPPED for one, other in (pair, pair[::-1])
}
_ORDERED: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_DROPPED: Final = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One node of a module, and what is put in its place. nth: which it is of those that would be called the same."""

    file: str
    tree: ast.Module
    old: ast.AST
    new: ast.AST
    nth: int = 1

    @property
    def text(self) -> str:
        """What the module reads."""
        return ast.unparse(_without(self.tree, self.old, self.new))

    @property
    def lines(self) -> list[int]:
        """Where it shows: the lines of its statement, or those that name the constant that it is in."""
        statements = [node for node in _around(self.tree, self.old) if isinstance(node, ast.stmt)]
        match statements:
            case [ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)])]:
                named = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id == name]
                return sorted({node.lineno for node in named})
        first, last = statements[-1].lineno, getattr(self.old, "end_lineno", None) or statements[-1].lineno
        return list(range(first, last + 1))

    @property
    def name(self) -> str:
        """What it is called wherever it stands in its file: the file, the function, and what changes."""
        around = [node for node in _around(self.tree, self.old) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        before, after = (" ".join(ast.unparse(node).split())[:_SHOWN] for node in (self.old, self.new))
        where = ".".join(node.name for node in around) or "-"
        nth = f" ({self.nth})" if self.nth > 1 else ""
        return f"`{self.file.removeprefix('lmsconf/')}` `{where}` `{before}` → `{after}`{nth}".replace("|", "¦")

    def __str__(self) -> str:
        return f"{self.name} (line {getattr(self.old, 'lineno', self.lines[0])})"


def mutants(file: str, root: Path = ROOT) -> list[Mutant]:
    """All that the rules make of a module, from its first line to its last."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    times: Counter[str] = Counter()
    found = []
    sizes = set(_sizes(tree))
    for one in [Mutant(file, tree, old, new) for old in _nodes(tree) for new in _changed(old, old in sizes)]:
        name = one.name
        times[name] += 1
        found.append(replace(one, nth=times[name]))
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """What is carried out: no annotations, decorators, docstrings, nor what only a type checker reads."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not _is_idle(node):
                yield node
                yield from _nodes(node)


def _around(tree: ast.Module, inner: ast.AST) -> list[ast.AST]:
    """What a node is in, from the outermost statement to the node itself."""
    parents, found = _parents(tree), [inner]
    while (outer := parents[found[-1]]) is not tree:
        found.append(outer)
    return found[::-1]


@lru_cache(maxsize=8)
def _parents(tree: ast.Module) -> Mapping[ast.AST, ast.AST]:
    """Each node of a module → what it stands in; of contexts and operators, which Python shares, the last one."""
    return {inner: outer for outer in ast.walk(tree) for inner in ast.iter_child_nodes(outer)}


def _is_idle(node: ast.AST) -> bool:
    """What does nothing. `zip(…, strict=True)` only checks that both sides were made of one list."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.keyword(arg="strict", value=ast.Constant(value=True)):
            return True
    return False


def _sizes(tree: ast.Module) -> Iterator[ast.AST]:
    """The numbers of constants and defaults: limits, times, shares."""
    for node in ast.walk(tree):
        match node:
            case ast.Module(body=body) | ast.ClassDef(body=body):
                values = [one.value for one in body if isinstance(one, ast.Assign | ast.AnnAssign) and one.value]
            case ast.arguments(defaults=defaults, kw_defaults=named):
                values = [*defaults, *filter(None, named)]
            case _:
                continue
        yield from (inner for value in values for inner in ast.walk(value))


def _changed(node: ast.AST, is_size: bool) -> Iterator[ast.AST]:
    """What may be put in the place of a node.

    One byte more of 65,536 asks the same as `<` for `<=` where the bound is looked at, so large sizes are halved and
    doubled. A boolean that is returned turns into the other one: None is as good as False.
    """
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
        case ast.Constant(value=int(value)) if is_size and value >= _LARGE:
            yield ast.Constant(value * 2)
            yield ast.Constant(value // 2)
        case ast.Constant(value=float(value)) if is_size and value:
            yield ast.Constant(value * 2)
            yield ast.Constant(value / 2)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Return(value=ast.expr() as value) if not (
            isinstance(value, ast.Constant) and isinstance(value.value, bool | None)
        ):
            yield ast.Return(ast.Constant(None))
        case _ if isinstance(node, _DROPPED):
            yield ast.Pass()


def _without(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    """A tree in which one node is another; all else is shared."""

    def copied(node: ast.AST) -> ast.AST:
        if node is old:
            return new
        return ast.copy_location(type(node)(**{name: _each(value) for name, value in ast.iter_fields(node)}), node)

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


def explained() -> frozenset[str]:
    """The mutants that survivors.md gives a reason for, by their names."""
    lines = (Path(__file__).parent / "survivors.md").read_text(encoding="utf-8").splitlines()
    return frozenset(line.split("|")[1].strip() for line in lines if line.startswith("| `"))


def main(names: Sequence[str]) -> int:
    """Plants a sample, prints what became of each mutant, and the score: those found or explained, of all.

    One that cannot be imported, or runs for ever, is found as well.
    """
    os.environ.setdefault("TESTS", "all")  # a test that takes turns finds its mutants on each day that it plays
    chosen = [file for file in modules() if not names or any(name in file for name in names)]
    drawn = sample(chosen, int(os.environ.get("SAMPLE", "8")), int(os.environ.get("SEED", "1")))
    width, reasons, fates = int(os.environ.get("WIDTH", "2")), explained(), Counter[str]()

    with grounds(width) as tried, ThreadPoolExecutor(width) as pool:
        judge = Judge(tried)

        def planted(mutant: Mutant) -> str:
            found = judge.judged(mutant)
            fate = "known" if found.fate is Outcome.MISSED and mutant.name in reasons else found.fate
            print(f"{fate:7} {found.seconds:5.1f} s  {mutant}  {found.by}", flush=True)
            return fate

        fates.update(pool.map(planted, drawn))
    good = len(drawn) - fates[Outcome.MISSED]
    print(f"{good} of {len(drawn)} mutants are found or explained: {good / max(1, len(drawn)):.1%}.")
    return int(good < _SCORE * len(drawn))


def collected() -> frozenset[str]:
    """The everyday tests that there are by now."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *everyday()]
    return frozenset(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())


class Judge:
    """Lets mutants meet the tests that reach their lines, in a copy of lmsconf."""

    def __init__(self, tried: Try) -> None:
        self._tried, self._there = tried, collected()
        self._sound: dict[str, bool] = {}

    def judged(self, mutant: Mutant) -> RunResult:
        """What the tests say. A test that fails here anyhow finds nothing."""
        known = reached(mutant.file)
        near = known.tests(mutant.lines, _SECONDS)
        tests = {
            test: _LEAST + _TIMES_SLOWER * known.seconds[test]
            for test in near
            if test in self._there and self._sound.get(test, True)
        }
        if not tests:
            return RunResult(Outcome.MISSED, 0.0, "")
        found = self._tried({mutant.file: mutant.text}, list(tests), _STARTING + sum(tests.values()))
        by = max((test for test in tests if found.by.startswith(f"FAILED {test}")), key=len, default="")
        if by and by not in self._sound:
            self._sound[by] = self._tried({}, [by], _STARTING + tests[by]).fate is Outcome.MISSED
        return found if self._sound.get(by, True) else self.judged(mutant)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
