"""Answers of known mistakes to the probes of one seed, kept between checks.

A folder has a file for each exercise and seed. All grading processes of a class share one, so that
what one works out is there for the others. Only the user who worked them out believes them: whoever
copies a folder may get them with another's. Without them nothing is lost but the time.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import msgspec
import torch

from grader import __version__
from grader.course.course import Course
from grader.files import STATE
from grader.grading.diagnosis.answers import Answer
from grader.grading.diagnosis.encoding import answer_of, plain_answer
from grader.grading.diagnosis.record import PlainAnswer, hash_of_engine
from grader.own_key import signed, signed_data
from grader.trees import NotOpened, read_file, write_file

MAX_BYTES = 32 * 1024**2  # of a file that is read
Store = dict[str, dict[str, Answer]]  # by the hash of a program, by probe


class _KeptAnswers(msgspec.Struct, array_like=True):
    of: list[str]  # the versions that the answers are of
    answers: dict[str, dict[str, PlainAnswer]]


def key_of(text: str) -> str:
    """Return the key of a program's answers."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def len_of(store: Store) -> int:
    """Return the number of answers."""
    return sum(map(len, store.values()))


def load_answers(folder: Path, course: Course, name: str, seed: int) -> Store:
    """Return the kept answers of an exercise; nothing if it has changed since, or the versions."""
    errors = (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError)
    with contextlib.suppress(*errors, NotOpened, msgspec.MsgspecError):
        stored = read_file(_path(folder, name, seed), _root_of(folder), MAX_BYTES)
        if data := signed_data(stored, _purpose(name, seed)):
            kept = msgspec.msgpack.decode(data, type=_KeptAnswers)
            if kept.of == versions_of(course, name):
                return {
                    key: {probe: answer_of(each) for probe, each in answers.items()}
                    for key, answers in kept.answers.items()
                }
    return {}


def save_answers(folder: Path, course: Course, name: str, seed: int, store: Store) -> None:
    """Keep the answers of an exercise, if that is possible."""
    plain = {
        key: {probe: plain_answer(answer) for probe, answer in answers.items()}
        for key, answers in store.items()
    }
    encoded = msgspec.msgpack.encode(_KeptAnswers(versions_of(course, name), plain))
    if (data := signed(encoded, _purpose(name, seed))) is not None:
        with contextlib.suppress(OSError, NotOpened):
            write_file(_path(folder, name, seed), _root_of(folder), data, private=True)


def _path(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{name}-{key_of(str(seed))}.msgpack"


def _purpose(name: str, seed: int) -> str:
    return f"answers to {name} with {seed}"


def _root_of(folder: Path) -> Path:
    """Return the folder above the `.grader/` in which answers are kept."""
    return next((above.parent for above in folder.parents if above.name == STATE), folder)


def versions_of(course: Course, name: str) -> list[str]:
    """Return the versions of the exercise and the software that kept answers are of."""
    return [course.hashes[name], __version__, hash_of_engine(), str(torch.__version__)]
