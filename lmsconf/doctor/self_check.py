"""What a support request should say about an installation and a project. Sends no request, and reads no secret.

Values that are names, hosts, paths outside the project or contents of variables are left out; keys, counts, versions
and codes of problems are not.
"""

from __future__ import annotations

import os
import platform
import re
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from lmsconf import __version__
from lmsconf.doctor.findings import CheckResult, Health
from lmsconf.errors import ExitCode, LmsconfError, Problem, Severity
from lmsconf.journal.journal_folder import FOLDER, RUNS
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.project.config_file import FILE
from lmsconf.project.config_reader import read_project_file
from lmsconf.project.schema_files import read_project_schema
from lmsconf.project.settings import load_settings
from lmsconf.support.git import GitFailed, git_version
from lmsconf.support.lazy_dataclass import dataclass
from lmsconf.support.package_data import read_schema
from lmsconf.support.work_tree import find_work_tree
from lmsconf.workspace.project_manifests import validate_offline

_NAME: Final = "lmsconf"
_SCHEMAS: Final = ("manifest.schema.json", "project.schema.json")
_EMBEDDED: Final = "sandbox:"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

Section = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """sections: what was found, by subject. checks: what is probably wrong."""

    sections: Mapping[str, Section]
    checks: tuple[CheckResult, ...]

    @property
    def exit_code(self) -> ExitCode:
        failed = any(check.health is Health.ERROR for check in self.checks)
        return ExitCode.ERROR if failed else ExitCode.OK


def run_self_check(
    root: Path, workspace: str | None, environ: Mapping[str, str], terminal: Section, *, hosts: bool
) -> SelfCheck:
    """Look at this installation and the project in `root`. hosts: name the hosts of the workspaces."""
    manifests, problems = _validated(root, workspace, environ)
    sections: dict[str, Section] = {
        "lmsconf": {"version": __version__, **_installation()},
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "system": {"name": platform.system(), "release": platform.release(), "machine": platform.machine()},
        "libraries": _libraries(),
        "project": _project(root, hosts=hosts),
        "manifests": _counts(manifests),
        "problems": _problem_counts(problems),
        "git": _git(root),
        "schemas": {name: _schema(root, name) for name in _SCHEMAS},
        "terminal": terminal,
        "state": {path.relative_to(root).as_posix(): _state(path) for path in (root / FOLDER, root / FOLDER / RUNS)},
        "variables": {"set": [*sorted(name for name in environ if name.startswith("LMSCONF_"))]},
    }
    return SelfCheck(sections=sections, checks=tuple(_checks(sections)))


def _validated(
    root: Path, workspace: str | None, environ: Mapping[str, str]
) -> tuple[Manifests | None, tuple[Problem, ...]]:
    """Return the manifests, None if the project file does not allow reading them, and every problem."""
    if not (root / FILE).exists():
        return None, ()
    try:
        manifests = validate_offline(load_settings(root, workspace, environ))
    except LmsconfError as error:
        return None, error.problems
    return manifests, manifests.problems


def _installation() -> Section:
    """How lmsconf was installed, and by what."""
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        environment = "pipx"
    elif (prefix / "uv-receipt.toml").exists():
        environment = "uv tool"
    else:
        environment = "system" if sys.prefix == sys.base_prefix else "virtual environment"
    try:
        installed = metadata.distribution(_NAME)
    except metadata.PackageNotFoundError:
        return {"environment": environment, "from": "source code, not installed", "installer": None}
    editable = '"editable": true' in (installed.read_text("direct_url.json") or "")
    installer = (installed.read_text("INSTALLER") or "").strip() or None
    return {
        "environment": environment,
        "from": "checkout" if editable else "package",
        "installer": installer,
        "installed_version": installed.version,
    }


def _libraries() -> Section:
    """The version of each library that lmsconf needs; None if it is missing."""
    try:
        required = metadata.requires(_NAME) or []
    except metadata.PackageNotFoundError:
        return {}
    names = sorted(re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in required if "extra ==" not in line)
    return {name: _version(name) for name in names}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _project(root: Path, *, hosts: bool) -> Section:
    """Keys and counts of the project file, no values."""
    if not (root / FILE).exists():
        return {"found": False}
    try:
        body = read_project_file(root).body
    except LmsconfError:
        return {"found": True, "valid": False}
    declared = cast("Mapping[str, Mapping[str, Json]]", body.get("workspaces") or {})
    urls = [str(workspace.get("url", "")) for workspace in declared.values()]
    embedded = sum(url.startswith(_EMBEDDED) for url in urls)
    found: Section = {
        "found": True,
        "writable": os.access(root, os.W_OK),
        "valid": True,
        "keys": [*sorted(body)],
        "workspaces": len(urls),
        "embedded": embedded,
    }
    named: list[Json] = [*sorted({urlsplit(url).hostname or "" for url in urls if not url.startswith(_EMBEDDED)})]
    return {**found, "hosts": named} if hosts else found


def _counts(manifests: Manifests | None) -> Section:
    if manifests is None:
        return {"read": False}
    kinds = cast("Section", dict(sorted(Counter(resource.address.kind for resource in manifests.declared).items())))
    return {"read": True, "files": len(manifests.files), "declared": kinds, "absent": len(manifests.absent)}


def _problem_counts(problems: tuple[Problem, ...]) -> Section:
    codes = cast("Section", dict(sorted(Counter(problem.code for problem in problems).items())))
    counts = Counter(problem.severity for problem in problems)
    return {**{f"{severity.value}s": counts[severity] for severity in Severity}, "codes": codes}


def _git(root: Path) -> Section:
    try:
        version: str | None = git_version()
    except GitFailed:
        version = None
    return {"version": version, "work_tree": find_work_tree(root) is not None}


def _schema(root: Path, name: str) -> str:
    """Whether the copy of a schema in the project, for editors, is that of this version."""
    try:
        text = read_project_schema(root, name)
    except OSError:
        return "unreadable"
    if text is None:
        return "none"
    return "current" if text == read_schema(name) else "outdated"


def _state(path: Path) -> Json:
    """Mode and access of a folder; None if there is none."""
    try:
        about = path.lstat()
    except OSError:
        return None
    return {
        "mode": f"{stat.S_IMODE(about.st_mode):04o}",
        "own": about.st_uid == os.geteuid(),
        "writable": os.access(path, os.W_OK),
        "link": stat.S_ISLNK(about.st_mode),
    }


def _checks(sections: Mapping[str, Section]) -> Iterator[CheckResult]:
    """Yield what is probably wrong."""
    for name, version in sections["libraries"].items():
        if version is None:
            yield CheckResult("libraries", Health.ERROR, f"{name} is not installed", "Install lmsconf again.")
    installed = sections["lmsconf"].get("installed_version", __version__)
    if installed != __version__:
        message = f"the code is {__version__}, and {installed} is installed"
        yield CheckResult("lmsconf", Health.WARNING, message, "Install it again, or check PYTHONPATH.")
    if errors := sections["problems"]["errors"]:
        message = f"the project has {errors} {'error' if errors == 1 else 'errors'}"
        yield CheckResult("problems", Health.ERROR, message, "Run: lmsconf validate")
    if not sections["project"]["found"]:
        hint = "Run `lmsconf init`, or go to the project."
        yield CheckResult("project", Health.WARNING, f"there is no {FILE} here or above", hint)
    if sections["git"]["version"] is None:
        yield CheckResult("git", Health.WARNING, "git was not found; --base REF needs it", "Install git.")
    for name, state in sections["schemas"].items():
        if state == "outdated":
            message = f"schemas/{name} is not that of this version"
            yield CheckResult("schemas", Health.WARNING, message, "Delete it, and run: lmsconf init --schemas")
    if str(sections["terminal"].get("encoding", "")).lower().replace("-", "") != "utf8":
        message = f"the encoding of stdout is {sections['terminal'].get('encoding')}"
        yield CheckResult("terminal", Health.WARNING, message, "Set LC_ALL to a UTF-8 locale, such as C.UTF-8.")
    if sections["project"].get("writable") is False and sections["state"][FOLDER] is None:
        message = f"apply cannot create {FOLDER}: the folder of the project is read-only"
        yield CheckResult("state", Health.WARNING, message, "Make it writable, or mount a volume there.")
    yield from _state_checks(sections["state"])


def _state_checks(state: Section) -> Iterator[CheckResult]:
    for name, about in state.items():
        if not isinstance(about, dict):
            continue
        if about["link"]:
            message, hint = f"{name} is a symbolic link, and apply refuses it", "Replace it by a folder."
            yield CheckResult("state", Health.ERROR, message, hint)
        elif not about["writable"]:
            yield CheckResult("state", Health.ERROR, f"{name} cannot be written", "Check its owner and mode.")
        elif int(str(about["mode"]), 8) & _OTHERS:
            message = f"{name} has the mode {about['mode']}: others may read the journals"
            yield CheckResult("state", Health.WARNING, message, f"Run: chmod 700 {name}")
