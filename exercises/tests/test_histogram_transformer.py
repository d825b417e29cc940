"""Public tests, which students can read and run: the example, and a short training."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    output_of,
    parameter_shapes,
    trained,
)

TOKENS = [[2, 0, 2, 1, 2, 0]]
COUNTS = [[3, 2, 3, 1, 3, 2]]


@pytest.mark.points(0)
def test_written_by_hand(student):
    """Attention is written by your own code."""
    tokens = torch.tensor(TOKENS)
    assert_written_by_hand(student, lambda: student.CountingTransformer(3, 6, 4)(tokens))


@pytest.mark.points(6)
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


@pytest.mark.points(13)
@pytest.mark.needs("test_written_by_hand")
def test_set_weights(student):
    """With weights by hand, the example is counted right."""
    model = student.CountingTransformer(3, 6, 4)
    student.set_weights(model)
    found = output_of(model, torch.tensor(TOKENS)).argmax(dim=-1)
    assert_close(found, torch.tensor(COUNTS), "the counts")


@pytest.mark.points(12)
@pytest.mark.needs("test_written_by_hand")
def test_train(student):
    """A few steps of training on one sequence learn its counts."""
    tokens, counts = torch.tensor(TOKENS), torch.tensor(COUNTS)
    model = student.CountingTransformer(3, 6, 8)
    student.train_counter(model, tokens, counts, 100)
    found = output_of(model, tokens).argmax(dim=-1)
    assert_close(found, counts, "the counts")


@pytest.mark.points(0)
@pytest.mark.needs("test_train")
def test_labels_and_reports(student):
    """Other labels than the counts are learned as well, and each step reports its mean loss."""
    tokens = torch.tensor(TOKENS)
    labels = 3 - tokens  # what no counting gives

    def train(model, report):
        student.train_counter(model, tokens, labels, 100, report=report)

    run = trained(student, "labels", lambda: student.CountingTransformer(3, 6, 16), train)
    found = output_of(run.module, tokens).argmax(dim=-1)
    assert_close(found, labels, "the labels that are learned")
    steps = [step for step, _ in run.losses]
    expect(steps == [*range(1, 101)], "the 100 steps are not reported as 1 to 100")
    loss = run.losses[0][1]
    expect(0.7 < loss < 7, f"the first loss is {loss:.3g}, which is no mean over the tokens")


@pytest.mark.points(0)
@pytest.mark.needs("test_parameters", "test_set_weights")
def test_whole_tensors(student, rng):
    """No Python loop runs over sequences or tokens."""

    def called(n=2, n_tokens=4):
        tokens = rng.randint(0, 3, n, n_tokens)
        return lambda: output_of(student.CountingTransformer(3, n_tokens + 1, 5), tokens)

    larger = {"sequences": {"n": (8, 17)}, "tokens": {"n_tokens": (11, 23)}}
    assert_vectorised(student, called, larger)


@pytest.mark.points(0)
@pytest.mark.needs("test_parameters", "test_set_weights")
def test_dtype(student):
    """A model in bfloat16 has logits in bfloat16, and weights by hand can be trained."""
    model = student.CountingTransformer(3, 6, 4).to(torch.bfloat16)
    assert_dtype(output_of(model, torch.tensor(TOKENS)), torch.bfloat16, "the logits in bfloat16")
    student.set_weights(model)
    frozen = [name for name, each in model.named_parameters() if not each.requires_grad]
    expect(not frozen, f"after set_weights, these can no longer be trained: {', '.join(frozen)}")
