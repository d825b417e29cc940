"""The checks of top-k and their cases.

What is filtered is -inf, and a mistake is named only if ten finite numbers of an answer show it. So
most cases also ask which logits are kept.
"""

import torch

from grader.authors import (
    Aspect,
    Check,
    assert_vectorised,
    changed,
    drawn,
    gradients,
    refused,
    turned,
    works_too,
)

AXES = ("row", "token")
EQUAL = Aspect("equal logits", "rows with equal logits")
LIMITS = Aspect("limits", "a k of all tokens or more", is_edge=True)
TOP_K = "top_k"


def filtered(logits, *numbers):
    """Return a case: the output for each k, and which logits are kept in it."""

    def ask(student, rng):
        given = logits(rng)
        outputs = [student.top_k(given.clone(), k) for k in numbers]
        return {"output": outputs, "kept": [output.isfinite() for output in outputs]}

    return ask


def spread(*shape, times=0.5, plus=0.0, dtype=torch.float64):
    """Return the recipe of logits in random order, of which no two are close."""

    def make(rng):
        count = torch.Size(shape).numel()
        whole = (rng.permutation(count) - count // 2).double().view(shape)
        return (whole * times + plus).to(dtype)

    return make


test_the_largest_are_kept = Check(
    "The k largest logits of each row stay where they are, and all others are -inf.", points=3
)
largest = test_the_largest_are_kept.case
largest("Three of nine logits.", filtered(drawn(6, 9), 3))
largest("The largest of seven logits.", filtered(drawn(8, 7), 1))
largest("A k of one less than all.", filtered(drawn(12, 5), 4))
largest("As many rows as tokens.", filtered(drawn(6, 6), 2), about="square")
largest("Three axes.", filtered(drawn(2, 3, 8), 3), about="leading axes")
largest("One row in a batch.", filtered(spread(1, 5), 1, 2, 3, 4), about="single")
largest("More rows than tokens.", filtered(spread(7, 3), 1, 2), hidden=True)
largest("Four axes.", filtered(spread(2, 3, 2, 6), 2, 5), about="leading axes", hidden=True)


test_no_leading_axis = Check(
    "A row without leading axes is filtered as in a batch.", about="leading axes"
)
test_no_leading_axis.case("One row without leading axes.", filtered(drawn(24), 11))
test_no_leading_axis.case("One row of seven tokens.", filtered(spread(7), 1, 3, 6), hidden=True)


test_equal_logits = Check(
    "Of equal logits, those with the lower index are kept, so that exactly k are.", about=EQUAL
)
equal = test_equal_logits.case
equal("Rows with equal logits.", filtered(lambda rng: rng.randint(0, 3, 8, 7).double(), 3))
equal("Rows in which all logits are equal.", filtered(lambda rng: torch.zeros(3, 7), 2, 4))
ROWS = torch.tensor([[2, 1, 2, 2, 0, 2, 1], [0, 0, 0, 0, 0, 0, 0], [-1, 3, -1, -1, 3, -1, 5]])
equal(
    "Rows with equal logits, for every k.",
    filtered(lambda rng: ROWS[:, rng.permutation(7)].double(), *range(1, 7)),
    hidden=True,
)


test_k_at_its_limits = Check(
    "A k of n_vocab or more keeps all logits, and a k below 1 is refused.", about=LIMITS
)
limits = test_k_at_its_limits.case
limits("A k that is larger than the vocabulary.", filtered(spread(5, 4), 9))
limits("A k of all tokens.", filtered(spread(5, 4), 4))
limits(
    "A k of one more than all tokens, and of 1000.", filtered(spread(3, 7), 8, 1000), hidden=True
)
for k in (0, -1, -2):
    limits(f"A k of {k}.", refused(TOP_K, drawn(2, 5), k), about="refusals")
limits("A k of 2 is accepted.", filtered(spread(3, 7), 2), about="values")


@limits
def large_k_works(student, rng):
    """Whether a k that is larger than the vocabulary works."""
    logits = spread(5, 4)(rng)
    return works_too(lambda: student.top_k(logits, 2), lambda: student.top_k(logits, 6))


test_logits_of_any_size = Check(
    "Logits may be negative, huge, or -inf already.", about="extreme scores"
)
sizes = test_logits_of_any_size.case
sizes("Logits far below 0.", filtered(spread(5, 7, plus=-1e4), 3))
sizes("Logits around -100.", filtered(spread(3, 7, times=1.0, plus=-100.0), 3), hidden=True)
sizes("Logits of a million.", filtered(spread(3, 7, times=1e6), 3), hidden=True)
sizes("Logits around -1e9.", filtered(spread(3, 7, times=1e3, plus=-1e9), 3), hidden=True)


def masked(rng):
    logits = spread(6, 8)(rng)
    logits[:, ::2] = -torch.inf
    return logits


sizes("Rows of which every second logit is -inf.", filtered(masked, 5))


test_gradients = Check("Gradients reach the kept logits.", about="gradient")


def gradient_of_kept(logits, k):
    """Return a case: the gradient of the logits that are not -inf."""

    def ask(student, rng):
        def kept(given):
            output = student.top_k(given, k)
            return output.masked_fill(output == -torch.inf, 0.0)

        return gradients(kept, logits(rng))

    return ask


test_gradients.case("The gradient of the kept logits.", gradient_of_kept(spread(5, 7), 3))
test_gradients.case(
    "The gradient with two of eight kept.", gradient_of_kept(spread(4, 8), 2), hidden=True
)


test_gradients.case(
    "The gradient with three axes.", gradient_of_kept(spread(2, 3, 7), 3), hidden=True
)


test_arguments = Check(
    "logits may be a view and is not modified, and the output has its dtype.", about="views"
)
arguments = test_arguments.case
arguments("A transposed view.", filtered(turned(spread(5, 7)), 3))
arguments("A view of three axes.", filtered(turned(spread(2, 3, 6), 0, 2), 4), hidden=True)
arguments("Which logits are others after a call.", changed(TOP_K, spread(6, 7), 3), about="writes")
for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    arguments(f"Logits in {name}.", filtered(spread(5, 7, dtype=dtype), 3), about="dtype")


arguments(
    "Which logits of three axes are others.",
    changed(TOP_K, spread(2, 3, 7), 3),
    about="writes",
    hidden=True,
)
arguments(
    "Three axes in bfloat16.",
    filtered(spread(2, 3, 7, dtype=torch.bfloat16), 3),
    about="dtype",
    hidden=True,
)
arguments(
    "Three axes of large logits.",
    filtered(spread(2, 3, 7, times=1e6), 3),
    about="extreme scores",
    hidden=True,
)
arguments(
    "One row in each item of three axes.", filtered(spread(2, 1, 7), 3), about="single", hidden=True
)


test_no_python_loops = Check("No Python loop runs over rows or tokens.", points=0)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of rows or tokens."""

    def called(rows=2, n_vocab=5):
        logits = spread(rows, n_vocab)(rng)
        return lambda: [student.top_k(each, 3) for each in (logits, logits[0], logits[:, None])]

    grown = {"rows": {"rows": (9, 19)}, "tokens": {"n_vocab": (17, 35)}}
    assert_vectorised(student, called, grown)
