"""The certificates that are trusted, and what to do about one that is not."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Final

from lmsconf.errors import LmsconfError

_WAYS_OUT: Final = (
    ((9, 10), "Ask the operator of the service to renew it, and check the clock of this machine."),
    ((62, 64), "It is issued for another host name: check the workspace's url."),
    (
        (2, 18, 19, 20, 21),
        "If it was issued by your company's own authority, set SSL_CERT_FILE to a PEM file with that authority's "
        "certificate.",
    ),
)
"""OpenSSL's verify codes and the hint for each: validity dates, host name, issuer."""


_WRONG_VERSION: Final = "WRONG_VERSION_NUMBER"
"""OpenSSL's name for an answer that is not TLS."""
_NO_TLS: Final = (
    "No TLS at this port of {host}: check the port of the url, or write http:// for a service on this machine."
)


def certificate_hint(error: Exception, host: str) -> str | None:
    """Return which check the certificate of a host failed, and what to do; None if TLS did not cause the error."""
    certificate_error = _find_certificate_error(error)
    if certificate_error is None:
        return _NO_TLS.format(host=host) if _WRONG_VERSION in str(error) else None
    code = getattr(certificate_error, "verify_code", None)
    checked = getattr(certificate_error, "verify_message", None) or "it is not valid"
    way_out = next((way for codes, way in _WAYS_OUT if code in codes), "Ask the operator of the service to fix it.")
    return f"The certificate of {host} was refused: {checked.rstrip('.')}. {way_out}"


def is_tls_refused(error: Exception) -> bool:
    """Whether a connection failed for a reason that another attempt does not change: its certificate, or no TLS."""
    return _find_certificate_error(error) is not None or _WRONG_VERSION in str(error)


def _find_certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return the certificate error in the chain of causes, if any."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None


@cache
def load_trust() -> ssl.SSLContext:
    """Load the trusted certificates, once: it takes longer than a request. Raises LmsconfError."""
    from lmsconf.support.httpx_import import httpx  # only https needs it

    try:
        context = httpx.create_ssl_context()
    except OSError as error:
        name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), None)
        missing = "it contains no certificates in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        of = f"{name}={os.environ[name]}" if name else "the certificates that come with Python's certifi"
        raise LmsconfError(
            f"the certificates to trust cannot be read from {of}: {missing}",
            hint=f"Set {name or 'SSL_CERT_FILE'} to a PEM file of the authorities to trust"
            f"{', or unset it to trust the usual ones' if name else ''}.",
        ) from error
    context.set_alpn_protocols(["http/1.1"])
    return context
