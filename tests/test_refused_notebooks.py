"""A notebook that cannot be imported is refused with a sentence, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commandline import Cli
from marked_notebooks import (
    EXAMPLES,
    answer,
    checks,
    code,
    one_otter,
    raw,
    written,
)

pytestmark = pytest.mark.in_turn


def test_a_notebook_of_r_is_named_as_such(cli: Cli, tmp_path: Path) -> None:
    kernel = {"display_name": "R", "language": "R", "name": "ir"}
    cells = [answer("squares <- function(n) (1:n)^2", "squares")]
    path = written(tmp_path / "notebook.ipynb", *cells, kernelspec=kernel)
    said = cli("import", "nbgrader", path, "--course", tmp_path)
    assert (said.code, "is for a kernel of R" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [({"name": "ir"}, "R"), ({"name": "julia-1.9", "language": "julia"}, "julia")],
)
def test_a_kernel_of_another_language_is_named(
    kernel: dict[str, str], says: str, cli: Cli, tmp_path: Path
) -> None:
    cells = [answer("squares <- function(n) (1:n)^2", "squares")]
    about = {"display_name": "Another", **kernel}
    path = written(tmp_path / "notebook.ipynb", *cells, kernelspec=about)
    said = cli("import", "nbgrader", path, "--course", tmp_path)
    assert (said.code, f"is for a kernel of {says}, and" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "says", "remedy"),
    [
        (["--name", "two words"], "`two words` cannot name a module", "--name my_exercise"),
        (["--name", "class"], "`class` cannot name a module", "--name my_exercise"),
        (["--name", "one"], "--name is for one exercise, and there are 3: q1, q2, q3", "--only q1"),
        (["--only", "q11"], "there is no question `q11`; did you mean `q1`?", "--only q1"),
        (["--only", "q3"], "`q3` uses `q1`, which is not in the course", "--only q1 --only q3"),
        (["--only", "q1", "--name", "scale"], "scale is there already", "--only q1 --name another"),
    ],
)
def test_a_choice_that_does_not_serve_is_refused_before_anything_is_written(
    options: list[str], says: str, remedy: str, cli: Cli, tiny_copy: Path
) -> None:
    before = sorted(tiny_copy.rglob("*"))
    said = cli("import", "otter", EXAMPLES / "otter.ipynb", "--course", tiny_copy, *options)
    assert said.code == 2
    assert says in said.err
    assert f"try: {remedy}" in said.err
    assert sorted(tiny_copy.rglob("*")) == before


UNCLOSED = answer("def f():\n    ### BEGIN SOLUTION\n    return 1", "f")


HIDING = checks("### BEGIN HIDDEN TESTS\nassert f()", "t", 1)


ONE = answer("def f():\n    return 1", "f")


@pytest.mark.parametrize(
    ("format_", "cells", "says"),
    [
        ("nbgrader", [UNCLOSED], "cell 1: `### BEGIN SOLUTION` is not closed"),
        ("nbgrader", [answer("### END SOLUTION", "f")], "cell 1: `### END SOLUTION` closes nothin"),
        ("nbgrader", [ONE, HIDING], "cell 2: `### BEGIN HIDDEN TESTS` is not closed"),
        ("nbgrader", [answer("def f(:", "f")], "cell 1: the answer is no valid Python"),
        ("nbgrader", [checks("assert f()", "t", 1)], "cell 1 tests something, and no cell before"),
        ("nbgrader", [ONE, checks("f()", "t", -2)], "cell 2: -2 are no points"),
        ("nbgrader", [answer("x = 3", "f")], "no answer defines a function or a class"),
        ("nbgrader", [answer("def 数(): return 1", "1a")], "cell 1: `1a` cannot name a module"),
        ("nbgrader", [answer("def Class(): return 1", "1a")], "cell 1: `1a` cannot name a module"),
        ("nbgrader", [ONE, ONE.copy()], "cell 1: `f` names another question, too"),
        ("nbgrader", one_otter(), "no cell that is marked for nbgrader; it looks like one for ott"),
        ("otter", [ONE], "no cell that is marked for otter; it looks like one for nbgrader"),
        ("otter", [code("1 + 1")], "no cell that is marked for otter"),
        ("nbgrader", [code("### BEGIN SOLUTION")], "cell 1 has `BEGIN SOLUTION`, but nothing says"),
        ("otter", one_otter(code("1"))[:7], "cell 6: `# BEGIN TESTS` is not closed"),
        ("otter", one_otter()[:-1], "cell 1: `# BEGIN QUESTION` is not closed"),
        ("otter", [*one_otter()[:3], *one_otter()], "cell 3: `# BEGIN SOLUTION` is not closed"),
        ("otter", [*one_otter(), raw("# END TESTS")], "cell 7: `# END TESTS` closes nothing"),
        ("otter", one_otter(settings="name: [q1"), "cell 1: the settings are no valid YAML"),
        ("otter", one_otter(settings="q1"), "cell 1: the settings are no `key: value` lines"),
        ("otter", one_otter(code('""" # BEGIN TEST CONFIG\nx')), 'cell 7: `""" # BEGIN TEST CON'),
        (
            "otter",
            one_otter(solution="# BEGIN IGNORE\n1"),
            "cell 4: `# BEGIN IGNORE` is not closed",
        ),
        (
            "otter",
            [raw("# BEGIN TESTS"), *one_otter()],
            "cell 1: `# BEGIN TESTS` stands in no ques",
        ),
    ],
)
def test_a_broken_notebook_is_refused_with_the_number_of_the_cell(
    format_: str, cells: list[Any], says: str, cli: Cli, tmp_path: Path
) -> None:
    path = written(tmp_path / "notebook.ipynb", *cells)
    said = cli("import", format_, path, "--course", tmp_path)
    assert said.code == (2 if says else 0)
    assert says in said.err
    assert ("try: " in said.err) == bool(says)
    assert (tmp_path / "reference").exists() == (not says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not a readable notebook"),
        (b"print(1)", "is not a readable notebook"),
        (b"[]", "is not a readable notebook"),
        (b"\xff\xfe", "is not UTF-8"),
        (b'{"nbformat": 9}', "its format has version 9"),
        (b"[" * 100_000, "is not a readable notebook"),
        (None, "there is no file"),
    ],
)
def test_what_is_no_notebook_is_refused(
    content: bytes | None, says: str, cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "notebook.ipynb"
    if content is not None:
        path.write_bytes(content)
    said = cli("import", "nbgrader", path, "--course", tmp_path)
    assert (said.code, says in said.err) == (2, True)


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("submissions.notebook.MAX_CODE", "of code"),
        ("submissions.notebook.MAX_CELLS", "holds more than 1 cells"),
        ("commands.importing.MAX_TEXT", "of text"),
        ("commands.importing.MAX_NOTEBOOK_BYTES", "has more than"),
    ],
)
def test_a_notebook_without_bounds_is_refused(
    limit: str, says: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"grader.{limit}", 1)
    said = cli("import", "otter", EXAMPLES / "otter.ipynb", "--course", tmp_path)
    assert (said.code, says in said.err) == (2, True)
