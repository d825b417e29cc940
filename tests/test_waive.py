"""A broken check is taken out of marks that were graded already, and none of them goes wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classroom import Instant, hand_in, marks, report_of, rows
from commandline import Cli
from regrading import add_rule, adjust, batch, out, pages, regrade, touch
from test_price import FAULTS, NEEDS_TWICE, SUITE

from grader.classroom.workers.messages import Job
from grader.grading.price import Nearest, charged
from grader.report import Diagnosis, ExerciseResult, Outcome, WrongCase

# The checks of `scale`, with their points, which add up to 8; `shift` has one, of 2.
CHECKS = {"test_twice": 2, "test_thrice": 2, "test_negative": 1, "test_module": 3}
SENTENCES = {
    "test_twice": "The factor 2 doubles.",
    "test_thrice": "The factor 3 triples.",
    "test_negative": "A negative factor raises ValueError.",
    "test_module": "The module multiplies by its weight.",
}


def graded(name: str, job: Job) -> ExerciseResult:
    """The result that a file asks for.

    `# fails test_twice three_rows five_rows` is a failed check with its wrong cases; `# skips
    test_thrice` waits for test_twice; `# mistake 3 test_twice` explains the cases of checks, at a
    price; `# near 1` is the price of what no mistake explains.
    """
    text = job.submission.files[name]
    if name == "shift":
        return ExerciseResult(
            name, "Shift", 2, 2, "", (Outcome("test_all", "It.", "passed", 2, 2),)
        )
    fails = {check: cases.split() for check, cases in re.findall(r"# fails (\w+)(.*)", text)}
    skips = re.findall(r"# skips (\w+)", text)
    tests = []
    for check, worth in CHECKS.items():
        wrong = tuple(WrongCase(c, f"{c.capitalize()}.") for c in fails.get(check, ()))
        if check in skips:
            says = 'skipped until "test_twice" passes'
            tests.append(Outcome(check, SENTENCES[check], "skipped", 0, worth, says))
        elif check in fails:
            says = f"{wrong[0].sentence[:-1]}: the answer is 1" if wrong else "wrong"
            kind = "Timeout" if "# hangs" in text else "value"
            tests.append(
                Outcome(check, SENTENCES[check], "failed", 0, worth, says, kind, wrong=wrong)
            )
        else:
            tests.append(Outcome(check, SENTENCES[check], "passed", worth, worth))
    points = sum(test.points for test in tests)
    result = ExerciseResult(name, "Scale", points, 8, "", tuple(tests))
    found = re.findall(r"# mistake (\d) (.+)", text)
    shown = tuple(tuple(checks.split()) for _, checks in found)
    names = tuple(f"fault_{at}" for at in range(len(found)))
    explained = tuple(c for checks in shown for check in checks for c in fails.get(check, ()))
    explained = tuple(c for c in explained if not c.startswith("other"))
    diagnosis = Diagnosis(
        names, "It is wrong.", "", shown, names, tuple(int(cost) for cost, _ in found),
        explains_cases=explained,
    )  # fmt: skip
    if not fails:
        return result
    near = re.search(r"# near (\d)", text)
    wrong_cases = {c for cases in fails.values() for c in cases}
    nearest = Nearest(1.0, int(near[1]), frozenset(wrong_cases)) if near else None
    return charged(ExerciseResult(name, "Scale", points, 8, "", tuple(tests), diagnosis=diagnosis),
                   wrong_cases, lambda wrong: nearest)  # fmt: skip


@pytest.fixture
def checked(instant: Instant, monkeypatch: pytest.MonkeyPatch) -> Instant:
    """The engine that answers at once, with several checks."""
    monkeypatch.setattr(instant, "_result", graded)
    return instant


Hand = Callable[..., Path]


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    """Hand in `scale.py` of each student, with these texts, and `shift.py`."""

    def handing(*texts: str) -> Path:
        files = {f"s{at:03}/scale.py": f"{text}\n# s{at}\n" for at, text in enumerate(texts, 1)}
        others = {f"s{at:03}/shift.py": f"# s{at}\n" for at in range(1, len(texts) + 1)}
        return hand_in(tmp_path / "class", files | others)

    return handing


def waive(cli: Cli, handed_in: Path, course: Path, *what: object, why: str = "unfair") -> Any:
    reason = () if "--undo" in what else ("--reason", why)
    return cli("waive", "scale", *what, *reason, "--in", out(handed_in), "--course", course)


def history(cli: Cli, handed_in: Path, course: Path, *student: str) -> str:
    said = cli("history", *student, "--in", out(handed_in), "--course", course)
    return str(said.out)


def plain(page: Path) -> str:
    """A page's text without what Markdown escapes."""
    return re.sub(r"[`\\\\]", "", page.read_text())


TWICE, THRICE, BOTH = (
    "# fails test_twice",
    "# fails test_thrice",
    "# fails test_twice\n# fails test_thrice",
)


# --- a whole check --------------------------------------------------------------------------------


def test_everybody_gets_the_points_of_a_check_that_is_waived(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", TWICE, BOTH)
    batch(cli, folder, pair)
    assert marks(out(folder)) == {"s001": "10", "s002": "8", "s003": "6"}
    said = waive(cli, folder, pair, "test_twice", "--give", "full", why="not in the task")
    assert (said.code, said.err) == (0, "")
    line = "scale: the check “The factor 2 doubles.” counts as passed: not in the task"
    assert f"  {line} (for everybody)\n" in said.out
    assert "s002       8 → 10     of 10  scale +2\n" in said.out
    assert "s003       6 → 8      of 10  scale +2\n" in said.out
    assert "2 change, 1 stay as they were" in said.out
    assert "published: 3 students" in said.out
    assert marks(out(folder)) == {"s001": "10", "s002": "10", "s003": "8"}
    scale = report_of(out(folder), "s003")["exercises"][0]
    twice, thrice, *_ = scale["tests"]
    assert (twice["outcome"], twice["points"], thrice["points"]) == ("passed", 2, 0)
    assert twice["waived"] == "waived, counts as passed: not in the task"
    assert (scale["points"], scale["dropped"]) == (2 + 0 + 1 + 3, 0)
    for form in ("reports/s003.html", "reports/s003.md", "code/s003.html"):
        assert "counts as passed: not in the task" in plain(out(folder) / form)
    assert report_of(out(folder), "s002")["advice"] == "Everything here passes."


def test_a_dropped_check_counts_for_nobody_and_the_others_fill_its_place(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", TWICE, THRICE, BOTH)
    batch(cli, folder, pair)
    said = waive(cli, folder, pair, "test_twice", "--give", "drop")
    # Of 6 points that are left of 8: 6, 6, 4 and 4; times 8/6; and 2 for `shift`.
    expected = {"s001": "10", "s002": "10", "s003": "7.33", "s004": "7.33"}
    assert marks(out(folder)) == expected
    assert "s003       8 → 7.33   of 10  scale -0.67\n" in said.out
    assert "s004       6 → 7.33   of 10  scale +1.33\n" in said.out
    assert "1 of them falls; with --give full, none does" in said.out
    report = report_of(out(folder), "s003")
    scale = report["exercises"][0]
    assert (scale["points"], scale["max_points"], scale["dropped"]) == (4, 8, 2)
    twice = scale["tests"][0]
    assert (twice["outcome"], twice["points"], twice["max_points"]) == ("skipped", 0, 0)
    assert sum(test["points"] for test in scale["tests"]) == 4
    step = report["mark"]["steps"][0]
    assert (step["says"], step["adds"]) == ("Scale: 4 of 6, scaled to 8", 5.33)
    page = (out(folder) / "reports" / "s003.html").read_text()
    line = "4 of 6 points count as 5.33 of 8, because checks worth 2 were taken out"
    assert f"{line}.</p>" in page
    assert line in plain(out(folder) / "reports" / "s003.md")
    full = report_of(out(folder), "s002")["exercises"][0]
    assert (full["points"], full["statement"]) == (6, "")  # it passes


@pytest.mark.parametrize("give", ["full", "drop"])
def test_every_export_has_the_points_that_count(
    cli: Cli, checked: Instant, hand: Hand, pair: Path, tmp_path: Path, give: str
) -> None:
    folder = hand("", TWICE, THRICE)
    batch(cli, folder, pair)
    waive(cli, folder, pair, "test_twice", "--give", give)
    mark, scale = {"full": ("8", "6"), "drop": ("7.33", "5.33")}[give]
    place = ("--in", out(folder), "--course", pair)
    assert cli("export", "csv", *place, "-o", tmp_path / "marks.csv").code == 0
    line = next(x for x in (tmp_path / "marks.csv").read_text().splitlines() if "s003" in x)
    assert {mark, scale} <= {*line.split(",")}
    gradebook = tmp_path / "gradebook.csv"
    gradebook.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,A pair (1)\n"
        "Points Possible,,,,,10\ns001,1,s001,s001,A,\ns002,2,s002,s002,A,\ns003,3,s003,s003,A,\n"
    )
    said = cli("export", "canvas", gradebook, *place, "-o", tmp_path / "filled.csv")
    assert said.code == 0  # the maximum of the gradebook is still that of the marks
    assert f"s003,3,s003,s003,A,{mark}" in (tmp_path / "filled.csv").read_text()
    assert cli("export", "gradescope", *place).code == 0
    (found,) = out(folder).rglob("s003/results.json")
    assert f'"score": {mark}' in found.read_text().replace(".0,", ",")


def test_nobody_who_left_the_exercise_out_is_left_out_of_a_gift(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", TWICE, "")
    (folder / "s003" / "scale.py").unlink()
    batch(cli, folder, pair)
    assert marks(out(folder))["s003"] == "2"
    waive(cli, folder, pair, "test_twice", "--give", "full")
    assert marks(out(folder)) == {"s001": "10", "s002": "10", "s003": "4"}
    waive(cli, folder, pair, "test_module", "--give", "drop")
    # 5 points are left of 8, of which s003 has those 2: 2 + 2 × 8/5.
    assert marks(out(folder)) == {"s001": "10", "s002": "10", "s003": "5.2"}


def test_a_waiver_for_some_is_for_nobody_else(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand(TWICE, TWICE + "\n#", TWICE + "\n##")
    batch(cli, folder, pair)
    others = {name: text for name, text in pages(folder).items() if "s003" in name}
    said = waive(
        cli, folder, pair, "test_twice", "--give", "full", "--for", "s001", "--for", "s002"
    )
    assert "(for s001; s002)" in said.out
    assert marks(out(folder)) == {"s001": "10", "s002": "10", "s003": "8"}
    assert {name: pages(folder)[name] for name in others} == others
    waive(cli, folder, pair, "test_twice", "--undo", "--for", "s002")
    assert marks(out(folder)) == {"s001": "10", "s002": "8", "s003": "8"}
    assert "waived" not in history(cli, folder, pair, "s003")
    assert "counts as passed: unfair" in history(cli, folder, pair, "s001")


@pytest.mark.parametrize("give", ["full", "drop"])
def test_one_command_undoes_a_waiver(
    cli: Cli, checked: Instant, hand: Hand, pair: Path, give: str
) -> None:
    folder = hand("", TWICE, THRICE, BOTH)
    batch(cli, folder, pair)
    before = pages(folder)
    waive(cli, folder, pair, "test_twice", "--give", give)
    assert pages(folder) != before
    said = waive(cli, folder, pair, "test_twice", "--undo")
    assert (said.code, "no longer waived: taken back" in said.out) == (0, True)
    assert "with --give full, none does" not in said.out  # no advice where nothing is given
    assert pages(folder) == before
    told = history(cli, folder, pair)
    assert "the class  adjustment: scale: the check “The factor 2 doubles.”" in told
    assert "6 of 10: unwaived (scale" in told
    said = waive(cli, folder, pair, "test_twice", "--undo")
    assert (said.code, "is not waived" in said.err) == (2, True)


def test_history_and_explain_say_what_was_waived(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", THRICE)
    batch(cli, folder, pair)
    waive(cli, folder, pair, "The factor 2 doubles.", "--give", "drop", why="it was broken")
    told = history(cli, folder, pair, "s002")
    line = "scale: the check “The factor 2 doubles.” does not count: it was broken"
    assert f"the class  adjustment: {line}\n" in told
    assert "8 → 7.33 of 10: waived (scale −0.67)" in told
    place = ("--in", out(folder), "--course", pair)
    said = cli("explain", "s002", *place).out
    assert "scale: 4 of 6 points, 1 of 4 checks fails" in said
    assert "4 of 6 points count as 5.33 of 8, because checks worth 2 were taken out" in said
    assert "waived      the check “The factor 2 doubles.”: it was broken" in said
    assert "6 of 8 points as graded, 5.33 now" in said
    assert "Scale: 4 of 6, scaled to 8" in said
    assert "waived, does not count: it was broken" in cli("explain", "s002", "scale", *place).out


# --- the gate -------------------------------------------------------------------------------------


def test_a_waiver_while_marks_wait_for_a_regrade_is_kept_but_not_published(
    cli: Cli, checked: Instant, hand: Hand, pair: Path, tmp_path: Path
) -> None:
    folder = hand("", TWICE)
    batch(cli, folder, pair)
    before = pages(folder)
    add_rule(pair, "extra_credit = []\nweights = { scale = 2 }")
    said = waive(cli, folder, pair, "test_twice", "--give", "full")
    assert "kept, but not published: grader regrade shows what else has changed" in said.out
    assert pages(folder) == before
    place = ("--in", out(folder), "--course", pair)
    refused = cli("export", "csv", *place, "-o", tmp_path / "marks.csv")
    assert (refused.code, "not published as they stand now" in refused.err) == (2, True)
    said = regrade(cli, folder, pair, "--publish")
    assert "s002       8 → 18     of 18, not 10" in said.out
    assert marks(out(folder))["s002"] == "18"


def test_a_waiver_that_takes_an_adjusted_mark_above_the_maximum_is_flagged(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", TWICE)
    batch(cli, folder, pair)
    adjust(cli, folder, pair, "s002", "--final", "+1")
    assert marks(out(folder)) == {"s001": "10", "s002": f"{10 - 2 + 1}"}
    assert report_of(out(folder), "s002")["flags"] == []
    waive(cli, folder, pair, "test_twice", "--give", "full")
    assert marks(out(folder)) == {"s001": "10", "s002": f"{10 + 1}"}
    flag = "the mark counts 11 of 10 points, as it was adjusted; needs review"
    assert [report_of(out(folder), student)["flags"] for student in ("s001", "s002")] == [
        [],
        [flag],
    ]


def test_a_waiver_survives_every_regrade_and_counts_for_what_comes_later(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", TWICE)
    batch(cli, folder, pair)
    waive(cli, folder, pair, "test_twice", "--give", "full")
    touch(pair, "shift")
    assert "0 change, 2 stay" in regrade(cli, folder, pair, "--publish").out
    assert regrade(cli, folder, pair, "--again", "s002", "--publish").code == 0
    hand_in(folder, {"s003/scale.py": BOTH, "s003/shift.py": "# s3\n"})
    batch(cli, folder, pair)
    assert marks(out(folder)) == {"s001": "10", "s002": "10", "s003": "8"}


def test_adjustments_and_lateness_count_on_top_of_a_waiver(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    settings = pair / "reference" / "course.toml"
    late = "due = 2020-01-01T00:00:00+00:00\n", "[late]\nper_day = 10\nfloor = 50\n"
    settings.write_text(f"{late[0]}{settings.read_text()}{late[1]}")
    folder = hand(BOTH)
    roster = folder.parent / "class.csv"
    roster.write_text("id,submitted\ns001,2020-01-02 00:00\n")
    batch(cli, folder, pair, "--roster", roster)
    assert marks(out(folder))["s001"] == "5.4"  # (4 + 2) × 90 %
    adjust(cli, folder, pair, "s001", "scale", "+1")
    waive(cli, folder, pair, "test_twice", "--give", "drop")
    assert marks(out(folder))["s001"] == "7.5"  # (4 × 8/6 + 1 + 2) × 90 %
    assert "due" in settings.read_text()


# --- a single case --------------------------------------------------------------------------------


def test_a_check_is_as_if_a_waived_case_had_not_been_asked(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand(
        "# fails test_twice odd", "# fails test_twice odd five", "# fails test_twice five"
    )
    batch(cli, folder, pair)
    assert marks(out(folder)) == {"s001": "8", "s002": "8", "s003": "8"}
    said = waive(cli, folder, pair, "odd", "--give", "drop")
    assert said.code == 0
    assert "scale: the case “Odd.” does not count: unfair" in said.out
    # The only wrong case of s001 is gone; s002 and s003 have another. Nobody is scaled.
    assert marks(out(folder)) == {"s001": "10", "s002": "8", "s003": "8"}
    twice = report_of(out(folder), "s002")["exercises"][0]["tests"][0]
    assert [case["name"] for case in twice["wrong"]] == ["five"]
    assert twice["message"] == "Five: this is wrong, too"
    assert twice["waived"] == "waived, one of its cases does not count: unfair"
    same = report_of(out(folder), "s003")["exercises"][0]["tests"][0]
    assert (same["message"], same["waived"]) == ("Five: the answer is 1", "")
    waive(cli, folder, pair, "Odd.", "--undo")
    assert marks(out(folder))["s001"] == "8"


@pytest.mark.parametrize(
    ("text", "waived", "before", "after"),
    [
        # A mistake of 3 points fails checks of 2 and 2; it still shows in the other: 2 points.
        ("# fails test_twice a\n# fails test_thrice b\n# mistake 3 test_twice test_thrice",
         "test_twice", 8 - 3, 8 - 2),
        # A mistake of 1 point that shows elsewhere as well costs as much as before.
        ("# fails test_twice a\n# fails test_thrice b\n# mistake 1 test_twice test_thrice",
         "test_twice", 8 - 1, 8 - 1),
        # One of two mistakes shows nowhere else.
        ("# fails test_twice a\n# fails test_module b\n"
         "# mistake 1 test_twice\n# mistake 2 test_module",
         "test_twice", 8 - 3, 8 - 2),
        # The last wrong case that the mistake does not explain is gone: its check costs no more.
        ("# fails test_twice a other\n# fails test_thrice b\n# mistake 1 test_twice test_thrice",
         "other", 8 - 2 - 1, 8 - 1),
        # A case that the mistake explains: nothing else changes.
        ("# fails test_twice a c\n# fails test_thrice b\n# mistake 3 test_twice test_thrice",
         "a", 8 - 3, 8 - 3),
        # What no mistake explains costs what the nearest one does, and never more than its checks.
        ("# fails test_module a\n# fails test_negative b\n# near 2", "test_module", 8 - 2, 8 - 1),
        ("# fails test_twice a\n# fails test_negative b\n# near 1", "test_negative", 8 - 1, 8 - 1),
    ],
)  # fmt: skip
def test_a_mistake_is_charged_for_what_it_still_fails(
    cli: Cli,
    checked: Instant,
    hand: Hand,
    pair: Path,
    text: str,
    waived: str,
    before: int,
    after: int,
) -> None:
    folder = hand(text)
    batch(cli, folder, pair)
    assert report_of(out(folder), "s001")["exercises"][0]["points"] == before
    waive(cli, folder, pair, waived, "--give", "full")
    scale = report_of(out(folder), "s001")["exercises"][0]
    assert scale["points"] == after
    tests = sum(test["points"] for test in scale["tests"])
    assert tests + scale["given_back"] == after


def test_what_only_a_new_grading_can_tell_is_said_with_its_command(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand(
        "# fails test_twice a\n# skips test_thrice",
        "# fails test_twice a\n# hangs",
        "# fails test_twice a b\n# fails test_module c\n# near 2",
    )
    batch(cli, folder, pair)
    said = waive(cli, folder, pair, "a", "--give", "drop")
    assert 'not known from the results: "The factor 2 doubles." ended at that case' in said.out
    assert "s002" in said.out
    said = waive(cli, folder, pair, "test_twice", "--give", "full")
    waits = '"The factor 3 triples." was not asked, because it waited for what is waived: s001\n'
    assert f"not known from the results: {waits}" in said.out
    price = "keeps its price, which was that of the nearest known mistake: s003\n"
    assert price in said.out
    command = (
        f"take it out of reference/scale/test_hidden.py; then grader regrade --in {out(folder)}"
    )
    assert command in said.out
    assert marks(out(folder))["s001"] == "8"  # of 10, without what was not asked


@pytest.mark.slow
def test_a_waived_case_gives_the_marks_of_a_suite_without_it(
    cli: Cli, tiny_copy: Path, tiny_solution: str, tmp_path: Path
) -> None:
    folder = tiny_copy / "reference" / "scale"
    suite = SUITE.replace(NEEDS_TWICE, "")
    (folder / "test_hidden.py").write_text(suite)
    (folder / "mistakes.toml").write_text(FAULTS)
    for path in (folder / "exercise.toml", folder.parent / "course.toml"):
        path.write_text(path.read_text().replace("points = 8", "points = 12"))
    product = "return x * factor"
    odd = "return x * factor + (x.shape == (5, 4) and factor == 2)"
    unused = ("return x * self.weight", "return x + 0")
    texts = {
        "s001": tiny_solution,
        "s002": tiny_solution.replace(product, odd),  # wrong in that case alone
        "s003": tiny_solution.replace(product, "return 2 * factor * x"),  # a mistake
        "s004": tiny_solution.replace(product, odd).replace(*unused),
    }
    files = {f"{student}/scale.py": text for student, text in texts.items()}
    handed_in = hand_in(tmp_path / "class", files)
    batch(cli, handed_in, tiny_copy)
    before = marks(out(handed_in))
    waive(cli, handed_in, tiny_copy, "Five rows.", "--give", "drop")
    after = marks(out(handed_in))
    assert before["s001"] == after["s001"] == "12"
    assert float(before["s002"]) < float(after["s002"]) == 12
    assert before["s003"] == after["s003"] == "7"
    assert float(before["s004"]) < float(after["s004"]) == 11  # without the other mistake's price
    case = next(line for line in suite.splitlines(keepends=True) if '"Five rows."' in line)
    (folder / "test_hidden.py").write_text(suite.replace(case, ""))
    assert "0 change, 4 stay as they were" in regrade(cli, handed_in, tiny_copy).out


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (("test_twcie", "--give", "full"), "no check or wrong case `test_twcie`; did you mean"),
        (("test_twice",), "what does everybody get?"),
        (("test_twice", "--give", "full", "--for", "s0001"), "did you mean `s001`?"),
        (("test_twice", "--give", "full", "--undo"), "--undo takes a waiver back"),
        (("test_twice", "--undo"), "is not waived"),
    ],
)
def test_a_wrong_waiver_is_refused(
    what: tuple[str, ...], said: str, cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", TWICE)
    batch(cli, folder, pair)
    before = pages(folder)
    answer = waive(cli, folder, pair, *what)
    assert (answer.code, said in answer.err) == (2, True)
    assert pages(folder) == before
    assert rows(out(folder), "SELECT count(*) FROM history WHERE what = 'adjustment'") == [(0,)]


def test_the_last_check_of_an_exercise_cannot_be_dropped(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", BOTH)
    batch(cli, folder, pair)
    *others, last = CHECKS
    for check in others:
        assert waive(cli, folder, pair, check, "--give", "drop").code == 0
    said = waive(cli, folder, pair, last, "--give", "drop")
    assert (said.code, "nothing in scale would count" in said.err) == (2, True)


def test_checks_are_listed_with_their_wrong_cases(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", "# fails test_twice odd", "# fails test_twice odd five")
    batch(cli, folder, pair)
    said = cli("waive", "scale", "--in", out(folder), "--course", pair).out
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert lines[:4] == [
        "points wrong of 3",
        "2 2 test_twice: The factor 2 doubles.",
        "2 odd: Odd.",
        "1 five: Five.",
    ]


def test_no_waiver_names_a_student_who_was_erased(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand(TWICE, TWICE + "\n#", "")
    batch(cli, folder, pair)
    waive(cli, folder, pair, "test_twice", "--give", "full", "--for", "s001", "--for", "s002")
    waive(cli, folder, pair, "test_module", "--give", "full", "--for", "s001")
    place = ("--in", out(folder), "--course", pair)
    assert cli("erase", "s001", *place, "--yes").code == 0
    ((kept,),) = rows(out(folder), "SELECT value FROM settings WHERE key = 'waivers'")
    assert "s001" not in kept
    assert marks(out(folder)) == {"s002": "10", "s003": "10"}


# --- a regrade that only raises -------------------------------------------------------------------


def test_a_regrade_can_publish_what_rises_and_list_what_would_fall(
    cli: Cli, checked: Instant, hand: Hand, pair: Path, tmp_path: Path
) -> None:
    folder = hand("", "# fails test_module", "# fails test_negative")
    batch(cli, folder, pair)
    assert marks(out(folder)) == {"s001": "10", "s002": "7", "s003": "9"}
    touch(pair, "scale")
    CHANGED = {"test_module": "test_negative", "test_negative": "test_module"}

    def otherwise(name: str, job: Job) -> ExerciseResult:
        for old, new in CHANGED.items():
            if old in job.submission.files[name]:
                job.submission.files[name] = f"# fails {new}"  # type: ignore[index]
                break
        return graded(name, job)

    checked._result = otherwise  # type: ignore[method-assign]
    said = regrade(cli, folder, pair, "--only-up")
    assert "s002       7 → 9      of 10  scale +2" in said.out
    assert "would fall, and keep what is published, 1:\n  s003  9 of 10, not 7\n" in said.out
    assert marks(out(folder)) == {"s001": "10", "s002": "9", "s003": "9"}
    report = report_of(out(folder), "s003")
    assert report["exercises"][0]["points"] == 5
    step = report["mark"]["steps"][-1]
    assert (step["says"], step["adds"]) == ("adjusted: a regrade takes no points away", 2)
    told = history(cli, folder, pair, "s003")
    assert "adjustment: the mark stays at 9, not 7: a regrade takes no points away" in told
    # Everything is published under the rules of today: nothing waits, and nothing falls later.
    assert cli("export", "csv", "--in", out(folder), "--course", pair).code == 0
    assert "0 change, 3 stay" in regrade(cli, folder, pair, "--publish").out
    # What raises it later does not add to what was kept, and one command takes it back.
    waive(cli, folder, pair, "test_module", "--give", "full")
    assert marks(out(folder))["s003"] == "10"
    waive(cli, folder, pair, "test_module", "--undo")
    assert marks(out(folder))["s003"] == "9"
    cli("adjust", "s003", "--final", "0", "--reason", "taken back", "--in", out(folder),
        "--course", pair)  # fmt: skip
    assert marks(out(folder))["s003"] == "7"


def test_other_files_are_marked_as_they_are_although_a_mark_was_kept(
    cli: Cli, checked: Instant, hand: Hand, pair: Path
) -> None:
    folder = hand("", "")
    batch(cli, folder, pair)
    add_rule(pair, "weights = { shift = 1 }")
    touch(pair, "scale")
    checked._result = lambda name, job: (
        graded(name, job)
        if name == "shift"
        else graded(  # type: ignore[method-assign]
            name, _with(job, name, "# fails test_module")
        )
    )
    assert "keep what is published, 2" in regrade(cli, folder, pair, "--only-up").out
    assert marks(out(folder)) == {"s001": "10", "s002": "10"}
    hand_in(folder, {"s002/scale.py": "# other"})
    batch(cli, folder, pair, "--replace")
    assert marks(out(folder)) == {"s001": "10", "s002": "7"}


def _with(job: Job, name: str, text: str) -> Job:
    job.submission.files[name] = text  # type: ignore[index]
    return job
