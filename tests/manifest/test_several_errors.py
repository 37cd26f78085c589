"""An error of shape hides no other error, and causes none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from lmsconf.manifest.load import load_folder

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SHAPE = "manifest/unknown-key"


def told(root: Path, *manifests: str) -> list[str]:
    """The codes of the errors in manifests, in their order."""
    for number, text in enumerate(manifests):
        (root / f"{number}.yaml").write_text(text, encoding="utf-8")
    found = load_folder(root, root, timezone=ZoneInfo("Europe/Stockholm"))
    return [problem.code for problem in found.problems if problem.is_error]


FIELD = "custom_fields: [{name: Country, type: CHOICE, choices: [SE, FI]%s}]\n"
GROUP = "smart_groups: [{name: A, conditions: [{field: Country, %s}]%s}]\n"


@pytest.mark.parametrize(
    ("manifests", "codes"),
    [
        ((FIELD % "", GROUP % ("choices: [DK]", ", maangers: []")), ["reference/unknown-choice", SHAPE]),
        ((FIELD % ", hiden: true", GROUP % ("choices: [DK]", "")), [SHAPE, "reference/unknown-choice"]),
        ((FIELD % ", hidden: 7", GROUP % ("except: [DK]", "")), ["manifest/type", "reference/unknown-choice"]),
        (("groups: [{name: A, members: {set: B}, nots: 1}]\n",), ["reference/unknown-set", SHAPE]),
        (("groups: [{name: A, memebrs: []}]\ncontent_targets: [{content: B, window: Q, assign_to: [everyone]}]\n",),
         [SHAPE, "reference/unknown-window"]),
    ],
)  # fmt: skip
def test_what_an_entry_refers_to_is_checked_too(manifests: tuple[str, ...], codes: list[str], tmp_path: Path) -> None:
    """In an entry with a wrong key, and where such an entry is referred to."""
    assert told(tmp_path, *manifests) == codes


@pytest.mark.parametrize(
    ("manifests", "codes"),
    [
        ((FIELD % "", GROUP % ("except: [SE]", "")), []),
        ((FIELD.replace("[SE, FI]", "[SE, {nam: FI}]") % "", GROUP % ("except: [SE]", "")), None),
        ((FIELD.replace("[SE, FI]", "[SE, {nam: FI}]") % "", GROUP % ("choices: [FI]", "")), None),
        ((FIELD.replace("name", "nam") % "", GROUP % ("except: [SE]", "")), None),
        ((FIELD.replace("custom_fields", "custom_feilds") % "", GROUP % ("except: [SE]", "")), [SHAPE]),
        (("people_sets: {Leads: {fil: a.csv}}\n", "groups: [{name: A, members: {set: Leads}}]\n"), None),
        (("people_sets: [Leads]\n", "groups: [{name: A, members: {set: Leads}}]\n"), ["manifest/type"]),
        (("peple_sets: {Leads: []}\n", "groups: [{name: A, members: {set: Leads}}]\n"), [SHAPE]),
        (("people_sets: {Leads: [a@b.example]\n", "groups: [{name: A, members: {set: Leads}}]\n"), ["yaml/syntax"]),
        (("windows: {Q: {visible_form: 2026-01-01}}\n",
          "content_targets: [{content: B, window: Q, assign_to: [everyone]}]\n"), None),
        # Without the misspelt key, both would be declared for the same workspaces.
        (("groups: [{name: A, only_im: [one]}, {name: A, only_in: [two]}]\n",), [SHAPE]),
        (("groups: [{name: A, only_in: one}, {name: A, only_in: [two]}]\n",), ["manifest/type"]),
        (("groups: [{name: A, di: g-1}, {name: a}]\n",), [SHAPE]),
    ],
)  # fmt: skip
def test_an_error_of_shape_causes_no_other(manifests: tuple[str, ...], codes: list[str] | None, tmp_path: Path) -> None:
    """A reference to what has the wrong shape, or may stand where nobody can read it, is not unknown."""
    found = told(tmp_path, *manifests)
    assert not [code for code in found if not code.startswith(("manifest/", "yaml/"))]
    assert found == codes or (codes is None and found)


def variants(value: object) -> Iterator[object]:
    """The same document, with one value or key of an entry made wrong."""
    if not isinstance(value, dict):
        return
    for section, entries in value.items():
        parts = {section: entries} if isinstance(entries, list) else entries if section == "absent" else {}
        for items in parts.values():
            for entry in items if isinstance(items, list) else ():
                if isinstance(entry, dict):
                    yield from _wrong(value, entry)


def _wrong(document: object, entry: dict[str, Any]) -> Iterator[object]:
    for key in list(entry):
        kept = dict(entry)
        # `about` takes any value.
        for wrong in ({key: {"nonsense": [7]}} if key != "about" else {}, {f"{key}x": kept[key]}):
            if not wrong:
                continue
            del entry[key]
            entry.update(wrong)
            yield document
            entry.clear()
            entry.update(kept)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("acme/manifests/**/*.yaml")), ids=lambda path: f"{path.parts[-3]}-{path.stem}"
)
def test_one_wrong_key_is_one_problem(path: Path) -> None:
    """Each value of each entry of the examples made wrong, one at a time: nothing else is found in the project."""
    folder = next(parent for parent in path.parents if parent.name == "manifests")
    root = folder.parent
    for document in yaml.load_all(path.read_text(encoding="utf-8"), yaml.BaseLoader):
        for wrong in variants(document):
            text = yaml.safe_dump(wrong, allow_unicode=True).replace("'true'", "true").replace("'false'", "false")
            drafts = {path.relative_to(root).as_posix(): text.encode()}
            found = load_folder(folder, root, timezone=ZoneInfo("Europe/Stockholm"), unsaved_contents=drafts)
            codes = [problem.code for problem in found.problems if problem.is_error]
            assert codes, text
            assert all(code.startswith("manifest/") for code in codes), text
