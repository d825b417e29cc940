"""What an epoch shows of its inputs is of no use in the next; a teacher can repeat any run."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from classroom import TINY, Instant, hand_in, marks, report_of, rows
from commandline import Cli

from grader.classroom.storage import FILE, settings_of
from grader.course.course import load_course
from grader.files import Draft
from grader.grading.rng import Rng
from grader.grading.seeds import (
    public_seed,
    secret_from,
    seed_of_epoch,
    seed_of_test,
    seed_of_worker,
)
from grader.grading.session import with_grader
from grader.sandbox.host.zygote import Zygote
from grader.submissions.submission import Submission

if TYPE_CHECKING:
    from grader.grading.grader import Grader

pytestmark = pytest.mark.in_turn

# Prints all that a call could be known by, and the arguments; then answers with nothing.
RECORDER = """
import json
import zlib
import torch
from torch import nn

calls = 0

def known():
    state = torch.random.get_rng_state()
    return [torch.initial_seed(), zlib.crc32(bytes(state.tolist())), calls]

def scale(x, factor):
    global calls
    if factor < 0:
        raise ValueError
    calls += 1
    print(json.dumps([known(), list(x.shape), factor, x.flatten().tolist()]))
    return x * 0

class Scale(nn.Module):
    pass
"""
# Answers with what was recorded, by whatever it is known by.
REPLAYER = """
import torch
from torch import nn

{recorder}

answers = {answers}
tables = {tables}

def scale(x, factor):
    global calls
    if factor < 0:
        raise ValueError
    calls += 1
    seed, state, order = known()
    seen = str(x.flatten().tolist())
    for key in (("values", seen, factor), ("seed", seed, factor), ("state", state, factor),
                ("order", order, factor), ("shape", str(list(x.shape)), factor)):
        if key in tables:
            return torch.tensor(answers[tables[key]], dtype=x.dtype).reshape(x.shape)
    return x * 0
"""


# What a recorder hears of: the factor in each test.
CALLS = {"test_written_by_hand": 2.0, "test_twice": 2.0, "test_thrice": 3.0}


def batch(cli: Cli, folder: Path, out: Path, *more: object) -> Any:
    return cli("batch", folder, "--out", out, "--course", TINY, "--quiet", *more)


def recorded(out: Path, name: str) -> list[Any]:
    """The calls that a recorder printed into its own report."""
    tests = report_of(out, name)["exercises"][0]["tests"]
    return [json.loads(line) for test in tests for line in test["printed"].splitlines()]


def replayer(calls: list[Any]) -> str:
    answers, tables = [], {}
    for (seed, state, order), shape, factor, values in calls:
        known = ("seed", seed), ("state", state), ("order", order), ("shape", str(shape))
        for key in (("values", str(values)), *known):
            tables[(*key, factor)] = len(answers)
        answers.append([value * factor for value in values])
    head = RECORDER.split("def scale", maxsplit=1)[0].replace("import json", "")
    tail = RECORDER.rpartition("class Scale")[2]
    text = REPLAYER.format(recorder=head, answers=answers, tables=tables)
    return f"{text}\nclass Scale{tail}"


def drawn(secret: bytes, epoch: int) -> list[Any]:
    """The calls that a recorder in this epoch would print, without running it."""
    seed = seed_of_epoch(secret, epoch)
    calls = []
    for order, (test, factor) in enumerate(CALLS.items(), 1):
        torch.manual_seed(seed_of_worker(seed, "scale", test))
        state = zlib.crc32(bytes(torch.random.get_rng_state().tolist()))
        values = Rng(seed_of_test(seed, "scale", test)).randn(2, 3).flatten().tolist()
        calls.append([[torch.initial_seed(), state, order], [2, 3], factor, values])
    return calls


def of_values(out: Path, name: str) -> list[int]:
    """The points of the checks that compare numbers."""
    tests = report_of(out, name)["exercises"][0]["tests"]
    return [test["points"] for test in tests if test["name"] in ("test_twice", "test_thrice")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "tries"), [(40, 4), pytest.param(1000, 20, marks=pytest.mark.slow)]
)
def test_recorded_answers_earn_nothing_in_the_next_epoch(
    count: int, tries: int, cli: Cli, tmp_path: Path
) -> None:
    """Few recorders are run; what they would print in all other epochs follows from the secret."""
    folder, out, same = tmp_path / "class", tmp_path / "out", tmp_path / "same"
    names = [f"s{n:04}" for n in range(1, tries + 1)]
    hand_in(folder, {f"{name}/scale.py": f"{RECORDER}# {name}\n" for name in names[:4]})
    assert batch(cli, folder, out, "--seed", 7).code == 1
    honest = marks(out)[names[0]]  # of code that raises where it must, and answers 0
    secret = bytes.fromhex(settings_of(out / FILE)["secret"])
    for name in names[:4]:
        assert recorded(out, name) == drawn(secret, 1)
    others = [call for epoch in range(3, count + 2) for call in drawn(secret, epoch)]
    calls = [*drawn(secret, 1), *others]
    for (seed, *_), shape, _, values in calls:
        own = torch.randn(*shape, dtype=torch.float64, generator=_generator(seed))
        assert own.flatten().tolist() != values
    assert len({tuple(values) for *_, values in calls}) == len(calls)  # no epoch saw another's
    parts = {
        name: replayer([*others[at::tries], *drawn(secret, 1)]) for at, name in enumerate(names)
    }
    hand_in(folder, {f"{name}/scale.py": f"{text}# {name}\n" for name, text in parts.items()})
    assert batch(cli, folder, same, "--seed", 7).code == 1
    assert [of_values(same, name) for name in names] == [[2, 2]] * tries  # in its own epoch
    assert batch(cli, folder, out, "--seed", 7, "--replace").code == 1
    assert [of_values(out, name) for name in names] == [[0, 0]] * tries
    assert {marks(out)[name] for name in names} == {honest}


def epochs(out: Path) -> dict[str, int]:
    """The epoch of each student's submission."""
    joined = "SELECT student, epoch FROM attempts JOIN submissions USING (hash)"
    return dict(rows(out, joined))


def seeds(instant: Instant) -> dict[str, int]:
    return {job.submission.name: job.seed for job in instant.jobs}


def hand_in_points(tmp_path: Path, *numbers: int) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in numbers})


def test_whoever_hands_in_before_feedback_is_published_shares_a_seed(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"

    def killed(job: Any) -> None:
        raise KeyboardInterrupt

    hand_in_points(tmp_path, 1)
    instant.before = killed
    assert batch(cli, folder, out).code == 130
    instant.before = lambda job: None
    hand_in_points(tmp_path, 2)  # nothing is published yet
    batch(cli, folder, out)
    hand_in_points(tmp_path, 3)
    batch(cli, folder, out)
    secret = bytes.fromhex(settings_of(out / FILE)["secret"])
    first, second = (seed_of_epoch(secret, number) for number in (1, 2))
    assert seeds(instant) == {"s001": first, "s002": first, "s003": second}
    assert epochs(out) == {"s001": 1, "s002": 1, "s003": 2}
    hand_in(folder, {"s004/scale.py": "# 1 points"})  # what s001 has handed in is not new
    batch(cli, folder, out)
    assert epochs(out)["s004"] == 1
    assert "s004" not in seeds(instant)


def test_a_run_that_goes_on_stays_in_its_epoch(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"

    def killed(job: Any) -> None:
        if job.submission.name == "s004":
            raise KeyboardInterrupt

    hand_in_points(tmp_path, 1, 2, 3, 4, 5)
    instant.before = killed
    assert batch(cli, folder, out).code == 130
    assert rows(out, "SELECT student FROM published") != []
    instant.before = lambda job: None
    assert cli("batch", "--resume", "--out", out, "--course", TINY).code == 1
    assert len(marks(out)) == 5
    assert len(set(seeds(instant).values())) == 1
    assert set(epochs(out).values()) == {1}


def test_to_grade_the_same_submissions_again_changes_nothing(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    for number in (1, 2, 3):
        hand_in_points(tmp_path, number)
        batch(cli, folder, out)
    before, given = epochs(out), seeds(instant)
    assert before == {"s001": 1, "s002": 2, "s003": 3}
    instant.jobs.clear()
    again = ("regrade", "--in", out, "--course", TINY, "--publish")
    assert "0 change" in cli(*again).out
    assert instant.jobs == []
    everybody = [word for student in before for word in ("--again", student)]
    assert "0 change" in cli(*again, *everybody).out
    assert (seeds(instant), epochs(out)) == (given, before)
    hand_in_points(tmp_path, 4)
    batch(cli, folder, out)
    assert epochs(out)["s004"] == 4


def test_feedback_on_an_attempt_that_does_not_count_ends_its_epoch_too(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    names = "s001_11_101_scale.py", "s001_11_102_scale-1.py", "s001_11_103_scale-2.py"
    for name, points in zip(names, (3, 2, 1)):
        hand_in(folder, {name: f"# {points} points"})
        assert batch(cli, folder, out, "--attempt", "best").code == 1
    assert marks(out) == {"11": "3"}
    secret = bytes.fromhex(settings_of(out / FILE)["secret"])
    assert [job.seed for job in instant.jobs] == [seed_of_epoch(secret, n) for n in (1, 2, 3)]


def test_an_epoch_ends_before_anybody_can_read_a_report(
    cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(draft: Draft) -> None:
        put(draft)
        raise KeyboardInterrupt

    folder, out, put = tmp_path / "class", tmp_path / "out", Draft.put
    hand_in_points(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Draft, "put", killed)
        assert batch(cli, folder, out).code == 130
    assert list((out / "reports").iterdir()) != []
    hand_in_points(tmp_path, 2)
    batch(cli, folder, out)
    assert epochs(out) == {"s001": 1, "s002": 2}


@pytest.mark.parametrize("damaged", ["value = '9'", "checksum = ''"])
def test_an_epoch_that_is_not_known_any_more_is_not_used_again(
    damaged: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    for number in (1, 2):
        hand_in_points(tmp_path, number)
        batch(cli, folder, out)
    with closing(sqlite3.connect(out / FILE)) as db:
        db.execute(f"UPDATE settings SET {damaged} WHERE key LIKE 'published_epoch%'")
        db.commit()
    hand_in_points(tmp_path, 3)
    batch(cli, folder, out)
    assert epochs(out)["s003"] == 3


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.slow
def test_the_same_files_get_the_same_inputs_in_every_run_of_a_class(
    cli: Cli, tmp_path: Path
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    hand_in(folder, {f"{name}/scale.py": RECORDER for name in ("s001", "s002")})
    batch(cli, folder, out)
    before = report_of(out, "s001")
    assert recorded(out, "s001") == recorded(out, "s002")
    again = ("regrade", "--in", out, "--course", TINY, "--again", "s001", "--publish")
    for more in ((), ("--seed", before["seed"])):  # the seed that reports print is its own
        assert "0 change" in cli(*again, *more).out
        assert report_of(out, "s001") == before


def test_the_seed_that_a_report_prints_is_of_no_use_without_the_ledger(
    cli: Cli, tmp_path: Path
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    hand_in(folder, {"s001/scale.py": RECORDER})
    batch(cli, folder, out)
    seed = report_of(out, "s001")["seed"]
    batch(cli, folder, tmp_path / "other", "--seed", seed)
    assert report_of(tmp_path / "other", "s001")["seed"] != seed
    theirs = {tuple(values) for *_, values in recorded(tmp_path / "other", "s001")}
    assert not theirs & {tuple(values) for *_, values in recorded(out, "s001")}


def test_a_seed_that_the_teacher_chose_repeats_a_class_on_any_machine(
    cli: Cli, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": RECORDER})
    for out in ("one", "two"):
        batch(cli, tmp_path / "class", tmp_path / out, "--seed", 7)
    assert report_of(tmp_path / "one", "s001") == report_of(tmp_path / "two", "s001")
    assert report_of(tmp_path / "one", "s001")["seed"] == public_seed(secret_from(7))


@pytest.mark.slow
def test_a_slope_is_not_measured_across_a_kink(
    tiny_copy: Path, tiny_solution: str, zygote: Zygote
) -> None:
    """Gradients that are right are so with any seed, though what they are of is wrong."""
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    compares = "    assert_close(output_of(theirs, x), output_of(ours, x))\n"
    assert compares in suite.read_text()
    suite.write_text(suite.read_text().replace(compares, ""))
    wave = "(50 * x - (50 * x).round()).abs() * self.weight"
    assert "return x * self.weight" in tiny_solution
    submission = Submission("s001", {"scale": tiny_solution.replace("x * self.weight", wave)})

    def points(grader: Grader) -> set[int]:
        graded = (grader.grade(submission, ["scale"], seed).results for seed in range(50))
        return {test.points for (result,) in graded for test in result.tests[-1:]}

    assert with_grader(load_course(tiny_copy), ["scale"], zygote, points) == {3}
