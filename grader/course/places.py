"""The places of a course: a folder, a bundle or zip, an address, or an installed package."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from grader.course.bundle import (
    ANOTHER,
    ANOTHER_BUNDLE,
    MAX_BYTES,
    is_bundle,
    remedy_for_key,
    take_key,
    unseal,
)
from grader.course.course import PACKAGED, Course, course_in, has_course, load_course
from grader.course.course_zip import unzip
from grader.course.download import download, is_address, shown
from grader.errors import RequestError
from grader.files import read_bounded
from grader.scratch import scratch_folder


@contextlib.contextmanager
def course_at(place: str, *, insecure: bool = False) -> Iterator[Course]:
    """Yield the course at a place that is not a bundle; remove unpacked files afterwards.

    Raises `RequestError` if there is no course, and `CourseError` if it is wrong.
    """
    _refuse_ambiguous(place)
    if is_address(place) or Path(place).is_file():
        data = _loaded(place, ANOTHER, insecure=insecure)
        if is_bundle(data):
            raise RequestError(f"{_name(place)} is a bundle", f"--bundle {_name(place)}")
        with _unpacked(data) as course:
            yield course
    else:
        yield _course(place)


@contextlib.contextmanager
def bundled_course(
    place: str, key_file: str = "", min_serial: int = 0, *, insecure: bool = False
) -> Iterator[Course]:
    """Yield the course in a bundle, which is a file or at an address.

    A user who asks for a bundle wants the course of the key's owner: nothing else is opened, and
    no bundle older than `min_serial`.
    """
    key = take_key(key_file, remedy_for_key())
    data = _loaded(place, ANOTHER_BUNDLE, insecure=insecure)
    if not is_bundle(data):
        raise RequestError(f"{_name(place)} is no bundle", "grader bundle   writes one")
    with _unpacked(unseal(data, key, min_serial)) as course:
        yield replace(course, sealed=True)


@contextlib.contextmanager
def _unpacked(data: bytes) -> Iterator[Course]:
    with scratch_folder("course", outlived=True) as folder:
        unzip(data, folder)
        roots = [path for path in (folder, *sorted(folder.glob("*/"))) if has_course(path)]
        if not roots:
            raise RequestError("there is no course in the zip", ANOTHER)
        yield load_course(roots[0])


def _loaded(place: str, another: str, *, insecure: bool) -> bytes:
    if is_address(place):
        return download(place, MAX_BYTES, insecure=insecure)
    path = Path(place)
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise RequestError(f"{place} is a directory, or no file", another)
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}", another) from None


def _name(place: str) -> str:
    """Return a place in a printable form."""
    return shown(place) if is_address(place) else place


def _course(place: str) -> Course:
    """Return a course: in the named folder, above it, or in a package."""
    if Path(place).is_dir():
        return course_in(Path(place).absolute())
    found = next(_courses_of_package(place), None)
    if found is None:
        raise RequestError(f"there is no course at {place}", ANOTHER)
    return load_course(found)


def _refuse_ambiguous(place: str) -> None:
    """Raise `RequestError` if an installed course and a file or folder here have one name.

    A named course is trusted, and a user who names a package may not know this folder.
    """
    is_name = not any(sign in place for sign in (os.sep, os.altsep) if sign)
    if not is_name or not place.strip(".") or not os.path.lexists(place):
        return
    here = Path(place).resolve()
    if any(
        here not in (each, *each.parents) for each in map(Path.resolve, _courses_of_package(place))
    ):
        problem = f"`{place}` is an installed course, and something else in this folder"
        remedy = f"--course {os.path.join(os.curdir, place)}   is what is in this folder"
        raise RequestError(problem, remedy)


def _courses_of_package(name: str) -> Iterator[Path]:
    return filter(has_course, _folders_of_package(name))


def _folders_of_package(name: str) -> Iterator[Path]:
    """Yield the folders of an installed package that may hold its course."""
    spec = None
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(name.replace("-", "_"))
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder)
        yield Path(folder, PACKAGED)
