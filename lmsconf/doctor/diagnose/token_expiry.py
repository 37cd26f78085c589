"""Expiry of the credential: the claim `exp` of its JSON Web Token. It is decoded, never verified, and never shown."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Final

from lmsconf.doctor.findings import CheckResult, Health

_CHECK: Final = "token"
_SOON: Final = timedelta(days=14)
_RENEW: Final = "Create another API key in the workspace, where three can be active, and replace the old one."


def check_token_expiry(token: str, now: datetime) -> CheckResult:
    """Report how long the token remains valid."""
    try:
        ends = _end(token)
    except (ValueError, OverflowError, OSError):
        # The error message could quote the secret, so it is left out.
        return CheckResult(_CHECK, Health.UNKNOWN, "it is not a readable JSON Web Token, so its expiry is not known")
    if ends is None:
        return CheckResult(_CHECK, Health.OK, "the token has no expiry claim")
    day = f"{ends:%Y-%m-%d %H:%M} UTC"
    left = ends - now
    if left <= timedelta(0):
        return CheckResult(_CHECK, Health.ERROR, f"it expired at {day}", _RENEW)
    message = f"it expires in {_days(left)}, at {day}"
    if left < _SOON:
        return CheckResult(_CHECK, Health.WARNING, message, _RENEW)
    return CheckResult(_CHECK, Health.OK, message)


def _end(token: str) -> datetime | None:
    """The instant of the claim `exp`; None without one. Raises ValueError for anything but a JSON Web Token."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("a JSON Web Token has three parts")
    claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    if not isinstance(claims, dict):
        raise ValueError("its claims are not an object")
    end = claims.get("exp")
    if end is None:
        return None
    if isinstance(end, bool) or not isinstance(end, int | float):
        raise ValueError("exp is not a number")
    return datetime.fromtimestamp(end, UTC)


def _days(left: timedelta) -> str:
    return "1 day" if left.days == 1 else f"{left.days:,} days" if left.days else "less than a day"
