"""A Dask scheduler and workers on loopback, which speak TLS with certificates made for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

_WITHIN = 60


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """What runs. address: of the scheduler. environ: what a client needs to connect. log: of all processes."""

    address: str
    environ: Mapping[str, str]
    scheduler: int
    dashboard: str
    log: Path


@contextmanager
def dask_cluster(
    folder: Path, *, folders: Sequence[Path], environ: Mapping[str, str], allowed_failures: int = 3
) -> Iterator[DaskCluster]:
    """Start a scheduler, and a worker of one thread in each of `folders`, with `environ` in addition to this one's."""
    folder.mkdir(exist_ok=True)
    tls = make_certificates(folder)
    options = [word for name in ("ca-file", "cert", "key") for word in (f"--tls-{name}", str(tls[name]))]
    client = {
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(tls["ca-file"]),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": str(tls["cert"]),
        "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": str(tls["key"]),
    }
    base = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)}
    found, log = folder / "scheduler.json", folder / "dask.log"
    with ExitStack() as stack:
        output = stack.enter_context(log.open("ab"))

        def start(program: str, *arguments: str, cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", f"distributed.cli.{program}", *options, *arguments]
            process = subprocess.Popen(command, cwd=cwd, env=env, stdout=output, stderr=output)
            stack.callback(_end, process)
            return process

        arguments = ("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        scheduler = start(
            "dask_scheduler", *arguments, "--protocol", "tls", "--scheduler-file", str(found), cwd=folder, env=base
        )
        until = time.monotonic() + _WITHIN
        while not found.is_file() or not found.read_text():
            assert scheduler.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        document = json.loads(found.read_text())
        for number, where in enumerate(folders):
            start(
                "dask_worker",
                *(document["address"], "--nthreads", "1", "--host", "127.0.0.1", "--name", f"worker-{number}"),
                *("--local-directory", str(folder), "--dashboard-address", "127.0.0.1:0"),
                cwd=where,
                env={**base, **environ},
            )
        port = document["services"]["dashboard"]
        yield DaskCluster(document["address"], client, scheduler.pid, f"http://127.0.0.1:{port}", log)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def make_certificates(folder: Path) -> dict[str, Path]:
    """Write a certificate authority, and a certificate of 127.0.0.1 that it has signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.now(UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in ("Test CA", "127.0.0.1")]
    certificates = []
    for number, (key, name) in enumerate(zip(keys, names, strict=True)):
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=number == 0, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        )
        certificates.append(builder.sign(keys[0], hashes.SHA256()))
    paths = {name: folder / f"{name}.pem" for name in ("ca-file", "cert", "key")}
    for name, certificate in zip(("ca-file", "cert"), certificates, strict=True):
        paths[name].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths["key"].write_bytes(
        keys[1].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths
