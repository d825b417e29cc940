"""Hidden tests of the Transformer block, which decide the points."""

import functools

import pytest
import torch
from torch import nn

from grader.testing import (
    assert_close,
    assert_same,
    assert_same_gradients,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    manual_seed,
    output_of,
    raises,
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL, NUM_HEADS, D_FF, CONTEXT_LENGTH = 2, 5, 12, 3, 7, 9
SIZES = (D_MODEL, NUM_HEADS, D_FF, CONTEXT_LENGTH)


def blocks(student, reference, rng, **options):
    """Return the student's block and the reference's, same random parameters, in eval mode."""
    return twins(student.TransformerBlock, reference.TransformerBlock, *SIZES, rng=rng, **options)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The block is wired by hand, without one of torch's Transformer layers.

    Guards: the ban on torch's layers, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.TransformerBlock(*SIZES), x))


@pytest.mark.points(1)
def test_parts(student, reference):
    """attention, feed_forward, norm1, norm2 in this order: the same seed gives the same weights."""
    manual_seed(student, 123)
    found = dict(student.TransformerBlock(*SIZES).named_parameters())
    torch.default_generator.manual_seed(123)
    wanted = dict(reference.TransformerBlock(*SIZES).named_parameters())
    wrong = ", ".join(sorted(set(found) ^ set(wanted)))
    expect(set(found) == set(wanted), f"these parameters are missing or unexpected: {wrong}")
    for name, parameter in wanted.items():
        assert_close(found[name], parameter, f"{name} of a fresh block")


@pytest.mark.points(3)
def test_pre_norm(student, reference, rng):
    """norm_first=True: x + attention(norm1(x)), then x + feed_forward(norm2(x)); gradients too.

    nn.TransformerEncoderLayer, which shares no code with the parts, checks the same output.
    """
    theirs, ours = blocks(student, reference, rng, dropout=0.3)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL) * 0.3
    assert_same_gradients(theirs, ours, x, names=("x",))
    torchs = torch_layer()
    torchs.load_state_dict(torch_names(ours.state_dict()))
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    future = nn.Transformer.generate_square_subsequent_mask(N_TOKENS, dtype=torch.float64)
    expected = output_of(torchs, x, src_mask=future)
    assert_close(output_of(theirs, x), expected, "the output (compared with torch's own layer)")


@functools.cache
def torch_layer():
    """Return torch's block of this suite's sizes, in float64 and eval mode, with any weights."""
    sizes = D_MODEL, NUM_HEADS, D_FF
    return nn.TransformerEncoderLayer(*sizes, batch_first=True, norm_first=True).double().eval()


@pytest.mark.points(3)
def test_post_norm(student, reference, rng):
    """norm_first=False: norm1(x + attention(x)), then norm2(x + feed_forward(x)); gradients too.

    Dropout is inside the norms here too: at rate 1, only the norms change x in training.
    """
    theirs, ours = blocks(student, reference, rng, norm_first=False, dropout=1.0)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL) * 0.3
    assert_same_gradients(theirs, ours, x, names=("x",))
    expected = output_of(ours.norm2, output_of(ours.norm1, x))
    assert_close(output_of(theirs.train(), x), expected, "the output in training at dropout 1")


def torch_names(state):
    """Return the block's parameters under the names that torch's encoder layer gives them."""
    projections = [state[f"attention.{name}.weight"] for name in ("W_query", "W_key", "W_value")]
    renamed = {
        "self_attn.in_proj_weight": torch.cat(projections),
        "self_attn.in_proj_bias": torch.zeros(3 * D_MODEL, dtype=torch.float64),
    }
    for kind in ("weight", "bias"):
        renamed[f"self_attn.out_proj.{kind}"] = state[f"attention.out_proj.{kind}"]
        for n in (1, 2):
            renamed[f"linear{n}.{kind}"] = state[f"feed_forward.linear{n}.{kind}"]
    for n in (1, 2):
        renamed[f"norm{n}.weight"] = state[f"norm{n}.gamma"]
        renamed[f"norm{n}.bias"] = state[f"norm{n}.beta"]
    return renamed


@pytest.mark.points(3)
def test_dropout_in_pre_norm(student, rng):
    """In training, the output of each sub-layer is dropped at the given rate, never x itself.

    With out_proj and linear2 set to zero, nothing is added: the block returns x.
    """
    rate = 0.25
    block = student.TransformerBlock(*SIZES, dropout=rate).to(torch.float64).train()
    state = {
        "attention.out_proj.weight": torch.zeros(D_MODEL, D_MODEL),
        "attention.out_proj.bias": torch.zeros(D_MODEL),
        "feed_forward.linear2.weight": torch.zeros(D_MODEL, D_FF),
        "feed_forward.linear2.bias": torch.zeros(D_MODEL),
    }
    block.load_state_dict(state, strict=False)
    x = rng.randn(40, N_TOKENS, D_MODEL)
    few = x[:BATCH]
    assert_close(output_of(block, few), few, "the output if the sub-layers return zeros")
    # The sub-layers return their last bias, which becomes 1 and 2 if it is kept and rescaled.
    state["attention.out_proj.bias"] += 0.75
    state["feed_forward.linear2.bias"] += 1.5
    block.load_state_dict(state, strict=False)
    output = output_of(block, x)
    expect(output.shape == x.shape, f"the output has the shape {tuple(output.shape)}")
    added = output - x
    steps = added.round().clamp(0, 3)
    assert_close(added, steps, "what the sub-layers (0.75 and 1.5) add at dropout 0.25")
    lost = {"attention": steps % 2 == 0, "feed_forward": steps < 2}
    for name, dropped in lost.items():
        share = dropped.double().mean().item()
        expect(
            abs(share - rate) < 0.06,
            f"{share:.0%} of the output of {name} is dropped, where about {rate:.0%} is expected",
        )


@pytest.mark.points(1)
def test_parts_get_the_dropout(student):
    """attention and feed_forward are built with the dropout rate and drop values inside."""
    block = student.TransformerBlock(*SIZES, dropout=0.5, causal=False).train()
    # The norms return ones. Attention adds the sum of its weights to the first half of the
    # features; feed_forward adds the mean of its hidden units to the second. Without dropout, both
    # are 1.
    half = D_MODEL // 2
    state = {
        "norm1.gamma": torch.zeros(D_MODEL),
        "norm1.beta": torch.ones(D_MODEL),
        "norm2.gamma": torch.zeros(D_MODEL),
        "norm2.beta": torch.ones(D_MODEL),
        "attention.W_value.weight": torch.eye(D_MODEL),
        "attention.out_proj.weight": torch.eye(half, D_MODEL).repeat(2, 1) * above(half),
        "attention.out_proj.bias": torch.zeros(D_MODEL),
        "feed_forward.linear1.weight": torch.zeros(D_FF, D_MODEL),
        "feed_forward.linear1.bias": torch.ones(D_FF),
        "feed_forward.linear2.weight": (1 - above(half)).repeat(1, D_FF) / D_FF,
        "feed_forward.linear2.bias": torch.zeros(D_MODEL),
    }
    block.load_state_dict(state, strict=False)
    output = output_of(block, torch.zeros(4, N_TOKENS, D_MODEL))
    parts = {"attention": output[..., :half], "feed_forward": output[..., half:]}
    for name, part in parts.items():
        whole = (part == 0) | ((part - 2).abs() < 1e-4)
        expect(not whole.all(), f"nothing is dropped inside {name}")
        expect((part != part[0, 0, 0]).any(), "the output is the same for every token")


def above(half):
    """Return a column of ones above zeros, (2 * half, 1): it selects the first half of features."""
    return (torch.arange(2 * half) < half)[:, None].float()


@pytest.mark.points(3)
def test_attention_gets_its_options(student, rng):
    """causal decides whether tokens attend to later ones; context_length limits their number.

    Without the causal mask, permuted tokens give permuted outputs.
    """
    x = rng.randn(BATCH, CONTEXT_LENGTH, D_MODEL)
    order = rng.permutation(CONTEXT_LENGTH)
    block = student.TransformerBlock(*SIZES, causal=False).to(torch.float64)
    output, permuted = output_of(block, torch.cat([x, x[:, order]])).chunk(2)
    shape = (BATCH, CONTEXT_LENGTH, D_MODEL)
    assert_same(permuted, output[:, order], "the output of permuted tokens", shape=shape)

    block = student.TransformerBlock(*SIZES, causal=True).to(torch.float64)
    changed = x.clone()
    changed[:, 3:] *= -1e3
    before, after = output_of(block, torch.cat([x, changed])).chunk(2)
    what, shape = "the output before the tokens that changed", (BATCH, 3, D_MODEL)
    assert_same(after[:, :3], before[:, :3], what, shape=shape)
    expect((after != before).any(), "the output does not depend on x")
    with raises(student, "ValueError"):
        output_of(block, torch.cat([x, x[:, :1]], dim=1))


@pytest.mark.points(1)
@pytest.mark.needs("test_pre_norm")
def test_argument(student, rng):
    """x may be a transposed bfloat16 view; it is not modified, and the output has its dtype."""
    x = rng.randn(BATCH, D_MODEL, N_TOKENS, dtype=torch.bfloat16).transpose(1, 2)
    for norm_first in (True, False):
        block = student.TransformerBlock(*SIZES, norm_first=norm_first).to(torch.bfloat16)
        output = assert_unchanged(student, functools.partial(output_of, block), x, names=("x",))
        expect(output.shape == x.shape, f"the output has the shape {tuple(output.shape)}")
        expect(output.dtype == x.dtype, f"x is {x.dtype}, and the output is {output.dtype}")


@pytest.mark.points(1)
@pytest.mark.needs("test_pre_norm")
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch or tokens."""
    block = student.TransformerBlock(*SIZES)
    x = rng.randn(2, 5, D_MODEL, dtype=torch.float32)
    longer = rng.randn(3, 7, D_MODEL, dtype=torch.float32)
    assert_vectorised(student, lambda: output_of(block, x), lambda: output_of(block, longer))


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_parts(student, reference, rng):
    """With your own attention, norm and feed-forward, the block gives the same output.

    Guards: the student's earlier exercises work together. A mistake in one of them has already
    cost points there, so this test is worth none.
    """
    theirs, ours = blocks(student, reference, rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    assert_close(output_of(theirs, x), output_of(ours, x))
