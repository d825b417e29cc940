"""Teachers' CSV files: in any usual encoding, with any usual delimiter."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from grader.errors import RequestError
from grader.files import read_bounded
from grader.submissions.notes import printable_name

MAX_BYTES = 16 * 1024 * 1024
DELIMITERS = ",;\t"
WORKBOOK = b"PK\x03\x04"  # the beginning of a zip, which a workbook of Excel is
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
SAVE_AS = "save it as CSV in UTF-8"
_SEPARATOR = re.compile(r'\A"?sep=(?P<mark>[^\r\n])"?(?=[\r\n]|\Z)', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')


def read_lines(path: Path, option: str, expected: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not empty, stripped and printable.

    `option` names the file on the command line, and `expected` describes its content. Raises
    `RequestError` that names the file, and the line if it is not valid CSV.
    """
    text = _text(path, option)
    separator = _SEPARATOR.match(text)  # Excel writes it, and reads it
    text = text[separator.end() :] if separator else text
    delimiter = separator["mark"] if separator else _delimiter(text)
    # Strict, because a quote that nobody closes would make one cell of all following lines.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins = 1
    try:
        for cells in reader:
            begins = reader.line_num + 1
            stripped = [printable_name(cell.strip()) for cell in cells]
            if any(stripped):
                yield reader.line_num, stripped
    except csv.Error as error:
        says = f"{path}:{begins}: this is not valid CSV ({error})"
        raise RequestError(f"{says}; is a quote not closed?", expected) from None


def _delimiter(text: str) -> str:
    first = _QUOTED.sub("", text.lstrip().partition("\n")[0])
    return max(DELIMITERS, key=first.count)


def _text(path: Path, option: str) -> str:
    try:
        data = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}", f"{option} FILE") from None
    if data.startswith(WORKBOOK):
        raise RequestError(f"{path} is a workbook, not a CSV file", SAVE_AS)
    for encoding in ("utf-16",) if data.startswith(UTF_16) else ("utf-8-sig", "cp1252"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise RequestError(f"{path} is not text in UTF-8, UTF-16 or Windows-1252", SAVE_AS)
