"""A plan in text as a terminal shows it, drawn as an SVG whose text can still be read, searched and copied."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape

_CHARACTER: Final = 8.4
_LINE: Final = 19
_MARGIN: Final = 20
_COLOURS: Final = {"+": "#7ee787", "~": "#e3b341", "-": "#ff7b72"}
_STYLE: Final = "font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def drawn(text: str, label: str) -> str:
    """The text as a picture; what a `<text>` of it holds is the text again, line breaks included."""
    lines = text.splitlines()
    width = round(2 * _MARGIN + _CHARACTER * max(map(len, lines)))
    height = 2 * _MARGIN + _LINE * len(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}">\n'
        f"<title>{escape(label)}</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>\n'
        f'<text xml:space="preserve" style="{_STYLE}" fill="#c9d1d9">{_spans(lines)}</text>\n'
        "</svg>\n"
    )


def _spans(lines: list[str]) -> str:
    """One span a line, each at its own height. The line break stands inside: between spans it would be drawn."""
    return "".join(
        f'<tspan x="{_MARGIN}" y="{_MARGIN + _LINE * (number + 0.75):g}"{_colour(line)}>{escape(line)}\n</tspan>'
        for number, line in enumerate(lines)
    )


def _colour(line: str) -> str:
    """As on a terminal: green comes, yellow changes, red goes."""
    colour = _COLOURS.get(line.strip()[:1])
    return f' fill="{colour}"' if colour else ""
