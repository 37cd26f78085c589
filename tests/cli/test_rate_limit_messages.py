"""Whoever waits for a service that limits the rate is told how long it takes, by every command that waits."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import certifi
import pytest
from cli.served import served
from flow.project import Project
from flow.shell import lmsconf
from json_schemas import schema_validator
from rate_limited import NOON, IdleClock, RateLimitFaults, bucket, limit_sandboxes
from self_signed import make_certificate
from texts import listed_cases
from waiting import nobody_waits

from lmsconf import open as open_project
from lmsconf.cli.terminal import LimitWording
from lmsconf.errors import ExitCode
from lmsconf.model.calls import RateLimit, RunProgress
from lmsconf.sandbox.faults import Fault, FaultScript

GROUPS = 150
LIMIT = re.compile(
    r"(Reading the workspace|Checking[\w ]*|Applying|Verifying): "
    r"limited to ([\d.]+) requests a second; (at least )?([\d,]+) left, "
    r"about (?:(\d+) minutes?)? ?(?:(\d+) seconds?)?( or more)?"
)


def seconds_of(match: re.Match[str]) -> int:
    """The estimate of a line."""
    return 60 * int(match[5] or 0) + int(match[6] or 0)


@pytest.fixture
def clock() -> Iterator[IdleClock]:
    """A clock that passes while nobody works."""
    with IdleClock() as passing:
        yield passing


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as its workspace is: so many smart groups, each read by a request of its own."""
    conditions = "conditions: [{field: Country, choices: [SE]}]"
    groups = "".join(f"- {{name: S{number}, {conditions}}}\n" for number in range(GROUPS))
    seed = f"custom_fields: [{{name: Country, type: CHOICE, choices: [SE, NO]}}]\nsmart_groups:\n{groups}"
    Project(tmp_path, seed).write(seed)
    return tmp_path


def limits(text: str) -> list[re.Match[str]]:
    """The lines about a limit."""
    return [match for line in text.splitlines() if (match := LIMIT.fullmatch(line))]


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    "command", [["plan"], ["drift"], ["snapshot", "now.json"], ["export", "exported"]], ids=lambda words: words[0]
)
def test_once_a_minute_the_rate_and_what_is_left_are_told(
    project: Path, clock: IdleClock, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """At one request in two seconds: about five minutes, so five lines, whose estimates come true."""
    faults = RateLimitFaults(clock, bucket(clock, 0.5, 10))
    limit_sandboxes(monkeypatch, clock, faults)
    told = limits(lmsconf(project, *command, code=ExitCode.OK).err)
    assert 3 <= len(told) <= 6
    assert {match[1] for match in told} == {"Reading the workspace"}
    assert all(0.4 <= float(match[2]) <= 0.6 for match in told)
    assert all(seconds_of(match) == pytest.approx(int(match[4]) / 0.5, rel=0.2) for match in told)
    left = [int(match[4]) for match in told]
    assert left == sorted(left, reverse=True)
    assert clock.now <= 1.1 * faults.answered / 0.5


@pytest.mark.sampled(daily=False)
def test_an_apply_tells_the_calls_that_are_left(
    project: Path, clock: IdleClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a hundred groups to create: how many calls are left while they are sent, requests while it reads."""
    limit_sandboxes(monkeypatch, clock, RateLimitFaults(clock, bucket(clock, 0.5, 10)))
    names = "".join(f"- {{name: G{number}}}\n" for number in range(100))
    (project / "manifests" / "all.yaml").write_text(f"groups:\n{names}")
    err = lmsconf(project, "apply", "--auto-approve", code=ExitCode.OK).err
    sent = [match for match in limits(err) if match[1] == "Applying"]
    assert len(sent) >= 3
    for match in sent:
        assert int(match[4]) < 100
        assert match[3] is None
        assert seconds_of(match) == pytest.approx(int(match[4]) / 0.5, rel=0.2)


def test_a_pause_that_the_service_asks_for_is_told_and_waited(
    project: Path, clock: IdleClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred requests in ten minutes: the pause is told at once, with its end, and then once a minute."""
    used: list[float] = []

    def window() -> float:
        if used and clock.now - used[0] >= 600:
            used.clear()
        if len(used) == 100:
            return used[0] + 600 - clock.now
        used.append(clock.now)
        return 0.0

    limit_sandboxes(monkeypatch, clock, RateLimitFaults(clock, window))
    told = [line for line in lmsconf(project, "plan", code=ExitCode.OK).err.splitlines() if "resuming" in line]
    ends = datetime.fromtimestamp(NOON + 600).astimezone().strftime("%H:%M")
    assert told[0] == f"Reading the workspace: the service asks to wait 10 minutes; resuming at {ends}"
    assert told[1] == f"Reading the workspace: still waiting for the service, 9 minutes more; resuming at {ends}"
    assert 8 <= len(told) <= 10
    assert 600 <= clock.now <= 660


@pytest.mark.sampled(daily=False)
def test_python_is_told_the_same(project: Path, clock: IdleClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The callback gets each total of a reading as at least, none that falls, and what limits the rate."""
    limit_sandboxes(monkeypatch, clock, RateLimitFaults(clock, bucket(clock, 0.5, 10), tells=False))
    told: list[RunProgress] = []
    open_project(project).plan(progress=told.append)
    totals = [now.total for now in told]
    assert totals == sorted(totals)
    assert not any(now.is_final for now in told)
    assert told[-1].done == told[-1].total
    waited = [now.limit for now in told if now.limit is not None]
    assert waited[-1].rate == pytest.approx(0.5, rel=0.1)


def test_without_a_limit_nothing_is_said(project: Path) -> None:
    """No line tells of a limit, and the first one of the count comes before most requests are answered."""
    err = lmsconf(project, "plan", code=ExitCode.OK).err
    assert "limited" not in err
    assert re.match(r"Reading the workspace: \d+ of (at least )?\d+\n", err)


# Whoever watches an apply is told what it waits for.


@pytest.mark.parametrize(("faults", "told"), [((), 0), ((Fault(operation="*-groups.rename", status=200),), 1)])
def test_a_wait_for_what_does_not_show_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: tuple[Fault, ...], told: int
) -> None:
    """On stderr, with the longest that it may take; where everything shows at once, nothing is said of it."""
    nobody_waits(monkeypatch)
    Project(tmp_path, "groups: [{name: Old}]\n", "settle: 1s\n").write("groups: [{name: New, previously: [Old]}]\n")
    with served(tmp_path, faults=FaultScript(*faults)) as (_, env):
        ran = lmsconf(tmp_path, "apply", "--auto-approve", env=env)
    assert ran.code == (ExitCode.NOT_CONVERGED if told else ExitCode.OK)
    waits = [line for line in ran.err.splitlines() if "Waiting" in line]
    assert waits == ["Waiting until the changes are readable, at most 1 s."] * told


# The way to the service is wrong on this side: a proxy, a file of certificates, a URL: told, never a traceback.


PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
PROBLEMS = schema_validator("problems")


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without proxies or certificates of the machine."""
    for name in (*PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    Project(tmp_path).write("groups: [{name: A}]\n")
    return tmp_path


def told(root: Path, code: ExitCode = ExitCode.ERROR, **env: str) -> tuple[str, str]:
    """Message and hint of the one problem that `plan` ends with, the same as text and as a document on stdout."""
    env = {"LMSCONF_URL": "https://lms.invalid/api", "LMSCONF_TOKEN": "s3cret-token", **env}
    document = lmsconf(root, "plan", "--format", "json", env=env, code=code).document
    assert document["format"] == "lmsconf.problems/1"
    PROBLEMS.validate(document)
    (problem,) = document["problems"]
    shown = lmsconf(root, "plan", env=env, code=code)
    assert shown.out == ""
    assert problem["message"] in shown.err
    assert problem["hint"] in shown.err
    return problem["message"], problem["hint"]


@pytest.mark.sampled(day=2)
@listed_cases("name", "proxy")
def test_a_proxy_that_cannot_be_used_names_its_variable(alone: Path, name: str, proxy: str) -> None:
    """The variable and a way out, and nothing of a password that it may hold."""
    message, hint = told(alone, **{name: proxy})
    assert f"the proxy that {name} names cannot be used" in message
    assert f"Set {name} to http://HOST:PORT, or NO_PROXY=lms.invalid" in hint
    assert "s3cret" not in message + hint


@pytest.mark.parametrize("held", [None, "", "no certificate\n", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_certificates_that_cannot_be_read_name_their_variable(alone: Path, held: str | None) -> None:
    """SSL_CERT_FILE that is missing or holds no certificates."""
    path = alone / "authority.pem"
    if held is not None:
        path.write_text(held)
    message, hint = told(alone, SSL_CERT_FILE=str(path))
    assert f"SSL_CERT_FILE={path}" in message
    assert ("No such file" if held is None else "no certificates in PEM format") in message
    assert "Set SSL_CERT_FILE to a PEM file of the authorities to trust, or unset it" in hint


def test_missing_certificates_of_certifi_are_told_with_the_variable_to_set(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without SSL_CERT_FILE, the hint is to set it, and nothing is said of unsetting a variable."""
    monkeypatch.setattr(certifi, "where", lambda: str(alone / "missing.pem"))
    message, hint = told(alone)
    assert "cannot be read from the certificates that come with Python's certifi: No such file" in message
    assert hint == "Set SSL_CERT_FILE to a PEM file of the authorities to trust."


def test_a_certificate_that_nobody_stands_for_has_a_hint_of_its_own(alone: Path) -> None:
    """Exit 8, with the check that failed and SSL_CERT_FILE for a company's own authority."""
    _, context = make_certificate(alone, "localhost")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def shake_hands() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), context.wrap_socket(connection, server_side=True):
                        pass

        threading.Thread(target=shake_hands, daemon=True).start()
        at = f"localhost:{listening.getsockname()[1]}"
        _, hint = told(alone, ExitCode.UNREACHABLE, LMSCONF_URL=f"https://{at}")
    assert f"The certificate of {at} was refused: self-signed certificate." in hint
    assert "SSL_CERT_FILE" in hint


@pytest.mark.parametrize(
    ("pauses", "told"),
    [
        # Each of several calls hears of it at its own moment, so that its end differs by a second.
        ([(0, 600.0), (1, 600.5), (2, 600.0)], [0]),
        # A service may ask for another time with each answer; what is told last is then at most so old.
        ([(at, 600.0 + 3 * at) for at in range(60)], [0, 10, 20, 30, 40, 50]),
    ],
    ids=["of several calls", "that becomes longer"],
)
def test_a_pause_is_told_once_or_every_ten_seconds(pauses: list[tuple[float, float]], told: list[float]) -> None:
    """One pause of several calls once; one that becomes longer every ten seconds."""
    words, heard = LimitWording(), list[float]()
    for at, pause in pauses:
        limit = RateLimit(at=at, wall=at, rate=None, resumes_in=pause)
        if words.due_line(RunProgress(done=0, total=9, is_final=False, limit=limit)):
            heard.append(at)
    assert heard == told
