"""The files of a new project: project file, first manifest, CI workflows, and the JSON Schemas for editors.

The schemas are in `schemas/` at the top of the project, so that editors need no network, and all who work on the
project have the schemas of the same version of lmsconf.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.resources import files as package_files
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from lmsconf.manifest.file_set import MANIFEST_SCHEMA, MANIFESTS, PROJECT_FILE, PROJECT_SCHEMA
from lmsconf.support.files import read_ci_workflow, read_schema

FOLDER: Final = "schemas"


def schema_texts() -> dict[str, str]:
    """Return path in the project → text of each schema."""
    return {f"{FOLDER}/{name}": read_schema(name) for name in (MANIFEST_SCHEMA, PROJECT_SCHEMA)}


def schema_comment(name: str, folder: Path, root: Path) -> str:
    """Return the first line of a YAML file in `folder`: where YAML language servers find its schema."""
    path = Path(os.path.relpath(os.path.realpath(root / FOLDER / name), os.path.realpath(folder))).as_posix()
    return f"# yaml-language-server: $schema={quote(path)}\n"


def read_project_schema(root: Path, name: str) -> str | None:
    """Return a project's copy of a schema; None if there is none. Raises OSError unless it is a file of the project."""
    path, real = root / FOLDER / name, Path(os.path.realpath(root / FOLDER / name))
    if not real.is_relative_to(os.path.realpath(root)) or (os.path.lexists(path) and not real.is_file()):
        raise OSError(errno.EINVAL, "it is not a file of the project")
    try:
        with real.open("rb") as file:
            # More bytes than any schema has.
            return file.read(1 << 20).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None


def write_schemas(root: Path, *, replace: bool) -> Iterator[Path]:
    """Write the schemas of this version into a project, and yield the path of each that was written.

    replace: overwrite those of another version too. Raises LmsconfError.
    """
    from lmsconf.support.files import os_errors_as, write_atomically

    for name, text in schema_texts().items():
        path = root / name
        with os_errors_as(f"{path} cannot be written", "Check its folder."):
            before = read_project_schema(root, path.name)
            if before is not None and (not replace or before == text):
                continue
            path.parent.mkdir(exist_ok=True)
        write_atomically(path, text, mode=0o644)
        yield path


SANDBOX: Final = "sandbox:workspace.db"


class CiSystem(StrEnum):
    """The CI systems with a workflow template."""

    GITHUB = "github"
    GITLAB = "gitlab"
    NONE = "none"


CI_FILES: Final[Mapping[CiSystem, Mapping[str, str]]] = MappingProxyType(
    {
        CiSystem.GITHUB: {
            f".github/workflows/lmsconf-{job}.yml": f"github/lmsconf-{job}.yml" for job in ("plan", "apply", "drift")
        },
        CiSystem.GITLAB: {".gitlab-ci.yml": "gitlab/gitlab-ci.yml"},
        CiSystem.NONE: {},
    }
)
"""CI system → path in the project → name of the packaged template."""


class InitAnswers(Struct, frozen=True, kw_only=True):
    """The user's answers about a new project. schemas: write the JSON Schemas into the project, for editors."""

    url: str
    workspace: str
    token_env: str
    timezone: str
    ci: CiSystem
    schemas: bool = True

    @property
    def embedded(self) -> bool:
        """Whether the workspace is the embedded sandbox, which is seeded with a few people and contents."""
        return self.url.startswith("sandbox:")


def render_project_files(answers: InitAnswers, version: str) -> dict[str, str]:
    """Return path in the project → text. The project file is last, so if it exists the project is complete."""
    first = _text("sandbox.yaml" if answers.embedded else "empty.yaml")
    requirements = (
        "# The jobs have the token, so they install only packages with a hash here, and fail without one. Let "
        "pip-compile or uv\n# write the complete list, from your own index, with --generate-hashes.\n"
        f"lmsconf=={version}\n"
    )
    return {
        f"{MANIFESTS}/first.yaml": _schema_line(answers, MANIFEST_SCHEMA, MANIFESTS) + first,
        **({"workspace.yaml": _text("workspace.yaml")} if answers.embedded else {}),
        **(schema_texts() if answers.schemas else {}),
        **({"requirements.txt": requirements} if answers.ci is not CiSystem.NONE else {}),
        **{path: read_ci_workflow(name) for path, name in CI_FILES[answers.ci].items()},
        ".gitignore": _text("gitignore"),
        PROJECT_FILE: _project(answers),
    }


def project_entries(answers: InitAnswers) -> tuple[str, ...]:
    """Return the files and folders of a new project that belong into its repository, for `git add`."""
    return tuple(
        sorted(
            {path.partition("/")[0] for path in render_project_files(answers, "")},
            key=lambda name: (name.startswith("."), name),
        )
    )


def next_commands(answers: InitAnswers, *, export: bool) -> tuple[str, ...]:
    """Return the three lmsconf commands to run next. export: the live workspace is to be exported first."""
    if answers.embedded:
        return "plan", "apply", "drift"
    return ("doctor", "export --into", "plan") if export else ("doctor", "explain", "plan")


_PLAIN: Final = re.compile(r"(?!(?:true|false|null|yes|no|on|off|y|n)\Z)[a-z][a-z0-9_-]*", re.IGNORECASE)
"""A name that needs no quotes, in YAML 1.1 neither."""


def _project(answers: InitAnswers) -> str:
    name = (
        answers.workspace if _PLAIN.fullmatch(answers.workspace) else json.dumps(answers.workspace, ensure_ascii=False)
    )
    if answers.embedded:
        workspace = f"{{url: {json.dumps(answers.url)}, seed: workspace.yaml}}   # embedded: no server, no credentials"
    else:
        workspace = f"{{url: {json.dumps(answers.url, ensure_ascii=False)}, token: {{env: {answers.token_env}}}}}"
    return (
        f"{_schema_line(answers, PROJECT_SCHEMA, '')}"
        f"workspaces:\n  {name}: {workspace}\n"
        f"default_workspace: {name}\n"
        f"timezone: {answers.timezone}   # for times without an offset\n"
    )


def _schema_line(answers: InitAnswers, name: str, folder: str) -> str:
    return schema_comment(name, Path(folder), Path()) if answers.schemas else ""


def _text(name: str) -> str:
    return (package_files("lmsconf.project") / "texts" / name).read_text(encoding="utf-8")
