"""Variables, `$(name)`, and `for_each`: one copy of an entry for each value of a list; source positions are kept.

An unquoted text that is exactly `$(name)` becomes the variable's value: a text, a boolean, or a list, whose items are
spliced into the list around them. Inside a longer text the value is inserted as text. `$$(` is a literal `$(`.
Numbers are texts, since no key takes a number. `for_each` is expanded before the entry's shape is checked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity, SourceLocation, problem_found
from lmsconf.manifest.nodes import (
    FOR_EACH,
    VARIABLE_START,
    EntrySourceMap,
    EscapedText,
    Map,
    Mark,
    Seq,
    Source,
    node_texts,
)
from lmsconf.manifest.problems import shape_problems
from lmsconf.manifest.schema_check import SchemaValidator, Section, for_each_validator
from lmsconf.manifest.yaml_reader import too_long_text
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.control_characters import LONGEST
from lmsconf.model.names import did_you_mean

VALUES: Final = 1_000_000
"""Maximum number of values that variables and `for_each` may expand to, in all files together."""
COPIES: Final = 10_000
"""Maximum number of entries that `for_each` may expand to, in all files together."""
_SHORTER: Final = "Write shorter lists, or split the project."
_VARIABLE: Final = re.compile(r"\$(\$?)\(([^()]*)(\)?)")


class Reporter(Struct):
    """The problems found so far. refused: how many parts of entries could not be expanded, for whatever reason."""

    problems: list[Problem]
    refused: int = 0

    def tell(
        self, code: str, message: str, where: SourceLocation, hint: str, severity: Severity = Severity.ERROR
    ) -> None:
        """Report a problem."""
        self.problems.append(Problem(code=code, message=message, severity=severity, hint=hint, source=where))

    def refuse(self, code: str, message: str, where: SourceLocation, hint: str) -> None:
        """Report why a part of an entry cannot be expanded."""
        self.refused += 1
        self.tell(code, message, where, hint)


class ExpansionLimit(Struct):
    """The remaining limits of expansion, for all files together.

    characters: of texts with variables, after substitution.
    """

    characters: int = 50 * 1024 * 1024
    values: int = VALUES
    copies: int = COPIES

    def take(self, values: int, where: SourceLocation) -> None:
        """Subtract from the remaining number of values. Raises ProblemsFound if there are too many."""
        self.values -= values
        if self.values < 0:
            raise problem_found(
                "variable/too-many",
                f"variables and for_each expand to more than {VALUES:,} values",
                _SHORTER,
                where,
            )


class Variables(Struct):
    """The values of variables, by name; expands variables and `for_each` in entries.

    each: the values of `for_each` for the current copy, shown in source locations.
    """

    values: Mapping[str, Json]
    reporter: Reporter
    each: str = ""
    limit: ExpansionLimit = field(default_factory=ExpansionLimit)

    def substitute(self, node: Json, source: Source, at: Mark) -> Json:
        """Return the value with its variables substituted; the same object if it has none. Raises ProblemsFound."""
        # Undefined variables are reported and left as they are.
        if isinstance(node, str):
            return self._text(node, source, at) if VARIABLE_START in node else node
        if not isinstance(node, Map | Seq) or not node.source.opens:
            return node
        changed = {
            step: new
            for step, child, at in node.parts()
            if (new := self.substitute(child, node.source, at)) is not child
        }
        if not changed:
            return node
        if isinstance(node, Seq):
            return _with_items(node, changed)
        return node.changed({**node, **cast("Mapping[str, Json]", changed)})

    def _text(self, text: str, source: Source, at: Mark) -> Json:
        whole = re.fullmatch(r"\$\(([^()]*)\)", text)
        value = self.values.get(whole[1].strip() if whole else "")
        is_quoted = re.sub(r"^(?:[&!]\S+ +)*", "", source.rest(at)).startswith(('"', "'", "|", ">"))
        if isinstance(value, str) or value is None or not whole or is_quoted:
            return self._inside(text, source, at)
        if not isinstance(value, list):
            return value
        self.limit.take(len(value), source.where(at))
        # Each item has the position of the variable.
        return Seq(source, value, [at] * len(value))

    def _inside(self, text: str, source: Source, at: Mark) -> str:
        """Insert variables into a text, within limits: a few bytes could expand to gigabytes.

        Raises ProblemsFound.
        """
        names = [name.strip() for _, name, _ in _VARIABLE.findall(text)]
        size = len(text) + sum(len(str(self.values.get(name, ""))) for name in names)
        self.limit.characters -= size
        if size > LONGEST or self.limit.characters < 0:
            raise too_long_text(replace(source.where(at), each=self.each))
        new = _VARIABLE.sub(lambda match: self._put_in(match, source, at), text)
        is_escaped = any(isinstance(one, EscapedText) for one in (text, *map(self.values.get, names)))
        return EscapedText(new) if is_escaped else new

    def _put_in(self, match: re.Match[str], source: Source, at: Mark) -> str:
        shown, (escaped, name, closed) = match[0], match.groups()
        if escaped:
            return shown[1:]
        value = self.values.get(name.strip()) if closed else None
        # Located without the values of `for_each`: the problem is the same for all of them.
        where = source.where(at)
        match value:
            case str():
                return value
            case bool():
                return str(value).lower()
            case None if not closed:
                self.reporter.refuse(
                    "variable/syntax", f"{shown} is not closed", where, 'For a literal "$(" write "$$(".'
                )
            case None:
                hint = f'Define it under vars: in the project file, or write "$$({name})" for a literal "$({name})".'
                self.reporter.refuse(
                    "variable/undefined",
                    f"the variable $({name}) is not defined",
                    where,
                    did_you_mean(name, self.values) or hint,
                )
            case _:
                self.reporter.refuse(
                    "variable/list",
                    f"{shown} is a list, so it cannot be part of a text",
                    where,
                    f"Write {shown} as the whole value, without quotes.",
                )
        return shown

    def substituted(self, whole: EntrySourceMap) -> tuple[EntrySourceMap, bool]:
        """Return a value with its variables substituted, and whether all could be. Raises ProblemsFound."""
        before = self.reporter.refused
        value = self.substitute(whole.value, whole.source, whole.mark)
        return EntrySourceMap(value, whole.source, whole.mark, self.each), self.reporter.refused == before

    def fitting(self, whole: EntrySourceMap, shape: SchemaValidator, within: str) -> EntrySourceMap | None:
        """Return a value with its variables substituted; None after reporting what is wrong."""
        places, is_complete = self.substituted(whole)
        if not is_complete:
            return None
        wrong = shape_problems(shape, places, within)
        self.reporter.problems += wrong
        return None if wrong else places

    def expand_entry(self, section: Section, item: EntrySourceMap) -> Iterator[Entry]:
        """Yield the entries that one entry expands to. Raises ProblemsFound beyond the limits of expansion."""
        body = item.value
        if not isinstance(body, Map) or FOR_EACH not in body:
            yield Entry(section, *self.substituted(item))
            return
        plain = body.without(FOR_EACH)
        places = self.fitting(item.of(body.without(*plain)), for_each_validator(), section.name)
        if places is None:
            return
        lists = places.below(FOR_EACH)
        wanted = {name: cast("list[Json]", lists.below(name).variable()) for name in members(lists.value)}
        fault = next(self._faults(wanted, plain, lists), None)
        if fault is not None:
            self.reporter.problems.append(fault)
            return
        count, where = math.prod(map(len, wanted.values())), places.key(FOR_EACH)
        self.limit.copies -= count
        if self.limit.copies < 0:
            self.reporter.tell(
                "for_each/too-many",
                f"for_each: with this entry, the project has more than {COPIES:,} entries",
                where,
                _SHORTER,
            )
            return
        self.limit.take(count * _size(plain), where)
        for values in product(*wanted.values()):
            chosen = dict(zip(wanted, values, strict=True))
            each = ", ".join(f"{name}={display_value(value)}" for name, value in chosen.items())
            copied = replace(self, values={**self.values, **chosen}, each=each)
            entry = Entry(section, *copied.substituted(item.of(plain)))
            yield entry
            if not entry.is_complete:
                return

    def _faults(self, wanted: Mapping[str, Sequence[Json]], plain: Map, lists: EntrySourceMap) -> Iterator[Problem]:
        """Yield why an entry is not expanded; nothing if it can be.

        wanted: the values of each name. plain: the entry without its `for_each`. lists: that.
        """
        found = chain.from_iterable(_VARIABLE.findall(text) for text, _ in node_texts(plain))
        used = {name.strip() for escaped, name, _ in found if not escaped}
        for name, values in wanted.items():
            if name in self.values:
                yield Problem(
                    code="for_each/taken",
                    message=f"for_each: $({name}) is a variable of the project file already",
                    hint="Choose another name here.",
                    source=lists.key(name),
                )
            if not values:
                yield Problem(
                    code="for_each/empty",
                    message=f"for_each: {name} has no values, so this entry expands to nothing",
                    severity=Severity.NOTE,
                    hint="Remove the entry.",
                    source=lists.key(name),
                )
        for name in (one for one in wanted if one not in used):
            yield Problem(
                code="for_each/unused",
                message=f"for_each: this entry does not use $({name})",
                hint="Without it all entries would be equal. Use it in the name, or remove it from for_each.",
                source=lists.key(name),
            )


def _with_items(node: Seq, changed: Mapping[str | int, Json]) -> Seq:
    """Return the list with some items replaced. Items spliced from a variable have the variable's position."""
    pairs = [(item, changed.get(number, item)) for number, item in enumerate(node)]
    groups = [new if isinstance(new, list) and isinstance(item, str) else [new] for item, new in pairs]
    marks = [at for at, group in zip(node.marks, groups, strict=True) for _ in group]
    return Seq(node.source, chain.from_iterable(groups), marks)


class Entry(Struct, frozen=True):
    """An entry of a section, after expansion of variables and `for_each`, with its locations.

    is_complete: all its variables are defined. is_part: without the keys that do not fit its schema, so it is checked
    and not planned. layer: the index of its folder, 0 for the first.
    """

    section: Section
    places: EntrySourceMap
    is_complete: bool = True
    is_part: bool = False
    layer: int = 0

    @property
    def body(self) -> Json:
        """Its value."""
        return self.places.value

    def of(self, body: Json) -> Entry:
        """Return the entry with `body`, to which it was expanded."""
        return replace(self, places=self.places.of(body))


def display_value(value: Json) -> str:
    """Format a value for display beside a location: short, on one line, quoted unless it is a plain word."""
    text = value if isinstance(value, str) else json.dumps(value)
    clipped = text if len(text) <= 40 else f"{text[:40]}…"
    return text if re.fullmatch(r"[^\W_][\w.@+-]*", clipped) else json.dumps(clipped, ensure_ascii=False)


def _size(node: Json) -> int:
    """Count the values in a value, itself included."""
    return 1 + sum(_size(child) for _, child, _ in node.parts()) if isinstance(node, Map | Seq) else 1
