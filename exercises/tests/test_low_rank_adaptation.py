"""Public tests of low-rank adaptation, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_refused,
    assert_vectorised,
    expect,
    load_parameters,
    output_of,
)

STATE = {
    "linear.weight": torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
    "linear.bias": torch.zeros(2),
    "A": torch.tensor([[1.0, 0.0, -1.0]]),
    "B": torch.tensor([[2.0], [1.0]]),
}
X = torch.tensor([[1.0, 1.0, 2.0]], dtype=torch.float64)


def layer(student, dropout=0.0):
    """Return the layer of the worked example: head is a linear layer of three inputs."""
    linear = student.make_model(3, 5, 2).head
    return load_parameters(student.LowRankLinear(linear, 1, 4.0, dropout), STATE)


@pytest.mark.points(5)
def test_worked_example(student):
    """The worked example: rank 1 and alpha 4."""
    assert_close(output_of(layer(student), X), torch.tensor([[1.0, 17.0]]).double())


@pytest.mark.points(4)
def test_merged(student):
    """A merged layer has the same output, also if it is merged twice."""
    made = layer(student)
    for _ in range(2):
        made.merge()
        merged = torch.tensor([[9.0, 2.0, -5.0], [8.0, 5.0, 2.0]]).double()
        assert_close(made.state_dict()["linear.weight"], merged, "the merged weight")
        assert_close(output_of(made, X), torch.tensor([[1.0, 17.0]]).double())
    made.unmerge()
    assert_close(made.state_dict()["linear.weight"], STATE["linear.weight"].double(), "the weight")


@pytest.mark.points(3)
def test_only_a_and_b_are_trained(student):
    """A and B are trained, the linear layer is not; B is zeros at first, and A is not."""
    made = student.LowRankLinear(student.make_model(3, 5, 2).head, 2, 1.0)
    trained = {name: tuple(p.shape) for name, p in made.named_parameters() if p.requires_grad}
    expect(trained == {"A": (2, 3), "B": (2, 2)}, f"trained are {trained}")
    state = made.state_dict()
    expect(bool((state["A"] != 0).all() and (state["B"] == 0).all()), "A or B starts wrongly")


@pytest.mark.points(3)
def test_adapt(student):
    """Both layers called up are adapted, and nothing else is trained."""
    model = student.make_model(3, 5, 2)
    count = student.adapt(model, ["up"], 2, 1.0)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    wanted = {f"{part}.up.{name}" for part in ("first", "second") for name in "AB"}
    expect(trained == wanted, f"trained are {trained}, where {wanted} are expected")
    expect(count == 2 * 2 * (3 + 5), f"adapt returns {count}, where 32 is expected")


@pytest.mark.points(2)
def test_refusals(student):
    """A rank of 0 and a name of no layer are refused."""
    linear = student.make_model(3, 5, 2).head
    assert_refused(student, lambda: student.LowRankLinear(linear, 0, 1.0), "a rank of 0")
    model = student.make_model(3, 5, 2)
    assert_refused(student, lambda: student.adapt(model, ["left"], 1, 1.0), "the name left")


@pytest.mark.points(0)
def test_dropout(student):
    """At a rate of 1, all of the change is dropped in training, and nothing of the linear layer."""
    made = layer(student, 1.0)
    assert_close(output_of(made.train(), X), torch.tensor([[9.0, 21.0]]).double())
    assert_close(output_of(made.eval(), X), torch.tensor([[1.0, 17.0]]).double())


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over batch or tokens."""

    def called(batch=2, n_tokens=3):
        x = rng.randn(batch, n_tokens, 3)
        made = layer(student)
        return lambda: output_of(made, x)

    more = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    assert_vectorised(student, called, more)
