"""Packs the running grader as a wheel, to install it where no package index has it."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from grader import __version__
from grader.course.course import PACKAGED, packaged_course
from grader.errors import RequestError
from grader.files import zipped

PROJECT = "attention-grader"
PACKAGE = Path(__file__).parent.parent
WHEEL_NAME = f"attention_grader-{__version__}-py3-none-any.whl"
INFO = f"attention_grader-{__version__}.dist-info"
KIND = f"Wheel-Version: 1.0\nGenerator: {PROJECT}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
REQUIREMENT = re.compile(r"[\w.-]+")


@functools.cache  # the running grader stays the same
def make_wheel() -> bytes:
    """Return a wheel of this grader, named `WHEEL_NAME`; raises `RequestError`."""
    installed = _installed()
    if installed.version != __version__:
        problem = f"this grader is {__version__}, and it is installed as {installed.version}"
        raise RequestError(problem, "pip install -e .   in its folder")
    package = {
        f"grader/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes()
        for path in files_below(PACKAGE)
    }
    files = {
        **package,
        **_exercises(),
        f"{INFO}/METADATA": (installed.read_text("METADATA") or "").encode(),
        f"{INFO}/WHEEL": KIND.encode(),
        f"{INFO}/entry_points.txt": (installed.read_text("entry_points.txt") or "").encode(),
    }
    # The exercises come from the package or from beside it, which makes no difference to the bytes.
    files = dict(sorted(files.items()))
    record = [*(_recorded(name, data) for name, data in files.items()), f"{INFO}/RECORD,,"]
    return zipped({**files, f"{INFO}/RECORD": "\n".join([*record, ""]).encode()})


def _exercises() -> dict[str, bytes]:
    """Return the students' course for the wheel of a grader that runs from its repository.

    An installed grader has it in its package. Stubs are made anew, because somebody may have worked
    in the exercises of the repository.
    """
    if (PACKAGE / PACKAGED).is_dir():
        return {}
    from grader.commands.students_files import students_files  # noqa: PLC0415, slow

    with suppress(RequestError):  # a grader may come without exercises
        files = students_files(packaged_course())
        return {f"{PACKAGE.name}/{PACKAGED}/{name}": data for name, data in files.items()}
    return {}


def pins(extra: str = "") -> str:
    """Return pip constraints for the versions with which the grader, or one extra, runs here.

    torch is pinned for every version of Python, any other package only for this one.
    """
    mine = f'python_version == "{sys.version_info.major}.{sys.version_info.minor}"'
    versions = dict(sorted(_needed(extra)))
    lines = [f"torch=={versions.pop('torch')}"]
    return "\n".join([*lines, *(f"{n}=={v}; {mine}" for n, v in versions.items()), ""])


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and below it, except files that Python and editors leave."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        is_left = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if path.is_file() and not is_left:
            yield path


def _recorded(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def _needed(extra: str) -> Iterator[tuple[str, str]]:
    """Yield the name and version of each installed package that the grader needs."""
    seen, waiting = {PROJECT}, [_installed()]
    while waiting:
        for requirement in waiting.pop().requires or ():
            named = REQUIREMENT.match(requirement)
            marker = requirement.partition(";")[2]
            if named is None or ("extra" in marker and not (extra and extra in marker)):
                continue
            name = re.sub(r"[-_.]+", "-", named[0]).lower()
            found = _distribution(name) if name not in seen else None
            seen.add(name)
            if found is not None:
                waiting.append(found)
                yield name, found.version.partition("+")[0]


def _installed() -> Distribution:
    found = _distribution(PROJECT)
    if found is None:
        raise RequestError("this grader is not installed", "pip install -e .   in its folder")
    return found


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:  # only another system needs it: landlockpy, for example
        return None
