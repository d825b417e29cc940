"""Trained parameters of a student's exercises, stored between checks of the same code."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from typing import Literal

import msgspec
import torch

from grader import __version__, cache
from grader.course.course import Course
from grader.grading.code_text import code_tokens
from grader.grading.diagnosis.record import hash_of_engine
from grader.sandbox import wire
from grader.sandbox.host.training import Losses, Trained

Trainings = dict[str, Trained]  # trainings by name


class _KeptTraining(msgspec.Struct, array_like=True):
    state: dict[str, wire.WireTensor]
    losses: Losses


# Which trainings are stored between checks: of the same code, or of the same code and seed.
Keeps = Literal["nothing", "of this seed", "of any seed"]


def key_of(
    course: Course, name: str, sources: Mapping[str, wire.Source], seed: int | None = None
) -> str:
    """Return the key of a program: the same for the same code, with any comments.

    With a `seed`, it is the key of trainings with this seed only.
    """
    versions = course.hashes[name], __version__, hash_of_engine(), str(torch.__version__)
    code = (part for file in sorted(sources) for part in (file, *code_tokens(sources[file].text)))
    return cache.key_of("trainings", name, *versions, str(seed), *code)


def load_trainings(key: str) -> Trainings:
    """Return the stored trainings of a program; none if anything has changed since."""
    data = cache.load(key)
    with contextlib.suppress(wire.Malformed, msgspec.MsgspecError):
        kept = {} if data is None else _decode(data)
        return {
            each: Trained(
                {place: wire.unpack_tensor(value) for place, value in training.state.items()},
                training.losses,
                kept=True,
            )
            for each, training in kept.items()
        }
    return {}


def save_trainings(key: str, trainings: Trainings) -> None:
    """Store the trainings of a program, if that is possible."""
    with contextlib.suppress(wire.Malformed):
        kept = {
            each: _KeptTraining(
                {place: wire.pack_tensor(value) for place, value in training.state.items()},
                training.losses,
            )
            for each, training in trainings.items()
        }
        cache.save(key, msgspec.msgpack.encode(kept))


_decode = functools.partial(msgspec.msgpack.decode, type=dict[str, _KeptTraining])
