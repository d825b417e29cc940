"""Public tests of multi-head attention, which students can read and run."""

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

FIRST_HEAD = [
    [0.2745, 0.6584, 0.2775, 0.8573],
    [0.8993, 0.0390, 0.9268, 0.7388],
    [0.7179, 0.7058, 0.9156, 0.4340],
]
REFUSALS = ("ValueError", "AssertionError", "RuntimeError", "IndexError")
SECOND_HEAD = [[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]]


def called(student, rng, batch=2, n_tokens=4, heads=2):
    """Return a call of a module of its own on random tokens."""
    x = rng.randn(batch, n_tokens, 7, dtype=torch.float32)
    return lambda: output_of(student.MultiHeadAttention(7, 32, n_tokens + 1, 0.0, heads), x)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the attention."""
    assert_written_by_hand(student, called(student, rng))


@pytest.mark.points(7)
def test_worked_example(student):
    """The worked example: two heads on three tokens, with the identity in all four layers."""
    module = student.MultiHeadAttention(8, 8, 3, 0.0, 2)
    layers = {f"{name}.weight": torch.eye(8) for name in ("W_query", "W_key", "W_value")}
    out_proj = {"out_proj.weight": torch.eye(8), "out_proj.bias": torch.zeros(8)}
    load_parameters(module, layers | out_proj, dtype=torch.float32)
    x = torch.cat([torch.tensor(FIRST_HEAD), torch.tensor(SECOND_HEAD)], dim=1)
    expected = torch.tensor(
        [
            [0.2745, 0.6584, 0.2775, 0.8573, 1.0000, 0.0000, 0, 0],
            [0.6672, 0.2691, 0.6856, 0.7828, 0.3775, 0.6225, 0, 0],
            [0.6639, 0.4603, 0.7505, 0.6526, 0.7259, 0.7259, 0, 0],
        ]
    )
    assert_close(output_of(module, x[None]), expected[None], atol=2e-4)


@pytest.mark.points(6)
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


@pytest.mark.points(4)
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


@pytest.mark.points(4)
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


@pytest.mark.points(3)
def test_misuse(student, rng):
    """A num_heads that does not divide d_out and more than context_length tokens are refused."""
    with raises(student, *REFUSALS):
        student.MultiHeadAttention(7, 12, 6, 0.0, 5)
    for longest, n_tokens in ((6, 7), (1, 3)):
        module = student.MultiHeadAttention(7, 12, longest, 0.0, 3)
        with raises(student, *REFUSALS):
            output_of(module, rng.randn(2, n_tokens, 7, dtype=torch.float32))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, tokens or heads."""
    more = {"sentences": {"batch": (6, 13)}, "tokens": {"n_tokens": (12, 25)}}
    more["heads"] = {"heads": (8, 16)}
    assert_vectorised(student, functools.partial(called, student, rng), more)


@pytest.mark.points(0)
def test_x_stays(student, rng):
    """x is not written into, and a transposed view of it gives the same."""
    module = student.MultiHeadAttention(7, 12, 6, 0.0, 4).double()
    assert_takes_views(student, module, rng.randn(3, 5, 7))


@pytest.mark.points(0)
def test_device_and_dtype(student, rng):
    """Everything moves along to another device, and to bfloat16, also in training."""
    x = rng.randn(2, 6, 7, dtype=torch.float32)
    assert_moves(lambda: student.MultiHeadAttention(7, 12, 6, 0.5, 4), x)
    module = student.MultiHeadAttention(7, 12, 6, 0.4, 4).bfloat16().train()
    assert_dtype(output_of(module, x.bfloat16()), torch.bfloat16, "in training, the output")


@pytest.mark.points(0)
def test_every_length(student, rng):
    """One module takes inputs of any length up to context_length, in any order."""
    module = student.MultiHeadAttention(7, 12, 6, 0.0, 4).to(torch.float64)
    x = rng.randn(2, 6, 7)
    for n_tokens in (3, 6, 1, 5):
        first = output_of(module, x[:, :n_tokens])
        again = output_of(student_twin(student, module), x[:, :n_tokens])
        assert_close(first, again, f"the output for {n_tokens} tokens after other lengths")


def student_twin(student, module):
    """Return a fresh module with the same parameters."""
    twin = student.MultiHeadAttention(7, 12, 6, 0.0, 4).to(torch.float64)
    twin.load_state_dict({name: p.detach() for name, p in module.named_parameters()}, strict=False)
    return twin


@pytest.mark.points(0)
def test_weights_are_dropped_one_by_one(student, rng):
    """In training, each weight of each head is dropped on its own; the rest are scaled up."""
    module = student.MultiHeadAttention(4, 8, 4, 0.4, 2, causal=False).to(torch.float64).train()
    even = {f"W_{name}.weight": torch.zeros(8, 4) for name in ("query", "key")}
    both = {"W_value.weight": torch.eye(4).repeat(2, 1), "out_proj.weight": torch.eye(8)}
    no_bias = {"out_proj.bias": torch.zeros(8)}
    module.load_state_dict({**even, **both, **no_bias}, strict=False)
    # Even weights on tokens that are unit vectors: the outputs are the weights of both heads.
    x = torch.eye(4, dtype=torch.float64).expand(300, -1, -1)
    output = output_of(module, x)
    dropped = output.abs() < 0.1
    assert_close(output, (~dropped).double() * (0.25 / 0.6), "what is left of weights of 1/4")
    assert_dropped(dropped, 0.4, "weights")
