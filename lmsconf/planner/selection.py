"""Which part of the manifests is planned: `--only` with its dependencies, `--except`, and `--additive`.

What a person types or pastes as an address is resolved to a shell pattern over addresses. An address as a
view prints it means that resource alone, whatever characters its name has. A section name stands for its
kind, `groups/Sales`; `*`, `?` and `[…]` are wildcards. Words of a view, or a name alone, are understood
where they mean exactly one resource.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, shorten
from lmsconf.kinds.assignment.types import assignment_address
from lmsconf.kinds.kind_table import KINDS, dependencies
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, Kind, spellings, split_address
from lmsconf.kinds.shared.plan_context import BeforeAfter
from lmsconf.model.address import Address, decode_typed, shell_quoted
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import KeyedNames
from lmsconf.model.guards import Policy
from lmsconf.model.names import exact_pattern, matches_pattern, nearest_names, normalize_name

AMBIGUOUS: Final = "select/ambiguous"
"""The code of the error for words that mean several resources."""
_RESTORED: Final = str.maketrans({"\u00a0": " ", "\u00a6": "|", "\u200b": None})
"""What a comment makes of an address: no-break spaces of spaces, `¦` of `|`, and a zero-width space in a mention."""


class ResolvedPattern(Struct, frozen=True):
    """A pattern over addresses. typed: as it was given. matches: whether it matches a known address.

    meant: the addresses that the words may mean, if they mean several.
    """

    typed: str
    pattern: str
    matches: bool
    meant: tuple[Address, ...] = ()


def canonical_pattern(text: str) -> str:
    """Return what was typed as a pattern over addresses: escapes decoded, kind and name as addresses spell them."""
    pattern = normalize_name(decode_typed(text))
    word, slash, rest = pattern.partition("/")
    kind = next((kind for kind in KINDS.values() if slash and word in kind_words(kind)), None)
    if kind is None:
        return f"{CONTENT_TARGET}/{rest} -> *" if slash and word == CONTENT else pattern
    if kind.is_person:
        rest = rest.casefold()
    if parts := split_address(Address(kind.name, rest)):
        rest = rest.removesuffix(parts[1]) + canonical_pattern(parts[1])
    return f"{kind.name}/{rest}"


def kind_words(kind: Kind) -> tuple[str, ...]:
    """Return the words that an address of a kind may begin with: its name, its section, and how views call it."""
    return kind.name, kind.section, kind.noun.replace(" ", "_"), kind.plural.replace(" ", "_")


def resolve_pattern(text: str, known: Sequence[Address]) -> ResolvedPattern:
    """Return the pattern that the text means among these addresses."""
    for typed in dict.fromkeys((text, text.translate(_RESTORED))):
        pattern = canonical_pattern(typed)
        exact = [address for address in known if address == pattern]
        if not exact and any(matches_pattern(address, pattern) for address in known):
            return ResolvedPattern(text, pattern, matches=True)
        has_kind = any(pattern.startswith(f"{kind}/") for kind in KINDS)
        meant = exact[:1] if exact or has_kind else _meant_addresses(typed, known)
        if len(meant) == 1:
            return ResolvedPattern(text, exact_pattern(meant[0]), matches=True)
        if meant:
            return ResolvedPattern(text, pattern, matches=False, meant=tuple(meant))
    return ResolvedPattern(text, canonical_pattern(text), matches=False)


def _meant_addresses(text: str, known: Iterable[Address]) -> list[Address]:
    """Return the resources that views name in these words."""
    words = normalize_name(decode_typed(text))
    # Titles contain addresses, with their backslashes; names alone have none.
    spelled = {name: {words, normalize_name(text), kind.normalize_name(words)} for name, kind in KINDS.items()}
    return sorted(
        {
            address
            for address in known
            if (kind := KINDS.get(address.kind)) and not spelled[kind.name].isdisjoint(spellings(address, kind.noun))
        }
    )


def unresolved_problem(option: str, pattern: ResolvedPattern, known: Sequence[Address]) -> Problem:
    """Return the error for a pattern that matches nothing, or for words that mean several resources."""
    shown, listed = shorten(pattern.typed), pattern.meant[:5]
    near = listed or nearest_addresses(pattern, known)
    arguments = [f"{option} {shell_quoted(address)}".strip() for address in near]
    if listed:
        return Problem(
            code=AMBIGUOUS,
            message=f"{option} {shown}: {len(pattern.meant)} resources match",
            hint=f"Write one of: {'; '.join(arguments)}{'; …' if len(pattern.meant) > len(listed) else '.'}",
        )
    examples = " or ".join(shlex.quote(kind.example) for kind in KINDS.values() if kind.example)
    return Problem(
        code="select/nothing",
        message=f"{option} {shown}: no resource matches",
        hint=f"Did you mean {' or '.join(arguments)}?" if near else f"An address is {examples}; * is a wildcard.",
    )


def nearest_addresses(pattern: ResolvedPattern, known: Sequence[Address]) -> list[Address]:
    """Return the known addresses nearest to a pattern: those of that name in another kind, or else similar ones."""
    kind, slash, rest = pattern.pattern.partition("/")
    name = rest if slash else pattern.pattern
    same = [address for address in known if address.text == name or matches_pattern(address.name, name)]
    if same:
        return sorted(set(same))[:3]
    of_kind = {address.text: address for address in known if address.kind == kind}
    by_name = {address.name: address for address in known} | {str(address): address for address in known}
    has_kind = slash and kind in KINDS
    among = of_kind if has_kind else by_name
    near = nearest_names(name, among, 3) or ([] if has_kind else nearest_names(pattern.pattern, among, 3))
    return list(dict.fromkeys(among[one] for one in near))


def typed_name(text: str, kinds: Iterable[Kind]) -> str:
    """Return the name in a typed address of one of these kinds, `user/bo@acme.example`; any other text as it is."""
    word, slash, rest = text.partition("/")
    return rest if slash and any(word in kind_words(kind) for kind in kinds) else text


class Selection:
    """A predicate: whether an address is planned. Without `--only` and `--except`, all are.

    only, excluded: the patterns that the arguments were resolved to.
    """

    def __init__(
        self,
        declared: Sequence[DesiredResource[Any]],
        policy: Policy,
        *,
        absent: Iterable[DeleteEntry[Any]] = (),
        live: Iterable[Address] = (),
    ) -> None:
        """Resolve the arguments of a policy among what is declared, to be deleted, or live, as far as that is known."""
        known = chain(
            (entry.address for entry in (*declared, *absent)),
            chain.from_iterable(map(_replaced, declared)),
            chain.from_iterable(map(_earlier_addresses, declared)),
            live,
        )
        self._known = list(dict.fromkeys(known if policy.only or policy.excluded else ()))
        self._patterns = {
            option: [resolve_pattern(text, self._known) for text in texts]
            for option, texts in (("--only", policy.only), ("--except", policy.excluded))
        }
        self.only, self.excluded = (tuple(one.pattern for one in given) for given in self._patterns.values())
        by_address = {resource.address: resource for resource in declared}
        self._excluded_addresses = _meant(by_address, self.excluded)
        self._needed = _needs(by_address, self.only) if self.only else set[Address]()

    def __call__(self, address: Address) -> bool:
        """Whether the address is planned."""
        return not self.excludes(address) and (not self.only or address in self._needed or _fits(address, self.only))

    def excludes(self, address: Address) -> bool:
        """Whether `--except` excludes the address."""
        return bool(self.excluded) and (address in self._excluded_addresses or _fits(address, self.excluded))

    def sought_kinds(self) -> frozenset[str]:
        """Return the kinds to read for arguments that match no manifest entry: they may mean a live resource."""
        return frozenset(
            name
            for name, kind in KINDS.items()
            for pattern in chain.from_iterable(self._patterns.values())
            if not pattern.matches
            and (pattern.typed.startswith(f"{kind.noun} ") or matches_pattern(name, pattern.pattern.partition("/")[0]))
        )

    def problems(self) -> Iterator[Problem]:
        """Yield an error for each argument that matches nothing, or that may mean several resources."""
        return (
            unresolved_problem(option, pattern, self._known)
            for option, patterns in self._patterns.items()
            for pattern in patterns
            if not pattern.matches
        )


def _needs(declared: Mapping[Address, DesiredResource[Any]], only: Iterable[str]) -> set[Address]:
    """Return what these patterns mean, and, transitively, everything declared that it needs."""
    needed: set[Address] = set()
    todo = [
        *_meant(declared, only),
        *(at for at, one in declared.items() if any(_fits(old, only) for old in _replaced(one))),
    ]
    while todo:
        address = todo.pop()
        if address not in needed and address in declared:
            needed.add(address)
            needed.update(_replaced(declared[address]))
            todo.extend(dependencies(declared[address]))
    return needed


def _meant(declared: Mapping[Address, DesiredResource[Any]], patterns: Iterable[str]) -> frozenset[Address]:
    """Return the addresses that match a pattern, or else those with a matching earlier name, which may be live."""
    addresses: set[Address] = set()
    for pattern in patterns:
        addresses |= {address for address in declared if _fits(address, [pattern])} or {
            at for at, one in declared.items() if any(_fits(was, [pattern]) for was in _earlier_addresses(one))
        }
    return frozenset(addresses)


def _earlier_addresses(declaration: DesiredResource[Any]) -> Iterator[Address]:
    return (Address.of(declaration.address.kind, name) for name in declaration.previously)


def _fits(address: Address, patterns: Iterable[str]) -> bool:
    return any(matches_pattern(address, pattern) for pattern in patterns)


def additions_only(sides: BeforeAfter) -> BeforeAfter:
    """Return the same state with an `after` that only adds to lists of people and choices, for `--additive`."""
    before, after = sides.before or {}, sides.after or {}
    return replace(sides, after={key: _added(before[key], value) for key, value in after.items()})


def _added(before: object, after: object) -> object:
    if isinstance(before, KeyedNames) and isinstance(after, KeyedNames):
        return KeyedNames(
            {**before.names, **{key: name for key, name in after.names.items() if key not in before.names}}
        )
    joined = getattr(before, "joined", None)
    return joined(after) if callable(joined) else before


def _replaced(declared: DesiredResource[Any]) -> Sequence[Address]:
    """Return the live resources that a declaration takes the place of: a plan of it changes them, too."""
    spec, kind = declared.spec, declared.address.kind
    if kind == CONTENT_TARGET:
        return [assignment_address(one.content, spec.audience) for one in spec.replaces]
    return [Address.of(kind, spec.migrate.source)] if kind == CUSTOM_FIELD and spec.migrate is not None else ()
