"""Public tests of multi-head attention, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, expect, output_of, raises

FIRST_HEAD = [
    [0.2745, 0.6584, 0.2775, 0.8573],
    [0.8993, 0.0390, 0.9268, 0.7388],
    [0.7179, 0.7058, 0.9156, 0.4340],
]
REFUSALS = ("ValueError", "AssertionError", "RuntimeError", "IndexError")
SECOND_HEAD = [[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]]


@pytest.mark.points(5)
def test_worked_example(student):
    """The worked example: two heads on three tokens, with the identity in all four layers."""
    module = student.MultiHeadAttention(8, 8, 3, 0.0, 2)
    layers = {f"{name}.weight": torch.eye(8) for name in ("W_query", "W_key", "W_value")}
    out_proj = {"out_proj.weight": torch.eye(8), "out_proj.bias": torch.zeros(8)}
    module.load_state_dict(layers | out_proj, strict=False)
    x = torch.cat([torch.tensor(FIRST_HEAD), torch.tensor(SECOND_HEAD)], dim=1)
    expected = torch.tensor(
        [
            [0.2745, 0.6584, 0.2775, 0.8573, 1.0000, 0.0000, 0, 0],
            [0.6672, 0.2691, 0.6856, 0.7828, 0.3775, 0.6225, 0, 0],
            [0.6639, 0.4603, 0.7505, 0.6526, 0.7259, 0.7259, 0, 0],
        ]
    )
    assert_close(output_of(module, x[None]), expected[None], atol=2e-4)


@pytest.mark.points(4)
def test_heads_are_independent(student, rng):
    """Other queries for head 1 change only the columns of head 1 before out_proj."""
    module = student.MultiHeadAttention(7, 12, 6, 0.0, 3).to(torch.float64)
    identity = torch.eye(12, dtype=torch.float64)
    module.load_state_dict({"out_proj.weight": identity}, strict=False)
    x = rng.randn(2, 5, 7)
    before = output_of(module, x)
    W_query = rng.randn(12, 7)
    module.load_state_dict({"W_query.weight": W_query}, strict=False)
    middle = output_of(module, x)
    W_query[4:8] = rng.randn(4, 7)
    module.load_state_dict({"W_query.weight": W_query}, strict=False)
    after = output_of(module, x)
    expect(not torch.allclose(before, middle), "the output does not depend on W_query")
    assert_close(after[..., :4], middle[..., :4], "the output of head 0")
    assert_close(after[..., 8:], middle[..., 8:], "the output of head 2")
    changed = not torch.allclose(after[..., 4:8], middle[..., 4:8])
    expect(changed, "the output of head 1 did not change with its queries")


@pytest.mark.points(3)
def test_causal_or_not(student, rng):
    """With causal=True, later tokens are invisible; with causal=False, they are visible."""
    x = rng.randn(2, 5, 7, dtype=torch.float32)
    changed = x.clone()
    changed[:, 3:] += 10
    for causal in (True, False):
        module = student.MultiHeadAttention(7, 12, 6, 0.0, 3, causal=causal)
        before, after = output_of(module, x)[:, :3], output_of(module, changed)[:, :3]
        expect(
            torch.allclose(before, after, atol=1e-5) == causal,
            f"with causal={causal}, changing tokens 4 and 5 "
            f"{'changes' if causal else 'does not change'} the outputs before them",
        )


@pytest.mark.points(3)
def test_parts(student):
    """Four linear layers, 3·d_in·d_out + d_out² + d_out parameters and no others."""
    module = student.MultiHeadAttention(7, 12, 6, 0.0, 3)
    sizes = {name: parameter.numel() for name, parameter in module.named_parameters()}
    total = 3 * 7 * 12 + 12 * 12 + 12
    expect(sum(sizes.values()) == total, f"the parameters {sizes} do not add up to {total}")
    layers = {name.partition(".")[0] for name in sizes}
    wanted = {"W_query", "W_key", "W_value", "out_proj"}
    expect(layers == wanted, f"the layers are {sorted(layers)}, not {sorted(wanted)}")


@pytest.mark.points(1)
def test_dropout(student, rng):
    """Dropout changes the output in training mode but not in eval mode."""
    module = student.MultiHeadAttention(7, 12, 6, 0.5, 3)
    x = rng.randn(2, 5, 7, dtype=torch.float32)
    training = [output_of(module, x) for _ in range(2)]
    expect(not torch.allclose(*training), "two calls in training give the same output")
    module.eval()
    assert_close(output_of(module, x), output_of(module, x), "the second output in eval mode")


@pytest.mark.points(2)
def test_misuse(student, rng):
    """A num_heads that does not divide d_out and more than context_length tokens are refused."""
    with raises(student, *REFUSALS):
        student.MultiHeadAttention(7, 12, 6, 0.0, 5)
    module = student.MultiHeadAttention(7, 12, 6, 0.0, 3)
    with raises(student, *REFUSALS):
        output_of(module, rng.randn(2, 7, 7, dtype=torch.float32))
