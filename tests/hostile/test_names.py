"""Names that are the same to Unicode are one name; those that only look the same to a person are reported."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from flow.project import Project

from lmsconf.errors import ProblemsFound
from lmsconf.manifest.load import load_folder

NFC = "Försäljning Å"
NFD = unicodedata.normalize("NFD", NFC)
ENTRIES = {
    "custom_fields": "{name: '%s', type: TEXT}",
    "groups": "{name: '%s'}",
    "smart_groups": "{name: '%s', conditions: [{field: F, choices: [a]}]}",
}
ALIKE = [("Sales", "sales"), ("Sales", " Sales"), ("Straße", "STRASSE"), ("ΣΑΣ", "σας"), ("Å", "a\u030a"), ("ﬁ", "FI")]


def codes(root: Path, text: str) -> list[str]:
    (root / "a.yaml").write_text(text, encoding="utf-8")
    return [problem.code for problem in load_folder(root, root).problems]


@pytest.mark.parametrize("section", ENTRIES)
def test_one_name_in_two_forms(section: str, tmp_path: Path) -> None:
    """The composed and the decomposed form of a name are one name: declared twice."""
    both = ", ".join(ENTRIES[section] % name for name in (NFC, NFD))
    assert codes(tmp_path, f"{section}: [{both}]") == ["manifest/declared-twice"]


@pytest.mark.parametrize("section", ENTRIES)
@pytest.mark.parametrize("pair", ALIKE, ids=str)
def test_names_that_look_alike(section: str, pair: tuple[str, str], tmp_path: Path) -> None:
    """Names that differ by case or by blanks at their ends are an error; with an `id:` on one they are two."""
    one, other = (ENTRIES[section] % name for name in pair)
    assert codes(tmp_path, f"{section}: [{one}, {other}]") == ["name/look-alike"]
    pinned = other.replace("}", ", id: x-1}", 1) if section != "smart_groups" else other[:-1] + ", id: x-1}"
    assert codes(tmp_path, f"{section}: [{one}, {pinned}]") == []


def test_a_live_name_in_the_other_form(tmp_path: Path) -> None:
    """Groups, fields, choices, contents and people whose live names are decomposed are those that manifests compose."""
    seed = f"""
people: [{{email: "{NFD.split()[0]}@acme.example"}}]
custom_fields: [{{name: "{NFD}", type: CHOICE, choices: ["{NFD}"]}}]
groups: [{{name: "{NFD}", members: ["{NFD.split()[0]}@acme.example"]}}]
smart_groups: [{{name: "{NFD} smart", conditions: [{{field: "{NFD}", choices: ["{NFD}"]}}]}}]
content: [{{name: "{NFD}"}}]
content_targets: [{{content: "{NFD}", assign_to: [{{group: "{NFD}"}}]}}]
"""
    project = Project(tmp_path, seed)
    plan = project.plan(f"""
custom_fields: [{{name: "{NFC}", type: CHOICE, choices: ["{NFC}"]}}]
groups: [{{name: "{NFC}", members: ["{NFC.split()[0].upper()}@acme.example"]}}]
smart_groups: [{{name: "{NFC} smart", conditions: [{{field: "{NFC}", choices: ["{NFC}"]}}]}}]
content_targets: [{{content: "{NFC}", assign_to: [{{group: "{NFC}"}}]}}]
""")
    assert (plan.changes, plan.problems) == ((), ())


@pytest.mark.parametrize(("live", "wanted"), ALIKE[:4])
def test_a_live_name_that_looks_alike(live: str, wanted: str, tmp_path: Path) -> None:
    """What would be created beside a live name of the same look is an error that offers the exact name and `id:`."""
    project = Project(tmp_path, f'groups: [{{name: "{live}"}}]\n')
    with pytest.raises(ProblemsFound) as raised:
        project.plan(f'groups: [{{name: "{wanted}"}}]\n')
    (problem,) = raised.value.problems
    assert problem.code == "name/look-alike"
    assert f'"{live}"' in problem.message
    assert problem.hint
    assert "previously" in problem.hint
    assert "id:" in problem.hint
