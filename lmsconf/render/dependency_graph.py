"""The dependency graph as Mermaid and DOT: undeclared nodes are dashed, edges of mandatory assignments thick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lmsconf.model.address import Address
from lmsconf.model.declarations import DependencyGraph
from lmsconf.model.names import escape_invisible
from lmsconf.render.resource_wording import count_noun, kind_noun

_BRACKETS: Final = {"parallelogram": ("[/", "/]"), "ellipse": ("([", "])"), "note": ("[[", "]]")}
"""Shape of a node in DOT → the brackets of a similar one in Mermaid."""
_BOX: Final = ("[", "]")


def graph_mermaid(network: DependencyGraph) -> str:
    """Return a Mermaid flowchart, which GitHub and GitLab render in Markdown."""
    ids = {address: f"n{number}" for number, address in enumerate(network.nodes)}
    lines = ["flowchart LR"]
    for address, id in ids.items():
        opens, closes = _BRACKETS.get(network.shapes[address], _BOX)
        kind = "" if _is_declared(address, network) else ":::elsewhere"
        lines.append(f'  {id}{opens}"{_mermaid(_label(address))}"{closes}{kind}')
    lines += [f"  {ids[edge.leans]} {'==>' if edge.mandatory else '-->'} {ids[edge.on]}" for edge in network.edges]
    lines.append("  classDef elsewhere stroke-dasharray: 4 3")
    lines += [f"  %% {note}" for note in _notes(network)]
    return "\n".join(lines) + "\n"


def graph_dot(network: DependencyGraph) -> str:
    """Return a DOT digraph, for Graphviz."""
    ids = {address: f"n{number}" for number, address in enumerate(network.nodes)}
    lines = ["digraph lmsconf {", "  rankdir=LR;", '  node [fontname="sans-serif"];']
    lines += [f"  // {note}" for note in _notes(network)]
    for address, id in ids.items():
        style = "" if _is_declared(address, network) else ", style=dashed"
        lines.append(f"  {id} [label={_dot(_label(address))}, shape={network.shapes[address]}{style}];")
    for edge in network.edges:
        thick = " [penwidth=2]" if edge.mandatory else ""
        lines.append(f"  {ids[edge.leans]} -> {ids[edge.on]}{thick};")
    return "\n".join([*lines, "}"]) + "\n"


GRAPH_VIEWS: Final[Mapping[str, Callable[[DependencyGraph], str]]] = {"mermaid": graph_mermaid, "dot": graph_dot}


def _is_declared(address: Address, network: DependencyGraph) -> bool:
    """Whether the node is declared; the node `everyone` exists without a declaration and counts as declared."""
    return address in network.declared or not address.text


def _label(address: Address) -> str:
    """Return a node's label: name and kind."""
    if not address.text:
        return address.kind
    return f"{address.name} ({kind_noun(address.kind)})"


def _notes(network: DependencyGraph) -> list[str]:
    return [
        f"{count_noun(number, relation.noun)} to single {relation.plural} left out"
        for relation, number in network.left_out.items()
    ]


def _mermaid(text: str) -> str:
    """Escape a quoted Mermaid label: quotes, HTML and Markdown characters become numeric entities."""
    return "".join(f"#{ord(char)};" if char in '#"`*_~[]<>&;\\' else char for char in escape_invisible(text))


def _dot(text: str) -> str:
    """Return a quoted DOT string."""
    return '"' + escape_invisible(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
