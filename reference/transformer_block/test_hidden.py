"""Hidden tests of the Transformer block, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_refused_in_both_modes,
    assert_same,
    assert_slopes,
    assert_takes_views,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    output_of,
    parameter_shapes,
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, D_MODEL, NUM_HEADS, D_FF, CONTEXT_LENGTH = 2, 5, 12, 3, 7, 9
SIZES = (D_MODEL, NUM_HEADS, D_FF, CONTEXT_LENGTH)
DRAWS, RATE = 200, 0.37  # sentences in which values are dropped, and how many of them
PARTS = ("attention.", "feed_forward.", "norm1.", "norm2.")
ORDERS = {"pre-norm": True, "post-norm": False}  # norm_first by name


def blocks(student, reference, rng, *, sizes=SIZES, **options):
    """Return the student's block and the reference's, same random parameters, in eval mode.

    Parameters that are not asked for, or not there, keep their values: another check counts them.
    """
    ours = reference.TransformerBlock(*sizes, **options)
    state = random_state(parameter_shapes(ours), rng)
    return made(student, state, sizes=sizes, **options), load_parameters(ours, state)


def random_state(shapes, rng):
    """Return random values for those of the parameters that are asked for."""
    return {n: rng.randn(*s) * 0.5 + 0.25 for n, s in shapes.items() if n.startswith(PARTS)}


def made(code, state, *, sizes=SIZES, **options):
    """Return a block in float64 and evaluation mode, with those of the parameters that it has."""
    return load_parameters(code.TransformerBlock(*sizes, **options), state)


def random_block(student, rng, **options):
    """Return a block of the student with random parameters, in float64 and evaluation mode."""
    block = student.TransformerBlock(*SIZES, **options)
    return load_parameters(block, random_state(parameter_shapes(block), rng))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The block is wired by hand, without one of torch's Transformer layers.

    Guards: the ban on torch's layers, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.TransformerBlock(*SIZES), x))


@pytest.mark.points(1)
def test_parts(student, reference):
    """The block has the parts attention, feed_forward, norm1, norm2, and no other parameters.

    Guards: the names and shapes of the parameters, by which weights are carried over.
    """
    found, wanted = (parameter_shapes(c.TransformerBlock(*SIZES)) for c in (student, reference))
    wrong = ", ".join(sorted(set(found) ^ set(wanted)))
    expect(set(found) == set(wanted), f"these parameters are missing or unexpected: {wrong}")
    for name, shape in wanted.items():
        expect(found[name] == shape, f"{name} has the shape {found[name]}, not {shape}")
    # Buffers of a part, such as a mask, are its own affair.
    state = student.TransformerBlock(*SIZES).state_dict()
    more = ", ".join(name for name in state if not name.startswith(PARTS))
    expect(not more, f"the state_dict holds {more} as well")


@pytest.mark.points(3)
def test_pre_norm(student, reference, rng):
    """norm_first=True, the default: x + attention(norm1(x)), then x + feed_forward(norm2(x)).

    Guards: the formula of pre-norm; most mistakes are made in both orders.
    """
    assert_formula(*blocks(student, reference, rng), rng)
    narrow = 1, 1, 2 * N_TOKENS, 2 * N_TOKENS  # a model with a single feature
    theirs, ours = blocks(student, reference, rng, sizes=narrow)
    x = rng.randn(BATCH, N_TOKENS, 1)
    what = "the output for a single feature"
    assert_close(in_float64(output_of(theirs, x)), output_of(ours, x), what)


@pytest.mark.points(3)
def test_post_norm(student, reference, rng):
    """norm_first=False: norm1(x + attention(x)), then norm2(x + feed_forward(x))."""
    assert_formula(*blocks(student, reference, rng, norm_first=False), rng)


def assert_formula(theirs, ours, rng):
    """Raise `Mismatch` unless the outputs agree for batches and tokens of any number and size."""
    shapes = {(BATCH, N_TOKENS): 0.3, (3, 7): 0.3, (1, N_TOKENS): 1e6, (3, 1): 0.3, (1, 1): 0.3}
    for (batch, n_tokens), scale in shapes.items():
        x = rng.randn(batch, n_tokens, D_MODEL) * scale
        what = f"the output for {batch} x {n_tokens} tokens"
        assert_close(in_float64(output_of(theirs, x)), output_of(ours, x), what)
    # What the sub-layers add may be as large.
    last = "attention.out_proj.bias", "feed_forward.linear2.bias"
    for block in (theirs, ours):
        state = dict.fromkeys(last, torch.full((D_MODEL,), 1e4))
        block.load_state_dict(state, strict=False)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    what = "the output if the sub-layers add large numbers"
    assert_close(in_float64(output_of(theirs, x)), output_of(ours, x), what)


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """In both orders, gradients reach x and all parameters, and are the slopes of the output."""
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for norm_first in ORDERS.values():
        theirs, ours = blocks(student, reference, rng, norm_first=norm_first, dropout=0.3)
        # Tiny steps, since a ReLU has a corner.
        assert_slopes(student, theirs, ours, {"x": x}, rng=rng, step=1e-8)


@pytest.mark.points(2)
def test_dropout(student, rng):
    """Training drops the outputs of both sub-layers before they are added, never x itself.

    At the rate, each value is dropped on its own and the rest are scaled up; at rate 1, nothing is
    added; in eval mode, nothing is dropped.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    shapes = parameter_shapes(student.TransformerBlock(*SIZES))
    for order, norm_first in ORDERS.items():
        state = random_state(shapes, rng)
        silent = {n: v * 0 if "out_proj" in n or "linear2" in n else v for n, v in state.items()}
        default, half, all_dropped = (
            made(student, state, norm_first=norm_first, **options).train()
            for options in ({}, {"dropout": 0.5}, {"dropout": 1.0})
        )
        assert_drawn_anew(half, x, what=f"values in {order}")
        whole = output_of(default, x)
        for evaluated in (half, all_dropped):
            found = output_of(evaluated.eval(), x)
            assert_same(found, whole, f"in {order}, the output in eval mode")
        all_dropped.train()
        what = f"in {order}, the output with the default rate, in training or in eval mode,"
        assert_same(output_of(default.eval(), x), whole, what)
        nothing = in_float64(output_of(load_parameters(default, silent), x))
        what = f"in {order}, the output in training at dropout 1"
        assert_same(output_of(all_dropped, x[:1]), nothing[:1], what)
        what = f"in {order}, the output in training if the sub-layers return zeros"
        assert_same(output_of(load_parameters(half, silent).train(), x), nothing, what)
        dropping = student.TransformerBlock(*SIZES, dropout=RATE, norm_first=norm_first)
        for name in ("attention.out_proj", "feed_forward.linear2"):
            dropped = dropped_of(dropping, silent, name, order)
            what = f"values of the output of {name.partition('.')[0]} in {order}"
            assert_dropped(dropped, RATE, what)
        if norm_first:
            both = dropped_of(dropping, silent, "attention.out_proj feed_forward.linear2", order)
            joint = torch.corrcoef(torch.stack([each.flatten().double() for each in both]))[0, 1]
            says = "the outputs of both sub-layers are dropped at the same places"
            expect(joint.abs() < 0.5, says)


def dropped_of(block, silent, names, order):
    """Return where a sub-layer's output is dropped, (DRAWS, N_TOKENS, D_MODEL), or both of them.

    x is 0, the norms are fresh and the sub-layers return their last bias, 0 for one of them, so
    that a token has a high value where the other's bias is kept and a low one where it is dropped.
    """
    state = {n: torch.ones_like(v) if n.endswith("gamma") else v for n, v in silent.items()}
    state = {n: torch.zeros_like(v) if n.endswith("beta") else v for n, v in state.items()}
    biases = {"attention.out_proj": 1.0, "feed_forward.linear2": 2.0}
    for each, bias in biases.items():
        if each in names:
            state[f"{each}.bias"] = torch.full((D_MODEL,), bias * (1 - RATE), dtype=torch.float64)
    block = load_parameters(block, state).train()
    x = torch.zeros(DRAWS, N_TOKENS, D_MODEL, dtype=torch.float64)
    output = in_float64(output_of(block, x))
    expect(output.shape == x.shape, f"the output has the shape {tuple(output.shape)}")
    expect(output.isfinite().all(), "the output in training is not finite")
    if order == "pre-norm":  # a bias that is kept and scaled up adds 1 and 2
        kept = 1 - RATE
        what = (
            f"what sub-layers that return {kept:g} and {2 * kept:g} add at dropout {RATE} ({names})"
        )
        assert_close(output, output.round().clamp(0, 3), what)
    if all(each in names for each in biases):
        return torch.stack([output.round() % 2 == 0, output < 1.5])
    low, high = output.amin(-1, keepdim=True), output.amax(-1, keepdim=True)
    return output < (low + high) / 2


@pytest.mark.points(1)
def test_parts_get_the_dropout(student):
    """attention and feed_forward are built with the dropout rate and drop values inside."""
    rate = RATE
    block = student.TransformerBlock(*SIZES, dropout=rate, causal=False)
    # The norms return ones. Attention adds the sum of its weights to the first half of the
    # features; feed_forward adds the mean of its hidden units to the second. Without dropout, both
    # are 1.
    half = D_MODEL // 2
    width, *_ = parameter_shapes(block).get("feed_forward.linear1.bias", (D_FF,))
    state = {
        "norm1.gamma": torch.zeros(D_MODEL),
        "norm1.beta": torch.ones(D_MODEL),
        "norm2.gamma": torch.zeros(D_MODEL),
        "norm2.beta": torch.ones(D_MODEL),
        "attention.W_query.weight": torch.zeros(D_MODEL, D_MODEL),
        "attention.W_value.weight": torch.eye(D_MODEL),
        "attention.out_proj.weight": torch.eye(D_MODEL) * above(half),
        "attention.out_proj.bias": torch.zeros(D_MODEL),
        "feed_forward.linear1.weight": torch.zeros(width, D_MODEL),
        "feed_forward.linear1.bias": torch.ones(width),
        "feed_forward.linear2.weight": (1 - above(half)).repeat(1, width) / width,
        "feed_forward.linear2.bias": torch.zeros(D_MODEL),
    }
    block = load_parameters(block, state).train()
    output = in_float64(output_of(block, torch.zeros(1000, N_TOKENS, D_MODEL).double()))
    # The block drops single features, so a token's largest one shows what is dropped inside. The
    # last token attends to all, with the causal mask or without.
    output = output[:, -1]
    head = D_MODEL // NUM_HEADS
    parts = {
        "attention": (output[..., :head], N_TOKENS),
        "feed_forward": (output[..., half:], width),
    }
    for name, (part, count) in parts.items():
        inside = part.amax(-1)
        expect(inside.isfinite().all(), "the output in training is not finite")
        expect(inside.mean().abs() > 1e-3, f"{name} adds nothing to the output")
        inside = inside / inside.mean()
        expected = rate / (1 - rate) / count  # the variance of a mean of `count` values
        ratio = inside.var().item() / expected
        expect(ratio > 0.05, f"nothing is dropped inside {name}")
        expect(0.6 < ratio < 1.8, f"inside {name}, values are not dropped at the rate {rate}")


def above(half):
    """Return a column of ones above zeros, (2 * half, 1): it selects the first half of features."""
    return (torch.arange(2 * half) < half)[:, None].float()


@pytest.mark.points(1)
def test_causal(student, rng):
    """causal decides whether tokens attend to later ones, in both orders; it is on by default.

    Without the causal mask, permuted tokens give permuted outputs.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    order = torch.cat([rng.permutation(N_TOKENS - 1) + 1, torch.tensor([0])])
    changed = x.clone()
    changed[:, 3:] *= -1e3
    for norm_first in ORDERS.values():
        block = random_block(student, rng, causal=False, norm_first=norm_first)
        output, permuted = in_float64(output_of(block, torch.cat([x, x[:, order]]))).chunk(2)
        shape = (BATCH, N_TOKENS, D_MODEL)
        assert_same(permuted, output[:, order], "the output of permuted tokens", shape=shape)
        for options in ({}, {"causal": True}):
            block = random_block(student, rng, norm_first=norm_first, **options)
            before, after = in_float64(output_of(block, torch.cat([x, changed]))).chunk(2)
            what, shape = "the output before the tokens that changed", (BATCH, 3, D_MODEL)
            assert_same(after[:, :3], before[:, :3], what, shape=shape)
            expect((after != before).any(), "the output does not depend on x")


@pytest.mark.points(1)
def test_context_length(student, rng):
    """Up to context_length tokens are accepted; more are refused."""
    for causal in (True, False):
        for context in (CONTEXT_LENGTH, 3):
            sizes = (D_MODEL, NUM_HEADS, D_FF, context)
            block = student.TransformerBlock(*sizes, causal=causal)
            x = rng.randn(BATCH, context + 1, D_MODEL, dtype=torch.float32)
            output_of(block, x[:, :-1].clone())
            shown = f"TransformerBlock{sizes}(x) with {context + 1} tokens"
            assert_refused_in_both_modes(student, block, x, shown)


@pytest.mark.points(1)
def test_argument(student, rng):
    """x may be a transposed view, and is not modified."""
    for norm_first in ORDERS.values():
        block = random_block(student, rng, norm_first=norm_first)
        assert_takes_views(student, block, rng.randn(BATCH, N_TOKENS, D_MODEL))


@pytest.mark.points(1)
def test_dtype(student, rng):
    """`block.to(dtype)` is enough to compute in another dtype; the output has the dtype of x."""
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for norm_first in ORDERS.values():
        block = student.TransformerBlock(*SIZES, 0.5, norm_first=norm_first)
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            block.to(dtype)
            shown = f"after block.to({dtype}), the output for such an x"
            assert_dtype(output_of(block.eval(), x.to(dtype)), dtype, shown)
            assert_dtype(output_of(block.train(), x.to(dtype)), dtype, f"{shown} in training")


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch or tokens, nor over the places of the mask."""
    for norm_first in ORDERS.values():

        def called(batch=2, n_tokens=3, norm_first=norm_first):
            x, sizes = rng.randn(batch, n_tokens, D_MODEL), (*SIZES[:2], n_tokens + 2, n_tokens + 1)
            shapes = parameter_shapes(reference.TransformerBlock(*sizes))
            state = random_state(shapes, rng)
            options = {"sizes": sizes, "norm_first": norm_first}
            return lambda code: output_of(made(code, state, **options), x)

        grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
        assert_vectorised(student, called, grown, reference)


@pytest.mark.own_parts
@pytest.mark.points(0)
def test_on_your_own_parts(student, reference, rng):
    """With your own attention, norm and feed-forward, the block gives the same output.

    Guards: the student's earlier exercises work together. A mistake in one of them has already
    cost points there, so this test is worth none.
    """
    theirs, ours = twins(student.TransformerBlock, reference.TransformerBlock, *SIZES, rng=rng)
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    assert_close(output_of(theirs, x), output_of(ours, x))
