"""URLs and failures in sentences: without passwords and keys, and without the paths that Arrow's messages carry."""

import os
import posixpath
from urllib.parse import urlsplit

from unface.data.files import reason


def without_secrets(url: str) -> str:
    """Scheme, host and path, written in one way: what comes before "@" and after "?" may be a password or a key."""
    parts = urlsplit(url)
    host, path = parts.netloc.rpartition("@")[2], parts.path
    user, _, port = host.partition(":")
    if user and port and not port.isdigit() and "@" in path:
        # A key with "/" in it, as those of AWS often have: the host is what comes after the "@".
        host, path = path.partition("@")[2], ""
    return f"{parts.scheme}://{host}{posixpath.normpath(path) if path.strip('/') else ''}".rstrip("/")


def why(error: Exception, address: str) -> str:
    """What failed, for the inside of a sentence about ``address``."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if "://" not in address:
        return reason(error)
    text = str(error).replace(address, without_secrets(address))
    for secret in _secrets(address):
        text = text.replace(secret, "…")
    return reason(Exception(text or type(error).__name__))


def _secrets(url: str) -> list[str]:
    parts = urlsplit(url)
    words = [*parts.netloc.rpartition("@")[0].split(":"), *(pair.partition("=")[2] for pair in parts.query.split("&"))]
    return sorted(filter(None, words), key=len, reverse=True)
