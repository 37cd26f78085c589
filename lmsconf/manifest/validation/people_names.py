"""What was probably meant by a text where the e-mail of a person is required: a set, or an e-mail of the manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.manifest.expand.sets import PEOPLE_SETS, SET
from lmsconf.manifest.validation.schema_finding import SchemaFinding
from lmsconf.manifest.validation.schema_samples import quote_if_needed
from lmsconf.manifest.yaml.read_result import Document
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import casefold_name, nearest_email, nearest_name

_PLAIN: Final = "Write the person's e-mail."
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")


_MOST: Final = 20
"""The different texts that get a hint of their own: looking for what each of thousands means would take minutes."""


class PeopleNames:
    """The sets of people and the e-mails in manifests, read only for a hint, once."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._hints: dict[str, str] = {}

    def with_hint(self, problem: Problem, finding: SchemaFinding) -> Problem:
        """Return the problem of a text that is not an e-mail with the set or the e-mail that it probably means."""
        text = finding.value
        if "@" not in str(finding.schema.get("pattern", "")) or not isinstance(text, str) or "@" in text:
            return problem
        if text not in self._hints and len(self._hints) < _MOST:
            self._hints[text] = self._hint(text)
        return replace(problem, hint=self._hints.get(text, _PLAIN))

    def _hint(self, text: str) -> str:
        same = next((name for name in self._sets if casefold_name(name) == casefold_name(text)), None)
        email = nearest_email(text, self._emails)
        near = same or (None if email else nearest_name(text, self._sets))
        if near is not None:
            return f"Did you mean {{{SET}: {quote_if_needed(near)}}}?"
        return _PLAIN if email is None else f'{_PLAIN} Did you mean "{email}"?'

    @cached_property
    def _sets(self) -> Sequence[str]:
        return [name for document in self._documents for name in _sets_in(document.value)]

    @cached_property
    def _emails(self) -> Sequence[str]:
        texts = (text for document in self._documents for text in _texts(document.value))
        return list(dict.fromkeys(text for text in texts if _EMAIL.fullmatch(text)))


def _sets_in(value: Json) -> Iterator[str]:
    sets = value.get(PEOPLE_SETS) if isinstance(value, dict) else None
    yield from sets if isinstance(sets, dict) else ()


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _texts(item)
