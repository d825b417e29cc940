"""Settings: TOML and JSON files of a course, read into msgspec structs."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from grader.errors import CourseError, did_you_mean
from grader.report import without_controls
from grader.trees import NotOpened, read_file

MAX = 1e308  # excludes infinity
MAX_BYTES = 16 << 20  # of a file of a course
Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=MAX)]
Minutes = Annotated[int, msgspec.Meta(ge=1, le=600)]  # of work
Seconds = Annotated[float, msgspec.Meta(gt=0, le=MAX)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]

T = TypeVar("T", bound=msgspec.Struct)
TIMES = (datetime, date, time)  # TOML has these types, so texts are not converted to them
PLAIN = {
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "text",
    "`array`": "a list",
    "`object`": "a table",
    "`datetime`": "a date and time",
    "Object missing required field": "missing key",
}


def _load_json(text: str) -> Any:
    """Return JSON data, which may be a stranger's, without terminal controls in its texts."""
    return _without_controls(json.loads(text))


def _without_controls(data: Any) -> Any:
    if isinstance(data, list):
        return [_without_controls(each) for each in data]
    if isinstance(data, dict):
        return {_without_controls(key): _without_controls(each) for key, each in data.items()}
    return without_controls(data) if isinstance(data, str) else data


PARSERS: Mapping[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": _load_json}


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file of a course; raises `CourseError` that names the file."""
    try:
        return read_file(path, path, MAX_BYTES)
    except NotOpened as error:
        raise CourseError(f"{path} {error}") from None
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}") from None


def read_text(path: Path) -> str:
    """Return the text of a file of a course; raises `CourseError` that names the file."""
    return _text_of(read_bytes(path), path)


def _text_of(data: bytes, path: Path) -> str:
    try:
        text = data.decode("utf-8")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise CourseError(f"{path}: not UTF-8 (byte {error.start})") from None


def read_settings(path: Path, form: type[T], **added: Any) -> T:
    """Read a TOML or JSON file into a struct; `added` are fields from elsewhere.

    Raises `CourseError` that names the file, and the line or the key that is wrong.
    """
    return decode_settings(read_bytes(path), path, form, **added)


def read_data(path: Path) -> Any:
    """Read a TOML or JSON file; raises `CourseError` that names the file and the line."""
    return _parsed(read_bytes(path), path)


def _parsed(content: bytes, path: Path) -> Any:
    text = _text_of(content, path)
    try:
        return PARSERS[path.suffix](text)
    except (ValueError, RecursionError) as error:
        raise CourseError(f"{path}: not valid {path.suffix[1:].upper()}: {error}") from None


def decode_settings(content: bytes, path: Path, form: type[T], **added: Any) -> T:
    """Read the bytes of a file as `read_settings` reads the file."""
    parsed = _parsed(content, path)
    is_table = isinstance(parsed, dict)  # JSON may hold something else
    if is_table and (known := sorted(added.keys() & parsed.keys())):
        raise CourseError(f"{path}: unknown key `{known[0]}`")
    settings: T = convert(parsed | added if is_table and added else parsed, form, str(path))
    return settings


def convert(data: Any, form: Any, where: str) -> Any:
    """Convert parsed data to a type; raises `CourseError` with the place and the wrong key."""
    try:
        return msgspec.convert(data, form, builtin_types=TIMES)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        key, form = _follow(path, data, form)
        place = f"{where}: {key}" if key else where
        raise CourseError(f"{place}: {_in_plain_words(problem, form)}") from None


def _follow(path: str, data: Any, form: Any) -> tuple[str, Any]:
    """Return the key at a path such as `.fault[3].hint`, and the type at that place.

    An entry of a list is shown by its name, if it has one: `fault.no_scale.hint`.
    """
    called = ""
    for field, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        key = field
        if index == "...":  # a value of a table with arbitrary keys
            form = get_args(form)[1]
            key = next(each for each, value in data.items() if not _fits(value, form))
            data = data[key]
        else:
            data = data[key or int(index)]
            form = get_type_hints(form)[key] if key else get_args(form)[0]
        if get_origin(form) in (Union, UnionType):  # optional, for a key that may be missing
            form = get_args(form)[0]
        name = key or (data.get("name") if isinstance(data, dict) else None)
        called += f".{name}" if name else f"[{index}]"
    return called.removeprefix("."), form


def _fits(value: Any, form: Any) -> bool:
    try:
        msgspec.convert(value, form, builtin_types=TIMES)
    except msgspec.ValidationError:
        return False
    return True


def _in_plain_words(problem: str, form: Any) -> str:
    """Reword msgspec's message on a value of type `form`: "Expected `int`, got `str`"."""
    if unknown := re.fullmatch("Object contains unknown field `(.*)`", problem):
        known = form.__struct_fields__
        hint = did_you_mean(unknown[1], known) or f"; the keys are {', '.join(known)}"
        return f"unknown key `{unknown[1]}`{hint}"
    if problem.startswith("Invalid enum value"):
        choices = get_args(form)
        return f"expected {'one of ' * (len(choices) > 1)}{', '.join(map(str, choices))}"
    problem = problem.replace(" | null", "").replace("Expected", "expected")
    problem = problem.replace("of length >=", "of at least")
    for term, plain in PLAIN.items():
        problem = problem.replace(term, plain)
    return problem
