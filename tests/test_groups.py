"""Groups of a class: one hand-in counts for every member."""

from __future__ import annotations

from pathlib import Path

import pytest
from class_lists import (
    batch,
    flags,
    lines,
)
from classroom import TINY, Instant, hand_in, marks, report_of, rows
from commandline import Cli

GROUPS = "group,id\nteam,s001\nteam,s002\nteam,s003\n"


def test_one_hand_in_counts_for_every_member_of_a_group(
    cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    hand_in(tmp_path / "class", {"s002/scale.py": "# 8 points", "s004/scale.py": "# 2 points"})
    listed = (
        "id,name,submitted,due\ns001,Student One,,2026-12-24T18:00+01:00\n"
        "s002,Student Two,2026-11-13T12:00+01:00,\ns003,Student Three,,\n"
        "s004,Student Four,2026-11-12T12:00+01:00,\n"
    )
    said = batch(cli, tmp_path, strict, roster=listed, groups=GROUPS)
    assert "handed in nothing" not in said.err
    assert marks(tmp_path / "out") == {"s001": "8", "s002": "6", "s003": "6", "s004": "2"}
    assert len(instant.jobs) == 2  # each submission once
    assert lines(tmp_path)["s003"]["name"] == "Student Three"
    assert (
        "handed in by s002 (Student Two) for the group team"
        in (report_of(tmp_path / "out", "s003")["notes"])
    )
    assert report_of(tmp_path / "out", "s002")["notes"] == []
    assert [flags(tmp_path, f"s00{n}") for n in (1, 2, 3)] == [[], [], []]
    why = ("--why", "alone", "--in", tmp_path / "out", "--course", strict)
    cli("adjust", "s003", "scale", "-2", *why)
    assert marks(tmp_path / "out")["s003"] == "4.5"
    assert marks(tmp_path / "out")["s002"] == "6"


def test_members_of_a_group_are_not_similar_to_each_other(
    cli: Cli, tmp_path: Path, tiny_solution: str, instant: Instant
) -> None:
    own = "".join(f"def helper_{n}(a, b):\n    return [a * {n}, b - {n}]\n" for n in range(9))
    hand_in(tmp_path / "class", {"s001/scale.py": tiny_solution + own})
    batch(cli, tmp_path, groups=GROUPS)
    assert len(marks(tmp_path / "out")) == 3
    alone = (tmp_path / "out" / "index.html").read_text()
    hand_in(tmp_path / "class", {"s002/scale.py": tiny_solution + own})
    batch(cli, tmp_path, TINY, "--replace", groups="group,id\nteam,s003\nteam,s004\n")
    assert "identical" not in alone.lower()
    assert "identical" in (tmp_path / "out" / "index.html").read_text().lower()


def test_of_several_hand_ins_of_a_group_the_latest_counts(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {"s001/scale.py": "# 1 points", "s002/scale.py": "# 2 points"}
    hand_in(tmp_path / "class", texts)
    listed = (
        "id,name,submitted,group\ns001,Student One,2026-11-12T13:00+01:00,team\n"
        "s002,Student Two,2026-11-12T12:00+01:00,team\ns003,Student Three,,team\n"
    )
    said = batch(cli, tmp_path, roster=listed)
    assert set(marks(tmp_path / "out").values()) == {"1"}
    says = (
        "2 hand-ins of one group (team), of s001 (Student One); s002 (Student Two): "
        "the latest counts, that of s001 (Student One)"
    )
    assert says in said.err
    for student in ("s001", "s002", "s003"):
        assert flags(tmp_path, student) == [says]
    submitted = {row["submitted"] for row in lines(tmp_path).values()}
    assert submitted == {"2026-11-12T13:00:00+01:00"}


def test_without_times_the_first_of_a_groups_hand_ins_counts_and_is_flagged(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (2, 3)})
    said = batch(cli, tmp_path, groups=GROUPS)
    says = "no times say which is the latest, so that of s002 counts"
    assert says in said.err
    assert marks(tmp_path / "out") == {"s001": "2", "s002": "2", "s003": "2"}
    assert says in flags(tmp_path, "s003")[0]


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("studenttwo_72_101_scale.py", "group,id\nteam,71\nteam,72\n"),
        ("Student Two_72_assignsubmission_file/scale.py", "group,name\nteam,A\nteam,Student Two\n"),
        ("submission_72/scale.py", "team,participant\nteam,71\nteam,72\n"),
        ("lab-72/.git/HEAD", "group,login\nteam,71\nteam,72\n"),
        ("team/scale.py", "group,id\nTeam,71\nTeam,72\n"),
    ],
)
def test_groups_are_found_in_every_layout(
    name: str, groups: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {name: "# 8 points"})
    if ".git" in name:
        hand_in(tmp_path / "class", {"lab-72/scale.py": "# 8 points"})
        groups = groups.replace(",7", ",lab-7")
    batch(cli, tmp_path, groups=groups)
    assert list(marks(tmp_path / "out").values()) == ["8", "8"]


def test_a_group_that_handed_in_nothing_is_missing(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, groups="group,id,name\nb,s002,Student Two\na,s001,One\n")
    assert "1 handed in nothing: s002 (Student Two)" in said.err


def test_a_member_whose_id_is_no_file_name_gets_reports(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, groups="group,id\nteam,s001\nteam,../index\nteam,index\n")
    found = sorted(marks(tmp_path / "out"))
    assert [name.partition("-")[0] for name in found] == ["_index", "index", "s001"]
    for name in found:
        assert report_of(tmp_path / "out", name)["points"] == 8


def test_a_student_in_two_groups_is_refused(cli: Cli, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, groups="group,id\na,s001\nb,s001\n")
    assert (said.code, "groups.csv:3: `s001` is already in line 2" in said.err) == (2, True)
    said = batch(cli, tmp_path, groups="id\ns001\n")
    assert (said.code, "groups.csv names no groups" in said.err) == (2, True)


def test_sections_that_are_called_groups_are_refused(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 7)})
    listed = "id,group\n" + "".join(f"s00{n},{'ABC'[n % 3]}\n" for n in range(1, 7))
    said = batch(cli, tmp_path, roster=listed)
    assert said.code == 2
    assert "in 3 of 3 groups of the roster, several members handed in" in said.err
    assert "call the column `section`" in said.err
    assert batch(cli, tmp_path, roster=listed, groups=listed).code == 1
    assert set(marks(tmp_path / "out").values()) == {"1", "2", "3"}


def test_groups_are_resumed_and_split_like_the_class(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s002/scale.py": "# 3 points"})
    batch(cli, tmp_path, groups=GROUPS)
    resumed = cli("batch", "--resume", "--out", tmp_path / "out", "--course", TINY)
    assert resumed.code == 1
    assert marks(tmp_path / "out") == {"s001": "3", "s002": "3", "s003": "3"}
    assert rows(tmp_path / "out", "SELECT student, team FROM remarks ORDER BY student") == [
        (f"s00{n}", "team") for n in (1, 2, 3)
    ]
