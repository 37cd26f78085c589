"""Locate the project, and merge flags, environment and project file into one frozen Settings, in this precedence."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from lmsconf.errors import (
    LmsconfError,
    Problem,
    SourceLocation,
    UsageError,
    problem_found,
    raise_found,
    refuse_if,
    shorten,
)
from lmsconf.manifest.file_set import MANIFESTS, PROJECT_FILE
from lmsconf.manifest.nodes import VARIABLE_START
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import IgnoreRule
from lmsconf.model.guards import Policy
from lmsconf.model.names import did_you_mean, known_names
from lmsconf.project.config_file import (
    ENV_WORKSPACE,
    ProjectFile,
    canonical_address_pattern,
    expand_pattern,
)
from lmsconf.project.config_reader import SANDBOX, path_problem, read_project_file, sandbox_path, url_problem
from lmsconf.project.credentials import (
    Ask,
    RequestDestination,
    Token,
    declared_token,
    env_token,
    request_destination,
)
from lmsconf.support.files import find_work_tree
from lmsconf.support.url_rules import ALLOWED_HOSTS


def find_project_folder(start: Path, environ: Mapping[str, str]) -> Path:
    """Return the nearest folder with a project file, from `start` upwards; `start` if there is none.

    The search ends at the root of the git work tree; outside a repository, at the home folder; outside both, at
    `start`; and at any folder that another user (but root) owns or may write to. Raises LmsconfError if such
    a folder has the project file.
    """
    real = Path(os.path.realpath(start))
    home = os.path.realpath(environ["HOME"]) if environ.get("HOME") else None
    last = find_work_tree(real) or (Path(home) if home and real.is_relative_to(home) else real)
    # The folder as it was named is looked into, and named by its real path.
    for folder, named in zip((start, *real.parents), (real, *real.parents), strict=True):
        foreign = _foreign(folder)
        if os.path.lexists(folder / PROJECT_FILE):
            if foreign is not None:
                raise LmsconfError(
                    f"{named} {foreign}, so its {PROJECT_FILE} is not used",
                    hint=f"If you trust it, pass its folder: -C {shlex.quote(str(named))}",
                    code="project/foreign",
                )
            return folder
        if foreign is not None or last == named:
            break
    return start


def _foreign(folder: Path) -> str | None:
    """Return why a folder is not trusted, in words; None if it belongs to this user or root, and not all may write."""
    try:
        about = folder.stat()
    except OSError:  # a folder above it may not be searched by this user
        return "cannot be inspected"
    if about.st_mode & stat.S_IWOTH:
        return "is writable by everybody"
    return None if about.st_uid in (0, os.geteuid()) else "belongs to another user"


class WorkspaceConfig(Struct, frozen=True, kw_only=True):
    """The selected workspace. `token` is the token's source, not the token.

    database: the embedded sandbox's SQLite file; None for one in memory and for a remote workspace.
    """

    name: str
    url: str
    token: Token | None = None
    seed: Path | None = None
    database: Path | None = None

    @property
    def embedded(self) -> bool:
        """Whether it is the sandbox in this process, without server and credentials."""
        return self.url.startswith(SANDBOX)


class LockSettings(Struct, frozen=True, kw_only=True):
    """The terms of the lock in the workspace. lease: seconds until it expires unless renewed. owner: its shown name."""

    lease: float
    owner: str


class Settings(Struct, frozen=True, kw_only=True):
    """All input of a run besides the manifests.

    root         the folder of the project file
    manifests    the folder of the manifests
    overlays     folders whose manifests add to them and change them
    workspaces   the names of all workspaces in the project file
    policy       the planner's settings, consents of `allow:` included; the caller adds those of `--allow`
    dialect_at   the source location of each key of the dialect
    lock         the terms of the lock in the workspace; None: no lock
    kept_runs    how many runs of a workspace are kept in `.lmsconf/runs`
    problems     warnings and notes about the project file itself
    ignores      differences that do not count as drift
    destination  url, token source and dialect as the project file declares them
    hosts        the only hosts that may receive a token; None: LMSCONF_ALLOWED_HOSTS is unset
    shared       labels, and settings of the whole project that change no plan, by path
    """

    root: Path
    manifests: Path
    workspace: WorkspaceConfig
    workspaces: tuple[str, ...]
    policy: Policy
    dialect: Mapping[str, str | int]
    variables: Mapping[str, Json]
    lock: LockSettings | None
    kept_runs: int
    problems: tuple[Problem, ...]
    destination: RequestDestination
    dialect_at: Mapping[str, SourceLocation] = field(default_factory=dict)
    ignores: tuple[IgnoreRule, ...] = ()
    hosts: tuple[str, ...] | None = None
    overlays: tuple[Path, ...] = ()
    shared: Mapping[str, Json] = field(default_factory=dict)


def load_settings(
    directory: Path | None,
    workspace: str | None,
    environ: Mapping[str, str],
    *,
    today: date | None = None,
    ask: Ask | None = None,
) -> Settings:
    """Load the settings of the project in `directory`; None: searched for in this folder and above.

    today: the date that consents are checked against; None: today in the project's time zone, or UTC. ask: the prompt
    for a token command that is not approved yet; None: such a command is refused. Raises ProblemsFound and UsageError.
    """
    root = directory or find_project_folder(Path(), environ)
    if not root.is_dir():
        raise UsageError(f"there is no folder {root}", hint="Pass the project's folder with -C.")
    selected = {"--workspace": workspace, "LMSCONF_WORKSPACE": environ.get("LMSCONF_WORKSPACE")}
    refuse_if(
        *(
            (
                value and environ.get("LMSCONF_URL"),  # it is a workspace of its own
                f"LMSCONF_URL and {other} both select a workspace",
                f"Unset LMSCONF_URL, or remove {other}.",
            )
            for other, value in selected.items()
        )
    )
    return settings_of(read_project_file(root), root, workspace, environ, today=today, ask=ask)


def settings_of(
    project: ProjectFile,
    root: Path,
    workspace: str | None,
    environ: Mapping[str, str],
    *,
    today: date | None = None,
    ask: Ask | None = None,
) -> Settings:
    """Return the settings of one workspace of a project file; raises like `load_settings`."""
    chosen = _from_environment(root, environ) or _from_file(project, workspace, root, environ, ask)
    policy = _policy(project, chosen.name, today or datetime.now(project.timezone() or UTC).date())
    folders = _folders(project, chosen.name, root)
    unsafe = None if chosen.token is None else chosen.token.warning
    # An empty list allows no host: a pipeline passes a missing value as an empty string.
    hosts = environ.get(ALLOWED_HOSTS)
    kept_runs = cast(int, project.setting("runs.keep"))
    return Settings(
        root=root,
        manifests=folders[0],
        overlays=tuple(folders[1:]),
        workspace=chosen,
        workspaces=tuple(project.mapping_at("workspaces")),
        policy=policy,
        dialect=cast("dict[str, str | int]", project.merged_mapping("dialect", chosen.name)),
        variables=project.variables(chosen.name),
        lock=_lock(project, environ),
        kept_runs=kept_runs,
        problems=(*filter(None, [unsafe]), *project.notes),
        destination=request_destination(project, chosen.name, root),
        dialect_at=project.dialect_locations(chosen.name),
        ignores=tuple(project.drift_ignores(chosen.name)),
        hosts=None if hosts is None else tuple(filter(None, map(str.strip, hosts.split(",")))),
        shared={
            **{f"labels.{name}": value for name, value in project.labels(chosen.name).items()},
            "default_workspace": project.body.get("default_workspace"),
            "runs.keep": kept_runs,
            "waves": [*project.waves],
            "max_failures": project.max_failures,
            **{f"fleet_guards.{name}": limit for name, limit in project.fleet_guards.items()},
        },
    )


def _folders(project: ProjectFile, workspace: str, root: Path) -> list[Path]:
    """Return the folders of a workspace's manifests. Raises ProblemsFound for a variable that is not defined, and for
    a folder inside another one, whose manifests would be read twice.
    """
    values = project.pattern_values(workspace)
    names = [expand_pattern(name, values) for name in project.folders(workspace)] or [MANIFESTS]
    at = ("workspaces", workspace) if "manifests" in project.mapping_at("workspaces", workspace) else ()
    source = project.places.at(*at, "manifests")
    problems = [
        Problem(code="project/folders", message=f"manifests: {message}", hint=hint, source=source)
        for name in names
        for is_wrong, message, hint in _folder_rules(name, names, workspace, root)
        if is_wrong
    ]
    raise_found(problems)
    return [root / name for name in names]


def _folder_rules(name: str, names: Sequence[str], workspace: str, root: Path) -> Sequence[tuple[bool, str, str]]:
    """Return for each rule whether a folder of manifests breaks it, the message, and the hint."""
    outside, _ = path_problem(root, name) or ("", "")
    around = next((other for other in names if other != name and Path(name).is_relative_to(other)), None)
    what = "is named twice" if around is None else f"is inside {shorten(around)}"
    return (
        (
            VARIABLE_START in name,
            f"{shorten(name)} has a variable that is not a label of the workspace {workspace}",
            "Add the label, or name the folder.",
        ),
        (bool(outside), outside, "Name a folder inside the project, without `..`."),
        (
            names.count(name) > 1 or around is not None,
            f"{shorten(name)} {what}, so its files would be read twice",
            "Name each folder once, and none inside another.",
        ),
    )


def _policy(project: ProjectFile, workspace: str, today: date) -> Policy:
    return Policy(
        workspace=workspace,
        today=today,
        ownership=project.ownership(workspace),
        leave_alone=tuple(map(canonical_address_pattern, project.leave_alone)),
        guards=project.guards(workspace),
        consents=tuple(project.consents(workspace, today)),
        timezone=project.timezone(),
        timezone_name=cast("str | None", project.body.get("timezone")),
        skip_unknown=project.setting("people.unknown") == "skip",
        create_people=project.setting("people.create") is True,
        ignore=tuple(one.pattern for one in project.drift_ignores(workspace)),
        settle=_seconds(project.setting("settle")),
        lints=project.lints(workspace, today),
        valid_for=timedelta(seconds=_seconds(project.setting("plans.valid_for"))),
    )


def _from_environment(root: Path, environ: Mapping[str, str]) -> WorkspaceConfig | None:
    """Return the workspace of LMSCONF_URL; None if unset. It takes nothing, above all no token, from the file's."""
    url = environ.get("LMSCONF_URL")
    if not url:
        return None
    outside = path_problem(root, sandbox_path(url))
    for code, wrong in (("project/url", url_problem(url)), ("project/outside", outside)):
        if wrong is not None:
            raise problem_found(code, f"LMSCONF_URL: {wrong[0]}", wrong[1])
    return WorkspaceConfig(
        name=ENV_WORKSPACE, url=url, token=env_token("LMSCONF_TOKEN", environ), database=_database(url, root)
    )


def _from_file(
    project: ProjectFile, workspace: str | None, root: Path, environ: Mapping[str, str], ask: Ask | None
) -> WorkspaceConfig:
    name = _chosen(project, workspace, environ)
    declared = project.mapping_at("workspaces", name)
    url, seed = str(declared["url"]), declared.get("seed")
    return WorkspaceConfig(
        name=name,
        url=url,
        token=declared_token(project, name, root, environ, ask),
        seed=None if seed is None else root / str(seed),
        database=_database(url, root),
    )


def _chosen(project: ProjectFile, workspace: str | None, environ: Mapping[str, str]) -> str:
    """Return the workspace's name: from the flag, the environment, `default_workspace`, or the only one declared."""
    names = list(project.mapping_at("workspaces"))
    only = names[0] if len(names) == 1 else None
    name = workspace or environ.get("LMSCONF_WORKSPACE") or project.body.get("default_workspace", only)
    if name is None:
        raise problem_found(
            "project/no-workspace",
            "no workspace is selected" if names else "the project file has no workspace",
            f"Set default_workspace, or pass --workspace {names[0]}."
            if names
            else f"Add `workspaces:` to {PROJECT_FILE}.",
            project.places.at(),
        )
    if name in names:
        return str(name)
    hint = did_you_mean(str(name), names) or known_names(names)
    if workspace:
        raise UsageError(f'there is no workspace "{shorten(str(name))}"', hint=hint)
    raise problem_found(
        "project/unknown-workspace", f'LMSCONF_WORKSPACE: there is no workspace "{shorten(str(name))}"', hint
    )


def _database(url: str, root: Path) -> Path | None:
    path = sandbox_path(url)
    return root / path if path else None


def _lock(project: ProjectFile, environ: Mapping[str, str]) -> LockSettings | None:
    """Return the terms of `lock:`; the owner defaults to this user and host name."""
    if project.setting("lock") is False:
        return None
    owner = project.mapping_at("lock").get("owner") or f"{environ.get('USER') or 'somebody'} on {os.uname().nodename}"
    return LockSettings(lease=_seconds(project.setting("lock.lease")), owner=str(owner))


def _seconds(duration: Json) -> float:
    """Return the seconds of a duration as the project file has it, `15m`; of a default, which is in seconds, itself."""
    if isinstance(duration, float):
        return duration
    text = str(duration)
    unit = text.lstrip("0123456789")
    return int(text.removesuffix(unit)) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}[unit]
