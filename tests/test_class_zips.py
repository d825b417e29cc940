"""A class is read from a zip, of which nothing is written elsewhere."""

from __future__ import annotations

import stat
import struct
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from handed_in import (
    NORM,
    SOFTMAX,
    place,
    read,
    zipped,
)

from grader.course.course import Course
from grader.errors import RequestError
from grader.submissions import archives, opening
from grader.submissions.layouts import (
    LeftOut,
    collection,
    find_attempts,
    open_submissions,
)

pytestmark = pytest.mark.in_turn


def in_zip(path: Path, course: Course) -> dict[str, list[str]]:
    with open_submissions(path) as folder:
        return {student: list(one.files) for student, one in read(folder, course).items()}


@pytest.mark.parametrize("wrapping", ["", "class/", "__MACOSX/x", "a b/"])
def test_a_class_is_read_from_a_zip_wrapped_or_not(
    wrapping: str, tmp_path: Path, course: Course
) -> None:
    before = wrapping if wrapping.endswith("/") else ""
    members = {f"{before}s00{n}/masked_softmax.py": SOFTMAX for n in (1, 2)}
    inner = zipped(tmp_path / "inner.zip", {"layer_norm.py": NORM}).read_bytes()
    extra = {wrapping: ""} if wrapping and not before else {}
    path = zipped(tmp_path / "class.zip", {**members, f"{before}s003.zip": inner, **extra})
    assert in_zip(path, course) == {
        "s001": ["masked_softmax"],
        "s002": ["masked_softmax"],
        "s003": ["layer_norm"],
    }


@pytest.mark.parametrize(
    ("members", "students"),
    [
        (["s001/masked_softmax.py"], ["s001"]),
        (["One_11_assignsubmission_file_/hw/masked_softmax.py"], ["11"]),
        (["submission_7/hw/masked_softmax.py"], ["7"]),
        (["export/submission_7/masked_softmax.py"], ["7"]),
        (["submissions/s001_501_1_masked_softmax.py"], ["501"]),
    ],
)
def test_a_class_of_one_is_a_class_too(
    members: list[str], students: list[str], tmp_path: Path, course: Course
) -> None:
    path = zipped(tmp_path / "class.zip", dict.fromkeys(members, SOFTMAX))
    assert in_zip(path, course) == {student: ["masked_softmax"] for student in students}


def test_no_file_of_a_class_zip_is_written_outside_its_folder(
    tmp_path: Path, course: Course
) -> None:
    path = tmp_path / "in/class.zip"
    link = zipfile.ZipInfo("s002/masked_softmax.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    members = {"../evil.py": "x", f"{tmp_path}/evil.py": "x", "s001/masked_softmax.py": SOFTMAX}
    zipped(path, {**members, "s003/bomb.py": bytes(archives.MIB)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    left_out: list[LeftOut] = []
    with open_submissions(path, left_out) as folder:
        assert {student: list(one.files) for student, one in read(folder, course).items()} == {
            "s001": ["masked_softmax"],
            "s002": [],
            "s003": [],
        }
    assert not folder.exists()
    assert not list(tmp_path.rglob("evil.py"))
    said = [f"{one.what} {one.why}" for one in left_out]
    start = "class.zip holds a file that is not unpacked: "
    assert f"{start}`../evil.py` points outside the archive" in said
    assert f"{start}`s002/masked_softmax.py` is a link" in said
    assert any(f"{start}`s003/bomb.py` cannot be used" in one for one in said)


@pytest.mark.slow
@pytest.mark.parametrize("litter", [".DS_Store", "._class", "__MACOSX/._class", "Thumbs.db"])
def test_what_a_system_leaves_beside_the_folder_of_a_class_is_no_part_of_it(
    litter: str, tmp_path: Path, tiny_course: Course
) -> None:
    members = {f"class/s{n:03}/{m}.txt": "" for n in range(1, 4) for m in range(4000)}
    members |= {f"class/s{n:03}/scale.py": SOFTMAX for n in range(1, 4)}
    path = zipped(tmp_path / "class.zip", {litter: "x", **members})
    assert in_zip(path, tiny_course) == {f"s{n:03}": ["scale"] for n in range(1, 4)}


@pytest.mark.parametrize("wrapping", ["", "class/"])
def test_a_student_with_too_many_files_in_a_class_zip_is_refused_alone(
    wrapping: str, tmp_path: Path, tiny_course: Course
) -> None:
    members = {f"{wrapping}s001/{number}.txt": "" for number in range(opening.MAX_ENTRIES + 1)}
    members |= {f"{wrapping}s00{number}/scale.py": SOFTMAX for number in (2, 3)}
    left_out: list[LeftOut] = []
    with open_submissions(zipped(tmp_path / "class.zip", members), left_out) as folder:
        found = read(folder, tiny_course)
    assert found["s002"].files == found["s003"].files == {"scale": SOFTMAX}
    assert not found["s001"].files
    why = f"holds a file that is not unpacked: `{wrapping}s001` holds more than 10000 files"
    assert left_out == [LeftOut("class.zip", why)]


def listed_as(change: Callable[[bytes], bytes], name: bytes, path: Path) -> None:
    """Change the entry of a member in the list of a zip."""
    data = path.read_bytes()
    at = data.rindex(b"PK\1\2", 0, data.rindex(name))
    length = 46 + sum(struct.unpack_from("<3H", data, at + 28))
    entry = change(data[at : at + length])
    assert len(entry) == length
    path.write_bytes(data[:at] + entry + data[at + length :])


def put(at: int, values: bytes) -> Callable[[bytes], bytes]:
    return lambda entry: entry[:at] + values + entry[at + len(values) :]


STRANGE = {
    "a name that is not in its encoding": put(8, b"\0\x08"),
    "a version of the future": put(6, b"\xff"),
    "an extra field that ends too late": put(-12, b"\x77\x77\xff\xff"),
    "a large size that nothing gives": put(20, b"\xff" * 8),
    "a name that is no name": put(-12, b"\x75\x70\x02\0"),
}


@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE)
def test_an_entry_that_nobody_parses_is_that_of_one_student(
    change: Callable[[bytes], bytes], tmp_path: Path, tiny_course: Course
) -> None:
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for student in ("s001", "s002"):
            member = zipfile.ZipInfo(f"{student}/scale.py")
            member.extra = struct.pack("<HHLL", 0x7777, 8, 1, 2)
            archive.writestr(member, SOFTMAX)
    path.write_bytes(path.read_bytes().replace(b"s001/scale", b"s001/\xffcale"))
    listed_as(change, b"s001/", path)
    with open_submissions(path) as folder:
        found = read(folder, tiny_course)
    assert found["s002"].files == {"scale": SOFTMAX}
    assert "s001" in found


@pytest.mark.parametrize(("members", "size"), [(10, 2**16 - 8), (3, 2000)])
def test_a_zip_that_describes_its_files_at_length_is_soon_parsed(
    members: int, size: int, tmp_path: Path, tiny_course: Course
) -> None:
    with zipfile.ZipFile(tmp_path / "s001.zip", "w") as archive:
        for number in range(members):
            member = zipfile.ZipInfo(f"{number}/scale.py" if number else "scale.py")
            member.extra = b"\x77\x77\0\0" * (size // 4)
            archive.writestr(member, SOFTMAX)
    start = time.process_time()
    assert read(tmp_path, tiny_course)["s001"].files == {"scale": SOFTMAX}
    assert time.process_time() - start < 5  # with the square of the fields it takes longer


def test_a_backslash_in_a_name_leads_into_no_other_folder(
    tmp_path: Path, tiny_course: Course
) -> None:
    members = {"s001/scale.py": SOFTMAX, "s002\\..\\s001/scale.py": NORM, "s001\\scale.py": NORM}
    with open_submissions(zipped(tmp_path / "class.zip", members)) as folder:
        assert read(folder, tiny_course)["s001"].files == {"scale": SOFTMAX}


def test_two_names_of_one_file_are_flagged_and_a_newer_version_counts(
    tmp_path: Path, tiny_course: Course
) -> None:
    again = {"s001/./scale.py": NORM, "s002/scale.py": SOFTMAX}
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        warnings.simplefilter("ignore")
        for name, text in [("s001/scale.py", SOFTMAX), ("s002/scale.py", NORM), *again.items()]:
            archive.writestr(name, text)
    notes: dict[Path, tuple[str, ...]] = {}
    with open_submissions(tmp_path / "class.zip", notes=notes) as folder:
        found = read(folder, tiny_course)
    assert found["s001"].files == found["s002"].files == {"scale": SOFTMAX}
    assert {path.name: told for path, told in notes.items()} == {
        "s001": ("`s001/scale.py` has the name of another file and was left out; needs review",)
    }


@pytest.mark.slow
def test_a_class_zip_may_hold_more_files_than_a_students_zip(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection.archives, "MAX_MEMBERS", 1)
    members = {f"s{n:04}/masked_softmax.py": SOFTMAX for n in range(archives.STUDENT.members + 1)}
    path = zipped(tmp_path / "class.zip", members)
    with open_submissions(path) as folder:
        assert len(find_attempts(folder, course).attempts) == len(members)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere", "there is no folder"),
        ("notes.txt", "is neither a folder nor a zip"),
        ("broken.zip", "the archive cannot be read: File is not a zip file"),
    ],
)
def test_a_path_that_is_not_a_class_is_a_wrong_request(
    name: str, said: str, tmp_path: Path
) -> None:
    place(tmp_path, "notes.txt", "broken.zip")
    with pytest.raises(RequestError) as raised, open_submissions(tmp_path / name):
        pass
    assert said in raised.value.message
    assert raised.value.remedy
