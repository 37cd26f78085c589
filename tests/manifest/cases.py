"""Tables of manifests: `=== title`, the text, `>>>`, and what is declared, or the problems, each over its hint."""

import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds.assignment.types import AssignmentSpec
from lmsconf.kinds.group import ManualGroupSpec
from lmsconf.manifest.load import load_folder
from lmsconf.model.declarations import DesiredResource, Manifests

ZONE = ZoneInfo("Europe/Stockholm")


class Case(NamedTuple):
    """One text and what is to be said of it."""

    title: str
    text: str
    told: str


def cases(path: Path) -> list[Case]:
    """All cases of a table."""
    found = []
    for part in path.read_text(encoding="utf-8").split("=== ")[1:]:
        title, rest = part.split("\n", 1)
        text, told = rest.split(">>>\n", 1)
        found.append(Case(title, text, told))
    return found


def shown(problems: Iterable[Problem]) -> str:
    """Problems in the form of the table."""
    return "".join(
        f"{problem.source}: {problem.message} [{problem.code}]\n" + (f"  {problem.hint}\n" if problem.hint else "")
        for problem in problems
    )


def loaded(root: Path, text: str, **options: Any) -> Manifests:
    """What the manifests of a text declare: a.yaml, and each file whose path stands in a line behind an @."""
    whole = text if text.startswith("@ ") else f"@ a.yaml\n{text}"
    for part in re.split(r"^@ (?=\S+$)", whole, flags=re.MULTILINE)[1:]:
        name, content = part.split("\n", 1)
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return load_folder(root, root, **{"timezone": ZONE, **options})


def declared(found: Manifests) -> str:
    """What manifests declare, each with its place and what it says, and what is wrong, in the form of the table."""
    lines = [f"{one.address} ({one.source}) {said(one)}".rstrip() for one in found.declared]
    lines += [f"absent {one.address} ({one.source})" for one in found.absent]
    problems = [replace(one, message=f"{one.severity}: {one.message}") for one in found.problems]
    return "".join(f"{line}\n" for line in lines) + shown(problems)


def said(one: DesiredResource[Any]) -> str:
    """What an assignment or a group says; `-` for an open end."""
    words = []
    if isinstance(one.spec, AssignmentSpec):
        ends = [one.spec.visible_from, one.spec.visible_until]
        times = [end.astimezone(ZONE).strftime("%Y-%m-%dT%H:%M:%S") if end else "-" for end in ends]
        words = [*(["mandatory"] if one.spec.mandatory else []), " to ".join(times)]
    if isinstance(one.spec, ManualGroupSpec) and one.spec.members is not None:
        people = one.spec.members
        words = [f"{email} {one.places.find(email, 'members')}" for email in sorted(people.include)]
        words += [f"not {email}" for email in sorted(people.exclude)] + (["nobody"] if not words else [])
    words += [f"only_in {', '.join(sorted(one.only_in))}"] if one.only_in else []
    words += [f"about {one.about}"] if one.about else []
    return ", ".join(words)


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip file with these parts."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            # The mimetype is not compressed, so that the first bytes of a file show it.
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else None)
    return held.getvalue()
