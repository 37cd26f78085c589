"""The documentation of a manifest key, as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

import msgspec

from lmsconf.documents.document import TOOL, render_json
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import ExplainedKey, KeyExplanation

_WIDTH: Final = 96
EXPLAIN_FORMAT: Final = "lmsconf.explain/1"


def explain_text(explanation: KeyExplanation) -> str:
    """Render a position in a manifest: path, type, meaning, and the keys below it."""
    lines = [f"{explanation.path or 'manifest'}: {explanation.type}"]
    for paragraph in explanation.meaning.split("\n\n") if explanation.meaning else ():
        lines += ["", *textwrap.wrap(paragraph, _WIDTH, initial_indent="  ", subsequent_indent="  ")]
    if explanation.keys:
        lines += ["", "Keys:"]
        wide = max(len(key.name) for key in explanation.keys)
        for key in explanation.keys:
            lines += _key(key, wide)
    return "\n".join(lines) + "\n"


def _key(key: ExplainedKey, wide: int) -> Iterator[str]:
    indent = " " * (wide + 4)
    yield from textwrap.wrap(
        f"{key.type}{', needed' if key.needed else ''}",
        _WIDTH,
        initial_indent=f"  {key.name:{wide}}  ",
        subsequent_indent=indent,
    )
    yield from textwrap.wrap(key.meaning, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def explain_json(explanation: KeyExplanation) -> str:
    """Return the same as the JSON document `lmsconf.explain/1`."""
    return render_json(
        {"format": EXPLAIN_FORMAT, "tool": TOOL, **cast("dict[str, Json]", msgspec.to_builtins(explanation))}
    )


EXPLAIN_VIEWS: Final[Mapping[str, Callable[[KeyExplanation], str]]] = {"text": explain_text, "json": explain_json}
