"""The diagnosis names the mistake behind a wrong answer correctly, or not at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commandline import Grade
from msgspec.structs import replace
from torch import nn

from grader.course import records
from grader.course.course import Course, Exercise, load_course
from grader.course.known_mistakes import Mistake, load_mistakes
from grader.grading.aspects import Aspect
from grader.grading.cases import Case
from grader.grading.diagnosis import computed
from grader.grading.diagnosis.answers import Values
from grader.grading.diagnosis.search import UNKNOWN, Diagnostician
from grader.report import Diagnosis

pytestmark = pytest.mark.in_turn

Diagnose = Callable[..., Diagnosis | None]
OFF_BY_AN_EIGHTH = {
    "masked_softmax": ("masked_fill(~valid, 0.0)", "masked_fill(~valid, 0.0) + 0.125"),
    "layer_norm": ("self.gamma * x_hat + self.beta", "self.gamma * x_hat + self.beta + 0.125"),
    "named_attention": ("theirs, left_over), kept", "theirs, left_over) + 0.125, kept"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OFF_BY_AN_EIGHTH)
def test_the_call_that_shows_a_fact_can_be_run(
    diagnose: Diagnose, solutions: dict[str, str], tmp_path: Path, name: str
) -> None:
    """The report holds a program that repeats the call with the student's own file."""
    found = diagnose(name, OFF_BY_AN_EIGHTH[name])
    assert (found.faults, bool(found.facts)) == ((), True)
    (tmp_path / f"{name}.py").write_text(solutions[name], "utf-8")
    (tmp_path / "repeat.py").write_text(found.repeat, "utf-8")
    run = subprocess.run(
        [sys.executable, "repeat.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "tensor(" in run.stdout


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


@pytest.mark.slow
def test_where_dropout_acts_is_named_whatever_draws_it(diagnose: Diagnose) -> None:
    by_hand = (
        "values = values * (torch.rand_like(values) > self.dropout.p) / (1 - self.dropout.p)\n"
        "        values = values.nan_to_num(0.0, 0.0, 0.0)"
    )
    found = diagnose(
        "causal_attention",
        (
            "weights = self.dropout(weights)",
            f"if self.training:\n            {by_hand.replace(chr(10), chr(10) + '    ')}",
        ),
    )
    assert (found.faults, found.complete) == (("dropout_on_the_values",), True)


@pytest.mark.slow
def test_a_mistake_is_named_if_its_gradient_is_another(diagnose: Diagnose) -> None:
    """The maximum has no gradient here; in right code, that changes nothing."""
    found = diagnose(
        "online_softmax",
        (
            "total = total * (maximum - anchor).exp() + added",
            "known = maximum.masked_fill(maximum == -torch.inf, 0.0)\n"
            "        total = total * (anchor - known).exp() + added",
        ),
        ("scores.amax(dim=-1))", "scores.detach().amax(dim=-1))"),
    )
    assert found.faults == ("inverse_rescale",)
    assert found.besides == "This comes out otherwise than asked, too: the gradients."


@pytest.mark.slow
def test_code_that_leaves_its_arguments_alone_does_not_write_into_them(diagnose: Diagnose) -> None:
    """The gradient alone is that of a mistake which writes."""
    found = diagnose(
        "attention_dropout",
        (
            "return weights * kept * factor",
            "return weights + (weights * kept * factor - weights).detach()",
        ),
    )
    assert found.faults == ()


@pytest.mark.slow
def test_an_error_that_another_module_raises_is_none_of_the_codes_own(diagnose: Diagnose) -> None:
    """The head raises it by hand; the code that is graded calls the head."""
    old = "CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)"
    found = diagnose("stacked_heads", (old, old.replace("context_length", "context_length - 1")))
    assert found.faults == ("full_context_refused",)


@pytest.mark.slow
def test_a_right_solution_has_no_diagnosis(diagnose: Diagnose) -> None:
    assert diagnose("multi_head_attention") is None


@pytest.mark.slow
def test_one_mistake_is_named_with_its_words_and_tests(diagnose: Diagnose, course: Course) -> None:
    found = diagnose("multi_head_attention", ("self.d_head**-0.5", "1.0"))
    fault = next(f for f in load_mistakes(course["multi_head_attention"]) if f.name == "no_scale")
    assert (found.faults, found.says, found.hint) == (("no_scale",), fault.says, fault.hint)
    assert found.tie == ()
    assert "test_multi_head_attention" in found.tests[0]


@pytest.mark.slow
def test_a_step_is_compared_with_that_of_the_same_function(diagnose: Diagnose) -> None:
    """A tile's scores are right, though the function that they go to has scores of its own."""
    scores = "scores.amax(dim=-1, keepdim=True)"
    found = diagnose(
        "online_softmax",
        (
            "total = total * (maximum - anchor).exp() + added",
            "known = maximum.masked_fill(maximum == -torch.inf, 0.0)\n"
            "        total = total * (anchor - known).exp() + added",
        ),
        (
            f"highest = torch.maximum(maximum, {scores})",
            "highest, total = (x.unsqueeze(-1) for x in "
            "online_softmax([scores], (maximum.squeeze(-1), total.squeeze(-1))))",
        ),
        ("total = total * rescale + weights.sum(dim=-1, keepdim=True)", "pass"),
    )
    assert found.faults == ("inverse_rescale",)
    assert found.first_wrong_step.stage == "total"


@pytest.mark.slow
def test_the_first_wrong_step_is_the_stage_that_differs_first(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("scores, dim=-1)", "scores, dim=1)"))
    assert found.faults == ("softmax_over_queries",)
    step = found.first_wrong_step
    assert step.stage == "weights"
    assert step.says.startswith("`weights` is ")
    assert step.expected.shape == step.actual.shape == (2, 5, 5)
    assert step.expected.values != step.actual.values


@pytest.mark.slow
def test_a_score_masked_by_another_number_is_no_wrong_step(diagnose: Diagnose) -> None:
    found = diagnose(
        "causal_attention",
        ("scores, dim=-1)", "scores, dim=0)"),
        ("~visible, -torch.inf", "~visible, torch.finfo(scores.dtype).min"),
    )
    assert found.faults == ("softmax_over_batch",)
    assert found.first_wrong_step.stage == "weights"


@pytest.mark.slow
def test_what_a_mistake_leaves_unwritten_is_zero_in_its_first_wrong_step(
    diagnose: Diagnose,
) -> None:
    found = diagnose(
        "self_attention",
        ("inputs.new_empty(n_tokens, n_tokens)", "inputs.new_zeros(n_tokens, n_tokens)"),
        ("for j in range(n_tokens):", "for j in range(i, n_tokens):"),
    )
    assert found.first_wrong_step.stage == "scores"
    assert found.first_wrong_step.actual.values[1][0] == 0.0


@pytest.mark.slow
def test_a_layer_is_not_taken_for_one_that_ended_before_it(course: Course) -> None:
    exercise = course["causal_attention"]

    def ask(student: Any, rng: Any) -> Any:
        layers = [nn.Linear(3, 7) for _ in range(200)]
        ids = {id(layer) for layer in layers if layer(torch.ones(1, 3)).shape == (1, 7)}
        del layers
        modules = [student.CausalAttention(3, 4, 6, 0.0) for _ in range(200)]
        found = [each for each in modules if id(each.W_query) in ids]  # mostly one or two
        return (found or modules)[0](torch.ones(1, 5, 3))

    case = Case("ended_layers", Aspect("values", "values"), "A call.", ask)
    program = computed.catalogue_of(course, exercise, 0).respondent(exercise.read("solution.py"))
    stages = program.stages(case, ["W_query"])
    assert [value.shape for value in stages.values()] == [(1, 5, 4)]


@pytest.mark.slow
def test_parts_of_a_module_are_stages_as_well(diagnose: Diagnose) -> None:
    found = diagnose(
        "transformer_block",
        ("self.feed_forward(self.norm2(x))", "self.feed_forward(self.norm1(x))"),
    )
    assert found.faults == ("one_norm_shared",)
    assert found.first_wrong_step.stage == "feed_forward"


@pytest.mark.slow
def test_two_mistakes_at_once_are_both_named(diagnose: Diagnose) -> None:
    found = diagnose(
        "causal_attention",
        ("self.scale = d_out**-0.5", "self.scale = 1.0"),
        ("every_pair.tril()", "every_pair.triu()"),
    )
    assert set(found.faults) == {"no_scale", "triangle_swapped"}
    assert found.says.startswith("Two mistakes at once. ")
    assert len(found.tests) == len(found.separate_hints) == 2


@pytest.mark.slow
def test_one_mistake_may_hide_what_another_does(diagnose: Diagnose) -> None:
    found = diagnose(
        "causal_attention",
        ("every_pair.tril()", "every_pair.tril(diagonal=1)"),
        ("weights = self.dropout(weights)", "weights = weights"),
        ("return weights @ values", "return self.dropout(weights @ values)"),
    )
    assert set(found.faults) == {"one_token_ahead", "dropout_on_the_output"}


@pytest.mark.slow
def test_one_mistake_may_change_what_another_does_at_an_edge(diagnose: Diagnose) -> None:
    by_hand = "(e := torch.exp(scores)) / e.sum(dim=-1, keepdim=True)"
    found = diagnose(
        "masked_softmax",
        ("torch.softmax(scores, dim=-1)", by_hand),
        ("weights.masked_fill(~valid, 0.0)", "weights"),
    )
    assert set(found.faults) == {"softmax_without_maximum", "nan_at_length_zero"}


@pytest.mark.slow
def test_mistakes_that_give_the_same_answers_are_a_tie(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_twins(exercise: Exercise) -> tuple[Mistake, ...]:
        faults = load_mistakes(exercise)
        return (*faults, *(replace(fault, name=f"twin_of_{fault.name}") for fault in faults))

    monkeypatch.setattr(computed, "load_mistakes", with_twins)
    monkeypatch.setattr(computed, "_CATALOGUES", {})
    found = diagnose("causal_attention", ("self.scale = d_out**-0.5", "self.scale = 1.0"))
    assert [found.faults, *(other.faults for other in found.tie)] == [
        ("no_scale",),
        ("twin_of_no_scale",),
    ]


@pytest.mark.slow
def test_an_unknown_mistake_is_not_named(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("weights @ values", "weights @ values + 0.01"))
    assert (found.faults, found.says) == ((), UNKNOWN)
    assert any("plus 0.01" in fact for fact in found.facts)


@pytest.mark.slow
def test_errors_alone_name_nothing(diagnose: Diagnose) -> None:
    changed = "context.transpose(1, 2).view(batch, n_tokens, -1)"
    old = "context.transpose(1, 2).flatten(2)"
    assert diagnose("multi_head_attention", (old, changed)) is None
    some = f"({changed} if n_tokens > 4 else {old})"
    found = diagnose("multi_head_attention", (old, some))
    assert (found.faults, found.says) == ((), UNKNOWN)
    assert "memory that is not contiguous" in " ".join(found.facts)


@pytest.mark.slow
def test_an_error_of_no_known_mistake_has_no_diagnosis(diagnose: Diagnose) -> None:
    old = "context.transpose(1, 2).flatten(2)"
    assert diagnose("multi_head_attention", (old, "context.flat(2)")) is None


@pytest.mark.slow
def test_the_stage_before_the_last_layer_is_not_called_output(diagnose: Diagnose) -> None:
    found = diagnose(
        "multi_head_attention",
        ("context.transpose(1, 2)", "context.roll(1, 1)[:, :, :].transpose(1, 2)"),
    )
    assert found.faults == ()
    averaged = "context.mean(dim=1).repeat(1, 1, self.num_heads)"
    found = diagnose("multi_head_attention", ("context.transpose(1, 2).flatten(2)", averaged))
    assert found.first_wrong_step.stage == "context"


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_part_is_diagnosed_although_another_is_not_written_yet(diagnose: Diagnose) -> None:
    found = diagnose(
        "dictionary_lookup",
        ("scores / temp, dim=-1", "scores * temp, dim=-1"),
        ("place = list(entries).index(key)", "raise NotImplementedError"),
    )
    assert found.faults == ("multiplied_by_temp",)


@pytest.mark.slow
def test_dropout_is_diagnosed_though_it_is_random(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("nn.Dropout(dropout)", "nn.Dropout(0.5)"))
    assert found.faults == ("dropout_rate_fixed",)


@pytest.mark.slow
def test_answers_without_a_number_are_not_explained(diagnose: Diagnose) -> None:
    found = diagnose("causal_attention", ("weights @ values", "weights @ values * float('nan')"))
    assert found.faults == ()


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


def test_an_error_of_a_picture_costs_no_diagnosis(
    grade: Grade, course: Course, solutions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    wrong = {"layer_norm": solutions["layer_norm"].replace("correction=0", "correction=1")}
    right = grade(course, wrong, "layer_norm").exercises[0]
    monkeypatch.setattr("grader.grading.grader.head_view", broken)
    exercise = grade(course, wrong, "layer_norm").exercises[0]
    assert exercise.diagnosis == right.diagnosis
    assert exercise.points == right.points
    assert "could not draw the attention weights (KeyError: 'a bug')" in exercise.advice


@pytest.mark.slow
def test_a_diagnosis_leaves_the_import_system_as_it_was(diagnose: Diagnose) -> None:
    before = list(sys.meta_path)
    diagnose("layer_norm", ("mean = x.mean(dim=-1, keepdim=True)", "raise NotImplementedError"))
    diagnose("layer_norm", ("correction=0", "correction=1"))
    assert sys.meta_path == before
    assert "layer_norm" not in sys.modules


@pytest.mark.slow
def test_the_same_seed_gives_the_same_diagnosis(diagnose: Diagnose) -> None:
    change = ("self.scale = d_out**-0.5", "self.scale = 1 / d_out")
    assert diagnose("causal_attention", change) == diagnose("causal_attention", change)


@pytest.mark.slow
def test_a_mistake_in_an_earlier_exercise_does_not_change_a_diagnosis(
    grade: Grade, course: Course, solutions: dict[str, str]
) -> None:
    """The block is graded on stand-ins: a wrong layer norm is not its mistake."""
    block = solutions["transformer_block"].replace("self.norm2(x)", "self.norm1(x)")
    norm = solutions["layer_norm"].replace("correction=0", "correction=1")
    files = {**solutions, "transformer_block": block, "layer_norm": norm}
    found = grade(course, files, "transformer_block").exercises[0].diagnosis
    assert found.faults == ("one_norm_shared",)


def test_a_students_copy_without_recorded_answers_is_not_diagnosed(
    grade: Grade, tmp_path: Path, course: Course, solutions: dict[str, str]
) -> None:
    shutil.copytree(course.student_folder, tmp_path / "exercises")
    shutil.rmtree(tmp_path / "exercises" / records.FOLDER)
    copy = load_course(tmp_path)
    text = solutions["layer_norm"].replace("correction=0", "correction=1")
    exercise = grade(copy, {"layer_norm": text}, "layer_norm").exercises[0]
    assert not exercise.passed
    assert exercise.diagnosis is None


TWICE = """
from grader.authors import Check, written

test_scale = Check("It scales, and leaves its argument alone.")


@test_scale.case
def twice(student, rng):
    \"\"\"The same tensor in two calls.\"\"\"
    x = rng.randn(3, 4)
    return [student.scale(x, 2.0), student.scale(x, 2.0)]


@test_scale.case(about="writes")
def argument(student, rng):
    \"\"\"x afterwards.\"\"\"
    x = rng.randn(3, 4)
    return written(student, student.scale, x.T, 2.0)
"""


def test_a_known_mistake_gets_copies_of_a_cases_tensors_as_a_students_does(
    tiny_copy: Path, tiny_solution: str
) -> None:
    (tiny_copy / "reference" / "scale" / "test_hidden.py").write_text(TWICE)
    course = load_course(tiny_copy)
    catalogue = computed.ComputedCatalogue(course, course["scale"], 1)
    in_place = tiny_solution.replace("return x * factor", "return x.mul_(factor)")
    answers, right = (catalogue.answers_of(text) for text in (in_place, tiny_solution))
    assert answers["twice"].same(right["twice"])
    assert not answers["argument"].same(right["argument"])


def test_an_answer_of_very_many_numbers_can_be_compared_and_signed(
    tiny_copy: Path, tiny_solution: str
) -> None:
    (tiny_copy / "reference" / "scale" / "test_hidden.py").write_text(TWICE)
    course = load_course(tiny_copy)
    catalogue = computed.ComputedCatalogue(course, course["scale"], 1)
    huge = tiny_solution.replace("return x * factor", "return x.new_ones(40, 1000)")
    answers, right = (catalogue.answers_of(text)["twice"] for text in (huge, tiny_solution))
    assert answers.same(catalogue.answers_of(huge)["twice"])
    assert not answers.same(right)
    assert isinstance(answers, Values)
    assert next(answers.leaves()).value is None
    assert answers.sketch[0] == 0


OWN_ASPECT = """
from grader.authors import Aspect, Check, drawn, output

THRICE = Aspect("thrice", "a factor of 3")
test_scale = Check("It scales.", points=8)
test_scale.case("A factor of 2.", output("scale", drawn(3, 4), 2.0))
for size in (4, 5, 6):
    test_scale.case(f"A factor of 3, {size}.", output("scale", drawn(3, size), 3.0), about=THRICE)
"""


def test_an_exercise_may_have_aspects_of_its_own(
    grade: Grade, tiny_copy: Path, tiny_solution: str
) -> None:
    (tiny_copy / "reference" / "scale" / "test_hidden.py").write_text(OWN_ASPECT)
    wrong = tiny_solution.replace("return x * factor", "return x * factor + (factor == 3) * x**2")
    (result,) = grade(load_course(tiny_copy), {"scale": wrong}).exercises
    assert result.diagnosis is not None
    (fact, *_) = result.diagnosis.facts
    assert fact == "What came out wrong: a factor of 3. Everything else came out right."


UNDECIDED = """
from grader.authors import Check, built, drawn, output

test_scale = Check("It scales.", points=4)
test_scale.case("A factor of 2.", output("scale", drawn(3, 4), 2.0))
test_scale.case("A factor of 9.", output("scale", drawn(3, 4), 9.0), decides=False)
test_module = Check("The module multiplies by its weight.", points=4, about="training")
test_module.case("The module.", output(built("Scale", 4), drawn(3, 4)))
"""
CAPPED = ("return x * factor", "return x * min(factor, 5.0)")
UNUSED = ("return x * self.weight", "return x + 0")


def test_what_right_code_may_answer_and_no_check_finds_wrong_is_no_mistake(
    tiny_copy: Path, tiny_solution: str
) -> None:
    """A large factor is more than the suite asks for: it only tells mistakes apart."""
    folder = tiny_copy / "reference" / "scale"
    (folder / "test_hidden.py").write_text(UNDECIDED)
    (folder / "mistakes.toml").write_text(
        "".join(
            f'[{name}]\nedits = [["{old}", "{new}"]]\nsays = "s"\nhint = "h"\n'
            for name, (old, new) in (("capped", CAPPED), ("unused", UNUSED))
        )
    )
    course = load_course(tiny_copy)
    catalogue = computed.ComputedCatalogue(course, course["scale"], 1)
    text = tiny_solution.replace(*CAPPED).replace(*UNUSED)
    found = Diagnostician(catalogue).explain(catalogue.answers_of(text), text, ["test_module"])
    assert found is not None
    assert (found.faults, found.complete) == (("unused",), True)
