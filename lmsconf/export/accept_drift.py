"""Findings of a drift report → drafted edits of manifests, and what still differs with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence as SequenceOf
from datetime import tzinfo
from pathlib import Path
from typing import Final

from msgspec import Struct

from lmsconf.errors import LmsconfError, Problem, ProblemsFound
from lmsconf.export.manifest_editor import ManifestEditor
from lmsconf.model.address import Address
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.model.names import matches_pattern
from lmsconf.planner.address_patterns import AMBIGUOUS, resolve_patterns, unresolved_problem
from lmsconf.planner.drift import TAKE_OVER
from lmsconf.planner.kind import Kind

ACCEPT: Final = "--accept"


class ManifestEdits(Struct, frozen=True, kw_only=True):
    """Edited manifests, not written yet. before and after: path in the project → the file's bytes.

    asked: the addresses to accept; `accepted` may hold more. renamed: new address of a resource → its old address.
    """

    asked: frozenset[Address] = frozenset()
    accepted: tuple[DriftFinding, ...]
    renamed: MappingOf[Address, Address]
    before: MappingOf[str, bytes]
    after: MappingOf[str, bytes]

    @property
    def accepted_beyond(self) -> list[Address]:
        """The addresses that were accepted though they were not asked for."""
        return [finding.address for finding in self.accepted if finding.address not in self.asked]

    @property
    def diff(self) -> str:
        """Unified diff of all files."""
        return "".join(file_diff(name, self.before[name], self.after[name]) for name in sorted(self.after))


def file_diff(name: str, before: bytes, after: bytes) -> str:
    """Return the unified diff of one file."""
    old, new = (data.decode("utf-8").split("\n") for data in (before, after))
    lines = []
    for line in difflib.unified_diff(_ended(old), _ended(new), f"a/{name}", f"b/{name}"):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def _ended(lines: list[str]) -> list[str]:
    return [*(f"{line}\n" for line in lines[:-1]), *filter(None, lines[-1:])]


def draft_edits(
    findings: SequenceOf[DriftFinding],
    manifests: Manifests,
    root: Path,
    timezone: tzinfo | None,
    kinds: MappingOf[str, Kind],
) -> ManifestEdits:
    """Return the manifests edited to declare the live state of every finding. Nothing is written.

    Raises ProblemsFound, with all problems, if a finding cannot be accepted by an edit in place.
    """
    editor = ManifestEditor(manifests, root, timezone, kinds)
    editor.accept(findings)
    after = editor.edited()
    if editor.problems:
        raise ProblemsFound(editor.problems)
    before = {name: editor.pages[name].data for name in after}
    return ManifestEdits(accepted=tuple(findings), renamed=editor.renamed, before=before, after=after)


def acceptable_findings(drift: DriftReport) -> list[DriftFinding]:
    """Return the findings that can be accepted, ignored ones included.

    A resource that would be deleted only with another is excluded: it stays if the other does.
    """
    findings = (*drift.findings, *(ignored.finding for ignored in drift.ignored))
    return [finding for finding in findings if not finding.goes_along]


def select_findings(
    findings: SequenceOf[DriftFinding], arguments: SequenceOf[str], kinds: MappingOf[str, Kind]
) -> list[DriftFinding]:
    """Return the findings that the arguments of --accept name. Raises LmsconfError for one that names none."""
    addresses = [finding.address for finding in findings]
    patterns = resolve_patterns(arguments, kinds, addresses)
    for pattern in patterns:
        if not pattern.matches:
            raise _nothing_differs(pattern.typed, unresolved_problem(ACCEPT, pattern, kinds, addresses))
    return [one for one in findings if any(matches_pattern(str(one.address), by.pattern) for by in patterns)]


def _nothing_differs(argument: str, problem: Problem) -> LmsconfError:
    if problem.code == AMBIGUOUS:
        return LmsconfError(problem.message, hint=problem.hint)
    near = problem.hint if problem.hint and problem.hint.startswith("Did you mean") else None
    return LmsconfError(
        f"{ACCEPT} {argument}: no difference has this address",
        hint=near or "`lmsconf drift` lists the differences with their addresses.",
    )


def find_remaining_drift(edits: ManifestEdits, before: DriftReport, after: DriftReport) -> Iterator[Problem]:
    """Yield the problems of edited manifests: accepted findings that still differ, and new findings.

    An edit with any of them is not written.
    """
    messages_before = {problem.message for problem in before.problems}
    yield from (problem for problem in after.problems if problem.is_error and problem.message not in messages_before)
    known = {finding.address for finding in (*before.findings, *(one.finding for one in before.ignored))}
    accepted = {finding.address for finding in edits.accepted}
    for finding in (*after.findings, *(ignored.finding for ignored in after.ignored)):
        address = address_before_rename(finding.address, edits.renamed)
        if address in accepted or address not in known:
            yield _unsettled(finding, is_new=address not in accepted)


def address_before_rename(address: Address, renamed: MappingOf[Address, Address]) -> Address:
    """Return the address before the edit; that of an assignment contains the name of its audience."""
    content, arrow, audience = address.text.rpartition(" -> ")
    was = renamed.get(Address.parse(audience)) if arrow and "/" in audience else None
    return renamed.get(address, address) if was is None else Address(address.kind, f"{content}{arrow}{was}")


def _unsettled(finding: DriftFinding, *, is_new: bool) -> Problem:
    state = finding.state.value.replace("_", " ")
    hint = "Change the manifests by hand."
    if finding.state is DriftState.UNDECLARED and finding.source is None:
        hint = f"The project owns it: remove it from `absent` by hand, then `lmsconf {TAKE_OVER}` writes a manifest."
    return Problem(
        code="editing/not-settled",
        message=f"{finding.address}: with the edit it would {'' if is_new else 'still '}be {state}",
        hint=hint,
        source=finding.source,
        address=str(finding.address),
    )
