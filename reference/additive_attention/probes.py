"""Probes: calls whose answers tell one mistake from another."""

import torch

from grader.probing import (
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
    works,
    written,
)

AXES = ("batch item", "query", "feature")  # of an output, in the singular


def draw(rng, batch=2, n_queries=5, n_keys=6, d_value=8):
    """Return queries, keys and values, whose sizes all differ."""
    queries = rng.randn(batch, n_queries, 4)  # (batch, n_queries, d_query)
    keys = rng.randn(batch, n_keys, 3)  # (batch, n_keys, d_key)
    return queries, keys, rng.randn(batch, n_keys, d_value)  # (batch, n_keys, d_value)


def make(student, rng, dropout=0.0):
    """Return a module with random parameters."""
    return build(student.AdditiveAttention, 4, 3, 7, dropout, rng=rng)


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
    attention = build(student.AdditiveAttention, 4, 4, 4, 0.0, rng=rng)
    return attention(*(rng.randn(4, 4, 4) for _ in range(3)))


@probe("layers")
def parameters(student, rng):
    """The parameters of the layers."""
    names = ["W_q.weight", "W_q.bias", "W_k.weight", "W_k.bias", "w_v.weight", "w_v.bias"]
    shapes = {name: list(x.shape) for name, x in make(student, rng).named_parameters()}
    rows = {name: often(float(name in shapes)) for name in names}
    sizes = {
        name: often(*(float(n) for n in shape)) for name, shape in shapes.items() if name in names
    }
    return {"there": rows, "shapes": sizes}


@probe("gradient")
def slopes(student, rng):
    """The gradients of the inputs and of the layers."""
    return gradients(make(student, rng), *draw(rng))


@probe("layers", decides=False)
def sizes_exchanged(student, rng):
    """Whether a module for queries of 4 and keys of 3 numbers takes those of 3 and 4."""
    queries, keys, values = draw(rng)
    return often(works(lambda: make(student, rng)(keys, queries, values[:, :5])))


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
    """Values of a w_v that is multiplied by 1e4."""
    attention = make(student, rng)
    state = attention.state_dict()
    attention.load_state_dict({**state, "w_v.weight": state["w_v.weight"] * 1e4})
    output = attention(*draw(rng))
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
    attention = build(student.AdditiveAttention, 4, 3, 7, 0.0, rng=rng, dtype=torch.float32)
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


@probe("views")
def view_of_lengths(student, rng):
    """Lengths per query that are a transposed view."""
    lens = torch.tensor([[6, 2], [3, 1], [4, 5], [1, 6], [2, 3]]).T  # (batch, n_queries)
    return make(student, rng)(*draw(rng), lens)


@probe("single")
def kept_of_one_item(student, rng):
    """The attention_weights of one batch item."""
    attention = make(student, rng)
    attention(*draw(rng, batch=1))
    return attention.attention_weights


@probe("single")
def one_hidden(student, rng):
    """A single hidden number."""
    return build(student.AdditiveAttention, 4, 3, 1, 0.0, rng=rng)(*draw(rng))
