"""Hidden tests of the Transformer block, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import functools

import pytest
import torch
from torch import Tensor, nn

from grader.errors import Mismatch
from grader.testing import (
    assert_close,
    assert_same,
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
ABSOLUTE = 1e-5  # code that computes in float32 and converts back is right
STEP = 1e-8  # for slopes: tiny, since a ReLU has a corner
DRAWS, RATE = 400, 0.4  # sentences in which values are dropped, and how many of them
REFUSALS = ("ValueError", "AssertionError", "RuntimeError", "IndexError")
ORDERS = {"pre-norm": True, "post-norm": False}  # norm_first by name


def blocks(student, reference, rng, **options):
    """Return the student's block and the reference's, same random parameters, in eval mode.

    Parameters that are not asked for, or not there, keep their values: another check counts them.
    """
    ours = reference.TransformerBlock(*SIZES, **options).to(torch.float64).eval()
    state = {name: rng.randn(*p.shape) * 0.5 + 0.25 for name, p in ours.named_parameters()}
    ours.load_state_dict(state, strict=False)
    return made(student, state, **options), ours


def made(code, state, **options):
    """Return a block in float64 and evaluation mode, with those of the parameters that fit."""
    block = code.TransformerBlock(*SIZES, **options).to(torch.float64)
    shapes = {name: value.shape for name, value in block.state_dict().items()}
    fitting = {name: value for name, value in state.items() if shapes.get(name) == value.shape}
    block.load_state_dict(fitting, strict=False)
    return block.eval()


def random_block(student, rng, **options):
    """Return a block of the student with random parameters, in float64 and evaluation mode."""
    found = student.TransformerBlock(*SIZES).named_parameters()
    asked = ("attention.", "feed_forward.", "norm1.", "norm2.")  # others keep their values
    state = {n: rng.randn(*p.shape) * 0.5 + 0.25 for n, p in found if n.startswith(asked)}
    return made(student, state, **options)


def doubled(output):
    """Return an output in float64: another check asks for its dtype."""
    expect(isinstance(output, Tensor), "the output is not a tensor")
    return output.double()


def assert_own(actual, other, what):
    """Raise `Mismatch` unless two answers of the student agree."""
    expect(isinstance(other, Tensor), "the output is not a tensor")
    assert_same(actual, other, what, shape=tuple(other.shape))


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
    found = {n: tuple(p.shape) for n, p in student.TransformerBlock(*SIZES).named_parameters()}
    wanted = {n: tuple(p.shape) for n, p in reference.TransformerBlock(*SIZES).named_parameters()}
    wrong = ", ".join(sorted(set(found) ^ set(wanted)))
    expect(set(found) == set(wanted), f"these parameters are missing or unexpected: {wrong}")
    for name, shape in wanted.items():
        expect(found[name] == shape, f"{name} has the shape {found[name]}, not {shape}")


@pytest.mark.points(3)
def test_pre_norm(student, reference, rng):
    """norm_first=True, the default: x + attention(norm1(x)), then x + feed_forward(norm2(x)).

    Guards: the formula of pre-norm; most mistakes are made in both orders. The same output comes
    from nn.TransformerEncoderLayer, which shares no code with the parts.
    """
    theirs, ours = blocks(student, reference, rng)
    for shape in ((BATCH, N_TOKENS), (3, 7), (1, N_TOKENS), (3, 1), (1, 1)):
        x = rng.randn(*shape, D_MODEL) * 0.3
        what = f"the output for {shape[0]} x {shape[1]} tokens"
        assert_close(doubled(output_of(theirs, x)), output_of(ours, x), what, atol=ABSOLUTE)
    narrow = 1, 1, 2 * N_TOKENS, 2 * N_TOKENS  # a model with a single feature
    theirs, ours = (code.TransformerBlock(*narrow).double().eval() for code in (student, reference))
    shapes = {name: value.shape for name, value in theirs.state_dict().items()}
    state = {n: v for n, v in ours.state_dict().items() if shapes.get(n) == v.shape}
    theirs.load_state_dict(state, strict=False)
    x = rng.randn(BATCH, N_TOKENS, 1)
    what = "the output for a single feature"
    assert_close(doubled(output_of(theirs, x)), output_of(ours, x), what, atol=ABSOLUTE)
    theirs, ours = blocks(student, reference, rng)
    torchs = torch_layer()
    torchs.load_state_dict(torch_names(ours.state_dict()))
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    future = nn.Transformer.generate_square_subsequent_mask(N_TOKENS, dtype=torch.float64)
    expected = output_of(torchs, x, src_mask=future)
    what = "the output (compared with torch's own layer)"
    assert_close(doubled(output_of(theirs, x)), expected, what, atol=ABSOLUTE)


@functools.cache
def torch_layer():
    """Return torch's block of this suite's sizes, in float64 and eval mode, with any weights."""
    sizes = D_MODEL, NUM_HEADS, D_FF
    return nn.TransformerEncoderLayer(*sizes, batch_first=True, norm_first=True).double().eval()


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
def test_post_norm(student, reference, rng):
    """norm_first=False: norm1(x + attention(x)), then norm2(x + feed_forward(x))."""
    theirs, ours = blocks(student, reference, rng, norm_first=False)
    for shape in ((BATCH, N_TOKENS), (3, 7), (1, N_TOKENS), (3, 1), (1, 1)):
        x = rng.randn(*shape, D_MODEL) * 0.3
        what = f"the output for {shape[0]} x {shape[1]} tokens"
        assert_close(doubled(output_of(theirs, x)), output_of(ours, x), what, atol=ABSOLUTE)


@pytest.mark.points(1)
def test_gradients(student, rng):
    """In both orders, gradients reach x and all parameters, and are the slopes of the output."""
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for norm_first in ORDERS.values():
        block = random_block(student, rng, norm_first=norm_first, dropout=0.3)
        state = {name: value.detach() for name, value in block.named_parameters()}
        assert_slope(student, block, {"x": x}, x, rng)
        assert_slope(student, block, state, x, rng)
        block.train()
        assert_slope(student, block, {"x": x}, x, rng)
        assert_slope(student, block, state, x, rng)


def assert_slope(student, block, values, x, rng):
    """Raise `Mismatch` unless the gradients of `values` predict how the output changes."""
    directions = {name: rng.randn(*value.shape) for name, value in values.items()}

    def moved(step):
        manual_seed(student, 1)  # the same values are dropped in each call
        there = {name: value + step * directions[name] for name, value in values.items()}
        if "x" in there:
            return doubled(output_of(block, there["x"]))
        block.load_state_dict(there, strict=False)
        return doubled(output_of(block, x))

    slope = (moved(STEP) - moved(-STEP)) / (2 * STEP)
    if "x" not in values:
        block.load_state_dict(values, strict=False)
    expect(slope.isfinite().all(), "the output is not finite")
    block.zero_grad()
    leaf = x.clone().requires_grad_()
    manual_seed(student, 1)
    output = block(leaf)
    expect(output.requires_grad, "no gradient can flow back from the output: its graph was cut")
    upstream = rng.randn(*slope.shape)
    (output * upstream).sum().backward()
    grads = {"x": leaf.grad, **{name: p.grad for name, p in block.named_parameters()}}
    parts = [
        (grads[name] * direction).sum()
        for name, direction in directions.items()
        if grads[name] is not None  # the output may not depend on it, which other checks see
    ]
    name = "x" if "x" in values else "the parameters"
    difference = sum(parts) - (slope * upstream).sum()
    says = f"the gradient of {name} is not the slope of the output"
    expect(difference.abs() < 0.005 * slope.norm(), says)


@pytest.mark.points(2)
def test_dropout(student, rng):
    """Training drops the outputs of both sub-layers before they are added, never x itself.

    At the rate, each value is dropped on its own and the rest are scaled up; at rate 1, nothing is
    added; in eval mode, nothing is dropped.
    """
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for order, norm_first in ORDERS.items():
        state = {n: v.detach() for n, v in random_block(student, rng).named_parameters()}
        silent = {n: v * 0 if "out_proj" in n or "linear2" in n else v for n, v in state.items()}
        options = {"norm_first": norm_first}
        nothing = output_of(made(student, silent, **options), x)
        block = made(student, state, **options, dropout=1.0).train()
        assert_own(output_of(block, x), nothing, f"in {order}, the output in training at dropout 1")
        block = made(student, silent, **options, dropout=0.5).train()
        what = f"in {order}, the output in training if the sub-layers return zeros"
        assert_own(output_of(block, x), nothing, what)
        whole = output_of(made(student, state, **options), x)
        block = made(student, state, **options).train()
        assert_own(output_of(block, x), whole, f"in {order}, the output in training at dropout 0")
        block = made(student, state, **options, dropout=0.5)
        assert_own(output_of(block, x), whole, f"in {order}, the output in eval mode")
        for name in ("attention.out_proj", "feed_forward.linear2"):
            assert_rate(dropped_of(student, silent, name, order), name.partition(".")[0], order)
    both = dropped_of(student, silent, "attention.out_proj feed_forward.linear2", "pre-norm")
    joint = torch.corrcoef(torch.stack([each.flatten().double() for each in both]))[0, 1]
    expect(joint.abs() < 0.5, "the outputs of both sub-layers are dropped at the same places")


def dropped_of(student, silent, names, order):
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
    block = made(student, state, dropout=RATE, norm_first=ORDERS[order]).train()
    x = torch.zeros(DRAWS, N_TOKENS, D_MODEL, dtype=torch.float64)
    output = doubled(output_of(block, x))
    expect(output.shape == x.shape, f"the output has the shape {tuple(output.shape)}")
    expect(output.isfinite().all(), "the output in training is not finite")
    if order == "pre-norm":  # of 0.6 and 1.2, a bias that is kept and scaled up adds 1 and 2
        what = f"what sub-layers that return 0.6 and 1.2 add at dropout {RATE} ({names})"
        assert_close(output, output.round().clamp(0, 3), what, atol=ABSOLUTE)
    if all(each in names for each in biases):
        return torch.stack([output.round() % 2 == 0, output < 1.5])
    low, high = output.amin(-1, keepdim=True), output.amax(-1, keepdim=True)
    return output < (low + high) / 2


def assert_rate(dropped, name, order):
    """Raise `Mismatch` unless each value is dropped on its own, at the rate."""
    dropped = dropped.flatten(1).double()
    share = dropped.mean().item()
    says = f"in {order}, {share:.0%} of the output of {name} is dropped, not about {RATE:.0%}"
    expect(abs(share - RATE) < 0.06, says)
    uneven = f"in {order}, some outputs of {name} are dropped more often than others"
    expect((dropped.mean(0) - RATE).abs().max() < 0.25, f"{uneven}, or in all sentences at once")
    together = torch.corrcoef(dropped.T).fill_diagonal_(0).abs().max()
    expect(together < 0.5, f"in {order}, some outputs of {name} are always dropped together")


@pytest.mark.points(1)
def test_parts_get_the_dropout(student):
    """attention and feed_forward are built with the dropout rate and drop values inside."""
    rate = 0.4
    block = student.TransformerBlock(*SIZES, dropout=rate, causal=False).train()
    # The norms return ones. Attention adds the sum of its weights to the first half of the
    # features; feed_forward adds the mean of its hidden units to the second. Without dropout, both
    # are 1.
    half = D_MODEL // 2
    width = block.state_dict()["feed_forward.linear1.bias"].shape[0]
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
    block.load_state_dict(state, strict=False)
    output = output_of(block, torch.zeros(DRAWS, N_TOKENS, D_MODEL))
    expect(isinstance(output, Tensor), "the output is not a tensor")
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
        expect(0.4 < ratio < 2, f"inside {name}, values are not dropped at the rate {rate}")


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
    for norm_first in ORDERS.values():
        block = random_block(student, rng, causal=False, norm_first=norm_first)
        output, permuted = doubled(output_of(block, torch.cat([x, x[:, order]]))).chunk(2)
        shape = (BATCH, N_TOKENS, D_MODEL)
        assert_same(permuted, output[:, order], "the output of permuted tokens", shape=shape)
        default = random_block(student, rng, norm_first=norm_first)
        for block in (random_block(student, rng, causal=True, norm_first=norm_first), default):
            changed = x.clone()
            changed[:, 3:] *= -1e3
            before, after = doubled(output_of(block, torch.cat([x, changed]))).chunk(2)
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
            try:
                with raises(student, *REFUSALS):
                    output_of(block, x)
            except Mismatch:
                call = f"TransformerBlock{sizes}(x) with {context + 1} tokens"
                raise Mismatch(f"{call} raises nothing, where ValueError is expected") from None


@pytest.mark.points(1)
def test_argument(student, rng):
    """x may be a transposed view, and is not modified."""
    views = (
        rng.randn(BATCH, D_MODEL, N_TOKENS).transpose(1, 2),
        rng.randn(N_TOKENS, BATCH, D_MODEL).transpose(0, 1),
    )
    for norm_first in ORDERS.values():
        block = random_block(student, rng, norm_first=norm_first)
        for x in views:
            plain = x.contiguous()
            for mode in (True, False):
                block.train(mode)
                assert_unchanged(student, block, plain, names=("x",))
            quiet = functools.partial(output_of, block)
            output = assert_unchanged(student, quiet, plain, names=("x",))
            again = assert_unchanged(student, quiet, x, names=("x",))
            assert_own(again, output, "the output for a transposed view")


@pytest.mark.points(1)
def test_dtype(student, rng):
    """`block.to(dtype)` is enough to compute in another dtype; the output has the dtype of x."""
    x = rng.randn(BATCH, N_TOKENS, D_MODEL)
    for norm_first in ORDERS.values():
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            for mode, rate in ((False, 0.0), (True, 0.5)):
                block = student.TransformerBlock(*SIZES, rate, norm_first=norm_first).to(dtype)
                output = output_of(block.train(mode), x.to(dtype))
                expect(isinstance(output, Tensor), "the output is not a tensor")
                names = [str(each).removeprefix("torch.") for each in (output.dtype, dtype)]
                says = f"after block.to(torch.{names[1]}), the output for an x in {names[1]} is "
                says += names[0] + (" in training" if mode else "")
                expect(output.dtype == dtype, says)


@pytest.mark.points(1)
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch or tokens."""

    def called(batch, n_tokens, norm_first):
        block = student.TransformerBlock(*SIZES, norm_first=norm_first)
        x = rng.randn(batch, n_tokens, D_MODEL, dtype=torch.float32)
        return lambda: output_of(block, x)

    for norm_first in ORDERS.values():
        small = called(2, 3, norm_first)
        for axis, sizes in (("sentences", (5, 3)), ("tokens", (2, 7))):
            large = called(*sizes, norm_first)
            large()  # what is kept for later calls may be made here
            try:
                assert_vectorised(student, small, large)
            except Mismatch as mismatch:
                raise Mismatch(f"{mismatch} (only the number of {axis} grew)") from None


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
