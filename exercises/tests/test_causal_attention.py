"""Public tests of causal attention, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_moves,
    assert_takes_views,
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
AFTER_123 = {  # the layers of CausalAttention(3, 2, 6, 0.0) after torch.manual_seed(123)
    "W_query.weight": [[-0.235430, 0.019124, -0.286746], [0.217727, -0.491934, 0.423223]],
    "W_key.weight": [[-0.419641, -0.459018, -0.364820], [0.261478, -0.213326, 0.216052]],
    "W_value.weight": [[-0.490014, -0.350292, -0.211989], [-0.113461, -0.440439, 0.378044]],
}
AFTER_789 = {  # the layers of CausalAttention(3, 2, 6, 0.0) after torch.manual_seed(789)
    "W_query.weight": [[0.316059, 0.456809, 0.511835], [-0.168285, -0.337877, -0.091774]],
    "W_key.weight": [[0.405806, -0.470421, 0.236805], [0.213361, -0.260051, -0.510543]],
    "W_value.weight": [[0.252570, -0.141478, -0.196181], [0.519107, -0.085168, -0.204327]],
}


def with_weights(student, weights, **others):
    """Return a module for the worked example, with these weights in its layers."""
    module = student.CausalAttention(3, 2, 6, 0.0)
    state = {name: torch.tensor(rows) for name, rows in weights.items()}
    return load_parameters(module, {**state, **others}, dtype=torch.float32)


def called(student, rng, batch=2, n_tokens=4):
    """Return a call of a module of its own on random tokens."""
    x = rng.randn(batch, n_tokens, 7, dtype=torch.float32)
    return lambda: output_of(student.CausalAttention(7, 4, n_tokens + 1, 0.0), x)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the attention."""
    assert_written_by_hand(student, called(student, rng, 2, 4))


@pytest.mark.points(5)
def test_worked_example(student):
    """The worked example: the outputs for six tokens, after torch.manual_seed(123)."""
    output = output_of(with_weights(student, AFTER_123), TOKENS[None])
    expected = torch.tensor([[-0.4519, 0.2216], [-0.5874, 0.0058], [-0.6300, -0.0632]])
    assert_close(output[0, :3], expected, "the output for tokens 1 to 3", atol=1e-4)
    last = torch.tensor([-0.5299, -0.1081])
    assert_close(output[0, 5], last, "the output for token 6", atol=1e-4)


@pytest.mark.points(4)
def test_worked_weights(student):
    """The worked example: the weights of tokens 2 and 3, after torch.manual_seed(789)."""
    # Tokens 1, 2 and 3 get the values (1, 0), (0, 1) and (0, 0), so an output shows two weights.
    W_value = torch.linalg.inv(TOKENS[:3])[:, :2].T
    module = with_weights(student, AFTER_789, **{"W_value.weight": W_value})
    expected = torch.tensor([[1.0, 0.0], [0.5517, 0.4483], [0.3800, 0.3097]])
    output = output_of(module, TOKENS[None])
    assert_close(output[0, :3], expected, "the weights on tokens 1 and 2", atol=2e-4)


@pytest.mark.points(3)
def test_without_learning(student):
    """The worked example without learned layers: the tokens are the queries, keys and values."""
    module = student.CausalAttention(3, 3, 6, 0.0)
    same = torch.eye(3)  # the queries are multiplied by the root of d_out, which undoes the scale
    layers = {"W_query.weight": same * 3**0.5, "W_key.weight": same, "W_value.weight": same}
    load_parameters(module, layers, dtype=torch.float32)
    order = [0, 2, 3, 4, 5, 1]  # the second token comes last, where it attends to all others
    output = output_of(module, TOKENS[None, order])
    expected = torch.tensor([0.4419, 0.6515, 0.5683])
    assert_close(output[0, -1], expected, "the output for the last token", atol=1e-4)


@pytest.mark.points(4)
def test_future_is_invisible(student, rng):
    """In an input shorter than context_length, later tokens do not affect earlier outputs."""
    module = student.CausalAttention(7, 4, 6, 0.0).to(torch.float64)
    x = rng.randn(2, 5, 7)
    changed = x.clone()
    changed[:, 3:] += 10
    before, after = output_of(module, x), output_of(module, changed)
    expect(before.shape == (2, 5, 4), f"the output has shape {tuple(before.shape)}")
    assert_close(after[:, :3], before[:, :3], "the output for tokens 1 to 3 after the change")
    expect(not torch.allclose(after[:, 3:], before[:, 3:]), "later outputs did not change either")


@pytest.mark.points(2)
def test_parts(student):
    """The parameters are those of three linear layers: the mask is none of them."""
    module = student.CausalAttention(7, 4, 6, 0.0)
    found = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    wanted = {"W_query.weight": (4, 7), "W_key.weight": (4, 7), "W_value.weight": (4, 7)}
    expect(found == wanted, f"the parameters are {found}, where {wanted} are expected")


@pytest.mark.points(1)
def test_too_many_tokens(student, rng):
    """Inputs longer than context_length are refused."""
    module = student.CausalAttention(7, 4, 6, 0.0)
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        output_of(module, rng.randn(2, 7, 7, dtype=torch.float32))
    single = student.CausalAttention(7, 4, 1, 0.0)
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        output_of(single, rng.randn(2, 3, 7, dtype=torch.float32))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences or tokens."""
    more = {"sentences": {"batch": (6, 13)}, "tokens": {"n_tokens": (12, 25)}}
    assert_vectorised(student, functools.partial(called, student, rng), more)


@pytest.mark.points(0)
def test_x_stays(student, rng):
    """x is not written into, and a transposed view of it gives the same."""
    assert_takes_views(student, student.CausalAttention(7, 4, 6, 0.0).double(), rng.randn(3, 5, 7))


@pytest.mark.points(0)
def test_device_and_dtype(student, rng):
    """Everything moves along to another device, and to bfloat16, also in training."""
    x = rng.randn(2, 6, 7, dtype=torch.float32)
    assert_moves(lambda: student.CausalAttention(7, 4, 6, 0.5), x)
    module = student.CausalAttention(7, 4, 6, 0.4).bfloat16().train()
    assert_dtype(output_of(module, x.bfloat16()), torch.bfloat16, "in training, the output")


@pytest.mark.points(0)
def test_weights_are_dropped_one_by_one(student, rng):
    """In training, each weight is dropped on its own; the rest are scaled up."""
    module = student.CausalAttention(5, 5, 4, 0.4).to(torch.float64).train()
    state = {f"W_{name}.weight": torch.zeros(5, 5) for name in ("query", "key")}
    module.load_state_dict({**state, "W_value.weight": torch.eye(5)}, strict=False)
    # Even weights on tokens that are unit vectors: the outputs are the weights.
    x = torch.eye(5, dtype=torch.float64)[None, :4].expand(300, -1, -1)
    output = output_of(module, x)[:, -1, :4]
    dropped = output.abs() < 0.1
    assert_close(output, (~dropped).double() * (0.25 / 0.6), "what is left of weights of 1/4")
    assert_dropped(dropped, 0.4, "weights")
