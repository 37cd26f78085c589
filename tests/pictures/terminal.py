"""A plan in text as a terminal shows it, drawn as an SVG whose text can still be read, searched and copied."""

from typing import Final
from xml.sax.saxutils import escape

from markdown_it import MarkdownIt

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


# A comment in Markdown as it looks on a pull request.


_COMMENT_STYLE: Final = """
body { margin: 0; padding: 24px; background: #fff; color: #1f2328; font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif }
main { border: 1px solid #d1d9e0; border-radius: 6px; overflow: hidden }
header { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; color: #59636e }
header b, header a { color: #1f2328; text-decoration: none }
article { padding: 0 16px 8px }
h3 { font-size: 1.25em } h4 { font-size: 1em }
table { border-collapse: collapse } th, td { padding: 4px 13px; border: 1px solid #d1d9e0 }
code { background: #eff1f3; border-radius: 6px; padding: .15em .4em; font: 85% "DejaVu Sans Mono", monospace }
pre { background: #f6f8fa; border-radius: 6px; padding: 12px } pre code { background: none; padding: 0 }
details { margin: 6px 0 }
"""
_OPENED: Final = 2
_NO_ENTRY: Final = (
    '<svg width="14" height="14" viewBox="0 0 14 14" style="vertical-align: -2px"><circle cx="7" cy="7" r="7" '
    'fill="#cf222e"/><rect x="3" y="6" width="8" height="2" fill="#fff"/></svg>'
)
"""The sign as GitHub draws it: the machine that takes the picture may have no font for it."""


def page(markdown: str) -> str:
    """A page with the comment on it; the first details are open, as if somebody had just looked into them."""
    body = MarkdownIt("commonmark").enable("table").render(markdown).replace("<details>", "<details open>", _OPENED)
    body = body.replace("⛔", _NO_ENTRY)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>A comment</title><style>{_COMMENT_STYLE}</style>'
        '<body><main id="main"><header><b>lms-bot</b> commented <a href="#main">just now</a></header>'
        f"<article>{body}</article></main></body></html>"
    )
