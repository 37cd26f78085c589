"""Secrets are taken out of every text that leaves, and other words stay."""

import json
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import httpx
import pytest
from texts import listed_cases

from lmsconf.api.client import Exchange
from lmsconf.errors import ApiError
from lmsconf.support import secrets
from lmsconf.support.secrets import redact_registered_tokens, redact_secrets, register_secret

from .network import CANARY, Clock, Network, client, one_call, raw

LINK = "https://files.example/canary-link/report.csv?X-Amz-Date=20260101&X-Amz-Signature=canary-link-signature"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl"
ODD = 'canary"quoted\\token+/=42'


@pytest.fixture(autouse=True)
def _no_other_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests of this process registered as tokens is redacted as well: here it is not known."""
    monkeypatch.setattr(secrets, "_known", set())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"see {LINK} for more", "see https://files.example/*** for more"),
        (f'{{"url": "{LINK}", "id": 7}}', '{"url": "https://files.example/***", "id": 7}'),
        (json.dumps(LINK).replace("/", "\\/"), '"https:\\/\\/files.example/***"'),
        (LINK.replace("&", "\\u0026").replace("=", "\\u003d"), "https://files.example/***"),
        ("https://a.example/b?sig=abc%3D&se=2026", "https://a.example/***"),
        ("https://a.example/b?Expires=1&Signature=ab~c&Key-Pair-Id=K", "https://a.example/***"),
        ("https://a.example/login?token=abc", "https://a.example/***"),
        ("https://a.example/cb#access_token=abc&x=1", "https://a.example/***"),
        ("https://a.example/b?X-Goog-Signature=00ff", "https://a.example/***"),
        (quote("/b?x=1&X-Amz-Signature=canary", safe=""), "%2Fb%3Fx%3D1%26X-Amz-Signature%3D***"),
        ("/files/x?sig=abc&v=1", "/files/x?sig=***&v=1"),
        ("https://me:secret@a.example/b", "https://***@a.example/b"),
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer ***"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic ***"),
        (f"bad token {JWT}, expired", "bad token ***, expired"),
        ('{"access_token": "abc", "name": "b"}', '{"access_token": "***", "name": "b"}'),
        ('{\\"apiKey\\": \\"abc\\"}', '{\\"apiKey\\": \\"***\\"}'),
        ('{"password":"a\\"b"}', '{"password":"***"}'),
    ],
)
def test_keys_are_taken_out(text: str, shown: str) -> None:
    """Pre-signed links, bearer tokens, JWTs and members that hold keys are hidden in whatever form they stand."""
    assert redact_secrets(text) == shown
    assert redact_secrets(shown) == shown


@listed_cases("word")
def test_every_word_for_a_key_hides_what_it_names(word: str) -> None:
    """In a link, in a pair, in a member and in a member within a text, in small and in capital letters."""
    for name in (word, word.upper()):
        assert redact_secrets(f"https://a.example/b?{name}=canary-1") == "https://a.example/***"
        assert redact_secrets(f"sent {name}=canary-1, refused") == f"sent {name}=***, refused"
        assert redact_secrets(f'{{"{name}": "canary-1", "b": 1}}') == f'{{"{name}": "***", "b": 1}}'
        assert redact_secrets(json.dumps(f'{{"{name}": "canary-1"}}')) == json.dumps(f'{{"{name}": "***"}}')


@listed_cases("text")
def test_other_words_stay(text: str) -> None:
    """What only sounds like a key is shown, or nobody would know what went wrong."""
    assert redact_secrets(text) == text


def test_known_tokens_are_hidden_in_every_form() -> None:
    """As it is, as JSON writes it, and as a URL does. What is too short to be a token is none."""
    for token in (ODD, "sandbox", "eight4in"):
        register_secret(token)
    forms = f"{ODD} {json.dumps(ODD)} {quote(ODD)} {quote(ODD, safe='')} {json.dumps({'echo': ODD})}"
    assert redact_registered_tokens(forms) == '*** "***" *** *** {"echo": "***"}'
    assert redact_registered_tokens("Workspace sandbox") == "Workspace sandbox"
    assert redact_registered_tokens("it was eight4in.") == "it was ***."
    for part in ("eight4in-and", "eight4in-and-more", "and-more"):
        register_secret(part)
    assert redact_registered_tokens("it was eight4in-and-more.") == "it was ***."


def test_long_answers_take_no_time() -> None:
    """A text made to be hard for patterns is read about as fast as any other."""
    start = time.thread_time()
    for hard in ("https://" * 8_000, "eyJaaaa." * 8_000, "token=" * 10_000, '"token":"' * 7_000, "bearer " * 9_000):
        redact_secrets(hard)
    redact_secrets("a" * 64_000)
    redact_secrets("%3dx-amz-" * 7_000)
    assert time.thread_time() - start < 30


ECHO = f'{{"sent": "Bearer {CANARY}", "link": "{LINK}", "jwt": "{JWT}"}}'.encode()
FAILURES: dict[str, Callable[[], httpx.Response | Exception]] = {
    **{str(status): partial(raw, status, ECHO) for status in (400, 401, 403, 404, 409, 422, 429, 500, 503)},
    "redirect": lambda: raw(302, ECHO, location=f"https://{CANARY}@evil.example/{CANARY}?sig=canary-link"),
    "redirect to a host of that name": lambda: raw(302, b"", location=f"https://{CANARY}.example/"),
    "not json": lambda: raw(200, b"<html>" + ECHO),
    "wrong type": lambda: raw(200, b"[" + ECHO + b"]"),
    "a number": lambda: raw(200, b'{"x": 1e999}' + ECHO),
    "text in the middle of a long body": lambda: raw(400, b"x" * 65_500 + b" " + ECHO),
    "cut in the middle": lambda: raw(400, b" " * (64 * 1024 - len("token-canary")) + CANARY.encode()),
    "where the excerpt ends": lambda: raw(400, b"x" * 285 + b" " + CANARY.encode()),
    "lost": lambda: httpx.ReadError(f"lost at {CANARY} of {LINK}"),
    "not sent": lambda: httpx.ConnectError(f"no way to {LINK} with {JWT}"),
    "bad url": lambda: httpx.InvalidURL(f"{LINK}"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
def test_no_failure_shows_a_canary(name: str, writes: bool) -> None:
    """A token and a link that the service repeats are in no byte of an error, its hint or body, the trace or client."""
    told: list[Exchange] = []
    by = client(network=Network(FAILURES[name]()), clock=Clock(), told=told)
    with pytest.raises(ApiError) as caught:
        one_call(by, writes=writes)
    error = caught.value
    shown = repr((error.message, error.hint, error.body, str(error), error.problems, told, by))
    assert [word for word in ("canary", JWT[:30], "c2lnbmF0dXJl") if word in shown] == []
    assert error.message
