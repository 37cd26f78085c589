"""Strict YAML reader: text → documents of plain values with source positions, within limits.

Values are built from the events of PyYAML, by libyaml where it is installed: four times as fast as composing nodes,
without recursion, and strict where YAML is lax: duplicate keys, tags, merge keys and alias bombs are problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import yaml
from msgspec import Struct, field

from lmsconf.errors import Problem, ProblemsFound, SourceLocation, problem_found, shorten
from lmsconf.manifest.nodes import (
    VARIABLE_START,
    EntrySourceMap,
    EscapedText,
    Map,
    Mark,
    Seq,
    Source,
    pack_mark,
    resolve_scalar,
)
from lmsconf.model.canonical_json import Json
from lmsconf.model.control_characters import CONTROLS, FORBIDDEN, LONGEST

DEPTH: Final = 50
"""Maximum nesting depth of lists and mappings."""
EXPANDED: Final = 100_000
"""Maximum number of values that aliases may expand to, in all files together."""
ENOUGH: Final = 100
"""Reading of a file stops after this many problems."""


class YamlReadResult(Struct):
    """The documents of one file, and the problems of its YAML."""

    documents: list[EntrySourceMap] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def too_long_text(location: SourceLocation) -> ProblemsFound:
    """Return the error for a text longer than LONGEST."""
    return problem_found(
        "yaml/too-long", f"this text is longer than {LONGEST:,} characters", "Write a shorter one.", location
    )


def _too_deep(location: SourceLocation) -> ProblemsFound:
    """Return the error for lists and mappings nested deeper than DEPTH."""
    return problem_found(
        "yaml/too-deep", f"lists and mappings are nested more than {DEPTH} levels deep", source=location
    )


YamlParser: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's parser: that of libyaml, or the same events, twenty times slower, where it is not installed."""


def _syntax_error(source: Source, error: yaml.MarkedYAMLError) -> ProblemsFound:
    """Return the error for a text that is not YAML."""
    from lmsconf.manifest.syntax_hints import advise_on_syntax_error  # only for a problem

    at, opened = error.problem_mark, error.context_mark
    where = (0, 0) if at is None else (at.line, at.column)
    # libyaml from 0.2.6 on says so of a thousand levels: before their events, where it looks for the end of a key.
    if error.problem == "exceeded maximum nesting depth":
        return _too_deep(source.where(pack_mark(where[0] + 1, where[1] + 1)))
    begun = (max(where[0] - 1, 0), 0) if opened is None else (opened.line, opened.column)
    message, hint, (line, column) = advise_on_syntax_error(
        (error.context or "", begun, error.problem or "unreadable", where), source.text
    )
    return problem_found("yaml/syntax", message, hint, source.where(pack_mark(line + 1, column + 1)))


_TAG = "tag:yaml.org,2002:"


class AliasBudget(Struct):
    """How many values aliases may still expand to, in all files of one run."""

    left: int = EXPANDED


_Anchored: TypeAlias = "tuple[Json, int, int]"
"""The value of an anchor, the number of values in it, and its depth."""


def read_yaml(path: str, text: str, *, budget: AliasBudget | None = None) -> YamlReadResult:
    """Parse a YAML text. Empty documents are left out; errors are returned in `problems`, not raised."""
    source, reading = Source(path, text), YamlReadResult()
    try:
        _Builder(source, reading, budget or AliasBudget()).run()
    except ProblemsFound as stopped:
        reading.problems += stopped.problems
    except yaml.MarkedYAMLError as error:
        reading.problems += _syntax_error(source, error).problems
    return reading


def _mark_of(event: Any) -> Mark:
    """Return the mark at which an event begins."""
    return pack_mark(event.start_mark.line + 1, event.start_mark.column + 1)


class _Builder:
    """Build values from parser events in one pass, keeping only open nodes and anchors.

    size: how many values were read so far, with those that aliases stand for. depth: how many nodes are open. height:
    the depth of what was read of the innermost of them.
    """

    def __init__(self, source: Source, reading: YamlReadResult, budget: AliasBudget) -> None:
        self._source = source
        self._reading = reading
        self._budget = budget
        self._anchors: dict[str, _Anchored] = {}
        self._idle: dict[str, Mark] = {}  # anchors of plain words that no alias has used so far
        self._words: dict[str, Json] = {}  # equal words share one value, which keeps 10,000 e-mails small
        self._next: Callable[[], Any]
        self._size = self._depth = self._height = 0

    def run(self) -> None:
        """Read the stream into `reading.documents`. Raises ProblemsFound, or MarkedYAMLError for a syntax error."""
        # Checked first, so that the parser finds no unacceptable character: its error for one has no position.
        if FORBIDDEN.search(self._source.text):
            self._report_forbidden_characters()
        else:
            self._next = YamlParser(self._source.text).get_event
            for event in iter(self._next, None):
                if event.__class__ is yaml.DocumentStartEvent:
                    self._document(self._next())

    def _report_forbidden_characters(self) -> None:
        """Report the first forbidden character of each line."""
        for number, line in enumerate(self._source.text.split("\n"), start=1):
            if forbidden := FORBIDDEN.search(line):
                code = ord(forbidden[0])
                kind = "control character" if code < 0xA0 else "invisible character that changes how text is read"
                self._report(
                    "yaml/character",
                    f"the {kind} U+{code:04X} is not allowed here",
                    pack_mark(number, forbidden.start() + 1),
                    "Remove it.",
                )

    def _document(self, event: yaml.Event) -> None:
        """Add a document, unless it is empty. Report anchors of plain scalars that no alias uses."""
        at = _mark_of(event)
        value = self._value(event, at)
        self._next()  # the document ends without a syntax error
        if value is not None:
            self._reading.documents.append(EntrySourceMap(value, self._source, at))
        for name, place in self._idle.items():
            self._report(
                "yaml/unused-anchor",
                f"&{name} is a YAML anchor that nothing uses, not part of the text",
                place,
                self._quote_hint(place),
            )
        self._anchors.clear()
        self._idle.clear()

    def _value(self, event: Any, at: Mark) -> Json:
        """Return the value that begins with an event."""
        if event.__class__ is yaml.ScalarEvent:
            # 10,000 resources have 130,000 events, most of them plain words that have come before.
            if event.implicit[0] and event.tag is None and event.anchor is None and event.value in self._words:
                return self._words[event.value]
            return self._scalar(event, at)
        return self._alias(event, at) if event.__class__ is yaml.AliasEvent else self._collection(event, at)

    def _collection(self, event: yaml.CollectionStartEvent, at: Mark) -> Map | Seq:
        """Return a list or a mapping with all that is in it."""
        node = Seq(self._source) if isinstance(event, yaml.SequenceStartEvent) else Map(self._source)
        if event.tag is not None and event.tag != _TAG + ("map" if isinstance(node, Map) else "seq"):
            self._tag(event.tag, at)
        self._depth += 1
        if self._depth > DEPTH:
            raise _too_deep(self._source.where(at))
        size, height, self._height = self._size, self._height, 1
        if isinstance(node, Map):
            self._read_pairs(node)
        else:
            while (item := self._next()).__class__ is not yaml.SequenceEndEvent:
                item_at = _mark_of(item)
                node.marks.append(item_at)
                node.append(self._value(item, item_at))
        self._size += len(node.marks)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, self._size - size + 1, self._height)
        self._depth -= 1
        self._height = max(height, self._height + 1)
        return node

    def _read_pairs(self, node: Map) -> None:
        """Add the pairs of a mapping. The value of an unusable key is dropped."""
        while (event := self._next()).__class__ is not yaml.MappingEndEvent:
            key_at = _mark_of(event)
            key = self._value(event, key_at)
            is_usable = isinstance(key, str) and key not in node and (key != "<<" or not self._is_merge(key_at))
            if not is_usable:
                self._bad_key(key, key_at, node)
            event = self._next()
            at = _mark_of(event)
            value = self._value(event, at)
            if is_usable:
                node[cast(str, key)] = value
                node.marks.extend((key_at, at))

    def _is_merge(self, at: Mark) -> bool:
        return self._source.rest(at).startswith("<<")

    def _scalar(self, event: yaml.ScalarEvent, at: Mark) -> Json:
        """Return the value of a scalar, and keep it under its anchor."""
        text = event.value
        self._source.opens |= VARIABLE_START in text
        is_plain = event.implicit[0] and event.tag is None
        value = self._plain(text, at) if is_plain else self._marked(event, at)
        if len(text) > LONGEST:
            raise too_long_text(self._source.where(at))
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1, 0)
            if event.implicit[0]:
                self._idle[event.anchor] = at
        return value

    def _plain(self, text: str, at: Mark) -> Json:
        """Return the value of a plain scalar, kept for equal ones. Report an infinite number."""
        value = resolve_scalar(text)
        if isinstance(value, float) and not math.isfinite(value):
            self._report(
                "yaml/number",
                f"{shorten(text)} is not a finite number",
                at,
                f'Write it as text: "{shorten(text)}".',
            )
            return text
        self._words[text] = value
        return value

    def _marked(self, event: yaml.ScalarEvent, at: Mark) -> Json:
        """Return the value of a scalar that is quoted, a block scalar, or tagged."""
        text = event.value
        if event.tag is None or event.tag == f"{_TAG}str":
            # Whether a text has line breaks, tabs or other control characters, all of them written as escapes.
            start, end = cast(yaml.Mark, event.start_mark), cast(yaml.Mark, event.end_mark)
            is_one_line = event.style == '"' and start.line == end.line and CONTROLS.search(text) is not None
            is_escaped = is_one_line and "\t" not in self._source.text[start.index : end.index]
            return EscapedText(text) if is_escaped else text
        value = resolve_scalar(text)
        name = {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value), "str")
        if event.tag != _TAG + name:
            self._tag(event.tag, at)
        # YAML drops the leading `!` of a text as a tag; a name that begins with it would lose a character.
        return text if event.tag == "!" else value

    def _alias(self, event: yaml.AliasEvent, at: Mark) -> Json:
        """Return the value of an anchor, within the limits on size and depth.

        An alias inside the value of its own anchor is unknown, so there are no cycles.
        """
        name = cast(str, event.anchor)
        value, size, height = self._anchors.get(name, (f"*{name}", 1, 0))
        self._idle.pop(name, None)
        if name not in self._anchors:
            self._report(
                "yaml/unknown-alias",
                f"*{name} is an unknown alias: no complete &{name} comes before it",
                at,
                self._quote_hint(at),
            )
        self._budget.left -= size
        if self._budget.left < 0:
            raise problem_found(
                "yaml/too-many-aliases",
                f"aliases expand to more than {EXPANDED:,} values",
                "Write the values out, or split the project.",
                self._source.where(at),
            )
        if self._depth + height > DEPTH:
            raise _too_deep(self._source.where(at))
        self._size += size - 1
        self._height = max(self._height, height + 1)
        return value

    def _bad_key(self, key: Json, at: Mark, node: Map) -> None:
        """Report a key that is not a text, is listed twice, or is a merge key."""
        match key:
            case Map() | Seq():
                from lmsconf.manifest.syntax_hints import TEMPLATE_HINT  # only for a problem

                is_template = isinstance(key, Map) and self._source.rest(at - 1).startswith("{{")
                quoted = 'Put it in quotes if it is a text, such as "{name}" or "[name]".'
                hint = f"Templates are not supported. {TEMPLATE_HINT}" if is_template else quoted
                self._report("yaml/key", "a list or a mapping cannot be a key", at, hint)
            case "<<" if self._is_merge(at):
                self._report(
                    "yaml/merge-key",
                    'the merge key "<<" is not supported',
                    at,
                    "Write the keys out, or give the whole entry an anchor.",
                )
            case str():
                hint = f"It is first at {self._source.where(node.mark(key, 0) or at)}. Keep one of the two."
                self._report("manifest/duplicate-key", f'the key "{shorten(key)}" is listed twice', at, hint)
            case _:
                word = shorten(self._source.rest(at).split(":", 1)[0].strip())
                self._report(
                    "yaml/key", f"a key must be text, and {word} is not", at, f'Write "{word}": with the quotes.'
                )

    def _tag(self, tag: str, at: Mark) -> None:
        # A plain word after a bare `!` may be a name that begins with it; quotes and brackets need no tag.
        is_needless = tag == "!" and self._source.rest(at)[1:].lstrip().startswith(tuple("\"'|>[{"))
        self._report(
            "yaml/tag",
            f"the tag {shorten(tag.replace(_TAG, '!!'))} is not supported",
            at,
            "Remove the !." if is_needless else self._quote_hint(at),
        )

    def _report(self, code: str, message: str, at: Mark, hint: str | None) -> None:
        """Add a problem. Raises ProblemsFound at ENOUGH problems: such a file is probably not a manifest."""
        problems, where = self._reading.problems, self._source.where(at)
        problems.append(Problem(code=code, message=message, hint=hint, source=where))
        if len(problems) == ENOUGH:
            raise problem_found(
                "yaml/too-many-problems",
                f"this file has {ENOUGH} problems and more; the rest was not read",
                source=where,
            )

    def _quote_hint(self, at: Mark) -> str | None:
        """Return the hint to quote the value of the line at a mark, if it is one."""
        from lmsconf.manifest.syntax_hints import quote_value_hint  # only for a problem

        return quote_value_hint(self._source.rest(at >> 32 << 32))
