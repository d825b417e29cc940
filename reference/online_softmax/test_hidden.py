"""Hidden tests, which decide the points."""

import functools
import itertools

import pytest
import torch

from grader.errors import CheckFailure
from grader.testing import (
    assert_close,
    assert_depends,
    assert_dtype,
    assert_linear_memory,
    assert_memory,
    assert_refused,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    output_of,
)

BATCH, HEADS, N_QUERIES, N_KEYS, D_KEY, D_VALUE = 2, 3, 5, 7, 8, 6
WIDTHS = (3, 1, 4, 2)
CHUNK_LIMIT = 10  # chunks that may be held at once
TILE_LIMIT = 20  # tables of n_queries * tile scores that may be held at once


def draw_chunks(rng, *rows, widths=WIDTHS):
    """Return chunks of scores, (*rows, n) each."""
    return [rng.randn(*(rows or (2, 5)), width) * 2 for width in widths]


def draw(rng, *leading, n_queries=N_QUERIES, n_keys=N_KEYS, d_key=D_KEY, d_value=D_VALUE):
    """Return Q, K and V, whose sizes all differ."""
    Q = rng.randn(*leading, n_queries, d_key)  # (..., n_queries, d_key)
    K = rng.randn(*leading, n_keys, d_key)  # (..., n_keys, d_key)
    return Q, K, rng.randn(*leading, n_keys, d_value)  # (..., n_keys, d_value)


def two(state):
    """Return maximum and total in float64; fails if the result is no pair of tensors."""
    expect(isinstance(state, tuple | list) and len(state) == 2, "return a tuple of two tensors")
    return [in_float64(each) for each in state]


def joined(chunks):
    """Return the right maximum and total of chunks in which every row has a finite score."""
    scores = torch.cat(chunks, dim=-1)  # (..., sum of n)
    maximum = scores.amax(dim=-1)  # (...)
    return maximum, (scores - maximum.unsqueeze(-1)).exp().sum(dim=-1)


def assert_state(state, expected, what):
    """Compare maximum and total, of float64 at least."""
    for name, found, right in zip(("maximum", "total"), two(state), expected):
        assert_close(found, right, f"the {name} {what}")


def is_near(found, right):
    """Return whether a result is right: a tensor, or a pair of them."""
    try:
        pairs = zip(two(found), right) if isinstance(right, tuple) else [(in_float64(found), right)]
        for one, other in pairs:
            assert_close(one, other)
    except CheckFailure:
        return False
    return True


def in_parts(function, chunks, *cuts):
    """Return what calls give that go on from one another, with the chunks cut into lists."""
    state = None
    for first, last in zip((0, *cuts), (*cuts, len(chunks))):
        state = function(chunks[first:last], state)
    return state


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code.

    Guards: the calls that the exercise forbids.
    """
    assert_written_by_hand(
        student,
        lambda: student.online_softmax(draw_chunks(rng)),
        lambda: student.tiled_attention(*draw(rng, BATCH), 3),
        lambda: student.tiled_attention(*draw(rng, BATCH), 3, causal=True),
    )


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_running_total(student, rng):
    """online_softmax gives the maximum and the total of all chunks, in one call or in several."""
    rising = torch.tensor([0.0, 3, 6, 9], dtype=torch.float64)
    for steps in (rising * 0, rising, -rising):
        chunks = [chunk + step for chunk, step in zip(draw_chunks(rng), steps)]
        right = joined(chunks)
        assert_state(student.online_softmax(chunks), right, "of four chunks")
        assert_state(student.online_softmax(chunks[:1]), joined(chunks[:1]), "of one chunk")
        for cuts in ((1,), (2, 3), (1, 2, 3)):
            state = in_parts(student.online_softmax, chunks, *cuts)
            assert_state(state, right, f"after {len(cuts) + 1} calls")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_hidden_keys(student, reference, rng):
    """Scores of -inf count nothing; rows of them have the maximum -inf and the total 0.

    Whoever computes other totals of finite scores has lost points for that already.
    """
    chunks = draw_chunks(rng)
    states = student.online_softmax(chunks), in_parts(student.online_softmax, chunks, 1, 2)
    usual = all(is_near(state, joined(chunks)) for state in states)
    low, lower = ([chunk * 0 - size for chunk in chunks] for size in (1e4, 1e35))
    if is_near(student.online_softmax(low), joined(low)):  # however low scores are, they count
        total = two(student.online_softmax(lower))[1]
        expect((total > 0.5).all(), "the total of scores of -1e35 is 0, as if they were -inf")
    for chunk in chunks[:2]:
        chunk[0] = -torch.inf  # five rows begin with -inf alone
    chunks[2][:, 1] = chunks[3][:, 2] = -torch.inf
    for chunk in chunks:
        chunk[1, 3] = -torch.inf  # one row has nothing else
    for cuts in ((), (1, 2)):
        for count in (1, 2, 4):
            right = reference.online_softmax(chunks[:count])
            state = in_parts(
                student.online_softmax, chunks[:count], *(c for c in cuts if c < count)
            )
            for name, found, expected in zip(("maximum", "total"), two(state), right):
                assert_hidden(found, expected, f"the {name} of {count} chunks", usual)


def assert_hidden(found, right, what, usual):
    """Compare numbers that may be -inf; finite ones only if the `usual` numbers are right."""
    expect(found.shape == right.shape, f"{what} has another shape if some scores are -inf")
    expect(not found.isnan().any(), f"{what} is nan if some scores are -inf")
    expect(torch.equal(found == -torch.inf, right == -torch.inf), f"{what} is not -inf where it is")
    shown = right.isfinite() & (torch.tensor(usual) | (right == 0))
    assert_close(found[shown], right[shown], what)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_attention(student, reference, rng):
    """tiled_attention gives softmax(Q K^T / sqrt(d_key)) V, with tiles of any size."""
    inputs = draw(rng, BATCH)
    right = reference.tiled_attention(*inputs, N_KEYS)
    for tile in (7, 1, 2, 3, 4, 6, 8, 50):
        output = in_float64(output_of(student.tiled_attention, *inputs, tile))
        assert_close(output, right, f"the output for 7 keys with a tile of {tile}")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_causal(student, reference, rng):
    """With causal=True, query i attends to the keys 0 to i, whatever tile they are in."""
    for n_queries, n_keys in ((5, 5), (5, 7), (7, 4)):
        inputs = draw(rng, BATCH, n_queries=n_queries, n_keys=n_keys)
        right = reference.tiled_attention(*inputs, n_keys, causal=True)
        for tile in (1, 2, 3, n_keys, 50):
            output = in_float64(output_of(student.tiled_attention, *inputs, tile, causal=True))
            own = functools.partial(of_first_keys, student.tiled_attention, *inputs, tile)
            what = f"the output with causal=True and a tile of {tile}"
            assert_right_or_own(output, right, own, what)


def of_first_keys(attention, Q, K, V, tile):
    """Return what each query gets alone, with the keys up to its own only."""
    rows = [
        output_of(attention, Q[:, i : i + 1], K[:, : i + 1], V[:, : i + 1], tile)
        for i in range(Q.shape[1])
    ]
    return torch.cat([in_float64(row) for row in rows], dim=1)  # (batch, n_queries, d_value)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_large_scores(student, reference, rng):
    """Scores of any size give right numbers, rising or falling from one chunk or tile to the next.

    Whoever computes other numbers for small scores has lost points for that already.
    """
    chunks = [chunk.round() for chunk in draw_chunks(rng)]  # exact in every floating type
    inputs = draw(rng, BATCH)
    online = is_near(student.online_softmax(chunks), joined(chunks))
    right = [reference.tiled_attention(*inputs, 2, causal) for causal in (False, True)]
    tiled = [
        is_near(output_of(student.tiled_attention, *inputs, 2, causal), each)
        for causal, each in zip((False, True), right)
    ]
    expect(online or any(tiled), "neither function is right for small scores")
    steps = torch.arange(4, dtype=torch.float64) * 1e4
    for levels in (steps, -steps, steps * 0 + 1e4, steps * 0 - 1e4) if online else ():
        large = [chunk + level for chunk, level in zip(chunks, levels)]
        assert_state(student.online_softmax(large), joined(large), "of scores of up to 3e4")
    Q, K, V = inputs
    for causal in (causal for causal, usable in zip((False, True), tiled) if usable):
        for factor in (1e3, -1e3):
            # The first column of Q and K decides: scores rise, or fall, by thousands.
            keys = K.clone()
            keys[..., 0] = torch.arange(N_KEYS) * factor
            queries = Q.clone()
            queries[..., 0] = 2.0
            large = reference.tiled_attention(queries, keys, V, N_KEYS, causal)
            output = in_float64(output_of(student.tiled_attention, queries, keys, V, 2, causal))
            assert_close(output, large, "the output for scores of up to 6e3")
        for factor, size in ((100, 100), (-100, 100), (1e-3, 1e5)):
            scaled = Q * factor, K * size, V * size
            large = reference.tiled_attention(*scaled, N_KEYS, causal)
            output = in_float64(output_of(student.tiled_attention, *scaled, 2, causal))
            what = f"the output for Q times {factor:g}, and K and V times {size:g}"
            assert_close(output, large, what)


def log_of_sum(module, cut):
    """Return a function of chunks: maximum + log(total), after two calls."""

    def call(*chunks):
        state = in_parts(module.online_softmax, list(chunks), cut)
        return state[0] + state[1].log()

    return call


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_gradients(student, reference, rng):
    """Gradients reach Q, K, V and all chunks, and are finite where scores are -inf."""
    chunks = draw_chunks(rng, 3)
    inputs = {f"chunk {i}": chunk for i, chunk in enumerate(chunks)}
    assert_slopes(student, log_of_sum(student, 2), log_of_sum(reference, 2), inputs, rng=rng)
    for causal in (False, True):

        def call(Q, K, V, module, causal=causal):
            return module.tiled_attention(Q, K, V, 2, causal)

        programs = [functools.partial(call, module=module) for module in (student, reference)]
        names = dict(zip("QKV", draw(rng, BATCH)))
        assert_slopes(student, *programs, names, rng=rng)
    chunk = chunks[0].clone()
    chunk[1] = chunk[2, 1] = -torch.inf
    leaf = chunk.requires_grad_()
    state = student.online_softmax([leaf])
    if two(student.online_softmax([chunk.detach()]))[1].isfinite().all():
        state[1].sum().backward()
        finite = leaf.grad is not None and leaf.grad.isfinite().all()
        expect(finite, "the gradient of total is not finite where scores are -inf")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_any_input(student, reference, rng):
    """Leading axes, sizes of one, views, dtypes work; no argument is changed; tile 0 is refused."""
    for call in (functools.partial(check_chunks, rng=rng), functools.partial(check_tiles, rng=rng)):
        call(student, reference)


def check_chunks(student, reference, rng):
    """Check what online_softmax takes."""
    for rows in ((), (4,), (1,), (2, 1), (3, 1, 2), (2, 3, 4)):
        chunks = [rng.randn(*rows, width) for width in WIDTHS]
        own = [two(student.online_softmax([c.reshape(-1, c.shape[-1]) for c in chunks]))]
        for name, found, right, flat in zip(
            ("maximum", "total"), two(student.online_softmax(chunks)), joined(chunks), *own
        ):
            what = f"the {name} of chunks {(*rows, 'n')}"
            assert_right_or_own(found, right, lambda x=flat, s=rows: x.reshape(s), what)
    chunks, names = draw_chunks(rng), [f"chunks[{i}]" for i in range(len(WIDTHS))]
    two(student.online_softmax(chunks[1:]))  # of which the first has one score

    def packed(*given):
        return student.online_softmax(list(given))

    own = two(assert_unchanged(student, packed, *chunks, names=names))
    views = [x.mT.contiguous().mT for x in chunks]
    for found, plain in zip(two(packed(*views)), own):
        assert_same(found, plain, "what online_softmax returns for transposed views", shape=(2, 5))
    state = student.online_softmax(chunks[:2])

    def going_on(maximum, total, *given):
        return student.online_softmax(list(given), (maximum, total))

    names = ["state[0]", "state[1]", *names[2:]]
    assert_unchanged(student, going_on, *two(state), *chunks[2:], names=names)
    with torch.no_grad():
        assert_unchanged(student, going_on, *two(state), *chunks[2:], names=names)
    for dtype in (torch.float32, torch.bfloat16):
        low = [chunk.to(dtype) for chunk in chunks]
        first = student.online_softmax(low[:2])
        for state in (first, student.online_softmax(low[2:], first)):
            two(state)
            for name, found in zip(("maximum", "total"), state):
                assert_dtype(found, dtype, f"the {name} of chunks in {dtype}")


def check_tiles(student, reference, rng):
    """Check what tiled_attention takes."""
    attention = student.tiled_attention
    for leading, causal in itertools.product(((), (1,), (BATCH, HEADS)), (False, True)):
        inputs = draw(rng, *leading)
        output = in_float64(output_of(attention, *inputs, 3, causal))
        right = reference.tiled_attention(*inputs, 3, causal)
        items = [x.reshape(-1, *x.shape[-2:]) for x in inputs]

        def each(items=items, shape=right.shape, causal=causal):
            return in_float64(output_of(attention, *items, 3, causal)).reshape(shape)

        what = f"the output for leading axes {leading} and causal={causal}"
        assert_right_or_own(output, right, each, what)
    Q, K, V = inputs = draw(rng, BATCH)
    names = ["Q", "K", "V"]
    every = assert_unchanged(
        student, lambda Q, K, V: attention(Q, K, V, 3, causal=True), *inputs, names=names
    )
    every = in_float64(assert_unchanged(student, lambda *x: attention(*x, 3), *inputs, names=names))
    assert_depends(every[:, 0])
    views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    again = in_float64(output_of(attention, *views, 3))
    assert_same(again, every, "the output for transposed views", shape=(BATCH, N_QUERIES, D_VALUE))
    for sizes in ({"n_queries": 1}, {"n_keys": 1}, {"d_key": 1}, {"d_value": 1}):
        one = draw(rng, BATCH, **sizes)
        output = in_float64(output_of(attention, *one, 3))
        right = reference.tiled_attention(*one, 3)

        def twice(one=one):  # the same as an item of a larger batch
            return in_float64(output_of(attention, *(torch.cat([x, x]) for x in one), 3))[:BATCH]

        assert_right_or_own(output, right, twice, f"the output with {sizes}")
    for dtype in (torch.float32, torch.bfloat16):
        for causal in (False, True):
            output = output_of(attention, *(x.to(dtype) for x in inputs), 3, causal)
            assert_dtype(output, dtype, f"the output for inputs in {dtype}")
    for tile in (0, -1, -2):
        shown = f"tiled_attention(Q, K, V, tile={tile})"
        assert_refused(student, lambda tile=tile: attention(Q, K, V, tile), shown)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_memory(student, rng):
    """Memory grows with the length, not its square, and loops run over chunks and tiles only."""
    chunks = [rng.randn(8, 50) for _ in range(40)]
    size = 8 * chunks[0].numel()  # bytes of a chunk
    Q, K, V = draw(rng, 1, n_queries=384, n_keys=384, d_value=3)
    attention = student.tiled_attention
    with torch.no_grad():
        assert_depends(two(student.online_softmax(chunks[:2]))[0].unsqueeze(-1))
        sizes = {"rows": 8, "n": 50}
        assert_memory(student, lambda: student.online_softmax(chunks), CHUNK_LIMIT * size, sizes)
        low = [chunk.bfloat16() for chunk in chunks]  # which code may turn to float32, one by one
        limit = CHUNK_LIMIT * size / 2
        assert_memory(student, lambda: student.online_softmax(low), limit, sizes)
        narrow = [rng.randn(200, 4) for _ in range(60)]
        size = 8 * narrow[0].numel()
        sizes = {"rows": 200, "n": 4}
        assert_memory(student, lambda: student.online_softmax(narrow), CHUNK_LIMIT * size, sizes)
        few = [x[:, :9] for x in (Q, K, V)]
        sizes = {"n_queries": 9, "n_keys": 9, "tile": 10**5}
        assert_memory(student, lambda: attention(*few, 10**5), 8 * 10**5, sizes)
        for causal in (False, True):
            assert_depends(in_float64(attention(Q[:, :9], K[:, :9], V[:, :9], 2, causal))[0])

            def of_length(n, causal=causal):
                return attention(Q[:, :n], K[:, :n], V[:, :n], 16, causal)

            assert_linear_memory(student, of_length, 96, "queries and keys")

            def in_small_tiles(causal=causal):
                return attention(Q[:, :61], K[:, :127], V[:, :127], 4, causal)

            sizes = {"n_queries": 61, "n_keys": 127, "tile": 4}
            assert_memory(student, in_small_tiles, TILE_LIMIT * 8 * 61 * 4, sizes)
        assert_no_loops(student, rng)


def assert_no_loops(student, rng):
    """Raise `Mismatch` if more operations run when any axis but the number of tiles grows."""

    def online(rows=(2, 5), widths=WIDTHS):
        chunks = draw_chunks(rng, *rows, widths=widths)
        return lambda: student.online_softmax(chunks)

    grown = {"rows": {"rows": ((2, 15), (2, 31))}, "batch items": {"rows": ((9, 5), (19, 5))}}
    grown["scores in a chunk"] = {"widths": ((13, 11, 14, 12), (27, 23, 29, 25))}
    assert_vectorised(student, online, grown)

    def tiled(batch=BATCH, heads=HEADS, **sizes):
        inputs = draw(rng, batch, heads, **sizes)
        return lambda: student.tiled_attention(*inputs, 64, causal=True)

    grown = {"batch items": {"batch": (9, 19)}, "heads": {"heads": (11, 23)}}
    larger = {"n_queries": (15, 31), "n_keys": (16, 33), "d_key": (14, 29), "d_value": (17, 35)}
    grown |= {name: {name: pair} for name, pair in larger.items()}
    assert_vectorised(student, tiled, grown)
