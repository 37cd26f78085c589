"""What was probably meant by a text where the e-mail of a person is required: a set, or an e-mail of the manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from lmsconf.errors import Problem
from lmsconf.manifest.expand.sets import PEOPLE_SETS, SET
from lmsconf.manifest.validation.schema_finding import SchemaFinding
from lmsconf.manifest.validation.schema_samples import quote_if_needed
from lmsconf.manifest.yaml.read_result import Document
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import casefold_name, nearest_email, nearest_name
from lmsconf.support.lazy_dataclass import dataclass

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")


@dataclass(frozen=True, slots=True)
class PeopleNames:
    """The sets of people and the e-mails in manifests, read only for a hint."""

    documents: Sequence[Document] = ()

    def with_hint(self, problem: Problem, finding: SchemaFinding) -> Problem:
        """Return the problem of a text that is not an e-mail with the set or the e-mail that it probably means."""
        text = finding.value
        if "@" not in str(finding.schema.get("pattern", "")) or not isinstance(text, str) or "@" in text:
            return problem
        return replace(problem, hint=self._hint(text))

    def _hint(self, text: str) -> str:
        sets = [name for document in self.documents for name in _sets_in(document.value)]
        same = next((name for name in sets if casefold_name(name) == casefold_name(text)), None)
        email = nearest_email(text, self._emails())
        near = same or (None if email else nearest_name(text, sets))
        if near is not None:
            return f"Did you mean {{{SET}: {quote_if_needed(near)}}}?"
        return "Write the person's e-mail." + ("" if email is None else f' Did you mean "{email}"?')

    def _emails(self) -> Iterator[str]:
        for document in self.documents:
            yield from (text for text in _texts(document.value) if _EMAIL.fullmatch(text))


def _sets_in(value: Json) -> Iterator[str]:
    sets = value.get(PEOPLE_SETS) if isinstance(value, dict) else None
    yield from sets if isinstance(sets, dict) else ()


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _texts(item)
