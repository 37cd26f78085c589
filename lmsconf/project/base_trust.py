"""Compare the project file of a branch with the base's: url, token source, token command and dialect must match.

`plan --base` and `drift --base` run on changes that are not reviewed yet. A difference that could send a request or a
credential elsewhere is refused before any request, unless the caller trusts that part (`--trust-project`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from lmsconf.errors import Problem, ProblemsFound, SourceLocation, UsageError, shorten
from lmsconf.manifest.nodes import map_texts
from lmsconf.model.canonical_json import Json
from lmsconf.project.config_file import ENV_WORKSPACE, ProjectFile, expand_pattern
from lmsconf.project.credentials import files_of_project

PARTS: Final = ("url", "token", "command", "dialect")
"""The values of `--trust-project`."""
OPTION: Final = "--trust-project"


class RequestDestination(Struct, frozen=True, kw_only=True):
    """The url, token source and dialect of one workspace, as the project file declares them.

    places: the source location of each part. programs: parts of the token command that name files of the project.
    """

    url: str | None = None
    token: Mapping[str, Json] | None = None
    dialect: Mapping[str, Json] = {}
    places: Mapping[str, SourceLocation] = {}
    programs: tuple[str, ...] = ()


NOWHERE: Final = RequestDestination()
"""The destination of a base without a readable project file."""


def request_destination(project: ProjectFile, workspace: str, root: Path) -> RequestDestination:
    """Return the destination of a workspace; for the one of LMSCONF_URL only the dialect is from the file."""
    dialect = project.merged_mapping("dialect", workspace)
    at = project.dialect_locations(workspace)
    places = {"dialect": next(iter(at.values()))} if at else {}
    declared = project.mapping_at("workspaces", workspace)
    if workspace == ENV_WORKSPACE or not declared:
        return RequestDestination(dialect=dialect, places=places)
    path = ("workspaces", workspace)
    places["url"] = project.places.at(*path, "url")
    token = cast("Mapping[str, Json] | None", declared.get("token"))
    if token is not None:
        # Expanded: a label that a branch changes may choose another variable, file or argument.
        values = project.pattern_values(workspace)
        token = cast("dict[str, Json]", map_texts(dict(token), lambda text: expand_pattern(text, values)))
        places["token"] = places["command"] = project.places.at(*path, "token")
    programs = tuple(files_of_project((cast("list[str]", token.get("command", [])) if token else []), root))
    return RequestDestination(url=str(declared["url"]), token=token, dialect=dialect, places=places, programs=programs)


def parse_trusted_parts(text: str | None) -> frozenset[str]:
    """Parse the comma-separated value of `--trust-project`. Raises UsageError for an unknown part."""
    parts = frozenset(part.strip() for part in (text or "").split(",") if part.strip())
    if unknown := sorted(parts - set(PARTS)):
        raise UsageError(
            f"{OPTION}: there is no {shorten(unknown[0])}",
            hint=f"Name any of {', '.join(PARTS)}, with commas between them.",
        )
    return parts


def refuse_untrusted_changes(
    now: RequestDestination, base: RequestDestination, trusted: Collection[str], *, workspace: str, name: str
) -> None:
    """Raise ProblemsFound for each part that differs from the base and is not trusted. name: the base, for messages."""
    differs = dict(_differences(now, base))
    left = {part: message for part, message in differs.items() if part not in trusted}
    if not left:
        return
    wanted = ",".join(part for part in PARTS if part in differs)
    raise ProblemsFound(
        [
            Problem(
                code=f"trust/{part}",
                message=f"workspaces.{workspace}: {message.format(base=name)}",
                hint=f"No request was sent. If you have reviewed the change: {OPTION}={wanted}",
                source=now.places.get(part),
            )
            for part, message in left.items()
        ]
    )


def _differences(now: RequestDestination, base: RequestDestination) -> Iterator[tuple[str, str]]:
    """Yield (part, message) for each difference; `{base}` in a message is a placeholder for the base's name.

    A command that runs a file of the project counts as different even if the token source is the same.
    """
    if now.url != base.url:
        yield "url", f"the url is {_escaped(now.url)}, and in {{base}} {_escaped(base.url)}"
    if now.token != base.token:
        of = "command" if "command" in (now.token or {}) else "token"
        yield of, f"the token is {_escaped(now.token)}, and in {{base}} {_escaped(base.token)}"
    elif now.programs:
        yield (
            "command",
            f"the token's command runs {_escaped(now.programs[0])}, a file of the project that may be changed",
        )
    if now.dialect != base.dialect:
        keys = sorted(
            key for key in now.dialect.keys() | base.dialect.keys() if now.dialect.get(key) != base.dialect.get(key)
        )
        yield "dialect", f"the dialect differs from that of {{base}} in {_escaped(', '.join(keys))}"


def _escaped(value: object) -> str:
    """Return a value as short text, with braces escaped for `str.format`."""
    text = "not set" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(text).replace("{", "{{").replace("}", "}}")
