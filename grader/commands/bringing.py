"""Bringing a course's files into a folder where somebody works, or will work.

A file that was changed there is never overwritten. What was brought before is kept in a list beside
it, so that a later version of the course replaces what nobody has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click
import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from grader.commands.options import short_path
from grader.errors import RequestError

LIST = ".handed-out.json"  # what was brought, by path, as hashes
NEW = ".new"  # stands before the suffix of a new version that has a conflict


@dataclass
class Brought:
    """The files of a folder after a course was brought there, by what happened to them."""

    written: list[Path] = field(default_factory=list)
    updated: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)  # changed there, and not in the course
    conflicts: list[tuple[Path, Path]] = field(default_factory=list)  # with the new version

    def echo(self, folder: Path) -> None:
        """Say what happened."""
        if self.written:
            click.echo(f"wrote {_files(self.written)} to {short_path(folder)}")
        if self.updated:
            click.echo(f"updated {_files(self.updated)} that nobody had changed")
        if self.kept:
            click.echo(f"left {_files(self.kept)} as they are: they were changed here")
        for mine, new in self.conflicts:
            said = f"{short_path(mine)} was changed here and in the course: it stays as it is,"
            click.echo(f"{said}\n  and the course's version is {short_path(new)}")
        if not (self.written or self.updated or self.conflicts):
            click.echo(f"{short_path(folder)} is up to date")


def templates(folder: str) -> Environment:
    """Return the templates of files that a command writes, by their folder beside it."""
    return Environment(
        loader=PackageLoader("grader.commands", folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # they are no pages of the web
        trim_blocks=True,
        variable_start_string="<<",  # workflows and Python have braces of their own
        variable_end_string=">>",
    )


def bring(files: Mapping[str, bytes], folder: Path) -> Brought:
    """Write files into a folder, by their paths there; what was changed there stays as it is."""
    before, brought = _brought_before(folder), Brought()
    for name, content in files.items():
        path = folder / name
        old, new = before.get(name), _hash(content)
        there = _hash_of(path)
        if there is None:
            write_file(path, content)
            brought.written.append(path)
        elif there == new:
            pass
        elif there == old:
            write_file(path, content)
            brought.updated.append(path)
        elif old in (None, new):
            brought.kept.append(path)
        else:
            beside = path.with_name(f"{path.stem}{NEW}{path.suffix}")
            write_file(beside, content)
            brought.conflicts.append((path, beside))
    hashes = {**before, **{name: _hash(content) for name, content in files.items()}}
    listed = msgspec.json.format(msgspec.json.encode(hashes, order="sorted"))
    write_file(folder / LIST, listed + b"\n")
    return brought


def _brought_before(folder: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / LIST).read_bytes(), type=dict[str, str])
    return {}


def write_file(path: Path, content: bytes, remedy: str = "choose another folder") -> None:
    """Write a file, and make the folders that it needs; raises `RequestError` with the remedy."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", remedy) from None


def _hash_of(path: Path) -> str | None:
    """Return the hash of a file; None if there is none."""
    try:
        return _hash(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}", "choose another folder") from None


def _hash(content: bytes) -> str:
    """Return a hash that does not change with the ends of lines, which git may rewrite."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _files(paths: list[Path]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"
