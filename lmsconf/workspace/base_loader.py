"""Load the manifests of a base: from a folder, or from a commit of the project's repository.

A commit is read without touching the work tree: its files are written to a temporary folder while they are loaded. No
name of a ref or a path can become an option of git, and no folder in the repository, which a branch may add, takes
precedence over a ref.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import LmsconfError, UsageError
from lmsconf.manifest.file_set import FILE_LIMIT, PROJECT_FILE
from lmsconf.model.declarations import Manifests
from lmsconf.model.policy import GuardLimits, Policy
from lmsconf.project.config_file import ENV_WORKSPACE
from lmsconf.project.config_reader import read_project_file
from lmsconf.project.credentials import NOWHERE, RequestDestination, refuse_untrusted_changes, request_destination
from lmsconf.project.settings import Settings, load_settings
from lmsconf.support.files import find_work_tree
from lmsconf.support.git import GitFailed, GitFile, GitRepository, open_repository
from lmsconf.workspace.plan_with_base import default_settings_by_path, settings_by_path
from lmsconf.workspace.project_manifests import BaseManifests, ManifestsVersion, load_manifests

OLDER: Final = 10
"""How many versions before the base are compared to distinguish pending changes from repairs of manual edits."""
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".ods"})
_FILE_MODES: Final = ("100644", "100755")
_SUBMODULE_MODE: Final = "160000"


_Loaded = tuple[ManifestsVersion, RequestDestination]
"""Manifests of a base, and where their project file sends the requests of the current workspace."""


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
        return about.split()[2] if about.startswith(_SUBMODULE_MODE) else None

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
        """The commit, and earlier ones that changed the project's folder."""
        output = self.git.run(
            "rev-list", "--first-parent", f"--max-count={OLDER + 1}", commit, "--", self.below.as_posix()
        )
        # The first one has the project as it is at the commit itself.
        return [commit, *output.decode().split()[1:]]

    def check_out(self, commit: str, folder: Path) -> None:
        """Write the commit's manifests and tables below the project's folder, byte for byte, into another folder."""
        files = [file for file in self.git.files(commit, self.below) if _is_input(file)]
        wanted = "".join(f"{file.oid}\n" for file in files).encode()
        contents = BytesIO(self.git.run("cat-file", "--batch", stdin=wanted))
        for file in files:
            size = int(contents.readline().split()[2])
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents.read(size + 1)[:size])


def _is_input(file: GitFile) -> bool:
    """Whether a file can be a manifest or belong to one; no symbolic links. Raises GitFailed if its content lacks."""
    path = PurePosixPath(file.path)
    if path.suffix not in _SUFFIXES or path.is_absolute() or ".." in path.parts or file.mode not in _FILE_MODES:
        return False
    if not file.size.isdecimal():
        hint = "Fetch the complete history first (git fetch --unshallow, or --refetch for a partial clone)."
        raise GitFailed(f"the repository lacks {path} of the base", hint=hint)
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
        older: list[ManifestsVersion] = []
        history = None if _is_path(base_name) else _history(stack, settings.root, settings.root, environ)
        found = None if history is None else history.find(base_name)
        if found is not None:
            history, commit = found
            latest, *others = history.versions(commit)
            version, destination = _at(history, latest, settings, policy, environ)
            older = [_at(history, one, settings, policy, environ)[0] for one in (others if with_older else ())]
        else:
            version, destination = _version(_folder(base_name, settings.root), settings, policy, environ)
    current, workspace = settings.destination, settings.workspace.name
    refuse_untrusted_changes(current, destination, trusted, workspace=workspace, name=base_name)
    return BaseManifests(name=base_name, version=version, older=older)


def _is_path(text: str) -> bool:
    """Whether a text is written as a path, so that it cannot be a ref: `./before`, `../before`, `/before`."""
    return text.startswith(("/", "./", "../")) or text in (".", "..")


def _history(stack: ExitStack, folder: Path, root: Path, environ: Mapping[str, str]) -> _History | None:
    """Open the repository that contains a folder, which is the project's folder `root` or one above it."""
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
    if text.startswith("-"):
        raise UsageError(f"--base {text}: this looks like an option", hint="Pass a folder, a branch or a commit.")
    if not folder.is_dir():
        raise UsageError(
            f"--base {text}: there is no such folder, and no such commit",
            hint="Pass a folder, a branch or a commit. For a remote branch, run git fetch first.",
        )
    if not _is_path(text) and find_work_tree(root) is not None and find_work_tree(folder) is not None:
        raise UsageError(
            f"--base {text}: there is no such commit",
            hint=f"For a folder, write ./{text}. For a remote branch, run git fetch first.",
        )
    return folder


def _version(folder: Path, settings: Settings, policy: Policy, environ: Mapping[str, str]) -> _Loaded:
    """The manifests in a folder: a whole project, or manifests alone, which use the current project's settings."""
    bare = replace(settings, root=folder, manifests=folder, overlays=())
    base_settings, place = bare, NOWHERE
    if (folder / PROJECT_FILE).is_file():
        name = settings.workspace.name
        try:
            place = request_destination(read_project_file(folder), name, folder)
            base_settings = load_settings(folder, None if name == ENV_WORKSPACE else name, environ, today=policy.today)
        except LmsconfError as error:
            # Treat a project that cannot be read like manifests that cannot be planned.
            return _without_project(Manifests(problems=error.problems), policy), place
    base_policy = replace(base_settings.policy, only=policy.only, excluded=policy.excluded, additive=policy.additive)
    # Manifests alone are read with the current settings, so that no setting differs.
    compared = (
        replace(base_settings, manifests=settings.manifests, overlays=settings.overlays, root=settings.root)
        if base_settings is bare
        else base_settings
    )
    return ManifestsVersion(load_manifests(base_settings), base_policy, settings_by_path(compared)), place


def _without_project(manifests: Manifests, policy: Policy) -> ManifestsVersion:
    """A version without a readable project file: the defaults of all settings hold."""
    return ManifestsVersion(manifests, replace(policy, guards=GuardLimits()), default_settings_by_path(policy))


def _at(history: _History, commit: str, settings: Settings, policy: Policy, environ: Mapping[str, str]) -> _Loaded:
    """The manifests of a commit; empty if it has no project in this folder yet."""
    with TemporaryDirectory(prefix="lmsconf-base-") as name:
        folder = Path(name)
        history.check_out(commit, folder)
        if not (folder / PROJECT_FILE).is_file():
            return _without_project(Manifests(), replace(policy, ownership={})), NOWHERE
        return _version(folder, settings, policy, environ)
