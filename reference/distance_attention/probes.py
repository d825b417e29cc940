"""Probes: calls whose answers tell one mistake from another."""

import torch

from grader.probing import (
    Aspect,
    build,
    drops_anew,
    factors_of_kept_weights,
    gradients,
    often,
    probe,
    seeded,
    share_of_weights_dropped,
    weights_dropped_together,
    weights_kept_in_training,
    written,
)
from grader.testing import watched

AXES = ("batch item", "query", "feature")  # of an output, in the singular


def draw(rng, batch=2, n_queries=5, n_keys=6, d_value=8):
    """Return queries, keys and values, whose sizes all differ."""
    queries = rng.randn(batch, n_queries, 4)  # (batch, n_queries, d)
    keys = rng.randn(batch, n_keys, 4)  # (batch, n_keys, d)
    return queries, keys, rng.randn(batch, n_keys, d_value)  # (batch, n_keys, d_value)


def make(student, rng, dropout=0.0):
    """Return a module in evaluation mode; a parameter that should not be there keeps its value."""
    return build(student.DistanceAttention, dropout, rng=rng, layers=["none"])


@probe("values")
def lengths(student, rng):
    """A length for each batch item."""
    return make(student, rng)(*draw(rng), torch.tensor([4, 2]))


@probe("lengths per query")
def per_query(student, rng):
    """A length for each of as many queries as keys."""
    lens = torch.tensor([[6, 2, 3, 1, 4, 5], [2, 5, 3, 6, 1, 4]])  # (batch, n_queries)
    return make(student, rng)(*draw(rng, n_queries=6), lens)


@probe("no lengths")
def no_lengths(student, rng):
    """Without lengths."""
    return make(student, rng)(*draw(rng))


@probe("square")
def square(student, rng):
    """As many queries as keys, all of the same size."""
    return make(student, rng)(*(rng.randn(4, 4, 4) for _ in range(3)))


DISTANCES = Aspect("distances", "what `distance_scores` returns")
PARTIAL = Aspect("partial", "what `scores_without_query_norm` returns")
MEMORY = Aspect("memory", "how large the tensors are that are made")


@probe(DISTANCES)
def distances(student, rng):
    """Scores of five queries and six keys."""
    queries, keys, _ = draw(rng)
    return student.distance_scores(queries, keys)


@probe(PARTIAL)
def partial(student, rng):
    """Scores of five queries and six keys without |q|^2 / 2."""
    queries, keys, _ = draw(rng)
    return student.scores_without_query_norm(queries, keys)


@probe("square")
def square_scores(student, rng):
    """As many queries as keys, all of the same size, in both functions."""
    queries, keys = rng.randn(4, 4, 4), rng.randn(4, 4, 4)
    return {
        "distances": student.distance_scores(queries, keys),
        "partial": student.scores_without_query_norm(queries, keys),
    }


@probe(MEMORY)
def made(student, rng):
    """Which of the three make a tensor of n_queries * n_keys * d numbers."""
    queries, keys = rng.randn(1, 31, 23), rng.randn(1, 37, 23)  # (batch, n, d)
    values, lens = rng.randn(1, 37, 5), torch.full((1, 31), 36)  # of each key and each query
    attention = make(student, rng)
    calls = {
        "distances": lambda: student.distance_scores(queries, keys),
        "partial": lambda: student.scores_without_query_norm(queries, keys),
        "attention": lambda: attention(queries, keys, values),
        "lengths per query": lambda: attention(queries, keys, values, lens),
    }
    found = {}
    for name, call in calls.items():
        with watched(student, kernels=False) as seen:
            call()
        found[name] = often(float(seen.largest.elements >= 31 * 37 * 23))
    with watched(student, kernels=False) as seen:
        student.distance_scores(queries[..., :7], keys[..., :7])
    return found | {"d of 7": often(float(seen.largest.elements >= 31 * 37 * 7))}


@probe("layers")
def parameters(student, rng):
    """Whether there are parameters."""
    names = [name for name, _ in make(student, rng).named_parameters()]
    return often(float(bool(names)))


@probe("gradient")
def slopes(student, rng):
    """The gradients of the inputs."""
    attention = make(student, rng)

    def call(*inputs):  # no module, so that the gradients of a parameter are left out
        return attention(*inputs)

    return gradients(call, *draw(rng))


@probe("gradient")
def slopes_of_scores(student, rng):
    """The gradients in both functions, where a query and a key are zeros."""
    queries, keys, _ = draw(rng)
    queries[0, 1], keys[1, 2] = 0, 0
    return {
        "distances": gradients(student.distance_scores, queries, keys),
        "partial": gradients(student.scores_without_query_norm, queries, keys),
    }


@probe("training")
def in_training(student, rng):
    """What dropout makes of weights, where the values are the unit matrix, twice."""
    attention, without = make(student, rng, 0.4).train(), make(student, rng)
    return factors_of_kept_weights(student, attention, without, *draw(rng)[:2])


@probe("training")
def weights_dropped(student, rng):
    """Which weights of two items are dropped together, over 40 draws."""
    inputs = (tensor * 0.5 for tensor in draw(rng, n_queries=3, n_keys=3))
    return weights_dropped_together(student, make(student, rng, 0.5).train(), *inputs)


@probe("training")
def share_of_a_quarter(student, rng):
    """Whether about a quarter of the weights are dropped at a rate of 0.25, without gradients."""
    attention, inputs = make(student, rng, 0.25).train(), draw(rng, batch=1)[:2]
    with torch.no_grad():
        share = share_of_weights_dropped(student, attention, *inputs)
    return often(abs(share - 0.25) < 0.03)  # ten standard deviations


@probe("training")
def kept(student, rng):
    """The attention_weights of the second call in training mode."""
    first, last = ((*draw(rng), torch.tensor(lens)) for lens in ([3, 5], [4, 2]))
    return weights_kept_in_training(student, make(student, rng, 0.4).train(), first, last)


@probe("options")
def evaluated(student, rng):
    """A dropout of 0.4 in evaluation mode."""
    attention = make(student, rng, 0.4)
    with seeded(student, 1):
        return attention(*draw(rng))


@probe("extreme scores")
def large(student, rng):
    """Queries and keys that are multiplied by 100."""
    queries, keys, values = draw(rng)
    output = make(student, rng)(queries * 100, keys * 100, values)
    return {"output": output, "finite": output.isfinite()}


@probe("length 0")
def empty(student, rng):
    """Some queries with length 0."""
    lens = torch.tensor([[6, 0, 3, 1, 4], [0, 0, 3, 6, 1]])  # (batch, n_queries)
    output = make(student, rng)(*draw(rng), lens)
    return {"output": output, "finite": output.isfinite()}


@probe("length 0")
def empty_slopes(student, rng):
    """Which gradients are finite if all queries of a batch item have length 0."""
    attention, lens = make(student, rng), torch.tensor([0, 3])
    found = gradients(lambda *inputs: attention(*inputs, lens), *draw(rng))
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


@probe("single")
def single(student, rng):
    """One query, one key, one batch item."""
    attention = make(student, rng)
    queries, keys, values = draw(rng)
    return {
        "query": attention(queries[:, :1], keys, values),
        "key": attention(queries, keys[:, :1], values[:, :1]),
        "batch item": attention(queries[:1], keys[:1], values[:1]),
    }


@probe("views")
def views(student, rng):
    """Transposed views."""
    return make(student, rng)(*(x.mT.contiguous().mT for x in draw(rng)))


@probe("dtype")
def dtypes(student, rng):
    """Inputs in float32."""
    attention = build(student.DistanceAttention, 0.0, rng=rng, dtype=torch.float32, layers=["none"])
    return attention(*(x.float() for x in draw(rng)))


@probe("writes")
def arguments(student, rng):
    """Which numbers of the arguments have changed."""
    inputs = draw(rng)
    lens = torch.tensor([4, 2])  # (batch,)
    return changed(student, make(student, rng), *inputs, lens)


def changed(student, call, *inputs):
    """Return which numbers of the arguments are others after a call."""
    before = [value.clone() for value in inputs]
    return [new != old for new, old in zip(written(student, call, *inputs), before)]


@probe("writes")
def arguments_of_scores(student, rng):
    """Which numbers of the arguments of both functions have changed."""
    queries, keys, _ = draw(rng)
    functions = student.distance_scores, student.scores_without_query_norm
    return [changed(student, scores, queries.clone(), keys.clone()) for scores in functions]


@probe("length 0")
def one_key_of_length_zero(student, rng):
    """One key, which one of two batch items may not attend to."""
    return make(student, rng)(*draw(rng, n_keys=1), torch.tensor([0, 1]))


@probe("dtype")
def fractions(student, rng):
    """Lengths that are not whole."""
    return make(student, rng)(*draw(rng), torch.tensor([4.5, 2.5]))


@probe("training")
def next_call(student, rng):
    """Whether the next call drops other weights."""
    return drops_anew(student, make(student, rng, 0.4).train(), *draw(rng, batch=12))


@probe("writes")
def arguments_at_length_zero(student, rng):
    """Which numbers of the arguments have changed, where one of the lengths is 0."""
    return changed(student, make(student, rng), *draw(rng), torch.tensor([0, 3]))


@probe("extreme scores")
def far_padding(student, rng):
    """Padded keys of a hundred million."""
    queries, keys, values = draw(rng)
    keys[0, 4:] = keys[1, 2:] = 1e8
    return make(student, rng)(queries, keys, values, torch.tensor([4, 2]))


@probe("single")
def kept_of_one_item(student, rng):
    """The attention_weights of one batch item."""
    attention = make(student, rng)
    attention(*draw(rng, batch=1))
    return attention.attention_weights


@probe("dtype")
def scores_in_single_precision(student, rng):
    """Scores of inputs in float32, in both functions."""
    queries, keys, _ = (x.float() for x in draw(rng))
    calls = student.distance_scores, student.scores_without_query_norm
    return [call(queries, keys) for call in calls]
