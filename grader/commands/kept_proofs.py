"""Proofs that found no problem, kept for as long as all that they depend on is unchanged.

They are in `reference/proofs.json`, which belongs in the repository: whoever has the same
files need not prove them again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec import Struct

from grader.commands.proving import Proof
from grader.course.course import Course
from grader.grading.code_text import without_remarks

FILE = "proofs.json"  # in the folder of the exercises
ROOM = Path(__file__).parent.parent
# What decides whether a proof succeeds, besides the course and torch.
ENGINE = ("course", "grading", "sandbox", "commands/proving.py", "testing.py", "probing.py")


class KeptProof(Struct, frozen=True, forbid_unknown_fields=True):
    """What a proof found, and a hash of what it is of."""

    of: str
    tests: int
    faults: int
    needed: dict[str, list[str]]


def load_proofs(course: Course, names: Sequence[str], seed: int) -> dict[str, Proof]:
    """Return the kept proofs of those exercises in which nothing has changed since."""
    kept = _load(course)
    return {
        name: Proof(course[name], each.tests, each.faults, each.faults, each.needed)
        for name in names
        if (each := kept.get(name)) and each.of == hash_of(course, name, seed)
    }


def save_proof(course: Course, proof: Proof, seed: int) -> None:
    """Keep a proof that has no problem, and forget exercises that are no longer there."""
    mine = proof.exercise.name
    kept = {name: each for name, each in _load(course).items() if name in course.names}
    kept.pop(mine, None)
    if not proof.problems:
        of = hash_of(course, mine, seed)
        kept[mine] = KeptProof(of, proof.tests, proof.faults, proof.needed)
    text = msgspec.json.format(msgspec.json.encode(dict(sorted(kept.items()))), indent=1)
    with contextlib.suppress(OSError):  # then it is proven again
        _file(course).write_bytes(text + b"\n")


def _load(course: Course) -> Mapping[str, KeptProof]:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(_file(course).read_bytes(), type=dict[str, KeptProof])
    return {}


def _file(course: Course) -> Path:
    return course.reference / FILE


def hash_of(course: Course, name: str, seed: int) -> str:
    """Return a hash of all that decides what is said of programs for an exercise."""
    digest = hashlib.sha256(f"{course.hashes[name]} {_hash_of_engine()} {seed}".encode())
    for path in sorted(course[name].folder.glob("*.*")):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _hash_of_engine() -> str:
    digest = hashlib.sha256(version("torch").partition("+")[0].encode())
    for path in sorted(_sources()):
        code = without_remarks(path.read_text("utf-8"))
        digest.update(f"\0{path.relative_to(ROOM).as_posix()}\0{code}".encode())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for name in ENGINE:
        place = ROOM / name
        yield from place.rglob("*.py") if place.is_dir() else [place]
