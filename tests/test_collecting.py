"""An attempt's files become one submission, the same in any folder or zip."""

from __future__ import annotations

from pathlib import Path

import pytest
from handed_in import (
    NORM,
    SOFTMAX,
    STRANGE,
    place,
    read,
    reason,
    zipped,
)

from grader.course.course import Course
from grader.submissions import code_files, other_files
from grader.submissions.layouts import (
    Attempt,
    AttemptPart,
    collection,
    find_attempts,
)
from grader.submissions.submission import accepted


def test_the_same_files_are_the_same_submission_in_any_folder_or_zip(
    tmp_path: Path, course: Course
) -> None:
    place(tmp_path, "s001/masked_softmax.py", "s001/layer_norm/solution.py")
    place(tmp_path, "s002/my/home work/masked_softmax.py", "s002/my/home work/layer_norm.py")
    zipped(tmp_path / "s003.zip", {"masked_softmax.py": SOFTMAX, "layer_norm/solution.py": NORM})
    zipped(tmp_path / "s004/hw.zip", {"x/masked_softmax.py": SOFTMAX, "x/layer_norm.py": NORM})
    found = read(tmp_path, course)
    assert len({one.hash for one in found.values()}) == 1
    assert len(found["s001"].hash) == 32
    paths = {"masked_softmax": "masked_softmax.py", "layer_norm": "layer_norm/solution.py"}
    assert found["s001"].paths == found["s003"].paths == paths
    for student, folder in {"s002": "my/home work", "s004": "x"}.items():
        assert found[student].paths == {
            "masked_softmax": f"{folder}/masked_softmax.py",
            "layer_norm": f"{folder}/layer_norm.py",
        }
    assert [found[name].name for name in sorted(found)] == sorted(found)


def test_several_zips_of_a_student_make_one_submission(tmp_path: Path, course: Course) -> None:
    zipped(tmp_path / "s001/a.zip", {"a/masked_softmax.py": SOFTMAX, "__MACOSX/a/x.py": ""})
    zipped(tmp_path / "s001/b.zip", {"layer_norm/solution.py": NORM, "__MACOSX/b/x.py": ""})
    place(tmp_path, "s001/feed_forward.py", "s001/.venv/masked_softmax.py")
    found = read(tmp_path, course)["s001"]
    assert set(found.files) == {"masked_softmax", "layer_norm", "feed_forward"}
    assert found.files["masked_softmax"] == SOFTMAX
    assert found.notes == ()


SAME_NAMES = {
    "a stub beside": {"masked_softmax.py": "", "solutions.zip": {"masked_softmax.py": SOFTMAX}},
    "a stub before": {
        "exercises.zip": {"masked_softmax.py": "", "layer_norm.py": "", "feed_forward.py": ""},
        "solutions.zip": {"masked_softmax.py": SOFTMAX},
    },
    "a wrapped stub": {
        "a.zip": {"a/masked_softmax.py": ""},
        "a.tar.zip": {"b/masked_softmax.py": SOFTMAX},
    },
    "a zip for each": {
        "layer_norm.zip": {"solution.py": NORM},
        "masked_softmax.zip": {"solution.py": SOFTMAX},
    },
    "a zip of a folder for each": {
        "layer_norm.zip": {"layer_norm/main.py": NORM},
        "masked_softmax.zip": {"masked_softmax/main.py": SOFTMAX},
    },
    "zips of one file": {
        "masked_softmax.py": "",
        "masked_softmax.py.zip": {"masked_softmax.py": SOFTMAX},
    },
    "strange names": {
        "__.zip": {"masked_softmax.py": ""},
        "..zip.zip": {"masked_softmax.py": SOFTMAX},
        ". .zip": {"masked_softmax.py": ""},
    },
    "a folder of that name": {
        "hw/masked_softmax.py": "",
        "masked_softmax.py": "",
        "hw.zip": {"masked_softmax.py": SOFTMAX},
    },
}


@pytest.mark.parametrize("files", SAME_NAMES.values(), ids=SAME_NAMES)
def test_no_zip_hides_the_work_in_another_part(
    files: dict[str, str | dict[str, str]], tmp_path: Path, course: Course
) -> None:
    for name, content in files.items():
        if isinstance(content, dict):
            zipped(tmp_path / "s001" / name, content)
        else:
            place(tmp_path / "s001", name, text=content)
    found = read(tmp_path, course)["s001"]
    assert found.files["masked_softmax"] == SOFTMAX
    assert len({*found.paths.values()}) == len(found.paths)
    if "layer_norm.zip" in files:
        assert found.files["layer_norm"] == NORM
    again = read(tmp_path, course)["s001"]
    assert (again.paths, again.notes) == (found.paths, found.notes)
    assert not any("grader-attempt" in text for text in (*found.paths.values(), *found.notes))


def test_a_broken_zip_affects_no_other_file(tmp_path: Path, course: Course) -> None:
    place(tmp_path, "s001/masked_softmax.py")
    place(tmp_path, "s001/more.zip", "s002.zip", text="PK\x03\x04 this is no zip")
    found = read(tmp_path, course)
    assert set(found["s001"].files) == {"masked_softmax"}
    assert any("`more.zip`: the archive cannot be read" in note for note in found["s001"].notes)
    assert reason(found["s002"], course).startswith(
        "`s002.zip`: the archive cannot be read: File is not a zip file"
    )


def test_a_folder_is_used_in_place_and_a_copy_is_deleted_after_use(tmp_path: Path) -> None:
    place(tmp_path, "s001/scale.py", "s002.py")
    with collection.attempt_folder(
        Attempt("s001", (AttemptPart(tmp_path / "s001", "s001"),))
    ) as folder:
        assert folder == tmp_path / "s001"
    with collection.attempt_folder(
        Attempt("s002", (AttemptPart(tmp_path / "s002.py", "scale.py"),))
    ) as folder:
        assert [path.name for path in folder.iterdir()] == ["scale.py"]
    assert not folder.exists()


def test_a_part_is_never_copied_outside_the_attempts_folder(tmp_path: Path) -> None:
    place(tmp_path, "s001.py")
    parts = (
        AttemptPart(tmp_path / "s001.py", "../../evil.py"),
        AttemptPart(tmp_path / "s001.py", ".."),
    )
    with collection.attempt_folder(Attempt("s001", parts)) as folder:
        assert {path.name for path in folder.iterdir()} <= {"evil.py", "s001.py"}
        assert not (folder.parent.parent / "evil.py").exists()


def test_no_reason_for_students_names_a_folder_of_the_teachers_machine(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, "s001/notes.txt", "s002/a/layer_norm.py")
    place(tmp_path, "s002/b/layer_norm.py", text=NORM.replace("pass", "gamma = 1"))
    zipped(tmp_path / "s003/hw.zip", {"notes.py": STRANGE})
    (tmp_path / "s004").mkdir()
    found = read(tmp_path, course)
    assert reason(found["s001"], course) == "no exercise file in s001"
    clash = "`a/layer_norm.py` and `b/layer_norm.py` could each be meant for layer_norm, so none"
    assert clash in reason(found["s002"], course)
    assert reason(found["s003"], course).startswith("no exercise file in s003; `notes.py` is not")
    assert reason(found["s004"], course) == "no file was handed in"

    def denied(paths: list[Path], *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(paths[0] / "layer\nnorm.py"))

    monkeypatch.setattr(collection, "read_submission", denied)
    found |= {
        one.student: accepted(collection.read_attempt(one, course), course)
        for one in find_attempts(tmp_path, course).attempts
    }
    assert reason(found["s001"], course) == "Permission denied: 's001/layer norm.py'"
    assert reason(found["s003"], course) == "Permission denied: 's003'"
    assert not any(str(tmp_path) in str(one) or "/tmp" in str(one) for one in found.values())


def test_only_so_much_is_read_beside_the_exercise_files(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_files, "MAX_BYTES", 3000)
    read_bytes: list[str] = []
    opened = code_files.read_file
    monkeypatch.setattr(
        code_files,
        "read_file",
        lambda file, *more: read_bytes.append(file.name) or opened(file, *more),
    )
    books = {f"lecture{number:03d}.ipynb": "[" + " " * 1000 + "]" for number in range(100)}
    for name, text in books.items():
        place(tmp_path / "s001", name, text=text)
    place(tmp_path / "s001", "masked_softmax.py")
    attempt = Attempt("s001", (AttemptPart(tmp_path / "s001", "s001"),))
    found = accepted(collection.read_attempt(attempt, course), course)
    assert set(found.files) == {"masked_softmax"}
    assert len(read_bytes) <= 4
    assert any("they hold more than" in note and "needs review" in note for note in found.notes)


def test_a_long_list_of_left_out_files_is_shortened(tmp_path: Path, course: Course) -> None:
    zipped(tmp_path / "s001.zip", {f"{n}.tar": "" for n in range(300)} | {"layer_norm.py": NORM})
    notes = read(tmp_path, course)["s001"].notes
    assert (len(notes), notes[-1]) == (21, "and 280 more")
