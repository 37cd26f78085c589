"""The page `commands` of the guide: all commands, options and exit codes, as the program has them."""

from __future__ import annotations

from command_reference import MEANINGS, PAGE, command_page

from lmsconf.cli import COMMANDS
from lmsconf.errors import ExitCode


def test_the_command_reference_is_current() -> None:
    """It is what `python -m tests.cli.command_reference` would write."""
    assert PAGE.read_text(encoding="utf-8") == command_page()


def test_the_command_reference_is_whole() -> None:
    """Each command has a section, each exit code a row."""
    page = command_page()
    assert [name for name in COMMANDS if f"\n## lmsconf {name}\n" not in page] == []
    assert list(MEANINGS) == list(ExitCode)
    assert [code for code in ExitCode if f"\n| {code.value} | {MEANINGS[code]} |\n" not in page] == []
