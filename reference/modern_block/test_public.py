"""Public tests of the modern block, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_refused,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    parameter_shapes,
)

pytestmark = pytest.mark.needs("test_written_by_hand")


def wave(*shape, start=0):
    """Return sines of start, start + 1, ... as in the statement."""
    return (torch.arange(torch.Size(shape).numel()) + start).double().sin().view(shape)


def example(student):
    """Return the block of the statement's example."""
    block = student.ModernBlock(16, 4, 2, 6, 16)
    shapes = sorted(parameter_shapes(block).items())
    state = {name: wave(*shape, start=100 * i) for i, (name, shape) in enumerate(shapes)}
    return load_parameters(block, state)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Attention and block are written by hand, without torch's own."""
    x = rng.randn(1, 5, 16).float()
    assert_written_by_hand(student, lambda: output_of(student.ModernBlock(16, 4, 2, 6, 16), x))


@pytest.mark.points(9)
def test_worked_example(student):
    """The worked example comes out: the last token, and a key in the cache."""
    output, (keys, _) = output_of(example(student), wave(1, 5, 16))
    wanted = torch.tensor([1.6969, 1.1661, 0.5663, -0.6799]).double()
    assert_close(output[0, 4, :4], wanted, "the last token", atol=1e-4)
    expect(tuple(keys.shape) == (1, 2, 5, 4), f"the cached keys are {tuple(keys.shape)}")
    wanted = torch.tensor([-0.1344, 0.2817, -0.6827, 1.0160]).double()
    assert_close(keys[0, 1, 1], wanted, "the key of token 1 in head 1", atol=1e-4)


@pytest.mark.points(5)
def test_parameters(student):
    """The block of the example has 1088 parameters, and no layer has a bias."""
    found = parameter_shapes(student.ModernBlock(16, 4, 2, 6, 16))
    count = sum(torch.Size(shape).numel() for shape in found.values())
    expect(count == 1088, f"there are {count} parameters: {', '.join(sorted(found))}")


@pytest.mark.points(9)
def test_chunks(student):
    """Chunks of three and two tokens give the outputs of all five, and the same cache."""
    block, x = example(student), wave(1, 5, 16)
    whole, cache = output_of(block, x)
    first, earlier = output_of(block, x[:, :3])
    second, later = output_of(block, x[:, 3:], earlier)
    assert_close(torch.cat([first, second], dim=1), whole, "the outputs of both chunks")
    for name, found, wanted in zip(("keys", "values"), later, cache):
        assert_close(found, wanted, f"the cached {name}")


@pytest.mark.points(4)
def test_refusals(student):
    """Too many tokens, an odd d_head and heads that do not divide are refused."""
    block, x = student.ModernBlock(16, 4, 2, 6, 4).double(), wave(1, 3, 16)
    _, cache = output_of(block, x)
    assert_refused(student, lambda: block(x, cache), "six tokens for a context of four")
    for sizes in ((6, 6, 4, 0.0, 2, 1), (6, 8, 4, 0.0, 4, 3)):
        call = lambda sizes=sizes: student.RotaryAttention(*sizes)  # noqa: E731
        assert_refused(student, call, f"RotaryAttention{sizes}")


@pytest.mark.points(4)
def test_training(student):
    """At a rate of 1 the block adds nothing in training; in eval mode nothing is dropped."""
    block, x = student.ModernBlock(16, 4, 2, 6, 16, 1.0).double(), wave(1, 5, 16)
    assert_close(output_of(block.train(), x)[0], x, "the output in training")
    expect((output_of(block.eval(), x)[0] != x).any(), "all is dropped in eval mode as well")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, tokens or heads."""

    def called(batch=2, n_tokens=3, heads=2):
        block = student.ModernBlock(24, heads, heads, 6, 40)
        return lambda: output_of(block, rng.randn(batch, n_tokens, 24).float())

    more = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    assert_vectorised(student, called, more | {"heads": {"heads": (6, 12)}})
