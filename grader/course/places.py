"""Where a course is: a folder, a bundle or a zip of one, their address, or an installed package."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from grader.course.bundle import ANOTHER, MAX_BYTES, is_bundle, take_key, unseal, unzip
from grader.course.course import PACKAGED, Course, course_in, has_course, load_course
from grader.errors import RequestError
from grader.files import read_bounded
from grader.scratch import scratch_folder

ADDRESSES = ("https://", "http://")
SECONDS = 60.0  # for a download


@contextlib.contextmanager
def course_at(place: str) -> Iterator[Course]:
    """Yield the course at a place that is no bundle; what had to be unpacked is removed afterwards.

    Raises `RequestError` if there is none, and `CourseError` if it is wrong.
    """
    if place.startswith(ADDRESSES) or Path(place).is_file():
        data = _loaded(place)
        if is_bundle(data):
            raise RequestError(f"{place} is a bundle", f"--bundle {place}")
        with _unpacked(data) as course:
            yield course
    else:
        yield _course(place)


@contextlib.contextmanager
def bundled_course(place: str, key_file: str = "") -> Iterator[Course]:
    """Yield the course in a bundle, which is a file or has an address.

    Whoever asks for a bundle asks for what the key's owner has written: nothing else is opened.
    """
    key, data = take_key(key_file), _loaded(place)
    if not is_bundle(data):
        raise RequestError(f"{place} is no bundle", "grader bundle   writes one")
    with _unpacked(unseal(data, key)) as course:
        yield replace(course, sealed=True)


@contextlib.contextmanager
def _unpacked(data: bytes) -> Iterator[Course]:
    with scratch_folder("course") as folder:
        unzip(data, folder)
        roots = [path for path in (folder, *sorted(folder.glob("*/"))) if has_course(path)]
        if not roots:
            raise RequestError("there is no course in the zip", ANOTHER)
        yield load_course(roots[0])


def _loaded(place: str) -> bytes:
    return _download(place) if place.startswith(ADDRESSES) else _contents(Path(place))


def _contents(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}", ANOTHER) from None


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            data: bytes = answer.read(MAX_BYTES + 1)
    except (http.client.HTTPException, OSError, ValueError) as error:  # an address may be none
        raise RequestError(f"{address} cannot be loaded: {error}", ANOTHER) from None
    if len(data) > MAX_BYTES:
        raise RequestError(f"{address} is larger than {MAX_BYTES >> 20} MiB", ANOTHER)
    return data


def _course(place: str) -> Course:
    """Return a course: the one in the folder that is named, one above it, or a package's."""
    if Path(place).is_dir():
        return course_in(Path(place).absolute())
    found = next(filter(has_course, _folders_of_package(place)), None)
    if found is None:
        raise RequestError(f"there is no course at {place}", ANOTHER)
    return load_course(found)


def _folders_of_package(name: str) -> Iterator[Path]:
    """Yield the folders of an installed package that may hold its course."""
    spec = None
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(name.replace("-", "_"))
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder)
        yield Path(folder, PACKAGED)
