"""Put the folders of several shards together into one, as a run without shards would have made it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from lmsconf.errors import LmsconfError
from lmsconf.fleet.fleet_run import make_folder, read_index, write_index
from lmsconf.model.fleet import FleetEntry, FleetIndex


def collect_folders(folders: Sequence[Path], out: Path) -> FleetIndex:
    """Copy the results of all folders into a new one and return its index.

    Its time is that of the earliest shard. Raises LmsconfError for a workspace in two folders, for folders of different
    commands, and for one without an index.
    """
    indexes = [read_index(folder) for folder in folders]
    if len({index.action for index in indexes}) > 1:
        raise LmsconfError("the folders are of different commands", hint="Collect folders of one lmsconf fleet plan.")
    entries: dict[str, tuple[FleetEntry, Path]] = {}
    for folder, index in zip(folders, indexes, strict=True):
        for entry in index.entries:
            if entry.workspace in entries:
                both = f"{entries[entry.workspace][1]} and {folder}"
                message = f"the workspace {entry.workspace} is in two folders: {both}"
                raise LmsconfError(message, hint="Name each shard once, all of one run.")
            entries[entry.workspace] = entry, folder
    make_folder(out)
    for entry, folder in entries.values():
        if entry.file is not None:
            shutil.copyfile(folder / entry.file, out / entry.file, follow_symlinks=False)
            (out / entry.file).chmod(0o600)
    index = FleetIndex(
        action=indexes[0].action,
        created_at=min(index.created_at for index in indexes),
        entries=tuple(entries[name][0] for name in sorted(entries)),
    )
    write_index(out, index)
    return index
