"""The hint to state values of the dialect in the project file, as lines to paste."""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.manifest.edit.yaml_text import format_scalar


def dialect_hint(values: Mapping[str, str | int], purpose: str = ", and apply again") -> str:
    """Return the hint. purpose: what follows on `Set in the project file`."""
    lines = (f"    {key}: {format_scalar(value, in_brackets=False)}" for key, value in sorted(values.items()))
    return "\n".join([f"Set in the project file{purpose}:", "  dialect:", *lines])
