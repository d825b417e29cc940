"""Public tests, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_memory,
    assert_vectorised,
    assert_weights_dropped,
    assert_written_by_hand,
    output_of,
)


def example():
    """Return the queries, keys and values of the statement's example."""
    queries = [[[0.0, 0.0], [2.0, 1.0]]]  # (batch, n_queries, d)
    keys = [[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]]  # (batch, n_keys, d)
    values = [[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]]  # (batch, n_keys, d_value)
    return [torch.tensor(numbers, dtype=torch.float64) for numbers in (queries, keys, values)]


def draw(rng, batch=2, n_queries=3, n_keys=4):
    """Return random queries, keys and values."""
    queries, keys = rng.randn(batch, n_queries, 3), rng.randn(batch, n_keys, 3)
    return queries, keys, rng.randn(batch, n_keys, 5)  # (batch, n_keys, d_value)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    queries, keys, values = example()
    assert_written_by_hand(
        student,
        lambda: student.distance_scores(queries, keys),
        lambda: student.scores_without_query_norm(queries, keys),
        lambda: student.DistanceAttention(0.0)(queries, keys, values),
    )


@pytest.mark.points(3)
@pytest.mark.needs("test_written_by_hand")
def test_distance_scores(student):
    """distance_scores gives minus half of the squared distances."""
    queries, keys, _ = example()
    expected = [[[-0.5, -2.0, -4.0], [-1.0, -2.5, -0.5]]]
    assert_close(student.distance_scores(queries, keys), torch.tensor(expected).double())


@pytest.mark.points(3)
@pytest.mark.needs("test_written_by_hand")
def test_without_query_norm(student):
    """scores_without_query_norm leaves |q|^2 / 2 out."""
    queries, keys, _ = example()
    expected = [[[-0.5, -2.0, -4.0], [1.5, 0.0, 2.0]]]
    assert_close(student.scores_without_query_norm(queries, keys), torch.tensor(expected).double())


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_example(student):
    """The output of the example comes out."""
    expected = torch.tensor([[[0.9183, 0.2985], [3.2187, 2.9482]]], dtype=torch.float64)
    attention = student.DistanceAttention(0.0)
    assert_close(output_of(attention, *example()), expected, atol=1e-4)


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_lengths(student):
    """With a length of 2, the third key is not attended to."""
    expected = torch.tensor([[[0.8176, 0.1824], [0.8176, 0.1824]]], dtype=torch.float64)
    output = output_of(student.DistanceAttention(0.0), *example(), torch.tensor([2]))
    assert_close(output, expected, atol=1e-4)


@pytest.mark.points(0)
@pytest.mark.needs("test_distance_scores", "test_without_query_norm", "test_example")
def test_two_batch_items(student, rng):
    """Each batch item gets what it gets alone."""
    queries, keys, values = (rng.randn(2, size, 4) for size in (3, 5, 5))
    functions = (student.distance_scores, student.scores_without_query_norm)
    attention = student.DistanceAttention(0.0)
    for each in (0, 1):
        for function in functions:
            alone = function(queries[each : each + 1], keys[each : each + 1])
            assert_close(function(queries, keys)[each : each + 1], alone)
        given = queries[each : each + 1], keys[each : each + 1], values[each : each + 1]
        output = output_of(attention, queries, keys, values)
        assert_close(output[each : each + 1], output_of(attention, *given))


@pytest.mark.points(0)
@pytest.mark.needs("test_distance_scores", "test_without_query_norm", "test_example")
def test_no_tensor_of_differences(student, rng):
    """The differences of all queries and keys never exist at once."""
    queries, keys, values = rng.randn(1, 31, 23), rng.randn(1, 37, 23), rng.randn(1, 37, 5)
    attention, sizes = student.DistanceAttention(0.0), {"n_queries": 31, "n_keys": 37, "d": 23}
    enough = 31 * 37 * 23 * 8 / 2  # bytes: half of the differences
    for call in (
        lambda: student.distance_scores(queries, keys),
        lambda: student.scores_without_query_norm(queries, keys),
        lambda: attention(queries, keys, values),
    ):
        assert_memory(student, call, enough, sizes)


@pytest.mark.points(0)
@pytest.mark.needs("test_distance_scores", "test_without_query_norm", "test_example")
def test_whole_tensors(student, rng):
    """No Python loop runs over batch items, queries or keys."""

    def called(**sizes):
        queries, keys, values = draw(rng, **sizes)
        return lambda: (
            student.distance_scores(queries, keys),
            student.scores_without_query_norm(queries, keys),
            output_of(student.DistanceAttention(0.0), queries, keys, values),
        )

    larger = {"batch items": {"batch": (7, 15)}, "queries": {"n_queries": (10, 23)}}
    assert_vectorised(student, called, {**larger, "keys": {"n_keys": (13, 27)}})


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_dropout(student, rng):
    """In training, weights are dropped; `attention_weights` holds them as they are before."""
    attention = student.DistanceAttention(0.4)
    assert_weights_dropped(attention, 0.4, *draw(rng, batch=1))


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_dtype(student, rng):
    """For inputs in bfloat16, scores and output are in bfloat16."""
    queries, keys, values = (tensor.to(torch.bfloat16) for tensor in draw(rng))
    for scores in (student.distance_scores, student.scores_without_query_norm):
        assert_dtype(scores(queries, keys), torch.bfloat16, "the scores for bfloat16")
    output = output_of(student.DistanceAttention(0.0), queries, keys, values)
    assert_dtype(output, torch.bfloat16, "the output for bfloat16")


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_nothing_is_remembered(student, rng):
    """A call with other numbers changes no later output."""
    attention = student.DistanceAttention(0.0)
    output_of(attention, *(rng.randn(1, *shape) for shape in ((2, 2), (3, 2), (3, 2))))
    expected = output_of(student.DistanceAttention(0.0), *example())
    assert_close(output_of(attention, *example()), expected, "the output of a second call")
