"""Plans and problems as text for a terminal, in terraform's style, and the lines that other texts have too.

A page is blocks of lines; `join_blocks` escapes each line, so that no name steers a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.effects import Basis
from lmsconf.model.names import first_lines
from lmsconf.model.plan import Action, Change, Plan, Rehearsal, UnmanagedResources
from lmsconf.model.problem_codes import CONSENT_LEAD, blockers, consent_command
from lmsconf.render import plan_wording
from lmsconf.render.effects_tables import EffectsRow, EffectsTable, content_table, group_table
from lmsconf.render.effects_wording import (
    EFFECTS_HEADING,
    CausePlaces,
    ContentName,
    Phrase,
    cause_phrase,
    cause_places,
    effects_caveats,
    effects_headline,
    first_sentences,
    more_contents,
    tells_effects,
)
from lmsconf.render.escape import escape_terminal
from lmsconf.render.resource_wording import count_unmanaged, every_key_change

_COLORED_PARTS = re.compile(
    r"^(?P<indent>[ ]+)(?P<sign>-/\+|[+~-])(?= )"
    r"|^(?P<bold>(?:Plan:|No changes\.|Drift:|No drift\.|Apply |Workspace |Effects on people:).*)$"
    r"|^(?P<place>.*?)(?P<severity>error|warning)(?=: .*\[[\w/-]+\]$)",
    re.MULTILINE,
)
_COLORS = {"+": "32", "-": "31", "~": "33", "-/+": "31", "error": "31", "warning": "33"}
"""What is painted → the terminal's number of its colour; all else is bold."""


def colorize(text: str) -> str:
    """Colour signs, severities and summary lines. Text from `escape_terminal` has no escape sequences of its own."""
    return _COLORED_PARTS.sub(_painted, text)


def _painted(match: re.Match[str]) -> str:
    painted = match[match.lastgroup or 0]
    return f"{match[0].removesuffix(painted)}\x1b[{_COLORS.get(painted, '1')}m{painted}\x1b[0m"


def join_blocks(blocks: Iterable[Iterable[str]]) -> str:
    """Join blocks of lines, each escaped, with empty lines between; empty blocks are dropped."""
    return "\n\n".join(filter(None, ("\n".join(map(escape_terminal, block)) for block in blocks))) + "\n"


def listed(heading: str, lines: Iterable[str], indent: str = "  ") -> list[str]:
    """Return indented lines under a heading; nothing without lines."""
    rows = [f"{indent}{line}" for line in lines]
    return [f"{heading}:", *rows] if rows else []


def split_lines(text: str | None, indent: str = "  ") -> list[str]:
    """Return the lines of a text that may have several, such as a hint with a corrected manifest line."""
    # Split at \n only: other line separators can only come from names.
    return [indent + line for line in (text or "").split("\n") if line.strip()]


def table_lines(rows: Sequence[Sequence[str]], left: Container[int]) -> Iterator[str]:
    """Yield rows of cells in columns as wide as their widest cell. left: the columns that are not right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()


def unchanged_lines(addresses: Sequence[Address]) -> Iterator[str]:
    """Return the first resources that a plan does not change, and how many more there are."""
    return (f"    {line}" for line in first_lines(list(map(resource_title, addresses)), 10))


def unmanaged_lines(groups: Iterable[UnmanagedResources]) -> Iterator[str]:
    """Yield how many resources no manifest manages, and the first of them, kind by kind."""
    for group in groups:
        yield count_unmanaged(group)
        yield from unchanged_lines(group.addresses)


def change_lines(change: Change) -> Iterator[str]:
    """Yield the block of one change."""
    sign, undo = plan_wording.ACTION_SIGNS[change.action], plan_wording.describe_undo_limit(change)
    yield f"  {sign} {resource_title(change.address)} {plan_wording.ACTION_WORDS[change.action]}"
    annotations = (f"about {line}" for line in plan_wording.annotation_lines(change))
    facts = (change.source, change.reason, change.origin, *annotations, undo)
    yield from (f"      {fact}" for fact in facts if fact is not None)
    for key in every_key_change(change):
        value = key.note or ("" if key.is_list else " → ".join((*key.removed, *key.added)))
        mark = {Action.CREATE: "+", Action.DELETE: "-"}.get(change.action, "~")
        yield f"      {mark} {key.path}:{f' {value}' if value else ''}"
        if key.is_list:
            yield from (*item_lines(key.added, "+"), *item_lines(key.removed, "-"))
    yield from problems_block(change.problems, indent="      ", block_address=change.address)


def item_lines(items: Iterable[str], sign: str) -> Iterator[str]:
    """Yield all items of a list, untruncated: who approves a plan must have seen every person it removes."""
    return (f"          {sign} {escape_terminal(item)}" for item in items)


def problems_block(
    problems: Iterable[Problem], *, indent: str = "", block_address: Address | None = None
) -> Iterator[str]:
    """Yield problems, each with its hint on lines of its own."""
    for problem in problems:
        yield indent + plan_wording.format_problem(problem, block_address=block_address)
        yield from split_lines(problem.hint, f"{indent}  ")


def plan_text(plan: Plan, *, names_blockers: bool = True) -> str:
    """Render a plan: effects on people, settings and problems, changes, unmanaged resources, blockers."""
    return join_blocks(
        [
            [
                plan_wording.workspace_line(plan),
                *plan_wording.scope_sentences(plan),
            ],
            *effects_lines(plan),
            *(listed(heading, lines) for heading, lines in plan_wording.settings_lists(plan).items()),
            problems_block(plan.problems),
            *map(change_lines, plan.changes),
            [f"{plan_wording.left_out_heading(plan)}.", *unchanged_lines(plan.left_out)] if plan.left_out else [],
            [
                plan_wording.no_longer_declared_heading(plan),
                *(
                    line
                    for one in plan.no_longer_declared
                    for line in (f"    {resource_title(one.address)}", f"      {one.absent}")
                ),
            ]
            if plan.no_longer_declared
            else [],
            unmanaged_lines(plan.unmanaged),
            *([] if plan.rehearsal is None else _rehearsal(plan, plan.rehearsal)),
            _summary(plan),
            _stops(plan) if names_blockers else [],
        ]
    )


def problems_text(problems: Sequence[Problem]) -> str:
    """Render problems with their hints and, for several, their counts. Empty without problems."""
    counts = [f"{plan_wording.count_severities(problems)}."] if len(problems) > 1 else []
    return join_blocks([problems_block(problems), counts]) if problems else ""


def _rehearsal(plan: Plan, rehearsal: Rehearsal) -> list[Iterable[str]]:
    """Return the blocks of a plan's rehearsal: its result, what was not done, what is left, what it rests on."""
    return [
        listed(
            f"{plan_wording.REHEARSAL_HEADING}, as it was read at {rehearsal.taken_at}",
            plan_wording.rehearsal_sentences(plan, rehearsal),
        ),
        *(
            [
                f"  {plan_wording.failed_call_line(call)}",
                *split_lines(call.reason, "      "),
                *split_lines(call.hint, "      "),
            ]
            for call in rehearsal.failed
        ),
        listed(plan_wording.REMAINING_HEADING, map(plan_wording.remaining_line, rehearsal.remaining)),
        *(problems_block([problem]) for problem in rehearsal.problems),
        listed(plan_wording.GROUPS_HEADING, map(plan_wording.group_line, rehearsal.memberships)),
        listed(plan_wording.ASSUMPTIONS_HEADING, map(plan_wording.assumption_line, rehearsal.assumptions)),
    ]


def _summary(plan: Plan) -> Iterator[str]:
    """Yield the last block: what it does to people and its rehearsal again, the counts, and the digest."""
    # On a terminal, its beginning is out of sight by then.
    if len(plan.changes) > 1 and plan.effects.people.any and plan.effects.basis is not Basis.OFF:
        yield f"{EFFECTS_HEADING}: {effects_headline(plan)}"
    if plan.rehearsal is not None:
        yield plan_wording.rehearsal_line(plan.rehearsal)
    yield plan_wording.plan_summary(plan)
    yield from filter(None, [plan_wording.assumptions_sentence(plan)])
    if plan.changes:
        yield f"Digest: {plan_digest(plan)}"


def _stops(plan: Plan) -> Iterator[str]:
    """Yield the plan's blockers with reason and hint, and the command that consents to them."""
    stops = (line for blocker in blockers(plan) for line in (str(blocker), *split_lines(blocker.hint)))
    yield from listed(plan_wording.BLOCKERS_HEADING, stops)
    if (line := consent_command(plan)) is not None:
        yield from (CONSENT_LEAD, f"  {line}")


def effects_lines(plan: Plan) -> list[Iterable[str]]:
    """Return the blocks about people: the sentences, a table per content, a table per group.

    None for a plan that is empty, unless its effects were not computed.
    """
    if not tells_effects(plan):
        return []
    places = cause_places(plan)
    tables = (content_table(plan.effects), group_table(plan.effects))
    return [_effects_sentences(plan, places), *(_effects_table(table, places) for table in tables if table.rows)]


def _effects_sentences(plan: Plan, places: CausePlaces) -> Iterator[str]:
    yield f"{EFFECTS_HEADING}: {effects_headline(plan)}"
    sentences = first_sentences(plan, places)
    for effect, causes in sentences:
        yield f"  {_phrase(effect)}"
        if causes:
            yield f"      {_phrase(causes)}"
    if (more := more_contents(plan, len(sentences))) is not None:
        yield f"  … {more}; the table below lists all of them."
    yield from (f"  {caveat}" for caveat in effects_caveats(plan.effects))


def _phrase(phrase: Phrase) -> str:
    """Return a sentence with the names of contents in quotes."""
    return "".join(f'"{part}"' if isinstance(part, ContentName) else part for part in phrase)


def _effects_table(table: EffectsTable, places: CausePlaces) -> Iterator[str]:
    """Yield a table whose last column are the names, which are never truncated."""
    heads = zip(*(heading.rpartition(" ")[::2] for heading in table.headings), strict=True)
    cells = (row.cells if row.unknown is None else [""] * len(table.headings) for row in table.rows)
    first, last, *lines = table_lines([*heads, *cells], left=())
    if first:
        yield f"  {first}"
    yield f"  {last}  {table.nouns[0]}"
    for row, numbers in zip(table.rows, lines, strict=True):
        yield from _effects_row(row, numbers if row.unknown is None else row.unknown.ljust(len(last)), places)


def _effects_row(row: EffectsRow, numbers: str, places: CausePlaces) -> Iterator[str]:
    place = "" if row.address is None else "".join(places.get(row.address, ()))
    yield f"  {numbers}  {row.title}{' (estimate)' if row.is_estimate else ''}{place}"
    if row.note is not None:
        yield f"      {row.note}"
    most = 10  # people whose answers change are a cause each
    yield from (f"      {_phrase(cause_phrase(cause, places))}" for cause in row.causes[:most])
    if len(row.causes) > most:
        yield f"      … and {len(row.causes) - most:,} more causes"
