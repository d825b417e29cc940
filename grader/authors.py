"""The vocabulary of suites that are made of cases: what `test_hidden.py` imports.

A suite is a pytest file whose tests are checks. A check has a sentence, points and cases; a case
is a function of `(student, rng)` that returns what the student's code gives. The reference answers
the same cases, and so does every known mistake.

For questions that recur there are makers, which return such a function: `output`, `gradient`,
`changed`, `refused`, `accepted`, `moved`, `parameters` and others; `without_gradients` makes one
case from another. They take the name of a function of the exercise, or a module that is `built`,
and its arguments. An argument may be a recipe, that is a function of the source of random inputs,
such as `drawn(2, 3, 5)`; tensors are copied for each call. `argument_cases` and `dtype_cases` add
several cases to a check. A case may also use `expect` and the other functions of `grader.testing`:
if one of them raises, the case is wrong.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from grader.grading.asking import (
    ACCEPTED,
    build,
    finite_too,
    gradients,
    seeded,
    steps_reported,
    works,
    works_elsewhere,
    works_too,
    works_when_new,
    written,
)
from grader.grading.aspects import Aspect
from grader.grading.cases import Ask, Check
from grader.grading.dropped import (
    LUCK,
    dropped_weights,
    drops_anew,
    extremes,
    factors_of_kept_weights,
    share_of_weights_dropped,
    share_of_zeros,
    weights_dropped_together,
    weights_kept_in_training,
)
from grader.grading.moves import assert_moves
from grader.grading.parameters import parameter_shapes
from grader.grading.rng import Rng
from grader.grading.slopes import assert_slopes_in_training
from grader.grading.told import MANY, often
from grader.sandbox.host.proxies import Student
from grader.testing import (
    assert_close,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_linear_memory,
    assert_memory,
    assert_reaches,
    assert_refused,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_weights_dropped,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    manual_seed,
    output_of,
    trained,
    twins,
    watched,
)

__all__ = [
    "ACCEPTED",
    "LUCK",
    "MANY",
    "ROUGH",
    "Aspect",
    "Check",
    "Recipe",
    "Rng",
    "Target",
    "accepted",
    "after_training",
    "argument_cases",
    "assert_close",
    "assert_drawn_anew",
    "assert_dropped",
    "assert_dtype",
    "assert_linear_memory",
    "assert_memory",
    "assert_moves",
    "assert_reaches",
    "assert_refused",
    "assert_same",
    "assert_slopes",
    "assert_unchanged",
    "assert_vectorised",
    "assert_weights_dropped",
    "assert_written_by_hand",
    "build",
    "built",
    "changed",
    "drawn",
    "dropped_weights",
    "drops_anew",
    "dtype_cases",
    "expect",
    "extremes",
    "factors_of_kept_weights",
    "filled",
    "finite_too",
    "gradient",
    "gradients",
    "in_float64",
    "in_turn",
    "load_parameters",
    "manual_seed",
    "moved",
    "often",
    "only_dtype",
    "other_weights",
    "output",
    "output_of",
    "parameter_shapes",
    "parameters",
    "reached",
    "refused",
    "scaled",
    "seeded",
    "share_of_weights_dropped",
    "share_of_zeros",
    "slopes_with_dropout",
    "steps_reported",
    "trained",
    "turned",
    "twins",
    "watched",
    "weights_dropped_together",
    "weights_kept_in_training",
    "without_gradients",
    "works",
    "works_as_well",
    "works_elsewhere",
    "works_too",
    "works_when_new",
    "written",
]

Recipe = Callable[[Rng], Any]
ROUGH = (0.1, 0.1)  # a tolerance for bfloat16, relative and absolute
Target = str | Callable[[Any, Rng], Any]  # a name of the exercise, or a maker of a module


def drawn(*shape: int, dtype: torch.dtype = torch.float64, times: float = 1.0) -> Recipe:
    """Return the recipe of standard normal values of a shape, `times` a factor.

    Example::

        test_sizes = Check("The weights are a softmax.")
        test_sizes.case("Three queries.", output("tempered_softmax", drawn(3, 5), 0.5))
    """
    return lambda rng: (rng.randn(*shape) * times).to(dtype)


def turned(recipe: Recipe | Tensor, first: int = -2, second: int = -1) -> Recipe:
    """Return the recipe of the same values as a view whose two axes are swapped in memory.

    Example::

        test_views = Check("The argument may be a view.", about="views")
        test_views.case("A view.", output("tempered_softmax", turned(drawn(3, 5)), 0.5))
    """

    def make(rng: Rng) -> Tensor:
        value: Tensor = _made(recipe, rng)
        return value.transpose(first, second).contiguous().transpose(first, second)

    return make


def built(
    name: str,
    *args: Any,
    layers: Collection[str] = (),
    dtype: torch.dtype = torch.float64,
    training: bool = False,
    **kwargs: Any,
) -> Target:
    """Return a maker of one of the student's modules, with random parameters as `build` draws them.

    Example::

        test_norm = Check("Each token is normalised.", points=3)
        test_norm.case("Five tokens.", output(built("Norm", 7), drawn(2, 5, 7)))
    """

    def make(student: Any, rng: Rng) -> Any:
        made = getattr(student, name)
        module = build(made, *args, rng=rng, dtype=dtype, layers=layers, **kwargs)
        return module.train(training)

    return make


def filled(target: Target, state: Mapping[str, Tensor]) -> Target:
    """Return a maker of the module of `target` with these values in some of its parameters.

    Example::

        test_gamma = Check("The output is scaled by gamma.")
        doubled = filled(built("Norm", 5), {"gamma": torch.full((5,), 2.0)})
        test_gamma.case("A gamma of 2.", output(doubled, drawn(3, 5)))
    """

    def make(student: Any, rng: Rng) -> Any:
        module = _target(target, student, rng)
        module.load_state_dict({name: each.clone() for name, each in state.items()}, strict=False)
        return module

    return make


def scaled(target: Target, **factors: float) -> Target:
    """Return a maker of the module of `target` with the weights of some layers multiplied.

    Example::

        test_large_weights = Check("Large weights are no problem.", about="extreme scores")
        large = scaled(built("Norm", 5), gamma=1e6)
        test_large_weights.case("A gamma of a million.", output(large, drawn(3, 5)))
    """

    def make(student: Any, rng: Rng) -> Any:
        module = _target(target, student, rng)
        state = module.state_dict()
        names = {each: name for name in factors for each in (name, f"{name}.weight")}
        larger = {
            each: state[each] * factors[name] for each, name in names.items() if each in state
        }
        module.load_state_dict(larger, strict=False)
        return module

    return make


def output(target: Target, *args: Any, **kwargs: Any) -> Ask:
    """Return a case: the output of a function or module.

    Example::

        test_output = Check("A temperature scales the scores.")
        test_output.case("Another temperature.", output("tempered_softmax", drawn(4, 5), 2.0))
    """

    def ask(student: Any, rng: Rng) -> Any:
        call = _target(target, student, rng)
        named = {name: _made(value, rng) for name, value in kwargs.items()}
        return call(*_all_made(args, rng), **named)

    return ask


def gradient(target: Target, *args: Any) -> Ask:
    """Return a case: the output, and the gradients of a weighted sum of it, as `gradients` does.

    Example::

        test_slopes = Check("Gradients reach the scores.", about="gradient")
        test_slopes.case("Two queries.", gradient("tempered_softmax", drawn(2, 5), 0.5))
    """

    def ask(student: Any, rng: Rng) -> Any:
        call = _target(target, student, rng)
        return gradients(call, *_all_made(args, rng))

    return ask


def reached(target: Target, *args: Any) -> Ask:
    """Return a case: which inputs and parameters get a gradient, for any draw of dropout.

    Example::

        test_reached = Check("Gradients reach gamma.", about="gradient")
        test_reached.case("What gets a gradient.", reached(built("Norm", 5), drawn(2, 5)))
    """

    def ask(student: Any, rng: Rng) -> Any:
        call = _target(target, student, rng)
        given = _all_made(args, rng)
        with seeded(student, 10):
            found = gradients(call, *given)
        return {
            name: often(isinstance(each, Tensor) and bool((each != 0).any()))
            for name, each in found.items()
        }

    return ask


def slopes_with_dropout(target: Target, *args: Any) -> Ask:
    """Return a case: in training mode, a module's gradients are the slopes of the kept values.

    It decides alone (`tells=False`): it raises if they are not.

    Example::

        test_slopes_in_training = Check("Gradients are the slopes of the output.", about="gradient")
        ask = slopes_with_dropout(built("Norm", 3), drawn(2, 3))
        test_slopes_in_training.case("The slopes in training.", ask, tells=False)
    """

    def ask(student: Any, rng: Rng) -> Any:
        module = _target(target, student, rng)
        assert_slopes_in_training(student, module, *_all_made(args, rng), rng=rng)
        return True

    return ask


def in_turn(target: Target, *calls: Any) -> Ask:
    """Return a case: the outputs of calls of one module, one after the other.

    A call is its argument, or a list of its arguments.

    Example::

        test_calls = Check("A call leaves nothing behind.")
        ask = in_turn(built("Norm", 5), drawn(2, 5), drawn(3, 4, 5))
        test_calls.case("Three axes after two.", ask)
    """

    def ask(student: Any, rng: Rng) -> Any:
        call = _target(target, student, rng)
        given = [each if isinstance(each, list) else [each] for each in calls]
        return [call(*_all_made(args, rng)) for args in given]

    return ask


def after_training(target: Target, *args: Any) -> Ask:
    """Return a case: the output in evaluation mode, after a call in training mode.

    Example::

        test_modes = Check("Nothing is dropped in evaluation mode.", about="options")
        test_modes.case("After a call in training.", after_training(built("Norm", 5), drawn(2, 5)))
    """

    def ask(student: Any, rng: Rng) -> Any:
        module = _target(target, student, rng)
        given = _all_made(args, rng)
        module.train()(*given)
        return module.eval()(*given)

    return ask


def other_weights(target: Target, *args: Any) -> Ask:
    """Return a case: the output, without gradients, after all weights have changed their sign.

    Example::

        test_fresh = Check("The output is that of the weights as they are.")
        test_fresh.case("After a call with others.", other_weights(built("Norm", 5), drawn(2, 5)))
    """

    def ask(student: Any, rng: Rng) -> Any:
        module = _target(target, student, rng)
        given = _all_made(args, rng)
        with torch.no_grad():
            module(*given)
            state = {name: -each.detach() for name, each in module.named_parameters()}
            module.load_state_dict(state, strict=False)
            return module(*given)

    return ask


def works_as_well(target: Target, one: Any, other: Any) -> Ask:
    """Return a case: whether the call `other` works if the call `one` does.

    A call is its argument, or a list of its arguments.

    Example::

        test_rows = Check("Any number of rows works.", about="single")
        ask = works_as_well(built("Norm", 5), drawn(4, 5), drawn(1, 5))
        test_rows.case("Whether one row works.", ask)
    """

    def ask(student: Any, rng: Rng) -> Any:
        call = _target(target, student, rng)
        first, second = (each if isinstance(each, list) else [each] for each in (one, other))
        return works_too(
            lambda: call(*_all_made(first, rng)),
            lambda: call(*_all_made(second, rng)),
        )

    return ask


def only_dtype(target: Target, *args: Any) -> Ask:
    """Return a case: only the shape and the dtype of the output, such as for code that draws a lot.

    Example::

        test_kept_dtype = Check("The output has the dtype of x.", about="dtype")
        norm, x = built("Norm", 5, dtype=torch.bfloat16), drawn(2, 5, dtype=torch.bfloat16)
        test_kept_dtype.case("The dtype in bfloat16.", only_dtype(norm, x))
    """
    ask = output(target, *args)
    return lambda student, rng: torch.zeros_like(ask(student, rng))


def changed(target: Target, *args: Any) -> Ask:
    """Return a case: which numbers in the arguments' tensors a call has changed.

    Example::

        test_writes = Check("The argument is not written into.", about="writes")
        test_writes.case("x after a call.", changed("center", drawn(4, 5)))
    """

    def ask(student: Student, rng: Rng) -> Any:
        given = _all_made(args, rng)
        before = [value.clone() for value in given if isinstance(value, Tensor)]
        after = written(student, _target(target, student, rng), *given)
        return [one != other for one, other in zip(before, after)]

    return ask


def without_gradients(ask: Ask) -> Ask:
    """Return a case that asks the same while no gradients are recorded.

    Example::

        test_writes = Check("The argument is not written into.", about="writes")
        ask = without_gradients(changed("center", drawn(4, 5)))
        test_writes.case("x after a call without gradients.", ask)
    """

    def quietly(student: Any, rng: Rng) -> Any:
        with torch.no_grad():
            return ask(student, rng)

    return quietly


def refused(target: Target, *args: Any, **kwargs: Any) -> Ask:
    """Return a case of the aspect "refusals": a call that must be refused.

    Example::

        test_refusals = Check("A temperature of zero is refused.", about="refusals")
        test_refusals.case("Zero.", refused("tempered_softmax", drawn(2, 3), 0.0))
    """
    ask = output(target, *args, **kwargs)

    def misuse(student: Any, rng: Rng) -> Any:
        ask(student, rng)
        return ACCEPTED

    return misuse


def accepted(target: Target, *args: Any, **kwargs: Any) -> Ask:
    """Return a case: whether a call works, if nothing else is asked.

    Example::

        test_dtypes = Check("x may be of any dtype.", about="dtype")
        test_dtypes.case("Whole numbers work.", accepted("center", torch.tensor([[1.0, 2.0]])))
    """
    ask = output(target, *args, **kwargs)
    return lambda student, rng: often(works(lambda: ask(student, rng)))


def moved(name: str, *args: Any, x: Any, **kwargs: Any) -> Ask:
    """Return a case: whether a new module works for one or more inputs after a move.

    Example::

        test_moves = Check("The module can be moved.", about="devices")
        test_moves.case("A move.", moved("Norm", 5, x=drawn(2, 5, dtype=torch.float32)))
    """

    def ask(student: Any, rng: Rng) -> Any:
        inputs = _all_made(x if isinstance(x, tuple) else (x,), rng)
        make = functools.partial(getattr(student, name), *args, **kwargs)
        return works_too(lambda: make()(*inputs), lambda: assert_moves(make, *inputs))

    return ask


def parameters(name: str, *args: Any, layers: Collection[str] = (), **kwargs: Any) -> Ask:
    """Return a case: the names and the shapes of the parameters of a new module.

    With `layers`, the parameters of all other layers are called "others", unless they may be
    those of `layers` under other names.

    Example::

        test_layers = Check("gamma is the only parameter.", about="layers")
        test_layers.case("The parameters.", parameters("Norm", 5))
    """

    def ask(student: Any, rng: Rng) -> Any:
        found = parameter_shapes(getattr(student, name)(*args, **kwargs))
        made = {name.partition(".")[0] for name in found}
        is_renamed = bool({*layers} - made) and len({*layers} - made) == len(made - {*layers})
        is_any = not layers or is_renamed
        own = {n: s for n, s in found.items() if is_any or n.partition(".")[0] in layers}
        others = sorted([*shape] for each, shape in found.items() if each not in own)
        shapes = {each: [*shape] * MANY for each, shape in own.items()}
        return shapes if is_any else {**shapes, "others": others}

    return ask


def argument_cases(check: Check, make: Callable[..., Target], x: Recipe) -> None:
    """Add cases to a check: x may be a transposed view, and is left alone.

    `make(training=True)` is the `built` module in training mode. A view of other axes is left for a
    hidden case: `output(make(), turned(x))`.

    Example::

        test_left_alone = Check("x may be a view, and is not modified.", about="views")
        argument_cases(test_left_alone, functools.partial(built, "Norm", 5), drawn(2, 3, 5))
    """
    check.case("x is a transposed view.", output(make(), turned(x, 0, 1)))
    view = lambda rng: x(rng).transpose(0, 1).contiguous().transpose(0, 1)  # noqa: E731
    check.case("Whether a transposed x works.", works_as_well(make(), x, view))
    for mode, ask in (
        ("evaluation mode", changed(make(), x)),
        ("training mode", changed(make(training=True), x)),
        ("evaluation mode, without gradients", without_gradients(changed(make(), x))),
    ):
        check.case(f"Which numbers of x are others after a call in {mode}.", ask, about="writes")


def dtype_cases(
    check: Check, make: Callable[..., Target], shape: tuple[int, ...], *new: Any
) -> None:
    """Add cases to a check: a module can be moved to other devices and dtypes, when new and later.

    `make(dtype=…)` is the `built` module, `shape` the shape of an input, and `new` the class's
    name and arguments, which make a new module. Dropout in training is left for a hidden case.

    Example::

        test_conversions = Check("`module.to(…)` is enough.", about="dtype")
        dtype_cases(test_conversions, functools.partial(built, "Norm", 5), (2, 5), "Norm", 5)
    """
    name, *sizes = new
    low, half = (drawn(*shape, dtype=each) for each in (torch.float32, torch.bfloat16))
    check.case("A new module on another device.", moved(name, *sizes, x=low), about="devices")
    check.case("A module and an input in float32.", output(make(dtype=torch.float32), low))
    ask = output(make(dtype=torch.bfloat16), half)
    check.case("A module and an input in bfloat16.", ask, within=ROUGH)

    @check.case("Whether a new module works, in float32.")
    def new_module(student: Any, rng: Rng) -> Any:
        made = functools.partial(getattr(student, name), *sizes)
        return works_when_new(_target(make(), student, rng), made, rng.randn(*shape))

    @check.case("A module that was converted to bfloat16 after a call in float64.", within=ROUGH)
    def converted(student: Any, rng: Rng) -> Any:
        module, given = _target(make(), student, rng), rng.randn(*shape)
        module(given)
        module.to(torch.bfloat16)
        return module(given.bfloat16())


def _target(target: Target, student: Any, rng: Rng) -> Any:
    return getattr(student, target) if isinstance(target, str) else target(student, rng)


def _all_made(args: Iterable[Any], rng: Rng) -> list[Any]:
    return [_made(value, rng) for value in args]


def _made(value: Any, rng: Rng) -> Any:
    """Return an argument for one call: the value of a recipe, or a copy."""
    if callable(value) and not isinstance(value, type):
        return value(rng)
    return value.clone() if isinstance(value, Tensor) else copy.deepcopy(value)
