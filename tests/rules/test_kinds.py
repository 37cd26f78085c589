"""A kind owns all that is its own: other modules reach it through Kind, and one table alone spells the names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from lmsconf.kinds import all_kinds
from lmsconf.planner.kind import Kind

ROOT = Path(__file__).parent.parent.parent / "lmsconf"
TABLE = "kinds/shared/kind_names.py"
"""The one module that spells the names of kinds."""
OWNERS = ("kinds", "api", "sandbox")
"""The packages that may know single kinds: the kinds themselves, and both sides of the service's API."""
FOLDERS = {kind.section: type(kind).__module__.split(".")[-2] for kind in all_kinds().values()}

JUSTIFIED = {
    "cli/wrong_usage.py": ({"user", "users", "group", "groups"}, "commands that people try"),
    "documents/effect_values.py": ({"groups"}, "a key of `effects` in plan files"),
    "api/spec/candidate_values.py": ({"users"}, "a key that the body of a request may have"),
    "kinds/content_target/export.py": ({"user", "group", "smart_group"}, "keys of an audience under `assign_to`"),
    "kinds/content_target/types.py": ({"user", "group", "smart_group"}, "the same, and words in a `targetType`"),
    "kinds/manual_group/kind.py": ({"group"}, "its display name"),
    "manifest/validation/suggestions.py": (
        {"users", "groups", "smart_groups", "custom_fields", "content_targets", "user", "group"},
        "sections that people call by other names, and keys that they write instead of a plain text",
    ),
    "render/effects_wording.py": ({"group", "groups"}, "how groups and smart groups are counted together"),
}
"""Module → the words in it that are also the name or section of a kind, and what they are there."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def spelled(tree: ast.Module) -> set[str]:
    """Every text of a module, also in parts of an f-string. A help text or message that shows an example is longer
    than the name in it, and so no name itself."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def imported_from_kinds(tree: ast.Module) -> Iterator[str]:
    """The modules below `lmsconf.kinds` that a module imports, as `user.values`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from lmsconf.kinds import user` imports a folder, and `from lmsconf.kinds import all_kinds` none.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        inside = (name.removeprefix("lmsconf.kinds.") for name in names if name.startswith("lmsconf.kinds."))
        yield from (name for name in inside if (ROOT / "kinds" / name.split(".")[0]).is_dir())


def faults(module: str, tree: ast.Module) -> set[str]:
    """What of a module knows a single kind, other than the words that are justified."""
    package, _, inside = module.partition("/")
    if module == TABLE or package in ("api", "sandbox"):
        return set()
    folder = inside.partition("/")[0] if package == "kinds" and "/" in inside else None
    words = {*all_kinds(), *(section for section, home in FOLDERS.items() if home != folder)}
    found = spelled(tree) & words - JUSTIFIED.get(module, (set(), ""))[0]
    if folder is None or folder == "shared":
        found |= {name for name in imported_from_kinds(tree) if name.split(".")[0] != "shared"}
    if package not in OWNERS:
        found |= {name for name in imported_from_kinds(tree) if name.startswith("shared.kind_names")}
    return found


def test_no_module_knows_a_kind_that_is_not_its_own() -> None:
    """Outside of its folder a kind is named only in the table of names, and only kinds import from a kind's folder.

    No module outside `lmsconf.kinds` imports the table.
    """
    found = {module: names for module, tree in modules() if (names := faults(module, tree))}
    assert found == {}


def test_words_that_are_justified_are_there() -> None:
    """A word that a module does not hold any more needs no justification."""
    texts = {module: spelled(tree) for module, tree in modules() if module in JUSTIFIED}
    assert {module: words - texts[module] for module, (words, _) in JUSTIFIED.items() if words - texts[module]} == {}


def test_a_kind_has_no_public_names_that_kind_lacks() -> None:
    """A method that Kind does not have is never called: a hook that was renamed there would be lost unseen."""
    known = {*dir(Kind), *Kind.__annotations__}
    unknown = {name: sorted(vars(type(kind)).keys() - known) for name, kind in all_kinds().items()}
    assert {name: [one for one in names if not one.startswith("_")] for name, names in unknown.items() if names} == {}
