# ruff: noqa: E501  # the parts read best by family
"""Whatever bytes stand in the files of a project: problems with places come of it, or declarations, nothing else."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmsconf.errors import ProblemsFound
from lmsconf.project.settings import load_settings
from lmsconf.render import problems_json, problems_text
from lmsconf.workspace.project_manifests import load_manifests

from . import active_content

PROJECT = b"workspaces: {s: {url: 'sandbox:'}}\nvars: {x: y}\n"
PARTS = [
    *["groups: ", "smart_groups: ", "custom_fields: ", "content_targets: ", "absent: ", "users: ", "x-a: ", "name: ", "id: ", "previously: "],
    *["members: ", "managers: ", "conditions: ", "field: ", "choices: ", "system_condition: ", "content: ", "assign_to: ", "type: CHOICE"],
    *["include: ", "exclude: ", "file: p.csv", "column: email", "where: ", "allow_empty: true", "only_in: ", "about: ", "until: ", "everyone"],
    *["visible_from: ", "visible_until: ", "mandatory: ", "2026-02-30", "2026-01-05T24:00", "9999-12-31", "0001-01-01", "description: "],
    *["workspaces: ", "url: ", "token: ", "env: ", "guards: ", "deletes: ", "ownership: ", "allow: ", "dialect: ", "timezone: ", "vars: "],
    *["[", "]", "{", "}", ",", ": ", "- ", "? ", "\n", "\n  ", "\n    ", "\n- ", "\n  - ", "#", "'", '"', "&a ", "*a", "!!str ", "!x ", "<<: ", "%YAML 1.1\n", "---\n", "...\n", "~", "null"],
    *["true", "no", "0x1f", "0o7", "1e999", ".inf", ".nan", "-", "+1", "1_000", "$(x)", "$(", "$$(", "$(y)", "a@b.example", "a", "\t", "\\", "@", "`", "%", ">-\n"],
    "|", "|\n", "a: b", "\r", "\r\n", "\ufeff", "\x85", "\u2028", "\0", "\x1b[31m", "\u202e", "e\u0301", "é", "\U0001f600",
    '"\\ud800"', '"\\x00"', '"\\U00110000"', "[[[[[", "9" * 400, "a" * 300,
]  # fmt: skip
texts = st.lists(st.sampled_from(PARTS), max_size=25).map(lambda parts: "".join(parts).encode())
files = texts | st.binary(max_size=200) | st.tuples(texts, st.binary(max_size=4), texts).map(b"".join)
tables = files | st.lists(
    st.sampled_from([b"email", b",", b";", b"\t", b"\n", b'"', b"a@b.c", b"\r", b"\xff", b" "])
).map(b"".join)
thorough = settings(suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(manifest=files, people=tables)
def test_manifests(manifest: bytes, people: bytes) -> None:
    """Any manifest beside any list of people is read to the end, and what is wrong has a place."""
    told = _read(PROJECT, manifest, people)
    assert all(problem.source for problem in told.problems)


@thorough
@given(project=files)
def test_project_files(project: bytes) -> None:
    """Any project file is read, or everything that is wrong with it is told."""
    _read(project, b"groups: []\n", b"email\n")


@thorough
@given(entry=texts, section=st.sampled_from(["groups", "smart_groups", "custom_fields", "content_targets", "users"]))
def test_entries(entry: bytes, section: str) -> None:
    """Anything that YAML takes, in the place of an entry, is parsed or told about."""
    _read(PROJECT, f"{section}:\n  - {{name: a, ".encode() + entry + b"}\n", b"email\na@b.example\n")


def _read(project: bytes, manifest: bytes, people: bytes) -> ProblemsFound:
    """What is wrong with a project; any error but ours ends the test. Its words are safe in every format."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "manifests").mkdir()
        (root / "lmsconf.yaml").write_bytes(project)
        (root / "manifests" / "a.yaml").write_bytes(manifest)
        (root / "manifests" / "p.csv").write_bytes(people)
        try:
            told = ProblemsFound(load_manifests(load_settings(root, None, {})).problems)
        except ProblemsFound as found:
            told = found
    assert active_content.text(problems_text(told.problems)) == []
    assert active_content.in_json(problems_json(told.problems)) == []
    return told
