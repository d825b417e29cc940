"""A CSV file as positions of fields, so that unfilled fields stay the same, byte for byte.

This module knows RFC 4180 and what spreadsheets write, but neither students nor platforms.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from grader.errors import RequestError

BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
DELIMITERS = (b",", b";", b"\t")
AS_UTF_8 = "export it again as CSV in UTF-8"
_HEADER = re.compile(rb'[\r\n]*(?>(?:"[^"]*+"|[^"\r\n]++)*)')
_LINE_END = re.compile(rb"\r\n|\r|\n")
_QUOTED = re.compile(rb'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Field:
    """The bytes `start` to `end` of a file: one field with its quotes."""

    start: int
    end: int


CsvRecord = tuple[Field, ...]


@dataclass(frozen=True)
class Table:
    """A CSV file in UTF-8 and the positions of its fields. Empty lines are no records."""

    data: bytes
    delimiter: bytes
    header: CsvRecord
    records: tuple[CsvRecord, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.text(field).strip() for field in self.header)

    def text(self, field: Field) -> str:
        """Return a field's text, without its quotes."""
        raw = self.data[field.start : field.end]
        return (raw[1:-1].replace(b'""', b'"') if raw.startswith(b'"') else raw).decode()

    def cell(self, record: CsvRecord, column: int | None) -> str:
        """Return a record's text in a column, stripped; "" if it has no such column."""
        if column is None or column >= len(record):
            return ""
        return self.text(record[column]).strip()

    def line(self, field: Field) -> int:
        """Return the number of the line in which a field starts, from 1."""
        return bisect_right(self._line_ends, field.start) + 1

    @cached_property
    def _line_ends(self) -> list[int]:
        """The positions of line ends; cached, because every student's line is looked up."""
        return [found.end() for found in _LINE_END.finditer(self.data)]

    def filled(
        self, cells: Mapping[Field, str], more: Mapping[CsvRecord, Sequence[str]] | None = None
    ) -> bytes:
        """Return the file with new texts in some fields, quoted like the old ones or if needed.

        `more` are the cells of new columns, by the record at whose end they are added. A record
        that ends before the last column is filled up before.
        """
        edits = [*self._replaced(cells), *self._added(more or {})]
        pieces, done = [], 0
        for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
            pieces += [self.data[done:start], new]
            done = end
        return b"".join([*pieces, self.data[done:]])

    def _replaced(self, cells: Mapping[Field, str]) -> Iterator[tuple[int, int, bytes]]:
        for field, text in cells.items():
            was_quoted = self.data[field.start : field.start + 1] == b'"'
            yield field.start, field.end, self._encoded(text, was_quoted)

    def _added(self, more: Mapping[CsvRecord, Sequence[str]]) -> Iterator[tuple[int, int, bytes]]:
        for record, texts in more.items():
            end, absent = record[-1].end, max(0, len(self.header) - len(record))
            new = [b"" for _ in range(absent)] + [self._encoded(text, False) for text in texts]
            yield end, end, b"".join(self.delimiter + cell for cell in new)

    def _encoded(self, text: str, quoted: bool) -> bytes:
        raw = text.encode()
        if quoted or any(mark in raw for mark in (self.delimiter, b'"', b"\r", b"\n")):
            return b'"' + raw.replace(b'"', b'""') + b'"'
        return raw


def read_table(data: bytes) -> Table:
    """Find the fields of a file; raise `RequestError` if it is not CSV in UTF-8."""
    if data.startswith(UTF_16) or b"\0" in data[:1000]:
        raise RequestError("the gradebook is written in UTF-16", AS_UTF_8)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = _line_at(data, error.start)
        raise RequestError(f"the gradebook is not UTF-8 (line {line})", AS_UTF_8) from None
    delimiter = _delimiter(data)
    header, *records = (r for r in _records(data, delimiter) if len(r) > 1 or r[0].start < r[0].end)
    return Table(data, delimiter, header, tuple(records))


def _delimiter(data: bytes) -> bytes:
    header = _HEADER.match(data, _start(data))
    bare = _QUOTED.sub(b"", header[0]) if header else b""
    best = max(DELIMITERS, key=bare.count)
    if best not in bare:
        raise RequestError(
            "the gradebook has no columns: its first line holds no commas, semicolons or tabs",
            "pass the CSV file as it was downloaded",
        )
    return best


def _start(data: bytes) -> int:
    return len(BOM) if data.startswith(BOM) else 0


def _records(data: bytes, delimiter: bytes) -> Iterator[CsvRecord]:
    mark = re.escape(delimiter)
    step = re.compile(
        rb'("[^"]*+(?>(?:""[^"]*+)*)"|(?!")[^\r\n' + mark + rb"]*+)(" + mark + rb"|\r\n|\r|\n|\Z)"
    )
    at = _start(data)
    record: list[Field] = []
    while at < len(data) or record:
        found = step.match(data, at)
        if found is None:
            raise RequestError(
                f"the gradebook is not valid CSV: line {_line_at(data, at)} has a quote that does "
                "not end with its field",
                "download it again",
            )
        record.append(Field(*found.span(1)))
        at = found.end()
        if found[2] != delimiter:
            yield tuple(record)
            record = []


def _line_at(data: bytes, at: int) -> int:
    return 1 + len(_LINE_END.findall(data, 0, at))
