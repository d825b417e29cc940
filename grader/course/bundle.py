"""A course in one encrypted file, which may be at a public address.

The file is a zip of `reference/`, encrypted with AES in Galois/Counter mode (NIST SP 800-38D):
with another key, or if a byte was changed, it does not open at all. Anybody can read its serial
and nobody can change it, so an old bundle can be told from a new one.
"""

from __future__ import annotations

import base64
import binascii
import ctypes
import os
import secrets
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from grader.errors import RequestError
from grader.files import LIBC, zipped
from grader.installing import install_extra
from grader.printing import in_job

if TYPE_CHECKING:  # `cryptography` is an extra
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_VARIABLE, KEY_FILE_OPTION = "GRADER_COURSE_KEY", "--key-file"
MAX_KEY_FILE = 4096  # bytes
MAGIC, VERSION = b"attention-grader course bundle ", b"2\n"
WITHOUT_SERIAL = b"1\n"  # of the version before
KEY_BYTES, NONCE_BYTES, SERIAL_BYTES = 32, 12, 8
MAX_SERIAL = (1 << 8 * SERIAL_BYTES) - 1
MAX_BYTES = 64 << 20  # of the file, and of all files in it
ANOTHER_BUNDLE = "--bundle FILE or URL   of what `grader bundle` has written"
ANOTHER = "--course DIR, FILE, URL or the name of an installed package"


def new_key() -> str:
    """Return a new key as text."""
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def take_key(file: str = "", remedy: str = "grader bundle --new-key   prints a key") -> bytes:
    """Return the key in a file, or in the environment, out of which it is taken in any case.

    The file `-` is standard input. Raises `RequestError` if the key is missing or invalid.
    """
    text = drop_key()
    place = f"the file of {KEY_FILE_OPTION}" if file else KEY_VARIABLE
    if file:
        try:
            data = sys.stdin.buffer.read(MAX_KEY_FILE) if file == "-" else _start_of(Path(file))
        except (OSError, ValueError) as error:  # the path may be the key itself, by mistake
            problem = f"{place} cannot be read: {getattr(error, 'strerror', '') or 'no such file'}"
            raise RequestError(problem, f"{KEY_FILE_OPTION} FILE, not the key") from None
        text = data.decode("ascii", "replace").strip()
    if not text:
        raise RequestError(f"{place} is {'empty' if file else 'not set'}", remedy)
    try:
        key = base64.urlsafe_b64decode(text)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise RequestError(f"{place} is no key", remedy)
    return key


def remedy_for_key() -> str:
    """Return what to do if a bundle does not open, for whoever reads it: in a job, a student."""
    if in_job():
        return (
            "tell your teachers; nothing in your files is the cause, and you need no key. "
            "A pull request from a fork gets none (docs/ci.md, Where a secret can live)"
        )
    return "the key with which the bundle was written; grader bundle   writes a new one"


def drop_key() -> str:
    """Remove the key from the environment, and return it.

    No process or module that starts later finds it. The kernel shows the environment with which a
    process began (`/proc/PID/environ`), so the key is wiped there as well.
    """
    text = os.environ.get(KEY_VARIABLE, "")
    if LIBC is not None and text:
        LIBC.getenv.restype = ctypes.c_void_p
        if place := LIBC.getenv(KEY_VARIABLE.encode()):
            ctypes.memset(place, 0, len(os.fsencode(text)))
    os.environ.pop(KEY_VARIABLE, None)
    return text.strip()


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_KEY_FILE)


def is_bundle(data: bytes) -> bool:
    """Return whether data begins like a bundle."""
    return data.startswith(MAGIC)


def new_serial() -> int:
    """Return the serial for a new bundle: the UTC time, which only grows."""
    return int(time.strftime("%Y%m%d%H%M%S", time.gmtime()))


def seal(files: Mapping[str, bytes], key: bytes, serial: int) -> bytes:
    """Return files, by their paths, as a bundle; its serial is readable without the key."""
    cipher, nonce = _cipher(key), secrets.token_bytes(NONCE_BYTES)
    head = MAGIC + VERSION + serial.to_bytes(SERIAL_BYTES)
    return head + nonce + cipher.encrypt(nonce, zipped(files), head)


def unseal(data: bytes, key: bytes, min_serial: int = 0) -> bytes:
    """Return the zip in a bundle whose serial is at least `min_serial`; raises `RequestError`.

    The key also authenticates the serial: a bundle with a changed one does not open. A bundle of
    the first version has no serial, so it counts as older than any bundle with one.
    """
    cipher, start = _cipher(key), _head_bytes(data)
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415, an extra, which is there

    head, nonce = data[:start], data[start : start + NONCE_BYTES]
    try:
        content = cipher.decrypt(nonce, data[start + NONCE_BYTES :], head)
    except (InvalidTag, ValueError):
        problem = f"the bundle does not open: it is damaged, or {KEY_VARIABLE} is another key"
        raise RequestError(problem, remedy_for_key()) from None
    serial = int.from_bytes(head[len(MAGIC + VERSION) :])
    if serial < min_serial:
        problem = f"the bundle is too old: its serial is {serial}, not {min_serial} or more"
        remedy = "take the newest bundle; `grader bundle` writes one, and prints its serial"
        raise RequestError(problem, remedy)
    return content


def _head_bytes(data: bytes) -> int:
    """Return the number of bytes in a bundle's head."""
    start = len(MAGIC + VERSION)
    if data[:start] == MAGIC + VERSION:
        return start + SERIAL_BYTES
    if data[:start] == MAGIC + WITHOUT_SERIAL:
        return start
    raise RequestError("the bundle is of another version of the grader", "grader bundle")


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415, an extra
    except ImportError:
        problem = "bundles need the package `cryptography`"
        raise RequestError(problem, install_extra("bundle")) from None
    return AESGCM(key)
