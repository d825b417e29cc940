"""Public tests of AdamW, which students can read and run."""

import pytest
import torch

from grader.testing import assert_close, assert_written_by_hand

pytestmark = pytest.mark.needs("test_by_hand")


def of_one(student, numbers, gradients, **options):
    """Return a parameter of some numbers after each step."""
    given = [[torch.tensor(each)] for each in gradients]
    history, _ = student.run_steps([{"params": [torch.tensor(numbers)]}], given, **options)
    return torch.stack([params[0] for params in history])


@pytest.mark.points(0)
def test_by_hand(student):
    """No optimizer, scheduler or clipping of torch does the work."""
    assert_written_by_hand(
        student,
        lambda: of_one(student, [1.0], [[0.5]]),
        lambda: student.learning_rate(3, 1.0, 2, 9),
        lambda: student.clipped([torch.ones(3)], 1.0),
    )


@pytest.mark.points(5)
def test_worked_example(student):
    """The worked example: three steps with weight decay."""
    found = of_one(student, [1.0], [[0.5], [-0.5], [0.1]], lr=0.1, weight_decay=0.5)
    assert_close(found, torch.tensor([[0.85], [0.8128], [0.7672]]), atol=1e-4)


@pytest.mark.points(4)
def test_first_step(student):
    """Without decay, the first step is lr, against the sign of the gradient, whatever its size."""
    found = of_one(student, [1.0, 1.0, 1.0], [[70.0, -0.003, 1.0]], lr=0.25, weight_decay=0.0)
    assert_close(found, torch.tensor([[0.75, 1.25, 0.75]]), atol=1e-4)


@pytest.mark.points(2)
def test_no_gradient(student):
    """A parameter without a gradient stays as it is."""
    params = [torch.tensor([2.0]), torch.tensor([3.0])]
    history, _ = student.run_steps([{"params": params}], [[torch.tensor([1.0]), None]])
    assert_close(history[0][1], torch.tensor([3.0]))


@pytest.mark.points(2)
def test_resumed(student):
    """Two steps are one step, and another one after loading the state."""
    params, gradients = [torch.tensor([2.0])], [[torch.tensor([1.0])], [torch.tensor([-3.0])]]
    whole, _ = student.run_steps([{"params": params}], gradients, lr=0.1)
    first, state = student.run_steps([{"params": params}], gradients[:1], lr=0.1)
    second, _ = student.run_steps([{"params": first[-1]}], gradients[1:], state, lr=0.1)
    assert_close(second[-1][0], whole[-1][0])


@pytest.mark.points(3)
def test_rates(student):
    """The rates of the worked example."""
    rates = [student.learning_rate(step, 1.0, 4, 12, 0.1) for step in (1, 4, 8, 10, 12)]
    assert_close(torch.tensor(rates), torch.tensor([0.25, 1.0, 0.55, 0.2318, 0.1]), atol=1e-4)


@pytest.mark.points(5)
def test_clipped(student):
    """Two gradients with a norm of 5, clipped to 1 and to 6."""
    gradients = [torch.tensor([3.0]), torch.tensor([4.0])]
    found, norm = student.clipped(gradients, 1.0)
    assert_close(torch.cat(found), torch.tensor([0.6, 0.8]), atol=1e-4)
    assert_close(torch.tensor(norm), torch.tensor(5.0))
    assert_close(torch.cat(student.clipped(gradients, 6.0)[0]), torch.tensor([3.0, 4.0]))
