"""Problems of a load as a whole: conflicts of declarations, what was not read, nothing to load; order and limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity, SourceLocation, shorten
from lmsconf.kinds.kind_table import KINDS, check_declarations
from lmsconf.manifest.nodes import EMAIL, EntrySourceMap, Map, node_texts
from lmsconf.manifest.schema_check import ABSENT, SchemaFinding, SchemaValidator, properties, sections_validator
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import (
    casefold_name,
    did_you_mean,
    grouped,
    known_names,
    nearest_email,
    nearest_name,
    normalize_name,
)


def find_conflicts(
    declared: Sequence[DesiredResource[Any]],
    absent: Sequence[DeleteEntry[Any]],
    partial: Sequence[DesiredResource[Any]] = (),
) -> Iterator[Problem]:
    """Yield every problem between declarations that can be found without the workspace, kinds' own checks included.

    partial: declarations without keys that have errors. Only the kinds' own checks look at them, since the key that
    sets two of one name apart may be missing.
    """
    for resource, first in _pairs(declared, lambda one: one.address, same=True):
        yield Problem(
            code="manifest/declared-twice",
            message=f"{resource.address}: declared twice",
            hint=f"See {first.source}. Keep one of the two, or limit each to other workspaces with `only_in`.",
            source=resource.source,
            address=str(resource.address),
        )
    yield from _both(declared, absent)
    # Relations have no name of their own: two contents may differ by case alone. Others may be told apart by `id:`.
    named = (one for one in declared if not one.pins and not KINDS[one.address.kind].is_relation)
    for resource, other in _pairs(named, lambda one: (one.address.kind, casefold_name(one.address.text)), same=False):
        yield Problem(
            code="name/look-alike",
            message=f"{resource.address}: looks like {other.address}",
            hint=f"See {other.source}. Write one of the two names in both places, or pin one with `id:`.",
            source=resource.source,
            address=str(resource.address),
        )
    by_kind = grouped((*partial, *declared), lambda one: one.address.kind)
    yield from check_declarations({name: by_kind.get(name, []) for name in KINDS})


def _both(declared: Sequence[DesiredResource[Any]], absent: Sequence[DeleteEntry[Any]]) -> Iterator[Problem]:
    deleted = grouped(absent, lambda entry: entry.address)
    for resource in declared:
        for entry in deleted.get(resource.address, ()):
            if resource.shares_workspace(entry):
                yield Problem(
                    code="manifest/declared-and-absent",
                    message=f"{entry.address}: both declared and absent",
                    hint=f"It is declared at {resource.source}. Keep one of the two.",
                    source=entry.source,
                    address=str(entry.address),
                )


def _pairs(
    declared: Iterable[DesiredResource[Any]], key: Callable[[DesiredResource[Any]], Hashable], *, same: bool
) -> Iterator[tuple[DesiredResource[Any], DesiredResource[Any]]]:
    """Yield each resource with the first one before it that has an equal key and the same address, or another one.

    same: whether the address is to be the same. Both apply to some workspace.
    """
    earlier: dict[Hashable, list[DesiredResource[Any]]] = defaultdict(list)
    for resource in declared:
        before = earlier[key(resource)]
        alike = (one for one in before if (one.address == resource.address) is same and resource.shares_workspace(one))
        first = next(alike, None) if before else None
        if first is not None:
            yield resource, first
        before.append(resource)


def shape_problems(
    shape: SchemaValidator, places: EntrySourceMap, within: str = "", *, area: str = "manifest"
) -> list[Problem]:
    """Return the problems of a value against a schema; within and area: as in `problems_of`."""
    findings = shape.validate(places.value)
    if not findings:
        return []
    from lmsconf.manifest.schema_messages import problems_of  # only for a problem

    return [problem for finding in findings for problem in problems_of(finding, places, within, area=area)]


_AN_EMAIL: Final = "Write the person's e-mail."
_MOST_HINTS: Final = 20
"""The texts that get a hint of their own: looking for what each of thousands means would take minutes."""


class PeopleNames(Struct, dict=True):
    """The sets of people and the e-mails in manifests, read only for a hint, once."""

    documents: Sequence[EntrySourceMap] = ()
    _hints: dict[str, str] = field(default_factory=dict)

    def with_hint(self, problem: Problem, finding: SchemaFinding) -> Problem:
        """Return the problem of a text that is not an e-mail, with the set or e-mail that it may mean."""
        text = finding.value
        if "@" not in str(finding.schema.get("pattern", "")) or not isinstance(text, str) or "@" in text:
            return problem
        if text not in self._hints and len(self._hints) < _MOST_HINTS:
            self._hints[text] = self._hint(text)
        return replace(problem, hint=self._hints.get(text, _AN_EMAIL))

    def _hint(self, text: str) -> str:
        same = next((name for name in self._sets if casefold_name(name) == casefold_name(text)), None)
        email = nearest_email(text, self._emails)
        near = same or (None if email else nearest_name(text, self._sets))
        if near is not None:
            from lmsconf.manifest.suggestions import quote_if_needed  # only for a problem

            return f"Did you mean {{set: {quote_if_needed(near)}}}?"
        return _AN_EMAIL if email is None else f'{_AN_EMAIL} Did you mean "{email}"?'

    @cached_property
    def _sets(self) -> Sequence[str]:
        return [name for one in self.documents for name in members(members(one.value).get("people_sets"))]

    @cached_property
    def _emails(self) -> Sequence[str]:
        return list(
            dict.fromkeys(text for one in self.documents for text, _ in node_texts(one.value) if EMAIL.fullmatch(text))
        )


class UndeclaredNames(Struct):
    """What was not read because of an error that is reported already.

    everything: a file could not be read whole. sections: sections of which a name may be missing. fields: names of
    fields whose choices may be missing; None for a field without a name.
    """

    everything: bool = False
    sections: set[str] = field(default_factory=set)
    fields: set[str | None] = field(default_factory=set)

    def doubt_sections(self, finding: SchemaFinding) -> None:
        """A section of a manifest has the wrong shape, or a name that may be meant for one."""
        keys, known = concerned_keys(finding), properties(sections_validator().schema)
        self.everything |= keys is None
        self.sections.update(filter(None, (nearest_name(key, known) for key in keys or ())))

    def doubt_field(self, body: Json) -> None:
        """An entry that declares a field has the wrong shape."""
        name = body.get("name") if isinstance(body, dict) else None
        self.fields.add(normalize_name(name) if isinstance(name, str) else None)

    def may_have_field(self, name: str) -> bool:
        """Whether the choices of this field may be declared where they were not read."""
        return self.everything or bool(self.sections) or not self.fields.isdisjoint((normalize_name(name), None))


def concerned_keys(finding: SchemaFinding) -> Collection[str] | None:
    """Return the keys of a mapping that a finding in it is about; None if it is about the whole."""
    if finding.path:
        return [str(finding.path[0])]
    if finding.keyword == "additionalProperties":
        return cast("Mapping[str, Json]", finding.value).keys() - properties(finding.schema).keys()
    return None


def valid_part(shape: SchemaValidator, body: Json, findings: Sequence[SchemaFinding]) -> Map | None:
    """Return an entry without the keys that its findings are about; None if the rest does not fit the schema either.

    A key is left out whole: of a list with one wrong item nobody can tell what it would have named.
    """
    concerned = [*map(concerned_keys, findings)]
    if not isinstance(body, Map) or None in concerned:
        return None
    part = body.without(*chain.from_iterable(filter(None, concerned)))
    return None if shape.validate(part) else part


_SHOWN: Final = 5
ENOUGH: Final = 1_000
"""Loading stops after this many errors; the others are not reported."""


def sort_and_limit(problems: Iterable[Problem]) -> list[Problem]:
    """Sort the problems by source location; beyond ENOUGH errors, cut the list and append a problem that reports so."""
    ordered = sorted(problems, key=lambda problem: (problem.source or SourceLocation(""), problem.message))
    if sum(problem.is_error for problem in ordered) <= ENOUGH:
        return ordered
    return [
        *ordered[:ENOUGH],
        Problem(
            code="manifest/too-many-problems",
            message=f"the manifests have more than {ENOUGH:,} errors; the others are not listed",
            source=ordered[ENOUGH - 1].source,
        ),
    ]


def unknown_workspace_problems(places: EntrySourceMap, known: Collection[str] | None) -> Iterator[Problem]:
    """Warn about workspaces that an entry names and the project does not have.

    The entry would apply to no workspace, or its `id` would be unused.
    """
    if known is None:
        return
    for key in ("only_in", "id"):
        value = members(places.value).get(key)
        for name in cast("Iterable[str]", value) if isinstance(value, list | dict) else ():
            if name not in known:
                yield Problem(
                    code="reference/unknown-workspace",
                    severity=Severity.WARNING,
                    message=f'{key}: there is no workspace "{shorten(name)}"',
                    hint=did_you_mean(name, known) or known_names(known),
                    source=places.key(key, name) if isinstance(value, dict) else places.find(name, key),
                )


def nothing_declared_problem(folder: str, files: Sequence[str], documents: Sequence[EntrySourceMap]) -> Problem:
    """Return the problem of a folder without manifests, or of manifests that declare nothing."""
    if not files:
        return Problem(
            code="manifest/nothing",
            message="there is no manifest here",
            hint="Manifests are files that end in .yaml or .yml; names that begin with . or _ are skipped.",
            source=SourceLocation(folder),
        )
    is_single = len(files) == 1
    shown = ", ".join(files[:_SHOWN]) + (f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else "")
    empty = f"{'is' if is_single else 'are'} empty, or only comments"
    why = f"hold{'s' * is_single} only sets or windows, or keys that are ignored" if documents else empty
    return Problem(
        code="manifest/nothing",
        message=f"nothing is declared: {shown} {why}",
        hint=f"Declare the desired state under one of {', '.join(kind.section for kind in KINDS.values())}, {ABSENT}.",
        source=SourceLocation(files[0], 1, 1) if is_single else SourceLocation(files[0]),
    )
