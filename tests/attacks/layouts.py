"""Attacks that are more than one file: what a submission's folder or zip may hold."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

from attacks.corpus import KIT, RIGHT, Fill

ALL_PASS = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""


def _files(folder: Path, name: str, fill: Fill, **files: str) -> Path:
    home = folder / name
    home.mkdir()
    for file, text in {"blend": KIT, **files}.items():
        path = home / f"{file}.py"
        path.write_text(fill(text), "utf-8")
    return home


def _zip(folder: Path, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED)


def conftest(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: a conftest.py that reports every test as passed."""
    _files(folder, name, fill, conftest=ALL_PASS)


def pytest_ini(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: a pytest.ini that collects other tests and adds a plugin."""
    home = _files(folder, name, fill, helpful=ALL_PASS)
    (home / "pytest.ini").write_text("[pytest]\naddopts = -p helpful\npython_files = none.py\n")
    (home / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-p helpful"\n')


def sitecustomize(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: a sitecustomize.py, which Python runs first."""
    spy = 'open("@DROP@/customized", "a").write("here")\n'
    _files(folder, name, fill, sitecustomize=spy, usercustomize=spy)


def shadow_modules(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: modules named torch, pytest, json and grader."""
    shadow = 'open("@DROP@/shadowed", "a").write(__name__)\n'
    names = ("torch", "pytest", "json", "grader", "reference_blend", "test_hidden")
    _files(folder, name, fill, **dict.fromkeys(names, shadow))


def pth_file(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: a .pth file that runs a line whenever Python starts."""
    home = _files(folder, name, fill)
    (home / "run.pth").write_text(fill('import os; open("@DROP@/pth", "w").write("x")\n'))


def public_tests(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: own tests in the place of the hidden ones."""
    nothing = "def test_values(): pass\n"
    home = _files(folder, name, fill, test_hidden=nothing, test_blend=nothing)
    (home / "tests").mkdir()
    (home / "tests" / "test_hidden.py").write_text(nothing)


def symbolic_link(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a link to the reference solution."""
    (folder / name).mkdir()
    (folder / name / "blend.py").symlink_to(fill.path("reference"))


def linked_folder(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a link to another student's."""
    (folder / name).symlink_to(fill.path("neighbour").parent)


def hard_link(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a hard link to the reference solution."""
    (folder / name).mkdir()
    os.link(fill.path("reference"), folder / name / "blend.py")


def fifo(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a FIFO that nobody writes to."""
    (folder / name).mkdir()
    os.mkfifo(folder / name / "blend.py")


def device(folder: Path, name: str, fill: Fill) -> None:
    """As the work: an endless device, or a link to it."""
    (folder / name).mkdir()
    try:
        os.mknod(folder / name / "blend.py", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        (folder / name / "blend.py").symlink_to("/dev/zero")


def folder_for_a_file(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a folder and a package."""
    (folder / name / "blend.py").mkdir(parents=True)
    (folder / name / "blend").mkdir()
    (folder / name / "blend" / "__init__.py").write_text(fill(KIT))


def huge_file(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a sparse file of four gigabytes."""
    _files(folder, name, fill)
    os.truncate(folder / name / "blend.py", 2**32)


def deep_source(folder: Path, name: str, fill: Fill) -> None:
    """In the work: brackets nested until a parser gives up."""
    _files(folder, name, fill, blend="softmax = " + "(" * 100_000 + ")" * 100_000)


def long_expression(folder: Path, name: str, fill: Fill) -> None:
    """In the work: an expression of a hundred thousand operators."""
    _files(folder, name, fill, blend="softmax = " + "-" * 100_000 + "1")


def attribute_chain(folder: Path, name: str, fill: Fill) -> None:
    """In the work: a chain of attributes, endless to resolve."""
    chain = "import torch as softmax\nnever = lambda: softmax" + ".b" * 2000 + "\n"
    _files(folder, name, fill, blend=KIT + chain)


def growing_name(folder: Path, name: str, fill: Fill) -> None:
    """In the work: a name whose resolution grows with every line."""
    growing = "def never():\n    import torch as softmax\n" + "    softmax = softmax.b\n" * 20_000
    _files(folder, name, fill, blend=KIT + growing)


def notebook_of_magics(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a notebook of long cells full of magics."""
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    source = "a," * 9000 + "\n" + "%x\n" * 49
    cells = [{**cell, "id": f"c{number}", "source": source} for number in range(100)]
    (folder / name).mkdir()
    (folder / name / "blend.ipynb").write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    )


def null_bytes(folder: Path, name: str, fill: Fill) -> None:
    """As the work: null bytes, and bytes that are not UTF-8."""
    _files(folder, name, fill)
    (folder / name / "blend.py").write_bytes(b"softmax\x00\xff\xfe" * 1000)


def strange_names(folder: Path, name: str, fill: Fill) -> None:
    """File names of terminal controls, markup, formulas and broken text."""
    home = _files(folder, name, fill)
    for odd in (b"\x1b[2J.py", b"<img src=x onerror=alert(1)>.py", b"=1+1.py", b"\xff\xfe.py"):
        (Path(os.fsdecode(os.fsencode(home) + b"/" + odd))).write_text("pass")


def many_folders(folder: Path, name: str, fill: Fill) -> None:
    """As the work: a labyrinth of a thousand folders."""
    for number in range(1000):
        (folder / name / f"{number % 10}" / f"{number}").mkdir(parents=True)


def bytecode(folder: Path, name: str, fill: Fill) -> None:
    """Beside the work: bytecode of another text."""
    import py_compile

    home = _files(folder, name, fill, planted=RIGHT)
    (home / "__pycache__").mkdir()
    py_compile.compile(
        str(home / "planted.py"),
        cfile=str(home / "__pycache__" / "blend.cpython-311.pyc"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    (home / "planted.py").unlink()


def zip_bomb(folder: Path, name: str, fill: Fill) -> None:
    """A zip: of kilobytes that unpacks to half a gigabyte."""
    with (
        _zip(folder, name) as archive,
        archive.open("blend.py", "w", force_zip64=True) as member,
    ):
        for _ in range(512):
            member.write(bytes(2**20))


def zip_outside(folder: Path, name: str, fill: Fill) -> None:
    """A zip: that writes over another student's work (`..`, absolute paths)."""
    with _zip(folder, name) as archive:
        archive.writestr("blend.py", fill(KIT))
        archive.writestr(
            "../" + fill.path("neighbour").parent.name + "/blend.py", "raise SystemExit"
        )
        archive.writestr(str(fill.path("neighbour")), "raise SystemExit")
        archive.writestr("a/../../" * 5 + "blend.py", "raise SystemExit")


def zip_link(folder: Path, name: str, fill: Fill) -> None:
    """A zip: with a link to the reference solution."""
    with _zip(folder, name) as archive:
        link = zipfile.ZipInfo("blend.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(fill.path("reference")))


def zip_in_zip(folder: Path, name: str, fill: Fill) -> None:
    """A zip: of zips of zips."""
    data = b"pass"
    for _ in range(8):
        with zipfile.ZipFile(folder / "inner", "w", zipfile.ZIP_DEFLATED) as inner:
            for number in range(10):
                inner.writestr(f"{number}.zip", data)
        data = (folder / "inner").read_bytes()
    (folder / "inner").unlink()
    (folder / f"{name}.zip").write_bytes(data)


def zip_of_nothing(folder: Path, name: str, fill: Fill) -> None:
    """A zip: of fifty thousand empty files."""
    with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
        archive.writestr("0.py", b"")
        for number in range(1, 50_000):  # as `writestr` does, in a tenth of the time
            empty = zipfile.ZipInfo(f"{number}.py")
            empty.CRC, empty.header_offset = 0, archive.start_dir
            archive.start_dir += archive.fp.write(empty.FileHeader())
            archive.filelist.append(empty)


def zip_broken(folder: Path, name: str, fill: Fill) -> None:
    """A zip: without its second half."""
    with _zip(folder, name) as archive:
        archive.writestr("blend.py", fill(KIT))
    path = folder / f"{name}.zip"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


LAYOUTS = (
    *(conftest, pytest_ini, sitecustomize, shadow_modules, pth_file, public_tests),
    *(symbolic_link, linked_folder, hard_link, fifo, device, folder_for_a_file, huge_file),
    *(
        deep_source,
        long_expression,
        null_bytes,
        attribute_chain,
        growing_name,
        notebook_of_magics,
        strange_names,
        many_folders,
        bytecode,
    ),
    *(zip_bomb, zip_outside, zip_link, zip_in_zip, zip_of_nothing, zip_broken),
)
