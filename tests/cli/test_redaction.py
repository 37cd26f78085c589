"""Nothing that lmsconf says of a failure holds a key."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from lmsconf.cli.frame import report_crash
from lmsconf.cli.output_streams import report_problems, write_redacted
from lmsconf.errors import Problem
from lmsconf.support.redaction import register_secret

TOKEN = "token-canary-0815"  # it is of no service
LINK = "https://files.example/canary/x?X-Amz-Signature=canary"


def test_problems_are_told_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """A problem's words and its hint lose tokens and links, and keep the rest."""
    register_secret(TOKEN)
    report_problems([Problem(code="api/rejected", message=f"refused {TOKEN} at {LINK}", hint=f"ask Bearer {TOKEN}")])
    said = capsys.readouterr().err
    assert "canary" not in said
    assert "refused *** at https://files.example/***" in said


def test_a_mistake_of_our_own_is_told_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback names the place, and neither its message nor that of its cause holds a key."""
    register_secret(TOKEN)
    try:
        try:
            raise ValueError(f"at {LINK}")
        except ValueError as cause:
            raise RuntimeError(f"with {TOKEN}") from cause
    except RuntimeError as error:
        report_crash(type(error), error, error.__traceback__)
    said = capsys.readouterr().err
    assert "canary" not in said
    assert "test_redaction.py" in said
    assert "RuntimeError: with ***" in said


def test_the_command_line_uses_it() -> None:
    """A program that crashes prints its traceback through the same door."""
    code = (
        "import sys, lmsconf.cli, lmsconf.cli.frame as frame\n"
        f"def run(*_): raise RuntimeError({LINK!r})\n"
        "frame.run_command_line = run\n"
        "lmsconf.cli.main([])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "RuntimeError: https://files.example/***" in ran.stderr


def test_what_is_asked_for_by_hand_stays_whole() -> None:
    """Every stream loses the token, but the answer to `lmsconf api`, which is the caller's own."""
    register_secret(TOKEN)
    usual, whole = io.StringIO(), io.StringIO()
    write_redacted(f"it is {TOKEN}", usual)
    write_redacted(f"it is {TOKEN}", whole, whole=True)
    assert (usual.getvalue(), whole.getvalue()) == ("it is ***", f"it is {TOKEN}")
