"""Select the findings of a drift report that are accepted together, and find what would still differ.

Edits are written only if they leave no difference.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation, raise_found
from lmsconf.kinds.kind_table import dependencies
from lmsconf.model.address import Address
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.model.names import matches_pattern
from lmsconf.planner.drift import TAKE_OVER
from lmsconf.planner.selection import AMBIGUOUS, resolve_pattern, unresolved_problem
from lmsconf.project.settings import Settings
from lmsconf.workspace.accept_drift import ManifestEditor, ManifestEdits
from lmsconf.workspace.project_manifests import load_manifests


def acceptable_findings(drift: DriftReport) -> list[DriftFinding]:
    """Return the findings that can be accepted, also ignored ones; no deletion that another one brings about."""
    return [finding for finding in _all_findings(drift) if not finding.goes_along]


def _all_findings(drift: DriftReport) -> list[DriftFinding]:
    """Return the findings, also ignored ones."""
    return [*drift.findings, *drift.ignored]


def select_findings(findings: Sequence[DriftFinding], arguments: Sequence[str]) -> list[DriftFinding]:
    """Return the findings that the arguments of --accept name. Raises LmsconfError for one that names none."""
    addresses = [finding.address for finding in findings]
    patterns = [resolve_pattern(argument, addresses) for argument in arguments]
    for pattern in patterns:
        if not pattern.matches:
            problem = unresolved_problem("--accept", pattern, addresses)
            if problem.code == AMBIGUOUS:
                raise LmsconfError(problem.message, hint=problem.hint)
            near = problem.hint if (problem.hint or "").startswith("Did you mean") else None
            raise LmsconfError(
                f"--accept {pattern.typed}: no difference has this address",
                hint=near or "`lmsconf drift` lists the differences with their addresses.",
            )
    return [one for one in findings if any(matches_pattern(str(one.address), by.pattern) for by in patterns)]


def address_before_rename(address: Address, renamed: Mapping[Address, Address]) -> Address:
    """Return the address before the edit; that of an assignment contains the name of its audience."""
    content, arrow, audience = address.text.rpartition(" -> ")
    was = renamed.get(Address.parse(audience)) if arrow and "/" in audience else None
    return renamed.get(address, address) if was is None else Address(address.kind, f"{content}{arrow}{was}")


def _unsettled(finding: DriftFinding, *, is_new: bool) -> Problem:
    return Problem(
        code="editing/not-settled",
        message=f"{finding.address}: with the edit it would {'' if is_new else 'still '}be "
        + finding.state.value.replace("_", " "),
        hint=f"The project owns it: remove it from `absent` by hand, then `lmsconf {TAKE_OVER}` writes a manifest."
        if finding.state is DriftState.UNDECLARED and finding.source is None
        else "Change the manifests by hand.",
        source=finding.source,
        address=str(finding.address),
    )


class DriftedProject(Struct, frozen=True, kw_only=True):
    """The manifests of a project and their drift.

    compute_drift: compares manifests with the live workspace, and raises ProblemsFound.
    """

    drift: DriftReport
    manifests: Manifests
    settings: Settings
    compute_drift: Callable[[Manifests], DriftReport]

    def accept(self, patterns: Sequence[str]) -> ManifestEdits:
        """Return edits that accept all findings matching the patterns, and others that those require.

        For example, a group that was renamed by hand requires the assignments that name it. Nothing is written. Raises
        ProblemsFound if a finding cannot be accepted by an edit in place, or something would still differ.
        """
        every = acceptable_findings(self.drift)
        wanted = select_findings(every, patterns)
        asked = frozenset(one.address for one in wanted)
        while True:
            # An entry that declares several resources can only be edited for all of them.
            lines = {one.source for one in wanted if one.source is not None and one.state is not DriftState.UNDECLARED}
            addresses = {one.address for one in wanted}
            wanted = [one for one in every if one.address in addresses or one.source in lines]
            draft = self._drafted(wanted)
            raise_found(draft.problems)
            after = load_manifests(self.settings, drafts=draft.after)
            problems = tuple(self._left(draft, after))
            more = self._leaning(problems, draft, after)
            if not more:
                break
            wanted += [one for one in every if one.address in more]
        raise_found([locate_on_disk(problem, draft) for problem in problems])
        return replace(draft, beyond=tuple(one.address for one in wanted if one.address not in asked))

    def without_refused_edits(self) -> DriftReport:
        """Return the drift report without the `accept` lines of findings whose edit would be refused."""
        editable = [one for one in self.drift.findings if one.accept is not None and one.source is not None]
        dead = self._refused(editable)
        dead |= self._owned([one for one in editable if one.state is DriftState.UNDECLARED and one.address not in dead])
        return replace(
            self.drift,
            findings=tuple(replace(one, accept=None) if one.address in dead else one for one in self.drift.findings),
        )

    def _left(self, draft: ManifestEdits, manifests: Manifests) -> Iterator[Problem]:
        """Yield the problems of a draft, given its parsed manifests: new ones, and findings that it leaves or adds.

        An edit with any of them is not written.
        """
        try:
            after = self.compute_drift(manifests)
            findings, problems = _all_findings(after), after.problems
        except ProblemsFound as error:
            findings, problems = [], error.problems
        messages_before = {problem.message for problem in self.drift.problems}
        yield from (problem for problem in problems if problem.is_error and problem.message not in messages_before)
        known = {one.address for one in _all_findings(self.drift)}
        accepted = {finding.address for finding in draft.accepted}
        found = [(finding, address_before_rename(finding.address, draft.renamed)) for finding in findings]
        yield from (
            _unsettled(finding, is_new=address not in accepted)
            for finding, address in found
            if address in accepted or address not in known
        )

    def _leaning(self, problems: Iterable[Problem], draft: ManifestEdits, after: Manifests) -> set[Address]:
        """Return further findings that must be accepted too: those that the draft turned into errors.

        Without any, one finding that the resources with problems now depend on.
        """
        wrong = {Address.parse(problem.address) for problem in problems if problem.address is not None}
        known = {one.address for one in acceptable_findings(self.drift) if one.source is not None}
        known -= {one.address for one in draft.accepted}
        if broken := known & {address_before_rename(address, draft.renamed) for address in wrong}:
            return broken
        # An accepted condition may refer to a choice that the manifests do not declare yet.
        below = {
            address_before_rename(each, draft.renamed)
            for resource in after.declared
            if resource.address in wrong
            for each in dependencies(resource)
        }
        return set(sorted(known & below)[:1])

    def _refused(self, findings: Sequence[DriftFinding]) -> set[Address]:
        """Return the findings that cannot be edited in place."""
        problems = self._drafted(findings).problems
        named = {problem.address for problem in problems}
        sources = {one.source for one in findings if str(one.address) in named}
        dead = {one.address for one in findings if one.source in sources}
        if problems and not dead:
            # The problem concerns a file as a whole, so each finding is tried alone.
            dead = {one.address for one in findings if self._drafted([one]).problems}
        # A file is checked as a whole only once no single edit is refused.
        return dead | self._refused([one for one in findings if one.address not in dead]) if dead else dead

    def _owned(self, findings: Sequence[DriftFinding]) -> AbstractSet[Address]:
        """Return the findings that would be deleted even without their entry under `absent`.

        They are owned, and no manifest declares them.
        """
        draft = self._drafted(findings)
        if draft.problems or not findings:
            return frozenset()
        try:
            after = self.compute_drift(load_manifests(self.settings, drafts=draft.after))
        except ProblemsFound:
            return frozenset()
        return {finding.address for finding in after.findings} & {finding.address for finding in findings}

    def _drafted(self, findings: Sequence[DriftFinding]) -> ManifestEdits:
        """Return the manifests edited to the live state of all findings, or why that is refused."""
        return ManifestEditor(self.manifests, self.settings).accept(findings)


def locate_on_disk(problem: Problem, edits: ManifestEdits) -> Problem:
    """Return the problem with its location in the file on disk instead of the draft."""
    source = problem.source
    if source is None or source.file not in edits.after:
        return problem
    new, old = (data[source.file].decode("utf-8").split("\n") for data in (edits.after, edits.before))
    for tag, start, end, old_start, old_end in difflib.SequenceMatcher(None, new, old).get_opcodes():
        if start < source.line <= end:
            column = source.column if tag == "equal" else 0
            line = min(old_start + source.line - start, old_end)
            return replace(problem, source=SourceLocation(source.file, line, column, source.each))
    # It is about the whole file, or YAML has more lines than there are line feeds.
    return problem
