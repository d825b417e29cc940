"""Public tests, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_linear_memory,
    assert_moves,
    assert_refused,
    assert_vectorised,
    assert_written_by_hand,
    load_parameters,
    output_of,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

X = [[1.0, 0.0, 2.0, 0.0], [0.0, 2.0, 1.0, 1.0], [1.0, 1.0, 0.0, 2.0]]
OUTPUT = [[1.0, 0.0, 2.0, 0.0], [0.0558, 1.8884, 1.5, 0.5], [0.5989, 1.2033, 0.2775, 1.7225]]


def example(student):
    """Return the module and the three tokens of the statement's example, (1, 3, 4)."""
    names = "W_query", "W_key", "W_value", "out_proj"
    state = {f"{name}.weight": torch.eye(4) for name in names}
    state["out_proj.bias"] = torch.zeros(4)
    module = load_parameters(student.CachedAttention(4, 4, 3, 0.0, 2), state)
    return module, torch.tensor([X], dtype=torch.float64)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    module, x = example(student)
    assert_written_by_hand(student, lambda: output_of(module, x))


@pytest.mark.points(5)
def test_whole_sequence(student):
    """The example's three tokens in one call, without a cache."""
    module, x = example(student)
    output, _ = output_of(module, x)
    assert_close(output, torch.tensor([OUTPUT]).double(), atol=1e-4)


@pytest.mark.points(7)
def test_chunks(student):
    """The example's tokens in chunks of two and one, of one and two, and one by one."""
    module, x = example(student)
    for chunks in ((2, 1), (1, 2), (1, 1, 1)):
        cache, outputs = None, []
        for chunk in x.split(chunks, dim=1):
            output, cache = output_of(module, chunk.clone(), cache)
            outputs.append(output)
        expected = torch.tensor([OUTPUT]).double()
        assert_close(
            torch.cat(outputs, dim=1), expected, f"the output in chunks of {chunks}", atol=1e-4
        )


@pytest.mark.points(5)
def test_cache(student):
    """The cache of the example has the keys and values of two tokens, then of three."""
    module, x = example(student)
    _, cache = output_of(module, x[:, :2].clone())
    expected = torch.tensor([X], dtype=torch.float64).view(1, 3, 2, 2).transpose(1, 2)
    for name, kept in zip(("keys", "values"), cache):
        assert_close(kept, expected[:, :, :2], f"the {name} in the cache")
    _, cache = output_of(module, x[:, 2:].clone(), cache)
    for name, kept in zip(("keys", "values"), cache):
        assert_close(kept, expected, f"the {name} in the cache after three tokens")


@pytest.mark.points(2)
def test_too_long(student):
    """A fourth token is one too many for a context of three."""
    module, x = example(student)
    _, cache = output_of(module, x)
    assert_refused(student, lambda: output_of(module, x[:, :1].clone(), cache), "a fourth token")


@pytest.mark.points(0)
@pytest.mark.needs("test_chunks")
def test_new_sequence(student, rng):
    """Without a cache a new sequence begins, and a cache can be used twice."""
    module, x = example(student)
    first, cache = output_of(module, x[:, :2].clone())
    again, _ = output_of(module, x[:, :2].clone())
    assert_close(again, first, "the output of a second call without a cache")
    one, _ = output_of(module, x[:, 2:].clone(), cache)
    output_of(module, rng.randn(1, 1, 4), cache)
    other, _ = output_of(module, x[:, 2:].clone(), cache)
    assert_close(other, one, "the output of a second call with the same cache")


def cache_of(rng, batch, heads, n_cached, d_head):
    """Return a cache of random keys and values."""
    return tuple(rng.randn(batch, heads, n_cached, d_head).float() for _ in range(2))


@pytest.mark.points(0)
@pytest.mark.needs("test_chunks", "test_cache")
def test_longer_cache(student, rng):
    """Sixteen tokens in chunks give the outputs and the cache of the whole sequence."""
    names = "W_query", "W_key", "W_value"
    state = {f"{name}.weight": rng.randn(8, 7) * 0.5 for name in names}
    module = load_parameters(student.CachedAttention(7, 8, 20, 0.0, 2), state)
    x = rng.randn(2, 16, 7)
    whole, right = output_of(module, x)
    for chunks in ((5, 4, 4, 1, 2), (12, 1, 1, 1, 1), (1,) * 16):
        cache, outputs = None, []
        for chunk in x.split(chunks, dim=1):
            output, cache = output_of(module, chunk.clone(), cache)
            outputs.append(output)
        what = f"{{}} after chunks of {', '.join(map(str, chunks))} tokens"
        assert_close(torch.cat(outputs, dim=1), whole, what.format("the output"))
        for name, kept, expected in zip(("keys", "values"), cache, right):
            assert_close(kept, expected, what.format(f"the {name} in the cache"))


@pytest.mark.points(0)
@pytest.mark.needs("test_chunks")
def test_whole_tensors(student, rng):
    """No Python loop runs over sentences, heads, tokens or cached tokens."""

    def called(batch=3, n_tokens=2, n_cached=5, heads=2):
        options = 7, 16, n_tokens + n_cached + 1, 0.0, heads
        x, cache = (
            rng.randn(batch, n_tokens, 7).float(),
            cache_of(rng, batch, heads, n_cached, 16 // heads),
        )

        def call():
            module = student.CachedAttention(*options)
            return output_of(module, x), output_of(module, x, cache)

        return call

    larger = {"sentences": {"batch": (8, 17)}, "tokens": {"n_tokens": (9, 19)}}
    larger |= {"cached tokens": {"n_cached": (15, 31)}, "heads": {"heads": (8, 16)}}
    assert_vectorised(student, called, larger)


@pytest.mark.points(0)
@pytest.mark.needs("test_chunks")
def test_memory(student, rng):
    """For one new token, the memory grows with the cached tokens, not with their square."""
    module, x = student.CachedAttention(7, 8, 1000, 0.0, 2), rng.randn(1, 1, 7).float()
    call = lambda n_cached: output_of(module, x, cache_of(rng, 1, 2, n_cached, 4))  # noqa: E731
    assert_linear_memory(student, call, 220, "cached tokens")


@pytest.mark.points(0)
@pytest.mark.needs("test_chunks")
def test_dropout(student):
    """In training, weights are dropped, each on its own, and nothing else is."""
    # Without scores, token i has the weight 1 / i for each of the tokens 1 to i.
    weights = torch.ones(3, 3).tril().double() / torch.arange(1, 4).view(3, 1)
    mixing = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]).double()
    state = {"W_query.weight": torch.zeros(6, 3), "W_key.weight": torch.zeros(6, 3)}
    state |= {"W_value.weight": mixing.repeat(2, 1), "out_proj.weight": torch.eye(6)}
    state["out_proj.bias"] = torch.zeros(6)
    module = load_parameters(student.CachedAttention(3, 6, 3, 0.4, 2), state)
    x = torch.eye(3).double().repeat(300, 1, 1)

    def seen():
        first, cache = output_of(module, x[:, :2].clone())
        last, _ = output_of(module, x[:, 2:].clone(), cache)
        heads = torch.cat([first, last], dim=1).view(300, 3, 2, 3).transpose(1, 2)
        return heads @ mixing.T.inverse()  # (300, num_heads, n_tokens, n_tokens)

    what = "the weights in {} (computed from the output)"
    assert_close(seen(), weights.expand(300, 2, 3, 3), what.format("eval mode"))
    module.train()
    in_training = seen()
    dropped = in_training.abs() < weights / 2
    left = (weights / 0.6).masked_fill(dropped, 0.0)
    assert_close(in_training, left, what.format("training"))
    assert_dropped(dropped[:, :, weights > 0], 0.4, "weights")


@pytest.mark.points(0)
@pytest.mark.needs("test_chunks")
def test_dtype_and_device(student, rng):
    """The module works in bfloat16 and on another device."""
    x = rng.randn(2, 4, 7).float()

    def make():
        return student.CachedAttention(7, 6, 5, 0.5, 2)

    output, cache = output_of(make().to(torch.bfloat16), x.to(torch.bfloat16))
    for name, found in zip(("output", "keys", "values"), (output, *cache)):
        assert_dtype(found, torch.bfloat16, f"for bfloat16, {name}")
    assert_moves(make, x)
    assert_moves(make, x[:, :1], tuple(each.float() for each in cache))
