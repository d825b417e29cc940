"""A CSV file as the places of its fields: what is not filled in stays as it is, byte for byte.

Knows RFC 4180 and what spreadsheets make of it, but neither students nor platforms.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from grader.errors import RequestError

BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
DELIMITERS = (b",", b";", b"\t")
AS_UTF_8 = "export it again as CSV in UTF-8"
_HEADER = re.compile(rb'[\r\n]*(?:"[^"]*+"|[^"\r\n])*+')
_END = re.compile(rb"\r\n|\r|\n")
_QUOTED = re.compile(rb'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Field:
    """The bytes `start` to `end` of a file: one field, with its quotes."""

    start: int
    end: int


Record = tuple[Field, ...]


@dataclass(frozen=True)
class Table:
    """A CSV file in UTF-8, and where its fields are. Empty lines are no records."""

    data: bytes
    delimiter: bytes
    header: Record
    records: tuple[Record, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """What the columns are called."""
        return tuple(self.text(field).strip() for field in self.header)

    def text(self, field: Field) -> str:
        """What a field says."""
        raw = self.data[field.start : field.end]
        if raw.startswith(b'"'):
            raw = raw[1:-1].replace(b'""', b'"')
        return raw.decode()

    def cell(self, record: Record, column: int | None) -> str:
        """What a record says in a column, without the spaces around it; "" if it has no such."""
        if column is None or column >= len(record):
            return ""
        return self.text(record[column]).strip()

    def line(self, field: Field) -> int:
        """The number of the line in which a field starts, from 1."""
        return bisect_right(self._ends, field.start) + 1

    @cached_property
    def _ends(self) -> list[int]:
        """Where lines end. Kept, since every student's line is asked for."""
        return [found.end() for found in _END.finditer(self.data)]

    def filled(self, cells: Mapping[Field, str]) -> bytes:
        """The file with other texts in some fields, quoted if the old one was or it must be."""
        pieces, done = [], 0
        for field in sorted(cells, key=lambda field: field.start):
            was_quoted = self.data[field.start : field.start + 1] == b'"'
            pieces += [self.data[done : field.start], self._written(cells[field], was_quoted)]
            done = field.end
        return b"".join([*pieces, self.data[done:]])

    def _written(self, text: str, quoted: bool) -> bytes:
        raw = text.encode()
        if quoted or any(mark in raw for mark in (self.delimiter, b'"', b"\r", b"\n")):
            return b'"' + raw.replace(b'"', b'""') + b'"'
        return raw


def read(data: bytes) -> Table:
    """The fields of a file; raises `RequestError` where it is not CSV in UTF-8."""
    if data.startswith(UTF_16) or b"\0" in data[:1000]:
        raise RequestError("the gradebook is written in UTF-16", AS_UTF_8)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = _line(data, error.start)
        raise RequestError(f"the gradebook is not UTF-8 (line {line})", AS_UTF_8) from None
    delimiter = _delimiter(data)
    header, *records = (r for r in _records(data, delimiter) if len(r) > 1 or _is_filled(r[0]))
    return Table(data, delimiter, header, tuple(records))


def _is_filled(field: Field) -> bool:
    return field.start < field.end


def _delimiter(data: bytes) -> bytes:
    """What the header has most of outside its quotes."""
    header = _HEADER.match(data, _start(data))
    bare = _QUOTED.sub(b"", header[0]) if header else b""
    best = max(DELIMITERS, key=bare.count)
    if best not in bare:
        raise RequestError(
            "the gradebook has no columns: nothing in its first line is parted by commas, "
            "semicolons or tabs",
            "give the CSV file as it was downloaded",
        )
    return best


def _start(data: bytes) -> int:
    return len(BOM) if data.startswith(BOM) else 0


def _records(data: bytes, delimiter: bytes) -> Iterator[Record]:
    mark = re.escape(delimiter)
    step = re.compile(
        rb'("[^"]*+(?:""[^"]*+)*+"|(?!")[^\r\n' + mark + rb"]*+)(" + mark + rb"|\r\n|\r|\n|\Z)"
    )
    at = _start(data)
    record: list[Field] = []
    while at < len(data) or record:
        found = step.match(data, at)
        if found is None:
            raise RequestError(
                f"the gradebook is not CSV: line {_line(data, at)} has a quote that does not end "
                "with its field",
                "download it again",
            )
        record.append(Field(*found.span(1)))
        at = found.end()
        if found[2] != delimiter:
            yield tuple(record)
            record = []


def _line(data: bytes, at: int) -> int:
    return 1 + len(_END.findall(data, 0, at))
