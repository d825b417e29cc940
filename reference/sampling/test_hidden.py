"""The checks of sampling and speculation, and their cases.

Every number that decides is an argument, so an answer is known without drawing.
"""

import pytest
import torch
from torch import Tensor

from grader.authors import (
    Aspect,
    Check,
    assert_vectorised,
    assert_written_by_hand,
    changed,
    drawn,
    expect,
    output,
    refused,
    turned,
    works_as_well,
)

AXES = ("row", "token")
TIES = Aspect("ties", "tokens that are equally likely")
COLD = Aspect("temperature 0", "a temperature of 0")
DRAWS = Aspect("draws", "what `draw` returns")
ACCEPTED = Aspect("acceptance", "which draft tokens are accepted")
LAST = Aspect("the last token", "the token after those that are accepted")
SURE = Aspect("sure models", "draft tokens with a probability of 0 or 1")
LAW = "distribution"

pytestmark = pytest.mark.needs("test_written_by_hand")


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """torch's own ways to draw do not do the work."""
    probabilities = torch.softmax(rng.randn(3, 5), dim=-1)  # (k + 1, vocab)

    def call():
        student.distribution(rng.randn(2, 5), 0.7, 3, 0.8)
        student.draw(probabilities[0], 0.4)
        tokens, u = torch.tensor([1, 3]), torch.tensor([0.1, 0.9])
        return student.speculate(tokens, probabilities[:2], probabilities, u, 0.3)

    assert_written_by_hand(student, call)


def whole(*shape, among=4, dtype=torch.float64):
    """Return the recipe of whole numbers of a few values, so that many are equal."""
    return lambda rng: rng.randint(0, among, *shape).to(dtype)


test_temperature = Check("The logits are divided by the temperature.", points=2)
temperature = test_temperature.case
temperature("The default.", output(LAW, drawn(3, 5)))
for each in (0.5, 1.7):
    temperature(f"Temperature {each}.", output(LAW, drawn(2, 4, 7), each))
temperature("As many rows as tokens.", output(LAW, drawn(4, 6, 6), 0.7), about="square")
temperature("No leading axis.", output(LAW, drawn(13), 0.8), about="leading axes")
temperature("Large logits.", output(LAW, drawn(3, 7, times=1e4), 0.5), about="extreme scores")
temperature("Other rows.", output(LAW, drawn(3, 2, 8), 0.9), hidden=True)

test_cold = Check("Temperature 0 gives all to the first of the largest logits.", about=COLD)
test_cold.case("Rows without ties.", output(LAW, drawn(7, 5), 0.0))
test_cold.case("Rows with ties.", output(LAW, whole(4, 6, among=2), 0))
test_cold.case("With top-k and top-p.", output(LAW, whole(4, 6, among=3), 0.0, 3, 0.9))
test_cold.case("Other rows, temperature 0.", output(LAW, whole(3, 4, 5, among=3), 0.0), hidden=True)

test_top_k = Check(
    "Of the logits, the top_k largest stay, and those that equal the last.", points=2
)
top_k = test_top_k.case
for k in (1, 3):
    top_k(f"The {k} largest.", output(LAW, drawn(6, 7), top_k=k))
top_k("As many rows as tokens, top-k.", output(LAW, drawn(6, 6), top_k=2), about="square")
top_k("With a temperature.", output(LAW, drawn(2, 5, 7), 0.6, 4))
top_k("Equal logits.", output(LAW, whole(4, 9), top_k=3), about=TIES)
top_k("No leading axis, top-k.", output(LAW, drawn(12), top_k=5), about="leading axes")
top_k("One row, top-k.", output(LAW, drawn(1, 7), top_k=3), about="single")
top_k("Exactly the vocabulary.", output(LAW, drawn(3, 5), top_k=5), about="options")
top_k(
    "Whether a top_k above the vocabulary works.",
    works_as_well(LAW, [drawn(3, 5), 1.0, 5], [drawn(3, 5), 1.0, 9]),
    about="options",
)
top_k(
    "Logits of -inf.",
    output(LAW, lambda rng: hidden_logits(rng, 4, 7), top_k=3),
    about="extreme scores",
)
top_k("Other rows, top-k.", output(LAW, drawn(3, 2, 9), 1.3, 2), hidden=True)
top_k("Other equal logits.", output(LAW, whole(5, 8), top_k=2), about=TIES, hidden=True)


def hidden_logits(rng, *shape):
    """Return logits of which every row has some of -inf."""
    logits = rng.randn(*shape)
    logits[..., 1::2] = -torch.inf
    return logits


test_top_p = Check("Of the probabilities, the likely ones with a mass of top_p stay.", points=3)
top_p = test_top_p.case
for p in (0.3, 0.7, 0.95):
    top_p(f"A mass of {p}.", output(LAW, drawn(6, 7), top_p=p))
top_p("As many rows as tokens, top-p.", output(LAW, drawn(7, 7), top_p=0.6), about="square")
top_p("With a temperature, top-p.", output(LAW, drawn(2, 5, 7), 0.5, top_p=0.8))
top_p("After top-k.", output(LAW, drawn(8, 9), top_k=5, top_p=0.75), about="options")
top_p("Equal logits, top-p.", output(LAW, whole(6, 8), top_p=0.6), about=TIES)
top_p("All equal.", output(LAW, torch.zeros(2, 7).double(), top_p=0.5), about=TIES)
top_p("No leading axis, top-p.", output(LAW, drawn(12), top_p=0.85), about="leading axes")
top_p("One sentence of three rows.", output(LAW, drawn(1, 3, 7), top_p=0.7), about="single")
top_p("A mass of 1.", output(LAW, drawn(3, 5), top_p=1.0), about="options")
top_p("Next to nothing.", output(LAW, drawn(6, 5), top_p=1e-6), about="options")
top_p(
    "Large logits, top-p.", output(LAW, drawn(3, 7, times=1e4), top_p=0.9), about="extreme scores"
)
LARGE = drawn(2, 3, 7, times=1e4)
top_p("Large logits, all steps.", output(LAW, LARGE, 0.7, 3, 0.9), about="extreme scores")
top_p("Other rows, top-p.", output(LAW, drawn(3, 2, 9), 1.4, top_p=0.65), hidden=True)
top_p("All steps.", output(LAW, drawn(3, 3, 11), 1.5, 6, 0.7), about="options", hidden=True)
top_p("Other equal logits, top-p.", output(LAW, whole(7, 9), top_p=0.4), about=TIES, hidden=True)


def number(value):
    """Return an int, or a tensor of one, as an int."""
    is_one = isinstance(value, Tensor) and value.numel() == 1 and not value.is_floating_point()
    expect(is_one or type(value) is int, "the output is not an int")
    return int(value)


def draws(make, *numbers):
    """Return a case: the tokens for each number, from the probabilities of each row."""
    return lambda student, rng: torch.tensor(
        [[number(student.draw(row.clone(), u)) for u in numbers] for row in make(rng)]
    )


def likely(*shape):
    """Return the recipe of probabilities."""
    return lambda rng: torch.softmax(1.5 * rng.randn(*shape), dim=-1)


EIGHTHS = ([2, 0, 4, 1, 1], [0, 0, 3, 5, 0], [1, 1, 1, 1, 4])


def eighths(rng):
    """Return probabilities whose sums are exact, in an order that is drawn."""
    return (torch.tensor(EIGHTHS)[rng.permutation(3)] / 8).double()


EVENLY = [place / 8 for place in range(8)]

test_draw = Check("`draw` counts the cumulative sums that are at most u.", points=2, about=DRAWS)
test_draw.case("Random probabilities.", draws(likely(6, 5), 0.05, 0.35, 0.65, 0.95))
test_draw.case("Where u is a cumulative sum.", draws(eighths, *EVENLY))
test_draw.case("Other probabilities.", draws(likely(4, 9), 0.02, 0.44, 0.71, 0.99), hidden=True)


def models(rng, k, vocab=5):
    """Return the arguments of `speculate` but u: random models that have drawn random tokens."""
    draft, target = likely(k, vocab)(rng), likely(k + 1, vocab)(rng)
    return rng.randint(0, vocab, k), draft, target


def refusable(rng, k, vocab=5):
    """Return the arguments of `speculate` but v; each u surely accepts or refuses its token."""
    _, draft, target = models(rng, k, vocab)
    return (draft - target[:k]).argmax(dim=-1), draft, target, rng.rand(k).round() * 0.999


def last_tokens(k, times=40, vocab=5):
    """Return a case: how many tokens come from each call, and the last of them."""

    def ask(student, rng):
        calls = [(*refusable(rng, k, vocab), float(rng.rand(1))) for _ in range(times)]
        found = [listed(student.speculate(*call), k) for call in calls]
        return torch.tensor([[len(tokens), tokens[-1]] for tokens in found])

    return ask


def speculated(k, factor=1.0, least=0.0, times=24, vocab=5, last=True):
    """Return a case: the tokens of many calls, (times, k + 1), -1 behind the last.

    The uniform numbers lie between `least` and `least + factor`; without `last`, the last token of
    a call counts as -1.
    """

    def ask(student, rng):
        found = torch.full((times, k + 1), -1)
        for row in found:
            u, v = least + factor * rng.rand(k), float(rng.rand(1))
            tokens = listed(student.speculate(*models(rng, k, vocab), u, v), k)
            row[: len(tokens)] = torch.tensor(tokens)
            if not last:
                row[len(tokens) - 1] = -1
        return found

    return ask


def listed(tokens, k):
    """Return tokens, a list or a tensor, as a list of ints."""
    tokens = tokens.tolist() if isinstance(tokens, Tensor) and tokens.ndim == 1 else tokens
    expect(isinstance(tokens, list), "the tokens are not a list")
    expect(1 <= len(tokens) <= k + 1, f"{len(tokens)} tokens come from a draft of {k}")
    return [number(token) for token in tokens]


test_acceptance = Check("A draft token is accepted if u·q < p.", points=3, about=ACCEPTED)
acceptance = test_acceptance.case
acceptance("One draft token.", speculated(1, last=False, times=40))
acceptance("Four draft tokens.", speculated(4, last=False))
acceptance("Low uniform numbers.", speculated(3, 0.3, last=False))
acceptance("A larger vocabulary.", speculated(2, last=False, vocab=11, times=30), hidden=True)

test_refusal = Check(
    "At a refusal, the last token is drawn from max(p - q, 0).", points=4, about=LAST
)
test_refusal.case("The token after a refusal.", last_tokens(3))
test_refusal.case("One draft token, accepted or refused.", last_tokens(1))
test_refusal.case("A larger vocabulary, refused.", last_tokens(2, vocab=11), hidden=True)

test_bonus = Check("If all are accepted, the last token is drawn from target[k].", about=LAST)
test_bonus.case("Uniform numbers of 0.", speculated(3, 0.0))
test_bonus.case("No draft tokens.", speculated(0), about="single")
test_bonus.case("Two draft tokens.", speculated(2, 0.0, vocab=7), hidden=True)

test_sure = Check("Models that are sure are no exception.", about=SURE)


def sure(vocab, times=20):
    """Return a case: the tokens where p, q, or both, are 0 or 1."""

    def ask(student, rng):
        found = torch.full((times, 4), -1)
        for row in found:
            one_hot = torch.eye(vocab, dtype=torch.float64)[rng.randint(0, vocab, 4)]
            draft = torch.eye(vocab, dtype=torch.float64)[rng.randint(0, vocab, 3)]
            drafted = draft.argmax(dim=-1)
            u = rng.rand(3).round()
            u = u.clamp(max=0.999)
            tokens = listed(student.speculate(drafted, draft, one_hot, u, float(rng.rand(1))), 3)
            row[: len(tokens)] = torch.tensor(tokens)
        return found

    return ask


test_sure.case("Each model gives one token all.", sure(2))
test_sure.case("Each of three tokens.", sure(3), hidden=True)

test_arguments = Check("Half precision is kept, and no argument is modified.", about="dtype")
arguments = test_arguments.case
HALF = torch.bfloat16


def many(among, *shape):
    """Return the recipe of logits that are exact in half precision, of which none are equal."""
    return lambda rng: (rng.permutation(among) / 32).view(*shape).to(HALF)


arguments("Logits in float32.", output(LAW, drawn(3, 7, dtype=torch.float32), 0.7, 4, 0.9))
arguments("Logits in bfloat16.", output(LAW, drawn(3, 7, dtype=HALF), 0.7))


@arguments
def many_tokens(student, rng):
    """Which of many tokens in bfloat16 stay."""
    return [student.distribution(many(240, 240)(rng), top_p=p) > 0 for p in (0.5, 0.8, 0.95)]


arguments("Temperature 0 in bfloat16.", output(LAW, drawn(3, 7, dtype=HALF), 0.0))
arguments("Half precision, top-p.", output(LAW, many(30, 2, 3, 5), 0.5, top_p=0.6))
arguments("A view, and no options.", output(LAW, turned(drawn(7, 4))), about="views")
arguments("A transposed view.", output(LAW, turned(drawn(7, 4)), 0.8, 3, 0.7), about="views")
for options in ((1.0,), (0.7,), (0.0,), (1.0, 3), (1.0, None, 0.6), (0.8, 4, 0.7)):
    arguments(
        f"Which logits are others after a call with {options}.",
        changed(LAW, drawn(3, 7), *options),
        about="writes",
    )


@arguments(about="writes")
def models_afterwards(student, rng):
    """Which arguments of `speculate` are others after a call."""
    return changed("speculate", *models(rng, 3), 0.4 + 0.6 * rng.rand(3), 0.3)(student, rng)


arguments(
    "Which logits of three axes are others.",
    changed(LAW, drawn(2, 3, 5), 0.6, 2, 0.9),
    about="writes",
    hidden=True,
)
arguments(
    "A view of three axes.",
    output(LAW, turned(drawn(2, 7, 3), 0, 2), 0.8, 2, 0.9),
    about="views",
    hidden=True,
)
arguments(
    "Other logits in float16.", output(LAW, drawn(4, 5, dtype=torch.float16), 1.2, 3), hidden=True
)

test_refusals = Check("Wrong options are refused with ValueError.", about="refusals")
for options in (
    (-0.5,),
    (-1,),
    (1.0, 0),
    (1.0, -2),
    (1.0, None, 0.0),
    (1.0, None, -0.3),
    (1.0, None, 1.2),
):
    test_refusals.case(f"The options {options}.", refused(LAW, drawn(2, 5), *options))
test_refusals.case("A temperature of -2.", refused(LAW, drawn(5), -2.0), hidden=True)

test_loops = Check("No loop runs over rows or tokens.", points=0)


@test_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of `distribution` does not grow with the rows or the tokens."""

    def called(rows=3, vocab=7):
        logits = rng.randn(rows, vocab)
        calls = ((logits, 0.7, 4, 0.9), (logits.unsqueeze(1), 0.7), (logits[0],))
        return lambda: [student.distribution(*each) for each in calls]

    assert_vectorised(student, called, {"rows": {"rows": (11, 23)}, "tokens": {"vocab": (17, 35)}})
