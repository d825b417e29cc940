"""Hidden tests, which decide the points.

A check of anything but the formula compares the student's answers with each other, so that one
mistake costs one check.
"""

import functools

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_depends,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_memory,
    assert_moves,
    assert_refused,
    assert_refused_in_both_modes,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_takes_views,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    output_of,
    twins,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_TOKENS, CONTEXT, D_IN, HEADS, KV_HEADS, D_HEAD = 2, 5, 7, 8, 6, 2, 4
D_OUT = HEADS * D_HEAD
NAMES = "W_query", "W_key", "W_value"
DRAWS, RATE = 200, 0.39  # sentences of which the weights are dropped


def weights_of(rng, *, d_head=D_HEAD, heads=HEADS, kv_heads=KV_HEADS, d_in=D_IN):
    """Return random parameters of the four layers by name."""
    rows = heads * d_head, kv_heads * d_head, kv_heads * d_head
    state = {f"{name}.weight": rng.randn(n, d_in) * 0.5 for name, n in zip(NAMES, rows)}
    d_out = heads * d_head
    out_proj = {"out_proj.weight": rng.randn(d_out, d_out) * 0.5, "out_proj.bias": rng.randn(d_out)}
    return {**state, **out_proj}


def made(code, state, *, context=CONTEXT, dropout=0.0, heads=HEADS, kv_heads=KV_HEADS):
    """Return a module in float64 and evaluation mode, with the parameters `state`.

    Biases that are not in `state` are 0: another check asks whether they should be there.
    """
    d_out, d_in = state["W_query.weight"].shape
    module = code.GroupedQueryAttention(d_in, d_out, context, dropout, heads, kv_heads)
    biases = {f"{name}.bias": torch.zeros(len(state[f"{name}.weight"])) for name in NAMES}
    return load_parameters(module, {**biases, **state})


def products_of(rng, *, batch=2, heads=6, kv_heads=2, n_queries=5, n_keys=7, d_head=4, d_value=3):
    """Return random queries, keys, weights and values, whose sizes all differ."""
    queries = rng.randn(batch, heads, n_queries, d_head)
    keys = rng.randn(batch, kv_heads, n_keys, d_head)
    weights = rng.randn(batch, heads, n_queries, n_keys)
    return queries, keys, weights, rng.randn(batch, kv_heads, n_keys, d_value)


CASES = (
    {},
    {"kv_heads": 3},
    {"kv_heads": 1},
    {"kv_heads": 6},
    {"batch": 4, "heads": 4, "n_queries": 4, "n_keys": 4, "d_head": 4, "d_value": 4},
    {"heads": 8, "kv_heads": 4, "n_queries": 1},
)


def shown(sizes):
    """Return the number of heads, and of those of keys and values, in words."""
    return f"{sizes[0]} heads and {sizes[1]} of keys and values"


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: the ban on torch's attention, even if other tests fail for other reasons.
    """
    queries, keys, weights, values = products_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN).float()
    make = functools.partial(student.GroupedQueryAttention, D_IN, D_OUT, CONTEXT, 0.0, HEADS, 2)
    assert_written_by_hand(
        student,
        lambda: student.grouped_scores(queries, keys),
        lambda: student.grouped_context(weights, values),
        lambda: output_of(make(), x),
    )


@pytest.mark.points(1)
def test_grouped_scores(student, reference, rng):
    """grouped_scores multiplies each query with the keys of its group, divided by sqrt(d_head)."""
    for case in CASES:
        queries, keys, *_ = products_of(rng, **case)
        for factor in (1.0, 1e6):
            right = reference.grouped_scores(queries * factor, keys)
            scores = in_float64(student.grouped_scores(queries * factor, keys))
            assert_close(scores, right, f"the scores of {shown((queries.shape[1], keys.shape[1]))}")


@pytest.mark.points(1)
def test_grouped_context(student, reference, rng):
    """grouped_context adds up the values of each head's group with the head's weights."""
    for case in CASES:
        *_, weights, values = products_of(rng, **case)
        for factor in (1.0, 1e6):
            right = reference.grouped_context(weights, values * factor)
            context = in_float64(student.grouped_context(weights, values * factor))
            heads = weights.shape[1], values.shape[1]
            assert_close(context, right, f"the context of {shown(heads)}")


@pytest.mark.points(1)
def test_class(student, reference, rng):
    """The class joins these products to causal attention; its parameters are those stated."""
    makes = student.GroupedQueryAttention, reference.GroupedQueryAttention
    cases = {(6, 2): 4, (6, 3): 4, (4, 1): 5, (3, 3): 4, (2, 1): 1}
    for (heads, kv_heads), d_head in cases.items():
        sizes = D_IN, heads * d_head, CONTEXT, 0.0, heads, kv_heads
        theirs, ours = twins(*makes, *sizes, rng=rng)
        x = rng.randn(BATCH, N_TOKENS, D_IN) * 0.7
        x[:, 2:4] = 0  # scores of 0 hide nothing
        right, what = output_of(ours, x), f"the output of {shown(sizes[4:])}"
        own = functools.partial(from_products, student, dict(ours.state_dict()), x, *sizes[4:])
        assert_right_or_own(output_of(theirs, x), right, own, what)
    # Large queries with small keys, and the reverse with large values.
    for factors in ((1e6, 1e-6, 1), (1e-6, 1e6, 1e6)):
        assert_right_for(student, reference, rng, factors)


def assert_right_for(student, reference, rng, factors):
    """Raise `Mismatch` unless the output is right for queries, keys and values of other scales."""
    state, x = weights_of(rng), rng.randn(BATCH, N_TOKENS, D_IN)
    for name, factor in zip(NAMES, factors):
        state[f"{name}.weight"] = state[f"{name}.weight"] * factor
    output, right = (output_of(made(code, state), x) for code in (student, reference))
    own = functools.partial(from_products, student, state, x, HEADS, KV_HEADS)
    scale = max(factors[2], 1)  # so that rounding does not count
    what = "the output for large numbers"
    assert_right_or_own(output / scale, right / scale, lambda: own() / scale, what)


def from_products(student, state, x, heads, kv_heads):
    """Return the output that follows from the student's two products."""
    queries, keys, values = (
        (x @ state[f"{name}.weight"].T).unflatten(-1, (count, -1)).transpose(1, 2)
        for name, count in zip(NAMES, (heads, kv_heads, kv_heads))
    )
    scores = in_float64(student.grouped_scores(queries, keys))
    n_tokens = x.shape[1]
    expect(scores.shape[-2:] == (n_tokens, n_tokens), "the output is not right")
    visible = torch.ones(n_tokens, n_tokens).tril().bool()
    weights = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
    context = in_float64(student.grouped_context(weights, values)).transpose(1, 2).flatten(2)
    return context @ state["out_proj.weight"].T + state["out_proj.bias"]


@pytest.mark.points(1)
def test_future_is_invisible(student, reference, rng):
    """Later tokens change no earlier output, whatever the scores are."""
    # Tokens that are nearly alike, whose scores are far below 0.
    state = weights_of(rng)
    keys = state["W_query.weight"].view(KV_HEADS, -1, D_HEAD, D_IN).mean(1).flatten(0, 1)
    state["W_key.weight"] = -keys
    state["W_query.weight"] = (
        keys.view(KV_HEADS, 1, D_HEAD, D_IN).expand(-1, HEADS // KV_HEADS, -1, -1).reshape(-1, D_IN)
    )
    module = made(student, state)
    for scale in (1.0, 1e3, 1e6):
        x = (rng.randn(BATCH, 1, D_IN) * 3 + rng.randn(BATCH, N_TOKENS, D_IN) * 0.3) * scale
        changed = x.clone()
        changed[:, 3:] += rng.randn(BATCH, N_TOKENS - 3, D_IN) * scale * 1e8
        before, after = (in_float64(output_of(module, each)) for each in (x, changed))
        expect(before.shape == (BATCH, N_TOKENS, D_OUT), "the output has another shape")
        expect(before.isfinite().all(), f"for an x of scale {scale:.0e} the output is not finite")
        expect((after != before).any(), "the output does not depend on x")
        assert_same(after[:, :3], before[:, :3], "the output for the tokens before a change")
    # Whoever computes another output has lost points for that already.
    state, x = weights_of(rng), rng.randn(BATCH, N_TOKENS, D_IN)
    output, right = (output_of(made(code, state), x) for code in (student, reference))
    if output.shape == right.shape and torch.allclose(output.double(), right, atol=1e-5):
        assert_right_for(student, reference, rng, (1e6, 1e6, 1))


@pytest.mark.points(1)
def test_memory(student, rng):
    """Keys and values are not copied to all heads, and no Python loop is needed."""
    # The keys take a sixth of what they would take if they were copied to all heads. Half of that
    # leaves room for a copy of the keys themselves, and for a few tables of scores.
    enough = BATCH * 12 * 400 * 32 * 4 / 2
    many = {"n_queries": 1, "n_keys": 400, "d_head": 32, "d_value": 32}
    for kv_heads in (2, 1):
        sizes = {"num_heads": 12, "num_kv_heads": kv_heads, "n_keys": 400, "d_head": 32}
        inputs = products_of(rng, heads=12, kv_heads=kv_heads, **many)
        queries, keys, weights, values = (each.float() for each in inputs)
        with torch.no_grad():
            for call in (
                functools.partial(student.grouped_scores, queries, keys),
                functools.partial(student.grouped_context, weights, values),
            ):
                rows = in_float64(call())[0, :, 0]
                assert_depends(rows if kv_heads > 1 else rows[0])  # heads of one key may be alike
                assert_memory(student, call, enough, sizes)

    def all_three(batch=2, n_queries=3, n_keys=5, heads=6, kv_heads=2):
        sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads}
        inputs = products_of(rng, n_queries=n_queries, n_keys=n_keys, **sizes)
        queries, keys, weights, values = inputs
        options = D_IN, heads * 2, n_queries + 3, 0.0, heads, kv_heads
        x = rng.randn(batch, n_queries, D_IN).float()
        return lambda: (
            student.grouped_scores(queries, keys),
            student.grouped_context(weights, values),
            output_of(student.GroupedQueryAttention(*options), x),
        )

    grown = {
        "sentences": {"batch": (7, 15)},
        "queries and tokens": {"n_queries": (13, 27)},
        "keys": {"n_keys": (11, 23)},
        "heads": {"heads": (12, 24)},
        "heads of keys": {"heads": (12, 24), "kv_heads": (6, 12)},
    }
    assert_vectorised(student, all_three, grown)


@pytest.mark.points(1)
def test_misuse(student, rng):
    """Heads that do not divide and more tokens than context_length are refused."""
    make = student.GroupedQueryAttention
    for d_out, heads, kv_heads in ((12, 6, 4), (12, 4, 3), (12, 2, 4), (20, 6, 2), (6, 4, 2)):
        call = functools.partial(make, D_IN, d_out, CONTEXT, 0.0, heads, kv_heads)
        name = f"GroupedQueryAttention({D_IN}, {d_out}, {CONTEXT}, 0.0, {heads}, {kv_heads})"
        assert_refused(student, call, name)
    for heads, kv_heads in ((6, 4), (4, 3), (2, 4), (3, 2)):
        # With 4 queries, the numbers of all heads could be dealt out evenly.
        queries, keys, weights, values = products_of(
            rng, heads=heads, kv_heads=kv_heads, n_queries=12
        )
        given = f"of {shown((heads, kv_heads))}"
        call = functools.partial(student.grouped_scores, queries, keys)
        assert_refused(student, call, f"grouped_scores {given}")
        call = functools.partial(student.grouped_context, weights, values)
        assert_refused(student, call, f"grouped_context {given}")
    for context in (CONTEXT, 1):
        module = make(D_IN, D_OUT, context, 0.0, HEADS, KV_HEADS)
        x = rng.randn(BATCH, 2 * context, D_IN).float()
        found = tuple(in_float64(output_of(module, x[:, :context].clone())).shape)
        wanted = (BATCH, context, D_OUT)
        expect(found == wanted, f"for a full context, the output has shape {found}, not {wanted}")
        for n_tokens in {context + 1, 2 * context}:
            given = f"{n_tokens} tokens at a context_length of {context}"
            assert_refused_in_both_modes(student, module, x[:, :n_tokens], given)


@pytest.mark.points(1)
def test_training(student, reference, rng):
    """In training, weights are dropped and nothing else; gradients reach inputs and parameters."""
    queries, keys, weights, values = products_of(rng)
    functions = student.grouped_scores, reference.grouped_scores
    assert_slopes(student, *functions, {"queries": queries, "keys": keys}, rng=rng)
    functions = student.grouped_context, reference.grouped_context
    assert_slopes(student, *functions, {"weights": weights, "values": values}, rng=rng)
    state = weights_of(rng)
    x = rng.randn(BATCH, N_TOKENS, D_IN)
    theirs, ours = (made(code, state, dropout=RATE) for code in (student, reference))
    assert_slopes(student, theirs, ours, {"x": x}, rng=rng)
    without = output_of(made(student, state), x)
    undropped = output_of(made(student, state).train(), x)
    assert_same(undropped, without, "the output in training with a dropout of 0")
    for module in (made(student, state, dropout=0.5), theirs.eval()):
        assert_same(output_of(module, x), without, "the output in eval mode")
    assert_weights_dropped(student, rng)
    assert_drawn_anew(made(student, state, dropout=RATE).train(), x.repeat(8, 1, 1))


def assert_weights_dropped(student, rng):
    """Raise `Mismatch` unless each weight is dropped on its own, and nothing else.

    The weights are computed from the output. All heads have the same values, so that it does not
    matter which of them belong to which head.
    """
    d_head = 6
    d_out = HEADS * d_head
    state = weights_of(rng, d_head=d_head)
    state["W_value.weight"] = state["W_value.weight"][:d_head].repeat(KV_HEADS, 1)
    state["out_proj.weight"] = torch.eye(d_out, dtype=torch.float64)
    state["out_proj.bias"] = torch.zeros(d_out, dtype=torch.float64)
    x = rng.randn(1, N_TOKENS, D_IN).repeat(DRAWS, 1, 1) * 0.3
    inverse = torch.linalg.pinv(x[0] @ state["W_value.weight"][:d_head].T)  # (d_head, n_tokens)

    def weights(rate, draws):
        module = made(student, state, dropout=rate).train()
        output = in_float64(output_of(module, x[:draws]))
        same_shape = output.shape == (draws, N_TOKENS, d_out)
        expect(same_shape, "the output in training has another shape")
        expect(output.isfinite().all(), "the output in training is not finite")
        return output.unflatten(-1, (HEADS, d_head)).transpose(1, 2) @ inverse

    plain, seen, nothing = weights(0.0, 2)[0], weights(RATE, DRAWS), weights(1.0, 1)
    dropped = seen.abs() < plain.abs() / 2
    expected = (plain / (1 - RATE)).masked_fill(dropped, 0.0)
    assert_close(seen, expected, "the weights in training (computed from the output)", atol=1e-4)
    assert_dropped(dropped[:, plain.abs() > 1e-3], RATE, "weights")
    assert_close(nothing, torch.zeros_like(nothing), "the output at rate 1, less the bias")


@pytest.mark.points(1)
def test_any_input(student, rng):
    """Sizes of 1, views, dtypes and other devices work, and no input is modified."""
    queries, keys, weights, values = products_of(rng)
    for name, inputs in (
        ("grouped_scores", (queries, keys)),
        ("grouped_context", (weights, values)),
    ):
        function = getattr(student, name)
        names = ("queries", "keys") if name == "grouped_scores" else ("weights", "values")
        every = in_float64(assert_unchanged(student, function, *inputs, names=names))
        assert_depends(every[0, 0])
        for axes in ((1, 2), (2, 3), (0, 1)):
            views = [each.transpose(*axes).contiguous().transpose(*axes) for each in inputs]
            what = f"what {name} returns for transposed views"
            assert_same(in_float64(function(*views)), every, what, shape=tuple(every.shape))
        alone = in_float64(function(*(each[1:] for each in inputs)))
        what = f"what {name} returns for one sentence"
        assert_same(alone, every[1:], what, shape=tuple(every[1:].shape))
        alone = in_float64(function(inputs[0][:, :, 2:3], inputs[1]))
        what = f"what {name} returns for one query"
        assert_same(alone, every[:, :, 2:3], what, shape=tuple(every[:, :, 2:3].shape))
        for dtype in (torch.float32, torch.bfloat16):
            low = function(*(each.to(dtype) for each in inputs))
            assert_dtype(low, dtype, f"what {name} returns for inputs in {dtype}")
    one = in_float64(student.grouped_scores(queries, keys[:, :, 3:4]))
    every = in_float64(student.grouped_scores(queries, keys))[..., 3:4]
    assert_same(one, every, "the scores of one key", shape=(2, 6, 5, 1))
    one = in_float64(student.grouped_context(weights, values[..., 1:2]))
    every = in_float64(student.grouped_context(weights, values))[..., 1:2]
    assert_same(one, every, "the context of values of size 1", shape=(2, 6, 5, 1))
    assert_any_x(student, rng)


def assert_any_x(student, rng):
    """Raise `Mismatch` if the class does not take some x, or a dtype, or a device."""
    state = weights_of(rng)
    module = made(student, state)
    x = rng.randn(3, CONTEXT, D_IN)
    output = in_float64(output_of(module, x))
    # No token attends to later ones, so that fewer tokens give the same.
    for item, n_tokens in ((slice(1, 2), CONTEXT), (slice(3), 1), (slice(0, 1), 3)):
        part, right = output_of(module, x[item, :n_tokens]), output[item, :n_tokens]
        what = f"the output for {len(right)} sentences of {n_tokens} tokens"
        assert_same(part, right, what, shape=tuple(right.shape))
    tiny = made(student, weights_of(rng, d_head=1, heads=1, kv_heads=1), heads=1, kv_heads=1)
    found = tuple(in_float64(output_of(tiny, x[:1, :1])).shape)
    expect(found == (1, 1, 1), f"the output for one head of size 1 has shape {found}")
    assert_takes_views(student, module, x)
    sizes = D_IN, D_OUT, CONTEXT, 0.5, HEADS, KV_HEADS
    assert_moves(functools.partial(student.GroupedQueryAttention, *sizes), x.float())
    for dtype in (torch.float32, torch.bfloat16):
        low = made(student, state, dropout=0.5).to(dtype)
        given = f"after module.to({dtype}), the output"
        assert_dtype(output_of(low.train(), x.to(dtype)), dtype, f"{given} in training mode")
        found = output_of(low.eval(), x.to(dtype))
        assert_dtype(found, dtype, given)
        assert_close(found.double(), output, f"the output in {dtype}", rtol=0.1, atol=0.1)
