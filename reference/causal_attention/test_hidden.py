"""Hidden tests of causal attention, which decide the points."""

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

BATCH, N_TOKENS, CONTEXT, D_IN, D_OUT = 2, 5, 6, 7, 4


def pair(student, reference, rng, *, dropout=0.0, **kwargs):
    """Return the student's module and the reference's, both with the same random parameters."""
    classes = student.CausalAttention, reference.CausalAttention
    return twins(*classes, D_IN, D_OUT, CONTEXT, dropout, rng=rng, **kwargs)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    x = rng.randn(BATCH, N_TOKENS, D_IN, dtype=torch.float32)
    assert_written_by_hand(
        student, lambda: output_of(student.CausalAttention(D_IN, D_OUT, CONTEXT, 0.0), x)
    )


@pytest.mark.points(3)
def test_causal_attention(student, reference, rng):
    """The output matches the formula, and its gradients reach x and all parameters."""
    theirs, ours = pair(student, reference, rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN) * 0.5
    assert_same_gradients(theirs, ours, x, names=("x",))


@pytest.mark.points(2)
def test_context_length(student, reference, rng):
    """One token gives its own value, context_length tokens fit, one more raises ValueError."""
    theirs, ours = pair(student, reference, rng)
    x = rng.randn(1, 1, D_IN)
    assert_close(output_of(theirs, x), output_of(ours.W_value, x), "the output for a single token")
    x = rng.randn(3, CONTEXT, D_IN) * 0.5
    assert_close(output_of(theirs, x), output_of(ours, x), "the output for context_length tokens")
    with raises(student, "ValueError"):
        output_of(theirs, rng.randn(BATCH, CONTEXT + 1, D_IN))


@pytest.mark.points(2)
def test_future_is_invisible(student, rng):
    """Changing later tokens by any amount changes no earlier output, even for huge scores."""
    module = student.CausalAttention(D_IN, D_OUT, CONTEXT, 0.0).to(torch.float64)
    W_query, W_value = rng.randn(D_OUT, D_IN), rng.randn(D_OUT, D_IN)
    # Keys are the negative queries, so a token's score with itself is far below 0.
    layers = {"W_query.weight": W_query, "W_key.weight": -W_query, "W_value.weight": W_value}
    module.load_state_dict(layers, strict=False)
    scales = torch.tensor([1.0, 1e3], dtype=torch.float64).view(2, 1, 1)
    x = rng.randn(2, N_TOKENS, D_IN) * scales
    changed = x.clone()
    changed[:, 3:] += rng.randn(2, N_TOKENS - 3, D_IN) * 1e3
    before, after = output_of(module, x), output_of(module, changed)
    expect(before[:, :3].isfinite().all(), "for an x of scale 1 or 1000 the output is not finite")
    what, shape = "the output for the tokens before the change", (2, 3, D_OUT)
    assert_same(after[:, :3], before[:, :3], what, shape=shape)
    expect((after != before).any(), "the output does not depend on x")


@pytest.mark.points(2)
def test_parts(student, reference, rng):
    """W_query, W_key, W_value in this order, with a bias if requested; the mask is a buffer."""
    seed = int(rng.randint(0, 10_000, 1))
    manual_seed(student, seed)
    theirs = student.CausalAttention(D_IN, D_OUT, CONTEXT, 0.0, qkv_bias=True)
    torch.default_generator.manual_seed(seed)
    ours = reference.CausalAttention(D_IN, D_OUT, CONTEXT, 0.0, qkv_bias=True)
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
    n_tokens, rate = 16, 0.3
    classes = student.CausalAttention, reference.CausalAttention
    theirs, ours = twins(*classes, 18, 24, 17, rate, rng=rng)
    x = rng.randn(BATCH, n_tokens, 18) * 0.1
    output = output_of(ours, x)
    assert_close(output_of(theirs, x), output, "the output in eval mode")
    # The values are independent vectors (16 of size 24), so the output determines the weights.
    values = output_of(ours.W_value, x)
    inverse = values.mT @ torch.linalg.inv(values @ values.mT)
    weights = output @ inverse
    seen = output_of(theirs.train(), x) @ inverse
    dropped = seen.abs() < weights / 2
    expected = (weights / (1 - rate)).masked_fill(dropped, 0.0)
    assert_close(seen, expected, "the weights in training (computed from the output)", atol=1e-6)
    visible = torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()
    share = dropped[:, visible].double().mean().item()
    expect(abs(share - rate) < 0.16, f"{share:.0%} of the weights are dropped at rate {rate}")


@pytest.mark.points(2)
@pytest.mark.needs("test_causal_attention")
def test_argument(student, reference, rng):
    """x may be a transposed bfloat16 view; it is not modified, and the output has its dtype."""
    theirs, ours = pair(student, reference, rng, dtype=torch.bfloat16)
    x = (rng.randn(BATCH, D_IN, N_TOKENS) * 0.3).to(torch.bfloat16).transpose(1, 2)
    output = assert_unchanged(student, lambda x: output_of(theirs, x), x, names=("x",))
    assert_close(output, output_of(ours, x), atol=0.05)


@pytest.mark.points(1)
@pytest.mark.needs("test_causal_attention")
def test_no_python_loops(student, rng):
    """The number of tensor operations does not grow with batch or tokens."""
    module = student.CausalAttention(D_IN, D_OUT, 9, 0.0)
    small = rng.randn(2, 3, D_IN, dtype=torch.float32)
    large = rng.randn(4, 8, D_IN, dtype=torch.float32)
    assert_vectorised(student, lambda: output_of(module, small), lambda: output_of(module, large))
