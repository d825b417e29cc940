"""Public tests, which students can read and run: the worked example of the statement."""

import pytest
import torch

from grader.testing import assert_close, assert_written_by_hand, expect, output_of

CHUNKS = [[[1.0, 3.0], [0.0, 1.0]], [[2.0, 5.0], [-1.0, -2.0]], [[4.0], [1.0]]]
MAXIMA = [[3.0, 1.0], [5.0, 1.0], [5.0, 1.0]]  # after each chunk
TOTALS = [[1.1353, 1.3679], [1.2034, 1.5530], [1.5713, 2.5530]]


def in_chunks():
    """Return the chunks of the statement's example, (2, n) each."""
    return [torch.tensor(rows, dtype=torch.float64) for rows in CHUNKS]


def example():
    """Return the queries, keys and values of the statement's example."""
    Q = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]  # (n_queries, d_key)
    K = [[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]]  # (n_keys, d_key)
    V = [[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]  # (n_keys, d_value)
    return [torch.tensor(rows, dtype=torch.float64) for rows in (Q, K, V)]


def assert_state(state, step):
    """Compare maximum and total with those of the example after `step` chunks."""
    expect(isinstance(state, tuple) and len(state) == 2, "return a tuple of maximum and total")
    assert_close(state[0], torch.tensor(MAXIMA[step - 1], dtype=torch.float64), "maximum")
    assert_close(state[1], torch.tensor(TOTALS[step - 1]).double(), "total", atol=1e-4)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    calls = [
        lambda causal=causal: student.tiled_attention(*example(), 2, causal) for causal in (0, 1)
    ]
    assert_written_by_hand(student, lambda: student.online_softmax(in_chunks()), *calls)


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_one_call(student):
    """The chunks of the example give its maximum and its total."""
    for step in (1, 2, 3):
        assert_state(student.online_softmax(in_chunks()[:step]), step)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_going_on(student):
    """A call goes on from what an earlier one returned."""
    first = student.online_softmax(in_chunks()[:1])
    assert_state(student.online_softmax(in_chunks()[1:], first), 3)


@pytest.mark.points(3)
@pytest.mark.needs("test_written_by_hand")
def test_example(student):
    """The output of the example comes out, with tiles of any size."""
    rows = [[0.9841, 1.2761], [4.7128, 4.6712], [2.7657, 2.7657]]
    for tile in (1, 2, 3, 4):
        output = output_of(student.tiled_attention, *example(), tile)
        what = f"the output with a tile of {tile}"
        assert_close(output, torch.tensor(rows).double(), what, atol=1e-4)


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_causal(student):
    """With causal=True, no query attends to a later key."""
    rows = [[1.0, 0.0], [0.8044, 0.1956], [2.7657, 2.7657]]
    for tile in (1, 2, 3):
        output = output_of(student.tiled_attention, *example(), tile, causal=True)
        what = f"the output with a tile of {tile}"
        assert_close(output, torch.tensor(rows).double(), what, atol=1e-4)
