"""The checks of online softmax and tiled attention, and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    gradient,
    gradients,
    often,
    output,
    refused,
    turned,
    watched,
    without_gradients,
    works_too,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")
RUNNING = Aspect("running", "what `online_softmax` returns")
GOING_ON = Aspect("going on", "what `online_softmax` makes of a state")
CAUSAL = Aspect("causal", "the values with `causal=True`")
TILES = Aspect("tiles", "tiles that do not divide the keys")
HIDDEN = Aspect("hidden", "rows with scores of -inf", is_edge=True)
MEMORY = Aspect("memory", "how much memory is needed at once")
LOOPS = Aspect("loops", "how many operations there are")
TILED = "tiled_attention"


def inputs(*leading, n_queries=5, n_keys=6, d_key=8, d_value=7, dtype=torch.float64):
    """Return the recipes of Q, K and V, whose sizes all differ."""
    shapes = (n_queries, d_key), (n_keys, d_key), (n_keys, d_value)
    return [drawn(*leading, *shape, dtype=dtype) for shape in shapes]


def draw(rng, *leading, **sizes):
    """Return Q, K and V."""
    return [make(rng) for make in inputs(*leading, **sizes)]


def chunks_of(rng, *rows, widths=(3, 1, 4), step=0.0):
    """Return chunks of scores, (*rows, n) each, which rise by `step`."""
    return [rng.randn(*(rows or (4, 5)), width) * 2 + step * i for i, width in enumerate(widths)]


def in_parts(student, chunks, *cuts):
    """Return what calls give that go on from one another, with the chunks cut into lists."""
    state = None
    for first, last in zip((0, *cuts), (*cuts, len(chunks))):
        state = student.online_softmax(chunks[first:last], state)
    return state


def pair(state):
    """Return maximum and total by name."""
    return dict(zip(("maximum", "total"), state))


def running(*rows, cuts=(), change=lambda chunk: chunk, **options):
    """Return the case of the maximum and the total of chunks, after the calls between the cuts."""

    def ask(student, rng):
        chunks = [change(chunk) for chunk in chunks_of(rng, *rows, **options)]
        return pair(in_parts(student, chunks, *cuts))

    return ask


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code."""
    assert_written_by_hand(
        student,
        lambda: student.online_softmax(chunks_of(rng)),
        lambda: student.tiled_attention(*draw(rng, 2), 3),
        lambda: student.tiled_attention(*draw(rng, 2), 3, causal=True),
    )


test_running_total = Check(
    "online_softmax gives the maximum and the total of all chunks, in one call or in several.",
    points=5,
    about=RUNNING,
)
total = test_running_total.case
FOUR = (3, 1, 4, 2)
total("Three chunks, of 20 rows.", running())
total("One chunk, of 20 rows.", running(widths=(6,)))
total("Chunks that rise by 5 each.", running(step=5.0))
total("Chunks that fall by 5 each.", running(step=-5.0))
total("Chunks as wide as there are rows.", running(4, 4, widths=(4, 4, 4)), about="square")
further = functools.partial(total, about=GOING_ON)
further("A call that goes on from another.", running(cuts=(1,)))
four_calls = functools.partial(running, 2, 5, widths=FOUR, cuts=(1, 2, 3))
further("Four calls with chunks that rise by 3 each.", four_calls(step=3.0), hidden=True)
further("Four calls with chunks that fall by 3 each.", four_calls(step=-3.0), hidden=True)


@further()
def given_state(student, rng):
    """A state that no chunk of the test was read for."""
    state = rng.randn(4, 5) + 3, rng.rand(4, 5) + 1  # (4, 5) each
    return pair(student.online_softmax(chunks_of(rng), state))


test_hidden_keys = Check(
    "Scores of -inf count nothing; rows of them have the maximum -inf and the total 0.",
    points=3,
    about=HIDDEN,
)
hidden = test_hidden_keys.case


def with_finite(state):
    """Return maximum and total, which numbers of the total are finite, and which maxima -inf."""
    high, total = state
    are_low = high == -torch.inf
    found = {"maximum": high.masked_fill(are_low, 0.0), "total": total, "infinite": are_low}
    return {**found, "finite": total.isfinite()}


def rows_of_hidden(*places, widths=(3, 1, 4), cuts=()):
    """Return a case: three of four groups of rows have nothing but -inf in the chunks `places`."""

    def ask(student, rng):
        chunks = chunks_of(rng, widths=widths)
        for place in places:
            chunks[place][:3] = -torch.inf
        return with_finite(in_parts(student, chunks, *cuts))

    return ask


hidden("Some rows begin with -inf alone.", rows_of_hidden(0))
hidden("Rows with nothing but -inf.", rows_of_hidden(0, 1, 2))
hidden("Rows with nothing but -inf, in two calls.", rows_of_hidden(0, 1, widths=(3, 3), cuts=(1,)))


@hidden(about="extreme scores")
def very_low(student, rng):
    """Whether scores of -1e35 count."""
    chunks = [torch.full((12, width), -1e35, dtype=torch.float64) for width in (3, 1)]
    return student.online_softmax(chunks)[1] > 0.5


@hidden(hidden=True)
def hidden_here_and_there(student, rng):
    """-inf here and there, in one to four chunks, and in one call or several."""
    found, chunks = [], chunks_of(rng, 2, 5, widths=FOUR)
    for chunk in chunks[:2]:
        chunk[0] = -torch.inf  # five rows begin with -inf alone
    chunks[2][:, 1] = chunks[3][:, 2] = -torch.inf
    for chunk in chunks:
        chunk[1, 3] = -torch.inf  # one row has nothing else
    for count, cuts in ((1, ()), (2, ()), (2, (1,)), (4, ()), (4, (1, 2))):
        found.append(with_finite(in_parts(student, chunks[:count], *cuts)))
    return found


test_attention = Check(
    "tiled_attention gives softmax(Q K^T / sqrt(d_key)) V, with tiles of any size.", points=4
)
attention = test_attention.case
attention("Six keys in tiles of two.", output(TILED, *inputs(2), 2))
attention("Six keys in one tile.", output(TILED, *inputs(2), 6))
square = output(TILED, *[drawn(4, 4, 4)] * 3, 2)
attention("As many queries as keys, all of the same size.", square, about="square")
for tile in (1, 4, 10):
    attention(f"Six keys in tiles of {tile}.", output(TILED, *inputs(2), tile), about=TILES)
for tile in (1, 2, 3, 5, 7, 50):
    given = inputs(3, n_keys=7, d_value=4)
    shown = f"Seven keys in tiles of {tile}."
    attention(shown, output(TILED, *given, tile), about=TILES, hidden=True)


test_causal = Check(
    "With causal=True, query i attends to the keys 0 to i, whatever tile they are in.",
    points=4,
    about=CAUSAL,
)
causal = test_causal.case


def masked(n_queries, n_keys, tile):
    """Return a case: the output for these sizes with causal=True."""
    return output(TILED, *inputs(2, n_queries=n_queries, n_keys=n_keys), tile, True)


for sizes in ((7, 7, 2), (5, 5, 5), (5, 8, 3)):
    causal("{} queries and {} keys in tiles of {}.".format(*sizes), masked(*sizes))
causal("5 queries and 7 keys in tiles of 1.", masked(5, 7, 1), hidden=True)
causal("5 queries and 7 keys in tiles of 50.", masked(5, 7, 50), hidden=True)
for tile in (1, 3, 50):  # a mask from the end may hide every key, so this tells nothing
    causal(f"7 queries, 4 keys, tiles of {tile}.", masked(7, 4, tile), tells=False, hidden=True)
causal("Three heads of two sentences.", output(TILED, *inputs(2, 3), 4, causal=True))


@causal
def causal_finite(student, rng):
    """Which outputs with causal=True are finite."""
    return student.tiled_attention(*draw(rng, 2, n_queries=7, n_keys=7), 2, True).isfinite()


test_large_scores = Check(
    "Scores of any size give right numbers, rising or falling from one chunk or tile to the next.",
    points=5,
    about="extreme scores",
)
large = test_large_scores.case


def spread(*scales, causal=False, batch=2, rising=0.0):
    """Return a case: the output where Q, K and V are scaled, and which numbers are finite.

    With `rising`, the scores of a key are by this much higher than those of the key before.
    """

    def ask(student, rng):
        Q, K, V = (x * scale for x, scale in zip(draw(rng, batch), scales))
        if rising:
            Q[..., 0], K[..., 0] = 2.0, torch.arange(6) * rising
        found = student.tiled_attention(Q, K, V, 2, causal)
        return {"output": found, "finite": found.isfinite()}

    return ask


large("Q and K times 100, in tiles of two.", spread(100, 100, 1))
large("Q and K times 100, with causal=True.", spread(100, 100, 1, causal=True, batch=8))
for name, factor in (("rise", 1e3), ("fall", -1e3)):
    large(f"Keys whose scores {name} by thousands.", spread(1, 1, 1, rising=factor))
upwards = spread(1, 1, 1, causal=True, rising=1e3)
large("Keys whose scores rise, with causal=True.", upwards, tells=False)
downwards = spread(1, 1, 1, causal=True, rising=-1e3)
large("Keys whose scores fall, with causal=True.", downwards, tells=False)
large(
    "Q and K times 100, without leading axes.",
    output(TILED, drawn(5, 8, times=100), drawn(6, 8, times=100), drawn(6, 7), 2),
    hidden=True,
)
large(
    "Whole numbers around 1e4, in three calls.",
    running(cuts=(1, 2), change=lambda chunk: chunk.round() + 1e4),
    hidden=True,
)
large("Large K and V.", spread(-100, 100, 100), tells=False, hidden=True)
large("Tiny Q, huge K and V.", spread(1e-3, 1e5, 1e5), tells=False, hidden=True)


@large
def large_chunks(student, rng):
    """Whole numbers around 1e4 and -1e4, and chunks that rise or fall by 1e4."""
    found = []
    for level, step in ((1e4, 0.0), (-1e4, 0.0), (0.0, 1e4), (0.0, -1e4)):
        chunks = [chunk.round() + level for chunk in chunks_of(rng, step=step)]
        maximum, total = student.online_softmax(chunks)
        found += [maximum, total, total.isfinite()]
    return found


@large
def rows_apart(student, rng):
    """Rows that lie a thousand apart."""
    levels = torch.arange(20, dtype=torch.float64).view(4, 5, 1) * 1e3
    return pair(student.online_softmax([chunk + levels for chunk in chunks_of(rng)]))


test_gradients = Check(
    "Gradients reach Q, K, V and all chunks, and are finite where scores are -inf.",
    points=3,
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of Q, K and V.", gradient(TILED, *inputs(2), 4))
slopes("The gradients of Q, K and V with causal=True.", gradient(TILED, *inputs(2), 4, True))
slopes(
    "The gradients of Q, K and V with two leading axes.",
    gradient(TILED, *inputs(2, 3), 4, True),
    hidden=True,
)
more = gradient(TILED, *inputs(2, n_queries=7), 2, True)
slopes("The gradients of Q, K and V, with more queries and tiles of two.", more, hidden=True)


@slopes
def slopes_of_chunks(student, rng):
    """The gradients of three chunks, of which one comes in a second call."""

    def call(*chunks):
        state = in_parts(student, list(chunks), 2)
        unused = 0 * sum(chunk.sum() for chunk in chunks)  # a gradient of 0, never none
        return state[0] + state[1].log() + unused

    found = gradients(call, *chunks_of(rng))
    # Which score of a row gets the nan depends on how the maximum is taken.
    return {
        name: value.where(value.isfinite().all(dim=-1, keepdim=True), torch.nan)
        if torch.is_tensor(value)
        else value
        for name, value in found.items()
    }


@slopes(about=HIDDEN)
def hidden_slopes(student, rng):
    """Which rows have finite gradients of the total where rows begin with, or have only, -inf."""
    first, second = rng.randn(4, 5, 3), rng.randn(4, 5, 2)
    first[:3] = second[2:] = -torch.inf
    found = gradients(lambda *chunks: student.online_softmax(list(chunks))[1], first, second)
    return {
        name: value.isfinite().view(4, 5, -1).all(dim=-1)  # which rows
        for name, value in found.items()
        if torch.is_tensor(value)
    }


test_any_input = Check(
    "Leading axes, sizes of one, views, dtypes work; no argument is changed; tile 0 is refused.",
    points=3,
)
usable = test_any_input.case
axes, single = (functools.partial(usable, about=each) for each in ("leading axes", "single"))
for rows in ((13,), (2, 3, 4)):
    axes(f"Rows of shape {rows}.", running(*rows))
single("Chunks of a single score.", running(12, 1, widths=(1, 1, 1)))
axes("Rows of shape (3, 1, 2).", running(3, 1, 2), hidden=True)
axes("Chunks without axes.", running(2, 3, change=lambda chunk: chunk[0, 0]), hidden=True)
axes("Tiles for no leading axes.", output(TILED, *inputs(), 4))
axes("Tiles for two leading axes.", output(TILED, *inputs(2, 3), 4))
axes("Tiles for three, with causal=True.", output(TILED, *inputs(2, 1, 3), 3, True), hidden=True)
axes("Tiles for none, with causal=True.", output(TILED, *inputs(), 3, True), hidden=True)
for size in ("n_queries", "n_keys", "d_key", "d_value"):
    single(f"{size} is 1.", output(TILED, *inputs(2, **{size: 1}), 4))
single("One batch item.", output(TILED, *inputs(1), 4))
usable("Q, K and V are transposed views.", output(TILED, *map(turned, inputs(2)), 4), about="views")


turn = lambda chunk: chunk.mT.contiguous().mT  # noqa: E731
usable("The chunks are transposed views.", running(change=turn), about="views")
usable("Chunks in float32.", running(change=torch.Tensor.float), about="dtype")
usable("Tiles in float32.", output(TILED, *inputs(2, dtype=torch.float32), 4), about="dtype")


@usable(about="dtype")
def kept_dtypes(student, rng):
    """Whether the results have the dtype of the inputs, with causal=True and a state as well."""
    found = {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        given, chunks = draw(rng, 2, dtype=dtype), [x.to(dtype) for x in chunks_of(rng)]
        outputs = [student.tiled_attention(*given, 4, causal) for causal in (False, True)]
        outputs += [*student.online_softmax(chunks), *in_parts(student, chunks, 2)]
        found[f"{dtype}"] = often(*(float(each.dtype == dtype) for each in outputs))
    return found


@usable(about="dtype")
def half_precision_works(student, rng):
    """Whether tiles and chunks work in bfloat16."""
    three, chunks = draw(rng, 2), chunks_of(rng)
    tiled, online = student.tiled_attention, student.online_softmax
    return [
        works_too(lambda: tiled(*three, 4), lambda: tiled(*(x.bfloat16() for x in three), 4)),
        works_too(lambda: online(chunks), lambda: online([x.bfloat16() for x in chunks])),
    ]


def with_list(n_first):
    """Return what makes `online_softmax` with tensors in place of the state and of the chunks."""
    return lambda student, rng: (
        lambda *given: student.online_softmax(list(given[n_first:]), given[:n_first] or None)
    )


writes = functools.partial(usable, about="writes")
CHUNKS = drawn(4, 5, 3), drawn(4, 5, 1), drawn(4, 5, 4)
STATE = drawn(4, 5), lambda rng: rng.rand(4, 5) + 1
writes("Which numbers of Q, K and V have changed.", changed(TILED, *inputs(2), 4))
writes("Which have changed with causal=True.", changed(TILED, *inputs(2), 4, True))
writes("Which numbers of the chunks have changed.", changed(with_list(0), *CHUNKS))
of_state = changed(with_list(2), *STATE, *CHUNKS)
writes("Which numbers of the state have changed.", of_state)
writes("Which have changed without gradients.", without_gradients(of_state))
writes("Which have changed with more axes.", changed(TILED, *inputs(2, 3), 4), hidden=True)
usable(
    "Views with more axes and causal=True.",
    output(TILED, *map(turned, inputs(2, 3)), 4, True),
    about="views",
    hidden=True,
)
usable("Views in two calls.", running(change=turn, cuts=(1,)), about="views", hidden=True)
for leading, causal_too in (((2, 3), False), ((2,), True)):
    usable(
        f"Tiles in bfloat16, with the leading axes {leading}.",
        output(TILED, *inputs(*leading, dtype=torch.bfloat16), 4, causal_too),
        about="dtype",
        within=(0.1, 0.1),
        hidden=True,
    )
for tile in (0, -1, -2):
    usable(f"A tile of {tile} keys.", refused(TILED, *inputs(2), tile), about="refusals")


test_memory = Check(
    "Memory grows with the length, not its square, and loops run over chunks and tiles only.",
    points=4,
    about=MEMORY,
)
memory = test_memory.case


def peak(student, call):
    """Return the most bytes that a call holds at once, without gradients."""
    with torch.no_grad(), watched(student, memory=True) as seen:
        call()
    return seen.peak


@memory
def more_than_a_few(student, rng):
    """Which calls need more at once than a few chunks or tiles."""
    chunks = [rng.randn(8, 50) for _ in range(40)]
    half = [chunk.bfloat16() for chunk in chunks]  # which code may turn to float32, one by one
    narrow = [rng.randn(200, 4) for _ in range(60)]
    Q, K, V = draw(rng, 1, n_queries=61, n_keys=127, d_value=3)
    few = draw(rng)
    calls = {
        "chunks": (lambda: student.online_softmax(chunks), 10 * 8 * 8 * 50),
        "half precision": (lambda: student.online_softmax(half), 10 * 4 * 8 * 50),
        "narrow chunks": (lambda: student.online_softmax(narrow), 10 * 8 * 200 * 4),
        "tiles": (lambda: student.tiled_attention(Q, K, V, 4), 20 * 8 * 4 * 61),
        "causal": (lambda: student.tiled_attention(Q, K, V, 4, True), 20 * 8 * 4 * 61),
        "wide tile": (lambda: student.tiled_attention(*few, 10**5), 8 * 10**5),
    }
    return {name: often(float(peak(student, call) > most)) for name, (call, most) in calls.items()}


@memory(tells=False, hidden=True)
def from_a_state(student, rng):
    """Whether a call that goes on from a state needs more at once than a few chunks."""
    chunks, state = [rng.randn(8, 50) for _ in range(40)], (rng.randn(8), rng.rand(8) + 1)
    return peak(student, lambda: student.online_softmax(chunks, state)) > 10 * 8 * 8 * 50


@memory(decides=False)
def table(student, rng):
    """Whether a tensor is made that has a number for each query and key, in tiles of four."""
    Q, K, V = draw(rng, n_queries=31, n_keys=64, d_key=5, d_value=3)
    with torch.no_grad(), watched(student) as seen:
        student.tiled_attention(Q, K, V, 4)
    return often(float(seen.largest.elements >= 31 * 64))


@memory
def growth(student, rng):
    """Whether memory grows faster than the length, causal or not."""
    given = draw(rng, 1, n_queries=384, n_keys=384, d_value=3)

    def peak_of(n, is_causal):
        Q, K, V = (x[:, :n] for x in given)
        return peak(student, lambda: student.tiled_attention(Q, K, V, 16, is_causal))

    return {
        f"causal {is_causal}": often(float(peak_of(384, is_causal) > 5 * peak_of(96, is_causal)))
        for is_causal in (False, True)
    }


@memory(about=LOOPS)
def operations(student, rng):
    """Whether more operations run when rows, queries or keys in a tile grow."""

    def count(call, *given, **options):
        with watched(student, kernels=False) as seen:
            call(*given, **options)
        return seen.operations

    def tiled(batch=2, **sizes):
        return count(student.tiled_attention, *draw(rng, batch, **sizes), 64, causal=True)

    rows = [count(student.online_softmax, chunks_of(rng, n)) for n in (5, 15)]
    grown = {"queries": tiled(n_queries=15), "keys": tiled(n_keys=16), "batch items": tiled(9)}
    found = {name: often(float(more > tiled())) for name, more in grown.items()}
    return {**found, "rows": often(float(rows[1] > rows[0]))}


@memory(about=LOOPS, tells=False, hidden=True)
def no_loops(student, rng):
    """No more operations run when any axis but the number of tiles grows."""

    def online(rows=(2, 5), widths=FOUR):
        chunks = chunks_of(rng, *rows, widths=widths)
        return lambda: (student.online_softmax(chunks), in_parts(student, chunks, 2))

    grown = {"rows": {"rows": ((2, 15), (2, 31))}, "batch items": {"rows": ((9, 5), (19, 5))}}
    grown["scores in a chunk"] = {"widths": ((13, 11, 14, 12), (27, 23, 29, 25))}
    assert_vectorised(student, online, grown)

    def tiled(batch=2, heads=3, **sizes):
        given = draw(rng, batch, heads, **sizes)
        first = [each[0] for each in given]
        return lambda: [
            student.tiled_attention(*each, 64, causal=causal)
            for each in (given, first)
            for causal in (True, False)
        ]

    grown = {"batch items": {"batch": (9, 19)}, "heads": {"heads": (11, 23)}}
    larger = {"n_queries": (15, 31), "n_keys": (16, 33), "d_key": (14, 29), "d_value": (17, 35)}
    grown |= {name: {name: pair} for name, pair in larger.items()}
    assert_vectorised(student, tiled, grown)
