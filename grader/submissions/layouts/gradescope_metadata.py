"""Gradescope's `submission_metadata.yml`: who handed in which submission, and when.

A Ruby program writes the file: its keys are symbols (`:sid`), and some values have Ruby types.
Unexpected data counts as missing.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from grader.report import Person
from grader.submissions.layouts.attempt import UNKNOWN
from grader.submissions.notes import printable_text
from grader.submissions.reader import messages
from grader.submissions.reader.exchange import (
    NONSENSE,
    ReadingFailed,
    ReadingImpossible,
    ReadingLimits,
)
from grader.submissions.reader.host import readers
from grader.submissions.reader.sharing import require_own_reader
from grader.trees import NotOpened, read_file

METADATA = "submission_metadata.yml"
MAX_BYTES = 64 * 1024 * 1024  # the file also holds the results of all submissions
MAX_DEPTH = 40  # levels; in far deeper files, the parser overflows its stack and ends its process
LIMITS = ReadingLimits(seconds=120, cpu_seconds=100, memory=4 << 30, answer=64 << 20)
YAML_ERRORS = (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, OverflowError)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class SubmissionMetadata:
    """The submitters of a submission, several for a group, and its time if the file has one."""

    submitters: tuple[Person, ...] = ()
    created: datetime | None = None


class UnreadableMetadata(Exception):
    """The file cannot be read; the message says why."""


def read_metadata(path: Path) -> dict[str, SubmissionMetadata]:
    """Return each submission's metadata by its file name, parsed by a reader.

    Raises `UnreadableMetadata`.
    """
    job = messages.ParseMetadata(os.fsencode(path.absolute()))
    try:
        parsed = readers().ask(job, messages.MetadataParsed, [path], limits=LIMITS)
        return {one.file: _from_answer(one) for one in parsed.submissions}
    except (ReadingFailed, ReadingImpossible) as error:
        raise UnreadableMetadata(str(error)) from None
    except ValueError:
        raise UnreadableMetadata(NONSENSE) from None


def _from_answer(parsed: messages.SubmissionParsed) -> SubmissionMetadata:
    people = (
        Person(name=one.name, email=one.email, number=one.number) for one in parsed.submitters
    )
    created = datetime.fromisoformat(parsed.created) if parsed.created else None
    return SubmissionMetadata(tuple(people), created)


def parse(path: Path) -> dict[str, SubmissionMetadata]:
    """Return each submission's metadata by its file name. Raises `UnreadableMetadata`.

    Only a reader calls this: it parses what students have written.
    """
    require_own_reader()
    try:
        data = read_file(path, path.parent, MAX_BYTES)
        _refuse_deep(data)
        found = yaml.load(data, Loader=_RubyLoader)
    except YAML_ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise UnreadableMetadata(f"is not readable YAML{where}") from None
    except NotOpened as error:
        raise UnreadableMetadata(str(error)) from None
    except OSError as error:
        raise UnreadableMetadata(f"cannot be read: {error.strerror}") from None
    if not isinstance(found, dict):
        raise UnreadableMetadata("lists no submissions")
    return {key: _metadata(value) for key, value in found.items() if isinstance(key, str)}


def _refuse_deep(data: bytes) -> None:
    depth = 0
    for event in yaml.parse(data, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UnreadableMetadata("is nested too deeply")


class _RubyLoader(_Loader):  # type: ignore[misc]
    """A safe loader that reads a value of an unknown type as a plain mapping, list or text."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Do nothing for `<<`, because a few merges of merges would fill the memory."""


def _plain_value(loader: Any, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value


def _time_or_text(loader: Any, node: yaml.ScalarNode) -> Any:
    """Return a time, or the text of a time that does not exist."""
    try:
        return loader.construct_yaml_timestamp(node)
    except ValueError:
        return node.value


_RubyLoader.add_multi_constructor("!", _plain_value)
_RubyLoader.add_constructor("tag:yaml.org,2002:timestamp", _time_or_text)


def _metadata(value: Any) -> SubmissionMetadata:
    listed = _get(value, "submitters")
    people = map(_person, listed if isinstance(listed, list) else [])
    known = tuple(person for person in people if person != UNKNOWN)
    return SubmissionMetadata(known, _time(_get(value, "created_at")))


def _get(mapping: Any, key: str) -> Any:
    return mapping.get(f":{key}", mapping.get(key)) if isinstance(mapping, dict) else None


def _person(fields: Any) -> Person:
    name, email, number = (_text(_get(fields, key)) for key in ("name", "email", "sid"))
    return Person(name=name, email=email, number=number)


def _text(value: Any) -> str:
    is_short_number = type(value) is int and value.bit_length() <= 256
    return printable_text(str(value).strip()) if is_short_number or isinstance(value, str) else ""


def _time(value: Any) -> datetime | None:
    """Return a time with its zone; as YAML requires, a time without a zone is UTC."""
    if isinstance(value, dict):  # Ruby on Rails writes a time with a zone as a mapping
        value = value.get("utc")
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.fromisoformat(value.strip())
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
