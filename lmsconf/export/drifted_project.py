"""Which findings must be accepted together, and which can be: edits are written only if they leave no difference."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.export.accept_drift import (
    ManifestEdits,
    acceptable_findings,
    address_before_rename,
    draft_edits,
    find_remaining_drift,
    select_findings,
)
from lmsconf.kinds.entries import dependencies
from lmsconf.model.address import Address
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.planner.kind import Kind

ParseManifests = Callable[[Mapping[str, bytes]], Manifests]
"""Parse the manifests with some files replaced: path in the project → bytes."""
ComputeDrift = Callable[[Manifests], DriftReport]
"""Compare manifests with the live workspace. Raises ProblemsFound."""


class DriftedProject(Struct, frozen=True, kw_only=True):
    """The manifests of a project, their drift, and functions to parse and compare edited manifests."""

    drift: DriftReport
    manifests: Manifests
    root: Path
    timezone: tzinfo | None
    kinds: Mapping[str, Kind]
    parse_manifests: ParseManifests
    compute_drift: ComputeDrift

    def accept(self, patterns: Sequence[str]) -> ManifestEdits:
        """Return edits that accept all findings matching the patterns, and others that those require.

        For example, a group that was renamed by hand requires the assignments that name it. Nothing is written. Raises
        ProblemsFound if a finding cannot be accepted by an edit in place, or something would still differ.
        """
        every = acceptable_findings(self.drift)
        wanted = select_findings(every, patterns, self.kinds)
        asked = frozenset(one.address for one in wanted)
        while True:
            # An entry that declares several resources can only be edited for all of them.
            lines = {one.source for one in wanted if one.source is not None and one.state is not DriftState.UNDECLARED}
            addresses = {one.address for one in wanted}
            wanted = [one for one in every if one.address in addresses or one.source in lines]
            draft = self._drafted(wanted)
            after = self.parse_manifests(draft.after)
            problems = tuple(self._left(draft, after))
            more = self._leaning(problems, draft, after)
            if not more:
                break
            wanted += [one for one in every if one.address in more]
        if problems:
            raise ProblemsFound([locate_on_disk(problem, draft) for problem in problems])
        return replace(draft, asked=asked)

    def without_refused_edits(self) -> DriftReport:
        """Return the drift report without the `accept` lines of findings whose edit would be refused."""
        editable = [one for one in self.drift.findings if one.accept is not None and one.source is not None]
        dead = self._refused(editable)
        dead |= self._owned([one for one in editable if one.state is DriftState.UNDECLARED and one.address not in dead])
        findings = (replace(one, accept=None) if one.address in dead else one for one in self.drift.findings)
        return replace(self.drift, findings=tuple(findings))

    def _left(self, draft: ManifestEdits, manifests: Manifests) -> Iterator[Problem]:
        """Yield the problems of a draft, given its parsed manifests."""
        try:
            after = self.compute_drift(manifests)
        except ProblemsFound as error:
            messages_before = {problem.message for problem in self.drift.problems}
            yield from (
                problem for problem in error.problems if problem.is_error and problem.message not in messages_before
            )
        else:
            yield from find_remaining_drift(draft, self.drift, after)

    def _leaning(self, problems: Iterable[Problem], draft: ManifestEdits, after: Manifests) -> set[Address]:
        """Return further findings that must be accepted too: those that the draft turned into errors.

        Without any, one finding that the resources with problems now depend on.
        """
        wrong = {Address.parse(problem.address) for problem in problems if problem.address is not None}
        accepted = {one.address for one in draft.accepted}
        known = {one.address for one in acceptable_findings(self.drift) if one.source is not None} - accepted
        if broken := known & {address_before_rename(address, draft.renamed) for address in wrong}:
            return broken
        # An accepted condition may refer to a choice that the manifests do not declare yet.
        resources = [resource for resource in after.declared if resource.address in wrong]
        below = {
            address_before_rename(each, draft.renamed) for resource in resources for each in dependencies(resource)
        }
        return set(sorted(known & below)[:1])

    def _refused(self, findings: Sequence[DriftFinding]) -> set[Address]:
        """Return the findings that cannot be edited in place."""
        left, refused = list(findings), set[Address]()
        while left:
            problems = self._problems(left)
            named = {problem.address for problem in problems}
            sources = {one.source for one in left if str(one.address) in named}
            dead = {one.address for one in left if one.source in sources}
            if problems and not dead:
                # The problem concerns a file as a whole, so each finding is tried alone.
                dead = {one.address for one in left if self._problems([one])}
            refused |= dead
            left = [one for one in left if one.address not in dead] if dead else []
        return refused

    def _owned(self, findings: Sequence[DriftFinding]) -> AbstractSet[Address]:
        """Return the findings that would be deleted even without their entry under `absent`.

        They are owned, and no manifest declares them.
        """
        if not findings:
            return frozenset()
        try:
            after = self.compute_drift(self.parse_manifests(self._drafted(findings).after))
        except ProblemsFound:
            return frozenset()
        return {finding.address for finding in after.findings} & {finding.address for finding in findings}

    def _problems(self, findings: Sequence[DriftFinding]) -> tuple[Problem, ...]:
        try:
            self._drafted(findings)
        except ProblemsFound as error:
            return error.problems
        return ()

    def _drafted(self, findings: Sequence[DriftFinding]) -> ManifestEdits:
        return draft_edits(findings, self.manifests, self.root, self.timezone, self.kinds)


def locate_on_disk(problem: Problem, edits: ManifestEdits) -> Problem:
    """Return the problem with its location in the file on disk instead of the draft."""
    source = problem.source
    if source is None or source.file not in edits.after:
        return problem
    new, old = (data[source.file].decode("utf-8").split("\n") for data in (edits.after, edits.before))
    for tag, start, end, old_start, old_end in difflib.SequenceMatcher(None, new, old).get_opcodes():
        if start < source.line <= end:
            same = tag == "equal"
            line = old_start + source.line - start if same else min(old_start + 1, old_end, len(old))
            return replace(problem, source=SourceLocation(source.file, line, source.column if same else 0, source.each))
    return problem
