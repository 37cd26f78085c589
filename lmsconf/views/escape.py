"""The one escape for terminals and logs: what would act on them becomes visible text."""

from __future__ import annotations

import re

# Controls (C0, C1, soft hyphen), marks that reorder or hide text, the Unicode line ends, half surrogate pairs, tags.
# The joiners U+200C and U+200D stay: Persian and family emoji need them.
_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_COMMAND = re.compile(r"^(\s*):(?=:)|##(?=\[)")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe(text: str) -> str:
    r"""One line that no terminal, log or reader's eye takes for anything else: an ESC reads `\x1b`.

    A `::` where the text starts, and `##[` anywhere, would be obeyed by a CI runner as a command; they are broken too.
    """
    return _COMMAND.sub(_broken, _ACTIVE.sub(_visible, text))


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in _SHORT:
        return _SHORT[found[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _broken(found: re.Match[str]) -> str:
    return "#\\x23" if found[0] == "##" else f"{found[1]}\\x3a"
