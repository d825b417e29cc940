"""Public tests of the Transformer block, which students can read and run."""

import functools

import pytest
import torch
from torch import nn

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_takes_views,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
)

pytestmark = pytest.mark.needs("test_by_hand")

SIZES = (12, 3, 7, 9)  # d_model, num_heads, d_ff, context_length


def called(student, rng, batch=2, n_tokens=4):
    """Return a call of a block of its own on random tokens."""
    x = rng.randn(batch, n_tokens, 12, dtype=torch.float32)
    return lambda: output_of(student.TransformerBlock(*SIZES[:3], n_tokens + 1), x)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the block or its parts."""
    assert_written_by_hand(student, called(student, rng, 2, 4))


@pytest.mark.points(3)
def test_worked_example(student):
    """The worked example: two features, one head, even attention."""
    block = student.TransformerBlock(2, 1, 3, 4)
    load_parameters(
        block,
        {
            "attention.W_query.weight": torch.zeros(2, 2),
            "attention.W_key.weight": torch.zeros(2, 2),
            "attention.W_value.weight": torch.eye(2),
            "attention.out_proj.weight": -3 * torch.eye(2),
            "attention.out_proj.bias": torch.zeros(2),
            "feed_forward.linear1.weight": torch.eye(3, 2),
            "feed_forward.linear1.bias": torch.zeros(3),
            "feed_forward.linear2.weight": 2 * torch.eye(2, 3),
            "feed_forward.linear2.bias": torch.zeros(2),
        },
        dtype=torch.float32,
    )
    x = torch.tensor([[[1.0, 3.0], [5.0, 1.0]]])
    expected = torch.tensor([[[6.0, 0.0], [7.0, 1.0]]])
    assert_close(output_of(block, x), expected, atol=1e-4)


@pytest.mark.points(2)
def test_parts(student):
    """The block has the four parts of the statement, and no other parameters."""
    found = {name for name, _ in student.TransformerBlock(*SIZES).named_parameters()}
    wanted = {
        *(f"attention.{name}.weight" for name in ("W_query", "W_key", "W_value", "out_proj")),
        "attention.out_proj.bias",
        *(f"feed_forward.linear{n}.{kind}" for n in (1, 2) for kind in ("weight", "bias")),
        *(f"norm{n}.{name}" for n in (1, 2) for name in ("gamma", "beta")),
    }
    wrong = ", ".join(sorted(found ^ wanted))
    expect(found == wanted, f"these parameters are missing or unexpected: {wrong}")


@pytest.mark.points(2)
def test_zeroed_sub_layers(student, rng):
    """With out_proj and linear2 set to zero, a pre-norm block returns x, also in training."""
    block = student.TransformerBlock(*SIZES, dropout=0.4).to(torch.float64).train()
    last = ("attention.out_proj", "feed_forward.linear2")
    names = [f"{layer}.{kind}" for layer in last for kind in ("weight", "bias")]
    state = block.state_dict()
    block.load_state_dict({name: torch.zeros_like(state[name]) for name in names}, strict=False)
    x = rng.randn(2, 5, 12)
    assert_close(output_of(block, x), x)


@pytest.mark.points(2)
def test_dropout(student, rng):
    """At dropout 1, the sub-layers add nothing: pre-norm returns x, post-norm applies its norms."""
    x = rng.randn(2, 5, 12, dtype=torch.float32)
    block = student.TransformerBlock(*SIZES, dropout=1.0).train()
    assert_close(output_of(block, x), x, "the output in pre-norm")
    block = student.TransformerBlock(*SIZES, dropout=1.0, norm_first=False).train()
    norm = nn.LayerNorm(12)  # all fresh norms are the same
    normed = output_of(norm, output_of(norm, x))
    assert_close(output_of(block, x), normed, "the output in post-norm")


@pytest.mark.points(2)
@pytest.mark.parametrize("norm_first", [True, False], ids=["pre_norm", "post_norm"])
def test_agrees_with_torch(student, rng, norm_first):
    """With the same weights, the block gives the same output as torch's encoder layer."""
    block = student.TransformerBlock(*SIZES, dropout=0.3, norm_first=norm_first, causal=False)
    block.to(torch.float64).eval()
    state = {name: rng.randn(*p.shape) * 0.5 + 0.25 for name, p in block.named_parameters()}
    block.load_state_dict(state, strict=False)
    layer = nn.TransformerEncoderLayer(
        12, 3, 7, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    layer.load_state_dict(torch_names(state))
    x = rng.randn(2, 5, 12)
    assert_close(output_of(block, x), output_of(layer.eval(), x))


def torch_names(state):
    """Return the block's parameters under the names that torch's encoder layer gives them."""
    projections = [state[f"attention.{name}.weight"] for name in ("W_query", "W_key", "W_value")]
    renamed = {
        "self_attn.in_proj_weight": torch.cat(projections),
        "self_attn.in_proj_bias": torch.zeros(3 * len(projections[0]), dtype=torch.float64),
    }
    for kind in ("weight", "bias"):
        renamed[f"self_attn.out_proj.{kind}"] = state[f"attention.out_proj.{kind}"]
        for n in (1, 2):
            renamed[f"linear{n}.{kind}"] = state[f"feed_forward.linear{n}.{kind}"]
    for n in (1, 2):
        renamed[f"norm{n}.weight"] = state[f"norm{n}.gamma"]
        renamed[f"norm{n}.bias"] = state[f"norm{n}.beta"]
    return renamed


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences or tokens."""
    more = {"sentences": {"batch": (7, 15)}, "tokens": {"n_tokens": (12, 25)}}
    assert_vectorised(student, functools.partial(called, student, rng), more)


@pytest.mark.points(0)
def test_x_stays(student, rng):
    """x is not written into, and a transposed view of it gives the same."""
    block = student.TransformerBlock(*SIZES).to(torch.float64)
    assert_takes_views(student, block, rng.randn(2, 5, 12))


@pytest.mark.points(0)
def test_dtype(student, rng):
    """The block works in bfloat16, also in training."""
    block = student.TransformerBlock(*SIZES, dropout=0.4).bfloat16().train()
    output = output_of(block, rng.randn(2, 5, 12, dtype=torch.bfloat16))
    assert_dtype(output, torch.bfloat16, "in training, the output")


@pytest.mark.points(0)
def test_values_are_dropped_one_by_one(student, rng):
    """In training, each value that a sub-layer adds is dropped on its own, apart from the other."""
    block = student.TransformerBlock(*SIZES, dropout=0.4).to(torch.float64).train()
    ones = torch.ones(12)  # attention adds 1 everywhere, and feed_forward 10
    state = {"attention.out_proj.bias": ones, "feed_forward.linear2.bias": 10 * ones}
    state["attention.out_proj.weight"] = torch.zeros(12, 12)
    state["feed_forward.linear2.weight"] = torch.zeros(12, 7)
    load_parameters(block, state).train()
    added = output_of(block, torch.zeros(300, 2, 12, dtype=torch.float64)) * 0.6
    first, second = added.remainder(10) < 0.5, added < 5
    left = (~first).double() + 10 * (~second).double()
    assert_close(added, left, "what is added to 0, times 0.6,")
    assert_dropped(first, 0.4, "values of attention")
    assert_dropped(second, 0.4, "values of feed_forward")
    joint = torch.corrcoef(torch.stack([first.flatten(), second.flatten()]).double())[0, 1]
    expect(joint.abs() < 0.5, "both sub-layers lose the same values")
