"""Long texts and lists of cases, which are files in the folder `texts` beside the test."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest


def text_of(module: str, name: str) -> str:
    """A text: the seed of a workspace, or manifests. module: the `__file__` of the test."""
    return (Path(module).parent / "texts" / name).read_text(encoding="utf-8")


def listed_cases(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a test its cases, which are listed below its name in the JSON file called as its module.

    A case has a value for each of the names, or is an object of its `id` and that list, its `case`.
    """

    def with_cases(test: Callable[..., None]) -> Callable[..., None]:
        listed = _tables(Path(test.__globals__["__file__"]))[test.__name__]
        return pytest.mark.parametrize(names if len(names) > 1 else names[0], [_case(one) for one in listed])(test)

    return with_cases


def _case(case: Any) -> Any:
    return pytest.param(*case["case"], id=case["id"]) if isinstance(case, dict) and "case" in case else case


@cache
def _tables(module: Path) -> Any:
    return json.loads((module.parent / "texts" / f"{module.stem}.json").read_text(encoding="utf-8"))
