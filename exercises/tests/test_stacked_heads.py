"""Public tests of stacked heads, which students can read and run."""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    raises,
)

pytestmark = pytest.mark.needs("test_by_hand")

TOKENS = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
AFTER_123 = {  # the layers of StackedHeads(3, 2, 6, 0.0, 2) after torch.manual_seed(123)
    "heads.0.W_query.weight": [[-0.235430, 0.019124, -0.286746], [0.217727, -0.491934, 0.423223]],
    "heads.0.W_key.weight": [[-0.419641, -0.459018, -0.364820], [0.261478, -0.213326, 0.216052]],
    "heads.0.W_value.weight": [[-0.490014, -0.350292, -0.211989], [-0.113461, -0.440439, 0.378044]],
    "heads.1.W_query.weight": [[-0.136157, 0.185322, 0.408269], [0.107564, 0.157877, 0.557292]],
    "heads.1.W_key.weight": [[-0.260390, 0.182876, -0.256872], [0.412603, 0.461105, -0.532301]],
    "heads.1.W_value.weight": [[0.492853, 0.275693, 0.251590], [0.237681, 0.479951, -0.076233]],
}
LAYERS = "W_query", "W_key", "W_value"


def worked(student):
    """Return the module of the worked example."""
    module = student.StackedHeads(3, 2, 6, 0.0, 2)
    state = {name: torch.tensor(rows) for name, rows in AFTER_123.items()}
    return load_parameters(module, state, dtype=torch.float32)


def called(student, rng, batch=2, n_tokens=4):
    """Return a call of a module of its own on random tokens."""
    x = rng.randn(batch, n_tokens, 7, dtype=torch.float32)
    return lambda: output_of(student.StackedHeads(7, 4, n_tokens + 1, 0.0, 3), x)


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the attention."""
    assert_written_by_hand(student, called(student, rng, 2, 4))


@pytest.mark.points(4)
def test_worked_example(student):
    """The worked example: the outputs for two sentences, after torch.manual_seed(123)."""
    output = output_of(worked(student), torch.stack([TOKENS, TOKENS.flip(0)]))
    expect(tuple(output.shape) == (2, 6, 4), f"the output has shape {tuple(output.shape)}")
    expected = [
        [-0.4519, 0.2216, 0.4772, 0.1063],
        [-0.5874, 0.0058, 0.5891, 0.3257],
        [-0.6300, -0.0632, 0.6202, 0.3860],
    ]
    assert_close(output[0, :3], torch.tensor(expected), "the output for tokens 1 to 3", atol=1e-4)


@pytest.mark.points(3)
def test_parts(student):
    """The parameters are those of num_heads causal attentions, each of them of size d_out."""
    module = student.StackedHeads(7, 4, 6, 0.0, 3)
    found = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    wanted = {f"heads.{head}.{name}.weight": (4, 7) for head in range(3) for name in LAYERS}
    expect(found == wanted, f"the parameters are {found}, where {wanted} are expected")


@pytest.mark.points(2)
def test_split_weights(student):
    """split_weights gives three matrices with the rows of all heads; biases are refused."""
    found = student.split_weights(worked(student))
    expect(len(found) == 3, f"split_weights gives {len(found)} tensors")
    for name, matrix in zip(LAYERS, found):
        rows = AFTER_123[f"heads.0.{name}.weight"] + AFTER_123[f"heads.1.{name}.weight"]
        assert_close(matrix.detach(), torch.tensor(rows), name, atol=1e-5)
    biased = student.StackedHeads(7, 4, 6, 0.0, 3, qkv_bias=True)
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        student.split_weights(biased)


@pytest.mark.points(1)
def test_too_many_tokens(student, rng):
    """Inputs longer than context_length are refused."""
    module = student.StackedHeads(7, 4, 6, 0.0, 3)
    output_of(module, rng.randn(2, 6, 7, dtype=torch.float32))
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        output_of(module, rng.randn(2, 7, 7, dtype=torch.float32))


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences or tokens."""
    more = {"sentences": {"batch": (6, 13)}, "tokens": {"n_tokens": (12, 25)}}
    assert_vectorised(student, functools.partial(called, student, rng), more)


@pytest.mark.points(0)
def test_heads_drop_their_weights(student):
    """In training, each head drops weights at the rate, and nothing else is dropped."""
    module = student.StackedHeads(1, 2, 4, 0.4, 3).to(torch.float64).train()
    state = {f"heads.{head}.W_value.weight": torch.ones(2, 1) for head in range(3)}
    module.load_state_dict(state, strict=False)
    # A single token has the weight 1, so a head gives its value or nothing.
    output = output_of(module, torch.ones(300, 1, 1, dtype=torch.float64))[:, 0]
    dropped = output.view(300, 3, 2).abs().amax(-1) < 0.1
    left = (~dropped).double().repeat_interleave(2, dim=1) / 0.6
    assert_close(output, left, "what is left of values of 1")
    assert_dropped(dropped, 0.4, "weights")
