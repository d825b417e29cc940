"""Probes of rotary position embedding: what tells its mistakes apart."""

import torch

from grader.probing import ACCEPTED, Aspect, gradients, often, probe, works, written
from grader.testing import expect

AXES = ("batch item", "token", "head", "column")  # of an output, in the singular
ATTENTION = Aspect("attention", "what `rotary_attention` returns")
POSITIONS = Aspect("positions", "positions that are not small whole numbers", is_edge=True)
ORDER = torch.tensor([3, 0, 7, 1, 4])  # positions


def draw(rng, batch=2, n_tokens=5, heads=3, d_value=4):
    """Return queries, keys, values and positions."""
    shapes = [(batch, n_tokens, heads, d) for d in (6, 6, d_value)]
    return *(rng.randn(*shape) for shape in shapes), ORDER[:n_tokens]


def turned(student, x, positions, *args, **options):
    """Return the rotated x in float32, in which angles may be computed."""
    return student.rotate(x, positions, *args, **options).float()


def attended(student, *inputs):
    """Return the output of attention in float32."""
    return student.rotary_attention(*inputs).float()


@probe("values")
def ordinary(student, rng):
    """Interleaved pairs with a base of 4."""
    return turned(student, rng.randn(2, 5, 3, 6), ORDER, 4.0)


@probe("values")
def default_base(student, rng):
    """Interleaved pairs with the default base."""
    return turned(student, rng.randn(2, 5, 3, 8), ORDER)


@probe("values")
def one_pair(student, rng):
    """A single pair of columns."""
    return turned(student, rng.randn(2, 5, 3, 2), ORDER)


@probe("square")
def square(student, rng):
    """As many tokens as heads and columns."""
    return turned(student, rng.randn(4, 4, 4, 4), torch.tensor([1, 3, 0, 2]), 4.0)


@probe("options")
def halves(student, rng):
    """interleaved=False with a base of 4."""
    return turned(student, rng.randn(2, 5, 3, 6), ORDER, 4.0, interleaved=False)


@probe("options")
def halves_where_sizes_are_equal(student, rng):
    """interleaved=False with as many tokens as heads and columns."""
    positions = torch.tensor([1, 3, 0, 2])
    return turned(student, rng.randn(4, 4, 4, 4), positions, 4.0, interleaved=False)


@probe("leading axes")
def without_batch(student, rng):
    """No leading axes."""
    return turned(student, rng.randn(5, 3, 6), ORDER, 4.0)


@probe("leading axes")
def two_leading_axes(student, rng):
    """Two leading axes."""
    return turned(student, rng.randn(2, 2, 5, 3, 4), ORDER, 4.0)


@probe(ATTENTION)
def attention(student, rng):
    """Attention."""
    return attended(student, *draw(rng))


@probe(ATTENTION)
def attention_of_equal_sizes(student, rng):
    """Attention where all sizes are equal."""
    inputs = [rng.randn(4, 4, 4, 4) for _ in range(3)]
    return attended(student, *inputs, torch.tensor([1, 3, 0, 2]))


@probe(ATTENTION)
def attention_of_wide_values(student, rng):
    """Attention with values as wide as queries."""
    return attended(student, *draw(rng, d_value=6))


@probe(ATTENTION)
def attention_without_rotation(student, rng):
    """Attention where all positions are 0."""
    *inputs, _ = draw(rng, d_value=6)
    return attended(student, *inputs, torch.zeros(5, dtype=torch.int64))


@probe(POSITIONS)
def far(student, rng):
    """Positions of thousands."""
    positions = torch.tensor([2015, 1013, 3011, 1509, 2503])
    x = rng.randn(2, 5, 3, 6)
    return student.rotate(x, positions).to(torch.bfloat16)


@probe(POSITIONS)
def far_in_half_precision(student, rng):
    """Positions of thousands in bfloat16, for a pair whose angle is the position."""
    positions = torch.tensor([2015, 1013, 3011, 1509, 2503])
    return student.rotate(rng.randn(2, 5, 3, 2, dtype=torch.bfloat16), positions)


@probe(POSITIONS)
def negative(student, rng):
    """Negative positions."""
    return turned(student, rng.randn(2, 5, 3, 6), -ORDER, 4.0)


@probe(POSITIONS)
def fractions(student, rng):
    """Positions with fractions."""
    return turned(student, rng.randn(2, 5, 3, 6), ORDER + 0.375, 4.0)


@probe(POSITIONS)
def float_positions(student, rng):
    """Whole positions in float64."""
    return turned(student, rng.randn(2, 5, 3, 6), ORDER.double(), 4.0)


@probe("gradient")
def gradient(student, rng):
    """The gradient of x."""
    return as_float(gradients(lambda x: student.rotate(x, ORDER, 4.0), rng.randn(2, 5, 3, 6)))


@probe("gradient")
def gradient_of_halves(student, rng):
    """The gradient of x with interleaved=False."""
    call = lambda x: student.rotate(x, ORDER, 4.0, interleaved=False)  # noqa: E731
    return as_float(gradients(call, rng.randn(2, 5, 3, 6)))


@probe("gradient")
def gradient_of_attention(student, rng):
    """The gradients of queries, keys and values."""
    *inputs, positions = draw(rng, heads=2)
    call = lambda *given: student.rotary_attention(*given, positions)  # noqa: E731
    return as_float(gradients(call, *inputs))


def as_float(found):
    """Return the gradients that were found, without the output, in float32."""
    return {
        name: value.float() if torch.is_tensor(value) else value
        for name, value in found.items()
        if name != "output"
    }


@probe("single")
def single(student, rng):
    """One token, and one head."""
    return {
        "token": turned(student, rng.randn(3, 1, 4, 6), torch.tensor([2]), 4.0),
        "head": turned(student, rng.randn(2, 5, 1, 6), ORDER, 4.0),
    }


@probe("views")
def transposed(student, rng):
    """Transposed views."""
    x = rng.randn(4, 3, 5, 2).permute(3, 2, 1, 0)
    return [
        turned(student, x, ORDER, 4.0),
        turned(student, x, ORDER, 4.0, interleaved=False),
        attended(student, x, x, x, ORDER),
    ]


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    return student.rotate(rng.randn(2, 5, 3, 6, dtype=torch.float32), ORDER, 4.0)


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    return student.rotate(rng.randn(2, 5, 3, 6, dtype=torch.bfloat16), ORDER, 4.0)


@probe("dtype")
def double_precision(student, rng):
    """Inputs of 0 in float64, of which the shape and the dtype count."""
    return student.rotate(torch.zeros(2, 5, 3, 6, dtype=torch.float64), ORDER) * 0


@probe("dtype")
def attention_in_single_precision(student, rng):
    """Attention in float32."""
    *inputs, positions = draw(rng)
    return student.rotary_attention(*(x.float() for x in inputs), positions)


@probe("dtype")
def attention_in_half_precision(student, rng):
    """Attention in bfloat16, whose products are rounded in several ways: only the dtype counts."""
    *inputs, positions = draw(rng)
    return student.rotary_attention(*(x.to(torch.bfloat16) for x in inputs), positions) * 0


@probe("writes")
def argument(student, rng):
    """Which numbers of x are others after a call."""
    x = rng.randn(2, 5, 3, 6)
    return written(student, student.rotate, x.clone(), ORDER, 4.0)[0] != x


@probe("writes")
def argument_of_halves(student, rng):
    """Which numbers of x are others after a call with interleaved=False."""
    x = rng.randn(2, 5, 3, 6)
    call = lambda x: student.rotate(x, ORDER, 4.0, interleaved=False)  # noqa: E731
    return written(student, call, x.clone())[0] != x


@probe("writes")
def arguments_of_attention(student, rng):
    """Which numbers of queries, keys and values are others after a call."""
    inputs = draw(rng)
    after = written(student, student.rotary_attention, *(x.clone() for x in inputs))
    return [new != old for new, old in zip(after, inputs)]


@probe("refusals")
def odd(student, rng):
    """An odd d_head."""
    student.rotate(rng.randn(2, 5, 3, 7), ORDER)
    return ACCEPTED


@probe("refusals")
def odd_halves(student, rng):
    """An odd d_head with interleaved=False."""
    student.rotate(rng.randn(2, 5, 3, 7), ORDER, interleaved=False)
    return ACCEPTED


@probe("refusals")
def one_column(student, rng):
    """A d_head of 1."""
    student.rotate(rng.randn(2, 5, 3, 1), ORDER)
    return ACCEPTED


@probe("refusals")
def one_position(student, rng):
    """One position for five tokens."""
    student.rotate(rng.randn(2, 5, 3, 6), ORDER[:1])
    return ACCEPTED


@probe("refusals")
def more_positions(student, rng):
    """Six positions for five tokens."""
    student.rotate(rng.randn(2, 5, 3, 6), torch.arange(6))
    return ACCEPTED


@probe("refusals")
def positions_for_one_token(student, rng):
    """Three positions for one token."""
    student.rotate(rng.randn(2, 1, 3, 6), torch.arange(3))
    return ACCEPTED


@probe("refusals")
def as_many_positions_as_heads(student, rng):
    """As many positions as heads, but not as tokens."""
    student.rotate(rng.randn(2, 5, 3, 6), torch.arange(3))
    return ACCEPTED


@probe("square", decides=False)
def works_where_sizes_differ(student, rng):
    """Whether calls work where all sizes differ."""
    x = rng.randn(2, 5, 3, 6)
    return often(works(lambda: expect(student.rotate(x, ORDER).shape == x.shape, "it is another")))


@probe(POSITIONS)
def half_precision_positions(student, rng):
    """Positions in bfloat16, of which each is exact."""
    return turned(student, rng.randn(2, 5, 3, 6), (torch.arange(5) * 1.25 + 3).bfloat16())


@probe(ATTENTION)
def other_positions(student, rng):
    """The second of two calls, whose positions have the same ends."""
    *inputs, _ = draw(rng)
    attended(student, *inputs, torch.tensor([0, 1, 2, 3, 9]))
    return attended(student, *inputs, torch.tensor([0, 5, 1, 7, 9]))


@probe(POSITIONS)
def far_to_three_digits(student, rng):
    """Whether a pair is turned by an angle of thousands to about three digits."""
    positions = torch.arange(12) * 250 + 1013
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(12, 1, 2)
    right = torch.stack((positions.double().cos(), positions.double().sin()), dim=-1)
    return (student.rotate(x, positions)[:, 0] - right).abs().amax(-1) < 0.003


@probe("single")
def attention_of_one(student, rng):
    """Attention of one sentence, of one token, of one head, and with values of size 1."""
    found = {}
    for name, sizes in {
        "sentence": {"batch": 1},
        "token": {"n_tokens": 1},
        "head": {"heads": 1},
        "value": {"d_value": 1},
    }.items():
        found[name] = attended(student, *draw(rng, **sizes))
    return found
