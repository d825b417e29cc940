"""The diagnosis names the mistake behind a wrong answer correctly, or not at all."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from commandline import Grade
from diagnosis import table as measured

from grader.course.course import Course, load_course
from grader.course.faults import load_faults
from grader.grading.diagnosis.replay import Variant
from grader.grading.diagnosis.search import UNKNOWN, Diagnostician
from grader.report import Diagnosis
from grader.sandbox.host.connection import CallLog, CallRecord
from grader.sandbox.host.zygote import Zygote
from grader.sandbox.wire import Call, Handle, Reply, Source, pack_tensor

Named = list[tuple[measured.Solution, measured.Named]]
Diagnose = Callable[..., Diagnosis | None]


@pytest.fixture(scope="module")
def solutions_and_names(course: Course, zygote: Zygote) -> Named:
    wrong = measured.load()
    return list(zip(wrong, measured.measure(course, wrong, zygote, timed=False)))


# --- on solutions that it was not made from -------------------------------------------------------


def test_the_corpus_is_large_and_its_faults_are_in_the_catalogue(course: Course) -> None:
    wrong = measured.load()
    assert len(wrong) >= 80
    assert {solution.exercise for solution in wrong} == set(course.names)
    known = {(name, f.name) for name in course.names for f in load_faults(course[name])}
    assert {(s.exercise, fault) for s in wrong for fault in s.faults} <= known
    assert {measured.kind(solution) for solution in wrong} == set(measured.KINDS)


@pytest.mark.slow
def test_no_wrong_solution_is_accepted(solutions_and_names: Named) -> None:
    assert [s.name for s, named in solutions_and_names if named.accepted] == []


@pytest.mark.slow
def test_nothing_is_named_wrongly(solutions_and_names: Named) -> None:
    wrong = [s.name for s, named in solutions_and_names if named.verdict(s) == "wrong"]
    assert wrong == []


@pytest.mark.slow
def test_mistakes_of_the_catalogue_are_named_in_any_style(solutions_and_names: Named) -> None:
    table = measured.counts(*map(list, zip(*solutions_and_names)))
    assert measured.share_named(table) >= measured.AIM


@pytest.mark.slow
def test_the_page_holds_the_measured_table(solutions_and_names: Named) -> None:
    table = measured.counts(*map(list, zip(*solutions_and_names)))
    rows = "\n".join(measured.rows(table))
    assert rows in measured.PAGE.read_text("utf-8"), "run `make diagnosis`"


# --- the content of a diagnosis -------------------------------------------------------------------


@pytest.fixture
def diagnose(grade: Grade, course: Course, solutions: dict[str, str]) -> Diagnose:
    def diagnosing(exercise: str, *changes: tuple[str, str], seed: int = 7) -> Diagnosis | None:
        text = solutions[exercise]
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        files = {**solutions, exercise: text}
        return grade(course, files, exercise, seed=seed).exercises[0].diagnosis

    return diagnosing


def test_a_right_solution_has_no_diagnosis(diagnose: Diagnose) -> None:
    assert diagnose("multi_head_attention") is None


def test_one_mistake_is_named_with_its_words_and_tests(diagnose: Diagnose, course: Course) -> None:
    found = diagnose("multi_head_attention", ("self.d_head**-0.5", "1.0"))
    fault = next(f for f in load_faults(course["multi_head_attention"]) if f.name == "no_scale")
    assert (found.faults, found.says, found.hint) == (("no_scale",), fault.says, fault.hint)
    assert found.tie == ()
    assert "test_multi_head_attention" in found.tests[0]


def test_the_first_wrong_step_is_the_stage_that_differs_first(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("scores, dim=-1)", "scores, dim=1)"))
    assert found.faults == ("softmax_over_queries",)
    step = found.first_wrong_step
    assert step.stage == "weights"
    assert step.says.startswith("`weights` is ")
    assert step.expected.shape == step.actual.shape == (2, 5, 5)
    assert step.expected.values != step.actual.values


def test_parts_of_a_module_are_stages_as_well(diagnose: Diagnose) -> None:
    found = diagnose(
        "transformer_block",
        ("self.feed_forward(self.norm2(x))", "self.feed_forward(self.norm1(x))"),
    )
    assert found.faults == ("norm1_used_twice",)
    assert found.first_wrong_step.stage == "feed_forward"


def test_two_mistakes_at_once_are_both_named(diagnose: Diagnose) -> None:
    found = diagnose(
        "causal_attention",
        ("self.scale = d_out**-0.5", "self.scale = 1.0"),
        ("every_pair.tril()", "every_pair.triu()"),
    )
    assert set(found.faults) == {"no_scale", "triangle_swapped"}
    assert found.says.startswith("Two mistakes at once. ")
    assert len(found.tests) == 2


def test_mistakes_that_give_the_same_answers_are_a_tie(diagnose: Diagnose) -> None:
    found = diagnose("masked_softmax", ("scores = X.masked_fill(~valid, -torch.inf)", "scores = X"))
    assert [found.faults, *(other.faults for other in found.tie)] == [
        ("masked_after_softmax",),
        ("filled_copy_discarded",),
    ]


def test_an_unknown_mistake_is_not_named(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("weights @ values", "weights @ values + 0.01"))
    assert found == Diagnosis((), UNKNOWN, "")


def test_a_mistake_that_raises_the_same_error_is_named(diagnose: Diagnose) -> None:
    changed = "context.transpose(1, 2).view(batch, n_tokens, -1)"
    found = diagnose("multi_head_attention", ("context.transpose(1, 2).flatten(2)", changed))
    assert found.faults == ("viewed_after_transpose",)


def test_an_error_of_no_known_mistake_has_no_diagnosis(diagnose: Diagnose) -> None:
    old = "context.transpose(1, 2).flatten(2)"
    assert diagnose("multi_head_attention", (old, "context.flat(2)")) is None


def test_the_stage_before_the_last_layer_is_not_called_output(diagnose: Diagnose) -> None:
    found = diagnose(
        "multi_head_attention",
        ("context.transpose(1, 2)", "context.roll(1, 1)[:, :, :].transpose(1, 2)"),
    )
    assert found.faults == ()
    averaged = "context.mean(dim=1).repeat(1, 1, self.num_heads)"
    found = diagnose("multi_head_attention", ("context.transpose(1, 2).flatten(2)", averaged))
    assert found.first_wrong_step.stage == "context"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weights @ values", "nn.functional.scaled_dot_product_attention(queries, keys, values)"),
        ("n_tokens = x.shape[1]", "raise NotImplementedError"),
        ("class CausalAttention", "class Attention"),
        ("n_tokens = x.shape[1]", "import os; os.abort()"),
    ],
    ids=["forbidden", "unfinished", "missing", "crash"],
)
def test_a_failure_that_explains_itself_has_no_diagnosis(
    diagnose: Diagnose, old: str, new: str
) -> None:
    assert diagnose("causal_attention", (old, new)) is None


def test_a_part_is_diagnosed_although_another_is_not_written_yet(diagnose: Diagnose) -> None:
    found = diagnose(
        "dictionary_lookup",
        ("scores / temp, dim=-1", "scores * temp, dim=-1"),
        ("place = list(entries).index(key)", "raise NotImplementedError"),
    )
    assert found.faults == ("multiplied_by_temp",)


def test_dropout_is_diagnosed_though_it_is_random(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("nn.Dropout(dropout)", "nn.Dropout(0.5)"))
    assert found.faults == ("dropout_rate_fixed",)


def test_answers_without_a_number_are_not_explained(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("weights @ values", "weights @ values * float('nan')"))
    assert found.faults == ()


def test_ctrl_c_ends_a_replay(course: Course, solutions: dict[str, str]) -> None:
    text = solutions["layer_norm"].replace(
        "mean = x.mean", "raise KeyboardInterrupt; mean = x.mean"
    )
    variant = Variant({"layer_norm": Source("layer_norm.py", text)}, "layer_norm")
    make = Call(1, 5, "LayerNorm", [3], {})
    call = Call(2, 6, None, [pack_tensor(torch.ones(2, 3))], {})
    made = CallRecord(make, Reply(1, Handle(6, "LayerNorm")))
    with pytest.raises(KeyboardInterrupt):
        list(variant.replay(CallLog(1, 5, (made, CallRecord(call, None)))))
    assert "layer_norm" not in sys.modules


def test_an_error_of_the_diagnosis_costs_no_mark(
    grade: Grade, course: Course, solutions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Diagnostician, "diagnose", broken)
    wrong = {"layer_norm": solutions["layer_norm"].replace("correction=0", "correction=1")}
    exercise = grade(course, wrong, "layer_norm").exercises[0]
    assert 0 < exercise.points < exercise.max_points
    assert exercise.diagnosis is None
    assert "could not name the mistake (KeyError: 'a bug')" in exercise.advice


def test_a_diagnosis_leaves_the_import_system_as_it_was(diagnose: Diagnose) -> None:
    before = list(sys.meta_path)
    diagnose("layer_norm", ("mean = x.mean(dim=-1, keepdim=True)", "raise NotImplementedError"))
    diagnose("layer_norm", ("correction=0", "correction=1"))
    assert sys.meta_path == before
    assert "layer_norm" not in sys.modules


def test_the_same_seed_gives_the_same_diagnosis(diagnose: Diagnose) -> None:
    change = ("self.scale = d_out**-0.5", "self.scale = 1 / d_out")
    assert diagnose("causal_attention", change) == diagnose("causal_attention", change)


def test_a_mistake_in_an_earlier_exercise_does_not_change_a_diagnosis(
    grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    """The block is graded on stand-ins: a wrong layer norm is not its mistake."""
    block = solutions["transformer_block"].replace("self.norm2(x)", "self.norm1(x)")
    norm = solutions["layer_norm"].replace("correction=0", "correction=1")
    files = {**solutions, "transformer_block": block, "layer_norm": norm}
    found = grade(course, files, "transformer_block").exercises[0].diagnosis
    assert found.faults == ("norm1_used_twice",)


def test_the_students_copy_is_not_diagnosed(
    grade: Grade, tmp_path: Path, course: Course, solutions: dict[str, str]
) -> None:
    """The copy has no catalogue of mistakes."""
    shutil.copytree(course.student_folder, tmp_path / "exercises")
    copy = load_course(tmp_path)
    text = solutions["layer_norm"].replace("correction=0", "correction=1")
    exercise = grade(copy, {"layer_norm": text}, "layer_norm").exercises[0]
    assert not exercise.passed
    assert exercise.diagnosis is None
