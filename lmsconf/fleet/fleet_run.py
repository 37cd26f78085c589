"""Run one command in each selected workspace of a project, in worker processes, and collect the results in an index.

A worker that dies or exceeds the time limit ends its task alone: the others go on, and a new worker takes its place.
Each has an equal part of the rate of requests, and a thread that waits for its results.
"""

from __future__ import annotations

import re
import secrets
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from lmsconf.documents.reports import fleet_index_text, load_fleet_index
from lmsconf.errors import (
    LmsconfError,
    Problem,
    Terminated,
    UsageError,
    interrupt_exit_code,
    raise_found,
    refuse_if,
    shorten,
)
from lmsconf.fleet.tasks import FleetTask, load_file, plan_path, result_files, with_part_of_rate
from lmsconf.fleet.worker import end_idle, interrupt_run, kill_run, task_process
from lmsconf.model.canonical_json import sha256
from lmsconf.model.fleet import MOST_SHARDS, FleetAction, FleetEntry, FleetIndex, FleetShard
from lmsconf.model.names import did_you_mean, quote_name
from lmsconf.project.config_file import ProjectFile, expand_pattern
from lmsconf.support.files import is_writable, os_errors_as, write_atomically
from lmsconf.support.url_rules import ALLOWED_HOSTS

INDEX: Final = "index.json"
_EDITED: Final = "It was edited. Create it again with lmsconf fleet."
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
Listener = Callable[[FleetEntry], None]
Engine = Callable[[Sequence[FleetTask], Listener], None]
"""Run tasks and pass on the result of each, in any order.

After a KeyboardInterrupt it passes on what is known of tasks that end nevertheless, and raises it again.
"""
_GRACE: Final = 30.0
"""Seconds in which interrupted tasks may finish the calls that they have sent, and write their reports."""


def run_in_threads(
    run: Callable[[FleetTask], FleetEntry],
    interrupt: Callable[[signal.Signals], object],
    kill: Callable[[], object],
    number: int,
    tasks: Sequence[FleetTask],
    listener: Listener,
) -> None:
    """Run tasks, so many at a time; pass on results, after an interruption too, which is raised again.

    run: runs a task in a thread. interrupt: interrupts those that run, and begins no other. kill: ends them at once.
    """
    threads = ThreadPoolExecutor(max(1, min(number, len(tasks))))
    results: set[Future[FleetEntry]] = set()

    def interrupted(number: signal.Signals) -> list[Future[FleetEntry]]:
        """Interrupt what runs; return the results of the tasks that have begun."""
        threads.shutdown(wait=False, cancel_futures=True)
        interrupt(number)
        return [result for result in results if not result.cancelled()]

    try:
        results |= {threads.submit(run, task) for task in tasks}
        for result in as_completed(results):
            results.remove(result)
            listener(result.result())
    except KeyboardInterrupt as cut:
        begun = interrupted(signal.SIGTERM if isinstance(cut, Terminated) else signal.SIGINT)
        with suppress(TimeoutError):
            for result in as_completed(begun, timeout=_GRACE):
                if result.exception() is None and not result.result().is_lost:
                    listener(result.result())
        raise
    except BaseException:
        wait(interrupted(signal.SIGTERM), timeout=_GRACE)
        raise
    finally:  # the time is over, or a second interrupt says that nobody waits for the others
        threads.shutdown(wait=False, cancel_futures=True)
        kill()
        threads.shutdown()


def select_workspaces(project: ProjectFile, selector: LabelSelector, environ: Mapping[str, str]) -> list[str]:
    """Return the names of the selected workspaces, sorted.

    Raises UsageError if there is none, ProblemsFound for a name that cannot be a file's, and for one variable that
    holds the token of two hosts.
    """
    every = list(project.mapping_at("workspaces"))
    names = sorted(name for name in every if selector.fits(name, project.labels(name)))
    if not names:
        known = {f"{key}={value}" for name in every for key, value in {WORKSPACE: name, **project.labels(name)}.items()}
        asked = [f"{key}={value}" for key, value, negated in selector.requirements if value and not negated]
        near = next(filter(None, (did_you_mean(one, sorted(known)) for one in asked if one not in known)), None)
        raise UsageError(
            f"--select {selector.text}: no workspace has these labels",
            hint=near or f"The project has {len(every):,} workspaces. Give them `labels:`, or correct the selector.",
        )
    raise_found([*_unusable_names(project, names), *_shared_tokens(project, names, environ)])
    return names


def parse_shard(text: str, names: Sequence[str]) -> FleetShard:
    """Parse `I/N`, I from 1 to N, as a part of the workspaces with these names. Raises UsageError."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(
            f"--shard {text}: expected I/N, with I from 1 to N, and N at most {MOST_SHARDS:,}",
            hint="Write --shard 1/8 for the first of 8.",
        )
    return FleetShard(number=int(match[1]), of=int(match[2]), selection=selection_digest(names))


def selection_digest(names: Iterable[str]) -> str:
    """Return the digest of the names of workspaces, by which the shards of one selection know each other."""
    return sha256(sorted(names))


def _unusable_names(project: ProjectFile, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each name that no file can be called after, or whose file would be another one's."""
    folded: dict[str, str] = {}
    for name in names:
        if (other := folded.setdefault(name.casefold(), name)) != name:
            yield Problem(
                code="fleet/name",
                message=f"the workspaces {quote_name(other)} and {quote_name(name)} cannot be part of one fleet: their "
                "files would be the same on a file system that ignores case",
                hint="Rename one of them.",
                source=project.places.key("workspaces", name),
            )
        if not _FILE_NAME.fullmatch(name):
            yield Problem(
                code="fleet/name",
                message=f"the workspace {quote_name(name)} cannot be part of a fleet: files are called after it",
                hint="Use letters, digits, ., _ and -, at most 100; begin with a letter or a digit.",
                source=project.places.key("workspaces", name),
            )


def _shared_tokens(project: ProjectFile, names: Iterable[str], environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each variable that holds the token of several hosts not listed in LMSCONF_ALLOWED_HOSTS."""
    listed = {host.strip() for host in environ.get(ALLOWED_HOSTS, "").split(",")}
    hosts: dict[str, dict[str, str]] = defaultdict(dict)
    for name in names:
        variable = project.mapping_at("workspaces", name, "token").get("env")
        if isinstance(variable, str):
            host = urlsplit(str(project.mapping_at("workspaces", name)["url"])).netloc
            hosts[expand_pattern(variable, project.pattern_values(name))].setdefault(host, name)
    for variable, by_host in hosts.items():
        if len(by_host) > 1 and not by_host.keys() <= listed:
            first, second, *_ = by_host
            yield Problem(
                code="fleet/shared-token",
                message=f"{variable} would send one token to {len(by_host):,} hosts, such as {first} and {second}",
                hint="Name a variable for each host, or list the hosts: "
                f"{ALLOWED_HOSTS}={','.join(sorted(by_host)[:3])}",
                source=project.places.at("workspaces", by_host[second], "token"),
            )


def run_tasks(tasks: Sequence[FleetTask], engine: Engine, entries: dict[str, FleetEntry], tell: Listener) -> None:
    """Run tasks, and add the result of each to `entries`, by workspace, as they end.

    After an interruption, that is the result of those that have none.
    """

    def listener(entry: FleetEntry) -> None:
        entries[entry.workspace] = entry
        tell(entry)

    try:
        engine(tasks, listener)
    except KeyboardInterrupt as cut:
        problem = Problem(
            code="interrupted",
            message="the run was interrupted before this workspace had a result",
            hint="Run it again.",
        )
        for task in tasks:
            if task.workspace not in entries:
                entries[task.workspace] = task.lost(interrupt_exit_code(cut), problem)


def fleet_index(
    entries: Mapping[str, FleetEntry], action: FleetAction, created_at: str, shard: FleetShard | None = None
) -> FleetIndex:
    """Return the index of results, by workspace."""
    return FleetIndex(
        action=action, created_at=created_at, entries=tuple(entries[name] for name in sorted(entries)), shard=shard
    )


def make_folder(folder: Path) -> None:
    """Create the folder of a fleet, readable by its owner only.

    Raises UsageError if it exists and is not empty, LmsconfError if it cannot be created or read.
    """
    with os_errors_as(f"--out {folder}: the folder cannot be used", "Name a new folder, in one that is writable."):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        is_empty = folder.is_dir() and not any(folder.iterdir())
        refuse_if((not is_empty, f"--out {folder}: it is not an empty folder", "Name a new folder."))
        if not is_writable(folder / INDEX):
            raise PermissionError(None, "it is not writable")


def write_index(folder: Path, index: FleetIndex, key: bytes | None, name: str = INDEX) -> None:
    """Write an index into the folder of a fleet. key: the secret that signs it."""
    write_atomically(folder / name, fleet_index_text(index, key))


def read_index(folder: Path, key: bytes | None, name: str = INDEX) -> FleetIndex:
    """Return an index in the folder of a fleet. key: what it must be signed with. Raises LmsconfError."""
    hint = "Name a folder that lmsconf fleet plan --out has made."
    refuse_if((not (folder / name).exists(), f"{folder} has no {name}", hint), error=LmsconfError)
    index = load_file(folder / name, load_fleet_index, key)
    named = Counter(entry.workspace for entry in index.entries)
    for entry in index.entries:
        is_ours = _FILE_NAME.fullmatch(entry.workspace) and entry.file in (None, *result_files(entry.workspace))
        has_plan = entry.file == plan_path(folder, entry.workspace).name and entry.digest is not None
        refuse_if(
            (
                not is_ours,
                f"{folder / name} names a file that is not of this fleet: {entry.file} of {entry.workspace}",
                _EDITED,
            ),
            (named[entry.workspace] > 1, f"{folder / name} names the workspace {entry.workspace} twice", _EDITED),
            (
                index.action is FleetAction.PLAN and not (entry.failed or has_plan),
                f"{folder / name} does not name the plan file of the workspace {entry.workspace}, and its digest",
                _EDITED,
            ),
            error=LmsconfError,
        )
    return index


WORKSPACE: Final = "workspace"
"""A label that every workspace has: its name."""
EVERY: Final = "*"
_REQUIREMENT: Final = re.compile(
    r"(!?)\s*([A-Za-z][A-Za-z0-9_.-]*)"  # a label
    r"(?:\s*(==|=|!=)\s*([A-Za-z0-9][A-Za-z0-9_.-]*))?"  # and its value
)


class LabelSelector(Struct, frozen=True):
    """What workspaces must meet to be selected: all of its requirements.

    Each is the key of a label, the value that it has, None where any will do, and whether it is negated.
    """

    text: str
    requirements: tuple[tuple[str, str | None, bool], ...]

    def fits(self, workspace: str, labels: Mapping[str, str]) -> bool:
        """Whether a workspace with these labels is selected. As with kubectl, a missing label meets `!=`."""
        known = {WORKSPACE: workspace, **labels}
        return all(
            (key in known if value is None else known.get(key) == value) is not negated
            for key, value, negated in self.requirements
        )


def parse_selector(text: str, option: str) -> LabelSelector:
    """Parse a selector; `*` and an empty text select every workspace. Raises UsageError."""
    if text.strip() in ("", EVERY):
        return LabelSelector(EVERY, ())
    return LabelSelector(text, tuple(_requirement(part.strip(), option) for part in text.split(",")))


def _requirement(part: str, option: str) -> tuple[str, str | None, bool]:
    match = _REQUIREMENT.fullmatch(part)
    if match is None or (match[1] and match[3]):
        sets = " Sets, as in `ring in (a, b)`, are not supported." if "(" in part else ""
        hint = f"Write ring=canary, region!=us, ring or !ring, with commas between them.{sets}"
        raise UsageError(f"{option}: {shorten(part)!r} is not a selector", hint=hint)
    return match[2], match[4], bool(match[1]) or match[3] == "!="


def run_locally(
    root: Path,
    environ: Mapping[str, str],
    processes: int,
    time_limit: float | None,
    tasks: Sequence[FleetTask],
    listener: Listener,
) -> None:
    """Run tasks in so many worker processes; pass on the result of each, as they end: an Engine.

    time_limit: seconds for one task; None: no limit. Raises LmsconfError if a worker process cannot be started.
    """
    number, name = max(1, min(processes, len(tasks))), secrets.token_hex(6)

    def run(task: FleetTask) -> FleetEntry:
        """Let a worker run a task, another one where it has died."""
        with task_process(name, root, environ) as process:
            return process.run(with_part_of_rate(task, number), time_limit)

    try:
        with ExitStack() as started:
            for _ in tasks[:number]:
                started.enter_context(task_process(name, root, environ))
        run_in_threads(run, partial(interrupt_run, name), partial(kill_run, name), number, tasks, listener)
    finally:
        end_idle(name)
