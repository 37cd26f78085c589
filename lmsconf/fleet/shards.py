"""A fleet in shards: documents that make an engine run it, and the folders of several shards put together into one.

Each job of GitHub Actions, GitLab CI, Argo Workflows or Kubernetes runs `lmsconf fleet plan --shard I/N
--out DIR` and keeps DIR; `lmsconf fleet collect` puts them together. JSON is valid YAML, so every engine
reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from msgspec.structs import replace

from lmsconf.documents.json_documents import change_json, without_keys
from lmsconf.documents.plan_file import loads
from lmsconf.errors import LmsconfError, UsageError, refuse_if
from lmsconf.fleet.fleet_run import fleet_index, make_folder, read_index, selection_digest, write_index
from lmsconf.fleet.tasks import load_file
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.fleet import FleetAction, FleetIndex, FleetShard, SharedChanges
from lmsconf.model.names import grouped
from lmsconf.model.plan import FULL_UNDO, Change
from lmsconf.render.jinja import template_text
from lmsconf.render.resource_wording import name_list
from lmsconf.support.files import read_text, write_atomically

_LEAST_RATE: Final = 0.1
"""The least --max-rate that `lmsconf fleet plan` takes."""


def matrix_document(format: str, shards: int, selector: str, max_rate: float | None, image: str | None) -> str:
    """Return the document for an engine, `github`, `gitlab`, `argo` or `kubernetes`.

    selector: of workspaces. max_rate: requests a second of all jobs together. image: the container image with lmsconf.
    Raises UsageError for what that engine cannot run.
    """
    most = {"github": 256, "gitlab": 200}.get(format, shards)
    refuse_if(
        (
            format in ("argo", "kubernetes") and image is None,
            f"--format {format} needs --image",
            "Name it by its digest: registry/lmsconf@sha256:…",
        ),
        (
            shards > most,
            f"--shards {shards}: {format} runs at most {most} jobs of one matrix",
            f"Pass --shards {most}.",
        ),
    )
    if max_rate is not None and max_rate / shards < _LEAST_RATE:
        raise UsageError(
            f"--max-rate {max_rate:g}: less than {_LEAST_RATE} for each of {shards} jobs",
            hint="Pass a higher rate, or fewer --shards.",
        )
    rate = None if max_rate is None else f"{max_rate / shards:g}"
    selected = "" if selector == "*" else f" --select {quote(selector)}"
    limited = "" if rate is None else f" --max-rate {rate}"
    text = template_text(
        "matrix.json.j2",
        format=format,
        matrix={
            "shards": shards,
            "numbers": [f"{number}/{shards}" for number in range(1, shards + 1)],
            "select": selector,
            "rate": rate,
            "image": image,
            "command": f"lmsconf fleet plan{selected}{limited}",
        },
    )
    return json.dumps(json.loads(text), indent=None if format == "github" else 2) + "\n"


_ONE_RUN: Final = "Name each shard once, all of one run."


def collect_folders(folders: Sequence[Path], out: Path, key: bytes | None) -> FleetIndex:
    """Copy the results of all folders into a new one and return its index.

    key: the secret that signs the indexes. Its time is that of the earliest shard. Raises LmsconfError for a workspace
    in two folders, for folders of different commands, for one without an index, and for shards that are not the whole:
    what is collected looks complete, so it has to be.
    """
    indexes = {folder: read_index(folder, key) for folder in folders}
    first, *others = indexes.values()
    refuse_if(
        (
            any(other.action is not first.action for other in others),
            "the folders are of different commands",
            "Collect folders of one lmsconf fleet plan.",
        ),
        (len(indexes) < len(folders), "a folder is named twice", _ONE_RUN),
        error=LmsconfError,
    )
    _refuse_missing_shards(indexes)
    found = ((entry, folder) for folder, index in indexes.items() for entry in index.entries)
    placed = grouped(found, lambda one: one[0].workspace)
    selections = {index.shard.selection for index in indexes.values() if index.shard is not None}
    entries = [alike[0] for alike in placed.values()]
    files = [(folder / entry.file, out / entry.file) for entry, folder in entries if entry.file is not None]
    refuse_if(
        *(
            (
                len(alike) > 1,
                f"the workspace {name} is in two folders: {alike[0][1]} and {alike[-1][1]}",
                _ONE_RUN,
            )
            for name, alike in placed.items()
        ),
        (
            not selections <= {selection_digest(placed)},
            "the shards are parts of different selections of workspaces",
            "Run all jobs again, from one commit and with one --select.",
        ),
        *(
            (
                file.is_symlink() or not file.is_file(),
                f"{file} is missing, or not a file",
                "Collect the folders as their jobs made them.",
            )
            for file, _ in files
        ),
        error=LmsconfError,
    )
    make_folder(out)
    for file, copy in files:
        write_atomically(copy, read_text(file, regular=True))
    index = fleet_index(
        {entry.workspace: entry for entry, _ in entries},
        first.action,
        min(index.created_at for index in indexes.values()),
    )
    write_index(out, index, key)
    return index


def _refuse_missing_shards(indexes: Mapping[Path, FleetIndex]) -> None:
    """Raise LmsconfError unless the folders are all shards of one plan, or none is a shard."""
    (first, index), *_ = indexes.items()
    of = _parts(index)
    numbered = ((other.shard, folder) for folder, other in indexes.items() if other.shard is not None)
    shards = grouped(numbered, lambda one: one[0].number)
    missing = [f"{number}/{of}" for number in range(1, of + 1) if number not in shards]
    refuse_if(
        *(
            (
                _parts(other) != of,
                f"{first} has {_in_words(index.shard)}, and {folder} has {_in_words(other.shard)}",
                _ONE_RUN,
            )
            for folder, other in indexes.items()
        ),
        *(
            (len(same) > 1, f"shard {same[0][0]} is in two folders: {same[0][1]} and {same[-1][1]}", _ONE_RUN)
            for same in shards.values()
        ),
        (
            missing,
            f"{len(missing):,} of {of:,} shards missing: {name_list(missing, 10)}",
            "Run their jobs again, and collect the folders of all shards.",
        ),
        error=LmsconfError,
    )


def _parts(index: FleetIndex) -> int:
    """Return of how many shards an index is one; 0 for the whole."""
    return 0 if index.shard is None else index.shard.of


def _in_words(shard: FleetShard | None) -> str:
    return "all workspaces" if shard is None else f"shard {shard}"


_DIFFERS = ("id", "source", "about", "problems", "undo", "origin")
"""Keys of a change that differ between workspaces although the same thing changes."""


def read_report(folder: Path, index: FleetIndex, key: bytes | None) -> FleetIndex:
    """Return an index with the changes of its plan files grouped. Raises LmsconfError for a plan that is not valid."""
    return replace(
        index,
        shared=group_changes(
            (entry.workspace, load_file(folder / entry.file, loads, key).changes)
            for entry in index.entries
            if index.action is FleetAction.PLAN and entry.file is not None and not entry.failed
        ),
    )


def group_changes(plans: Iterable[tuple[str, tuple[Change, ...]]]) -> tuple[SharedChanges, ...]:
    """Group changes that are equal but for ids and source lines; those in most workspaces first."""
    known: dict[str, tuple[Change, list[str]]] = {}
    for workspace, changes in plans:
        for change in changes:
            key = sha256(without_keys(change_json(change), *_DIFFERS))
            known.setdefault(key, (change, []))[1].append(workspace)
    kept = [(tuple(names), replace(first, id=None, problems=(), undo=FULL_UNDO)) for first, names in known.values()]
    alone = grouped((one for one in kept if len(one[0]) == 1), lambda one: _without_name(one[1]))
    rest = [one for one in kept if len(one[0]) > 1]
    shared: list[SharedChanges] = []
    for alike in alone.values():
        workspaces = tuple(name for (name,), _ in alike)
        # So many are shown together although their names differ.
        if len(alike) >= 3 and len(set(workspaces)) == len(alike):
            shared.append(
                SharedChanges(changes=tuple(change for _, change in alike), workspaces=workspaces, one_each=True)
            )
        else:
            rest += alike
    shared += [
        SharedChanges(changes=tuple(sorted((one[1] for one in same), key=lambda one: one.address)), workspaces=names)
        for names, same in grouped(rest, lambda one: one[0]).items()
    ]
    return tuple(sorted(shared, key=lambda one: (-len(one.workspaces), one.one_each, one.workspaces)))


def _without_name(change: Change) -> str:
    """Return a digest of a change that is equal for changes that are equal but for their names."""
    name = change.address.name

    def unnamed(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: unnamed(item) for key, item in value.items()}
        return "" if value == name else value

    kept = without_keys(change_json(change), *_DIFFERS, "address", "name")
    return sha256({key: unnamed(value) for key, value in kept.items()})
