"""Public tests of SwiGLU, which students can read and run."""

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
EXAMPLE = {
    "W_gate.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
    "W_up.weight": torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, -1.0]]),
    "W_down.weight": torch.tensor([[1.0, 1.0, 1.0], [0.0, -2.0, 1.0]]),
}


def called(student, rng, batch=2, n_tokens=3, d_model=4, d_ff=7):
    """Return a call of a network of its own on random tokens."""
    x = rng.randn(batch, n_tokens, d_model, dtype=torch.float32)
    return lambda: output_of(student.SwiGLU(d_model, d_ff), x)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """No function of torch computes the network."""
    assert_written_by_hand(student, called(student, rng))


@pytest.mark.points(2)
def test_worked_example(student):
    """The worked example comes out."""
    net = load_parameters(student.SwiGLU(2, 3), EXAMPLE, dtype=torch.float32)
    output = output_of(net, torch.tensor([[2.0, 1.0]]))
    assert_close(output, torch.tensor([[6.0814, -0.0665]]), "the output", atol=1e-4)


@pytest.mark.points(1)
def test_parameters(student):
    """The only parameters are the weights of three layers without biases."""
    found = {name: tuple(shape) for name, shape in parameter_shapes(student.SwiGLU(4, 7)).items()}
    wanted = {"W_gate.weight": (7, 4), "W_up.weight": (7, 4), "W_down.weight": (4, 7)}
    expect(found == wanted, f"the parameters are {found}, not {wanted}")


@pytest.mark.points(2)
def test_sizes(student):
    """The examples of hidden_size come out, and a multiple of 0 is refused."""
    for given, size in (((4096,), 11008), ((64, 8), 176), ((96, 8), 256), ((100, 32), 288)):
        found = student.hidden_size(*given)
        expect(found == size, f"hidden_size{given} is {found}, where {size} is expected")
    assert_refused(student, lambda: student.hidden_size(64, 0), "hidden_size(64, 0)")


@pytest.mark.points(1)
def test_dropout_in_training_only(student, rng):
    """At a rate of 1 all is dropped in training, and nothing in eval mode."""
    net, x = student.SwiGLU(4, 7, 1.0), rng.randn(2, 3, 4, dtype=torch.float32)
    assert_close(output_of(net.train(), x), torch.zeros(2, 3, 4), "the output in training")
    expect(output_of(net.eval(), x).abs().sum() > 0, "all is dropped in eval mode as well")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, tokens, features or hidden units."""
    more = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    more |= {"features": {"d_model": (12, 25)}, "hidden units": {"d_ff": (11, 23)}}
    assert_vectorised(student, lambda **sizes: called(student, rng, **sizes), more)
