"""Makes secrets, and derives seeds from them by a function that nobody can reverse.

A class has a secret, which stays in its ledger. It decides the inputs of each epoch: all that was
collected before any feedback on it was published gets the same inputs, and what comes later gets
others, so that answers recorded in one attempt are of no use in the next. Imports no torch.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

SEED_BYTES = 6  # of a seed that people read and type
PUBLIC_SEED = 0  # of the cases of a student's own check, by public suites
TORCH_SEED_BYTES = 7  # of a seed that only torch reads
MARK_BYTES = 4  # of what tells two seeds of cases apart


def fresh_seed() -> int:
    """Return a random seed that nobody can guess."""
    return secrets.randbits(8 * SEED_BYTES)


def fresh_secret() -> bytes:
    """Return a random secret for a class."""
    return secrets.token_bytes(32)


def secret_from(seed: int) -> bytes:
    """Return the secret of a class for a seed that the teacher chose: on every machine the same."""
    return hashlib.sha256(f"the secret of a class/{seed}".encode()).digest()


def public_seed(secret: bytes) -> int:
    """Return the seed that reports print: it names the secret and tells nothing about it."""
    return _derived(secret, "printed", SEED_BYTES)


def seed_of_epoch(secret: bytes, number: int) -> int:
    """Return the seed of a class's epoch: of all hidden inputs, and of what names mistakes."""
    return _derived(secret, f"epoch/{number}", TORCH_SEED_BYTES)


def seed_of_submission(secret: bytes, digest: str) -> int:
    """Return the seed of the submission with this hash, where each one is an epoch by itself.

    That is on a platform, which gives feedback at once.
    """
    return _derived(secret, f"submission/{digest}", TORCH_SEED_BYTES)


def seed_of_test(seed: int, exercise: str, test: str) -> int:
    """Return the seed of one test's inputs from a submission's: the same in every order."""
    return _derived(str(seed).encode(), f"inputs/{exercise}/{test}", TORCH_SEED_BYTES)


def seed_of_worker(seed: int, exercise: str, test: str) -> int:
    """Return torch's seed where student code runs a test; it tells nothing about the inputs."""
    return _derived(str(seed).encode(), f"worker/{exercise}/{test}", TORCH_SEED_BYTES)


def naming_seed(secret: bytes) -> int:
    """Return the seed of the cases by which members of an unnamed group are compared.

    All runs of a class share it, so that late hand-ins can be compared with early ones.
    """
    return _derived(secret, "naming", SEED_BYTES)


def mark_of_seed(seed: int) -> str:
    """Return what tells a seed of cases from others, and nothing else about it."""
    return f"{_derived(str(seed).encode(), 'mark', MARK_BYTES):x}"


def _derived(key: bytes, label: str, size: int) -> int:
    digest = hmac.digest(key, label.encode("utf-8", "surrogatepass"), "sha256")
    return int.from_bytes(digest[:size], "big")
