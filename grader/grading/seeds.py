"""Makes secrets, and derives seeds from them by a function that nobody can invert.

A class has a secret, which stays in its ledger. It decides the inputs of each epoch: all
submissions collected before any feedback on them is published get the same inputs, and later ones
get others, so that answers recorded in one attempt are useless in the next. Imports no torch.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

SEED_BYTES = 6  # of a seed that people read and type
PUBLIC_SEED = 0  # the seed of the cases in a student's own check with public suites
TORCH_SEED_BYTES = 7  # of a seed that only torch reads
MARK_BYTES = 4  # of the mark of a seed


def fresh_seed() -> int:
    """Return a random seed that nobody can guess."""
    return secrets.randbits(8 * SEED_BYTES)


def fresh_secret() -> bytes:
    """Return a random secret for a class."""
    return secrets.token_bytes(32)


def secret_from(seed: int) -> bytes:
    """Return the secret of a class for a seed that the teacher chose: the same on every machine."""
    return hashlib.sha256(f"the secret of a class/{seed}".encode()).digest()


def public_seed(secret: bytes) -> int:
    """Return the seed that reports print: it stands for the secret without revealing it."""
    return _derived(secret, "printed", SEED_BYTES)


def seed_of_epoch(secret: bytes, number: int) -> int:
    """Return the seed of a class's epoch: of all hidden inputs, and of the cases of mistakes."""
    return _derived(secret, f"epoch/{number}", TORCH_SEED_BYTES)


def seed_of_submission(secret: bytes, digest: str) -> int:
    """Return the seed of the submission with this hash, if each submission is its own epoch.

    That is so on a platform, which gives feedback at once.
    """
    return _derived(secret, f"submission/{digest}", TORCH_SEED_BYTES)


def seed_of_test(seed: int, exercise: str, test: str) -> int:
    """Return the seed of one test's inputs, from a submission's: the same in any order."""
    return _derived(str(seed).encode(), f"inputs/{exercise}/{test}", TORCH_SEED_BYTES)


def seed_of_worker(seed: int, exercise: str, test: str) -> int:
    """Return torch's seed for student code in a test; it reveals nothing about the inputs."""
    return _derived(str(seed).encode(), f"worker/{exercise}/{test}", TORCH_SEED_BYTES)


def naming_seed(secret: bytes) -> int:
    """Return the seed of the cases that compare the members of an unnamed group.

    All runs of a class share it, so that late hand-ins can be compared with early ones.
    """
    return _derived(secret, "naming", SEED_BYTES)


def mark_of_seed(seed: int) -> str:
    """Return a mark that tells a seed of cases from others and reveals nothing about it."""
    return f"{_derived(str(seed).encode(), 'mark', MARK_BYTES):x}"


def _derived(key: bytes, label: str, size: int) -> int:
    digest = hmac.digest(key, label.encode("utf-8", "surrogatepass"), "sha256")
    return int.from_bytes(digest[:size], "big")
