"""Public tests of trainable self-attention, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    raises,
)

pytestmark = pytest.mark.needs("test_by_hand")

TOKENS = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
AFTER_123 = {  # the parameters of SelfAttentionV1(3, 2) after torch.manual_seed(123)
    "W_query": [[0.296112, 0.516562], [0.251671, 0.688557], [0.073972, 0.866522]],
    "W_key": [[0.136580, 0.102479], [0.184056, 0.726447], [0.315254, 0.687107]],
    "W_value": [[0.075635, 0.196638], [0.316412, 0.401740], [0.118568, 0.827395]],
}
AFTER_789 = {  # the layers of SelfAttentionV2(3, 2) after torch.manual_seed(789)
    "W_query.weight": [[0.316059, 0.456809, 0.511835], [-0.168285, -0.337877, -0.091774]],
    "W_key.weight": [[0.405806, -0.470421, 0.236805], [0.213361, -0.260051, -0.510543]],
    "W_value.weight": [[0.252570, -0.141478, -0.196181], [0.519107, -0.085168, -0.204327]],
}
NAMES = "W_query", "W_key", "W_value"


def with_weights(made, weights):
    """Return the module `made` with these weights."""
    state = {name: torch.tensor(rows) for name, rows in weights.items()}
    return load_parameters(made, state, dtype=torch.float32)


def called(made, rng, batch=2, n_tokens=4):
    """Return a call of a module on random tokens."""
    x = rng.randn(batch, n_tokens, 7, dtype=torch.float32)
    return lambda: output_of(made, x)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the attention."""
    makers = (student.SelfAttentionV1, student.SelfAttentionV2)
    calls = [lambda make=make: called(make(7, 4), rng)() for make in makers]
    assert_written_by_hand(student, *calls)


@pytest.mark.points(3)
def test_worked_example(student):
    """The worked example: the outputs of V1 for six tokens, after torch.manual_seed(123)."""
    output = output_of(with_weights(student.SelfAttentionV1(3, 2), AFTER_123), TOKENS)
    expected = torch.tensor([[0.2996, 0.8053], [0.3061, 0.8210], [0.3058, 0.8203]])
    assert_close(output[:3], expected, "the output for tokens 1 to 3", atol=1e-4)


@pytest.mark.points(3)
def test_worked_example_of_linear_layers(student):
    """The worked example: the outputs of V2 for six tokens, after torch.manual_seed(789)."""
    output = output_of(with_weights(student.SelfAttentionV2(3, 2), AFTER_789), TOKENS)
    expected = torch.tensor([[-0.0739, 0.0713], [-0.0748, 0.0703], [-0.0749, 0.0702]])
    assert_close(output[:3], expected, "the output for tokens 1 to 3", atol=1e-4)


@pytest.mark.points(2)
def test_parts(student):
    """The parameters are three matrices in V1, and those of three linear layers in V2."""
    cases = {
        "SelfAttentionV1": dict.fromkeys(NAMES, (7, 4)),
        "SelfAttentionV2": {f"{name}.weight": (4, 7) for name in NAMES},
    }
    for name, wanted in cases.items():
        module = getattr(student, name)(7, 4)
        found = {each: tuple(value.shape) for each, value in module.named_parameters()}
        expect(found == wanted, f"the parameters of {name} are {found}, not {wanted}")


@pytest.mark.points(2)
def test_copy(student):
    """After copy_weights, V1 gives the outputs of V2; biases are refused."""
    first, second = student.SelfAttentionV1(3, 2), student.SelfAttentionV2(3, 2)
    with_weights(second, AFTER_789)
    student.copy_weights(second, first)
    wanted = output_of(second, TOKENS)
    assert_close(output_of(first, TOKENS), wanted, "the output of V1 after the copy", atol=1e-4)
    biased = student.SelfAttentionV2(3, 2, qkv_bias=True)
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        student.copy_weights(biased, first)


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences or tokens."""
    for made in (student.SelfAttentionV1(7, 4), student.SelfAttentionV2(7, 4)):
        more = {"sentences": {"batch": (6, 13)}, "tokens": {"n_tokens": (8, 17)}}
        assert_vectorised(student, functools.partial(called, made, rng), more)


@pytest.mark.points(0)
def test_copy_is_a_copy(student):
    """When the source changes after the copy, the target keeps its weights."""
    first, second = student.SelfAttentionV1(3, 2), student.SelfAttentionV2(3, 2)
    student.copy_weights(second, first)
    before = output_of(first, TOKENS)
    second.load_state_dict({f"{name}.weight": torch.ones(2, 3) for name in NAMES}, strict=False)
    assert_close(output_of(first, TOKENS), before, "the output of V1 after V2 has changed")
