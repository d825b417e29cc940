"""Public tests, which students can read and run: the example, and a short training."""

import pytest
import torch

from grader.testing import assert_close, assert_written_by_hand, expect, output_of, parameter_shapes

TOKENS = [[2, 0, 2, 1, 2, 0]]
COUNTS = [[3, 2, 3, 1, 3, 2]]


@pytest.mark.points(0)
def test_written_by_hand(student):
    """Attention is written by your own code."""
    tokens = torch.tensor(TOKENS)
    assert_written_by_hand(student, lambda: student.CountingTransformer(3, 6, 4)(tokens))


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_parameters(student):
    """The parameters have the names and shapes of the task."""
    found = parameter_shapes(student.CountingTransformer(3, 6, 4))
    wanted = {
        **{"embedding.weight": (4, 4), "W_query.weight": (4, 4), "W_key.weight": (4, 4)},
        **{"W_value.weight": (4, 4), "linear1.weight": (16, 4), "linear1.bias": (16,)},
        **{"linear2.weight": (7, 16), "linear2.bias": (7,)},
    }
    expect(found == wanted, f"the parameters are {found}, where {wanted} are expected")


@pytest.mark.points(4)
@pytest.mark.needs("test_written_by_hand")
def test_set_weights(student):
    """With weights by hand, the example is counted right."""
    model = student.CountingTransformer(3, 6, 4)
    student.set_weights(model)
    found = output_of(model, torch.tensor(TOKENS)).argmax(dim=-1)
    assert_close(found, torch.tensor(COUNTS), "the counts")


@pytest.mark.points(4)
@pytest.mark.needs("test_written_by_hand")
def test_train(student):
    """A few steps of training on one sequence learn its counts."""
    tokens, counts = torch.tensor(TOKENS), torch.tensor(COUNTS)
    model = student.CountingTransformer(3, 6, 8)
    student.train_counter(model, tokens, counts, 100)
    found = output_of(model, tokens).argmax(dim=-1)
    assert_close(found, counts, "the counts")
