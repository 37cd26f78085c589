"""Documents that make an engine run a fleet in shards: GitHub Actions, GitLab CI, Argo Workflows, Kubernetes.

Each job runs `lmsconf fleet plan --shard I/N --out DIR` and keeps DIR; `lmsconf fleet collect` puts them together.
JSON is valid YAML, so every engine reads it.
"""

from __future__ import annotations

import json
from shlex import quote
from typing import Final

from lmsconf.errors import UsageError
from lmsconf.render.jinja import plain_macro

_NEEDS_IMAGE: Final = ("argo", "kubernetes")
_MOST: Final = {"github": 256, "gitlab": 200}
"""The most jobs that an engine makes of one matrix."""
_LEAST_RATE: Final = 0.1
"""The least --max-rate that `lmsconf fleet plan` takes."""


def matrix_document(
    format: str, shards: int, selector: str = "*", max_rate: float | None = None, image: str | None = None
) -> str:
    """Return the document for an engine, `github`, `gitlab`, `argo` or `kubernetes`.

    selector: of workspaces. max_rate: requests a second of all jobs together. image: the container image with lmsconf.
    Raises UsageError for what that engine cannot run.
    """
    if format in _NEEDS_IMAGE and image is None:
        raise UsageError(f"--format {format} needs --image", hint="Name it by its digest: registry/lmsconf@sha256:…")
    most = _MOST.get(format, shards)
    if shards > most:
        message = f"--shards {shards}: {format} runs at most {most} jobs of one matrix"
        raise UsageError(message, hint=f"Pass --shards {most}.")
    if max_rate is not None and max_rate / shards < _LEAST_RATE:
        raise UsageError(
            f"--max-rate {max_rate:g}: less than {_LEAST_RATE} for each of {shards} jobs",
            hint="Pass a higher rate, or fewer --shards.",
        )
    rate = None if max_rate is None else f"{max_rate / shards:g}"
    selected = "" if selector == "*" else f" --select {quote(selector)}"
    limited = "" if rate is None else f" --max-rate {rate}"
    jobs = {
        "shards": shards,
        "numbers": [f"{number}/{shards}" for number in range(1, shards + 1)],
        "select": selector,
        "rate": rate,
        "image": image,
        "command": f"lmsconf fleet plan{selected}{limited}",
    }
    document = json.loads(plain_macro("matrix.json.j2", format, jobs))
    return json.dumps(document, indent=None if format == "github" else 2) + "\n"
