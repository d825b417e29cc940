"""A stand-in gives what the reference gives that it stands in for."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
import torch
from commandline import Grade
from comparing import assert_close, assert_same
from reference_cases import CASES, SEEDS, References, loaded

from grader.course.course import Course
from grader.grading.programs import program
from grader.sandbox.program import Program
from grader.testing import Rng

LAYERS = ("causal_attention", "feed_forward", "layer_norm", "multi_head_attention")
LAYERS += ("transformer_block", "rms_norm", "swiglu", "modern_block")
STAND_INS = (*LAYERS, "masked_softmax", "cross_entropy", "adamw", "sampling")
TOKENS = "byte_pair_encoding"  # whose calls have no tensors


def standing_in(course: Course, name: str) -> ModuleType:
    text = course[name].stand_in
    assert text is not None, f"{name} has no stand-in"
    return loaded({name: text}, name)


def test_every_stand_in_is_compared(course: Course) -> None:
    assert {name for name in course.names if course[name].stand_in} == {*STAND_INS, TOKENS}


@pytest.mark.slow
def test_a_stand_in_that_is_handed_in_earns_at_most_a_tenth(
    course: Course, solutions: dict[str, str], grade: Grade
) -> None:
    for name in (*STAND_INS, TOKENS):
        text = course[name].stand_in
        assert text is not None
        report = grade(course, {**solutions, name: text}, name)
        assert 10 * report.points <= report.max_points, name


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_gives_what_the_reference_gives(
    name: str, seed: int, course: Course, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    modules = standing_in(course, name), references[name]
    assert_same(*(case.function(module) for module in modules), case.leaves)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stand_in_cuts_a_text_as_the_reference_does(
    seed: int, course: Course, references: References
) -> None:
    text = bytes(Rng(seed).randint(97, 101, 60).tolist())
    theirs, ours = standing_in(course, TOKENS), references[TOKENS]
    merges = ours.train(text, 12)
    assert theirs.train(text, 12) == merges
    tokens = ours.encode(text, merges, {b"ab": 900})
    assert theirs.encode(text, merges, {b"ab": 900}) == tokens
    assert theirs.decode(tokens, merges, {b"ab": 900}) == text


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize(
    "name",
    [
        "causal_attention",
        "feed_forward",
        "multi_head_attention",
        "transformer_block",
        "swiglu",
        "modern_block",
    ],
)
def test_a_stand_in_drops_nothing_or_all_in_training_as_the_reference_does(
    name: str, rate: float, seed: int, course: Course, references: References
) -> None:
    case = CASES[name](Rng(seed), references[name])
    case = replace(case, options=case.options | {"dropout": rate})
    modules = standing_in(course, name), references[name]
    assert_same(*(case.function(module, training=True) for module in modules), case.leaves)


@pytest.mark.parametrize("name", LAYERS)
def test_a_seed_gives_a_stand_in_the_parameters_of_the_reference(
    name: str, course: Course, references: References
) -> None:
    case = CASES[name](Rng(1), references[name])
    layers = []
    for module in (standing_in(course, name), references[name]):
        torch.manual_seed(5)
        layers.append(getattr(module, case.target)(**case.options))
    found, wanted = (dict(layer.named_parameters()) for layer in layers)
    assert list(found) == list(wanted)
    for key, parameter in wanted.items():
        assert_close(found[key], parameter, key, rtol=0, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("training", [False, True], ids=["eval", "training"])
@pytest.mark.parametrize("name", ["stacked_heads", "transformer_block", "tiny_gpt", "tiny_llama"])
def test_what_is_built_of_stand_ins_gives_what_it_gives_on_the_references(
    name: str,
    training: bool,
    seed: int,
    course: Course,
    solutions: dict[str, str],
    references: References,
) -> None:
    _, sources = program(course, course[name], solutions)
    modules = Program(sources).load(name), references[name]
    case = CASES[name](Rng(seed), references[name])
    case = replace(case, options=case.options | {"dropout": 0.0 if training else 0.5})
    assert_same(*(case.function(module, training=training) for module in modules), case.leaves)
