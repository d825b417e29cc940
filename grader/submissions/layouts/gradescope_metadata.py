"""Gradescope's `submission_metadata.yml`: who handed in which submission, and when.

The file is written by a Ruby program: its keys are symbols (`:sid`), its values may be of types
that only Ruby knows. Nothing in it is relied on: what is not as expected is as if it were missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from grader.report import Person
from grader.submissions.submission import shown

METADATA = "submission_metadata.yml"
MAX_BYTES = 64 * 1024 * 1024  # it repeats the results of every submission and of those before it
MAX_DEPTH = 40  # the parser would run out of stack in far deeper files, and end this process
MAX_TEXT = 200  # characters of a name
BROKEN = (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, OverflowError)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Record:
    """One submission: its submitters, more than one of a group, and its time where it has one."""

    submitters: tuple[Person, ...]
    created: datetime | None


class Unreadable(Exception):
    """The file cannot be read; the message says why."""


def read_metadata(path: Path) -> dict[str, Record]:
    """The name of each submission's folder or file to its record. May raise `Unreadable`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable(f"is larger than {MAX_BYTES >> 20} MiB")
        data = path.read_bytes()
        _refuse_deep(data)
        found = yaml.load(data, Loader=_Ruby)
    except BROKEN as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise Unreadable(f"is no YAML that can be read{where}") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    if not isinstance(found, dict):
        raise Unreadable("lists no submissions")
    return {key: _record(value) for key, value in found.items() if isinstance(key, str)}


def _refuse_deep(data: bytes) -> None:
    depth = 0
    for event in yaml.parse(data, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise Unreadable("is nested too deeply")


class _Ruby(_Loader):  # type: ignore[misc]
    """A safe loader that takes a value of an unknown type for what it is made of."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leave `<<` alone: a few merges of merges would fill the memory."""


def _plain(loader: Any, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value


def _lasting(loader: Any, node: yaml.ScalarNode) -> Any:
    """A time; of a day that does not exist, its text."""
    try:
        return loader.construct_yaml_timestamp(node)
    except ValueError:
        return node.value


_Ruby.add_multi_constructor("!", _plain)
_Ruby.add_constructor("tag:yaml.org,2002:timestamp", _lasting)


def _record(value: Any) -> Record:
    said = value if isinstance(value, dict) else {}
    listed = _of(said, "submitters")
    people = tuple(_people(listed if isinstance(listed, list) else []))
    return Record(people, _time(_of(said, "created_at")))


def _of(mapping: dict[Any, Any], key: str) -> Any:
    return mapping.get(f":{key}", mapping.get(key))


def _people(submitters: list[Any]) -> Iterator[Person]:
    for said in submitters:
        if isinstance(said, dict):
            name, email, number = (_text(_of(said, key)) for key in ("name", "email", "sid"))
            if name or email or number:
                yield Person(name=name, email=email, number=number)


def _text(value: Any) -> str:
    """A name or number as a report can hold it; a list or the like is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    if isinstance(value, int) and value.bit_length() > 256:
        return ""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return shown(text.strip())[:MAX_TEXT]


def _time(value: Any) -> datetime | None:
    """A time; YAML says that one without a zone is UTC."""
    if isinstance(value, dict):  # how Ruby on Rails writes a time with a zone
        value = value.get("utc")
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
