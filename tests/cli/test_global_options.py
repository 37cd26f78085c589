"""Global options stand before and after the command, and mean the same in both places."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from cli.command_reference import command_pages, options_of_commands
from cli.served import TOKEN, quickstart, served
from flow.shell import lmsconf
from on_terminal import at_terminal

from lmsconf.cli.command import GLOBAL_OPTIONS
from lmsconf.errors import ExitCode
from lmsconf.model.guards import GuardLimits
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.support.files import guide_topics, read_guide_page

REQUEST = re.compile(r"\d\d:\d\d:\d\d\.\d{3}Z GET /\S+ 200 \(\d+ ms\)")
PEOPLE = "@acme.example"


COMMANDS = [(), *(tuple(path.split()[1:]) for path in options_of_commands())]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart, with a second workspace."""
    root = quickstart(tmp_path_factory.mktemp("projects"))
    file = root / "lmsconf.yaml"
    second = 'workspaces:\n  staging: {url: "sandbox:staging.db", seed: workspace.yaml}\n'
    file.write_text(file.read_text(encoding="utf-8").replace("workspaces:\n", second, 1), encoding="utf-8")
    return root


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_takes_them_and_says_so_once(words: tuple[str, ...], tmp_path: Path) -> None:
    """Below one heading of its help, the last one, each global option stands once."""
    ran = lmsconf(tmp_path, *words, "--help", code=ExitCode.OK)
    _, _, listed = ran.out.partition("\nGlobal options:\n")
    names = [option.opts[0] for option in GLOBAL_OPTIONS]
    assert re.findall(r"^  (-\S+)", listed, re.MULTILINE) == ["-h,", *names]
    options = ran.out.partition("\nExamples:\n")[2]
    assert all(len(re.findall(rf"^  {name}(?![\w-])", options, re.MULTILINE)) == 1 for name in names)
    assert lmsconf(tmp_path, *words, "-C", str(tmp_path), "--workspace", "w", "--verbose", "--help").code == ExitCode.OK


def test_options_mean_the_same_in_both_places(project: Path, tmp_path: Path) -> None:
    """A plan in another folder, of another workspace, without people, is the same with them before and after `plan`."""
    chosen = ("-C", str(project), "--workspace", "staging", "--mask-people")
    before, after = lmsconf(tmp_path, *chosen, "plan"), lmsconf(tmp_path, "plan", *chosen)
    assert before.code == ExitCode.OK
    assert "Workspace staging" in before.out
    assert "person 1" in before.out
    assert PEOPLE not in before.out
    assert after == before
    assert lmsconf(tmp_path, *chosen[:2], "plan", *chosen[2:]) == before
    assert lmsconf(tmp_path, *chosen, "plan", *chosen) == before


@pytest.mark.parametrize("first", ["--workspace staging plan", "plan --workspace staging"])
def test_two_different_values_are_refused(first: str, project: Path) -> None:
    """Which workspace is meant must not depend on the order of words."""
    ran = lmsconf(project, *first.split(), "--workspace", "sandbox")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "--workspace is given twice, with 'staging' and 'sandbox'." in ran.err


@pytest.mark.parametrize("number", ["nan", "inf", "1e999"])
@pytest.mark.parametrize(
    "command",
    [
        *("plan --max-rate", "apply --max-rate", "sandbox serve --latency", "fleet plan --time-limit"),
        *("fleet plan --max-rate", "fleet matrix --format github --shards 2 --max-rate"),
    ],
)
def test_a_number_is_finite(command: str, number: str, tmp_path: Path) -> None:
    """What is not is a usage error that names the option, before anything else is looked at."""
    ran = lmsconf(tmp_path, *command.split(), number)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"'{command.rpartition(' ')[2]}'" in ran.err
    assert "is not a finite number" in ran.err


def test_people_are_masked_where_the_command_line_cannot_be_parsed(project: Path) -> None:
    """The words that are one too many may be e-mails."""
    ran = lmsconf(project, "access", "anna.berg@acme.example", "GDPR", "bo.ek@acme.example", "--mask-people")
    assert ran.code == ExitCode.USAGE
    assert re.search(r"unexpected extra argument \(person \d\)", ran.err)
    assert PEOPLE not in ran.err
    assert PEOPLE in lmsconf(project, "access", "a@acme.example", "GDPR", "bo.ek@acme.example").err


def test_requests_are_written_to_stderr(project: Path) -> None:
    """Each request is a line with its time, method, path, status and duration; stdout is the same as without."""
    quiet, ran = lmsconf(project, "plan", "--no-effects"), lmsconf(project, "plan", "--no-effects", "--verbose")
    assert (ran.code, ran.out) == (quiet.code, quiet.out)
    assert quiet.err == ""
    lines = ran.err.splitlines()
    assert len(lines) > 3
    assert [line for line in lines if not REQUEST.fullmatch(line)] == []
    assert lmsconf(project, "--verbose", "plan", "--no-effects").err.count("GET") == len(lines)


def test_retries_are_written_without_secrets(project: Path) -> None:
    """A request that the service cannot serve at first has a line for each attempt; no secret is in any."""
    refused = FaultScript(Fault(operation="custom-fields.list", status=503, headers={"retry-after": "0"}))
    asked = ("api", "GET", "/custom-fields", "--query", "sig=not-for-logs", "--verbose")
    with served(project, faults=refused) as (_, env):
        ran = lmsconf(project, *asked, env=env, code=ExitCode.ERROR)
    first, second, *_ = ran.err.splitlines()
    assert re.search(r" GET /custom-fields\?sig=\*\*\* 503 \(\d+ ms\)", first)
    assert re.search(r" GET /custom-fields\?sig=\*\*\* 400 \(\d+ ms, attempt 2\)", second)
    assert TOKEN not in ran.err


def test_with_masked_people_no_request_names_one(project: Path) -> None:
    """Ids in paths and values of queries are hidden; where a page begins is not."""
    env = {"LMSCONF_URL": "sandbox:workspace.db"}
    assert lmsconf(project, "plan").code == ExitCode.OK  # fills it from its seed
    named = lmsconf(project, "access", "bo.ek@acme.example", "--verbose", env=env)
    ran = lmsconf(project, "access", "bo.ek@acme.example", "--verbose", "--mask-people", env=env)
    assert (named.code, ran.code) == (ExitCode.OK, ExitCode.OK), named.err
    assert re.search(r"contentId=c-\d", named.err)
    assert not re.search(r"=[a-z]+-\d", ran.err)
    assert "contentId=(masked)" in ran.err
    assert "skip=0&limit=100" in ran.err
    asked = ("api", "GET", "/users/u-1", "--query", "userIds[]=u-17", "--verbose", "--mask-people")
    assert "u-1" not in lmsconf(project, *asked, env=env).err


# `lmsconf help`: pages of the guide that say what the program does.


TOPICS = sorted(guide_topics(), key=lambda topic: (topic != "getting-started", topic))


def test_without_a_topic_all_are_listed(tmp_path: Path) -> None:
    """Each has one line, with what its page is about; no project is needed."""
    head, *listed, blank, usage = lmsconf(tmp_path, "help", code=ExitCode.OK).out.splitlines()
    assert (head, blank) == ("Topics:", "")
    assert sorted(line.split()[0] for line in listed) == sorted(TOPICS)
    assert all(len(line.split()) > 3 and len(line) <= 80 for line in listed)
    assert "lmsconf help TOPIC" in usage


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_fits_a_terminal(topic: str, tmp_path: Path) -> None:
    """It begins with its title, and no line of prose is longer than 100 characters."""
    ran = lmsconf(tmp_path, "help", topic, code=ExitCode.OK)
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
    ran = lmsconf(tmp_path, "help", "--search", "EFFECTS on people", code=ExitCode.OK)
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
    """Where no line has the phrase, those that have all its words are listed; without any, exit 1 as grep has it."""
    out = lmsconf(tmp_path, "help", "--search", "people sets", code=ExitCode.OK).out
    assert "people_sets" in out
    assert all(line.partition(": ")[0] in TOPICS for line in out.splitlines())
    ran = lmsconf(tmp_path, "help", "--search", "xyzzy", code=ExitCode.ERROR)
    assert ran.out == ""
    assert "no page contains 'xyzzy'" in ran.err


def test_a_page_on_a_terminal_has_bold_headings(tmp_path: Path) -> None:
    """Without colour the marks of Markdown stay, so that a heading is seen; each page fits 40 columns."""
    page = ("help", "effects", "--no-pager")
    _, shown = at_terminal(tmp_path, *page, columns=40, env={"TERM": "xterm", "NO_COLOR": ""})
    assert shown.startswith("\x1b[1mEffects on people\x1b[0m\n")
    _, plain = at_terminal(tmp_path, *page, columns=40, env={"TERM": "xterm", "NO_COLOR": "1"})
    assert plain.startswith("# Effects on people\n")
    assert "\x1b" not in plain
    assert max(len(line) for line in plain.splitlines() if not line.startswith("    ")) <= 40


def test_the_page_about_effects_says_what_holds() -> None:
    """It has the limits that are the defaults, and explains the words of the tables, the guards and the options."""
    page = " ".join(read_guide_page("effects").split())
    for name in ("people", "mandatory"):
        limit = GuardLimits().limits[name]
        assert limit is not None
        assert limit.share is not None
        assert f"{name}: {{count: {limit.count}, share: {limit.share:.0%}}}" in page
    options = {"--people", "--no-effects"}
    assert options <= {*options_of_commands()["lmsconf plan"]}
    words = (
        *("audience", "gain, lose", "becomes mandatory, becomes optional", "shortened", "exact", "estimate"),
        *("not known", *options, "--allow people=unknown", "programs or purchases", "checked separately"),
    )
    assert [word for word in words if word not in page] == []


# The pages `commands…` of the guide: all commands, options and exit codes, as the program has them.


def test_the_command_reference_is_current() -> None:
    """It is what `python -m tests.cli.command_reference` would write."""
    for topic, page in command_pages().items():
        assert read_guide_page(topic) == page
    exits = re.findall(r"^\| (\d+) \| .", read_guide_page("commands"), re.MULTILINE)
    assert exits == [str(code.value) for code in sorted(ExitCode)]
