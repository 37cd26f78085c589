"""`--verbose`: a line on stderr for each request, without secrets."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from lmsconf.cli.output_streams import masks_people, write_stderr

if TYPE_CHECKING:
    from lmsconf.api.client import Exchange

_PAGING: Final = ("skip", "limit")
_VALUE: Final = re.compile(r"([^&=]+)=([^&]*)")


def log_request(exchange: Exchange) -> None:
    """Write a line for one attempt of a request."""
    from lmsconf.support.redaction import redact_secrets

    write_stderr(redact_secrets(_line(exchange, datetime.now(UTC))))


def _line(exchange: Exchange, now: datetime) -> str:
    """Return time of day, request, status and duration; from the second attempt on, its number."""
    outcome = f"no response: {exchange.failure}" if exchange.status is None else str(exchange.status)
    attempt = "" if exchange.attempt == 1 else f", attempt {exchange.attempt}"
    milliseconds = round(exchange.seconds * 1000)
    time = now.isoformat(timespec="milliseconds").partition("T")[2].replace("+00:00", "Z")
    return f"{time} {exchange.method} {_target(exchange)} {outcome} ({milliseconds:,} ms{attempt})"


def _target(exchange: Exchange) -> str:
    """Return path and query of a request. With people masked, no value of the query but where the page begins."""
    query = exchange.query
    if masks_people():
        from lmsconf.cli.masking import HIDDEN

        query = _VALUE.sub(lambda pair: pair[0] if pair[1] in _PAGING else f"{pair[1]}={HIDDEN}", query)
    return f"{exchange.path}?{query}" if query else exchange.path
