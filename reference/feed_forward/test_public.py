"""Public tests of the feed-forward network, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
)

pytestmark = pytest.mark.needs("test_by_hand")


def called(student, rng, batch=2, n_tokens=3):
    """Return a call of a network of its own on random tokens."""
    x = rng.randn(batch, n_tokens, 4, dtype=torch.float32)
    return lambda: output_of(student.FeedForward(4, 6), x)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes all of the network."""
    assert_written_by_hand(student, called(student, rng))


@pytest.mark.points(2)
def test_worked_example(student):
    """The worked example: two features, three hidden units."""
    net = student.FeedForward(2, 3)
    load_parameters(
        net,
        {
            "linear1.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
            "linear1.bias": torch.tensor([0.0, 1.0, -5.0]),
            "linear2.weight": torch.tensor([[1.0, 1.0, 1.0], [0.0, -2.0, 1.0]]),
            "linear2.bias": torch.tensor([0.5, 1.0]),
        },
        dtype=torch.float32,
    )
    assert_close(output_of(net, torch.tensor([[2.0, 1.0]])), torch.tensor([[4.5, -3.0]]))


@pytest.mark.points(2)
def test_parameters(student):
    """linear1 maps to d_ff, linear2 maps back to d_model, and both have a bias."""
    found = {n: tuple(p.shape) for n, p in student.FeedForward(4, 6).named_parameters()}
    wanted = {
        "linear1.weight": (6, 4),
        "linear1.bias": (6,),
        "linear2.weight": (4, 6),
        "linear2.bias": (4,),
    }
    expect(found == wanted, f"the parameters are {found}, where {wanted} are expected")


@pytest.mark.points(2)
def test_each_position_alone(student, rng):
    """Changing one token changes no other token's output, for any number of leading axes."""
    net = student.FeedForward(4, 6).to(torch.float64)
    for shape in ((3, 4), (2, 5, 4)):
        x = rng.randn(*shape)
        changed = x.clone()
        changed.view(-1, 4)[-1] += 1
        before, after = output_of(net, x).view(-1, 4), output_of(net, changed).view(-1, 4)
        assert_close(after[:-1], before[:-1], "the output of a token that did not change")


@pytest.mark.points(1)
def test_eval_is_deterministic(student, rng):
    """In eval mode, nothing is dropped: two calls give the same output."""
    net = student.FeedForward(4, 6, dropout=0.5).to(torch.float64).eval()
    x = rng.randn(2, 5, 4)
    assert_close(output_of(net, x), output_of(net, x), "the output of a second call")


@pytest.mark.points(1)
def test_dropout_on_hidden_units(student, rng):
    """In training, hidden units are dropped: at rate 1, only the bias of linear2 is left."""
    net = student.FeedForward(4, 6, dropout=1.0).to(torch.float64).train()
    bias = net.state_dict()["linear2.bias"]
    assert_close(output_of(net, rng.randn(2, 5, 4)), bias.expand(2, 5, 4))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences or tokens."""
    more = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    assert_vectorised(student, functools.partial(called, student, rng), more)


@pytest.mark.points(0)
def test_units_are_dropped_one_by_one(student, rng):
    """In training, each hidden unit of each token is dropped on its own; the rest are scaled up."""
    net = student.FeedForward(6, 6, dropout=0.4).to(torch.float64).train()
    state = {f"linear{n}.{kind}": torch.eye(6) for n in (1, 2) for kind in ("weight",)}
    biases = {"linear1.bias": torch.zeros(6), "linear2.bias": torch.zeros(6)}
    load_parameters(net, {**state, **biases}).train()
    output = output_of(net, torch.ones(300, 2, 6, dtype=torch.float64))
    dropped = output.abs() < 0.1
    assert_close(output, (~dropped).double() / 0.6, "what is left of hidden units of 1")
    assert_dropped(dropped, 0.4, "hidden units")


@pytest.mark.points(0)
def test_dtype(student, rng):
    """The network works in bfloat16, also in training."""
    net = student.FeedForward(4, 6, dropout=0.4).bfloat16().train()
    output = output_of(net, rng.randn(2, 6, 4, dtype=torch.bfloat16))
    assert_dtype(output, torch.bfloat16, "in training, the output")
