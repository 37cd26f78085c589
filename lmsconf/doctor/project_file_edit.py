"""Write dialect keys into a project file in place, so that comments and layout are kept.

The new text is parsed again before it is returned. If it does not have exactly the intended meaning, which is possible
with unusual layouts, it is rejected, and the lines to paste are shown instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.api.spec.dialect_keys import Value
from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.manifest.edit.text_edits import format_scalar
from lmsconf.manifest.edit.tree_builder import Node
from lmsconf.manifest.edit.yaml_editor import YamlEditor, refused_edit, replace_value
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.canonical_json import Json

_KEY: Final = "dialect"


class UneditableLayout(LmsconfError):
    """The file has a layout that cannot be edited safely."""

    code = "probe/not-written"


def set_dialect_keys(text: str, dialect: Mapping[str, Value], workspace: str) -> str:
    """Return the project file with these keys: at the workspace if it declares the key, otherwise for all workspaces.

    Raises UneditableLayout.
    """
    if not isinstance(_body(text), dict):
        raise UneditableLayout("the project file is not a single mapping", hint="Fix it first: lmsconf validate")
    end = "\r\n" if "\r\n" in text else "\n"
    page = YamlEditor("", (text if text.endswith("\n") else text + end).encode())
    (root,) = page.roots
    try:
        rest = {key: value for key, value in dialect.items() if not _set(page, root, key, value, workspace)}
        edited, wanted = page.edited_bytes().decode(), root.value()
    except ProblemsFound as refused:
        raise _unsafe(dialect) from refused
    if rest and isinstance(wanted, dict):
        indent = " " * (root.parts[0][0].column - 1 if root.parts else 0)
        edited += "".join(f"{indent}{line}{end}" for line in _lines(rest))
        wanted = {**wanted, _KEY: dict(rest)}
    if _body(edited) != wanted:
        raise _unsafe(dialect)
    return edited


def _set(page: YamlEditor, root: Node, key: str, value: Value, workspace: str) -> bool:
    """Note a key's new value in the section that declares it, or in that for all workspaces; False if there is none.

    The section of the workspace takes precedence. Raises ProblemsFound.
    """
    own = _at(root, "workspaces", workspace, _KEY)
    section = own if own is not None and own.get(key) is not None else _at(root, _KEY)
    if section is None:
        return False
    if section.kind != "mapping":
        raise refused_edit("this is not a mapping", page.location_of(section))
    page.refuse_shared(section)
    node = section.get(key)
    if node is None:
        section.added_keys[key] = value
    else:
        replace_value(page, node, value)
    return True


def _at(node: Node | None, *trail: str) -> Node | None:
    for step in trail:
        node = node and node.get(step)
    return node


def _body(text: str) -> Json:
    """The parsed value of the text; None if it has problems."""
    reading = read_yaml("", text)
    return None if reading.problems or len(reading.documents) != 1 else reading.documents[0].value


def _lines(dialect: Mapping[str, Value]) -> list[str]:
    return [f"{_KEY}:", *(f"  {key}: {format_scalar(value, in_brackets=False)}" for key, value in dialect.items())]


def _unsafe(dialect: Mapping[str, Value]) -> UneditableLayout:
    lines = "\n".join(_lines(dialect))
    return UneditableLayout("the project file cannot be edited safely", hint=f"Add this to it:\n{lines}")
