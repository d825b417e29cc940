"""A teacher's comment stands beside the line it is about, in everything that goes home."""

from __future__ import annotations

import json
import mailbox
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from browser import Tab
from classroom import TINY, Instant, hand_in, report_of, rows
from commandline import Cli

from grader.sandbox.cells import CELL

CODE = "# 5 points\nimport torch\n\n\ndef scale(x, factor):\n    return x + factor\n"
SAID = "Should this be a product?"


def batch(cli: Cli, folder: Path, *more: object) -> Path:
    out = folder.parent / "out"
    cli("batch", folder, "--out", out, "--course", TINY, "--seed", 5, *more)
    return out


def comment(cli: Cli, out: Path, *what: object) -> Any:
    return cli("comment", *what, "--in", out, "--course", TINY)


@pytest.fixture
def graded(cli: Cli, instant: Instant, tmp_path: Path) -> Path:
    texts = {
        "s001/scale.py": CODE,
        "s002/scale.py": f"{CODE}# mine\n",
        "s003/scale.py": "# 8 points\n",
    }
    return batch(cli, hand_in(tmp_path / "class", texts))


def own(out: Path, student: str) -> list[dict[str, Any]]:
    return list(report_of(out, student)["exercises"][0]["comments"])


def test_a_comment_stands_beside_its_line_in_every_report(cli: Cli, graded: Path) -> None:
    before = (graded / "reports" / "s002.html").read_bytes()
    said = comment(cli, graded, "s001", "scale.py:6", SAID)
    assert (said.code, said.err) == (0, "")
    assert f"s001: scale, line 6: {SAID}\n  published: 1 student\n" in said.out
    (found,) = own(graded, "s001")
    assert (found["text"], found["line"]) == (SAID, 6)
    where = found["where"]
    assert (where["file"], where["line"], where["start"]) == ("scale.py", 6, 3)
    assert where["source"] == "    return x + factor"
    page = (graded / "reports" / "s001.html").read_text()
    shown = page.partition("Comments on your code")[2]
    assert "<h4>scale.py, line 6</h4>" in shown
    assert re.search(r'<span class="hll"><span class="lineno">6 </span>.*factor', shown)
    assert f'<p class="comment">{SAID}</p>' in shown
    markdown = (graded / "reports" / "s001.md").read_text()
    assert f"line 6:** {SAID}\n\n```python\n" in markdown
    assert (graded / "reports" / "s002.html").read_bytes() == before
    assert (
        f'<a href="#e1-6">line 6</a>: <bdi class="comment">{SAID}'
        in (graded / "code" / "s001.html").read_text()
    )


def test_a_comment_changes_no_mark(cli: Cli, graded: Path) -> None:
    marks = (graded / "grades.csv").read_bytes()
    told = rows(graded, "SELECT * FROM history")
    comment(cli, graded, "s001", "scale.py:6", SAID)
    assert (graded / "grades.csv").read_bytes() == marks
    assert rows(graded, "SELECT * FROM history") == told
    assert report_of(graded, "s001")["exercises"][0]["adjustment"] is None


def test_a_new_comment_on_a_line_replaces_the_old_one_and_undo_takes_it_back(
    cli: Cli, graded: Path
) -> None:
    page = graded / "reports" / "s001.html"
    before = page.read_bytes()
    comment(cli, graded, "s001", "scale.py:6", "First.")
    comment(cli, graded, "s001", "scale:6", SAID)
    comment(cli, graded, "s001", "scale.py:5", "A good name.")
    assert [each["text"] for each in own(graded, "s001")] == ["A good name.", SAID]
    assert f"scale, line 6: {SAID}\n" in comment(cli, graded, "s001").out
    for line in (5, 6):
        assert comment(cli, graded, "s001", f"scale.py:{line}", "--undo").code == 0
    assert page.read_bytes() == before
    said = comment(cli, graded, "s001", "scale.py:6", "--undo")
    assert (said.code, "there is no comment on line 6" in said.err) == (2, True)


def test_a_phrase_is_kept_for_others(cli: Cli, graded: Path) -> None:
    comment(cli, graded, "s001", "scale.py:6", SAID, "--snippet", "product")
    assert comment(cli, graded, "s002", "scale.py:6", "--snippet", "product").code == 0
    assert [each["text"] for each in own(graded, "s002")] == [SAID]
    assert f"--snippet product: {SAID}" in comment(cli, graded).out
    said = comment(cli, graded, "s002", "scale.py:5", "--snippet", "prodcut")
    assert (said.code, "did you mean `product`?" in said.err) == (2, True)


def test_a_file_holds_many_comments_and_all_are_stored_or_none(cli: Cli, graded: Path) -> None:
    comment(cli, graded, "s003", "scale.py:1", SAID, "--snippet", "product")
    file = graded.parent / "comments.csv"
    file.write_bytes(
        "student;file;line;comment;snippet\r\n"
        "s001;scale.py;6;Größer; \r\ns002;scale.py:5;;;product\r\n".encode("cp1252")
    )
    assert comment(cli, graded, "--file", file).code == 0
    assert [each["text"] for each in own(graded, "s001")] == ["Größer"]
    assert [(each["line"], each["text"]) for each in own(graded, "s002")] == [(5, SAID)]
    file.write_text("student,file,line,comment\ns001,scale.py,1,One.\ns002,scale.py,99,Two.\n")
    said = comment(cli, graded, "--file", file)
    assert (said.code, "line 99 is not in scale.py of s002, which has 7" in said.err) == (2, True)
    assert [each["text"] for each in own(graded, "s001")] == ["Größer"]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (("s0001", "scale.py:1", SAID), "did you mean `s001`?"),
        (("s001", "shift.py:1", SAID), "s001 has no file shift.py"),
        (("s001", "scale.py", SAID), "scale.py is no line of a file"),
        (("s001", "scale.py:0", SAID), "line 0 is not in scale.py"),
        (("s001", "scale.py:1"), "what is the comment?"),
        (("s001", "scale.py:1", " "), "a comment has from 1 to"),
    ],
)
def test_a_wrong_comment_is_refused(
    what: tuple[str, ...], said: str, cli: Cli, graded: Path
) -> None:
    answer = comment(cli, graded, *what)
    assert (answer.code, said in answer.err) == (2, True)
    assert rows(graded, "SELECT count(*) FROM adjustments") == [(0,)]


def test_what_is_handed_in_again_begins_without_the_comments(
    cli: Cli, graded: Path, tmp_path: Path
) -> None:
    comment(cli, graded, "s001", "scale.py:6", SAID)
    hand_in(tmp_path / "class", {"s001/scale.py": CODE.replace("+", "*")})
    batch(cli, tmp_path / "class", "--replace")
    assert own(graded, "s001") == []
    assert f"scale, line 6 of another version: {SAID}" in comment(cli, graded, "s001").out
    hand_in(tmp_path / "class", {"s001/scale.py": CODE})
    batch(cli, tmp_path / "class", "--replace")
    assert [each["text"] for each in own(graded, "s001")] == [SAID]


def test_in_a_notebook_the_student_reads_the_cell(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    cells = [["import torch\n"], ["def scale(x, factor):\n", "    return x + factor\n"]]
    notebook = {
        "cells": [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1, "source": s}
            for s in cells
        ],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip
    out = batch(cli, hand_in(tmp_path / "class", {"s001/scale.ipynb": json.dumps(notebook)}))
    ((stored,),) = rows(out, "SELECT hash FROM submissions")
    assert stored
    page = (out / "code" / "s001.html").read_text()
    shown = re.sub("<[^>]*>", "", page.partition("<pre")[2].partition("</pre>")[0])
    numbers = [line.split()[0] for line in shown.split("\n") if "return x + factor" in line]
    assert CELL.strip() in shown
    said = comment(cli, out, "s001", f"scale.ipynb:{numbers[0]}", SAID)
    assert said.code == 0
    (found,) = own(out, "s001")
    assert (found["where"]["file"], found["where"]["line"]) == ("scale.ipynb, cell 2", 2)
    assert found["where"]["around"].strip() == "".join(cells[1]).strip()
    assert found["where"]["start"] == 1


HOSTILE = "</p><script>document.title='owned'</script> [x](javascript:f()) =1+1 `"


def test_the_text_of_a_teacher_is_text_everywhere(cli: Cli, graded: Path) -> None:
    comment(cli, graded, "s001", "scale.py:6", HOSTILE)
    for page in ("reports/s001.html", "code/s001.html"):
        text = (graded / page).read_text()
        assert "<script>document" not in text
        assert "&lt;script&gt;document" in text
    markdown = (graded / "reports" / "s001.md").read_text()
    assert "<script>document" not in re.sub("`[^`]*`", "", markdown)
    assert "[x](javascript" not in re.sub("`[^`]*`", "", markdown)


def test_code_in_a_comment_is_shown_as_code(cli: Cli, graded: Path) -> None:
    comment(cli, graded, "s001", "scale.py:6", "Is `dim=<1>` right?")
    for page in ("reports/s001.html", "code/s001.html"):
        assert "Is <code>dim=&lt;1&gt;</code> right?" in (graded / page).read_text()


def test_comments_go_home_with_what_return_sends(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    folder = hand_in(tmp_path / "class", {"s001/scale.py": CODE, "s002/scale.py": "# 8 points\n"})
    roster = tmp_path / "class.csv"
    roster.write_text("id,email\ns001,s001@school.example\ns002,s002@school.example\n")
    out = batch(cli, folder, "--roster", roster)
    comment(cli, out, "s001", "scale.py:6", SAID)
    cli("return", "mail", "--from", "team@school.example", "--in", out, "--course", TINY)
    first, second = mailbox.mbox(out / "mails.mbox")
    line = f"Comments on your code:\nscale.py, line 6: {SAID}\n"
    body, page = (part.get_payload(decode=True).decode() for part in first.get_payload())
    assert line in body.replace("\r\n", "\n")
    assert f'<p class="comment">{SAID}</p>' in page
    assert "Comments on your code" not in str(second)


def test_comments_go_home_through_moodle(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    name = "Student One_1234_assignsubmission_file"
    out = batch(cli, hand_in(tmp_path / "class", {f"{name}/scale.py": CODE}), "--layout", "moodle")
    comment(cli, out, "1234", "scale.py:6", f"{SAID} <b>,=1")
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
        "Last modified (submission),Last modified (grade),Feedback comments\n"
        "Participant 1234,Student One,one@school.example,Submitted,,8.00,Yes,-,-,\n"
    )
    place = ("--in", out, "--course", TINY)
    said = cli("return", "moodle", "--worksheet", sheet, "-o", tmp_path / "filled.csv", *place)
    assert said.code == 0
    filled = (tmp_path / "filled.csv").read_text()
    assert "scale.py, line 6: " in filled
    assert ",=1" not in filled  # no formula, wherever the line is cut
    assert "&lt;b&gt;" in filled
    with zipfile.ZipFile(out / "feedback.zip") as archive:
        (page,) = (archive.read(each).decode() for each in archive.namelist())
    assert "<h4>scale.py, line 6</h4>" in page


def test_erasing_a_student_erases_the_comments(cli: Cli, graded: Path) -> None:
    comment(cli, graded, "s001", "scale.py:6", SAID)
    assert cli("erase", "s001", "--in", graded, "--course", TINY, "--yes").code == 0
    assert SAID.encode() not in (graded / "ledger.sqlite").read_bytes()


@pytest.mark.slow
def test_a_click_on_a_line_copies_its_command(cli: Cli, graded: Path, tab: Tab) -> None:
    page = tab.open((graded / "code" / "s002.html").as_uri())
    assert 'grader comment s002 scale.py:12 "…"' in page.inner_text("#copied")
    page.click("#e1-6")
    said = page.inner_text("#copied")
    assert f"grader comment s002 scale.py:6 --in '{graded}' \"\"" in said
    assert (page.asked, page.said) == ([(graded / "code" / "s002.html").as_uri()], [])
