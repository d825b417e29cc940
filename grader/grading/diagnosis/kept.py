"""Answers of known mistakes to the probes of the public seed, kept between a student's checks.

A file in `.grader/` for each exercise. Without it nothing is lost but a second.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import msgspec
import torch

from grader import __version__
from grader.course.course import Course
from grader.files import STATE, write_whole
from grader.grading.diagnosis.answers import Answer
from grader.grading.diagnosis.encoding import answer_of, plain_answer
from grader.grading.diagnosis.record import PlainAnswer, hash_of_engine

MAX_BYTES = 32 * 1024**2  # of a file that is read
Store = dict[str, dict[str, Answer]]  # by the hash of a program, by probe


class _KeptAnswers(msgspec.Struct, array_like=True):
    of: list[str]  # the versions that the answers are of
    answers: dict[str, dict[str, PlainAnswer]]


def key_of(text: str) -> str:
    """Return the key of a program's answers."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_answers(course: Course, name: str) -> Store:
    """Return the kept answers of an exercise; nothing if it has changed since, or the versions."""
    errors = (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError)
    with contextlib.suppress(*errors, msgspec.MsgspecError):
        path = _path(course, name)
        if path.stat().st_size <= MAX_BYTES:
            kept = msgspec.msgpack.decode(path.read_bytes(), type=_KeptAnswers)
            if kept.of == versions_of(course, name):
                return {
                    key: {probe: answer_of(each) for probe, each in answers.items()}
                    for key, answers in kept.answers.items()
                }
    return {}


def save_answers(course: Course, name: str, store: Store) -> None:
    """Keep the answers of an exercise, if that is possible."""
    plain = {
        key: {probe: plain_answer(answer) for probe, answer in answers.items()}
        for key, answers in store.items()
    }
    with contextlib.suppress(OSError):
        data = msgspec.msgpack.encode(_KeptAnswers(versions_of(course, name), plain))
        write_whole(_path(course, name), data)


def _path(course: Course, name: str) -> Path:
    return course.root / STATE / "answers" / f"{name}.msgpack"


def versions_of(course: Course, name: str) -> list[str]:
    """Return the versions of the exercise and the software that kept answers are of."""
    return [course.hashes[name], __version__, hash_of_engine(), str(torch.__version__)]
