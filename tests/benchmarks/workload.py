"""The mix that is measured: a workspace of N resources, and a project whose manifests say all of it.

Of 10,000 resources 10 are custom fields, 2,000 groups, 1,000 smart groups and 6,990 assignments of 500 contents; other
sizes keep these shares. The manifests list everybody in every group, so nothing is cheap because it is not managed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import yaml

from lmsconf.sandbox.store import Store
from lmsconf.sandbox.synthetic_seed import generate_seed
from lmsconf.workspace.fill_sandbox import fill_workspace

Entry: TypeAlias = "dict[str, object]"
Values: TypeAlias = "dict[str, list[Entry]]"
FIELDS = 10
PEOPLE = 2_000
"""As many in every size: who is in which smart group is the service's to say, and grows with both."""
_A_FILE = 500
"""How many entries stand in one manifest."""
PROJECT = """\
workspaces:
  sandbox: {url: "sandbox:workspace.db"}
default_workspace: sandbox
manifests: manifests
"""


def values_of(resources: int) -> Values:
    """A made-up workspace of that many resources; the same number gives the same one."""
    groups, smart_groups = resources // 5, resources // 10
    return generate_seed(
        users=PEOPLE,
        groups=groups,
        smart_groups=smart_groups,
        fields=FIELDS,
        contents=resources // 20,
        assignments=resources - FIELDS - groups - smart_groups,
    )


def make_project(folder: Path, values: Values) -> None:
    """A project whose sandbox holds the values and whose manifests declare them."""
    folder.mkdir(parents=True)
    (folder / "lmsconf.yaml").write_text(PROJECT, encoding="utf-8")
    plant_into(folder / "workspace.db", values)
    write_manifests(folder / "manifests", values)


def plant_into(file: Path, values: Values) -> None:
    """A sandbox workspace in that file."""
    store = Store(file)
    with store.write_transaction() as repository:
        fill_workspace(repository, values)
    store.close()


def write_manifests(folder: Path, values: Values) -> None:
    """The values as people would write them: some files for each kind, an entry with all audiences for each content."""
    folder.mkdir()
    archived = frozenset(str(person["email"]) for person in values["people"] if person.get("archived"))
    declared = {
        "custom_fields": values["custom_fields"],
        "groups": [_without(archived, entry) for entry in values["groups"]],
        "smart_groups": [_without(archived, entry) for entry in values["smart_groups"]],
        "content_targets": list(_by_content(values["content_targets"])),
    }
    for section, entries in declared.items():
        for start in range(0, len(entries), _A_FILE):
            text = _yaml({section: entries[start : start + _A_FILE]})
            (folder / f"{section}-{start:05}.yaml").write_text(text, encoding="utf-8")


def _yaml(values: object) -> str:
    return str(yaml.dump(values, Dumper=_Dumper, allow_unicode=True, sort_keys=False))


class _Dumper(yaml.CSafeDumper):
    """Writes a value that stands in two places twice, as a person would."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _without(archived: frozenset[str], entry: Entry) -> Entry:
    """The entry without people who have left: nobody declares them, and each would be a warning."""
    return {
        key: [email for email in value if email not in archived]
        if key in ("members", "managers") and isinstance(value, list)
        else value
        for key, value in entry.items()
    }


def _by_content(assignments: Iterable[Entry]) -> Iterator[Entry]:
    """One entry a content, with what each of its audiences has of its own beside it."""
    entries: dict[object, list[object]] = {}
    for one in assignments:
        own = {key: value for key, value in one.items() if key not in ("content", "assign_to")}
        listed = one["assign_to"]
        for audience in listed if isinstance(listed, list) else [listed]:
            said = {"everyone": True} if audience == "everyone" else audience
            entries.setdefault(one["content"], []).append({**said, **own} if isinstance(said, dict) else said)
    for content, audiences in entries.items():
        yield {"content": content, "assign_to": audiences}


def change_some(folder: Path, share: float) -> None:
    """Gives that share of the groups, smart groups and assignments something to change; fields stay as they are."""
    for path in sorted(folder.glob("*.yaml")):
        section, entries = next(iter(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader).items()))
        every = round(1 / share)
        if section == "content_targets":
            flat = [audience for entry in entries for audience in entry["assign_to"]]
            for audience in flat[::every]:
                audience["mandatory"] = not audience.get("mandatory", False)
        elif section != "custom_fields":
            for entry in [entry for entry in entries if entry["managers"]][::every]:
                entry["managers"] = entry["managers"][1:]
        path.write_text(_yaml({section: entries}), encoding="utf-8")
