"""API keys: the credentials that the workspace accepts, three at most (API specification, Authentication)."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from lmsconf.errors import LmsconfError

AT_MOST = 3


class ApiKeys:
    """The active keys. Only digests are stored, so no key can be shown a second time."""

    def __init__(self, first: str) -> None:
        self._digests = [_digest(first)]

    def __len__(self) -> int:
        return len(self._digests)

    def create(self) -> str:
        """Create a key, returned only here. Raises LmsconfError if three are active."""
        if len(self._digests) >= AT_MOST:
            raise LmsconfError(f"at most {AT_MOST} API keys can be active", hint="Revoke one of them first.")
        made = secrets.token_urlsafe(24)
        self._digests.append(_digest(made))
        return made

    def revoke(self, key: str) -> None:
        """Revoke a key. Raises LmsconfError if it is not active."""
        if not self.is_active(key):
            raise LmsconfError("this API key is not active", hint="Only a key that is active can be revoked.")
        self._digests.remove(_digest(key))

    def is_active(self, key: str) -> bool:
        """Whether this is an active key."""
        digest = _digest(key)
        return any(hmac.compare_digest(digest, known) for known in self._digests)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
