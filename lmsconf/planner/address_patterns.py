"""What a person types or pastes as an address, resolved to a shell pattern over addresses: for `--only`, `--accept`.

An address as a view prints it means that resource alone, whatever characters its name has. A section name stands for
its kind, `groups/Sales`; `*`, `?` and `[…]` are wildcards. Words of a view, or a name alone, are understood where they
mean exactly one resource.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from lmsconf.errors import Problem, shorten
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind import Kind
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, spellings, split_address
from lmsconf.model.address import Address, decode_typed, shell_quoted
from lmsconf.model.names import exact_pattern, matches_pattern, nearest_names, normalize_name

AMBIGUOUS: Final = "select/ambiguous"
"""The code of the error for words that mean several resources."""
_SUGGESTED: Final = 3
_LISTED: Final = 5
_RESTORED: Final = str.maketrans({"\u00a0": " ", "\u00a6": "|", "\u200b": None})
"""What a comment makes of an address: no-break spaces of spaces, `¦` of `|`, and a zero-width space in a mention."""


class ResolvedPattern(NamedTuple):
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
    kind = next((kind for kind in KINDS.values() if word in kind_words(kind)), None)
    if not slash:
        return pattern
    if kind is None:
        return f"{CONTENT_TARGET}/{rest} -> *" if word == CONTENT else pattern
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
    return resolve_patterns([text], known)[0]


def resolve_patterns(texts: Iterable[str], known: Sequence[Address]) -> tuple[ResolvedPattern, ...]:
    """Return the pattern of each text."""
    names = {str(address) for address in known}
    return tuple(_resolve(text, known, names) for text in texts)


def _resolve(text: str, known: Sequence[Address], names: AbstractSet[str]) -> ResolvedPattern:
    for typed in dict.fromkeys((text, text.translate(_RESTORED))):
        pattern = canonical_pattern(typed)
        if pattern in names:
            return ResolvedPattern(text, exact_pattern(pattern), matches=True)
        if any(matches_pattern(name, pattern) for name in names):
            return ResolvedPattern(text, pattern, matches=True)
        meant = [] if any(pattern.startswith(f"{kind}/") for kind in KINDS) else _meant(typed, known)
        if len(meant) == 1:
            return ResolvedPattern(text, exact_pattern(str(meant[0])), matches=True)
        if meant:
            return ResolvedPattern(text, pattern, matches=False, meant=tuple(meant))
    return ResolvedPattern(text, canonical_pattern(text), matches=False)


def _meant(text: str, known: Iterable[Address]) -> list[Address]:
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


def sought_kinds(patterns: Sequence[ResolvedPattern]) -> frozenset[str]:
    """Return the kinds to read for patterns that match nothing known yet: they may mean a live resource."""
    return frozenset(
        name
        for name, kind in KINDS.items()
        for pattern in patterns
        if not pattern.matches
        and (matches_pattern(name, pattern.pattern.partition("/")[0]) or pattern.typed.startswith(f"{kind.noun} "))
    )


def unresolved_problem(option: str, pattern: ResolvedPattern, known: Sequence[Address]) -> Problem:
    """Return the error for a pattern that matches nothing, or for words that mean several resources."""
    shown = shorten(pattern.typed)
    if pattern.meant:
        number = len(pattern.meant)
        return Problem(
            code=AMBIGUOUS,
            message=f"{option} {shown}: {number} resources match",
            hint=f"Write one of: {'; '.join(_arguments(option, pattern.meant[:_LISTED]))}"
            f"{'.' if number <= _LISTED else '; …'}",
        )
    near = nearest_addresses(pattern, known)
    examples = " or ".join(shlex.quote(kind.example) for kind in KINDS.values() if kind.example)
    return Problem(
        code="select/nothing",
        message=f"{option} {shown}: no resource matches",
        hint=f"Did you mean {' or '.join(_arguments(option, near))}?"
        if near
        else f"An address is {examples}; * is a wildcard.",
    )


def _arguments(option: str, addresses: Iterable[Address]) -> Iterator[str]:
    return (f"{option} {shell_quoted(address)}".strip() for address in addresses)


def nearest_addresses(pattern: ResolvedPattern, known: Sequence[Address]) -> list[Address]:
    """Return the known addresses nearest to a pattern: those of that name in another kind, or else similar ones."""
    kind, slash, rest = pattern.pattern.partition("/")
    name = rest if slash else pattern.pattern
    same = [address for address in known if address.text == name or matches_pattern(address.name, name)]
    if same:
        return sorted(set(same))[:_SUGGESTED]
    if slash and kind in KINDS:
        by_text = {address.text: address for address in known if address.kind == kind}
        return [by_text[text] for text in nearest_names(rest, by_text, _SUGGESTED)]
    by_name = {address.name: address for address in known} | {str(address): address for address in known}
    wanted = (name, *((pattern.pattern,) if slash else ()))
    near = (by_name[one] for text in wanted for one in nearest_names(text, by_name, _SUGGESTED))
    return list(dict.fromkeys(near))[:_SUGGESTED]


def typed_name(text: str, kinds: Iterable[Kind]) -> str:
    """Return the name in a typed address of one of these kinds, `user/bo@acme.example`; any other text as it is."""
    word, slash, rest = text.partition("/")
    return rest if slash and any(word in kind_words(kind) for kind in kinds) else text
