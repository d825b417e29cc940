"""Public tests, which students can read and run: the worked example of the statement."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_memory,
    assert_refused,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    parameter_shapes,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

WEIGHTS = [[0.7311, 0.2689], [0.2689, 0.7311], [0.7311, 0.2689], [0.1192, 0.8808]]


def example():
    """Return the queries, keys and values of the statement's example."""
    queries = [[2.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 2.0, 0], [2.0, 2.0, 0, 0]]
    keys = [[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [1.0, 1.0, 0, 0]]
    values = [[1.0, 0], [0, 1.0], [10.0, 0], [0, 10.0]]
    shapes = (1, 4, 1, 4), (1, 2, 2, 4), (1, 2, 2, 2)
    tensors = (torch.tensor(numbers).double() for numbers in (queries, keys, values))
    return [tensor.view(shape) for tensor, shape in zip(tensors, shapes)]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code."""
    queries, keys, values = example()
    weights = torch.tensor(WEIGHTS).double().view(1, 4, 1, 2)
    x = rng.randn(2, 5, 7).float()
    assert_written_by_hand(
        student,
        lambda: student.grouped_scores(queries, keys),
        lambda: student.grouped_context(weights, values),
        lambda: student.GroupedQueryAttention(7, 24, 5, 0.0, 6, 2)(x),
    )


@pytest.mark.points(2)
def test_grouped_scores(student):
    """The scores of the example come out."""
    queries, keys, _ = example()
    expected = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 2]]).double().view(1, 4, 1, 2)
    assert_close(student.grouped_scores(queries, keys), expected, "the scores")


@pytest.mark.points(2)
def test_grouped_context(student):
    """The weighted values of the example come out."""
    weights = torch.tensor(WEIGHTS).double().view(1, 4, 1, 2)
    expected = [[0.7311, 0.2689], [0.2689, 0.7311], [7.311, 2.689], [1.192, 8.808]]
    expected = torch.tensor(expected).double().view(1, 4, 1, 2)
    assert_close(student.grouped_context(weights, example()[2]), expected, "the context", atol=1e-4)


@pytest.mark.points(2)
def test_class(student, rng):
    """With equal parameters in all heads of keys, multi-query attention gives the same."""
    shapes = parameter_shapes(student.GroupedQueryAttention(7, 24, 5, 0.0, 6, 2))
    layers = {"W_query": (24, 7), "W_key": (8, 7), "W_value": (8, 7), "out_proj": (24, 24)}
    wanted = {f"{name}.weight": shape for name, shape in layers.items()} | {"out_proj.bias": (24,)}
    expect(shapes == wanted, f"the parameters are {shapes}, not {wanted}")
    state = {name: rng.randn(*shape) for name, shape in wanted.items()}
    one = {**state, **{f"{name}.weight": rng.randn(4, 7) for name in ("W_key", "W_value")}}
    twice = {name: one[name].repeat(2, 1) for name in ("W_key.weight", "W_value.weight")}
    x = rng.randn(2, 5, 7)
    outputs = []
    for kv_heads, given in ((1, one), (2, {**one, **twice})):
        module = student.GroupedQueryAttention(7, 24, 5, 0.0, 6, kv_heads)
        outputs.append(output_of(load_parameters(module, given), x))
    assert_close(outputs[1], outputs[0], "the output with two equal heads of keys and values")


@pytest.mark.points(1)
def test_refused(student, rng):
    """Heads that do not divide, and too many tokens, are refused."""
    make = student.GroupedQueryAttention
    assert_refused(student, lambda: make(7, 24, 5, 0.0, 6, 4), "4 heads of keys for 6 heads")
    assert_refused(student, lambda: make(7, 20, 5, 0.0, 6, 2), "6 heads for a d_out of 20")
    x = rng.randn(2, 6, 7).float()
    assert_refused(student, lambda: make(7, 24, 5, 0.0, 6, 2)(x), "6 tokens with a context of 5")


@pytest.mark.points(1)
@pytest.mark.needs("test_grouped_scores", "test_grouped_context")
def test_memory(student, rng):
    """Keys and values are not copied to all heads."""
    queries, keys = rng.randn(1, 12, 1, 32), rng.randn(1, 2, 400, 32)
    weights = rng.rand(1, 12, 1, 400)
    sizes = {"num_heads": 12, "num_kv_heads": 2, "n_keys": 400, "d_head": 32}
    enough = 12 * 400 * 32 * 8 / 2  # bytes: half of the keys, copied to all heads
    assert_memory(student, lambda: student.grouped_scores(queries, keys), enough, sizes)
    assert_memory(student, lambda: student.grouped_context(weights, keys), enough, sizes)
