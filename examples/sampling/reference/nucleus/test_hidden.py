"""The checks of nucleus filtering and their cases.

What is filtered is -inf, and a mistake is named only if ten finite numbers of an answer show it. So
most cases also ask which logits are kept. No sum of probabilities lies near p, so that no rounding
decides.
"""

import torch

from grader.authors import Aspect, Check, assert_vectorised, changed, gradients, refused, turned

AXES = ("row", "token")
EQUAL = Aspect("equal logits", "rows of equally likely tokens")
LIMITS = Aspect("limits", "a p near 0, and a p of 1", is_edge=True)
NUCLEUS = "nucleus"
SHARES = ((40, 25, 15, 10, 6, 4), (70, 12, 8, 5, 3, 2), (22, 20, 19, 15, 13, 11))
LEVELS = (0.3, 0.5, 0.73, 0.87, 0.95)  # of p; each at least a hundredth from every sum


def filtered(logits, *levels):
    """Return a case: the output for each p, and which logits are kept in it."""

    def ask(student, rng):
        given = logits(rng)
        outputs = [student.nucleus(given.clone(), p) for p in levels]
        return {"output": outputs, "kept": [output.isfinite() for output in outputs]}

    return ask


def rows(*leading, dtype=torch.float64):
    """Return the recipe of the logits of six tokens in random order, with the shares above."""

    def make(rng):
        count = torch.Size(leading).numel()
        found = [torch.tensor(SHARES[n % 3])[rng.permutation(6)] for n in range(count)]
        logits = (torch.stack(found) / 100.0).double().log()  # (count, 6)
        return (logits + rng.randn(count, 1)).view(*leading, 6).to(dtype)

    return make


def whole(*shape, dtype=torch.float64, times=1.0):
    """Return the recipe of whole numbers in random order, exact in every floating type."""

    def make(rng):
        count = torch.Size(shape).numel()
        return ((rng.permutation(count).double() - count // 2) * times).view(shape).to(dtype)

    return make


test_the_smallest_set = Check(
    "The most likely tokens are kept until their probabilities add up to at least p.", points=3
)
smallest = test_the_smallest_set.case
smallest("Half of the probability, and nearly three quarters.", filtered(rows(8), 0.5, 0.73))
smallest("Nearly all of the probability.", filtered(rows(9), 0.87, 0.95))
smallest("As many rows as tokens.", filtered(rows(6), 0.3, 0.73), about="square")
smallest("Three axes.", filtered(rows(4, 3), 0.5, 0.87), about="leading axes")
smallest("One row in a batch.", filtered(rows(1), *LEVELS), about="single")
smallest("Four rows.", filtered(rows(4), *LEVELS), hidden=True)
smallest("Four axes.", filtered(rows(2, 2, 3), *LEVELS), about="leading axes", hidden=True)


test_no_leading_axis = Check(
    "A row without leading axes is filtered as in a batch.", about="leading axes"
)
test_no_leading_axis.case("One row without leading axes.", filtered(rows(), *LEVELS))
test_no_leading_axis.case("One row, and other p.", filtered(rows(), 0.1, 0.6, 0.9), hidden=True)


test_equal_logits = Check(
    "Of equally likely tokens, those with the lower index are kept first.", about=EQUAL
)
test_equal_logits.case(
    "Rows of equally likely tokens.",
    filtered(lambda rng: torch.zeros(2, 7, dtype=torch.float64), 0.2, 0.45, 0.63, 0.81),
)
NUMBERS = torch.tensor([[2, 1, 2, 2, 0, 2, 1], [-1, 1, -1, -1, 1, -1, 2]])
test_equal_logits.case(
    "Rows of which some tokens are equally likely.",
    filtered(lambda rng: NUMBERS[:, rng.permutation(7)].double(), 0.2, 0.45, 0.63, 0.81),
    hidden=True,
)


test_one_token_is_left = Check(
    "However small p is, the most likely token of each row is kept, and no other.", about=LIMITS
)
test_one_token_is_left.case("A p of a thousandth.", filtered(rows(12), 0.001))
test_one_token_is_left.case(
    "A p of 1e-6, and of a tenth.", filtered(rows(6), 1e-6, 0.1), hidden=True
)


test_all_tokens = Check(
    "With p = 1, all tokens are kept, even those with almost no probability.", about=LIMITS
)
every = test_all_tokens.case
every("A p of 1.", filtered(rows(4), 1.0))
every(
    "A p of 1 where most tokens have almost no probability.",
    filtered(lambda rng: rows(6)(rng) * 200, 1.0),
)
every("A p of 1 for logits in float32.", filtered(rows(4, dtype=torch.float32), 1.0))
every(
    "A p of 1 for logits that lie far apart.", filtered(whole(3, 4, times=30.0), 1.0), hidden=True
)


test_p_that_does_not_fit = Check(
    "A p of 0 or below, or above 1, is refused with ValueError.", about="refusals"
)
misuses = test_p_that_does_not_fit.case
for p in (0.0, -0.1, 1.01, 1.5):
    misuses(f"A p of {p:g}.", refused(NUCLEUS, rows(2), p))
misuses("A p of -0.5.", refused(NUCLEUS, rows(4), -0.5), hidden=True)
misuses("A p of 50.", refused(NUCLEUS, rows(4), 50.0), hidden=True)
misuses("A p of a half is accepted.", filtered(rows(4), 0.5), about="values")


test_logits_of_any_size = Check(
    "A number added to all logits of a row changes nothing, and huge logits are allowed.",
    about="extreme scores",
)
sizes = test_logits_of_any_size.case
sizes(
    "Rows whose logits lie a thousand apart.",
    filtered(lambda rng: rows(6)(rng) + 1e3 * torch.arange(6)[:, None], 0.5, 0.73),
)


@sizes
def too_large(student, rng):
    """Which rows keep a token if their logits rise from 20 to 20,000."""
    levels = torch.logspace(1.3, 4.3, 24, dtype=torch.float64)[:, None]
    return student.nucleus(rows(24)(rng) + levels, 0.73).isfinite().any(dim=-1)


for far in (1e4, -1e4, -1e7):
    shift = torch.tensor([far, 0.0, -far, far])[:, None]
    sizes(
        f"Rows of logits around {far:g} and {-far:g}.",
        filtered(lambda rng, shift=shift: whole(4, 6)(rng) + shift, 0.97),
        hidden=True,
    )


test_gradients = Check("Gradients reach the kept logits.", about="gradient")


def gradient_of_kept(logits, p):
    """Return a case: the gradient of the logits that are not -inf."""

    def ask(student, rng):
        def kept(given):
            output = student.nucleus(given, p)
            return output.masked_fill(output == -torch.inf, 0.0)

        return gradients(kept, logits(rng))

    return ask


test_gradients.case("The gradient of the kept logits.", gradient_of_kept(rows(5), 0.73))
test_gradients.case(
    "The gradient with nearly all kept.", gradient_of_kept(rows(3), 0.87), hidden=True
)


test_gradients.case(
    "The gradient with three axes.", gradient_of_kept(rows(2, 3), 0.73), hidden=True
)


test_arguments = Check(
    "logits may be a view and is not modified, and the output has its dtype.", about="views"
)
arguments = test_arguments.case
arguments("A transposed view.", filtered(turned(rows(7)), 0.73))
arguments("A view of three axes.", filtered(turned(rows(2, 3), 0, 2), 0.5), hidden=True)
arguments("Which logits are others after a call.", changed(NUCLEUS, rows(8), 0.5), about="writes")
arguments("Logits in float32.", filtered(rows(5, dtype=torch.float32), 0.73), about="dtype")
arguments(
    "Logits in bfloat16, of which one or two hold nearly all of the probability.",
    filtered(whole(6, 6, dtype=torch.bfloat16, times=2.0), 0.97),
    about="dtype",
)


arguments(
    "Which logits of three axes are others.",
    changed(NUCLEUS, rows(2, 3), 0.73),
    about="writes",
    hidden=True,
)
arguments(
    "Three axes in bfloat16.",
    filtered(whole(2, 3, 6, dtype=torch.bfloat16, times=2.0), 0.97),
    about="dtype",
    hidden=True,
)
arguments(
    "Three axes of large logits.",
    filtered(whole(2, 3, 4, times=30.0), 1.0),
    about="extreme scores",
    hidden=True,
)
arguments(
    "One row in each item of three axes.", filtered(rows(2, 1), 0.73), about="single", hidden=True
)


test_no_python_loops = Check("No Python loop runs over rows or tokens.", points=0)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of rows or tokens."""

    def called(count=2, n_vocab=5):
        logits = rng.randn(count, n_vocab)
        return lambda: [student.nucleus(each, 0.6) for each in (logits, logits[0], logits[:, None])]

    grown = {"rows": {"count": (9, 19)}, "tokens": {"n_vocab": (17, 35)}}
    assert_vectorised(student, called, grown)
