"""The checks of distance attention and their cases."""

import functools

import pytest
import torch

from grader.attention_cases import (
    each_pair_on_its_own,
    kept_weights,
    pair_dropout_cases,
    weights_kept,
)
from grader.authors import (
    Aspect,
    Check,
    assert_memory,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    gradient,
    gradients,
    often,
    output,
    turned,
    watched,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")  # of an output, in the singular
DISTANCES = Aspect("distances", "what `distance_scores` returns")
PARTIAL = Aspect("partial", "what `scores_without_query_norm` returns")
MEMORY = Aspect("memory", "how large the tensors are that are made")
FUNCTIONS = ("distance_scores", "scores_without_query_norm")
LENS = torch.tensor([4, 2])  # (batch,)


def sized(batch=2, n_queries=5, n_keys=6, d=4, d_value=8, **options):
    """Return recipes of queries, keys and values, whose sizes all differ."""
    sizes = (n_queries, d), (n_keys, d), (n_keys, d_value)
    return [drawn(batch, *each, **options) for each in sizes]


def made(rng, **sizes):
    """Return queries, keys and values."""
    return [recipe(rng) for recipe in sized(**sizes)]


def module(dropout=0.0, training=True, **options):
    """Return what makes a module; a parameter that should not be there keeps its value."""
    return built("DistanceAttention", dropout, layers=["none"], training=training, **options)


def evaluated(dropout=0.0, training=False):
    """Return what makes a module in evaluation mode, unless another is asked for."""
    return module(dropout, training)


def function(student, rng):
    """Return a module's call as a function, so that gradients are those of its inputs alone."""
    return functools.partial(module()(student, rng))


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code."""
    queries, keys, values = made(rng)
    assert_written_by_hand(
        student,
        lambda: student.distance_scores(queries, keys),
        lambda: student.scores_without_query_norm(queries, keys),
        lambda: student.DistanceAttention(0.0)(queries, keys, values),
    )


test_distance_scores = Check(
    "distance_scores gives minus half of the squared distance of each query to each key.",
    points=2,
    about=DISTANCES,
)
test_without_query_norm = Check(
    "scores_without_query_norm gives q . k - |k|^2 / 2 for each query and key.",
    points=2,
    about=PARTIAL,
)
of_both = test_distance_scores.case, test_without_query_norm.case
for scores, name in zip(of_both, FUNCTIONS):
    scores(f"{name} of five queries and six keys.", output(name, *sized()[:2]))
    equal = sized(4, 4, 4)[:2]
    scores(f"{name} where all sizes are equal.", output(name, *equal), about="square")
    scores(
        f"{name} of vectors that are a thousand times as long.",
        output(name, *sized(3, 2, 7, 5, times=1e3)[:2]),
        hidden=True,
    )
    scores(f"{name} of more queries than keys.", output(name, *sized(1, 7, 3, 9)[:2]), hidden=True)


test_attention = Check(
    "The output is the mean of the values, weighted by the softmax of the scores of the keys."
)
attends = test_attention.case
attends("Without lengths.", output(module(), *sized()), about="no lengths")
attends("All sizes are equal.", output(module(), *sized(4, 4, 4, 4, 4)), about="square")
attends("More queries than keys.", output(module(), *sized(3, 7, 2, 5, 1)), hidden=True)


@attends(about="extreme scores")
def large(student, rng):
    """Queries and keys that are multiplied by 100."""
    queries, keys, values = made(rng)
    found = module()(student, rng)(queries * 100, keys * 100, values)
    return {"output": found, "finite": found.isfinite()}


attends(
    "Inputs that are multiplied by 1000.",
    output(module(), *sized(times=1e3)),
    about="extreme scores",
    hidden=True,
)


PER_FIVE = torch.tensor([[6, 2, 3, 1, 4], [2, 5, 3, 6, 1]])
attends(
    "Inputs that are multiplied by 1000, with a length for each query.",
    output(module(), *sized(times=1e3), PER_FIVE),
    about="extreme scores",
    hidden=True,
)


@attends(about="layers")
def parameters(student, rng):
    """Whether there are parameters."""
    return often(float(bool([*student.DistanceAttention(0.0).named_parameters()])))


test_lengths = Check(
    "A query attends to as many keys as its length says, and to none with length 0."
)
lengths = test_lengths.case
lengths("A length for each batch item.", output(module(), *sized(), LENS))
PER_QUERY = torch.tensor([[6, 2, 3, 1, 4, 5], [2, 5, 3, 6, 1, 4]])
ask = output(module(), *sized(n_queries=6), PER_QUERY)
lengths("A length for each of as many queries as keys.", ask, about="lengths per query")
lengths(
    "More items and keys, with a length for each item.",
    output(module(), *sized(3, 2, 9), torch.tensor([9, 1, 7])),
    hidden=True,
)
lengths("Lengths that are not whole.", output(module(), *sized(), LENS + 0.5), about="dtype")
one = output(module(), *sized(n_keys=1), torch.tensor([0, 1]))
lengths("One key, which one of two batch items may not attend to.", one, about="length 0")


@lengths(about="length 0")
def empty(student, rng):
    """Some queries with length 0."""
    lens = torch.tensor([[6, 0, 3, 1, 4], [0, 0, 3, 6, 1]])  # (batch, n_queries)
    found = module()(student, rng)(*made(rng), lens)
    return {"output": found, "finite": found.isfinite()}


@lengths(about="extreme scores")
def far_padding(student, rng):
    """Padded keys of a hundred million."""
    queries, keys, values = made(rng)
    keys[0, 4:] = keys[1, 2:] = 1e8
    return module()(student, rng)(queries, keys, values, LENS)


test_dropout = Check(
    "In training mode, weights are dropped; attention_weights holds them as they are before.",
    about="training",
)
training = test_dropout.case


pair_dropout_cases(test_dropout, evaluated, sized)
training("The attention_weights of a second call in training.", weights_kept(module, sized))
for lens in (None, [[6] * 5]):
    training(
        f"Each weight on its own, with lengths {lens}.",
        each_pair_on_its_own(module, sized(1), lens),
        tells=False,
        hidden=True,
    )
for size, lens in (("batch", None), ("n_queries", LENS), ("n_keys", None)):
    given = [*sized(**{size: 1}), lens]
    ask = kept_weights(module(), sized(), given)
    training(f"The attention_weights where {size} is 1.", ask, about="single")


test_gradients = Check(
    "Gradients reach the queries, the keys and the values, with length 0 too.", about="gradient"
)
slopes = test_gradients.case


def with_zeros(recipe):
    """Return a recipe in which two vectors are zeros: a square has a slope there, a root none."""

    def make(rng):
        vectors = recipe(rng)
        vectors[0, 1] = vectors[1, 2] = 0
        return vectors

    return make


slopes("The gradients of queries, keys and values.", gradient(function, *sized()))
for name in FUNCTIONS:
    ask = gradient(name, *map(with_zeros, sized()[:2]))
    slopes(f"The gradients of {name} where some vectors are zeros.", ask)
slopes(
    "The gradients with a length for each query.",
    gradient(function, *sized(n_queries=2), torch.tensor([[1, 6], [4, 2]])),
    hidden=True,
)
ask = gradient(function, *sized(), torch.tensor([0, 3]))
slopes("The gradients if all queries of an item have length 0.", ask, about="length 0")


@slopes(about="length 0")
def finite_slopes(student, rng):
    """Which gradients are finite if all queries of a batch item have length 0."""
    found = gradients(function(student, rng), *made(rng), torch.tensor([0, 3]))
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


test_any_input = Check(
    "Sizes of one, transposed views and other dtypes work, and no input is modified."
)
inputs = test_any_input.case
for sentence, sizes in (
    ("One query.", {"n_queries": 1}),
    ("One key.", {"n_keys": 1}),
    ("One batch item.", {"batch": 1}),
    ("Vectors and values of one number.", {"d": 1, "d_value": 1}),
):
    inputs(sentence, output(module(), *sized(**sizes)), about="single")
    for name in FUNCTIONS:
        inputs(
            f"{sentence.rstrip('.')} in {name}.",
            output(name, *sized(**sizes)[:2]),
            about="single",
            hidden=True,
        )
inputs("One query under lengths.", output(module(), *sized(n_queries=1), LENS), about="single")
inputs("Transposed views.", output(module(), *map(turned, sized())), about="views")
views = output(module(), *(turned(recipe, 0, 1) for recipe in sized()), LENS)
inputs("Views whose first axes are swapped, with lengths.", views, about="views", hidden=True)
for dtype in (torch.float32, torch.bfloat16):
    shown, low = str(dtype).removeprefix("torch."), sized(dtype=dtype)
    within = (6e-2, 5e-2) if dtype == torch.bfloat16 else None
    ask = output(module(dtype=dtype), *low, LENS)
    inputs(f"Inputs in {shown}.", ask, about="dtype", within=within)
    for name in FUNCTIONS:
        ask = output(name, *low[:2])
        inputs(f"{name} in {shown}.", ask, about="dtype", within=(6e-2, 0.5) if within else None)
for with_, lens in (("without lengths", None), ("with lengths per query", PER_FIVE)):
    inputs(
        f"bfloat16 {with_}.",
        output(module(dtype=torch.bfloat16), *sized(dtype=torch.bfloat16), lens),
        about="dtype",
        within=(6e-2, 5e-2),
        hidden=True,
    )
    inputs(
        f"Which numbers have changed {with_}.",
        changed(module(), *sized(), lens),
        about="writes",
        hidden=True,
    )
inputs(
    "One batch item with a length for each query.",
    output(module(), *sized(1), PER_FIVE[:1]),
    about="single",
    hidden=True,
)
inputs(
    "Transposed views with lengths per query.",
    output(module(), *map(turned, sized()), PER_FIVE),
    about="views",
    hidden=True,
)
for name in FUNCTIONS:
    inputs(
        f"{name} of transposed views.",
        output(name, *map(turned, sized()[:2])),
        about="views",
        hidden=True,
    )
    inputs(f"Which arguments {name} has changed.", changed(name, *sized()[:2]), about="writes")
for sentence, lens in (("lengths", LENS), ("a length of 0", torch.tensor([0, 3]))):
    ask = changed(module(), *sized(), lens)
    inputs(f"Which numbers of the arguments have changed after {sentence}.", ask, about="writes")


test_memory = Check(
    "The differences of all queries and keys never exist at once, and no loop is needed.",
    about=MEMORY,
)
memory = test_memory.case


def calls_of(student, rng, d=23):
    """Return calls of all three with 31 queries and 37 keys of size d."""
    queries, keys, values = made(rng, batch=1, n_queries=31, n_keys=37, d=d, d_value=5)
    attention = module()(student, rng)
    return {
        "distances": lambda: student.distance_scores(queries, keys),
        "partial": lambda: student.scores_without_query_norm(queries, keys),
        "attention": lambda: attention(queries, keys, values),
        "lengths": lambda: attention(queries, keys, values, torch.full((1,), 37)),
        "lengths per query": lambda: attention(queries, keys, values, torch.full((1, 31), 36)),
    }


@memory
def large_tensors(student, rng):
    """Which of the three make a tensor of n_queries * n_keys * d numbers."""
    found = {}
    for d in (23, 7):
        for name, call in calls_of(student, rng, d).items():
            with watched(student, kernels=False) as seen:
                call()
            found[f"{name}, d of {d}"] = often(float(seen.largest.elements >= 31 * 37 * d))
    return found


@memory(tells=False, hidden=True)
def memory_of_a_call(student, rng):
    """A call takes less memory than all differences would."""
    for d, enough in ((23, 31 * 37 * 23 * 8 / 2), (7, 31 * 37 * 7 * 8 - 1)):  # bytes
        for name, call in calls_of(student, rng, d).items():
            if d == 23 or name == "distances":
                assert_memory(student, call, enough, {"n_queries": 31, "n_keys": 37, "d": d})
    return True


@memory(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""

    def called(**sizes):
        queries, keys, values = made(rng, **sizes)
        attention, lens = module()(student, rng), torch.full(queries.shape[:2], 2)
        return lambda: (
            student.distance_scores(queries, keys),
            student.scores_without_query_norm(queries, keys),
            *(attention(queries, keys, values, each) for each in (None, lens[:, 0], lens)),
        )

    grown = {"batch items": {"batch": (9, 19)}, "queries": {"n_queries": (15, 31)}}
    assert_vectorised(student, called, {**grown, "keys": {"n_keys": (16, 33)}})
    return True
