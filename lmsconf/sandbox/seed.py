"""Seeds: initial content of a workspace, from a YAML file with the manifests' terms, or from the same values.

A snapshot file (`lmsconf.snapshot/1`) is a seed too; `snapshot_seed` loads it.

    people:          {email, first_name, last_name, language, admin, manager, archived, custom_archive_date, id,
                      answers: {field: a choice, a list of choices, or a text}, metadata: {key: text},
                      applications: [application], order_details: {company_name, …, address: {street, …}}}
    custom_fields:   {name, type, choices: [name], description, hidden, locked, optional}
    groups:          {name, members: [e-mail], managers: [e-mail], id}
    smart_groups:    {name, conditions: [{field, choices, system_condition}], managers: [e-mail], id}
    content:         {name, type, description, price, id, updated, programs: [name], categories: [text],
                      metadata: {key: text}, link, image, occasions: [{starts, attending}]}
    content_targets: {content, mandatory, visible_from, visible_until,
                      assign_to: [everyone | {group: name} | {smart_group: name} | {user: e-mail}]}
    participations:  {user: e-mail, content: name, state, percentage, revision, enrolled, updated, id,
                      events: [{status, at, revision, mandatory, manually}]}
    certificates:    {user: e-mail, content: name, issued, expires, recertification: name, notify, id,
                      attachments: [{url, name, created}]}

A content of the type MEETUP is a meetup. Times are ISO 8601 with an offset; a missing time is the current time. Every
scalar is read as text, so that `NO` and `2026-01-05` keep their spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ProblemsFound
from lmsconf.sandbox.request_context import RequestContext
from lmsconf.sandbox.seed_loader import SECTIONS, STEPS
from lmsconf.sandbox.seed_rows import Entry, file_problem, load_entries, read_yaml
from lmsconf.sandbox.snapshot_seed import fill_from_snapshot, is_snapshot
from lmsconf.sandbox.store import Repository


def load_seed(path: Path) -> Mapping[str, object]:
    """Parse a seed or snapshot file. Raises ProblemsFound if it is neither, LmsconfError if it cannot be read."""
    values = read_yaml(path, "seed")
    if not isinstance(values, dict):
        raise ProblemsFound([file_problem("seed", str(path), f"it has no sections such as {', '.join(SECTIONS)}")])
    if not is_snapshot(values) and str(values.get("format")).startswith("lmsconf."):
        message = f"it is not a seed or a snapshot, but a {values['format']}"
        raise ProblemsFound([file_problem("seed", str(path), message)])
    return values


def fill_workspace(
    repository: Repository,
    values: Mapping[str, object],
    *,
    source: str = "seed",
    spec: ApiSpec | None = None,
    keeps_unlisted: bool = False,
) -> None:
    """Fill an empty workspace. Raises ProblemsFound with every error; the workspace then stays empty.

    keeps_unlisted: as for `fill_from_snapshot`.
    """
    context = RequestContext(repository, (spec or ApiSpec.default()).behaviour)
    problems = (
        fill_from_snapshot(context, values, keeps_unlisted=keeps_unlisted)
        if is_snapshot(values)
        else _fill_from_seed(context, values)
    )
    if problems:
        raise ProblemsFound([file_problem("seed", source, message) for message in problems])


def _fill_from_seed(context: RequestContext, values: Mapping[str, object]) -> list[str]:
    """Create what the sections list; return the problems."""
    entries: dict[str, list[Entry]] = {}
    problems: list[str] = []
    for name, section in values.items():
        if name not in SECTIONS:
            problems.append(f"unknown section {name!r}; there are {', '.join(SECTIONS)}")
        elif not isinstance(section or [], list):
            problems.append(f"{name}: it is not a list")
        else:
            entries[name] = cast("list[Entry]", section or [])
    return problems or load_entries(context, entries, STEPS)
