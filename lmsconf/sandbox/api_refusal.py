"""A handler's error response: HTTP status, stable code, and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """End a request with an error response and roll back its changes.

    headers: additional response headers.
    """

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}


def bad_request(message: str) -> Refusal:
    """400: the request cannot be carried out as written."""
    return Refusal(400, "bad_request", message)


def unauthorized(message: str) -> Refusal:
    """401: no valid credential."""
    return Refusal(401, "unauthorized", message)


def forbidden(message: str) -> Refusal:
    """403: understood, but not allowed in the current state."""
    return Refusal(403, "forbidden", message)


def not_found(resource: str, id: str) -> Refusal:
    """404: the path or the body names something that does not exist."""
    return Refusal(404, "not_found", f"there is no {resource} {id!r}")


def conflict(message: str) -> Refusal:
    """409: it exists already."""
    return Refusal(409, "conflict", message)
