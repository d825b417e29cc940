"""Answers of known mistakes to the probes of the public seed, kept between a student's checks.

A file in `.grader/` for each exercise. Without it nothing is lost but a second.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from grader import __version__
from grader.course.course import Course
from grader.files import STATE, write_whole
from grader.grading.diagnosis.answers import Answer, Raised, Values

MAX_BYTES = 32 * 1024**2  # of a file that is read
Store = dict[str, dict[str, Answer]]  # by the hash of a program, by probe


def key_of(text: str) -> str:
    """Return the key of a program's answers."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_answers(course: Course, name: str) -> Store:
    """Return the kept answers of an exercise; nothing if it has changed since, or the versions."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RuntimeError):
        path = _path(course, name)
        if path.stat().st_size <= MAX_BYTES:
            kept = json.loads(path.read_text("utf-8"))
            if kept["of"] == _versions(course, name):
                return {
                    key: {probe: _decoded(each) for probe, each in answers.items()}
                    for key, answers in kept["answers"].items()
                }
    return {}


def save_answers(course: Course, name: str, store: Store) -> None:
    """Keep the answers of an exercise, if that is possible."""
    encoded = {
        key: {probe: _encoded(answer) for probe, answer in answers.items()}
        for key, answers in store.items()
    }
    with contextlib.suppress(OSError):
        text = json.dumps({"of": _versions(course, name), "answers": encoded})
        write_whole(_path(course, name), text)


def _path(course: Course, name: str) -> Path:
    return course.root / STATE / "answers" / f"{name}.json"


def _versions(course: Course, name: str) -> list[str]:
    return [course.hashes[name], __version__, torch.__version__]


def _encoded(answer: Answer) -> Any:
    if isinstance(answer, Raised):
        return [answer.kind, answer.subject]
    data = base64.b64encode(bytes(answer.numbers.contiguous().view(torch.uint8).tolist())).decode()
    return {"form": [_plain(part) for part in answer.form], "numbers": data}


def _plain(part: tuple[Any, ...]) -> list[Any]:
    return [str(each) if isinstance(each, torch.dtype) else each for each in part]


def _decoded(kept: Any) -> Answer:
    if isinstance(kept, list):
        return Raised(*kept)
    data = bytearray(base64.b64decode(kept["numbers"]))
    empty = torch.empty(0, dtype=torch.float64)
    numbers = torch.frombuffer(data, dtype=torch.float64) if data else empty
    return Values(tuple(map(_part, kept["form"])), numbers)


def _part(kept: list[Any]) -> tuple[Any, ...]:
    place, kind, *shape = kept
    if shape:
        return tuple(place), getattr(torch, kind.removeprefix("torch.")), tuple(shape[0])
    return tuple(place), kind
