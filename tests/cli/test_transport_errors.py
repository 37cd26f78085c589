"""The way to the service is wrong on this side: a proxy, a file of certificates, a URL: told, never a traceback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import certifi
import pytest
from json_schemas import schema_validator
from self_signed import make_certificate

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode

PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
PROBLEMS = schema_validator("problems")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project whose service is named by the environment, without proxies or certificates of the machine."""
    for name in (*PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LMSCONF_URL", "https://lms.invalid/api")
    monkeypatch.setenv("LMSCONF_TOKEN", "s3cret-token")
    (tmp_path / "lmsconf.yaml").write_text("manifests: manifests\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: A}]\n")


def told(root: Path, capsys: pytest.CaptureFixture[str], expected: ExitCode) -> tuple[str, str]:
    """Message and hint of the one problem that `plan` ends with, the same as text and as a document on stdout."""
    assert run_command_line(app, ["-C", str(root), "plan", "--format", "json"]) == expected
    out = capsys.readouterr().out
    document = json.loads(out)
    assert document["format"] == "lmsconf.problems/1"
    PROBLEMS.validate(document)
    (problem,) = document["problems"]
    assert run_command_line(app, ["-C", str(root), "plan"]) == expected
    shown = capsys.readouterr()
    assert shown.out == ""
    assert problem["message"] in shown.err
    assert problem["hint"] in shown.err
    return problem["message"], problem["hint"]


@pytest.mark.parametrize(
    ("name", "proxy"),
    [
        ("HTTPS_PROXY", "socks5://127.0.0.1:1"),
        ("HTTPS_PROXY", "ftp://x:1"),
        ("https_proxy", "ftp://me:s3cret@x:1"),
        ("ALL_PROXY", "ftp://x:1"),
    ],
)
def test_a_proxy_that_cannot_be_used_names_its_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, proxy: str
) -> None:
    """The variable and a way out, and nothing of a password that it may hold."""
    monkeypatch.setenv(name, proxy)
    message, hint = told(tmp_path, capsys, ExitCode.ERROR)
    assert f"the proxy that {name} names cannot be used" in message
    assert f"Set {name} to http://HOST:PORT, or NO_PROXY=lms.invalid" in hint
    assert "s3cret" not in message + hint


@pytest.mark.parametrize("held", [None, "", "no certificate\n", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_certificates_that_cannot_be_read_name_their_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, held: str | None
) -> None:
    """SSL_CERT_FILE that is missing or holds no certificates."""
    path = tmp_path / "authority.pem"
    if held is not None:
        path.write_text(held)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    message, hint = told(tmp_path, capsys, ExitCode.ERROR)
    assert f"SSL_CERT_FILE={path}" in message
    assert ("No such file" if held is None else "no certificates in PEM format") in message
    assert "Set SSL_CERT_FILE to a PEM file of the authorities to trust, or unset it" in hint


def test_missing_certificates_of_certifi_are_told_with_the_variable_to_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without SSL_CERT_FILE, the hint is to set it, and nothing is said of unsetting a variable."""
    monkeypatch.setattr(certifi, "where", lambda: str(tmp_path / "missing.pem"))
    message, hint = told(tmp_path, capsys, ExitCode.ERROR)
    assert "cannot be read from the certificates that come with Python's certifi: No such file" in message
    assert hint == "Set SSL_CERT_FILE to a PEM file of the authorities to trust."


@pytest.fixture
def self_signed(tmp_path: Path) -> Iterator[int]:
    """The port of a service on this machine whose certificate nobody stands for."""
    _, context = make_certificate(tmp_path, "localhost")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), context.wrap_socket(connection, server_side=True):
                        pass

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def test_a_certificate_that_nobody_stands_for_has_a_hint_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, self_signed: int
) -> None:
    """Exit 8, with the check that failed and SSL_CERT_FILE for a company's own authority."""
    monkeypatch.setenv("LMSCONF_URL", f"https://localhost:{self_signed}")
    _, hint = told(tmp_path, capsys, ExitCode.UNREACHABLE)
    assert f"The certificate of localhost:{self_signed} was refused: self-signed certificate." in hint
    assert "SSL_CERT_FILE" in hint
