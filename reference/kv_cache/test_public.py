"""Public tests, which students can read and run: the worked example of the statement."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_refused,
    assert_written_by_hand,
    load_parameters,
    output_of,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

X = [[1.0, 0.0, 2.0, 0.0], [0.0, 2.0, 1.0, 1.0], [1.0, 1.0, 0.0, 2.0]]
OUTPUT = [[1.0, 0.0, 2.0, 0.0], [0.0558, 1.8884, 1.5, 0.5], [0.5989, 1.2033, 0.2775, 1.7225]]


def example(student):
    """Return the module and the three tokens of the statement's example, (1, 3, 4)."""
    names = "W_query", "W_key", "W_value", "out_proj"
    state = {f"{name}.weight": torch.eye(4) for name in names}
    state["out_proj.bias"] = torch.zeros(4)
    module = load_parameters(student.CachedAttention(4, 4, 3, 0.0, 2), state)
    return module, torch.tensor([X], dtype=torch.float64)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    module, x = example(student)
    assert_written_by_hand(student, lambda: output_of(module, x))


@pytest.mark.points(2)
def test_whole_sequence(student):
    """The example's three tokens in one call, without a cache."""
    module, x = example(student)
    output, _ = output_of(module, x)
    assert_close(output, torch.tensor([OUTPUT]).double(), atol=1e-4)


@pytest.mark.points(3)
def test_chunks(student):
    """The example's tokens in chunks of two and one, of one and two, and one by one."""
    module, x = example(student)
    for chunks in ((2, 1), (1, 2), (1, 1, 1)):
        cache, outputs = None, []
        for chunk in x.split(chunks, dim=1):
            output, cache = output_of(module, chunk.clone(), cache)
            outputs.append(output)
        expected = torch.tensor([OUTPUT]).double()
        assert_close(
            torch.cat(outputs, dim=1), expected, f"the output in chunks of {chunks}", atol=1e-4
        )


@pytest.mark.points(2)
def test_cache(student):
    """The cache of the example has the keys and values of two tokens, then of three."""
    module, x = example(student)
    _, cache = output_of(module, x[:, :2].clone())
    expected = torch.tensor([X], dtype=torch.float64).view(1, 3, 2, 2).transpose(1, 2)
    for name, kept in zip(("keys", "values"), cache):
        assert_close(kept, expected[:, :, :2], f"the {name} in the cache")
    _, cache = output_of(module, x[:, 2:].clone(), cache)
    for name, kept in zip(("keys", "values"), cache):
        assert_close(kept, expected, f"the {name} in the cache after three tokens")


@pytest.mark.points(1)
def test_too_long(student):
    """A fourth token is one too many for a context of three."""
    module, x = example(student)
    _, cache = output_of(module, x)
    assert_refused(student, lambda: output_of(module, x[:, :1].clone(), cache), "a fourth token")


@pytest.mark.points(0)
@pytest.mark.needs("test_chunks")
def test_new_sequence(student, rng):
    """Without a cache a new sequence begins, and a cache can be used twice."""
    module, x = example(student)
    first, cache = output_of(module, x[:, :2].clone())
    again, _ = output_of(module, x[:, :2].clone())
    assert_close(again, first, "the output of a second call without a cache")
    one, _ = output_of(module, x[:, 2:].clone(), cache)
    output_of(module, rng.randn(1, 1, 4), cache)
    other, _ = output_of(module, x[:, 2:].clone(), cache)
    assert_close(other, one, "the output of a second call with the same cache")
