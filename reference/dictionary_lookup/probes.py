"""Probes of dictionary lookup: what tells its mistakes apart."""

import torch

from grader.probing import ACCEPTED, gradients, often, probe, works, works_too, written

AXES = ("batch item", "query", "feature")  # of an output, in the singular

ENTRIES = {40: [2.5, -3, 1], -3: [5, 7, 0.5], 7: [-3, 2, 4], 0: [1, -6, 2]}


@probe("values")
def batched(student, rng):
    """One leading axis."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return student.attention(Q, K, V)


@probe("values")
def more_queries(student, rng):
    """More queries than keys."""
    Q, K, V = rng.randn(2, 7, 3), rng.randn(2, 4, 3), rng.randn(2, 4, 5)
    return student.attention(Q, K, V)


@probe("square")
def square(student, rng):
    """All sizes equal."""
    Q, K, V = rng.randn(4, 4, 4), rng.randn(4, 4, 4), rng.randn(4, 4, 4)
    return student.attention(Q, K, V)


@probe("options")
def warm(student, rng):
    """A temp of 3."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return student.attention(Q, K, V, 3.0)


@probe("options")
def cold(student, rng):
    """A temp of a third."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return student.attention(Q, K, V, temp=1 / 3)


@probe("options")
def near_zero(student, rng):
    """Temps of 0.05, 0.005 and 0.0005, with queries as small."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return [student.attention(Q * temp, K, V, temp) for temp in (0.05, 0.005, 0.0005)]


@probe("lookup")
def found(student, rng):
    """Each key looked up with the default temp."""
    return [student.lookup(ENTRIES, key) for key in ENTRIES]


@probe("lookup")
def blended(student, rng):
    """Each key looked up with temp 1."""
    return [student.lookup(ENTRIES, key, 1.0) for key in ENTRIES]


@probe("lookup")
def blended_more(student, rng):
    """Each key looked up with temp 0.4."""
    return [student.lookup(ENTRIES, key, temp=0.4) for key in ENTRIES]


@probe("lookup")
def ascending(student, rng):
    """The keys 0, 1 and 2 in this order, looked up with temp 1 and with the default temp."""
    entries = {0: [2.5, 3, -1, 4], 1: [5, -7, 0.5, 6], 2: [3, 2, 9, -8]}
    return [student.lookup(entries, key, *temp) for key in entries for temp in ((), (1.0,))]


@probe("lookup")
def shuffled(student, rng):
    """The keys 2, 0 and 1 in this order, looked up with temp 1."""
    entries = {2: [2.5, 3, -1, 4], 0: [5, -7, 0.5, 6], 1: [3, 2, 9, -8]}
    return [student.lookup(entries, key, 1.0) for key in entries]


@probe("lookup")
def from_the_end(student, rng):
    """The keys 5, -1, 0 and -6, looked up with temp 1."""
    entries = {5: [2, 3, -1, 4], -1: [5, -7, 0.5, 6], 0: [3, 2, 9, -8], -6: [-2, 8, 1, 7]}
    return [student.lookup(entries, key, 1.0) for key in entries]


@probe("lookup")
def one_column(student, rng):
    """Lists of one number."""
    entries = {5: [2], 1: [-4], 3: [7]}
    return [student.lookup(entries, key, 1.0) for key in entries]


@probe("gradient")
def gradient(student, rng):
    """The gradients of Q, K and V."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return gradients(student.attention, Q, K, V)


@probe("gradient")
def gradient_of_one_sentence(student, rng):
    """The gradients at temp 2, without a leading axis."""
    Q, K, V = rng.randn(3, 4), rng.randn(5, 4), rng.randn(5, 6)
    return gradients(student.attention, Q, K, V, 2.0)


@probe("gradient")
def gradient_at_half_temp(student, rng):
    """The gradients at temp 0.5, with a leading axis."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return gradients(student.attention, Q, K, V, 0.5)


@probe("leading axes")
def none(student, rng):
    """No leading axis."""
    Q, K, V = rng.randn(3, 4), rng.randn(5, 4), rng.randn(5, 6)
    return student.attention(Q, K, V)


@probe("leading axes")
def two(student, rng):
    """Two leading axes."""
    Q, K, V = rng.randn(2, 3, 4, 5), rng.randn(2, 3, 6, 5), rng.randn(2, 3, 6, 7)
    return student.attention(Q, K, V)


@probe("extreme scores")
def high(student, rng):
    """Scores of ten thousand."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return student.attention(Q * 100, K * 100, V)


@probe("extreme scores")
def too_large(student, rng):
    """Which queries get a finite output if their scores rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(24, 1)
    Q, K, V = rng.rand(24, 4), rng.rand(5, 4), rng.randn(5, 6)
    Q, K = torch.cat([Q, levels], dim=-1), torch.cat([K, torch.ones(5, 1)], dim=-1)
    return student.attention(Q, K, V)[:, 0].isfinite()


@probe("extreme scores")
def low(student, rng):
    """All scores around minus ten thousand."""
    Q, K, V = rng.rand(2, 3, 4) + 50, rng.rand(2, 5, 4) - 51, rng.randn(2, 5, 6)
    return student.attention(Q, K, V)


@probe("extreme scores")
def picks(student, rng):
    """A temp near 0."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return student.attention(Q, K, V, 1e-4)


@probe("extreme scores")
def averages(student, rng):
    """A huge temp."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return student.attention(Q, K, V, 1e9)


@probe("single")
def one_query(student, rng):
    """One query."""
    Q, K, V = rng.randn(2, 1, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6)
    return student.attention(Q, K, V)


@probe("single")
def one_key(student, rng):
    """One key."""
    Q, K, V = rng.randn(2, 3, 4), rng.randn(2, 1, 4), rng.randn(2, 1, 6)
    return student.attention(Q, K, V)


@probe("single")
def one_value_column(student, rng):
    """Values of size 1."""
    Q, K, V = rng.randn(2, 12, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 1)
    return student.attention(Q, K, V)


@probe("views")
def transposed(student, rng):
    """Transposed views."""
    Q, K, V = (rng.randn(4, n, 2).transpose(0, 2) for n in (3, 5, 5))
    return student.attention(Q, K, V)


@probe("views")
def transposed_leading_axes(student, rng):
    """Two leading axes that were swapped."""
    Q, K, V = (rng.randn(2, 3, n, 4).transpose(0, 1) for n in (3, 5, 5))
    return student.attention(Q, K, V)


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    Q, K, V = (rng.randn(2, n, 4, dtype=torch.bfloat16) for n in (3, 5, 5))
    return student.attention(Q, K, V)


@probe("dtype")
def single_precision(student, rng):
    """float32."""
    Q, K, V = (rng.randn(2, n, 4, dtype=torch.float32) for n in (3, 5, 5))
    return student.attention(Q, K, V)


@probe("dtype")
def whole_numbers(student, rng):
    """Lists of whole numbers."""
    return student.lookup({0: [2, 3], 1: [5, 7], 2: [3, 2]}, 1, 1.0)


@probe("dtype")
def whole_numbers_work(student, rng):
    """Whether lists of whole numbers work."""
    halves, whole = ({0: [x, 3 * x], 1: [5 * x, 7 * x]} for x in (0.5, 1))
    return works_too(lambda: student.lookup(halves, 1), lambda: student.lookup(whole, 1))


@probe("writes")
def arguments(student, rng):
    """Which numbers in Q, K and V are others after a call with temp 0.5."""
    return _changed(student, rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6), 0.5)


@probe("writes")
def arguments_at_temp_one(student, rng):
    """Which numbers in Q, K and V are others after a call with temp 1."""
    return _changed(student, rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6), 1.0)


@probe("writes")
def entries(student, rng):
    """Whether the entries are the same after `lookup`."""
    given = {40: [2.5, -3], 7: [1, 4.5]}
    before = repr(given)
    student.lookup(given, 40)  # an error here is not about the entries
    untouched = works(lambda: written(student, student.lookup, given, 40))
    return often(untouched and repr(given) == before)


def _changed(student, *inputs):
    before = [value.clone() for value in inputs[:3]]
    after = written(student, student.attention, *inputs)
    return [new != old for new, old in zip(after, before)]


@probe("refusals")
def temp_zero(student, rng):
    """A temp of 0."""
    student.attention(rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6), 0.0)
    return ACCEPTED


@probe("refusals")
def temp_negative(student, rng):
    """A negative temp."""
    student.attention(rng.randn(2, 3, 4), rng.randn(2, 5, 4), rng.randn(2, 5, 6), -1.0)
    return ACCEPTED


@probe("refusals")
def lookup_temp_zero(student, rng):
    """`lookup` with a temp of 0."""
    student.lookup(ENTRIES, 7, 0.0)
    return ACCEPTED


@probe("refusals")
def lookup_temp_negative(student, rng):
    """`lookup` with a negative temp."""
    student.lookup(ENTRIES, 7, -1.0)
    return ACCEPTED


@probe("refusals")
def unknown_key(student, rng):
    """A key that is not there."""
    student.lookup(ENTRIES, 8)
    return ACCEPTED


@probe("refusals")
def temp_zero_for_one_entry(student, rng):
    """`lookup` in a single entry with a temp of 0."""
    student.lookup({7: [2.5, -3.0]}, 7, 0.0)
    return ACCEPTED


@probe("views")
def views_work(student, rng):
    """Whether views work whose two leading axes were swapped."""
    views = [rng.randn(2, 3, n, 4).transpose(0, 1) for n in (3, 5, 5)]
    whole = [view.contiguous() for view in views]
    return works_too(lambda: student.attention(*whole), lambda: student.attention(*views))


@probe("refusals")
def unknown_key_between(student, rng):
    """A key that is not there, between others that are."""
    student.lookup(ENTRIES, 39)
    return ACCEPTED


@probe("lookup")
def large_keys(student, rng):
    """Keys of billions that differ by one, with values of thousands, looked up with temp 1."""
    entries = {2**40: [2500, 3, -1, 4], 2**40 + 1: [5, -7e5, 0.5, 6], -1: [3, 2, 9, -8]}
    return [student.lookup(entries, key, 1.0) for key in entries]


@probe("extreme scores")
def ties_at_a_low_temp(student, rng):
    """Equal scores at a temp of a hundred-thousandth."""
    Q, K, V = torch.zeros(3, 4, dtype=torch.float64), rng.randn(5, 4), rng.randn(5, 6)
    return student.attention(Q, K, V, 1e-5)
