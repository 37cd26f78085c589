"""Named sets of people and of conditions, and named windows: defined once, referenced by name; expansion of entries.

Sets, `use`, `except`, windows and CSV files become plain entries once all files are read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, cast

from msgspec import Struct, field

from lmsconf.errors import ProblemsFound, Severity, SourceLocation
from lmsconf.kinds.shared.manifest_entry import LISTS
from lmsconf.manifest.entries_from_tables import TableFiles
from lmsconf.manifest.nodes import EntrySourceMap, Map, Place, Seq, combine_items
from lmsconf.manifest.problems import UndeclaredNames
from lmsconf.manifest.schema_check import SchemaValidator, properties
from lmsconf.manifest.variables import Reporter, Variables
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import did_you_mean, known_names, list_names, normalize_name, quote_name

_EMPTIED: Final = re.compile(r"\$\(|-\s|\[\s*[^\s\]#]")
"""Matches the text of a list that is not empty as written, and so was emptied by its variables."""
_NOUNS: Final = {
    "people_sets": ("people set", "set"),
    "condition_sets": ("condition set", "set"),
    "windows": ("window", "window"),
}
"""Section → what messages call one of its sets, and what the codes of problems do."""


class NamedSet(Struct):
    """One set or window: the location of its name, and its content; None if it is invalid.

    layer: the index of its folder. used: whether anything references it.
    """

    where: SourceLocation
    content: EntrySourceMap | None
    layer: int = 0
    used: bool = False


class EntryExpander(Struct):
    """Expand entries, given the sets of all files and all declared fields. shapes: section of sets → that of one set.

    known: section → name → set. people: those of each people set; None if it cannot be used. choices: field → what
    each of its declarations lists, since `only_in` allows several; None where that is not the whole list.
    """

    shapes: Mapping[str, SchemaValidator]
    tables: TableFiles
    reporter: Reporter
    undeclared: UndeclaredNames
    _known: dict[str, dict[str, NamedSet]] = field(default_factory=lambda: defaultdict(dict))
    _people: dict[str, Seq | None] = field(default_factory=dict)
    _choices: dict[str, set[tuple[str, ...] | None]] = field(default_factory=lambda: defaultdict(set))

    def collect_sets(self, document: EntrySourceMap, layer: int, variables: Variables) -> None:
        """Add the sets of one document, in place of those of earlier folders. A name twice in a folder is an error."""
        for section, shape in self.shapes.items():
            definitions = document.below(section)
            if isinstance(definitions.value, Map):
                self._collect(section, shape, definitions, layer, variables)

    def _collect(
        self, section: str, shape: SchemaValidator, definitions: EntrySourceMap, layer: int, variables: Variables
    ) -> None:
        noun, area = _NOUNS[section]
        for key, definition in definitions.parts():
            where, name = definitions.key(key), normalize_name(str(key))
            within, first = f"{noun} {quote_name(name)}", self._known[section].get(name)
            if first is None or first.layer != layer:
                content = variables.fitting(definition, shape, within)
                self._known[section][name] = NamedSet(where, content, layer)
            else:
                self.reporter.tell(
                    f"{area}/twice",
                    f"{within}: declared twice",
                    where,
                    f"See {first.where}. Keep one of the two, or give one another name.",
                )

    def add_field(self, body: Map) -> None:
        """Add the choices of one field declaration."""
        choices = body.get("choices")
        names = (item["name"] if isinstance(item, dict) else item for item in cast("list[Json]", choices or ()))
        listed = tuple(normalize_name(str(name)) for name in names) if isinstance(choices, list) else None
        self._choices[normalize_name(str(body["name"]))].add(listed)

    def expand(self, entry: EntrySourceMap) -> Map | None:
        """Return the expanded entry; None after reporting a problem."""
        before, body = self.reporter.refused, cast(Map, entry.value)
        for key in LISTS:
            self._put_people(entry, key)
            for side in ("include", "exclude") if isinstance(body.get(key), Map) else ():
                self._put_people(entry.below(key), side)
        whole = self._with_conditions(entry)
        self._put_window(entry)
        for number, item in enumerate(cast("list[Json]", body.get("assign_to", []))):
            if "window" in members(item):  # an alias may have brought it in twice
                self._put_window(entry.below("assign_to", number), is_item=True)
        return whole if self.reporter.refused == before else None

    def note_unused_sets(self) -> None:
        """Note each set that nothing uses."""
        for section, sets in self._known.items():
            noun, area = _NOUNS[section]
            for name, one in sets.items():
                if not one.used:
                    self.reporter.tell(
                        f"{area}/unused",
                        f"nothing uses the {noun} {quote_name(name)}",
                        one.where,
                        "Remove it, or use it.",
                        Severity.NOTE,
                    )

    def _find(self, section: str, name: str, where: SourceLocation) -> EntrySourceMap | None:
        """Return the content of a set; None after reporting that there is none, or an error that explains it."""
        known = self._known[section]
        named_set = known.get(normalize_name(name))
        if named_set is not None:
            named_set.used = True
            self.reporter.refused += named_set.content is None
            return named_set.content
        if self.undeclared.everything or section in self.undeclared.sections:
            self.reporter.refused += 1
        else:
            noun, area = _NOUNS[section]
            self.reporter.refuse(
                f"reference/unknown-{area}",
                f"there is no {noun} {quote_name(name)}",
                where,
                did_you_mean(name, known) or (known_names(known) if known else f"Write it under {section}:."),
            )
        return None

    def _put_people(self, holder: EntrySourceMap, key: str) -> None:
        """Replace a list of people by one without references; refuse what is unknown, invalid or empty."""
        node = members(holder.value)
        match node.get(key):
            case Map() as reference if "set" in reference or "file" in reference:
                people = self._referenced(holder.below(key))
                node[key] = reference if people is None else people
            case Seq() as items if Map in {*map(type, items)}:
                node[key] = self._mixed(holder.below(key))
            case [] if _EMPTIED.match(holder.rest(key)):
                self.reporter.refuse(
                    "people/nobody",
                    "the variables of this list name nobody",
                    holder.at(key),
                    "For nobody, write [] here.",
                )

    def _mixed(self, items: EntrySourceMap) -> Seq:
        """Expand a list that mixes sets and people; each person keeps the location where the e-mail is written."""
        listed: list[tuple[Json, Place]] = []
        for _, item in items.parts():
            if not isinstance(item.value, Map):
                listed.append((item.value, item.place()))
            elif (people := self._referenced(item)) is not None:
                listed += [(email, (people.source, at)) for _, email, at in people.parts()]
        return combine_items(listed)

    def _referenced(self, reference: EntrySourceMap) -> Seq | None:
        """Return the people of a file or a set; None after reporting why it cannot be used.

        An empty set is an error without `allow_empty` at the reference or its file.
        """
        body = members(reference.value)
        if "set" not in body:
            return self._from_file(reference)
        name, where = normalize_name(str(body["set"])), reference.at("set")
        people_set = self._find("people_sets", name, where)
        if people_set is None:
            return None
        value = people_set.value
        if name not in self._people:
            self._people[name] = value if isinstance(value, Seq) else self._from_file(people_set)
        people = self._people[name]
        self.reporter.refused += people is None
        if people == [] and body.get("allow_empty") is not True and not isinstance(value, Map):
            self.reporter.refuse(
                "people/nobody",
                f"the people set {quote_name(name)} names nobody",
                where,
                "Name somebody in it, or write `allow_empty: true` beside `set`.",
            )
        return people

    def _from_file(self, reference: EntrySourceMap) -> Seq | None:
        try:
            return self.tables.people(reference)
        except ProblemsFound as wrong:
            self.reporter.problems += wrong.problems
            self.reporter.refused += 1
            return None

    def _put_window(self, holder: EntrySourceMap, *, is_item: bool = False) -> None:
        """Replace the `window: NAME` of an entry or item by the times of the window, each located there.

        Refuse a window that is unknown or invalid, or used together with a time.
        """
        node = cast(Map, holder.value)
        if "window" not in node:
            return
        times = properties(self.shapes["windows"].schema)
        own = next((key for key in times if key in node), None)
        if own is not None:
            self.reporter.refuse(
                "manifest/together",
                f"window and {own} exclude each other",
                holder.key(own),
                "Keep one of them.",
            )
        elif (window := self._find("windows", str(node["window"]), holder.at("window"))) is not None:
            written, place = {pair[0]: pair for pair in cast(Map, window.value).pairs()}, holder.place("window")
            put = [written[key] for key in times if key in written]
            if is_item:
                # An end that the window leaves out is open: null in an item, whose entry may have a time for all items.
                put += [(key, None, place, place) for key in times if key not in written]
            node.put("window", put)

    def _with_conditions(self, entry: EntrySourceMap) -> Map:
        """Return the entry with its conditions written out, without `use` and `except`."""
        body = cast(Map, entry.value)
        own = cast("list[Map]", body.get("conditions", []))
        if "use" not in body and not any("except" in condition for condition in own):
            return body
        expanded = self._written_out(entry.below("conditions"))
        uses = body.get("use", [])
        for number, name in enumerate(uses if isinstance(uses, list) else [uses]):
            if (found := self._find("condition_sets", str(name), entry.at("use", number))) is not None:
                # Conditions are combined with AND, so repeats add nothing.
                known = {_sense(condition) for condition, _ in expanded}
                expanded += [pair for pair in self._written_out(found) if _sense(pair[0]) not in known]
        plain = body.without("use") if "conditions" in body else _renamed(body, "use", "conditions")
        plain["conditions"] = combine_items(expanded)
        return plain

    def _written_out(self, conditions: EntrySourceMap) -> list[tuple[Map, Place]]:
        """Return the conditions of an entry or a set, if any, without `except`, each with its place there."""
        return [(self._plain(one), one.place()) for _, one in conditions.parts()]

    def _plain(self, place: EntrySourceMap) -> Map:
        """Return the condition at a place with `except` replaced by `choices`."""
        condition = cast(Map, place.value)
        if "except" not in condition:
            return condition
        name = str(condition["field"])
        declared = self._choices.get(normalize_name(name), set())
        known = next(iter(declared)) if len(declared) == 1 else None
        if "choices" in condition:
            self.reporter.refuse(
                "manifest/together",
                "choices and except exclude each other",
                place.key("except"),
                "Keep one of them.",
            )
        elif known is not None:
            return self._but(place, known)
        elif self.undeclared.may_have_field(name):
            self.reporter.refused += 1  # an error of its declaration says so already
        else:
            why = {0: "not declared here", 1: "declared without the whole list of its choices"}.get(
                len(declared), "declared with other choices for other workspaces"
            )
            self.reporter.refuse(
                "reference/except",
                f"except: the field {quote_name(name)} is {why}",
                place.at("field"),
                "List all its choices where it is declared, or write the choices here.",
            )
        return condition

    def _but(self, place: EntrySourceMap, known: tuple[str, ...]) -> Map:
        """Return the condition at a place with all choices except those it lists."""
        condition = cast(Map, place.value)
        name, whole = quote_name(str(condition["field"])), place.place("except")
        excluded = [normalize_name(str(item)) for item in cast("list[Json]", condition["except"])]
        for number, item in enumerate(excluded):
            if item not in known:
                self.reporter.refuse(
                    "reference/unknown-choice",
                    f"except: the field {name} has no choice {quote_name(item)}",
                    place.at("except", number),
                    " ".join(filter(None, [f"It has {list_names(known)}.", did_you_mean(item, known)])),
                )
        left = [one for one in known if one not in excluded]
        if not left:
            self.reporter.refuse(
                "reference/except",
                f"except: no choice of the field {name} is left",
                place.key("except"),
                "Keep one, or remove the condition.",
            )
        plain = _renamed(condition, "except", "choices")
        plain["choices"] = combine_items([(one, whole) for one in left])
        return plain


def _sense(condition: Mapping[str, Json]) -> str:
    """Return a comparison key of a condition, independent of the order of its choices."""
    choices = sorted({normalize_name(str(item)) for item in cast("list[Json]", condition.get("choices", []))})
    return repr((normalize_name(str(condition["field"])), choices, condition.get("system_condition")))


def _renamed(node: Map, old: str, new: str) -> Map:
    """Return the mapping with another name of one key, at the same position."""
    return node.changed({new if key == old else key: value for key, value in node.items()})
