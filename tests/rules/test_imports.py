"""Which package may import which, and which modules may import a library."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent / "lmsconf"

MAY_IMPORT = {
    "errors": set(),
    "support": {"errors"},
    "model": {"errors"},
    "api": {"errors", "support", "model"},
    "kinds": {"errors", "model", "api.spec"},
    "planner": {"errors", "model", "api.spec", "kinds"},
    "manifest": {"errors", "support", "model", "planner", "kinds"},
    "documents": {"errors", "support", "model", "planner", "kinds"},
    "sandbox": {"errors", "support", "api.spec"},
    "project": {"errors", "support", "model", "planner", "manifest", "kinds.kind_table", "kinds.shared"},
    "render": {"errors", "model", "documents", "kinds"},
    "workspace": {
        *("errors", "support", "model", "api", "planner", "kinds", "manifest", "documents", "sandbox", "project"),
    },
    "apply": {
        *("errors", "support", "model", "api", "planner", "kinds", "manifest", "documents", "sandbox", "project"),
        "workspace",
    },
    "audit": {
        *("errors", "support", "model", "planner", "kinds", "documents", "render"),
    },
    "doctor": {
        *("errors", "support", "model", "api", "planner", "kinds", "manifest", "documents", "project", "render"),
        "workspace",
    },
    "fleet": {
        *("errors", "support", "model", "planner", "manifest", "documents", "project", "render"),
        *("workspace", "apply"),
    },
    "cli": {
        *("errors", "support", "model", "api", "planner", "kinds", "manifest", "documents", "sandbox", "project"),
        *("render", "workspace", "apply", "doctor", "fleet"),
        "audit",
    },
}
"""Package → the packages that it may import, each above all that it imports."""

DOORS = {
    "httpx": {"api/transport.py", "api/client.py", "sandbox/service.py"},
    "yaml": {
        "manifest/edit/tree_builder.py",
        "manifest/yaml_reader.py",
        "sandbox/seed.py",
    },
    "jsonschema": {"manifest/schema_check.py"},
    "fastjsonschema": {"api/spec/operations.py"},
    "deepdiff": {"planner/diff.py"},
    "sqlite3": {"sandbox/store.py"},
    "jinja2": {"render/jinja.py", "sandbox/serve.py"},
    "markupsafe": {"render/jinja.py"},
    "cryptography": {"audit/statement.py"},
    "dask": {"fleet/dask_engine.py"},
    "distributed": {"fleet/dask_engine.py", "fleet/dask_worker.py"},
    "rich": {"cli/terminal.py"},
    "subprocess": {
        *("cli/terminal.py", "fleet/worker.py", "project/credentials.py", "support/git.py"),
    },
}
"""Library → the only modules that may import it. httpx's types may be named where a transport is handed in."""


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every statement of a file, and of the functions and classes in it."""
    return tuple(statements(ast.parse(path.read_text(encoding="utf-8"))))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in another one. Expressions, which are most of a file, have none."""
    for part in ("body", "orelse", "handlers", "cases", "finalbody"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from statements(inner)


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, wherever in it."""
    names: list[str] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.append(node.module or "")
    return tuple(names)


def package(path: Path) -> str:
    """The package, or the module beside the packages, that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_modules_import_what_they_may() -> None:
    """A package imports only those that the table gives it."""
    refused = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules()
        if not (path.parent == ROOT and path.name.startswith("__"))
        for name in imported(path)
        if name.startswith("lmsconf.") and not _may_import(package(path), name.removeprefix("lmsconf."))
    ]
    assert refused == []


def _may_import(mine: str, inside: str) -> bool:
    """Whether a package may import a module; `inside` is its name below `lmsconf`."""
    return any(inside == one or inside.startswith(f"{one}.") for one in {*MAY_IMPORT[mine], mine})


def test_no_package_imports_one_above_it() -> None:
    """The table names each package after all that it may import, so that there is no circle."""
    seen: set[str] = set()
    for name, below in MAY_IMPORT.items():
        assert {one.partition(".")[0] for one in below} <= seen, name
        seen.add(name)
    assert {package(path) for path in modules()} - {"__init__", "__main__"} == seen


WITHOUT_CIRCLES = MAY_IMPORT.keys() - {"errors", "kinds", "planner"}


@pytest.mark.parametrize("name", sorted(WITHOUT_CIRCLES))
def test_modules_of_a_package_import_in_no_circle(name: str) -> None:
    """Imports inside of functions, and those for types alone, count too."""
    graph = {
        ".".join(("lmsconf", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): imported(path)
        for path in modules()
        if package(path) == name
    }
    TopologicalSorter(graph).prepare()


def test_packages_describe_modules_that_are_there() -> None:
    """The table in a package's docstring names no module that was renamed or removed."""
    stale = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in ROOT.rglob("__init__.py")
        for names in re.findall(
            r"^ {0,4}([a-z_]+(?:, [a-z_]+)*)(?: {2}|$)",
            ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "",
            re.M,
        )
        for name in names.split(", ")
        if not (path.parent / name).is_dir() and not (path.parent / f"{name}.py").is_file()
    ]
    assert stale == []


def _run_time_imports(path: Path) -> set[Path]:
    """The modules of ours that a file imports when it runs, at once or later: all but those for types alone."""
    guards = [node for node in nodes(path) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    for_types = {inner for guard in guards for inner in ast.walk(guard)}
    found: set[Path] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node not in for_types and (node.module or "").startswith("lmsconf"):
            folder = ROOT.parent / str(node.module).replace(".", "/")
            inner = [folder / f"{alias.name}.py" for alias in node.names]
            outer = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
            found |= {one if one.exists() else outer for one in inner}
    return found - {ROOT / "__init__.py"}


def test_no_circle_of_modules() -> None:
    """No module imports itself by way of others, not even in a function. Raises CycleError, which names them."""
    TopologicalSorter({path: _run_time_imports(path) for path in modules()}).prepare()


def test_libraries_have_one_door() -> None:
    """A library is imported only by the modules that are its door."""
    using = {library: set[str]() for library in DOORS}
    for path in modules():
        names = {found.partition(".")[0] for found in imported(path)}
        for library in names & DOORS.keys():
            using[library].add(str(path.relative_to(ROOT)))
    assert {library: names - DOORS[library] for library, names in using.items() if names - DOORS[library]} == {}


def test_the_network_is_left_to_httpx() -> None:
    """Only the server of the sandbox works with sockets, TLS or HTTP itself."""
    network = {"socket", "ssl", "http.client", "http.server"}
    using = {str(path.relative_to(ROOT)) for path in modules() if network & set(imported(path))}
    assert using == {"sandbox/serve.py"}


def test_the_program_starts_without_the_command_line_of_httpx() -> None:
    """It would take a terminal library along, which takes as long to import as half of httpx."""
    code = "import sys, lmsconf.__main__, httpx; print([m for m in ('rich', 'pygments') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_values_are_structs() -> None:
    """msgspec makes a struct in hundredths of the time that the standard decorator takes, which is that of a plan."""
    using = [path for path in modules() if re.search(r"\bdataclasses\b", path.read_text(encoding="utf-8"))]
    assert using == []


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    """450 lines at most: a module with two subjects is two modules. Nobody reads what fastjsonschema makes."""
    for path in modules():
        is_made = path == ROOT / "manifest" / "schema_code.py"
        assert is_made or len(path.read_text(encoding="utf-8").splitlines()) <= 450, path
