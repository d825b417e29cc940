"""Public tests, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_linear_memory,
    assert_memory,
    assert_refused,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    output_of,
)

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


@pytest.mark.points(8)
@pytest.mark.needs("test_written_by_hand")
def test_one_call(student):
    """The chunks of the example give its maximum and its total."""
    for step in (1, 2, 3):
        assert_state(student.online_softmax(in_chunks()[:step]), step)


@pytest.mark.points(4)
@pytest.mark.needs("test_written_by_hand")
def test_going_on(student):
    """A call goes on from what an earlier one returned."""
    first = student.online_softmax(in_chunks()[:1])
    assert_state(student.online_softmax(in_chunks()[1:], first), 3)


@pytest.mark.points(11)
@pytest.mark.needs("test_written_by_hand")
def test_example(student):
    """The output of the example comes out, with tiles of any size."""
    rows = [[0.9841, 1.2761], [4.7128, 4.6712], [2.7657, 2.7657]]
    for tile in (1, 2, 3, 4):
        output = output_of(student.tiled_attention, *example(), tile)
        what = f"the output with a tile of {tile}"
        assert_close(output, torch.tensor(rows).double(), what, atol=1e-4)


@pytest.mark.points(8)
@pytest.mark.needs("test_written_by_hand")
def test_causal(student):
    """With causal=True, no query attends to a later key."""
    rows = [[1.0, 0.0], [0.8044, 0.1956], [2.7657, 2.7657]]
    for tile in (1, 2, 3):
        output = output_of(student.tiled_attention, *example(), tile, causal=True)
        what = f"the output with a tile of {tile}"
        assert_close(output, torch.tensor(rows).double(), what, atol=1e-4)


@pytest.mark.points(0)
@pytest.mark.needs("test_example")
def test_refused_tiles(student):
    """A tile below 1, such as 0 or -2, is refused with a ValueError."""
    for tile in (0, -2):
        shown = f"tiled_attention(Q, K, V, tile={tile})"
        assert_refused(student, lambda tile=tile: student.tiled_attention(*example(), tile), shown)


@pytest.mark.points(0)
@pytest.mark.needs("test_one_call", "test_example", "test_causal")
def test_whole_tensors(student, rng):
    """Python loops run over chunks and tiles only."""

    def called(batch=3, n_queries=4, n_keys=5):
        chunks = [rng.randn(batch, n_queries, n_keys) for _ in range(2)]
        Q, K = rng.randn(batch, n_queries, 6), rng.randn(batch, n_keys, 6)
        return lambda: (
            student.online_softmax(chunks),
            student.tiled_attention(Q, K, K, 32),
            student.tiled_attention(Q, K, K, 32, causal=True),
        )

    larger = {"batch items": {"batch": (8, 17)}, "rows": {"n_queries": (13, 27)}}
    assert_vectorised(student, called, {**larger, "keys in a tile": {"n_keys": (14, 29)}})


@pytest.mark.points(0)
@pytest.mark.needs("test_one_call", "test_example", "test_causal")
def test_memory(student, rng):
    """No more is held at once than a few chunks, and no table of all scores."""
    chunks = [rng.randn(6, 40) for _ in range(50)]
    enough = 12 * 6 * 40 * 8  # bytes of a dozen chunks
    assert_memory(student, lambda: student.online_softmax(chunks), enough, {"rows": 6, "n": 40})
    Q, K = rng.randn(400, 5), rng.randn(400, 5)
    for causal in (False, True):

        def call(n, causal=causal):
            return output_of(student.tiled_attention, Q[:n], K[:n], K[:n], 10, causal)

        assert_linear_memory(student, call, 100, "queries and keys")


@pytest.mark.points(0)
@pytest.mark.needs("test_one_call", "test_example")
def test_dtype(student, rng):
    """For inputs in bfloat16, maximum, total and output are in bfloat16."""
    chunks = [rng.randn(3, n).to(torch.bfloat16) for n in (4, 2)]
    state = student.online_softmax(chunks)
    for name, found in zip(("maximum", "total"), state):
        assert_dtype(found, torch.bfloat16, f"the {name} for bfloat16")
    Q, K = (rng.randn(n, 4).to(torch.bfloat16) for n in (3, 5))
    for causal in (False, True):
        output = student.tiled_attention(Q, K, K, 2, causal)
        assert_dtype(output, torch.bfloat16, f"the output for bfloat16 and {causal=}")
