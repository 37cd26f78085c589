"""Certificates of services on this machine."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path, host: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for a host, signed by itself; return its file, and the context of a server that shows it.

    Skips the test where there is no openssl.
    """
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes its certificate with openssl")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-days", "2"),
            *("-addext", f"subjectAltName=DNS:{host}", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
