"""Hidden tests of the feed-forward network, which decide the points."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_same_gradients,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    manual_seed,
    output_of,
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL, D_FF = 2, 5, 4, 7


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The network is written by hand, without a part of torch's Transformer.

    Guards: the ban on torch's layers, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.FeedForward(D_MODEL, D_FF), x))


@pytest.mark.points(1)
def test_layers(student, reference):
    """linear1 is created before linear2, both with bias: the same seed gives the same weights."""
    manual_seed(student, 123)
    found = dict(student.FeedForward(D_MODEL, D_FF).named_parameters())
    torch.default_generator.manual_seed(123)
    wanted = dict(reference.FeedForward(D_MODEL, D_FF).named_parameters())
    names = ", ".join(found) or "none"
    expect(set(found) == set(wanted), f"the parameters are {names}, not {', '.join(wanted)}")
    for name, parameter in wanted.items():
        assert_close(found[name], parameter, f"{name} of a fresh layer")


@pytest.mark.points(2)
def test_values(student, reference, rng):
    """The output is linear2(relu(linear1(x))) without a residual, and the gradients match it."""
    theirs, ours = twins(student.FeedForward, reference.FeedForward, D_MODEL, D_FF, rng=rng)
    assert_same_gradients(theirs, ours, rng.randn(BATCH, N_TOKENS, D_MODEL), names=("x",))


@pytest.mark.points(1)
def test_any_number_of_axes(student, reference, rng):
    """With two axes or four, one token or many, each position is processed separately."""
    theirs, ours = twins(student.FeedForward, reference.FeedForward, D_MODEL, D_FF, rng=rng)
    for shape in ((1, D_MODEL), (2, 3, 5, D_MODEL)):
        x = rng.randn(*shape)
        assert_close(output_of(theirs, x), output_of(ours, x))


@pytest.mark.points(3)
def test_dropout(student):
    """Training drops hidden units at the given rate and rescales the rest; eval mode drops none."""
    d_model, d_ff, rate = 8, 5, 0.2
    net = student.FeedForward(d_model, d_ff, rate)
    net.load_state_dict(  # every hidden unit is the mean of x and determines one output
        {
            "linear1.weight": torch.full((d_ff, d_model), 1 / d_model),
            "linear1.bias": torch.zeros(d_ff),
            "linear2.weight": torch.eye(d_model, d_ff),
            "linear2.bias": torch.tensor([0.0] * d_ff + [-3.0] * (d_model - d_ff)),
        }
    )
    x = torch.ones(4, 150, d_model)
    expected = torch.tensor([1.0] * d_ff + [-3.0] * (d_model - d_ff)).expand_as(x)
    assert_close(output_of(net.eval(), x), expected, "the output in eval mode")
    output = output_of(net.train(), x)
    hidden, rest = output[..., :d_ff], output[..., d_ff:]
    assert_close(rest, torch.full_like(rest, -3.0), "an output that depends on no hidden unit")
    kept = hidden != 0
    assert_close(hidden, kept / (1 - rate), "a hidden unit of 1 after dropout")
    dropped = 1 - kept.double().mean().item()
    expect(
        abs(dropped - rate) < 0.06,
        f"{dropped:.0%} of the hidden units were dropped, where about {rate:.0%} are expected",
    )


@pytest.mark.points(3)
@pytest.mark.needs("test_values")
def test_argument(student, reference, rng):
    """x may be a transposed bfloat16 view; it is not modified, and the output has its dtype."""
    classes, half = (student.FeedForward, reference.FeedForward), torch.bfloat16
    theirs, ours = twins(*classes, D_MODEL, D_FF, rng=rng, dtype=half)
    x = rng.randn(BATCH, D_MODEL, N_TOKENS, dtype=half).transpose(1, 2)
    output = assert_unchanged(student, lambda x: output_of(theirs, x), x, names=("x",))
    assert_close(output, output_of(ours, x), rtol=5e-2, atol=1e-1)


@pytest.mark.points(1)
@pytest.mark.needs("test_values")
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch, tokens or widths."""
    small, large = student.FeedForward(4, 7), student.FeedForward(6, 9)
    x, longer = rng.randn(2, 3, 4, dtype=torch.float32), rng.randn(4, 5, 6, dtype=torch.float32)
    assert_vectorised(student, lambda: output_of(small, x), lambda: output_of(large, longer))
