"""Validation of service URLs, allowed hosts and tokens, the same for every source of settings."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from lmsconf.errors import shorten

_WRITE: Final = "Write https://HOST/PATH."


def url_problem(url: str, *, in_process: str | None = None) -> tuple[str, str] | None:
    """Return why a token must not be sent to a URL, and a hint; None if it may be sent.

    The message quotes the URL only if it cannot contain a password. in_process: a host for which plain http is allowed.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "the URL cannot be read", _WRITE
    is_local = is_loopback(host or "") or host == in_process
    is_encrypted = parts.scheme == "https" or (parts.scheme == "http" and is_local)
    rules = (
        (
            parts.username is not None or parts.password is not None,
            "a URL must not contain a user name or a password",
            "Configure the token under `token:`.",
        ),
        (
            parts.query or parts.fragment,
            "the URL must not have a query or fragment",
            "Remove everything from ? or # on.",
        ),
        (url != url.strip(), "the URL begins or ends with whitespace", "Remove it."),
        (
            re.search(r"[^\x21-\x7e]|[\\@?#]", url),
            "the URL contains a character that is not allowed",
            f"{_WRITE} Write a non-ASCII host as xn--…, and a space in a path as %20.",
        ),
        (
            parts.scheme not in ("http", "https") or not host,
            f"{shorten(url)} is not a valid workspace URL",
            "Write https://HOST/PATH, or sandbox:FILE for the embedded workspace.",
        ),
        (
            port == 0,
            f"{shorten(url)} has port 0, which is not a valid port",
            "Write another port, or none for the default.",
        ),
        (
            not is_encrypted,
            f"{shorten(url)} would send the token unencrypted",
            "Write https; http is only for this machine (localhost).",
        ),
    )
    return next(((message, hint) for is_broken, message, hint in rules if is_broken), None)


ALLOWED_HOSTS: Final = "LMSCONF_ALLOWED_HOSTS"


def host_problem(url: str, allowed: Collection[str]) -> tuple[str, str] | None:
    """Return why a token must not be sent to the host of a URL, and a hint; None if the host is allowed.

    allowed: `lms.example` allows any port of that host, `lms.example:8443` that port only.
    """
    for entry in allowed:
        if not re.fullmatch(r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", entry):
            return (
                f"{ALLOWED_HOSTS}: {shorten(entry)} is not a host",
                "Write names such as lms.example, with commas.",
            )
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    name = f"[{host}]" if ":" in host else host
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if {name, f"{name}:{port}"} & {entry.casefold() for entry in allowed}:
        return None
    return (
        f"{name} must not receive the token",
        f"{ALLOWED_HOSTS} lists the allowed hosts: {(', '.join(allowed) or 'none')[:200]}.",
    )


def is_loopback(host: str) -> bool:
    """Whether a host is `localhost` or a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def strip_final_newline(text: str) -> str:
    """Return a token without the line break at the end of its file."""
    return text.removesuffix("\n").removesuffix("\r")


def token_problem(token: str) -> str | None:
    """Return why a token is not valid in a header, without quoting any of it; None if it is valid."""
    unfit = re.search(r"[^\x21-\x7e]", token)
    rules = (
        (not token, "it is empty"),
        (
            token.casefold().startswith("bearer "),
            "it begins with the word Bearer, which is not a part of the token",
        ),
        (
            token[:1] == token[-1:] and token[:1] in ("'", '"'),
            "it is in quotes, which are not a part of the token",
        ),
        (token != token.strip(), "it begins or ends with whitespace"),
        (unfit, f"character {unfit.start() + 1 if unfit else 0} is not allowed in a token"),
    )
    return next((message for is_broken, message in rules if is_broken), None)
