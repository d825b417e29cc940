"""What stands at a place of an answer is called as the exercise calls it."""

from __future__ import annotations

import pytest

from grader.course.course import Course
from grader.grading.words import Words, is_gradient, pairs_of_names, words_of

WORDS = Words({"attention": ("Q", "K", "temp"), "lookup": ("entries", "K"), "Norm": ("x",)})


@pytest.mark.parametrize(
    ("place", "sentence", "says"),
    [
        ("", "", "the output"),
        ("output", "", "the output"),
        ("0", "", "the first result"),
        ("7", "", "result 8"),
        ("2 1", "", "the third result"),
        ("largest", "", "the largest output"),
        ("logits", "", "the logits"),
        ("maximum", "", "`maximum`"),
        ("rate 1", "", "`rate`"),
        ("W_key.weight 3", "", "`W_key.weight`"),
        ("parameter W_key.weight", "", "the gradient of `W_key.weight`"),
        ("1 parameter gamma", "", "the gradient of `gamma`"),
        ("input 1", "", "the gradient of `K`"),
        ("input 0", "", "the gradient of argument 1"),
        ("input 0", "Two queries for attention.", "the gradient of `Q`"),
        ("0 input 0", "An empty lookup.", "the gradient of `entries`"),
        ("input 0", "The gradients of Q and K at a temp of 1.", "the gradient of `Q`"),
        ("input 5", "", "the gradient of argument 6"),
    ],
)
def test_a_place_is_called_so(place: str, sentence: str, says: str) -> None:
    assert WORDS.of(place, sentence) == says


def test_the_names_are_those_of_the_statement(course: Course) -> None:
    assert words_of(course["masked_softmax"]).of("input 0") == "the gradient of `X`"
    assert words_of(course["multi_head_attention"]).of("input 0") == "the gradient of `x`"


@pytest.mark.parametrize("place", ["input 0", "parameter x.weight", "1 input 2"])
def test_gradients_are_known_wherever_they_stand(place: str) -> None:
    assert is_gradient(place)
    assert not is_gradient(place.replace(" ", "_"))


def test_names_that_are_most_alike_stand_for_each_other() -> None:
    asked = ["W_query", "W_key", "W_value", "out_proj"]
    for found in (["q_proj", "k_proj", "v_proj", "o_proj"], ["Wq", "Wk", "Wv", "out"]):
        assert pairs_of_names(asked, found[::-1]) == dict(zip(asked, found))
    assert pairs_of_names(["gamma", "beta"], ["weight", "bias"]) == {
        "gamma": "weight",
        "beta": "bias",
    }
