"""Copies a course's files into a folder in which somebody works.

A file that was changed there is never overwritten. A list in the folder has the hashes of all
files that were brought, so that a later version of the course replaces only files that nobody has
changed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import click
import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from grader import trees
from grader.commands.options import short_path
from grader.errors import RequestError
from grader.files import STATE
from grader.submissions.notes import folded
from grader.trees import NotOpened, link_on_the_way, open_file, read_file, remove_drafts

LIST = ".handed-out.json"  # the hashes of the brought files, by path
NEW = ".new"  # marks the course's version of a file with a conflict, before the suffix
MAX_LIST, MAX_FILE = 4 << 20, 64 << 20  # bytes
MAX_NAMED = 5  # files in one message
ELSEWHERE = "choose another folder"


@dataclass
class Brought:
    """The result of bringing a course into a folder: its files, by what happened to them."""

    written: list[Path] = field(default_factory=list)
    updated: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)  # changed there, but not in the course
    # With the course's version, and whether the course changed; otherwise the file was never
    # brought.
    conflicts: list[tuple[Path, Path, bool]] = field(default_factory=list)

    def echo(self, folder: Path) -> None:
        """Print the result."""
        if self.written:
            click.echo(f"wrote {_files(self.written)} to {short_path(folder)}")
        if self.updated:
            click.echo(f"updated {_files(self.updated)} that nobody had changed")
        if self.kept:
            click.echo(f"left {_files(self.kept)} as they are: they were changed here")
        for mine, new, is_changed in self.conflicts:
            why = "was changed here and in the course" if is_changed else "is not the course's"
            said = f"{short_path(mine)} {why}: it stays as it is,"
            click.echo(f"{said}\n  and the course's version is {short_path(new)}")
        if not (self.written or self.updated or self.conflicts):
            click.echo(f"{short_path(folder)} is up to date")


def templates(folder: str) -> Environment:
    """Return the templates in a folder beside this module, for files that a command writes."""
    return Environment(
        loader=PackageLoader("grader.commands", folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # no escaping: these are not web pages
        trim_blocks=True,
        variable_start_string="<<",  # `{{` is taken: workflows and Python use braces themselves
        variable_end_string=">>",
    )


def bring(files: Mapping[str, bytes], folder: Path) -> Brought:
    """Write files into a folder, by their paths there; files that were changed there stay.

    Nothing is written if a link, a pipe or a folder is in the way. If this is interrupted, every
    file is the old one or the new one, and the list has the hashes of both, so that the next run
    takes neither for a change.
    """
    before, there = _brought_before(folder), _hashes_of(files, folder)
    brought, after = Brought(), {**before, **{name: {_hash(files[name])} for name in files}}
    writes, beside = dict[str, bytes](), dict[str, bytes]()
    for name, content in files.items():
        path, known, new = folder / name, before.get(name, set()), _hash(content)
        if there[name] is None or (there[name] in known and there[name] != new):
            writes[name] = content
            (brought.updated if there[name] else brought.written).append(path)
        elif there[name] != new and known == {new}:
            brought.kept.append(path)
        elif there[name] != new:
            other = path.with_name(f"{path.stem}{NEW}{path.suffix}")
            beside[other.relative_to(folder).as_posix()] = content
            brought.conflicts.append((path, other, bool(known)))
    _hashes_of(beside, folder)
    _remove_drafts({(folder / name).parent for name in (*files, LIST)}, folder)
    if writes:
        both = {name: before.get(name, set()) | after[name] for name in writes}
        _write_list(before | both, folder)
    for name, content in (writes | beside).items():
        write_file(folder / name, folder, content)
    if writes or after != before:
        _write_list(after, folder)
    return brought


def _brought_before(folder: Path) -> dict[str, set[str]]:
    """Return the hashes of the files brought before, by path; raise `RequestError` if damaged."""
    path, why = folder / LIST, "is damaged"
    try:
        data = read_file(path, folder, MAX_LIST)
        listed = msgspec.json.decode(data, type=dict[str, str | list[str]])
        return {name: {of} if isinstance(of, str) else {*of} for name, of in listed.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except NotOpened as error:
        why = str(error)
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    except (ValueError, RecursionError, msgspec.MsgspecError):
        pass
    problem = f"{path} {why}; it lists the files that were brought here, so nothing was written"
    remedy = (
        f"git -C {short_path(folder)} checkout -- {LIST}   restores it; or remove it and run "
        "the command again: files that differ stay, and the course's are put beside them"
    )
    raise RequestError(problem, remedy)


def _write_list(hashes: Mapping[str, set[str]], folder: Path) -> None:
    plain = {name: sorted(of) if len(of) > 1 else next(iter(of), "") for name, of in hashes.items()}
    listed = msgspec.json.format(msgspec.json.encode(plain, order="sorted"))
    write_file(folder / LIST, folder, listed + b"\n")


def _hashes_of(names: Iterable[str], folder: Path) -> dict[str, str | None]:
    """Return the hashes of files in a folder; None for a missing file.

    Raises `RequestError` with the names of everything in the way that is not a file.
    """
    hashes, refused = dict[str, str | None](), dict[Path, str]()
    for name in names:
        try:
            with open_file(folder / name, folder) as file:
                hashes[name] = _hash(file.read(MAX_FILE))
        except FileNotFoundError:
            hashes[name] = None
        except NotOpened as error:
            place = link_on_the_way(folder / name, folder) or folder / name
            refused[place] = f"{short_path(place)} {error}"
        except OSError as error:
            raise RequestError(f"{error.filename}: {error.strerror}", ELSEWHERE) from None
    if refused:
        problem = f"{folded([*refused.values()], MAX_NAMED)}; so nothing was written"
        raise RequestError(problem, "remove it, and call this again")
    return hashes


def _remove_drafts(folders: Iterable[Path], within: Path) -> None:
    """Remove the drafts of a run that was killed."""
    for folder in folders:
        with contextlib.suppress(OSError, NotOpened):
            remove_drafts(folder, within)


def write_file(path: Path, within: Path, content: bytes, remedy: str = ELSEWHERE) -> None:
    """Write a file in a folder, through no link; raises `RequestError` with the remedy."""
    with explained(path, within, remedy):
        trees.write_file(path, within, content)


def keep_copy(path: Path, within: Path, root: Path, *, unless: bytes) -> Path | None:
    """Copy a file into `.grader/kept/` of `root`, with the time in its name; return the copy.

    Nothing is copied if there is no file, or if its text is `unless`, with any line endings.
    """
    with explained(path, within):
        try:
            content = read_file(path, within, MAX_FILE)
        except FileNotFoundError:
            return None
        if _hash(content) == _hash(unless):
            return None
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
        copy = root / STATE / "kept" / f"{path.stem}-{stamp}{path.suffix}"
    with explained(copy, root):
        trees.write_file(copy, root, content, private=True)
    return copy


@contextlib.contextmanager
def explained(path: Path, within: Path, remedy: str = ELSEWHERE) -> Iterator[None]:
    """Raise `RequestError` with a remedy for a file that cannot or must not be written."""
    try:
        yield
    except NotOpened as error:
        place = short_path(link_on_the_way(path, within) or path)
        raise RequestError(f"{place} {error}", "remove it, and call this again") from None
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", remedy) from None


def _hash(content: bytes) -> str:
    """Return a hash that does not depend on line endings, because git may rewrite them."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _files(paths: list[Path]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"
