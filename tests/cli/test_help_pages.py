"""`lmsconf help`: pages of the guide that say what the program does."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from command_reference import command_pages
from flow.shell import lmsconf
from on_terminal import at_terminal

from lmsconf.cli import app
from lmsconf.errors import ExitCode
from lmsconf.model.effects import PEOPLE_COLUMNS as COLUMNS
from lmsconf.model.policy import GuardLimits
from lmsconf.support.folders import guide_topics, read_guide_page

TOPICS = sorted(guide_topics(), key=lambda topic: (topic != "getting-started", topic))


def test_without_a_topic_all_are_listed(tmp_path: Path) -> None:
    """Each has one line, with what its page is about; no project is needed."""
    ran = lmsconf(tmp_path, "help")
    assert ran.code == ExitCode.OK
    head, *listed, blank, usage = ran.out.splitlines()
    assert (head, blank) == ("Topics:", "")
    assert sorted(line.split()[0] for line in listed) == sorted(TOPICS)
    assert all(len(line.split()) > 3 and len(line) <= 80 for line in listed)
    assert "lmsconf help TOPIC" in usage


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_fits_a_terminal(topic: str, tmp_path: Path) -> None:
    """It begins with its title, and no line of prose is longer than 100 characters."""
    ran = lmsconf(tmp_path, "help", topic)
    assert ran.code == ExitCode.OK
    assert ran.out.startswith("# ")
    assert max(len(line) for line in ran.out.splitlines() if not line.startswith("    ")) <= 100


@pytest.mark.parametrize("topic", ["effekts", "../cli/help", "/etc/passwd", "effects.md"])
def test_an_unknown_topic_is_refused(topic: str, tmp_path: Path) -> None:
    """A word that is no topic prints no file, and the nearest is named, or all are."""
    ran = lmsconf(tmp_path, "help", topic)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    near = 'Did you mean "effects"? List the pages with: lmsconf help'
    assert (near if topic.startswith("eff") else f"Topics are {', '.join(TOPICS)}.") in ran.err


def test_a_topic_that_is_a_command_names_its_options(tmp_path: Path) -> None:
    """The page is printed, and its last line shows where the options are."""
    ran = lmsconf(tmp_path, "help", "drift")
    assert ran.out.startswith("# Drift\n")
    assert ran.out.endswith("\nOptions of the command: lmsconf drift --help\n")


def test_a_word_is_found_in_all_pages(tmp_path: Path) -> None:
    """Each line that has it is listed behind its topic, without regard to case, also across the ends of lines."""
    ran = lmsconf(tmp_path, "help", "--search", "EFFECTS on people")
    assert ran.code == ExitCode.OK
    assert "effects: # Effects on people" in ran.out.splitlines()
    assert all(line.partition(": ")[0] in TOPICS for line in ran.out.splitlines())
    assert max(map(len, ran.out.splitlines())) <= 80
    lines = read_guide_page("effects").splitlines()
    before, after = next(pair for pair in pairwise(lines) if all(line.count(" ") > 8 for line in pair))
    across = " ".join([before.split()[-1], *after.split()[:2]])
    assert "effects: " in lmsconf(tmp_path, "help", "--search", across).out
    only = lmsconf(tmp_path, "help", "drift", "--search", "effects").out
    assert {line.partition(": ")[0] for line in only.splitlines()} <= {"drift"}


def test_words_that_stand_apart_are_found(tmp_path: Path) -> None:
    """Where no line has the phrase, those that have all its words are listed."""
    out = lmsconf(tmp_path, "help", "--search", "people sets").out
    assert "people_sets" in out
    assert all(line.partition(": ")[0] in TOPICS for line in out.splitlines())


def test_a_word_that_no_page_has(tmp_path: Path) -> None:
    """Nothing is printed, and the exit code is 1, as grep has it."""
    ran = lmsconf(tmp_path, "help", "--search", "xyzzy")
    assert (ran.code, ran.out) == (ExitCode.ERROR, "")
    assert "no page contains 'xyzzy'" in ran.err


def test_a_page_on_a_terminal_has_bold_headings(tmp_path: Path) -> None:
    """Without colour the marks of Markdown stay, so that a heading is seen; each page fits 40 columns."""
    shown = at_terminal(tmp_path, "help", "effects", "--no-pager", columns=40, env={"TERM": "xterm", "NO_COLOR": ""})[1]
    assert shown.startswith("\x1b[1mEffects on people\x1b[0m\n")
    plain = at_terminal(tmp_path, "help", "effects", "--no-pager", columns=40, env={"TERM": "xterm", "NO_COLOR": "1"})[
        1
    ]
    assert plain.startswith("# Effects on people\n")
    assert "\x1b" not in plain
    assert max(len(line) for line in plain.splitlines() if not line.startswith("    ")) <= 40


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
        *("--people", "--no-effects", "--allow people=unknown", "programs or purchases", "checked separately"),
    )
    assert [word for word in words if word not in page] == []
    assert {"email", "causes"} <= set(COLUMNS)


def _options(command: str) -> list[str]:
    found = app.get_command(None, command)  # type: ignore[arg-type,attr-defined]  # the table needs no context
    return [name for parameter in found.params for name in parameter.opts]


# The pages `commands…` of the guide: all commands, options and exit codes, as the program has them.


def test_the_command_reference_is_current() -> None:
    """It is what `python -m tests.cli.command_reference` would write."""
    for topic, page in command_pages().items():
        assert read_guide_page(topic) == page
