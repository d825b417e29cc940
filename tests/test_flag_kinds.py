"""Flags are grouped by their kind: what differs only in names is one reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from classroom import Instant, hand_in, run
from commandline import Cli

from grader.reports.flags import kind_of

NAMES = ("scale (1)", "Scale", "scale_final", "scale-v2", "copy of scale", "my `scale`")


def test_files_with_twelve_names_are_one_reason_on_the_page_of_the_class(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    for number, name in enumerate(NAMES, start=1):
        hand_in(tmp_path / "class", {f"s00{number}/{name}.py": "# 6 points\nx = 1\n"})
    hand_in(tmp_path / "class", {"s007/scale.py": "# 6 points\n", "s007/work.7z": "x"})
    assert run(cli, tmp_path).code == 1
    page = (tmp_path / "out/index.html").read_text()
    section = page.partition('id="flagged"')[2].partition("</section>")[0]
    reasons = re.findall(r"<li><bdi>(.*?)</bdi>.*?(\d+) student", section)
    assert reasons == [
        ("… was used for … because its name nearly fits; needs review", "6"),
        (
            "<code>work.7z</code> is an archive that is not opened here (zip the files instead) "
            "and was left out; needs review",
            "1",
        ),
    ]
    assert "my &#39;scale&#39;.py" not in section  # whose file it is stands beside the student
    assert "`my 'scale'.py` was used for scale" in page


@pytest.mark.parametrize(
    ("flag", "kind"),
    [
        ("`a.py`, `b.py` and `c.py` could each be meant for scale", "… could each be meant for …"),
        ("edits are not committed: `a.py`, and 3 more", "edits are not committed: …"),
        (
            "scale counts 9 of 8 points, as it was adjusted",
            "… counts … of … points, as it was adjusted",
        ),
        ("`a.py` is not UTF-8: byte 0xff in line 31", "… is not UTF-8: byte … in line …"),
        (
            "the grader failed here (KeyError: rescale)",
            "the grader failed here (KeyError: rescale)",
        ),
    ],
)
def test_a_kind_has_neither_names_nor_numbers(flag: str, kind: str) -> None:
    assert kind_of(flag, ["scale"]) == kind
