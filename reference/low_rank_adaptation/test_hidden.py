"""The checks of low-rank adaptation and their cases."""

import torch

from grader.authors import (
    Check,
    argument_cases,
    assert_close,
    assert_dropped,
    assert_moves,
    assert_vectorised,
    build,
    changed,
    drawn,
    gradient,
    load_parameters,
    often,
    output,
    output_of,
    parameter_shapes,
    refused,
    slopes_with_dropout,
    turned,
    works_too,
)

AXES = ("batch item", "token", "feature")
D_IN, HIDDEN, D_OUT = 5, 7, 6
X = drawn(2, 4, D_IN)
HEAD, UP = "head", "up"
NAMES = ([HEAD], [UP], ["second.down"], ["down", HEAD])
LOW = torch.bfloat16


def made(student, r=3, alpha=2.0, dropout=0.0, sizes=(D_IN, HIDDEN, D_OUT)):
    """Return a new layer around a new linear layer."""
    return student.LowRankLinear(student.make_model(*sizes).head, r, alpha, dropout)


def layer(*args, training=False, dtype=torch.float64, **options):
    """Return what makes a layer with random parameters."""

    def make(student, rng):
        module = build(lambda: made(student, *args, **options), rng=rng, dtype=dtype)
        return module.train(training)

    return make


def adapted(*names, r=2, alpha=3.0):
    """Return what makes an adapted model with random parameters."""

    def make(student, rng):
        model = student.make_model(D_IN, HIDDEN, D_OUT)
        student.adapt(model, [*names], r, alpha)
        return build(model.double, rng=rng)  # returns the model with its new parameters

    return make


test_formula = Check(
    "The output is that of the linear layer and alpha / r times x A^T B^T.", points=3
)
values = test_formula.case
values("A rank of 3 and an alpha of 2.", output(layer(), X))
values("Two axes, more outputs than inputs.", output(layer(2, 7.0, sizes=(3, 4, 9)), drawn(4, 3)))
values("A rank above both sizes.", output(layer(9, 1.0), X), about="options")
values("All sizes equal.", output(layer(4, 8.0, sizes=(4, 4, 4)), drawn(4, 4, 4)), about="square")
values("Four axes.", output(layer(), drawn(2, 3, 4, D_IN)), about="leading axes")
values("A rank of 1 and one token.", output(layer(1, 0.5), drawn(1, 1, D_IN)), about="single")
values("Training mode without dropout.", output(layer(training=True), X), about="training")
values("A rank of 4 and an alpha of 10.", output(layer(4, 10.0), drawn(3, 4, D_IN)), hidden=True)
values("A vector of one axis.", output(layer(2, 3.0), drawn(D_IN)), about="single", hidden=True)


test_parameters = Check(
    "A starts random and B at zeros, so the output is that of the linear layer, which is frozen.",
    points=2,
    about="layers",
)


def start(r, sizes):
    """Return a case: the parameters, which are trained, and what a new layer makes of x."""

    def ask(student, rng):
        linear = build(lambda: student.make_model(*sizes), rng=rng, dtype=torch.float32).head
        new, x = student.LowRankLinear(linear, r, 2.0), rng.randn(2, 4, sizes[0]).float()
        trained = {name: often(p.requires_grad) for name, p in new.named_parameters()}
        state = new.state_dict()
        return {
            "shapes": {name: [*shape] * 10 for name, shape in parameter_shapes(new).items()},
            "trained": trained,
            "A is random": often(state["A"].unique().numel() > r),
            "B is zeros": often(bool((state["B"] == 0).all())),
            "starts as the linear layer": often(bool((new(x) - linear(x)).abs().max() < 1e-5)),
        }

    return ask


test_parameters.case("A new layer.", start(2, (D_IN, HIDDEN, D_OUT)))
test_parameters.case("A new layer of rank 5.", start(5, (4, 3, 9)), hidden=True)


test_gradients = Check(
    "Gradients reach x, A and B, and not the linear layer.", points=2, about="gradient"
)
slopes = test_gradients.case
slopes("The gradients.", gradient(layer(), X))
slopes("The gradients of two axes in training.", gradient(layer(2, training=True), drawn(3, D_IN)))
slopes("The gradients at a rank of 6.", gradient(layer(6, 9.0), drawn(4, 3, D_IN)), hidden=True)
ask = slopes_with_dropout(layer(dropout=0.4), X)
slopes("The slopes with dropout.", ask, tells=False, hidden=True)
ask = slopes_with_dropout(layer(dropout=0.4), drawn(3, D_IN))
slopes("The slopes of two axes with dropout.", ask, tells=False, hidden=True)


test_merge = Check(
    "merge and unmerge move the change into the weight and out of it, however often.", points=2
)


def after(*steps, make=None, x=X):
    """Return a case: the weight and the output after each of some calls."""

    def ask(student, rng):
        module, given, found = (make or layer(2, 5.0))(student, rng), x(rng), []
        for step in steps:
            getattr(module, step)()
            found += [module.state_dict()["linear.weight"].clone(), output_of(module, given)]
        return found

    return ask


merge = test_merge.case
merge("After merge.", after("merge"))
merge("After merge, twice.", after("merge", "merge"))
merge("After merge and unmerge.", after("merge", "unmerge", "unmerge"))
merge("After unmerge of a layer that is not merged.", after("unmerge"))
merge("After merge, unmerge and merge.", after("merge", "unmerge", "merge"))
merge("At a rate of dropout.", after("merge", make=layer(2, 5.0, 0.5)), about="options")
merge("After five calls.", after(*["merge", "unmerge"] * 2, "merge", x=drawn(3, D_IN)), hidden=True)


test_dropout = Check(
    "Dropout acts on the input of A alone, in training.", points=2, about="training"
)
training = test_dropout.case
for name, mode in (("Training", True), ("Evaluation", False)):
    ask = output(layer(dropout=1.0, training=mode), X)
    training(f"{name} mode at a rate of 1.", ask, about="training" if mode else "options")
ask = output(layer(2, 5.0, 1.0, training=True), drawn(3, D_IN))
training("Two axes in training at a rate of 1.", ask, hidden=True)
ask = output(layer(2, 5.0, 0.3), drawn(3, 4, D_IN))
training("Evaluation at a rate of 0.3.", ask, about="options", hidden=True)


def identity(student, rate, ranks):
    """Return a layer in training mode whose output is what is left of its input, of `ranks`."""
    eye, ones = torch.eye(D_IN), torch.ones(D_IN, D_IN)
    state = {"linear.weight": ones * 0, "linear.bias": ones[0] * 0, "A": ranks, "B": eye}
    new = made(student, D_IN, float(D_IN), rate, (D_IN, HIDDEN, D_IN))
    return load_parameters(new, state).train()


@training
def same_for_all_ranks(student, rng):
    """Whether all ranks of A get the same input, of which half is dropped."""
    module = identity(student, 0.5, torch.ones(D_IN, D_IN))
    found = output_of(module, torch.ones(60, D_IN, dtype=torch.float64))
    return often(bool((found - found[:, :1]).abs().max() < 1e-6), bool((found.std(0) > 0.1).all()))


@test_dropout.case(tells=False, hidden=True)
def each_number_at_the_rate(student, rng):
    """Each input of A is dropped at a rate of 0.4, or divided by 0.6."""
    module = identity(student, 0.4, torch.eye(D_IN))
    found = output_of(module, torch.ones(300, 3, D_IN, dtype=torch.float64))
    dropped = found.abs() < 0.5
    assert_close(found, (~dropped).double() / 0.6, "what is left of inputs of 1")
    assert_dropped(dropped, 0.4, "numbers of x")


test_adapt = Check(
    "adapt wraps the linear layers with the names, freezes the rest and counts what is trained.",
    points=3,
)
wrapped = test_adapt.case


def adapting(*names, r=2, alpha=3.0):
    """Return a case: the count, what is trained and whether the output is still that before."""

    def ask(student, rng):
        model = build(lambda: student.make_model(D_IN, HIDDEN, D_OUT), rng=rng, dtype=torch.float32)
        x = rng.randn(2, 4, D_IN).float()
        before = output_of(model, x)
        count = student.adapt(model, [*names], r, alpha)
        trained = {name: often(p.requires_grad) for name, p in model.named_parameters()}
        same = bool((output_of(model, x) - before).abs().max() < 1e-5)
        return {"count": [count] * 10, "trained": trained, "output is the same": often(same)}

    return ask


for names in NAMES:
    wrapped(f"What is trained after adapting {' and '.join(names)}.", adapting(*names))
    wrapped(f"The output after adapting {' and '.join(names)}.", output(adapted(*names), X))
wrapped("Two names at a rank of 4.", adapting("first.up", "second.up", r=4), hidden=True)


test_refusals = Check(
    "A rank below 1 and a name of no linear layer are refused.", points=2, about="refusals"
)
refusals = test_refusals.case
for r in (0, -1):
    refusals(f"A rank of {r}.", refused(layer(r, 1.0), X))
refusals("A name of no layer.", refused(adapted("left"), X))
refusals("One name of two that is a layer's.", refused(adapted("up", "middle"), X))
refusals("A name that ends in one.", refused(adapted("p"), X))
refusals("A layer that is not linear.", refused(adapted("act"), X))
refusals("A rank of 0 in adapt.", refused(adapted("up", r=0), X), hidden=True)
refusals("A part that holds linear layers.", refused(adapted("first"), X), hidden=True)


test_argument = Check(
    "x may be a view and is not modified; A and B have the dtype of the weight.", about="views"
)
views = test_argument.case
argument_cases(test_argument, layer, X)
views("Other axes of x are swapped.", output(layer(), turned(drawn(3, 4, D_IN))), hidden=True)
views("Two axes, swapped.", output(layer(), turned(drawn(4, D_IN))), hidden=True)
ask = changed(layer(), drawn(4, D_IN))
views("Which numbers of two axes are others after a call.", ask, about="writes", hidden=True)


def converted(dtype, *names):
    """Return a case: the dtype of the output of what is made from a model in a dtype."""

    def ask(student, rng):
        model = build(lambda: student.make_model(D_IN, HIDDEN, D_OUT), rng=rng, dtype=dtype)
        if names:
            student.adapt(model, [*names], 2, 3.0)
        new = model if names else student.LowRankLinear(model.head, 2, 3.0)
        return torch.zeros_like(new(X(rng).to(dtype)))

    return ask


for dtype in (LOW, torch.float64):
    for names in ((), (UP, HEAD)):
        shown = f"A model in {dtype}, adapted by {' and '.join(names) or 'hand'}."
        views(shown, converted(dtype, *names), about="dtype")
for shape in ((2, 4, D_IN), (4, D_IN)):
    ask = output(layer(dtype=LOW), drawn(*shape, dtype=LOW))
    views(f"A layer and {shape} in bfloat16.", ask, about="dtype", within=(0.1, 0.1))
for shape in ((2, 4, D_IN), (4, D_IN), (1, D_IN)):
    ask = output(layer(), drawn(*shape, times=1e4))
    views(f"Inputs {shape} of 10,000.", ask, about="extreme scores")


@views(about="devices")
def another_device(student, rng):
    """A layer and an adapted model on another device."""
    x = rng.randn(2, 4, D_IN).float()

    def model():
        new = student.make_model(D_IN, HIDDEN, D_OUT)
        student.adapt(new, [UP], 2, 1.0)
        return new

    makers = (lambda: made(student), model)
    return [
        works_too(lambda make=make: make()(x), lambda make=make: assert_moves(make, x, x[0]))
        for make in makers
    ]


test_no_python_loops = Check("No Python loop runs over batch or tokens.", points=0)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""

    def called(batch=2, n_tokens=3):
        x, module = rng.randn(batch, n_tokens, D_IN), layer()(student, rng)
        return lambda: [output_of(module, each) for each in (x, x[0], x[:, None])]

    grown = {"sentences": {"batch": (105, 211)}, "tokens": {"n_tokens": (108, 217)}}
    assert_vectorised(student, called, grown)
