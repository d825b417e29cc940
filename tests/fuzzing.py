"""Random damage to bytes, reproducible from a seed."""

from __future__ import annotations

from random import Random

# Pieces with a meaning in MessagePack, JSON or zip.
TOKENS = [b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xcf" * 9]
TOKENS += [b"\xcb\x7f\xf8" + bytes(6), b"\xa3\xed\xa0\x80", b"\xa1\xff", b"\xd6", b"\x90", b"\xc0"]
TOKENS += [b'{"', b"[[[[", b"\\ud800", b"PK\x05\x06"]


def mutated(rng: Random, data: bytes, other: bytes) -> bytes:
    """Return `data` with one to three places cut, repeated or replaced by a piece of `other`."""
    body = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(body) + 1)
        again, tail = body[at : at + 40] * rng.randint(1, 9), other[rng.randrange(len(other)) :]
        new = rng.choice((b"", rng.randbytes(1), rng.choice(TOKENS), again, tail))
        body[at : at + rng.choice((0, 1, 1, 4, 9999))] = new
    return bytes(body)
