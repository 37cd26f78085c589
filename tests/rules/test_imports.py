"""Who may import whom, and which module is the door to which library."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent / "lmsconf"

MAY_IMPORT = {
    "errors": set(),
    "redact": set(),
    "endpoint": {"errors"},
    "resources": set(),
    "files": {"errors"},
    "git": {"errors"},
    "wire": {"errors", "resources"},
    "core": {"errors"},
    "kinds": {"core", "wire", "errors"},
    "manifest": {"core", "errors"},
    "approvals": {"errors", "files"},
    "credential": {"approvals", "endpoint", "errors", "redact"},
    "project": {"core", "endpoint", "errors", "manifest", "credential", "resources"},
    "trust": {"core", "errors", "project"},
    "discovery": {"errors", "git", "project"},
    "settings": {"approvals", "core", "credential", "discovery", "endpoint", "errors", "manifest", "project", "trust"},
    "views": {"core", "errors"},
    "client": {"core", "endpoint", "wire", "errors", "redact"},
    "sandbox": {"wire", "errors", "resources"},
    "connect": {"endpoint", "settings", "client", "sandbox", "wire", "errors"},
    "journal": {"core", "errors", "files", "redact"},
    "settling": {"core", "errors", "kinds"},
    "granting": {"client", "core", "errors", "kinds", "settling"},
    "sending": {"client", "core", "errors", "granting", "kinds", "settling"},
    "seeing": {
        *("compared_settings", "comparing", "connect", "core", "errors", "kinds", "manifest", "project", "settings"),
    },
    "readback": {"core", "errors", "settling"},
    "workspace": {"core", "errors", "granting", "journal", "kinds", "readback", "seeing", "sending", "settling"},
    "locking": {"connect", "core", "errors", "kinds", "settings", "settling"},
    "exporting": {"core", "errors", "kinds", "manifest"},
    "comparing": {"core", "errors", "exporting", "kinds"},
    "compared_settings": {"core", "kinds", "settings"},
    "basis": {
        *("compared_settings", "comparing", "core", "errors", "git", "manifest", "project", "seeing", "settings"),
        "trust",
    },
    "offline": {"core", "errors", "kinds"},
    "starting": {"resources"},
    "editing": {"core", "errors", "exporting", "files", "kinds", "manifest"},
    "doctor": {"client", "core", "errors", "kinds", "manifest", "seeing", "settings", "views", "wire"},
    "apply": {
        *("basis", "connect", "core", "errors", "exporting", "files", "journal", "kinds", "locking", "seeing"),
        *("settings", "settling", "workspace"),
    },
    "cli": {
        *("apply", "basis", "client", "connect", "core", "credential", "discovery", "doctor", "editing", "endpoint"),
        *("errors", "exporting", "files", "journal", "kinds", "locking", "manifest", "offline", "project", "redact"),
        *("sandbox", "comparing", "seeing", "settings", "settling", "starting", "trust", "views", "wire", "workspace"),
    },
}
"""Package or module → what else of ours it may import. The core knows neither the kinds nor HTTP."""

DOORS = {
    "httpx": {
        *("client/http.py", "client/client.py", "client/deadline.py", "client/fate.py", "sandbox/transport.py"),
    },
    "httpcore": {"client/deadline.py"},
    "yaml": {"editing/tree.py", "manifest/files.py", "sandbox/plainyaml.py", "sandbox/seed.py"},
    "jsonschema": {"manifest/check.py"},
    "fastjsonschema": {"client/arguments.py", "manifest/check.py", "sandbox/checks.py"},
    "deepdiff": {"core/diff.py"},
    "sqlite3": {"sandbox/store.py"},
    "rich": {"cli/progress.py"},
    "subprocess": {"credential.py", "git.py"},
}
"""Library → the only modules that may import it. httpx's types may be named where a transport is handed in."""


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


def package(path: Path) -> str:
    """The package, or the module beside the packages, that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_import_what_they_may(path: Path) -> None:
    """A package imports only those that the table gives it."""
    if path.parent == ROOT and path.name.startswith("__"):
        return
    mine = package(path)
    ours = {name.split(".")[1] for name in imported(path) if name.startswith("lmsconf.")}
    assert ours - {mine} <= MAY_IMPORT[mine], path


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_libraries_have_one_door(path: Path) -> None:
    """A library is imported only by the modules that are its door."""
    name = str(path.relative_to(ROOT))
    for library in {found.partition(".")[0] for found in imported(path)} & DOORS.keys():
        assert name in DOORS[library], f"{name} imports {library}"


def test_the_core_names_no_kind() -> None:
    """Core and manifest work for any kind: none of their texts is the name of one that is no common word."""
    for folder in ("core", "manifest"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert node.value not in {"custom_field", "smart_group", "content_target"}, (path, node.value)


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    """450 lines at most: a module with two subjects is two modules."""
    for path in modules():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path
