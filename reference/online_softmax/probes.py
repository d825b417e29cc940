"""Probes: calls whose answers tell one mistake from another."""

import torch

from grader.probing import ACCEPTED, Aspect, gradients, often, probe, written
from grader.testing import watched

AXES = ("batch item", "query", "feature")  # of an output, in the singular

RUNNING = Aspect("running", "what `online_softmax` returns")
GOING_ON = Aspect("going on", "what `online_softmax` makes of a state")
CAUSAL = Aspect("causal", "the values with `causal=True`")
TILES = Aspect("tiles", "tiles that do not divide the keys")
HIDDEN = Aspect("hidden", "rows with scores of -inf", is_edge=True)
MEMORY = Aspect("memory", "how much memory is needed at once")
LOOPS = Aspect("loops", "how many operations there are")


def draw(rng, *leading, n_queries=5, n_keys=6, d_key=8, d_value=7):
    """Return Q, K and V, whose sizes all differ."""
    Q = rng.randn(*leading, n_queries, d_key)  # (..., n_queries, d_key)
    K = rng.randn(*leading, n_keys, d_key)  # (..., n_keys, d_key)
    return Q, K, rng.randn(*leading, n_keys, d_value)  # (..., n_keys, d_value)


def chunks_of(rng, *rows, widths=(3, 1, 4), step=0.0):
    """Return chunks of scores, (*rows, n) each, which rise by `step`."""
    return [rng.randn(*rows, width) * 2 + step * i for i, width in enumerate(widths)]


def pair(state):
    """Return maximum and total by name."""
    return dict(zip(("maximum", "total"), state))


@probe("values")
def three_tiles(student, rng):
    """Six keys in tiles of two."""
    return student.tiled_attention(*draw(rng, 2), 2)


@probe("values")
def one_tile(student, rng):
    """Six keys in one tile."""
    return student.tiled_attention(*draw(rng, 2), 6)


@probe(TILES)
def short_last_tile(student, rng):
    """Six keys in tiles of four."""
    return student.tiled_attention(*draw(rng, 2), 4)


@probe(TILES)
def tile_too_large(student, rng):
    """Six keys in a tile of ten."""
    return student.tiled_attention(*draw(rng, 2), 10)


@probe(TILES)
def tiles_of_one(student, rng):
    """Six keys, each a tile."""
    return student.tiled_attention(*draw(rng, 2), 1)


@probe(CAUSAL)
def causal(student, rng):
    """With causal=True, seven keys in tiles of two."""
    return student.tiled_attention(*draw(rng, 2, n_queries=7, n_keys=7), 2, causal=True)


@probe(CAUSAL)
def causal_in_one_tile(student, rng):
    """With causal=True, five keys in one tile."""
    return student.tiled_attention(*draw(rng, 2, n_keys=5), 5, causal=True)


@probe(CAUSAL)
def causal_with_more_keys(student, rng):
    """With causal=True, more keys than queries, in tiles of three."""
    return student.tiled_attention(*draw(rng, 2, n_keys=8), 3, causal=True)


@probe(CAUSAL)
def causal_finite(student, rng):
    """Which outputs with causal=True are finite."""
    return student.tiled_attention(*draw(rng, 2, n_queries=7, n_keys=7), 2, True).isfinite()


@probe("square")
def square(student, rng):
    """As many queries as keys, all of the same size, in tiles of two."""
    return student.tiled_attention(*(rng.randn(4, 4, 4) for _ in range(3)), 2)


@probe("square")
def square_chunks(student, rng):
    """Chunks as wide as there are rows."""
    return pair(student.online_softmax([rng.randn(4, 4, 4) for _ in range(3)]))


@probe(RUNNING)
def running(student, rng):
    """Three chunks, of 20 rows."""
    return pair(student.online_softmax(chunks_of(rng, 4, 5)))


@probe(RUNNING)
def one_chunk(student, rng):
    """One chunk, of 20 rows."""
    return pair(student.online_softmax(chunks_of(rng, 4, 5, widths=(6,))))


@probe(RUNNING)
def rising(student, rng):
    """Chunks that rise by 5 each."""
    return pair(student.online_softmax(chunks_of(rng, 4, 5, step=5.0)))


@probe(RUNNING)
def falling(student, rng):
    """Chunks that fall by 5 each."""
    return pair(student.online_softmax(chunks_of(rng, 4, 5, step=-5.0)))


@probe(GOING_ON)
def two_calls(student, rng):
    """A call that goes on from another."""
    chunks = chunks_of(rng, 4, 5)
    return pair(student.online_softmax(chunks[1:], student.online_softmax(chunks[:1])))


@probe(GOING_ON)
def given_state(student, rng):
    """A state that no chunk of the test was read for."""
    state = rng.randn(4, 5) + 3, rng.rand(4, 5) + 1  # (4, 5) each
    return pair(student.online_softmax(chunks_of(rng, 4, 5), state))


@probe(HIDDEN)
def hidden(student, rng):
    """The total where some rows begin with -inf alone."""
    chunks = chunks_of(rng, 4, 5)
    chunks[0][:3] = -torch.inf
    maximum, total = student.online_softmax(chunks)
    return {"maximum": maximum, "total": total, "finite": total.isfinite()}


@probe(HIDDEN)
def all_hidden(student, rng):
    """Rows with nothing but -inf."""
    chunks = chunks_of(rng, 4, 5)
    for chunk in chunks:
        chunk[:3] = -torch.inf
    maximum, total = student.online_softmax(chunks)
    found = {"infinite": maximum == -torch.inf, "total": total, "finite": total.isfinite()}
    return found | {"maximum": maximum[3]}


@probe(HIDDEN)
def hidden_slopes(student, rng):
    """Which rows have finite gradients of the total where rows begin with, or have only, -inf."""
    first, second = rng.randn(4, 5, 3), rng.randn(4, 5, 2)
    first[:3] = second[2:] = -torch.inf

    def call(first, second):
        return student.online_softmax([first, second])[1]

    found = gradients(call, first, second)
    found = {name: value for name, value in found.items() if torch.is_tensor(value)}
    return {
        name: value.isfinite().view(4, 5, -1).all(dim=-1)  # which rows
        for name, value in found.items()
    }


@probe("leading axes")
def leading(student, rng):
    """Two leading axes, and none."""
    return {
        "two": student.tiled_attention(*draw(rng, 2, 3), 4),
        "none": student.tiled_attention(*draw(rng), 4),
    }


@probe("leading axes")
def leading_rows(student, rng):
    """Rows on one axis, and on three."""
    one, three = ((13,), (2, 3, 4))
    return [pair(student.online_softmax(chunks_of(rng, *rows))) for rows in (one, three)]


@probe("gradient")
def slopes(student, rng):
    """The gradients of Q, K and V."""
    return gradients(lambda *inputs: student.tiled_attention(*inputs, 4), *draw(rng, 2))


@probe("gradient")
def causal_slopes(student, rng):
    """The gradients of Q, K and V with causal=True."""
    return gradients(lambda *inputs: student.tiled_attention(*inputs, 4, True), *draw(rng, 2))


@probe("gradient")
def slopes_of_chunks(student, rng):
    """The gradients of three chunks, of which one comes in a second call."""

    def call(first, second, third):
        state = student.online_softmax([third], student.online_softmax([first, second]))
        unused = 0 * (first.sum() + second.sum() + third.sum())  # a gradient of 0, never none
        return state[0] + state[1].log() + unused

    found = gradients(call, *chunks_of(rng, 4, 5))
    # Which score of a row gets the nan depends on how the maximum is taken.
    return {
        name: value.where(value.isfinite().all(dim=-1, keepdim=True), torch.nan)
        if torch.is_tensor(value)
        else value
        for name, value in found.items()
    }


@probe("extreme scores")
def large(student, rng):
    """Q and K times 100, in tiles of two."""
    Q, K, V = draw(rng, 2)
    output = student.tiled_attention(Q * 100, K * 100, V, 2)
    return {"output": output, "finite": output.isfinite()}


@probe("extreme scores")
def large_causal(student, rng):
    """Q and K times 100, in tiles of two, with causal=True, for eight batch items."""
    Q, K, V = draw(rng, 8)
    output = student.tiled_attention(Q * 100, K * 100, V, 2, causal=True)
    return {"output": output, "finite": output.isfinite()}


@probe("extreme scores")
def tiles_apart(student, rng):
    """Keys whose scores rise, or fall, by thousands."""
    found = {}
    for name, factor in {"rising": 1e3, "falling": -1e3}.items():
        Q, K, V = draw(rng, 2)
        Q[..., 0], K[..., 0] = 2.0, torch.arange(6) * factor
        output = student.tiled_attention(Q, K, V, 2)
        found |= {name: output, f"{name} finite": output.isfinite()}
    return found


@probe("extreme scores")
def large_chunks(student, rng):
    """Whole numbers around 1e4 and -1e4, and chunks that rise or fall by 1e4."""
    found = {}
    for name, (level, step) in {
        **{"high": (1e4, 0.0), "low": (-1e4, 0.0)},
        **{"rising": (0.0, 1e4), "falling": (0.0, -1e4)},
    }.items():
        chunks = [chunk.round() + level for chunk in chunks_of(rng, 4, 5, step=step)]
        maximum, total = student.online_softmax(chunks)
        found |= {f"{name} maximum": maximum, name: total, f"{name} finite": total.isfinite()}
    return found


@probe("extreme scores")
def rows_apart(student, rng):
    """Rows that lie a thousand apart."""
    levels = torch.arange(20, dtype=torch.float64).view(4, 5, 1) * 1e3
    chunks = [chunk + levels for chunk in chunks_of(rng, 4, 5)]
    return pair(student.online_softmax(chunks))


@probe("single")
def single(student, rng):
    """One query, one key, one batch item, one number in a key."""
    sizes = {"n_queries": 1}, {"n_keys": 1}, {"d_key": 1}
    found = [student.tiled_attention(*draw(rng, 2, **each), 4) for each in sizes]
    return [*found, student.tiled_attention(*draw(rng, 1), 4)]


@probe("views")
def views(student, rng):
    """Transposed views."""
    inputs = [x.mT.contiguous().mT for x in draw(rng, 2)]
    chunks = [x.mT.contiguous().mT for x in chunks_of(rng, 4, 5)]
    return [student.tiled_attention(*inputs, 4), pair(student.online_softmax(chunks))]


@probe("dtype")
def dtypes(student, rng):
    """Inputs in float32."""
    inputs = [x.float() for x in draw(rng, 2)]
    chunks = [x.float() for x in chunks_of(rng, 4, 5)]
    return [student.tiled_attention(*inputs, 4), pair(student.online_softmax(chunks))]


@probe("dtype")
def kept_dtypes(student, rng):
    """Whether the results have the dtype of the inputs."""
    found = {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        output = student.tiled_attention(*(x.to(dtype) for x in draw(rng, 2)), 4)
        state = student.online_softmax([x.to(dtype) for x in chunks_of(rng, 4, 5)])
        found[f"{dtype}"] = often(*(float(each.dtype == dtype) for each in (output, *state)))
    return found


@probe("writes")
def arguments(student, rng):
    """Which numbers of Q, K and V have changed."""

    def call(*inputs):
        return student.tiled_attention(*inputs, 4)

    return changed(student, call, *draw(rng, 2))


@probe("writes")
def chunks_afterwards(student, rng):
    """Which numbers of the chunks have changed."""
    return changed(student, lambda *x: student.online_softmax(list(x)), *chunks_of(rng, 4, 5))


@probe("writes")
def state_afterwards(student, rng):
    """Which numbers of the state have changed."""

    def call(maximum, total, *chunks):
        return student.online_softmax(list(chunks), (maximum, total))

    state = rng.randn(4, 5), rng.rand(4, 5) + 1  # (4, 5) each
    return changed(student, call, *state, *chunks_of(rng, 4, 5))


def changed(student, call, *inputs):
    """Return which numbers of the inputs are others after a call."""
    before = [value.clone() for value in inputs]
    return [new != old for new, old in zip(written(student, call, *inputs), before)]


@probe("refusals")
def no_tile(student, rng):
    """A tile of 0 keys."""
    student.tiled_attention(*draw(rng, 2), 0)
    return ACCEPTED


@probe("refusals")
def negative_tile(student, rng):
    """A tile of -2 keys."""
    student.tiled_attention(*draw(rng, 2), -2)
    return ACCEPTED


@probe(MEMORY)
def memory(student, rng):
    """Which calls need more at once than a few chunks or tiles."""
    chunks = [rng.randn(8, 50) for _ in range(40)]
    Q, K, V = draw(rng, 1, n_queries=61, n_keys=127, d_value=3)
    calls = {
        "chunks": (lambda: student.online_softmax(chunks), 10 * 8 * 8 * 50),
        "tiles": (lambda: student.tiled_attention(Q, K, V, 4), 20 * 8 * 4 * 61),
        "causal": (lambda: student.tiled_attention(Q, K, V, 4, True), 20 * 8 * 4 * 61),
    }
    found = {}
    with torch.no_grad():
        for name, (call, most) in calls.items():
            with watched(student, memory=True) as seen:
                call()
            found[name] = often(float(seen.peak > most))
    return found


@probe(MEMORY)
def table(student, rng):
    """Whether a tensor is made that has a number for each query and key, in tiles of four."""
    Q, K, V = draw(rng, n_queries=31, n_keys=64, d_key=5, d_value=3)
    with torch.no_grad(), watched(student) as seen:
        student.tiled_attention(Q, K, V, 4)
    return often(float(seen.largest.elements >= 31 * 64))


@probe(MEMORY)
def growth(student, rng):
    """Whether memory grows faster than the length, causal or not."""
    Q, K, V = draw(rng, 1, n_queries=384, n_keys=384, d_value=3)
    found = {}
    with torch.no_grad():
        for causal in (False, True):
            peaks = []
            for n in (96, 384):
                with watched(student, memory=True) as seen:
                    student.tiled_attention(Q[:, :n], K[:, :n], V[:, :n], 16, causal)
                peaks.append(seen.peak)
            found[f"causal {causal}"] = often(float(peaks[1] > 5 * peaks[0]))
    return found


@probe(LOOPS)
def operations(student, rng):
    """Whether more operations run when rows, queries or keys in a tile grow."""
    found = {}
    for name, sizes in {"queries": {"n_queries": 15}, "keys": {"n_keys": 16}}.items():
        counts = [count(student, draw(rng, 2, **each)) for each in ({}, sizes)]
        found[name] = often(float(counts[1] > counts[0]))
    counts = [count(student, draw(rng, batch)) for batch in (2, 9)]
    found["batch items"] = often(float(counts[1] > counts[0]))
    counts = []
    for rows in (5, 15):
        chunks = chunks_of(rng, rows)
        with watched(student, kernels=False) as seen:
            student.online_softmax(chunks)
        counts.append(seen.operations)
    return found | {"rows": often(float(counts[1] > counts[0]))}


def count(student, inputs):
    """Return how many operations one tile takes."""
    with watched(student, kernels=False) as seen:
        student.tiled_attention(*inputs, 64, causal=True)
    return seen.operations


@probe("extreme scores")
def very_low(student, rng):
    """Whether scores of -1e35 count."""
    chunks = [torch.full((12, width), -1e35, dtype=torch.float64) for width in (3, 1)]
    return student.online_softmax(chunks)[1] > 0.5


@probe(MEMORY)
def narrow_chunks(student, rng):
    """Whether much more is needed at once than a few of 60 chunks of four scores a row."""
    chunks = [rng.randn(200, 4) for _ in range(60)]
    with torch.no_grad(), watched(student, memory=True) as seen:
        student.online_softmax(chunks)
    return often(float(seen.peak > 10 * 8 * 200 * 4))


@probe(MEMORY)
def wide_tile(student, rng):
    """Whether a tile that is far larger than n_keys needs memory for all of its places."""
    Q, K, V = draw(rng)
    with torch.no_grad(), watched(student, memory=True) as seen:
        student.tiled_attention(Q, K, V, 10**5)
    return often(float(seen.peak > 8 * 10**5))


@probe(HIDDEN)
def hidden_in_two_calls(student, rng):
    """Rows with only -inf in the state and in the chunks of the next call."""
    first, second = (chunks_of(rng, 4, 5, widths=(3,)) for _ in range(2))
    first[0][:3] = second[0][:3] = -torch.inf
    maximum, total = student.online_softmax(second, student.online_softmax(first))
    return {"infinite": maximum == -torch.inf, "total": total, "finite": total.isfinite()}


@probe("single")
def chunks_of_one(student, rng):
    """Chunks of a single score, for rows with an axis of size 1."""
    return pair(student.online_softmax(chunks_of(rng, 12, 1, widths=(1, 1, 1))))


@probe(CAUSAL)
def causal_in_heads(student, rng):
    """With causal=True, three heads of two sentences."""
    return student.tiled_attention(*draw(rng, 2, 3), 4, causal=True)


@probe("writes")
def state_without_gradients(student, rng):
    """Which numbers of the state have changed after a call without gradients."""

    def call(maximum, total, *chunks):
        return student.online_softmax(list(chunks), (maximum, total))

    state = rng.randn(4, 5), rng.rand(4, 5) + 1  # (4, 5) each
    with torch.no_grad():
        return changed(student, call, *state, *chunks_of(rng, 4, 5))


@probe(MEMORY)
def half_precision_chunks(student, rng):
    """Whether chunks in bfloat16 need more at once than a few of them in float32."""
    chunks = [rng.randn(8, 50, dtype=torch.bfloat16) for _ in range(40)]
    with torch.no_grad(), watched(student, memory=True) as seen:
        student.online_softmax(chunks)
    return often(float(seen.peak > 10 * 4 * 8 * 50))
