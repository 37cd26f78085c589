"""What an option or argument completes to in a shell, by the name of a function of `completion_values`.

Every command imports this module, and only completion imports the values.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    Complete: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]"


def completes(values: str) -> Complete:
    """Return the click callback that completes to what the function `values` of `completion_values` returns."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        function = getattr(import_module("lmsconf.cli.completion_values"), values)
        return cast("list[CompletionItem[str]]", function(ctx.obj, incomplete))

    return complete
