"""`drift --accept` changes the lines that it must, and no other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from integrity.served_project import ServedProject

EDITS: Final = Path(__file__).with_name("edits.txt").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Edit:
    """One edit as a diff: lines that go begin with `-`, lines that come with `+`, all others stay."""

    title: str
    accepted: list[str]
    lines: list[str]

    @property
    def before(self) -> str:
        return "".join(f"{line[1:]}\n" for line in self.lines if line[:1] != "+")

    @property
    def after(self) -> str:
        return "".join(f"{line[1:]}\n" for line in self.lines if line[:1] != "-")


def _edit(text: str) -> Edit:
    title, *lines = text.rstrip("\n").split("\n")
    prefix = "accept: "
    accepted = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
    return Edit(title, accepted, [line for line in lines if not line.startswith(prefix)])


CASES: Final = [_edit(text) for text in EDITS.split("### ")[1:]]
SPELT: Final = {
    "as it is": lambda text: text,
    "with CRLF": lambda text: text.replace("\n", "\r\n"),
    "with no line break at its end": lambda text: text.removesuffix("\n"),
    "with a byte order mark and a comment": lambda text: f"\ufeff# 😀 é\n{text}",
    "among other documents": lambda text: f"# one\nx-a: [1]\n---\n{text}---\n# three\nx-b: {{c: d}}  # kept",
}


@pytest.mark.sampled
@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("edit", CASES, ids=lambda edit: edit.title)
def test_an_edit_changes_only_what_it_must(stage: ServedProject, edit: Edit, spelt: str) -> None:
    """What was accepted is no drift any more; every line but those that the case names is as it was, to the byte."""
    stage.write("")
    path = stage.root / "manifests" / "all.yaml"
    path.write_bytes(SPELT[spelt](edit.before).encode())
    accepted = [f"--accept={address}" for address in edit.accepted]
    ran = stage("drift", *accepted)
    assert (ran.code, ran.writes) == (0, []), ran.err
    assert path.read_bytes().decode() == SPELT[spelt](edit.after)
    again = stage("drift", *accepted)
    assert again.code == 1
    assert "no difference has this address" in again.err


@pytest.mark.parametrize("typed", ["group/Zebra *", "groups/Zebra *", "Zebra *", "group Zebra *"])
def test_a_pasted_address_is_accepted_alone(stage: ServedProject, typed: str) -> None:
    """Also under its section's name and by its name alone, and though its star would match another group."""
    stage.write("groups:\n  - name: Zebra *\n  - name: Zebra 1\n")
    ran = stage("drift", "--accept", typed)
    assert ran.code == 0, ran.err
    assert "Also accepted" not in ran.err
    kept = (stage.root / "manifests" / "all.yaml").read_text(encoding="utf-8")
    assert ("Zebra 1" in kept, "Zebra *" in kept) == (True, False)
    again = stage("drift", "--accept", "group/Zebra 2")
    assert (again.code, "Did you mean --accept 'group/Zebra 1'?" in again.err) == (1, True)
