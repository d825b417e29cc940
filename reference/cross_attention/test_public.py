"""Public tests of cross-attention, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_refused,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

X = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]], dtype=torch.float64)
CONTEXT = torch.tensor([[[2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [5.0, 5.0]]], dtype=torch.float64)


def example(student, **options):
    """Return the statement's module, with identity matrices, and an out_proj bias of zeros."""
    names = "W_query", "W_key", "W_value", "out_proj"
    state = {f"{name}.weight": torch.eye(2) for name in names} | {"out_proj.bias": torch.zeros(2)}
    return load_parameters(student.CrossAttention(2, 2, 2, 0.0, 1, **options), state)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    assert_written_by_hand(student, lambda: output_of(example(student), X, CONTEXT))


@pytest.mark.points(7)
def test_context(student):
    """The worked example with a context, whose last token is hidden and may hold anything."""
    wanted = torch.tensor([[[1.4359, 0.4240], [0.7967, 0.8022], [1.2033, 0.5989]]]).double()
    mask = torch.tensor([[True, True, True, False]])
    for last in (5.0, torch.nan):
        context = torch.cat([CONTEXT[:, :3], torch.full((1, 1, 2), last).double()], dim=1)
        assert_close(output_of(example(student), X, context, mask), wanted, atol=1e-4)


@pytest.mark.points(6)
def test_causal(student):
    """The worked example with causal=True, whose first token has no key; a context is refused."""
    module, wanted = example(student, causal=True), [[[0.0, 0.0], [0.0, 1.0], [0.6698, 1.0]]]
    output = output_of(module, X, None, torch.tensor([[False, True, True]]))
    assert_close(output, torch.tensor(wanted).double(), atol=1e-4)
    assert_refused(student, lambda: output_of(module, X, CONTEXT), "a context with causal=True")


@pytest.mark.points(6)
def test_parts(student):
    """Both blocks have the parts of the statement, and no others."""
    both = {"feed_forward", "norm1", "norm2"}
    for name, wanted in (
        ("EncoderBlock", both | {"attention"}),
        ("DecoderBlock", both | {"self_attention", "cross_attention", "norm3"}),
    ):
        state = getattr(student, name)(6, 3, 5, 0.0).state_dict()
        found = {each.partition(".")[0] for each in state}
        expect(found == wanted, f"{name} has the parts {', '.join(sorted(found))}")


@pytest.mark.points(6)
def test_decoder(student, rng):
    """No token of a decoder depends on later ones; each depends on all of memory that is real."""
    decoder = student.DecoderBlock(6, 3, 5, 0.4).to(torch.float64).eval()
    x, memory, mask = rng.randn(1, 4, 6), rng.randn(1, 5, 6), torch.tensor([[1, 1, 0, 1, 1]]).bool()
    output = output_of(decoder, x, memory, None, mask)
    after = output_of(decoder, torch.cat([x[:, :3], x[:, 3:] + 1], dim=1), memory, None, mask)
    assert_close(after[:, :3], output[:, :3], "the outputs before a token that has changed")
    for place in range(5):
        other = memory.clone()
        other[:, place] += torch.arange(6)
        differs = (output_of(decoder, x, other, None, mask) - output).abs() > 1e-9
        seen = bool(differs.any(-1).all())
        expect(seen == (place != 2), f"whether every token sees token {place} of memory: {seen}")
