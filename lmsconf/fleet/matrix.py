"""Documents that make an engine run a fleet in shards: GitHub Actions, GitLab CI, Argo Workflows, Kubernetes.

Each job runs `lmsconf fleet plan --shard I/N --out DIR` and keeps DIR; `lmsconf fleet collect` puts them together.
JSON is valid YAML, so every engine reads it.
"""

from __future__ import annotations

import json
from shlex import quote
from typing import Final

from msgspec import Struct

from lmsconf.errors import UsageError
from lmsconf.model.canonical_json import Json
from lmsconf.render.jinja import json_macro

_NEEDS_IMAGE: Final = ("argo", "kubernetes")
_MOST: Final = {"github": 256, "gitlab": 200}
"""The most jobs that an engine makes of one matrix."""
_LEAST_RATE: Final = 0.1
"""The least --max-rate that `lmsconf fleet plan` takes."""


class Matrix(Struct, frozen=True, kw_only=True):
    """What the jobs are to run.

    select: the selector of workspaces. image: the container image with lmsconf. max_rate: requests a second of all jobs
    together.
    """

    shards: int
    select: str = "*"
    image: str | None = None
    max_rate: float | None = None

    @property
    def numbers(self) -> list[Json]:
        """The shards: `1/3`, `2/3`, `3/3`."""
        return [f"{number}/{self.shards}" for number in range(1, self.shards + 1)]

    @property
    def rate(self) -> str | None:
        """The requests a second of one job."""
        return None if self.max_rate is None else f"{self.max_rate / self.shards:g}"

    def command(self, shard: str, folder: str) -> str:
        """Return the command line of one job. shard: its shard, as the shell of the engine expands it."""
        selected = "" if self.select == "*" else f" --select {quote(self.select)}"
        limited = "" if self.rate is None else f" --max-rate {self.rate}"
        return f'lmsconf fleet plan{selected}{limited} --shard "{shard}" --out "{folder}"'


def matrix_document(matrix: Matrix, format: str) -> str:
    """Return the document for an engine, `github`, `gitlab`, `argo` or `kubernetes`.

    Raises UsageError for what that engine cannot run.
    """
    if format in _NEEDS_IMAGE and matrix.image is None:
        raise UsageError(f"--format {format} needs --image", hint="Name it by its digest: registry/lmsconf@sha256:…")
    most = _MOST.get(format, matrix.shards)
    if matrix.shards > most:
        message = f"--shards {matrix.shards}: {format} runs at most {most} jobs of one matrix"
        raise UsageError(message, hint=f"Pass --shards {most}.")
    if matrix.max_rate is not None and matrix.max_rate / matrix.shards < _LEAST_RATE:
        raise UsageError(
            f"--max-rate {matrix.max_rate:g}: less than {_LEAST_RATE} for each of {matrix.shards} jobs",
            hint="Pass a higher rate, or fewer --shards.",
        )
    document = json.loads(json_macro("matrix.json.j2", format, matrix))
    return json.dumps(document, indent=None if format == "github" else 2) + "\n"
