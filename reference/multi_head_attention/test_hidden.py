"""Hidden tests of multi-head attention, which decide the points."""

import pytest
import torch

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

BATCH, N_TOKENS, CONTEXT, D_IN, HEADS, D_HEAD = 2, 5, 6, 7, 3, 4
D_OUT = HEADS * D_HEAD


def pair(student, reference, rng, *, dropout=0.0, num_heads=HEADS, **kwargs):
    """Return the student's module and the reference's, both with the same random parameters."""
    classes = student.MultiHeadAttention, reference.MultiHeadAttention
    return twins(*classes, D_IN, D_OUT, CONTEXT, dropout, num_heads, rng=rng, **kwargs)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)
    assert_written_by_hand(
        student, lambda: output_of(student.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS), x)
    )


@pytest.mark.points(4)
def test_multi_head_attention(student, reference, rng):
    """The output matches the formula, and its gradients reach x and all parameters."""
    theirs, ours = pair(student, reference, rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN) * 0.5
    assert_same_gradients(theirs, ours, x, names=("x",))


@pytest.mark.points(2)
def test_not_causal(student, reference, rng):
    """With causal=False, every token attends to all tokens."""
    theirs, ours = pair(student, reference, rng, causal=False)
    x = rng.randn(BATCH, N_TOKENS, D_IN) * 0.5
    assert_close(output_of(theirs, x), output_of(ours, x))


@pytest.mark.points(2)
def test_sizes(student, reference, rng):
    """One token, head or sentence works; too many tokens and a wrong num_heads raise errors."""
    theirs, ours = pair(student, reference, rng, num_heads=1)
    for x in (rng.randn(1, 1, D_IN), rng.randn(3, CONTEXT, D_IN) * 0.5):
        assert_close(
            output_of(theirs, x), output_of(ours, x), f"the output for {x.shape[1]} token(s)"
        )
    with raises(student, "ValueError"):
        output_of(theirs, rng.randn(BATCH, CONTEXT + 1, D_IN))
    with raises(student, "ValueError", "AssertionError"):
        student.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.0, 5)


@pytest.mark.points(1)
def test_future_is_invisible(student, rng):
    """Changing a later token by any amount changes no earlier output."""
    module = student.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS)
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)
    # Tokens 4 and 5 become huge with opposite signs, so one outscores the tokens before them.
    changed = x.clone()
    changed[:, 3:] *= torch.tensor([[1e4], [-1e4]])
    before, after = output_of(module, x), output_of(module, changed)
    what, shape = "the output for the tokens before the change", (BATCH, 3, D_OUT)
    assert_same(after[:, :3], before[:, :3], what, shape=shape)
    expect((after != before).any(), "the output does not depend on x")


@pytest.mark.points(3)
def test_parts(student, reference, rng):
    """The four layers have the right order and biases, and the mask is a buffer."""
    seed = int(rng.randint(0, 10_000, 1))
    manual_seed(student, seed)
    theirs = student.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS, qkv_bias=True)
    torch.default_generator.manual_seed(seed)
    ours = reference.MultiHeadAttention(D_IN, D_OUT, CONTEXT, 0.0, HEADS, qkv_bias=True)
    found = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        expect(name in found, f"with qkv_bias=True there is no parameter {name}")
        assert_close(found[name], parameter, f"{name} after torch.manual_seed({seed})")
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)
    assert_close(output_of(theirs, x), output_of(ours, x), "the output with biases")
    shapes = [tuple(buffer.shape) for _, buffer in theirs.named_buffers()]
    found = any(shape[-2:] == (CONTEXT, CONTEXT) for shape in shapes)
    expect(found, f"no buffer is a mask of shape {(CONTEXT, CONTEXT)}; the shapes are {shapes}")


@pytest.mark.points(3)
def test_dropout(student, reference, rng):
    """Training drops weights at the rate and divides the rest by 1 - rate; eval mode drops none."""
    batch, n_tokens, d_in, d_head, rate = 4, 8, 13, 11, 0.3
    classes = student.MultiHeadAttention, reference.MultiHeadAttention
    theirs, ours = twins(*classes, d_in, HEADS * d_head, 9, rate, HEADS, rng=rng)
    x = rng.randn(batch, n_tokens, d_in) * 0.1
    output = output_of(ours, x)
    assert_close(output_of(theirs, x), output, "the output in eval mode")

    def heads(tensor):
        return tensor.view(batch, n_tokens, HEADS, d_head).transpose(1, 2)

    # A head's values are independent (8 of size 11), so the output determines the weights.
    W_out, bias = ours.out_proj.weight.detach(), ours.out_proj.bias.detach()
    values = heads(output_of(ours.W_value, x))
    inverse = values.mT @ torch.linalg.inv(values @ values.mT)

    def weights_by(output):
        return heads(torch.linalg.solve(W_out.T, output - bias, left=False)) @ inverse

    weights = weights_by(output)
    seen = weights_by(output_of(theirs.train(), x))
    dropped = seen.abs() < weights / 2
    expected = (weights / (1 - rate)).masked_fill(dropped, 0.0)
    assert_close(seen, expected, "the weights in training (computed from the output)", atol=1e-6)
    visible = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
    share = dropped[..., visible].double().mean().item()
    expect(abs(share - rate) < 0.15, f"{share:.0%} of the weights are dropped at rate {rate}")


@pytest.mark.points(2)
@pytest.mark.needs("test_multi_head_attention")
def test_argument(student, reference, rng):
    """x may be a transposed bfloat16 view; it is not modified, and the output has its dtype."""
    theirs, ours = pair(student, reference, rng, dtype=torch.bfloat16)
    x = (rng.randn(BATCH, D_IN, N_TOKENS) * 0.2).to(torch.bfloat16).transpose(1, 2)
    output = assert_unchanged(student, lambda x: output_of(theirs, x), x, names=("x",))
    assert_close(output, output_of(ours, x), atol=0.1)


@pytest.mark.points(1)
@pytest.mark.needs("test_multi_head_attention")
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch, heads or tokens."""
    small = student.MultiHeadAttention(D_IN, 12, 9, 0.0, 3)
    large = student.MultiHeadAttention(D_IN, 20, 9, 0.0, 5)
    few = rng.randn(2, 4, D_IN, dtype=torch.float32)
    many = rng.randn(6, 8, D_IN, dtype=torch.float32)
    assert_vectorised(student, lambda: output_of(small, few), lambda: output_of(large, many))
