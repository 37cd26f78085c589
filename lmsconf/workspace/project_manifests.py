"""The project's manifests, and those of a base: load them, and validate them offline.

A base is a folder, or a commit of the project's repository. A commit is read without touching the work tree: its files
are written to a temporary folder while they are loaded. No name of a ref or a path can become an option of git, and no
folder in the repository, which a branch may add, takes precedence over a ref.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import LmsconfError, Problem, ProblemsFound, UsageError, refuse_if
from lmsconf.kinds.kind_table import KINDS
from lmsconf.manifest.file_set import FILE_LIMIT, PROJECT_FILE
from lmsconf.manifest.load import ExpandedEntries, load_folder
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import Manifests
from lmsconf.model.guards import DEFAULTS, GUARDS, UNKNOWN, GuardLimits, Policy, limit_to_json
from lmsconf.model.plan import RenameCandidate
from lmsconf.planner.lint_rules import lint_manifests
from lmsconf.planner.planned_resources import find_expired_absent, find_left_alone
from lmsconf.project.config_file import ENV_WORKSPACE
from lmsconf.project.config_reader import read_project_file
from lmsconf.project.credentials import NOWHERE, RequestDestination, refuse_untrusted_changes, request_destination
from lmsconf.project.settings import Settings, load_settings
from lmsconf.support.files import find_work_tree

if TYPE_CHECKING:
    from lmsconf.support.git import GitFile, GitRepository


class ManifestsVersion(Struct, frozen=True):
    """Manifests of one commit or folder, with the settings of its project file as a policy and by path.

    destination: where that file sends the requests of the current workspace.
    """

    manifests: Manifests
    policy: Policy
    settings: Mapping[str, Json]
    destination: RequestDestination = NOWHERE


class BaseManifests(Struct, frozen=True, kw_only=True):
    """What manifests are compared with. older: previous versions, latest first, as far as the history reaches."""

    name: str
    version: ManifestsVersion
    older: Sequence[ManifestsVersion] = ()


def settings_by_path(settings: Settings) -> dict[str, Json]:
    """All settings that affect plans and runs of the current workspace, except where its requests are sent."""
    folders = [
        (folder.relative_to(settings.root) if folder.is_relative_to(settings.root) else folder).as_posix()
        for folder in (settings.manifests, *settings.overlays)
    ]
    return {
        **_of_policy(settings.policy),
        **{f"dialect.{key}": value for key, value in settings.dialect.items()},
        **{f"vars.{name}": value for name, value in settings.variables.items()},
        "ignore": [
            {"address": rule.pattern, "reason": rule.reason, **({"until": str(rule.until)} if rule.until else {})}
            for rule in settings.ignores
        ],
        "lock": False if settings.lock is None else {"lease": settings.lock.lease},
        "manifests": folders[0] if len(folders) == 1 else list[Json](folders),
        **settings.shared,
    }


def _of_policy(policy: Policy) -> dict[str, Json]:
    values = policy.settings_json()
    return {
        **{f"guards.{name}": limit_to_json(policy.guards.limits[name]) for name in GUARDS},
        "guards.protect": values["protect"],
        "guards.min_admins": values["min_admins"],
        **{f"ownership.{KINDS[name].section}": owned for name, owned in members(values["ownership"]).items()},
        "leave_alone": values["leave_alone"],
        "people.unknown": "skip" if policy.skip_unknown else "error",
        "people.create": policy.create_people,
        "settle": values["settle"],
        **{code: level.value for code, level in policy.lints.items()},
        "plans.valid_for": policy.valid_for.total_seconds(),
        "allow": [
            {
                one.guard: UNKNOWN if one.number is None else one.number,
                **({} if one.reason is None else {"reason": one.reason}),
                "until": str(one.until),
            }
            for one in policy.consents
        ],
        **({} if policy.timezone_name is None else {"timezone": policy.timezone_name}),
    }


def load_manifests(
    settings: Settings, expanded: ExpandedEntries | None = None, drafts: Mapping[str, bytes] | None = None
) -> Manifests:
    """Load the project's manifests, with every problem of every file. expanded: filled with each entry.

    drafts: content by path in the project, used instead of the files on disk.
    """
    loaded = load_folder(
        settings.manifests,
        settings.root,
        overlays=settings.overlays,
        timezone=settings.policy.timezone,
        variables=settings.variables,
        workspaces=(*settings.workspaces, ENV_WORKSPACE),
        expanded=expanded,
        unsaved_contents=drafts,
    )
    return replace(loaded, problems=(*settings.problems, *loaded.problems))


def validate_offline(settings: Settings, expanded: ExpandedEntries | None = None) -> Manifests:
    """Load the manifests, with every problem that can be found offline, including the dialect's,
    expired entries and the findings of lints.
    """
    manifests = load_manifests(settings, expanded)
    policy = settings.policy
    problems: list[Problem] = []
    if settings.dialect:
        from lmsconf.api.spec import ApiSpec

        try:
            ApiSpec(settings.dialect, settings.dialect_at)
        except ProblemsFound as error:
            problems += error.problems
    problems += [
        *manifests.problems,
        *find_left_alone([*manifests.declared, *manifests.absent], policy),
        *find_expired_absent(manifests.absent, policy),
    ]
    if settings.ignores:
        from lmsconf.planner.drift import warn_of_expired_ignores

        problems += warn_of_expired_ignores(settings.ignores, policy.today)
    # Of manifests with errors only a part is parsed, and a lint would judge that part.
    if not any(problem.is_error for problem in manifests.problems):
        problems += lint_manifests(manifests, policy)
    return replace(manifests, problems=tuple(problems))


def add_previous_names(manifests: Manifests, renamed: Mapping[Address, RenameCandidate]) -> Manifests:
    """The manifests with each detected live name added to `previously`."""
    return replace(
        manifests,
        declared=tuple(
            replace(one, previously=(*one.previously, renamed[one.address].address.name))
            if one.address in renamed
            else one
            for one in manifests.declared
        ),
    )


def error_free(manifests: Manifests) -> Manifests:
    """Return the manifests. Raises ProblemsFound if they have errors: nothing is read for such manifests."""
    if any(problem.is_error for problem in manifests.problems):
        raise ProblemsFound(manifests.problems)
    return manifests


def without_entries(manifests: Manifests, addresses: Collection[str | None]) -> Manifests:
    """The manifests without the entries of these addresses."""
    return replace(
        manifests,
        declared=tuple(resource for resource in manifests.declared if str(resource.address) not in addresses),
        absent=tuple(entry for entry in manifests.absent if str(entry.address) not in addresses),
    )


class _History(Struct, frozen=True):
    """The commits of the project's repository. below: the project's folder relative to the repository's top.

    around: those of the repository that has this one as a submodule.
    """

    git: GitRepository
    below: PurePosixPath
    around: _History | None = None

    def find(self, name: str) -> tuple[_History, str] | None:
        """Resolve a ref to a commit, and the history that it is of; None if there is none.

        In a submodule, a ref is one of the repository around it, and means the commit that is recorded there: a branch
        may make the project's folder a submodule, and so choose what the refs in it are. Raises like `commit`.
        """
        if self.around is None:
            commit = self.commit(name)
            return None if commit is None else (self, commit)
        found = self.around.find(name)
        recorded = None if found is None else found[0].recorded(found[1], self.git.top)
        return found if recorded is None else (self, recorded)

    def recorded(self, commit: str, submodule: Path) -> str | None:
        """Return the commit that a commit records for the submodule in a folder; None if it has none there."""
        path = submodule.relative_to(self.git.top).as_posix()
        about = self.git.run("ls-tree", commit, "--", path).split(b"\t")[0].decode()
        return about.split()[2] if about.startswith("160000") else None  # the mode of a submodule

    def commit(self, name: str) -> str | None:
        """Resolve a ref to a commit; None if there is none. Raises UsageError for an ambiguous name."""
        refs = [f"refs/{of}/{name}" for of in ("tags", "heads", "remotes")]
        listed = self.git.run_if_possible("for-each-ref", "--format=%(refname)", *refs) or b""
        matches = [ref for ref in listed.decode("utf-8", "surrogateescape").splitlines() if ref in refs]
        if len(matches) > 1:
            raise UsageError(f"--base {name}: that is {' and '.join(matches)}", hint="Pass one of them.")
        answer = self.git.run_if_possible("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return None if answer is None else answer.decode().strip()

    def versions(self, commit: str) -> list[str]:
        """The commit, for the project as it is there, and the ten before it that changed the project's folder.

        They distinguish pending changes from repairs of manual edits.
        """
        below = self.below.as_posix()
        return [
            commit,
            *self.git.run("rev-list", "--first-parent", "--max-count=11", commit, "--", below).decode().split()[1:],
        ]

    def check_out(self, commit: str, folder: Path) -> None:
        """Write the commit's manifests and tables below the project's folder, byte for byte, into another folder."""
        files = [file for file in self.git.files(commit, self.below) if _is_input(file)]
        contents = BytesIO(
            self.git.run("cat-file", "--batch", stdin="".join(f"{file.oid}\n" for file in files).encode())
        )
        for file in files:
            size = int(contents.readline().split()[2])
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents.read(size + 1)[:size])


_INPUTS: Final = (".yaml", ".yml", ".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".ods")
"""Endings of manifests and tables."""


def _is_input(file: GitFile) -> bool:
    """Whether a file can be a manifest or belong to one; no symbolic links. Raises GitFailed if its content lacks."""
    path = PurePosixPath(file.path)
    is_inside = not path.is_absolute() and ".." not in path.parts
    if path.suffix not in _INPUTS or file.mode not in ("100644", "100755") or not is_inside:
        return False
    if not file.size.isdecimal():
        from lmsconf.support.git import GitFailed

        raise GitFailed(
            f"the repository lacks {path} of the base",
            hint="Fetch the complete history first (git fetch --unshallow, or --refetch for a partial clone).",
        )
    return int(file.size) <= FILE_LIMIT


def load_base(
    base_name: str,
    settings: Settings,
    policy: Policy,
    environ: Mapping[str, str],
    *,
    trusted: Collection[str],
    with_older: bool = True,
) -> BaseManifests:
    """Load what `--base` names. The only place that refuses untrusted project files, which could redirect requests.

    trusted: what `--trust-project` names, or all parts if no request will be sent. with_older: also load the previous
    versions, which identify pending changes. Raises UsageError if the text names nothing, GitFailed if git fails, and
    ProblemsFound for a url, token, command or dialect that the base does not have.
    """
    with ExitStack() as stack:
        history = None if _is_path(base_name) else _history(stack, settings.root, settings.root, environ)
        found = None if history is None else history.find(base_name)
        if found is None:
            versions = [_version(_folder(base_name, settings.root), settings, policy, environ)]
        else:
            history, commit = found
            commits = history.versions(commit) if with_older else [commit]
            versions = [_at(history, one, settings, policy, environ) for one in commits]
    version, *older = versions
    refuse_untrusted_changes(
        settings.destination, version.destination, trusted, workspace=settings.workspace.name, name=base_name
    )
    return BaseManifests(name=base_name, version=version, older=older)


def _is_path(text: str) -> bool:
    """Whether a text is written as a path, so that it cannot be a ref: `./before`, `../before`, `/before`."""
    return text.startswith(("/", "./", "../")) or text in (".", "..")


def _history(stack: ExitStack, folder: Path, root: Path, environ: Mapping[str, str]) -> _History | None:
    """Open the repository that contains a folder, which is the project's folder `root` or one above it."""
    from lmsconf.support.git import open_repository

    git = stack.enter_context(open_repository(folder, environ))
    if git is None:
        return None
    around = _history(stack, git.top.parent, root, environ) if git.is_submodule else None
    return _History(git, PurePosixPath(Path(os.path.realpath(root)).relative_to(git.top)), around)


def _folder(text: str, root: Path) -> Path:
    """Resolve a text that is not a ref to a folder. Raises UsageError.

    Inside a repository it must be written as a path: otherwise a branch could add a folder with the name of a missing
    ref, and so choose what it is compared with.
    """
    folder = Path(text)
    refuse_if(
        (text.startswith("-"), f"--base {text}: this looks like an option", "Pass a folder, a branch or a commit."),
        (
            not folder.is_dir(),
            f"--base {text}: there is no such folder, and no such commit",
            "Pass a folder, a branch or a commit. For a remote branch, run git fetch first.",
        ),
        (
            not _is_path(text) and find_work_tree(root) is not None and find_work_tree(folder) is not None,
            f"--base {text}: there is no such commit",
            f"For a folder, write ./{text}. For a remote branch, run git fetch first.",
        ),
    )
    return folder


def _version(folder: Path, settings: Settings, policy: Policy, environ: Mapping[str, str]) -> ManifestsVersion:
    """The manifests in a folder: a whole project, or manifests alone, which use the current project's settings."""
    base_settings, destination = replace(settings, root=folder, manifests=folder, overlays=()), NOWHERE
    # Manifests alone are read with the current settings, so that no setting differs.
    compared = settings
    if (folder / PROJECT_FILE).is_file():
        name = settings.workspace.name
        try:
            destination = request_destination(read_project_file(folder), name, folder)
            base_settings = compared = load_settings(
                folder, None if name == ENV_WORKSPACE else name, environ, today=policy.today
            )
        except LmsconfError as error:
            # Treat a project that cannot be read like manifests that cannot be planned.
            return replace(_without_project(Manifests(problems=error.problems), policy), destination=destination)
    base_policy = replace(base_settings.policy, only=policy.only, excluded=policy.excluded, additive=policy.additive)
    return ManifestsVersion(load_manifests(base_settings), base_policy, settings_by_path(compared), destination)


def _without_project(manifests: Manifests, policy: Policy) -> ManifestsVersion:
    """A version without a readable project file: the defaults of all settings hold."""
    defaults: dict[str, Json] = {
        **_of_policy(Policy(workspace=policy.workspace, today=policy.today)),
        **{path: DEFAULTS[path] for path in ("runs.keep", "waves", "max_failures", "ignore", "lock", "manifests")},
    }
    return ManifestsVersion(manifests, replace(policy, guards=GuardLimits()), defaults)


def _at(
    history: _History, commit: str, settings: Settings, policy: Policy, environ: Mapping[str, str]
) -> ManifestsVersion:
    """The manifests of a commit; empty if it has no project in this folder yet."""
    with TemporaryDirectory(prefix="lmsconf-base-") as name:
        folder = Path(name)
        history.check_out(commit, folder)
        if not (folder / PROJECT_FILE).is_file():
            return _without_project(Manifests(), replace(policy, ownership={}))
        return _version(folder, settings, policy, environ)
