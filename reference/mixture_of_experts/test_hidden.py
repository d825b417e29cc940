"""The checks of the mixture of experts and their cases."""

import math

import pytest
import torch

from grader.authors import (
    Aspect,
    Check,
    assert_moves,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    often,
    output,
    output_of,
    parameters,
    refused,
    turned,
    watched,
    works_too,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "feature")
ROUTE, LOSS, CLASS = "route", "load_balance_loss", "MixtureOfExperts"
D, D_FF, EXPERTS = 3, 4, 6
X = drawn(2, 9, D)
WORK = Aspect("work", "how many tokens the experts compute", is_edge=True)
LOW = torch.bfloat16


def mixture(top_k=2, d_ff=D_FF, experts=EXPERTS, d_model=D, **options):
    """Return what makes a module with random parameters."""
    return built(CLASS, d_model, d_ff, experts, top_k, **options)


def spread(*shape, dtype=torch.float64, times=0.25):
    """Return the recipe of logits of which no two of a row are close."""

    def make(rng):
        rows = [rng.permutation(shape[-1]) - 2 for _ in range(math.prod(shape[:-1]))]
        return (torch.stack(rows) * times).to(dtype).view(shape)

    return make


def losses(*kinds):
    """Return a case: the loss of some logits for some top_k, a dozen times at least."""

    def ask(student, rng):
        return often(*(student.load_balance_loss(logits(rng), k) for logits, k in kinds))

    return ask


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The mixture is written by hand, without a function of torch that does all of it."""
    x = rng.randn(2, 4, D, dtype=torch.float32)
    assert_written_by_hand(student, lambda: output_of(student.MixtureOfExperts(D, 4, 3, 2), x))


test_route = Check(
    "The gates are a softmax over the top_k largest logits, the largest first.", points=5
)
routed = test_route.case
routed("Two of six experts.", output(ROUTE, drawn(2, 5, 6), 2))
routed("Three of four, two axes.", output(ROUTE, drawn(7, 4), 3), about="leading axes")
routed("One expert each.", output(ROUTE, drawn(3, 4, 5), 1), about="single")
routed("All experts.", output(ROUTE, drawn(2, 7, 5), 5), about="options")
routed("Four axes.", output(ROUTE, drawn(2, 3, 4, 5), 2), about="leading axes")
routed("As many tokens as experts.", output(ROUTE, drawn(5, 5, 5), 3), about="square")
routed("One token.", output(ROUTE, spread(1, 1, 9), 4), about="single")
routed("Large logits.", output(ROUTE, spread(2, 4, 6, times=1e4), 3), about="extreme scores")
routed("Four of nine experts.", output(ROUTE, drawn(3, 4, 9), 4), hidden=True)


test_loss = Check("The loss is num_experts times the sum of f times P.", points=5)
loss = test_loss.case
loss("Two of six experts, of a dozen logits.", losses(*[(drawn(2, 5, 6), 2)] * 12))
loss("One of four experts.", losses(*[(drawn(7, 4), 1)] * 12), about="single")
loss("Three of five experts.", losses(*[(drawn(3, 4, 5), 3)] * 12))
loss("Four axes of logits.", losses(*[(drawn(2, 2, 3, 4), 2)] * 12), about="leading axes")
loss("All experts, which are balanced.", losses(*[(drawn(2, 3, 4), 4)] * 12), about="options")
loss("Large logits in the loss.", losses((spread(2, 4, 6, times=1e4), 3)), about="extreme scores")
loss("One token alone.", losses(*[(drawn(1, 1, 7), 2)] * 12), about="single")
loss("As many tokens as experts in the loss.", losses(*[(drawn(4, 4, 4), 2)] * 12), about="square")
loss("Three of eight experts.", losses(*[(drawn(3, 4, 8), 3)] * 12), hidden=True)


test_layers = Check(
    "The layers are a router without bias and the experts.", points=2, about="layers"
)
test_layers.case("The parameters.", parameters(CLASS, D, D_FF, EXPERTS, 2))
test_layers.case("The parameters of other sizes.", parameters(CLASS, 5, 7, 3, 1), hidden=True)


test_output = Check(
    "A token's output is the sum of its experts' outputs, weighed by the gates.", points=4
)
values = test_output.case
values("Two experts of six.", output(mixture(), X))
values("Three experts of four.", output(mixture(3, 5, 4), drawn(2, 7, D)))
values("One expert.", output(mixture(1), X), about="single")
values("All of three experts.", output(mixture(3, experts=3), X), about="options")
values("Two axes.", output(mixture(), drawn(8, D)), about="leading axes")
values("Four axes of tokens.", output(mixture(), drawn(2, 3, 4, D)), about="leading axes")
values("One token of one sentence.", output(mixture(), drawn(1, 1, D)), about="single")
values("One feature.", output(mixture(d_model=1), drawn(2, 5, 1)), about="single")
values("Sizes that are equal.", output(mixture(2, 4, 4, 4), drawn(4, 4, 4)), about="square")
values("Training mode.", output(mixture(training=True), X), about="training")
large = output(mixture(), drawn(2, 9, D, times=1e3))
values("Inputs of a thousand.", large, about="extreme scores")
same = lambda rng: rng.randn(1, 1, D).repeat(2, 11, 1)  # noqa: E731 - all tokens are alike
values("Tokens that all choose the same experts.", output(mixture(), same))
values("Four experts of seven.", output(mixture(4, experts=7), drawn(3, 5, D)), hidden=True)


test_gradients = Check(
    "Gradients reach x, the experts and the router, through the gates and the loss.",
    points=3,
    about="gradient",
)


def slopes(call, inputs):
    """Return a case: the gradients of what `call(what, x)` gives; those that are missing are 0."""

    def ask(student, rng):
        what, x = call(student, rng), inputs(rng).requires_grad_()
        found = what(x)
        weights = torch.linspace(-1, 1, found.numel(), dtype=torch.float64) ** 3 + 0.5
        (found * weights.view(found.shape)).sum().backward()
        leaves = {"x": x, **dict(getattr(what, "named_parameters", dict)())}
        zero = {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
        return {n: zero[n] if leaf.grad is None else leaf.grad for n, leaf in leaves.items()}

    return ask


class Part:
    """A module of which one result is used: the output or the loss."""

    def __init__(self, module, place):
        self.named_parameters, self._module, self._place = module.named_parameters, module, place

    def __call__(self, x):
        return self._module(x)[self._place]


def part(make, place):
    """Return what makes a module of which the output (0) or the loss (1) is used."""
    return lambda student, rng: Part(make(student, rng), place)


reach = test_gradients.case
reach("The gradients of the output.", slopes(part(mixture(3), 0), X))
reach("The gradients of the loss.", slopes(part(mixture(), 1), X))
reach("The gradients of the gates.", slopes(lambda s, _: lambda x: s.route(x, 3)[0], drawn(5, 6)))
ask = slopes(lambda s, _: lambda x: s.load_balance_loss(x, 2), drawn(3, 5, 6))
reach("The gradients of the loss of logits.", ask)
ask = slopes(part(mixture(training=True), 0), drawn(7, D))
reach("The gradients of two axes in training.", ask, hidden=True)
ask = slopes(lambda s, _: lambda x: s.load_balance_loss(x, 3), drawn(8, 5))
reach("The gradients of the loss of two axes.", ask, hidden=True)
ask = slopes(lambda s, _: lambda x: s.route(x, 2)[0], drawn(2, 3, 4))
reach("The gradients of the gates of three axes.", ask, hidden=True)


test_work = Check("An expert computes only the tokens that chose it.", points=2, about=WORK)


def needs_more(leading, d_ff, experts, top_k):
    """Return a case: whether a call keeps more numbers than n * top_k rows of hidden units need."""

    def ask(student, rng):
        module, x = mixture(top_k, d_ff, experts)(student, rng), rng.randn(*leading, D)
        with watched(student, memory=True) as seen:
            module(x)
        return often(seen.peak > 16 * 8 * math.prod(leading) * top_k * d_ff)

    return ask


test_work.case("Whether all of 20 experts compute.", needs_more((40,), 64, 20, 1))
ask = needs_more((5, 6), 72, 32, 2)
test_work.case("Whether more than two of 32 experts compute.", ask, hidden=True)


test_refusals = Check(
    "A top_k below 1 or above num_experts is refused.", points=2, about="refusals"
)
refusals = test_refusals.case
for k in (0, -1, 7):
    refusals(f"A top_k of {k} in route.", refused(ROUTE, drawn(5, 6), k))
    refusals(f"A top_k of {k} in the loss.", refused(LOSS, drawn(5, 6), k))
    refusals(f"A top_k of {k} in the module.", refused(mixture(k), X))
refusals("A top_k of 5 for three experts.", refused(mixture(5, experts=3), X), hidden=True)


test_argument = Check(
    "x and logits may be views or in bfloat16, and are not modified.", points=2, about="views"
)
views = test_argument.case
for name, args in ((ROUTE, (2,)), (LOSS, (2,)), ("the module", ())):
    inputs = X if name == "the module" else drawn(4, 5, 6)
    target = mixture() if name == "the module" else name
    ask = output(target, turned(inputs, 0, 1), *args)
    views(f"A view for {name}.", (lambda s, r, ask=ask: often(ask(s, r))) if name == LOSS else ask)
    ask = changed(target, inputs, *args)
    views(f"Which numbers of the argument of {name} are others.", ask, about="writes")
for name, target, width, *args in ((ROUTE, ROUTE, 6, 2), (LOSS, LOSS, 5, 2), (CLASS, mixture(), D)):
    for shown, inputs, about in (
        ("A view", turned(drawn(7, width)), "views"),
        ("Numbers of 10,000", drawn(8, width, times=1e4), "extreme scores"),
        ("One row", drawn(1, width), "single"),
    ):
        ask = output(target, inputs, *args)
        ask = (lambda s, r, ask=ask: often(ask(s, r))) if name == LOSS else ask
        views(f"{shown} of two axes for {name}.", ask, about=about)
    ask = changed(target, drawn(7, width), *args)
    views(f"Which numbers of two axes are others after {name}.", ask, about="writes")
half = output(ROUTE, spread(7, 6, dtype=LOW), 3)
views("Two axes of logits in bfloat16.", half, about="dtype", within=(0.1, 0.1), hidden=True)
ask = output(mixture(), turned(drawn(3, 7, D)))
views("Other axes of x are swapped.", ask, hidden=True)


def in_bfloat16(*shape, training=False):
    """Return a case: the output of tokens that are one-hot, so that rounding chooses no expert."""

    def ask(student, rng):
        options = {"experts": 4, "d_model": shape[-1], "dtype": LOW, "training": training}
        module = mixture(2, **options)(student, rng)
        columns = spread(shape[-1], 4, times=1.0)(rng).T.to(LOW)
        module.load_state_dict({"router.weight": columns}, strict=False)
        places = rng.randint(0, shape[-1], *shape[:-1])
        return module(torch.nn.functional.one_hot(places, shape[-1]).to(LOW))

    return ask


rough = {"about": "dtype", "within": (0.1, 0.1)}
views("Logits in bfloat16.", output(ROUTE, spread(2, 5, 6, dtype=LOW), 3), **rough)
views("The loss in bfloat16.", losses(*[(spread(4, 9, 5, dtype=LOW), 2)] * 9), **rough)
# A loss that is rounded once differs by far less than one of which each step is rounded.
ask = losses(*[(spread(20, 6, dtype=LOW), 2), (spread(3, 9, 5, dtype=LOW), 3)] * 30)
views("The loss is rounded once.", ask, about="dtype", within=(0.003, 0.0))
views("The loss of 1,500 tokens in bfloat16.", losses((spread(1500, 5, dtype=LOW), 2)), **rough)
views("A module in bfloat16.", in_bfloat16(2, 7, 5), **rough)
views("Two axes in bfloat16, in training.", in_bfloat16(9, 4, training=True), hidden=True, **rough)
low = drawn(2, 9, D, dtype=torch.float32)
views("A module in float32.", output(mixture(dtype=torch.float32), low), about="dtype")


@views(about="devices")
def another_device(student, rng):
    """A module on another device."""
    make, x = lambda: student.MixtureOfExperts(D, 4, 3, 2), rng.randn(2, 5, D).float()
    return works_too(lambda: make()(x), lambda: assert_moves(make, x, x[0]))


test_no_python_loops = Check("Python loops over experts and places, not over tokens.", points=0)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""

    def called(batch=10, n_tokens=12):
        x, logits = rng.randn(batch, n_tokens, D), rng.randn(batch, n_tokens, 3)
        module = mixture(1, experts=3)(student, rng)
        calls = [lambda each=each: output_of(module, each) for each in (x, x[0], x[:, None])]
        for each in (logits, logits[0]):
            calls.append(lambda each=each: student.route(each, 2))
            calls.append(lambda each=each: student.load_balance_loss(each, 2))
        return lambda: [call() for call in calls]

    grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
    assert_vectorised(student, called, grown)
