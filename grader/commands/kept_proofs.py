"""Proofs that found no problem, kept for as long as all that they depend on is unchanged.

They are in `reference/proofs.json`, which belongs in the repository: whoever has the same
files need not prove them again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec import Struct

from grader.commands.import_closure import PACKAGE, modules_named_in, modules_run_by
from grader.commands.proving import Proof
from grader.course.course import EXAMPLE, Course
from grader.grading.code_text import without_remarks

FILE = "proofs.json"  # in the folder of the exercises
# What runs a proof, besides what the course's own files import.
ROOTS = ("grader.commands.proving",)
PACKAGES = ("torch", "pytest")  # whose versions may decide, too


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
    paths = sorted(course[name].folder.glob("*.*"))
    # What an example draws is no part of a proof; it would make that depend on all reports.
    code = [path for path in paths if path.suffix == ".py" and path.name != EXAMPLE]
    sources = [path.read_text("utf-8", "replace") for path in code]
    engine = hash_of_engine((*ROOTS, *sorted(_imported_by(sources))))
    digest = hashlib.sha256(f"{course.hashes[name]} {engine} {seed}".encode())
    for path in paths:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _imported_by(sources: Sequence[str]) -> set[str]:
    """Return the modules of the engine that sources import; one that is no code has none."""
    found: set[str] = set()
    for source in sources:
        with contextlib.suppress(SyntaxError, ValueError):
            found.update(modules_named_in(source))
    return found


@functools.cache
def hash_of_engine(roots: tuple[str, ...], package: Path = PACKAGE) -> str:
    """Return a hash of the code that modules run, and of what it runs on."""
    versions = [version(name).partition("+")[0] for name in PACKAGES]
    digest = hashlib.sha256(f"{sys.version_info[:2]} {versions}".encode())
    for path in modules_run_by(roots, package):
        code = _code_of(path.read_text("utf-8"))
        digest.update(f"\0{path.relative_to(package).as_posix()}\0{code}".encode())
    return digest.hexdigest()


_code_of = functools.cache(without_remarks)
