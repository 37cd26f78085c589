"""The project's manifests: load them, validate them offline, refuse their errors, and derive others from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.kinds import all_kinds
from lmsconf.manifest.load import EntryCallback, load_folder
from lmsconf.model.address import Address
from lmsconf.model.declarations import Manifests
from lmsconf.model.plan import RenameCandidate
from lmsconf.planner.lints import lint_manifests
from lmsconf.planner.planned_resources import refuse_expired_absent, refuse_left_alone
from lmsconf.project.config_file import ENV_WORKSPACE
from lmsconf.project.settings import Settings


def load_manifests(
    settings: Settings, keep: EntryCallback | None = None, drafts: Mapping[str, bytes] | None = None
) -> Manifests:
    """Load the project's manifests, with every problem of every file. keep: called with each entry written out.

    drafts: content by path in the project, used instead of the files on disk.
    """
    loaded = load_folder(
        settings.manifests,
        settings.root,
        all_kinds(),
        overlays=settings.overlays,
        timezone=settings.policy.timezone,
        variables=settings.variables,
        workspaces=(*settings.workspaces, ENV_WORKSPACE),
        on_entry=keep,
        unsaved_contents=drafts,
    )
    return replace(loaded, problems=(*settings.problems, *loaded.problems))


def validate_offline(settings: Settings, keep: EntryCallback | None = None) -> Manifests:
    """Load the manifests, with every problem that can be found offline, including the dialect's,
    expired entries and the findings of lints.
    """
    manifests = load_manifests(settings, keep)
    policy = settings.policy
    dialect: Sequence[Problem] = ()
    late = [*refuse_expired_absent(manifests.absent, policy)]
    if settings.dialect:
        from lmsconf.workspace.connection import dialect_problems

        dialect = dialect_problems(settings)
    if settings.ignores:
        from lmsconf.planner.drift import warn_of_expired_ignores

        late += warn_of_expired_ignores(settings.ignores, policy.today)
    alone = refuse_left_alone([*manifests.declared, *manifests.absent], policy)
    # Of manifests with errors only a part is parsed, and a lint would judge that part.
    broken = any(problem.is_error for problem in manifests.problems)
    lints = [] if broken else lint_manifests(all_kinds(), manifests.declared, policy)
    return replace(manifests, problems=(*dialect, *manifests.problems, *alone, *late, *lints))


def add_previous_names(manifests: Manifests, renamed: Mapping[Address, RenameCandidate]) -> Manifests:
    """The manifests with each detected live name added to `previously`."""
    declared = (
        replace(one, previously=(*one.previously, renamed[one.address].address.name)) if one.address in renamed else one
        for one in manifests.declared
    )
    return replace(manifests, declared=tuple(declared)) if renamed else manifests


def refuse_errors(manifests: Manifests) -> None:
    """Raise ProblemsFound if the manifests have errors. Called before anything is read."""
    if any(problem.is_error for problem in manifests.problems):
        raise ProblemsFound(manifests.problems)


def without_entries(manifests: Manifests, addresses: Collection[str | None]) -> Manifests:
    """The manifests without the entries of these addresses."""
    return replace(
        manifests,
        declared=tuple(resource for resource in manifests.declared if str(resource.address) not in addresses),
        absent=tuple(entry for entry in manifests.absent if str(entry.address) not in addresses),
    )
