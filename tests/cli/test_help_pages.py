"""`lmsconf help`: pages of the guide that say what the program does."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow.shell import lmsconf

from lmsconf.cli import app
from lmsconf.documents.effect_values import COLUMNS
from lmsconf.errors import ExitCode
from lmsconf.model.policy import GuardLimits
from lmsconf.support.package_data import guide_topics, read_guide_page

TOPICS = guide_topics()


def test_without_a_topic_all_are_listed(tmp_path: Path) -> None:
    """Each with the line that prints it; no project is needed."""
    ran = lmsconf(tmp_path, "help")
    assert ran.code == ExitCode.OK
    assert ran.out.splitlines() == ["Topics:", *(f"  lmsconf help {topic}" for topic in TOPICS)]
    assert "effects" in TOPICS


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_fits_a_terminal(topic: str, tmp_path: Path) -> None:
    """It begins with its title, and no line of prose is longer than 100 characters."""
    ran = lmsconf(tmp_path, "help", topic)
    assert ran.code == ExitCode.OK
    assert ran.out.startswith("# ")
    assert max(len(line) for line in ran.out.splitlines() if not line.startswith("    ")) <= 100


@pytest.mark.parametrize("topic", ["effekts", "../cli/help", "/etc/passwd", "effects.md"])
def test_an_unknown_topic_is_refused(topic: str, tmp_path: Path) -> None:
    """A word that is no topic prints no file, and the topics are named."""
    ran = lmsconf(tmp_path, "help", topic)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"Topics are {', '.join(TOPICS)}." in ran.err


def test_the_page_about_effects_says_what_holds() -> None:
    """It has the limits that are the defaults, and explains the words of the tables, the guards and the options."""
    page = " ".join(read_guide_page("effects").split())
    for name in ("people", "mandatory"):
        limit = GuardLimits().limit(name)
        assert limit is not None
        assert limit.share is not None
        assert f"{name}: {{count: {limit.count}, share: {limit.share:.0%}}}" in page
    options = {option for command in ("plan",) for option in _options(command)}
    assert {"--people", "--no-effects"} <= options
    words = (
        *(
            "audience",
            "gain, lose",
            "becomes mandatory, becomes optional",
            "shortened",
            "exact",
            "estimate",
            "not known",
        ),
        *("--people", "--no-effects", "--allow people=unknown", "programs or purchases", "judged singly"),
    )
    assert [word for word in words if word not in page] == []
    assert {"email", "causes"} <= set(COLUMNS)


def _options(command: str) -> list[str]:
    found = app.get_command(None, command)  # type: ignore[arg-type,attr-defined]  # the table needs no context
    return [name for parameter in found.params for name in parameter.opts]
