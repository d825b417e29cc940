"""Pages with students' code, for teachers alone: one student's, and two side by side."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import browser
import pytest
from browser import PHONE, Scheme, Tab
from classroom import TINY, Instant, hand_in
from commandline import Cli
from made_reports import diagnosed, outcome
from test_similarity import program

from grader.classroom import publishing
from grader.classroom.code_views import _line, view_of
from grader.report import ExerciseResult, Frame, Outcome
from grader.reports import code
from grader.sandbox.cells import CELL
from grader.submissions.submission import Submission

HOSTILE = (
    "# 3 points </pre><script>document.title='owned'</script>\nx = '<img src=x onerror=f()>'\n"
)
LONG = program(1)


def batch(cli: Cli, folder: Path, *options: object) -> Path:
    out = folder.parent / "out"
    cli("batch", folder, "--out", out, "--course", TINY, "--seed", 5, *options)
    return out


def test_each_student_has_a_page_with_code_beside_the_verdict(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {"s001/scale.py": HOSTILE, "s002/scale.py": "# 8 points\n"}
    out = batch(cli, hand_in(tmp_path / "class", texts))
    page = out / "code" / "s001.html"
    text = page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert text.count("<script") == 1  # our own
    assert "<img" not in text
    assert "onerror" in text  # as text
    assert 'id="e1-1"' in text  # the line that failed is marked, and a link leads there
    assert 'href="#e1-1"' in text
    assert "All of it." in text
    assert "3 of 8 points" in text
    assert "Every check passes." in (out / "code" / "s002.html").read_text()
    index = (out / "index.html").read_text()
    assert "./code/s001.html" in index
    for own in (out / "reports").iterdir():
        assert "code/" not in own.read_text()


def test_a_page_that_cannot_be_made_costs_no_report(
    cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = publishing.view_of

    def planted(report, submission):  # type: ignore[no-untyped-def]
        assert report.submission != "s001", "planted"
        return real(report, submission)

    monkeypatch.setattr(publishing, "view_of", planted)
    texts = {"s001/scale.py": "# 3 points\n", "s002/scale.py": "# 5 points\n"}
    out = batch(cli, hand_in(tmp_path / "class", texts))
    assert "This code cannot be shown" in (out / "code" / "s001.html").read_text()
    assert (out / "reports" / "s001.html").is_file()
    assert "# 5" in re.sub("<[^>]*>", "", (out / "code" / "s002.html").read_text())


@pytest.mark.slow
def test_two_similar_submissions_are_shown_side_by_side(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    own = "".join(f"mine = [{at}, 'a', {at}]\n" for at in range(3))
    lines = len(LONG.splitlines())
    texts = {
        "s001/scale.py": f"# 3 points\n{own}{LONG}",
        "s002/scale.py": f"# 4 points\n{LONG}{HOSTILE}",
        **{f"s{n:03}/scale.py": f"# 5 points\n{program(n)}" for n in range(10, 16)},
    }
    out = batch(cli, hand_in(tmp_path / "class", texts))
    (page,) = (out / "similar").iterdir()
    text = page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "<script" not in text
    left, right = text.split('<pre class="code"')[1:]
    marked = [len(re.findall('class="hll"', side)) for side in (left, right)]
    assert all(lines - 6 <= count <= lines for count in marked)
    assert "./similar/001-1.html" in (out / "index.html").read_text()


def test_pages_of_groups_that_are_no_more_go(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    folder = tmp_path / "class"
    hand_in(folder, {"s001/scale.py": f"# 3 points\n{LONG}", "s002/scale.py": LONG})
    assert list((batch(cli, folder) / "similar").iterdir())
    hand_in(folder, {"s002/scale.py": "x = 1\n"})
    assert not list((batch(cli, folder, "--replace") / "similar").iterdir())


def test_a_pair_that_cannot_be_shown_leaves_its_page_to_no_other(
    cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = publishing.pair_view, []

    def planted(course, exercises, first, second, common):  # type: ignore[no-untyped-def]
        asked.append((first.name, second.name))
        assert len(asked) > 1, "planted"
        return real(course, exercises, first, second, common)

    monkeypatch.setattr(publishing, "pair_view", planted)
    texts = {f"s00{n}/scale.py": f"# {n} points\n{LONG}" for n in (1, 2, 3)}
    out = batch(cli, hand_in(tmp_path / "class", texts))
    index = (out / "index.html").read_text()
    assert len(asked) > 1
    for number, pair in enumerate(asked[1:], 2):
        page = (out / "similar" / f"001-{number}.html").read_text()
        assert all(name in page for name in pair)
        names = re.search(rf'href="\./similar/001-{number}\.html">(.*?)</a>', index)
        assert names is not None
        assert all(name in names[1] for name in pair), names[1]


def whole_pages() -> dict[str, str]:
    """A student's code beside the verdicts, and two students side by side."""
    texts = ("import torch\n\nx = '</pre><script>'\n", "import torch\n" + "y = 1\n" * 30)
    sentence = "Each promise of this exercise holds for inputs of every shape and of any size."
    report = diagnosed(outcome("passed", name="test_y"), outcome(sentence=sentence))
    shown = (code.ShownFile("scale.py", texts[0], report.exercises[0], {"test_x": 3}),)
    pair = code.SharedFile("Scale", texts, ((1,), (1, 3)))
    return {
        "code": code.render(code.CodeView(report, shown)),
        "pair": code.render_pair(code.PairView(("s001", "s002"), (pair,))),
    }


@pytest.mark.slow
@pytest.mark.parametrize("scheme", browser.SCHEMES)
@pytest.mark.parametrize("name", ["code", "pair"])
def test_a_page_with_code_fits_a_phone_and_axe_finds_nothing(
    tab: Tab, tmp_path: Path, name: str, scheme: Scheme
) -> None:
    path = tmp_path / f"{name}.html"
    path.write_text(whole_pages()[name], "utf-8")
    page = tab.open(path.as_uri(), scheme, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert (page.asked, page.said) == ([path.as_uri()], [])
    assert "x = '</pre><script>'" in page.locator("pre").first.inner_text()
    broken, which = browser.accessibility(page, scheme)
    assert broken == 0, which


def test_a_line_of_a_notebook_is_found_in_its_cell() -> None:
    text = f"{CELL}1\nimport torch\n\n{CELL}2\nx = 1\ny = 2\n"
    assert _line(Frame("scale.ipynb, cell 2", 2, "y = 2"), text) == 6
    assert _line(Frame("scale.py", 2, ""), text) == 2
    assert _line(Frame("scale.ipynb, cell 99999999", 2, ""), text) == 2


@pytest.mark.slow
def test_a_huge_file_is_cut() -> None:
    shown = code.lines_of("x = 1\n" * 100_000, ())
    assert len(shown) < 30 * code.MAX_SHOWN


def test_no_character_of_the_code_is_invisible() -> None:
    shown = code.lines_of("x = 1  # a\u202eb\u200bc\x1b[2K\r\ny = 2\n", ())
    assert "a⟨U+202E⟩b⟨U+200B⟩c⟨U+001B⟩[2K" in shown
    assert "⟨U+000D⟩" not in shown


def test_a_line_of_an_imported_exercise_is_no_line_of_this_one() -> None:
    places = {"own": "block.py", "folder": "block/solution.py", "imported": "norm.py"}
    tests = tuple(
        Outcome(name, "All of it.", "failed", 0, 1, where=Frame(file, 3, ""))
        for name, file in {**places, "sheet": "homework.ipynb, cell 1"}.items()
    )
    result = ExerciseResult("block", "Block", 0, 4, "", tests)
    report: Any = SimpleNamespace(exercises=(result,))
    (shown,) = view_of(report, Submission("s001", {"block": "x\n", "norm": "y\n"})).files
    assert shown.lines.keys() == {"own", "folder", "sheet"}
