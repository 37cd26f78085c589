"""Characters that are invisible, or that control the terminal or page they are printed on."""

from __future__ import annotations

from typing import Final

# Controls (C0, C1, soft hyphen), marks that reorder or hide text, invisible letters and blanks, Unicode line ends, lone
# surrogates, tags, and noncharacters.
UNSEEN: Final = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The content of a character class, `[…]`, of a regular expression."""
