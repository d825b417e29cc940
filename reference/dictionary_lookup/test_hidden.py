"""The checks of dictionary lookup and their cases."""

import pytest
import torch

from grader.authors import (
    Check,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    gradient,
    often,
    output,
    refused,
    turned,
    works,
    works_too,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")  # of an output, in the singular
ANY_KEYS = {40: [2.5, -3, 1], -3: [5, 7, 0.5], 7: [-3, 2, 4], 0: [1, -6, 2]}
ONE_ENTRY = {7: [2.5, -3.0]}


def qkv(*leading, n_queries=3, n_keys=5, d_key=4, d_value=6, **how):
    """Return recipes of Q, K and V."""
    sizes = (n_queries, d_key), (n_keys, d_key), (n_keys, d_value)
    return [drawn(*leading, *size, **how) for size in sizes]


def looked_up(entries, *temp):
    """Return a case: the value of each key, with a temp or with the default."""
    return lambda student, rng: [student.lookup({**entries}, key, *temp) for key in entries]


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    Q, K, V = (recipe(rng) for recipe in qkv(2, 3))
    assert_written_by_hand(
        student,
        lambda: student.attention(Q, K, V),
        lambda: student.lookup({**ANY_KEYS}, 7),
    )


test_blend_of_values = Check(
    "With the default temp, the output is the plain softmax of the scores times the values.",
    points=2,
)
values = test_blend_of_values.case
values("No leading axis.", output("attention", *qkv()), about="leading axes")
values(
    "All sizes equal.",
    output("attention", *qkv(4, n_queries=4, n_keys=4, d_value=4)),
    about="square",
)
values("Other sizes.", output("attention", *qkv(n_queries=8, n_keys=2, d_key=5)), hidden=True)


test_temp = Check(
    "Dividing by temp does the same as dividing all queries by it, for any temp above 0.",
    about="options",
)
for temp in (3.0, 1 / 3):
    test_temp.case(f"A temp of {temp:.2g}.", output("attention", *qkv(2), temp))
test_temp.case("A temp of 0.7.", output("attention", *qkv(n_keys=6), 0.7), hidden=True)
test_temp.case("A huge temp.", output("attention", *qkv(2), 1e9), about="extreme scores")


@test_temp.case
def near_zero(student, rng):
    """Temps of 0.05, 0.005 and 0.0005, with queries as small."""
    Q, K, V = (recipe(rng) for recipe in qkv(2))
    return [student.attention(Q * temp, K, V, temp=temp) for temp in (0.05, 0.005, 0.0005)]


test_temp.case(
    "Equal scores at a temp of a hundred-thousandth.",
    output("attention", torch.zeros(3, 4).double(), drawn(5, 4), drawn(5, 6), 1e-5),
    about="extreme scores",
)


test_leading_axes_and_views = Check(
    "Q, K and V may have any leading axes and may be views, such as transposed tensors.",
    about="leading axes",
)
axes = test_leading_axes_and_views.case
axes("One leading axis.", output("attention", *qkv(2)), about="values")
axes(
    "More queries than keys.",
    output("attention", *qkv(2, n_queries=7, n_keys=4, d_key=3)),
    about="values",
)
axes("Two leading axes.", output("attention", *qkv(2, 3, n_keys=6, d_key=5)))
axes("Leading axes of 1 and 2.", output("attention", *qkv(1, 2)), hidden=True)
axes("Three leading axes.", output("attention", *qkv(2, 1, 3)))
for what, size in (
    ("query", "n_queries"),
    ("key", "n_keys"),
    ("column of keys", "d_key"),
    ("column of values", "d_value"),
):
    axes(f"One {what}.", output("attention", *qkv(2, **{size: 1})), about="single")
axes("One of each.", output("attention", *qkv(1, n_queries=1, n_keys=1)), about="single")
axes("Transposed views.", output("attention", *map(turned, qkv(2))), about="views")
axes(
    "Two leading axes that were swapped.",
    output("attention", *(turned(each, 0, 1) for each in qkv(2, 3))),
    about="views",
)


@axes(about="views")
def views_work(student, rng):
    """Whether views work whose two leading axes were swapped."""
    views = [turned(each, 0, 1)(rng) for each in qkv(2, 3)]
    whole = [view.contiguous() for view in views]
    return works_too(lambda: student.attention(*whole), lambda: student.attention(*views))


test_arguments_are_left_alone = Check(
    "Q, K, V and the entries are not modified.",
    about="writes",
)
writes = test_arguments_are_left_alone.case
for temp in (0.5, 1.0):
    writes(
        f"Which numbers in Q, K and V are others after a call with temp {temp:g}.",
        changed("attention", *qkv(2), temp),
    )
writes(
    "Which numbers are others with two leading axes.",
    changed("attention", *qkv(3, 2), 0.8),
    hidden=True,
)
writes(
    "Which numbers in views are others after a call.",
    changed("attention", *map(turned, qkv(3)), 0.8),
    hidden=True,
)


@writes
def entries_afterwards(student, rng):
    """Whether the entries are the same after `lookup`."""
    given = {40: [2.5, -3], 7: [1, 4.5]}
    before = repr(given)
    student.lookup(given, 40)  # an error here is not about the entries
    untouched = works(lambda: written(student, student.lookup, given, 40))
    return often(untouched and repr(given) == before)


test_scores_of_any_size = Check(
    "Scores of ±1e4 give finite results, whatever the scores of the other queries are.",
    about="extreme scores",
)
scores = test_scores_of_any_size.case
# Whole numbers, so that scores are exact in every floating type.
Q = torch.tensor([[1, -2, 0, 0], [0, 1, 2, 0], [-1, 1, -1, 0]]).double()
K = torch.tensor([[2, 0, 1, 1], [1, -1, 0, 1], [0, 2, -2, 1], [-1, 1, 2, 1], [-2, 1, 1, 1]])
K = K.double()
APART = torch.tensor([[0, 0, 0, 1e4], [0, 0, 0, 0], [0, 0, 0, -1e4]]).double()
scores("Scores of ten thousand.", output("attention", Q * 1e4, K, drawn(5, 6)))
scores(
    "Queries whose scores lie ten thousand apart.", output("attention", Q + APART, K, drawn(5, 6))
)
scores("Scores around minus ten thousand.", output("attention", Q + APART[2], K, drawn(5, 6)))
scores(
    "Scores of ten thousand, with a leading axis.",
    output(
        "attention",
        lambda rng: rng.permutation(24).double().view(2, 4, 3) * 1e3,
        lambda rng: rng.permutation(30).double().view(2, 5, 3),
        drawn(2, 5, 6),
    ),
    hidden=True,
)
scores("A temp near 0.", output("attention", Q, K, drawn(5, 6), 1e-4))
scores("Scores of -3e4.", output("attention", -3e4 * Q, K, drawn(5, 7)), hidden=True)


@scores
def too_large(student, rng):
    """Which queries get a finite output if their scores rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64).view(24, 1)
    Q, K, V = rng.rand(24, 4), rng.rand(5, 4), rng.randn(5, 6)
    Q, K = torch.cat([Q, levels], dim=-1), torch.cat([K, torch.ones(5, 1)], dim=-1)
    return student.attention(Q, K, V)[:, 0].isfinite()


test_gradients = Check(
    "Gradients reach Q, K and V, and are those of what the code computes.",
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of Q, K and V.", gradient("attention", *qkv(2)))
slopes("The gradients at temp 2, without a leading axis.", gradient("attention", *qkv(), 2.0))
slopes("The gradients at temp 0.5, with a leading axis.", gradient("attention", *qkv(2), 0.5))
slopes("The gradients with two leading axes.", gradient("attention", *qkv(3, 2), 0.8), hidden=True)


test_dtypes = Check(
    "The output has the dtype of the inputs, also in half precision; `lookup` gives float32.",
    about="dtype",
)
dtypes = test_dtypes.case
for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    inputs = qkv(2, dtype=dtype, times=0.3)
    dtypes(f"Inputs in {name}.", output("attention", *inputs), within=(6e-2, 5e-2))
dtypes(
    "Two leading axes in bfloat16.",
    output("attention", *qkv(2, 3, dtype=torch.bfloat16, times=0.3)),
    within=(6e-2, 5e-2),
    hidden=True,
)
dtypes("Inputs in float64.", output("attention", *qkv(3)), hidden=True)
dtypes("Lists of whole numbers.", looked_up({0: [2, 3], 1: [5, 7], 2: [3, 2]}, 1.0))


@dtypes
def whole_numbers_work(student, rng):
    """Whether lists of whole numbers work."""
    halves, whole = ({0: [x, 3 * x], 1: [5 * x, 7 * x]} for x in (0.5, 1))
    return works_too(lambda: student.lookup(halves, 1), lambda: student.lookup(whole, 1))


test_misuse = Check(
    "A temp of 0 or below raises ValueError, and an unknown key raises KeyError.",
    about="refusals",
)
misuses = test_misuse.case
for temp in (0.0, -1.0):
    misuses(f"A temp of {temp:g}.", refused("attention", *qkv(2), temp))
    misuses(f"`lookup` with a temp of {temp:g}.", refused("lookup", ANY_KEYS, 7, temp))
    misuses(
        f"`lookup` in a single entry with a temp of {temp:g}.",
        refused("lookup", ONE_ENTRY, 7, temp),
    )
misuses("A temp of -0.25.", refused("attention", *qkv(), -0.25), hidden=True)
for key in (8, 39, -1):
    misuses(f"The key {key}, which is not there.", refused("lookup", ANY_KEYS, key))
misuses("A key that is not there, beside a single entry.", refused("lookup", ONE_ENTRY, 0))


test_lookup = Check(
    "`lookup` returns the value of a key; a larger temp mixes in the other values.",
    about="lookup",
)
lookup = test_lookup.case
IN_ORDER = {0: [2.5, 3, -1, 4], 1: [5, -7, 0.5, 6], 2: [3, 2, 9, -8]}
lookup("The keys 0, 1 and 2 in this order, with the default temp.", looked_up(IN_ORDER))
lookup("The keys 0, 1 and 2 in this order, with temp 1.", looked_up(IN_ORDER, 1.0))
lookup("A single entry.", looked_up({0: [1.5, -2.0, 2500]}))
lookup("A single entry of one number.", looked_up({7: [1.5]}))
lookup("Lists of one number.", looked_up({0: [2], 1: [-4.5], 2: [7]}, 0.4), hidden=True)


test_lookup_of_any_keys = Check(
    "The keys may be any ints, in any order, and the values may be floats.",
    about="lookup",
)
keys = test_lookup_of_any_keys.case
keys("Each key looked up with the default temp.", looked_up(ANY_KEYS))
for temp in (1.0, 0.4):
    keys(f"Each key looked up with temp {temp:g}.", looked_up(ANY_KEYS, temp))
for sentence, entries in (
    ("The keys 2, 0 and 1 in this order.", dict(zip((2, 0, 1), IN_ORDER.values()))),
    ("The keys 5, -1, 0 and -6.", dict(zip((5, -1, 0, -6), ANY_KEYS.values()))),
    ("Keys in any order and lists of one number.", {5: [2], 1: [-4], 3: [7]}),
    (
        "Keys of billions that differ by one, and values of thousands.",
        {2**40: [2500, 3, -1, 4], 2**40 + 1: [5, -7e5, 0.5, 6], -1: [3, 2, 9, -8]},
    ),
):
    keys(sentence, looked_up(entries, 1.0))
keys("Other keys.", looked_up({38: [0.5, 4], -9: [-3, 2], 11: [5, 7.5], 2: [1, 0]}), hidden=True)


test_no_python_loops = Check("No Python loop runs over batch, queries or keys.")


@test_no_python_loops.case
def many_queries_and_keys(student, rng):
    """Which numbers of the output for many queries and keys are finite."""
    inputs = [recipe(rng) for recipe in qkv(2, n_queries=19, n_keys=17)]
    return student.attention(*inputs).isfinite()


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items, queries or keys."""

    def called(batch=2, n_queries=3, n_keys=5):
        inputs = [recipe(rng) for recipe in qkv(batch, n_queries=n_queries, n_keys=n_keys)]
        with_two_axes = [each.unsqueeze(1) for each in inputs]
        return lambda: (
            student.attention(*inputs, 1.0),
            student.attention(*with_two_axes),
        )

    grown = {"batch": (105, 211), "n_queries": (106, 213), "n_keys": (109, 219)}
    axes = zip(("batch items", "queries", "keys"), grown.items())
    assert_vectorised(student, called, {axis: dict([sizes]) for axis, sizes in axes})
