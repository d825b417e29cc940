"""Loads a file from its address: over https, within one deadline and a limit of bytes.

An address may hold a password or a token, so no message shows more of it than host and path.
Nothing that an answer says about itself (its length, its encoding, an error's text) is trusted.
"""

from __future__ import annotations

import base64
import http.client
import queue
import re
import ssl
import threading
import time
import urllib.request
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from grader.errors import RequestError

SECONDS = 60.0  # seconds for everything, from finding the host to the last byte
PIECE = 1 << 16
REDIRECTS, MAX_REDIRECTS = (301, 302, 303, 307, 308), 10
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


def is_address(place: str) -> bool:
    """Return whether a place is an address, and not a path."""
    return _ADDRESS.match(place) is not None


def shown(address: str) -> str:
    """Return an address for messages: without user, password, query and fragment."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
        text = f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
    except ValueError:
        return "the address"
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def download(address: str, most: int, *, insecure: bool = False) -> bytes:
    """Return the file at an address, of at most `most` bytes.

    Only https is used, or http as well with `insecure`; no redirect leads from https to http.
    Raises `RequestError`.
    """
    parts = _checked(address, insecure=insecure)
    answers = queue.SimpleQueue[bytes | Exception]()
    deadline = time.monotonic() + SECONDS

    def load() -> None:
        try:
            answers.put(_load(parts, most, deadline))
        except Exception as error:
            answers.put(error)

    # A thread, because nothing can end a wait for a name server or for the next byte of a header.
    # A late one is left behind, and ends with the command.
    threading.Thread(target=load, name="download", daemon=True).start()
    answer: bytes | Exception
    try:
        answer = answers.get(timeout=SECONDS)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, bytes):
        return answer
    problem = f"{shown(address)} cannot be loaded: {_why(answer)}"
    raise RequestError(problem, "open the address in a browser; a file of this machine works, too")


def _checked(address: str, *, insecure: bool) -> SplitResult:
    """Return the parts of an address; raise `RequestError` if it must not be loaded."""
    if not address.isascii() or any(sign <= " " or sign == "\x7f" for sign in address):
        problem = f"{shown(address)} cannot be loaded: it has characters that no address has"
        raise RequestError(problem, "write a blank as %20")
    try:
        parts = urlsplit(address)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise RequestError(f"{shown(address)} is not an address", "https://HOST/FILE")
    if parts.scheme == "http" and not insecure:
        problem = f"{shown(address)}: over http, anybody on the way can change the course"
        raise RequestError(problem, "an https address; --insecure loads it all the same")
    if parts.scheme not in ("https", "http"):
        raise RequestError(f"{shown(address)}: only https is loaded", "an https address")
    return parts


def _load(parts: SplitResult, most: int, deadline: float) -> bytes:
    """Return the bytes at an address; raise whatever goes wrong."""
    data = bytearray()
    with _opened(parts, deadline) as answer:
        # read1, because read would wait for a whole piece, perhaps beyond the deadline.
        while piece := answer.read1(PIECE):
            data += piece
            if len(data) > most:
                raise _Unusable(f"it is larger than {most >> 20} MiB")
            _left(deadline)
        if answer.length:  # bytes that the headers promised and that did not come
            raise _Unusable(f"it ends {answer.length} bytes early")
    return bytes(data)


def _opened(parts: SplitResult, deadline: float) -> http.client.HTTPResponse:
    """Return the answer of the server that the redirects lead to."""
    opener = _opener()
    for _ in range(MAX_REDIRECTS + 1):
        try:
            answer: http.client.HTTPResponse = opener.open(_request(parts), timeout=_left(deadline))
            return answer
        except HTTPError as error:
            error.close()  # the body of an error is not read
            place = error.headers.get("Location", "")
            if error.code not in REDIRECTS or not place:
                raise
        following = urlsplit(urljoin(parts.geturl(), place))
        if following.scheme not in ("https", parts.scheme):
            raise _Unusable(f"it leads to {shown(following.geturl())}, which is not https")
        parts = following
    raise _Unusable(f"it leads from one address to another more than {MAX_REDIRECTS} times")


def _request(parts: SplitResult) -> urllib.request.Request:
    """Return the request for an address; user and password are sent only to its own host."""
    user, _, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(parts._replace(netloc=host, fragment="").geturl())
    if user:
        secret = base64.b64encode(unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {secret}")
    return request


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for these schemes only, through the proxies of the environment."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=ssl.create_default_context()),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _Unusable(Exception):
    """An answer that cannot be used; the message continues a sentence: "it …"."""


def _left(deadline: float) -> float:
    """Return the seconds that are left; raise `TimeoutError` if there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _why(error: Exception) -> str:
    """Return, in our own words, why a file was not loaded; a server's words are not repeated."""
    if isinstance(error, HTTPError):
        return f"the server answers with code {error.code}"
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return f"it takes longer than {SECONDS:.0f} seconds"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"the server's certificate is not accepted ({reason.verify_message})"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    if isinstance(error, _Unusable):
        return str(error)
    if isinstance(error, http.client.HTTPException | ValueError):
        return "the server's answer is not HTTP"
    return "it cannot be reached"
