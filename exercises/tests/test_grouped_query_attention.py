"""Public tests, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_memory,
    assert_moves,
    assert_refused,
    assert_vectorised,
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


@pytest.mark.points(5)
def test_grouped_scores(student):
    """The scores of the example come out."""
    queries, keys, _ = example()
    expected = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 2]]).double().view(1, 4, 1, 2)
    assert_close(student.grouped_scores(queries, keys), expected, "the scores")


@pytest.mark.points(5)
def test_grouped_context(student):
    """The weighted values of the example come out."""
    weights = torch.tensor(WEIGHTS).double().view(1, 4, 1, 2)
    expected = [[0.7311, 0.2689], [0.2689, 0.7311], [7.311, 2.689], [1.192, 8.808]]
    expected = torch.tensor(expected).double().view(1, 4, 1, 2)
    assert_close(student.grouped_context(weights, example()[2]), expected, "the context", atol=1e-4)


@pytest.mark.points(5)
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


@pytest.mark.points(2)
def test_refused(student, rng):
    """Heads that do not divide, and too many tokens, are refused."""
    make = student.GroupedQueryAttention
    assert_refused(student, lambda: make(7, 24, 5, 0.0, 6, 4), "4 heads of keys for 6 heads")
    assert_refused(student, lambda: make(7, 20, 5, 0.0, 6, 2), "6 heads for a d_out of 20")
    x = rng.randn(2, 6, 7).float()
    assert_refused(student, lambda: make(7, 24, 5, 0.0, 6, 2)(x), "6 tokens with a context of 5")


@pytest.mark.points(2)
@pytest.mark.needs("test_grouped_scores", "test_grouped_context")
def test_memory(student, rng):
    """Keys and values are not copied to all heads."""
    queries, keys = rng.randn(1, 12, 1, 32), rng.randn(1, 2, 400, 32)
    weights = rng.rand(1, 12, 1, 400)
    sizes = {"num_heads": 12, "num_kv_heads": 2, "n_keys": 400, "d_head": 32}
    enough = 12 * 400 * 32 * 8 / 2  # bytes: half of the keys, copied to all heads
    assert_memory(student, lambda: student.grouped_scores(queries, keys), enough, sizes)
    assert_memory(student, lambda: student.grouped_context(weights, keys), enough, sizes)


@pytest.mark.points(0)
@pytest.mark.needs("test_grouped_scores", "test_grouped_context")
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, heads, queries, keys or tokens."""

    def called(batch=3, heads=4, kv_heads=2, n_queries=2, n_keys=5):
        queries, weights = (
            rng.randn(batch, heads, n_queries, 6),
            rng.rand(batch, heads, n_queries, n_keys),
        )
        keys = rng.randn(batch, kv_heads, n_keys, 6)
        options = 7, 3 * heads, n_queries + 1, 0.0, heads, kv_heads
        x = rng.randn(batch, n_queries, 7).float()
        return lambda: (
            student.grouped_scores(queries, keys),
            student.grouped_context(weights, keys),
            output_of(student.GroupedQueryAttention(*options), x),
        )

    larger = {"sentences": {"batch": (8, 17)}, "queries and tokens": {"n_queries": (9, 19)}}
    larger |= {"keys": {"n_keys": (14, 29)}, "heads": {"heads": (16, 32)}}
    larger["heads of keys"] = {"heads": (16, 32), "kv_heads": (8, 16)}
    assert_vectorised(student, called, larger)


@pytest.mark.points(0)
@pytest.mark.needs("test_class")
def test_dropout(student):
    """In training, weights are dropped, each on its own, and nothing else is."""
    # Without scores, token i has the weight 1 / i for each of the tokens 1 to i.
    weights = torch.ones(3, 3).tril().double() / torch.arange(1, 4).view(3, 1)
    mixing = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]).double()
    zeros = {
        f"{name}.weight": torch.zeros(rows, 3) for name, rows in (("W_query", 12), ("W_key", 6))
    }
    value, out = mixing.repeat(2, 1), torch.eye(12)
    layers = {"W_value.weight": value, "out_proj.weight": out, "out_proj.bias": torch.zeros(12)}
    module = student.GroupedQueryAttention(3, 12, 3, 0.4, 4, 2)
    module = load_parameters(module, {**zeros, **layers})
    x = torch.eye(3).double().repeat(300, 1, 1)

    def seen():
        heads = output_of(module, x).view(300, 3, 4, 3).transpose(1, 2)
        return heads @ mixing.T.inverse()  # (300, num_heads, n_tokens, n_tokens)

    what = "the weights in {} (computed from the output)"
    assert_close(seen(), weights.expand(300, 4, 3, 3), what.format("eval mode"))
    module.train()
    in_training = seen()
    dropped = in_training.abs() < weights / 2
    left = (weights / 0.6).masked_fill(dropped, 0.0)
    assert_close(in_training, left, what.format("training"))
    assert_dropped(dropped[:, :, weights > 0], 0.4, "weights")


@pytest.mark.points(0)
@pytest.mark.needs("test_class")
def test_dtype_and_device(student, rng):
    """The class works in bfloat16 and on another device."""
    x = rng.randn(2, 4, 7).float()

    def make():
        return student.GroupedQueryAttention(7, 12, 5, 0.5, 6, 2)

    output = output_of(make().to(torch.bfloat16), x.to(torch.bfloat16))
    assert_dtype(output, torch.bfloat16, "the output for bfloat16")
    assert_moves(make, x)
