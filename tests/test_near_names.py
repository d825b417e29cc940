"""Files whose names nearly fit are graded if there is no doubt, and a flag says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks, report_of
from commandline import Cli
from handed_in import notebook, zipped

from grader.course.course import Course, load_course
from grader.course.stubs import make_stub

pytestmark = pytest.mark.in_turn

TINY = Path(__file__).parent / "tiny"
SIX = "# 6 points\ndef scale(x, factor): return x\n"
TWO = "# 2 points\ndef scale(x, factor): return 0\n"
Batch = Callable[[Path, Path], dict[str, str]]


@pytest.fixture
def batch(cli: Cli, instant: Instant, tmp_path: Path) -> Batch:
    """Grade a class and return everybody's points; s009 is a neighbour whom nothing affects."""

    def grading(folder: Path, course: Path) -> dict[str, str]:
        hand_in(folder, {"s009/scale.py": "# 5 points\n"})
        said = cli("batch", folder, "--out", tmp_path / "out", "--course", course)
        assert said.code in (0, 1), said
        assert report_of(tmp_path / "out", "s009")["flags"] == []
        points = marks(tmp_path / "out")
        assert points.pop("s009") == "5"
        return points

    return grading


def flags(tmp_path: Path, student: str) -> list[str]:
    return [str(flag) for flag in report_of(tmp_path / "out", student)["flags"]]


@pytest.fixture
def stub(tiny_course: Course) -> str:
    return make_stub(tiny_course["scale"])


COPIES = [
    *("scale (1).py", "Scale.py", "SCALE.py", "scale_final.py", "scale-final-2.py", "scale_v2.py"),
    *("copy of scale.py", "Copy of scale (3).py", "scale - Copy.py", "Kopie von scale.py"),
    *("scale.PY", "hw1_scale.py", "my-scale.py", "Scale (1).ipynb", "scale_solution.py"),
]


@pytest.mark.parametrize("name", COPIES)
def test_a_name_that_nearly_fits_is_graded_and_flagged(
    name: str, tmp_path: Path, batch: Batch, stub: str
) -> None:
    text = "# 6 points\nx = 1\n"  # what it defines does not matter
    content = notebook(text) if name.endswith("ipynb") else text
    hand_in(tmp_path / "class", {f"s001/{name}": content, "s001/helper.py": "x = 1\n"})
    zipped(tmp_path / "class/s002.zip", {f"work/{name}": content, "work/scale.py": stub})
    assert batch(tmp_path / "class", TINY) == {"s001": "6", "s002": "6"}
    assert flags(tmp_path, "s001") == [
        f"`{name}` was used for scale because its name nearly fits; needs review"
    ]
    assert flags(tmp_path, "s002") == [
        f"`work/{name}` was used for scale because its name nearly fits; needs review"
    ]
    assert name in (tmp_path / "out/index.html").read_text()
    assert "needs review" in (tmp_path / "out/grades.csv").read_text()


@pytest.mark.parametrize("name", ["s001_scale.py", "scael.py", "attention_scale_layer.py"])
def test_a_name_that_is_only_similar_is_graded_if_the_file_defines_the_exercise(
    name: str, tmp_path: Path, batch: Batch
) -> None:
    hand_in(tmp_path / "class", {f"s001/{name}": SIX, "s001/helper.py": "x = 1\n"})
    hand_in(tmp_path / "class", {f"s002/{name}": "# 6 points\n", "s002/helper.py": "x = 1\n"})
    assert batch(tmp_path / "class", TINY) == {"s001": "6", "s002": "0"}
    (flag,) = flags(tmp_path, "s001")
    assert flag.startswith(f"`{name}` was used for scale because")
    assert any(name in flag for flag in flags(tmp_path, "s002"))


@pytest.mark.parametrize("name", ["test_scale.py", "scale_test.py"])
def test_a_students_own_tests_are_no_candidate(name: str, tmp_path: Path, batch: Batch) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": SIX, f"s001/{name}": "# 2 points\n"})
    assert batch(tmp_path / "class", TINY) == {"s001": "6"}
    assert flags(tmp_path, "s001") == []


def test_the_exact_name_wins_over_a_near_one_and_the_other_is_flagged(
    tmp_path: Path, batch: Batch, stub: str
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": SIX, "s001/scale (1).py": TWO})
    hand_in(tmp_path / "class", {"s002/scale.py": SIX, "s002/scale (1).py": stub})
    hand_in(tmp_path / "class", {"s003/scale.py": SIX, "s003/scale (1).py": SIX})
    assert batch(tmp_path / "class", TINY) == {"s001": "6", "s002": "6", "s003": "6"}
    (flag,) = flags(tmp_path, "s001")
    assert flag.startswith("`scale (1).py` is not an exercise file and was left out")
    assert flag.endswith("`scale.py` was used for scale; needs review")
    assert flags(tmp_path, "s002") == flags(tmp_path, "s003") == []


def test_of_two_near_names_none_is_guessed_and_both_are_named(
    tmp_path: Path, batch: Batch, stub: str
) -> None:
    both = {"scale (1).py": SIX, "scale_final.py": TWO}
    hand_in(tmp_path / "class", {f"s001/{name}": text for name, text in both.items()})
    hand_in(tmp_path / "class", {f"s002/{name}": text for name, text in both.items()})
    hand_in(tmp_path / "class", {"s002/scale.py": stub})
    hand_in(tmp_path / "class", {"s003/scale (1).py": SIX, "s003/scale_final.py": stub})
    hand_in(tmp_path / "class", {"s004/scale (1).py": SIX, "s004/scale (2).py": SIX})
    points = batch(tmp_path / "class", TINY)
    assert (points["s001"], points["s003"], points["s004"]) == ("0", "6", "6")
    for student in ("s001", "s002"):
        said = "; ".join(flags(tmp_path, student))
        assert "`scale (1).py` and `scale_final.py` could each be meant for scale" in said
    report = report_of(tmp_path / "out", "s002")  # of which the stub is graded
    assert not any("was used for" in note for note in report["notes"])


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "  \n") + "\n\n",
        lambda text: "\ufeff" + text,
    ],
    ids=["same", "windows", "spaces", "mark"],
)
@pytest.mark.parametrize(
    "place",
    ["work/scale.py", "a/b/scale.py", "scale.ipynb", "work/scale (1).py", "all.ipynb", "mine.py"],
)
def test_an_untouched_stub_yields_to_work_wherever_it_lies(
    place: str, spoilt: Callable[[str], str], tmp_path: Path, batch: Batch, stub: str
) -> None:
    work = notebook(SIX) if place.endswith("ipynb") else SIX
    hand_in(tmp_path / "class", {f"s001/{place}": work})
    (tmp_path / "class/s001/scale.py").write_bytes(spoilt(stub).encode())
    assert batch(tmp_path / "class", TINY) == {"s001": "6"}


NO_WORK = {
    "a name on top": lambda stub: f"# Jane Doe\n{stub}",
    "another statement": lambda stub: stub.replace("e", "E", 1),
    "no statement": lambda stub: stub.split('"""\n', 1)[1],
    "nothing": lambda stub: "",
    "a comment": lambda stub: "# my solution is in the notebook\n",
    "only imports": lambda stub: "from torch import Tensor\n",
    "only the statement": lambda stub: stub.split('"""\n', 1)[0] + '"""\n',
}


@pytest.mark.parametrize("without_work", NO_WORK.values(), ids=NO_WORK)
def test_a_file_in_which_no_code_was_written_yields_to_work(
    without_work: Callable[[str], str], tmp_path: Path, batch: Batch, stub: str
) -> None:
    text = without_work(stub)
    hand_in(tmp_path / "class", {"s001/scale.py": text, "s001/homework.ipynb": notebook(SIX)})
    hand_in(tmp_path / "class", {"s002/scale.py": text, "s002/scale.ipynb": notebook(SIX)})
    hand_in(tmp_path / "class", {"s003/scale.py": SIX, "s003/scale.ipynb": notebook(text)})
    hand_in(tmp_path / "class", {"s004/scale.py": text, "s004/week1/scale.py": SIX})
    assert set(batch(tmp_path / "class", TINY).values()) == {"6"}


def test_a_stub_in_several_cells_yields_to_work(tmp_path: Path, batch: Batch, stub: str) -> None:
    parts = stub.split("\n\n\n")
    assert len(parts) > 1
    hand_in(tmp_path / "class", {"s001/scale.ipynb": notebook(*parts), "s001/homework.py": SIX})
    assert batch(tmp_path / "class", TINY) == {"s001": "6"}


def test_every_untouched_stub_is_graded_as_one(
    tmp_path: Path, cli: Cli, tiny_course: Course, stub: str
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": stub, "s001/old/scale.py": stub})
    hand_in(tmp_path / "class", {"s002/old/scale.py": tiny_course["scale"].read("solution.py")})
    hand_in(tmp_path / "class", {"s002/handout/scale.py": stub})
    cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert marks(tmp_path / "out") == {"s001": "0", "s002": "8"}
    (exercise,) = report_of(tmp_path / "out", "s001")["exercises"]
    assert exercise["unfinished"]
    assert flags(tmp_path, "s001") == []


def test_each_exercise_gets_the_work_that_is_there_for_it(
    tmp_path: Path, batch: Batch, pair: Path
) -> None:
    stubs = {name: make_stub(load_course(pair)[name]) for name in ("scale", "shift")}
    one = "def shift(x, by): return 1\n"
    hand_in(tmp_path / "class", {"s001/scale.py": SIX, "s001/Shift.py": one})
    hand_in(tmp_path / "class", {"s002/scale.py": SIX, "s002/week2/shift.py": one})
    hand_in(tmp_path / "class", {"s003/scale.py": SIX, "s003/shift.py": stubs["shift"]})
    hand_in(tmp_path / "class", {"s003/all.py": one + TWO})
    hand_in(tmp_path / "class", {"s004/part1.py": SIX, "s004/part2.py": one})
    hand_in(tmp_path / "class", {"s005/a/scale.py": SIX, "s005/b/shift.py": one})
    hand_in(tmp_path / "class", {"s009/shift.py": "# 0 points\n"})
    points = batch(tmp_path / "class", pair)
    assert points == {"s001": "8", "s002": "8", "s003": "8", "s004": "8", "s005": "8"}
    assert flags(tmp_path, "s002") == [
        "`week2/shift.py` was used for shift because no other file has its name; needs review"
    ]
    assert flags(tmp_path, "s003") == [
        "`all.py` was used for shift because of what it defines; needs review"
    ]
    assert [flag.partition(" ")[0] for flag in flags(tmp_path, "s004")] == [
        "`part1.py`",
        "`part2.py`",
    ]
    assert flags(tmp_path, "s005") == []
    assert (
        "the exercise files are those in `a/`, `b/`" in report_of(tmp_path / "out", "s005")["notes"]
    )


def test_a_file_with_the_name_of_one_exercise_may_hold_others(
    tmp_path: Path, batch: Batch, pair: Path
) -> None:
    stubs = {name: make_stub(load_course(pair)[name]) for name in ("scale", "shift")}
    one, other = "def shift(x, by): return 1\n", "def shift(x, by): return 2\n"
    folder = tmp_path / "class"
    hand_in(folder, {"s001/scale.py": SIX + one})
    hand_in(folder, {"s002/scale.py": SIX + one, "s002/shift.py": stubs["shift"]})
    hand_in(folder, {"s003/hw/scale.ipynb": notebook(SIX, one), "s003/hw/shift.py": stubs["shift"]})
    hand_in(folder, {"s004/scale.py": SIX + other, "s004/shift.py": one})
    hand_in(folder, {"s005/scale.py": stubs["scale"], "s005/old/scale.py": SIX + one})
    hand_in(folder, {"s006/scale.py": SIX + one, "s006/a/all.py": other})
    hand_in(folder, {"s009/shift.py": "# 0 points\n"})
    points = batch(folder, pair)
    both = "12"  # the suite of shift, a copy of that of scale, finds in the file what it asks
    assert points == dict.fromkeys(("s001", "s002", "s003", "s005", "s006"), both) | {"s004": "8"}
    used = "was used for shift because of what it defines; needs review"
    assert flags(tmp_path, "s001") == flags(tmp_path, "s002") == [f"`scale.py` {used}"]
    assert flags(tmp_path, "s003") == [f"`hw/scale.ipynb` {used}"]
    assert flags(tmp_path, "s004") == []
    assert f"`old/scale.py` {used}" in flags(tmp_path, "s005")
    assert flags(tmp_path, "s006") == [
        f"`scale.py` {used}",
        "`a/all.py` defines shift as well and was left out; needs review",
    ]


def test_of_several_folders_each_exercise_is_chosen_alone(
    tmp_path: Path, batch: Batch, pair: Path
) -> None:
    stubs = {name: make_stub(load_course(pair)[name]) for name in ("scale", "shift")}
    one, other = "def shift(x, by): return 1\n", "def shift(x, by): return 2\n"
    folder = tmp_path / "class"
    hand_in(folder, {"s001/scale/scale.py": SIX, "s001/shift/shift.py": one})
    hand_in(folder, {f"s002/{hw}/scale.py": SIX for hw in ("hw", "hw copy")})
    hand_in(folder, {f"s002/{hw}/shift.py": one for hw in ("hw", "hw copy")})
    hand_in(folder, {"s003/a/scale.py": SIX, "s003/a/shift.py": one, "s003/b/shift.py": other})
    hand_in(folder, {"s004/a/scale.py": SIX, "s004/b/scale.py": TWO, "s004/b/c/scale.py": SIX})
    hand_in(folder, {"s005/week1/scale.py": SIX, "s005/week1/shift.py": stubs["shift"]})
    hand_in(folder, {"s005/week2/shift.py": one, "s005/week2/scale.py": stubs["scale"]})
    hand_in(folder, {"s006/scale.py": stubs["scale"], "s006/shift.py": stubs["shift"]})
    hand_in(folder, {"s006/a/scale.py": SIX, "s006/b/Scale (1).py": TWO})
    hand_in(folder, {"s007/a/scale.py": SIX, "s007/a/scale.ipynb": notebook(TWO)})
    hand_in(folder, {"s007/b/shift.py": one})
    hand_in(folder, {"s009/shift.py": "# 0 points\n"})
    full = dict.fromkeys(("s001", "s002", "s005", "s006", "s007"), "8")
    assert batch(folder, pair) == {**full, "s003": "6", "s004": "0"}
    for student in ("s001", "s002", "s005"):
        assert flags(tmp_path, student) == []
    clash = "could each be meant for {}, so none of them was used; needs review"
    assert flags(tmp_path, "s003") == [f"`a/shift.py` and `b/shift.py` {clash.format('shift')}"]
    assert (
        "`a/scale.py` and `b/scale.py` could each be meant for scale" in flags(tmp_path, "s004")[0]
    )
    (flag,) = flags(tmp_path, "s007")
    assert flag == "`a/scale.ipynb` is a second file for scale and was left out; needs review"


def test_no_other_work_for_an_exercise_is_passed_over_in_silence(
    tmp_path: Path, batch: Batch, stub: str
) -> None:
    folder, helpers = tmp_path / "class", {f"a{number:02}.py": "x = 1\n" for number in range(40)}
    elsewhere = {
        "s001": ("final/scale.py", TWO),
        "s002": ("final/scale_final.py", TWO),
        "s003": ("final/homework.py", TWO),
        "s004": ("homework.ipynb", notebook(TWO)),
        "s005": ("zz/scale (1).py", TWO),
        "s006": ("zz.py", "import torch\nclass Scale: pass\n"),
        "s007": ("old/scale.py", "# coding: klingon\n\xf6"),
    }
    for student, (place, text) in elsewhere.items():
        hand_in(folder, {f"{student}/{name}": text for name, text in helpers.items()})
        hand_in(folder, {f"{student}/scale.py": SIX, f"{student}/{place}": ""})
        (folder / student / place).write_bytes(text.encode("latin-1"))
    harmless = {
        "copy/scale.py": SIX,
        "homework.py": SIX,
        "old/scale.py": stub,
        "x/scale (1).py": "",
    }
    hand_in(folder, {f"s008/{place}": text for place, text in harmless.items()})
    hand_in(folder, {"s008/scale.py": SIX, "s008/test_scale.py": "from scale import scale\n"})
    assert set(batch(folder, TINY).values()) == {"6"}
    for student, (place, _) in elsewhere.items():
        (flag,) = flags(tmp_path, student)
        assert flag.startswith(f"`{place}` ")
    assert flags(tmp_path, "s008") == []


def test_work_in_a_cell_that_does_not_run_is_used(tmp_path: Path, batch: Batch, stub: str) -> None:
    broken = notebook("import torch", f"{SIX}(\n", "x = 1")
    written = notebook(f"%%writefile ../scale.py\n{SIX}", "from scale import scale")
    folder = tmp_path / "class"
    hand_in(folder, {"s001/homework.ipynb": broken, "s001/scale.py": stub, "s001/a.py": "x = 1\n"})
    hand_in(folder, {"s002/homework.ipynb": written, "s002/helper.py": "x = 1\n"})
    hand_in(folder, {"s003/old.ipynb": broken.replace("6", "2"), "s003/new.ipynb": notebook(SIX)})
    hand_in(folder, {"s004/scale.py": stub, "s004/scale.ipynb": broken})
    assert set(batch(folder, TINY).values()) == {"6"}
    used = "`homework.ipynb` was used for scale because of what it defines; needs review"
    no_python = "`homework.ipynb`: cell 2 is no valid Python and was left out; needs review"
    assert flags(tmp_path, "s001") == [used, no_python]
    assert flags(tmp_path, "s002") == [used]
    assert any(
        flag.startswith("`old.ipynb` defines scale as well") for flag in flags(tmp_path, "s003")
    )


def test_two_files_with_the_same_code_are_no_rivals(tmp_path: Path, batch: Batch) -> None:
    folder, said = tmp_path / "class", SIX.replace("\n", "\n\n# as I said\n", 1)
    hand_in(folder, {"s001/scale.py": SIX, "s001/scale.ipynb": notebook(*SIX.splitlines())})
    hand_in(folder, {"s002/v1/scale.py": SIX, "s002/v2/scale.py": said})
    hand_in(folder, {"s003/scale (1).py": SIX, "s003/scale (2).py": said})
    deeper = "if x:\n    {}x = 1\ndef scale(x, factor): return '# 6 points'\n"
    hand_in(folder, {"s004/scale.py": deeper.format(""), "s004/scale (1).py": deeper.format("  ")})
    assert set(batch(folder, TINY).values()) == {"6"}
    for student in ("s001", "s002"):
        assert flags(tmp_path, student) == []
    (near,) = flags(tmp_path, "s003")
    assert near == "`scale (1).py` was used for scale because its name nearly fits; needs review"
    assert flags(tmp_path, "s004") != []


def test_work_deeper_than_any_folder_is_searched_is_flagged(
    tmp_path: Path, batch: Batch, stub: str
) -> None:
    deep = "my/homework/of/week1/scale.py"
    hand_in(tmp_path / "class", {"s001/scale.py": stub, f"s001/{deep}": SIX})
    hand_in(tmp_path / "class", {"s002/scale.py": SIX, f"s002/{deep}": TWO})
    batch(tmp_path / "class", TINY)
    why = "not all of its folders were searched for other files (some lie in 4 others)"
    assert flags(tmp_path, "s001") == [f"{why}; needs review"]
    assert flags(tmp_path, "s002") == []  # which lacks nothing


def test_a_file_that_cannot_be_read_yields_to_one_that_can(tmp_path: Path, batch: Batch) -> None:
    folder, broken = tmp_path / "class", "# coding: klingon\n\xf6"
    unreadable = {
        "s001": ("scale.py", "scale.ipynb", notebook(SIX)),
        "s002": ("scale.py", "week1/scale.py", SIX),
        "s003": ("Scale (1).py", "scale_final.py", SIX),
        "s004": ("scale.py", "homework.py", SIX),
        "s005": ("a/scale.py", "b/scale.py", SIX),
    }
    for student, (place, readable, text) in unreadable.items():
        hand_in(folder, {f"{student}/{place}": "", f"{student}/{readable}": text})
        (folder / student / place).write_bytes(broken.encode("latin-1"))
    hand_in(folder, {"s006/scale.py": "", "s006/notes.py": "x = 1\n"})
    (folder / "s006/scale.py").write_bytes(broken.encode("latin-1"))
    points = batch(folder, TINY)
    assert points.pop("s006") == "0"
    assert set(points.values()) == {"6"}
    for student, (place, _, _) in unreadable.items():
        assert any(place in flag for flag in flags(tmp_path, student))


def test_what_systems_hide_is_no_candidate(tmp_path: Path, batch: Batch) -> None:
    hidden = ("__MACOSX/scale (1).py", ".venv/scale.py", "._scale (1).py", ".git/scale (1).py")
    hand_in(tmp_path / "class", {f"s001/{place}": SIX for place in hidden})
    hand_in(tmp_path / "class", {"s002/homework1/scale.py": SIX})
    assert batch(tmp_path / "class", TINY) == {"s001": "0", "s002": "6"}
    assert flags(tmp_path, "s002") == []


@pytest.mark.slow
def test_check_takes_a_near_name_too(tmp_path: Path, cli: Cli, tiny_course: Course) -> None:
    file = tmp_path / "Scale (1).py"
    file.write_text(tiny_course["scale"].read("solution.py"))
    said = cli("check", file, "--course", TINY)
    assert said.code == 0
    assert "was used for scale because its name nearly fits" in " ".join(said.out.split())
    assert "because of what it defines" not in said.out


def test_a_refused_or_missing_module_is_flagged(
    tmp_path: Path, cli: Cli, tiny_course: Course
) -> None:
    solution = tiny_course["scale"].read("solution.py")
    secret = tmp_path / "secret.py"
    secret.write_text(solution)
    uses = solution.replace("return x * factor", "return einops.mul(x, factor)")
    hand_in(tmp_path / "class", {"s001/scale.py": f"import einops_of_mine as einops\n{uses}"})
    needless = solution.replace(
        "return x * factor", "return x * factor if x is not None else einops.no"
    )
    needless = f"import einops_of_mine as einops\n{needless}"
    hand_in(tmp_path / "class", {"s002/scale.ipynb": "no notebook", "s003/scale.py": needless})
    (tmp_path / "class/s004").mkdir()
    (tmp_path / "class/s004/scale.py").symlink_to(secret)
    cli("batch", tmp_path / "class", "--out", tmp_path / "out", "--course", TINY)
    assert flags(tmp_path, "s001") == [
        "scale failed because a module is missing: einops_of_mine; needs review"
    ]
    assert "is not a readable notebook" in flags(tmp_path, "s002")[0]
    assert flags(tmp_path, "s003") == []
    assert "`scale.py` is a link and was left out" in flags(tmp_path, "s004")[0]
