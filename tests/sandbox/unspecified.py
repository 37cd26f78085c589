"""Marks the tests that show what the sandbox does where the specification is silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


def chosen(*names: str) -> Callable[[Test], Test]:
    """This test shows the choices of those names."""
    assert names
    return lambda test: test
