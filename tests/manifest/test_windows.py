"""Windows: times with a name, defined once and named by assignments."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode, SourceLocation
from lmsconf.kinds.content_target.types import AssignmentSpec
from lmsconf.manifest.load import load_folder
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from manifest.cases import shown

ZONE = ZoneInfo("Europe/Stockholm")
WINDOWS = """\
windows:
  Q1: {visible_from: 2026-01-05, visible_until: 2026-03-31}
  Later:
    visible_from: 2026-04-01T08:00
"""


def loaded(root: Path, manifest: str, windows: str = WINDOWS, variables: dict[str, Json] | None = None) -> Manifests:
    """Manifests whose windows stand in a file of their own."""
    (root / "a.yaml").write_text(manifest)
    (root / "windows.yaml").write_text(windows)
    return load_folder(root, root, timezone=ZONE, variables=variables)


def times(found: Manifests) -> dict[str, tuple[str, ...]]:
    """Assignment → when it can be seen, `-` for an open end."""
    return {
        one.address.text: tuple(
            time.astimezone(ZONE).strftime("%m-%dT%H:%M:%S") if time else "-"
            for time in (one.spec.visible_from, one.spec.visible_until)
        )
        for one in found.declared
        if isinstance(one.spec, AssignmentSpec)
    }


def test_a_window_means_its_times(tmp_path: Path) -> None:
    """A date is its first second in visible_from and its last in visible_until, as beside the content itself."""
    found = loaded(tmp_path, "content_targets: [{content: A, window: Q1, assign_to: [everyone, {group: G}]}]\n")
    window = ("01-05T00:00:00", "03-31T23:59:59")
    assert times(found) == {"A -> everyone": window, "A -> group/G": window}


def test_an_alias_repeats_a_window(tmp_path: Path) -> None:
    """An audience with a window that aliases repeat has its times in each place."""
    found = loaded(
        tmp_path,
        "content_targets:\n"
        "  - {content: A, assign_to: [&team {group: G, window: Later}]}\n"
        "  - {content: B, window: Q1, assign_to: [*team, {group: H}]}\n"
        "  - {content: C, assign_to: [*team, *team]}\n",
    )
    later = ("04-01T08:00:00", "-")
    assert [problem.code for problem in found.problems] == ["manifest/declared-twice"]
    assert times(found) == {
        "A -> group/G": later,
        "B -> group/G": later,
        "B -> group/H": ("01-05T00:00:00", "03-31T23:59:59"),
        "C -> group/G": later,
    }


def test_an_audience_has_a_window_of_its_own(tmp_path: Path) -> None:
    """The window of an audience replaces both times of its entry: an end that it leaves out is open. A time of an
    audience replaces that end alone."""
    found = loaded(
        tmp_path,
        "content_targets:\n"
        "  - content: A\n"
        "    window: Q1\n"
        "    assign_to: [{group: G, window: Later}, {group: H, visible_until: 2026-02-28}, {group: I}]\n"
        "  - content: B\n"
        "    visible_until: 2027-12-31\n"
        "    assign_to: [{group: G, window: Later}, {group: H}]\n",
    )
    assert times(found) == {
        "A -> group/G": ("04-01T08:00:00", "-"),
        "A -> group/H": ("01-05T00:00:00", "02-28T23:59:59"),
        "A -> group/I": ("01-05T00:00:00", "03-31T23:59:59"),
        "B -> group/G": ("04-01T08:00:00", "-"),
        "B -> group/H": ("-", "12-31T23:59:59"),
    }


def test_variables_and_for_each(tmp_path: Path) -> None:
    """A window may be made of variables, and its name may be one, also in a list that several entries share."""
    found = loaded(
        tmp_path,
        "content_targets:\n"
        "  - for_each: {part: [Q1, Later]}\n"
        "    content: Course $(part)\n"
        "    assign_to: [{everyone: true, window: $(part)}]\n"
        "  - {content: C, assign_to: &all [{everyone: true, window: Q1}]}\n"
        "  - {content: D, assign_to: *all}\n",
        WINDOWS.replace("2026-01-05", "$(year)-02-01"),
        {"year": "2026"},
    )
    first = ("02-01T00:00:00", "03-31T23:59:59")
    assert found.problems == ()
    assert times(found) == {
        "Course Q1 -> everyone": first,
        "Course Later -> everyone": ("04-01T08:00:00", "-"),
        "C -> everyone": first,
        "D -> everyone": first,
    }


def test_places(tmp_path: Path) -> None:
    """A time stands where its window is defined, an open end where the window is named, the rest in the entry."""
    found = loaded(tmp_path, "content_targets: [{content: A, assign_to: [{group: G, window: Later}]}]\n")
    places = found.declared[0].places
    assert places.at("visible_from") == SourceLocation("windows.yaml", 4, 19)
    assert places.at("visible_until") == SourceLocation("a.yaml", 1, 63)
    assert places.at("group") == SourceLocation("a.yaml", 1, 52)
    assert found.declared[0].source == SourceLocation("a.yaml", 1, 44)


def test_both_places_of_a_name_declared_twice(tmp_path: Path) -> None:
    """Two files may not define one window, be it written alike or not."""
    found = loaded(
        tmp_path,
        "windows: {Later: {visible_from: 2026-05-01}}\n"
        "content_targets: [{content: A, window: Later, assign_to: [everyone]}, "
        "{content: B, window: Q1, assign_to: [everyone]}]\n",
    )
    assert shown(found.problems) == (
        'windows.yaml:3:3: window "Later": declared twice [window/twice]\n'
        "  See a.yaml:1:11. Keep one of the two, or give one another name.\n"
    )


PROJECT = """\
workspaces:
  one: {url: "sandbox:", vars: {part: Q1}}
  two: {url: "sandbox:", vars: {part: Q2}}
default_workspace: one
timezone: Europe/Stockholm
"""


def _project(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LMSCONF_URL", "LMSCONF_TOKEN", "LMSCONF_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    (root / "lmsconf.yaml").write_text(PROJECT)
    (root / "manifests").mkdir()
    entries = (
        "content_targets:\n"
        "  - {content: A, window: $(part), assign_to: [{group: G, window: Later}]}\n"
        "  - {content: B, window: Later, assign_to: [everyone]}\n"
    )
    (root / "manifests" / "a.yaml").write_text(WINDOWS + entries)
    return root


def test_each_workspace_is_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A window that a variable of one workspace names is looked for in that workspace."""
    root = _project(tmp_path, monkeypatch)
    assert run_command_line(app, ["-C", str(root), "--workspace", "one", "validate"]) == ExitCode.OK
    capfd.readouterr()
    assert run_command_line(app, ["-C", str(root), "--workspace", "two", "validate"]) == ExitCode.ERROR
    assert 'a.yaml:6:26: error: there is no window "Q2"' in capfd.readouterr().err


def test_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """`validate --expanded` shows the times in place of the window."""
    root = _project(tmp_path, monkeypatch)
    assert run_command_line(app, ["-C", str(root), "validate", "--expanded"]) == ExitCode.OK
    assert capfd.readouterr().out == (
        "content_targets:\n"
        "  - content: A\n"
        "    visible_from: 2026-01-05\n"
        "    visible_until: 2026-03-31\n"
        "    assign_to:\n"
        "      - {group: G, visible_from: 2026-04-01T08:00, visible_until: null}\n"
        "  - content: B\n"
        "    visible_from: 2026-04-01T08:00\n"
        "    assign_to: [everyone]\n"
    )


def test_explain(capfd: pytest.CaptureFixture[str]) -> None:
    """`explain` knows the section and the key."""
    assert run_command_line(app, ["explain", "windows"]) == ExitCode.OK
    assert "window: NAME" in capfd.readouterr().out
    assert run_command_line(app, ["explain", "content_target.window"]) == ExitCode.OK
    assert "under `windows`" in capfd.readouterr().out
