"""One rule for URLs and one for tokens: the project file and the client never disagree."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from lmsconf.api.client import Client
from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.project.config_reader import read_project_file
from lmsconf.project.credentials import Secret, TokenUnavailable, env_token
from lmsconf.support.url_rules import host_problem, token_problem

from .network import CANARY

GOOD = [
    "https://h",
    "https://h:1/api/",
    "http://127.0.0.2",
    "http://127.1.2.3:80",
    "http://[::1]:9",
    "http://LOCALHOST",
]
BAD = [
    "https://h:0",
    "https://h/a b",
    "https://h/ä",
    "https://h/a@b",
    "http://h",
    "https://h?",
    "https://h\\x",
    "ftp://h",
]


def accepted(url: str) -> bool:
    """Whether a client takes the URL."""
    try:
        Client(url, CANARY, transport=httpx.MockTransport(lambda _: httpx.Response(200))).close()
    except LmsconfError:
        return False
    return True


@pytest.mark.parametrize("url", GOOD + BAD)
def test_project_file_and_client_agree_on_urls(tmp_path: Path, url: str) -> None:
    """What one of them refuses, the other does; the file's line is named, and both give the same reason."""
    quoted = url.replace("\\", "\\\\")
    (tmp_path / "lmsconf.yaml").write_text(f'workspaces:\n  w: {{url: "{quoted}"}}\n')
    if url in GOOD:
        read_project_file(tmp_path)
        assert accepted(url)
        return
    with pytest.raises(ProblemsFound) as found:
        read_project_file(tmp_path)
    (problem,) = found.value.problems
    assert (problem.code, str(problem.source)) == ("project/url", "lmsconf.yaml:2:12")
    with pytest.raises(LmsconfError) as refused:
        Client(url, CANARY)
    assert problem.message.removeprefix("workspaces.w: ") in refused.value.message
    assert problem.hint == refused.value.hint


@pytest.mark.parametrize("token", ["\n", "a b", "tok\ten", "tokén", "a\x7f", "two\nlines", "fine", "fine\r\n"])
def test_credential_and_client_agree_on_tokens(token: str) -> None:
    """The same texts can be a token, and neither shows what cannot."""
    found = env_token("T", {"T": token})
    if token.startswith("fine"):
        assert found.secret().reveal() == "fine"
        Client("https://h", token).close()
        return
    with pytest.raises(TokenUnavailable) as missing:
        found.secret()
    with pytest.raises(LmsconfError) as refused:
        Client("https://h", token)
    assert (
        missing.value.message.partition("does not hold a valid token: ")[2]
        == refused.value.message.partition("used: ")[2]
        != ""
    )


@pytest.mark.parametrize("token", ["Bearer abc", "bearer abc"])
def test_the_word_before_a_token_is_no_part_of_it(token: str) -> None:
    """It is told, and not the token."""
    reason = token_problem(token)
    assert reason == "it begins with the word Bearer, which is not a part of the token"
    assert token_problem(token.partition(" ")[2]) is None


def test_the_hosts_that_may_receive_a_token_are_listed_where_another_is_refused() -> None:
    """With their ports, if they have some; the host that was refused is named as well."""
    assert host_problem("https://lms.example/api", ["other.example", "lms.example"]) is None
    refused = host_problem("https://lms.example", ["a.example", "b.example:8443"])
    assert refused is not None
    assert refused[0] == "lms.example must not receive the token"
    assert refused[1].endswith(" lists the allowed hosts: a.example, b.example:8443.")
    nobody = host_problem("https://lms.example", [])
    assert nobody is not None
    assert nobody[1].endswith(" lists the allowed hosts: none.")


def test_tokens_are_compared_by_what_they_hold() -> None:
    """Two readings of one token are equal, so that settings can be compared; a text is never a token."""
    assert env_token("T", {"T": CANARY}) == env_token("T", {"T": CANARY})
    assert env_token("T", {"T": CANARY}) != env_token("T", {"T": f"{CANARY}-2"})
    assert Secret(CANARY) != CANARY
