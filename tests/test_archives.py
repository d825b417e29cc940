"""Archives of students: tars and zips are opened within limits, others are named and flagged."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks, report_of
from commandline import Cli
from handed_in import zipped

from grader.submissions import archives

TINY = Path(__file__).parent / "tiny"
SIX = "# 6 points\n"
WRITTEN = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".TAR.GZ": "w:gz"}


def tarred(path: Path, members: Mapping[str, str | bytes | tarfile.TarInfo]) -> Path:
    """Write a tar of these files, compressed as its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = WRITTEN["." + path.name.partition(".")[2]]
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            data = content if isinstance(content, bytes) else content.encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def batch(cli: Cli, instant: Instant, tmp_path: Path) -> Cli:
    """Grade the class in `class`; s009 is a neighbour whom nothing affects."""
    hand_in(tmp_path / "class", {"s009/scale.py": "# 5 points\n"})

    def grading(*arguments: object) -> dict[str, str]:
        cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY, *arguments)
        points = marks(tmp_path / "out")
        assert points.pop("s009") == "5"
        return points

    return grading  # type: ignore[return-value]


def flags(tmp_path: Path, student: str) -> str:
    return "; ".join(report_of(tmp_path / "out", student)["flags"])


def test_a_zip_made_by_windows_has_folders(tmp_path: Path, batch: Cli) -> None:
    members = {"hw\\": "", "hw\\scale.py": SIX, "hw\\..\\..\\evil.py": SIX, "C:\\evil.py": SIX}
    zipped(tmp_path / "class/s001.zip", members)
    zipped(tmp_path / "class/s002/hw.zip", {"hw\\scale\\solution.py": SIX})
    assert batch() == {"s001": "6", "s002": "6"}
    assert flags(tmp_path, "s001").count("points outside the archive") == 2


def test_a_folder_may_have_a_colon_in_its_name(tmp_path: Path, batch: Cli) -> None:
    zipped(tmp_path / "class/s001.zip", {"Homework 3: scale/scale.py": SIX})
    zipped(tmp_path / "class/s002.zip", {"HW 3:4/scale.py": SIX, "C:/evil.py": SIX})
    assert batch() == {"s001": "6", "s002": "6"}
    assert flags(tmp_path, "s001") == ""
    assert "`C:/evil.py` points outside the archive" in flags(tmp_path, "s002")


def test_a_class_zip_made_by_windows_has_a_folder_for_each_student(
    tmp_path: Path, cli: Cli, instant: Instant
) -> None:
    members = {"class\\s001\\": "", "class\\s001\\scale.py": SIX, "class\\s002\\scale.py": SIX}
    path = zipped(tmp_path / "class.zip", members)
    cli("batch", path, "--out", tmp_path / "out", "--course", TINY)
    assert marks(tmp_path / "out") == {"s001": "6", "s002": "6"}


@pytest.mark.parametrize("suffix", WRITTEN)
def test_a_tar_is_opened_in_every_layout(suffix: str, tmp_path: Path, batch: Cli) -> None:
    tarred(tmp_path / f"class/s001{suffix}", {"hw/scale.py": SIX})
    tarred(tmp_path / f"class/s002/hw{suffix}", {"./scale/solution.py": SIX})
    assert batch() == {"s001": "6", "s002": "6"}
    assert flags(tmp_path, "s001") == flags(tmp_path, "s002") == ""


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        ("canvas", "ab_501_1_hw{}"),
        ("moodle", "A B_501_assignsubmission_file_/hw{}"),
        ("moodle", "A B_501_assignsubmission_file_hw{}"),
        ("gradescope", "submission_501/hw{}"),
    ],
)
def test_an_archive_is_opened_or_flagged_from_every_platform(
    layout: str, name: str, tmp_path: Path, cli: Cli, instant: Instant
) -> None:
    good = name.replace("501", "502")
    tarred(tmp_path / "class" / good.format(".tar.gz"), {"scale.py": SIX})
    hand_in(tmp_path / "class", {name.format(".rar"): "Rar!"})
    out = tmp_path / "out"
    cli("batch", tmp_path / "class", "--layout", layout, "--out", out, "--course", TINY)
    assert marks(out) == {"501": "0", "502": "6"}
    assert "`hw.rar` is an archive that is not opened here" in flags(tmp_path, "501")
    assert flags(tmp_path, "502") == ""


@pytest.mark.parametrize("suffix", [".7z", ".rar", ".RAR", ".tar.xz"])
def test_an_archive_that_is_not_opened_is_named_and_flagged(
    suffix: str, tmp_path: Path, batch: Cli
) -> None:
    hand_in(tmp_path / "class", {f"s001{suffix}": "x", f"s002/hw{suffix}": "x"})
    hand_in(tmp_path / "class", {f"s003/hw{suffix}": "x", "s003/scale.py": SIX})
    hand_in(tmp_path / "class", {f"s004/hw{suffix}": "x", f"s005/deep/hw{suffix}": "x"})
    hand_in(tmp_path / "class", {"s005/deep/readme.md": "x"})
    zipped(tmp_path / "class/s004/b.zip", {"scale.py": SIX})
    points = batch()
    assert {student: points[student] for student in ("s003", "s004")} == {"s003": "6", "s004": "6"}
    for student in ("s001", "s002", "s003", "s004", "s005"):
        said = flags(tmp_path, student)
        assert f"{suffix}` is an archive that is not opened here (zip the files instead)" in said
        assert said.count("is an archive") == 1


def test_a_zip_in_a_folder_of_a_submission_is_flagged(tmp_path: Path, batch: Cli) -> None:
    zipped(tmp_path / "class/s001/deep/hw.zip", {"scale.py": SIX})
    assert batch() == {"s001": "0"}
    assert "`deep/hw.zip` is an archive in a folder, where none is opened" in flags(
        tmp_path, "s001"
    )


def test_a_later_version_of_a_tar_in_canvas_is_a_later_attempt(
    tmp_path: Path, cli: Cli, instant: Instant
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    tarred(tmp_path / "old.tar.gz", {"scale.py": "# 2 points\n"})
    tarred(tmp_path / "new.tar.gz", {"scale.py": SIX})
    folder.mkdir()
    (tmp_path / "old.tar.gz").rename(folder / "ab_501_1_hw.tar.gz")
    (tmp_path / "new.tar.gz").rename(folder / "ab_501_2_hw.tar-1.gz")
    cli("batch", folder, "--out", out, "--course", TINY)
    assert marks(out) == {"501": "6"}
    assert (report_of(out, "501")["attempt"], flags(tmp_path, "501")) == (2, "")


BAD = {
    "a link": (special("scale.py", tarfile.SYMTYPE, "/etc/passwd"), "is a link"),
    "a hard link": (special("scale.py", tarfile.LNKTYPE, "/etc/passwd"), "is a link"),
    "a device": (special("scale.py", tarfile.CHRTYPE), "is not a regular file"),
    "a pipe": (special("scale.py", tarfile.FIFOTYPE), "is not a regular file"),
    "a way out": (special("../../scale.py", tarfile.REGTYPE), "points outside the archive"),
    "an absolute path": (special("/scale.py", tarfile.REGTYPE), "points outside the archive"),
    "windows": (special("..\\scale.py", tarfile.REGTYPE), "points outside the archive"),
    "depth": (special("d/" * 20 + "scale.py", tarfile.REGTYPE), "folders deep"),
    "an archive": (special("scale.zip", tarfile.REGTYPE), "is an archive in an archive"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_must_not_be_unpacked_of_a_tar_is_left_out_and_flagged(
    what: str, tmp_path: Path, batch: Cli
) -> None:
    info, why = BAD[what]
    tarred(tmp_path / "class/s001.tar.gz", {"x": info})
    tarred(tmp_path / "class/s002.tar", {"x": info, "scale.py": SIX})
    assert batch()["s001"] == "0"
    assert why in flags(tmp_path, "s001")
    assert why in flags(tmp_path, "s002")
    outside = [path for path in tmp_path.rglob("scale.*") if "class" not in path.parts]
    assert outside == []


def bombs() -> dict[str, bytes]:
    def tar(size: int, **fields: object) -> bytes:
        info = tarfile.TarInfo("scale.py")
        info.size = size
        for name, value in fields.items():
            setattr(info, name, value)
        return info.tobuf(tarfile.GNU_FORMAT)

    huge = gzip.compress(bytes(200 << 20), compresslevel=1)
    return {
        "zeros": gzip.compress(tar(40 << 20) + bytes(40 << 20)),
        "hidden zeros": gzip.compress(tar(200 << 20, name="x.bin")) + huge,
        "many": gzip.compress(b"".join(tar(0, name=f"{n}.py") for n in range(3000))),
        "a large claim": tar(1 << 40),
        "a long name that is long": tar(1 << 40, type=tarfile.GNUTYPE_LONGNAME),
        "a long header": tar(1 << 33, type=tarfile.XHDTYPE),
        "headers of headers": tar(0, type=tarfile.XHDTYPE) * 30_000,
        "sparse": tar(1 << 40, type=tarfile.GNUTYPE_SPARSE),
        "cut off": gzip.compress(tar(600) + bytes(1024))[:-20],
        "no archive": b"this is no archive",
        "nothing": b"",
        "half a gzip": gzip.compress(b"x")[:5],
    }


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".tar.gz", ".tar"])
def test_a_hostile_tar_costs_its_student_alone(suffix: str, tmp_path: Path, batch: Cli) -> None:
    made = bombs()
    for number, data in enumerate(made.values()):
        (tmp_path / f"class/s{100 + number}{suffix}").write_bytes(data)
    points = batch()
    assert points == {f"s{100 + number}": "0" for number in range(len(made))}
    for number, what in enumerate(made):
        assert flags(tmp_path, f"s{100 + number}"), what


def test_a_class_is_read_from_a_tar(tmp_path: Path, cli: Cli, instant: Instant) -> None:
    members = {"class/s001/scale.py": SIX, "class/s002/scale.py": SIX}
    path = tarred(tmp_path / "class.tar.gz", members)
    cli("batch", path, "--out", tmp_path / "out", "--course", TINY)
    assert marks(tmp_path / "out") == {"s001": "6", "s002": "6"}


def test_of_a_file_that_was_added_to_a_tar_again_the_last_version_is_graded(
    tmp_path: Path, batch: Cli
) -> None:
    for version, text in enumerate(("# 1 points\n", SIX)):
        (tmp_path / "scale.py").write_text(text)
        with tarfile.open(tmp_path / "s001.tar", "a" if version else "w") as archive:
            archive.add(tmp_path / "scale.py", "hw/./scale.py" if version else "hw/scale.py")
    (tmp_path / "s001.tar").rename(tmp_path / "class/s001.tar")
    assert batch() == {"s001": "6"}
    assert flags(tmp_path, "s001") == ""


def test_a_student_is_called_after_an_archive_without_its_suffix() -> None:
    names = ("s001.tar.gz", "s001.TGZ", "s001.zip", "s001.rar", "s.001.tar")
    assert [archives.without_suffix(name) for name in names] == [*["s001"] * 4, "s.001"]
