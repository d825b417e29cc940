"""Stores proofs that found no problem, as long as everything that they depend on is unchanged."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec import Struct

from grader import cache
from grader.commands.import_closure import PACKAGE, modules_named_in, modules_run_by
from grader.commands.proof import Proof
from grader.course.course import EXAMPLE, Course
from grader.grading.code_text import without_remarks

# The modules that run a proof, besides those that the course's own files import.
ROOTS = ("grader.commands.proving",)
PACKAGES = ("torch", "pytest")  # packages whose versions may decide, too


class KeptProof(Struct, frozen=True, array_like=True):
    """The result of a proof."""

    tests: int
    faults: int
    needed: dict[str, list[str]]
    overcharged: dict[str, str]


def load_proofs(course: Course, names: Sequence[str], seed: int) -> dict[str, Proof]:
    """Return the stored proofs of the exercises that have not changed since."""
    found = {}
    for name in names:
        data = cache.load(hash_of(course, name, seed))
        with contextlib.suppress(msgspec.MsgspecError):
            if data is not None:
                kept = msgspec.msgpack.decode(data, type=KeptProof)
                proof = Proof(course[name], kept.tests, kept.faults, kept.faults, kept.needed)
                found[name] = replace(proof, overcharged=kept.overcharged)
    return found


def save_proof(course: Course, proof: Proof, seed: int) -> None:
    """Store a proof that has no problem."""
    if not proof.problems:
        kept = KeptProof(proof.tests, proof.faults, proof.needed, proof.overcharged)
        cache.save(hash_of(course, proof.exercise.name, seed), msgspec.msgpack.encode(kept))


def hash_of(course: Course, name: str, seed: int) -> str:
    """Return a hash of everything that decides the verdicts on programs for an exercise."""
    paths = sorted(course[name].folder.glob("*.*"))
    # Drawing is left out: no proof checks it, and it would make every proof depend on all reports.
    code = [path for path in paths if path.suffix == ".py" and path.name != EXAMPLE]
    imported: set[str] = set()
    for path in code:
        with contextlib.suppress(SyntaxError, ValueError):  # what is no code imports nothing
            imported |= modules_named_in(path.read_text("utf-8", "replace"))
    engine = hash_of_modules((*ROOTS, *sorted(imported)))
    files = (part for path in paths for part in (path.name, path.read_bytes()))
    return cache.key_of("proof", course.hashes[name], engine, str(seed), *files)


@functools.cache
def hash_of_modules(roots: tuple[str, ...], package: Path = PACKAGE) -> str:
    """Return a hash of the code that modules run, and of the versions that it runs on."""
    versions = [version(name).partition("+")[0] for name in PACKAGES]
    digest = hashlib.sha256(f"{sys.version_info[:2]} {versions}".encode())
    for path in modules_run_by(roots, package):
        code = _code_of(path.read_text("utf-8"))
        digest.update(f"\0{path.relative_to(package).as_posix()}\0{code}".encode())
    return digest.hexdigest()


_code_of = functools.cache(without_remarks)
