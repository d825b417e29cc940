"""Trained parameters of a student's exercises, kept between checks of the same code.

A file in `.grader/` for each exercise, which only the user who trained believes: whoever copies a
folder may get it with another's. Without it nothing is lost but the time to train again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import torch

from grader import __version__
from grader.course.course import Course
from grader.files import STATE
from grader.grading.code_text import code_tokens
from grader.grading.diagnosis.record import hash_of_engine
from grader.own_key import signed, signed_data
from grader.sandbox import wire
from grader.sandbox.host.training import Losses, Trained
from grader.trees import NotOpened, read_file, write_file

MAX_BYTES = 32 * 1024**2  # of a file that is read
MAX_PROGRAMS = 4  # whose trainings are kept for one exercise: an edit that is undone costs nothing

Trainings = dict[str, Trained]  # by name


class _KeptTraining(msgspec.Struct, array_like=True):
    state: dict[str, wire.WireTensor]
    losses: Losses


class _KeptTrainings(msgspec.Struct, array_like=True):
    of: list[str]  # the versions that the trainings are of
    programs: dict[str, dict[str, _KeptTraining]]  # by key, oldest first


# Whether trainings are kept between checks: of the same code, or only if the seed is the same too.
Keeps = Literal["nothing", "of this seed", "of any seed"]


def key_of(sources: Mapping[str, wire.Source], seed: int | None = None) -> str:
    """Return the key of a program: the same for the same code, whatever its comments say.

    A `seed` makes it the key of trainings with this seed alone.
    """
    code = hashlib.sha256(b"" if seed is None else b"%d\0" % seed)
    for name, source in sorted(sources.items()):
        for part in (name, *code_tokens(source.text)):
            code.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return code.hexdigest()[:16]


def load_trainings(course: Course, name: str, key: str) -> Trainings:
    """Return the trainings of a program that were kept; none if anything has changed since."""
    kept = _load(course, name)
    with contextlib.suppress(wire.Malformed):
        return {
            each: Trained(
                {place: wire.unpack_tensor(value) for place, value in training.state.items()},
                training.losses,
                kept=True,
            )
            for each, training in kept.programs.get(key, {}).items()
        }
    return {}


def save_trainings(course: Course, name: str, key: str, trainings: Trainings) -> None:
    """Keep the trainings of a program, if that is possible."""
    kept = _load(course, name)
    kept.programs.pop(key, None)
    with contextlib.suppress(OSError, NotOpened, wire.Malformed):
        kept.programs[key] = {
            each: _KeptTraining(
                {place: wire.pack_tensor(value) for place, value in training.state.items()},
                training.losses,
            )
            for each, training in trainings.items()
        }
        kept.programs = dict([*kept.programs.items()][-MAX_PROGRAMS:])
        data = signed(msgspec.msgpack.encode(kept), _purpose(name))
        if data is not None:
            write_file(_path(course, name), course.root, data, private=True)


def _load(course: Course, name: str) -> _KeptTrainings:
    of = versions_of(course, name)
    with contextlib.suppress(OSError, NotOpened, ValueError, msgspec.MsgspecError):
        stored = read_file(_path(course, name), course.root, MAX_BYTES)
        if data := signed_data(stored, _purpose(name)):
            kept = msgspec.msgpack.decode(data, type=_KeptTrainings)
            if kept.of == of:
                return kept
    return _KeptTrainings(of, {})


def _purpose(name: str) -> str:
    return f"trainings of {name}"


def _path(course: Course, name: str) -> Path:
    return course.root / STATE / "trainings" / f"{name}.msgpack"


def versions_of(course: Course, name: str) -> list[str]:
    """Return the versions of the exercise and the software that kept trainings are of."""
    return [course.hashes[name], __version__, hash_of_engine(), str(torch.__version__)]
