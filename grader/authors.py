"""The vocabulary of suites that are made of cases: what `test_hidden.py` imports.

A suite is a pytest file whose tests are checks. A check has a sentence, points and cases; a case
is a function of `(student, rng)` that returns what the student's code gives. The reference answers
the same cases, and so does every known mistake.

What recurs has makers, which return such a function: `output`, `gradient`, `changed`, `refused`,
`accepted`, `moved`, `parameters`; `without_gradients` makes one of another. They take the name of a
function of the exercise, or a module that is `built`, and its arguments. An argument may be a
recipe, a function of the source of random inputs, as `drawn(2, 3, 5)` is; tensors are copied for
each call. A case may also use `expect` and the other functions of `grader.testing`: where they
raise, the case is wrong.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection
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
from grader.grading.aspects import ASPECTS, EDGES, Aspect
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
    "ASPECTS",
    "EDGES",
    "LUCK",
    "MANY",
    "Aspect",
    "Check",
    "Rng",
    "accepted",
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
    "expect",
    "extremes",
    "factors_of_kept_weights",
    "finite_too",
    "gradient",
    "gradients",
    "in_float64",
    "load_parameters",
    "manual_seed",
    "moved",
    "often",
    "output",
    "output_of",
    "parameter_shapes",
    "parameters",
    "refused",
    "seeded",
    "share_of_weights_dropped",
    "share_of_zeros",
    "steps_reported",
    "trained",
    "turned",
    "twins",
    "watched",
    "weights_dropped_together",
    "weights_kept_in_training",
    "without_gradients",
    "works",
    "works_elsewhere",
    "works_too",
    "works_when_new",
    "written",
]

Recipe = Callable[[Rng], Any]
Target = str | Callable[[Any, Rng], Any]  # a name of the exercise, or what makes a module


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
    """Return what makes a module of the student's with random parameters, as `build` does.

    Example::

        test_norm = Check("Each token is normalised.", points=3)
        test_norm.case("Five tokens.", output(built("Norm", 7), drawn(2, 5, 7)))
    """

    def make(student: Any, rng: Rng) -> Any:
        made = getattr(student, name)
        module = build(made, *args, rng=rng, dtype=dtype, layers=layers, **kwargs)
        return module.train(training)

    return make


def output(target: Target, *args: Any, **kwargs: Any) -> Ask:
    """Return a case: what a function or module returns.

    Example::

        test_output = Check("A temperature scales the scores.")
        test_output.case("Another temperature.", output("tempered_softmax", drawn(4, 5), 2.0))
    """

    def ask(student: Any, rng: Rng) -> Any:
        call = _target(target, student, rng)
        named = {name: _made(value, rng) for name, value in kwargs.items()}
        return call(*(_made(value, rng) for value in args), **named)

    return ask


def gradient(target: Target, *args: Any) -> Ask:
    """Return a case: the output, and the gradients of a weighted sum of it, as `gradients` does.

    Example::

        test_slopes = Check("Gradients reach the scores.", about="gradient")
        test_slopes.case("Two queries.", gradient("tempered_softmax", drawn(2, 5), 0.5))
    """

    def ask(student: Any, rng: Rng) -> Any:
        call = _target(target, student, rng)
        return gradients(call, *(_made(value, rng) for value in args))

    return ask


def changed(target: Target, *args: Any) -> Ask:
    """Return a case: which numbers of the tensors among the arguments are others after a call.

    Example::

        test_writes = Check("The argument is not written into.", about="writes")
        test_writes.case("x after a call.", changed("center", drawn(4, 5)))
    """

    def ask(student: Student, rng: Rng) -> Any:
        given = [_made(value, rng) for value in args]
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
    """Return a case: whether a call works, where only that is asked.

    Example::

        test_dtypes = Check("x may be of any dtype.", about="dtype")
        test_dtypes.case("Whole numbers work.", accepted("center", torch.tensor([[1.0, 2.0]])))
    """
    ask = output(target, *args, **kwargs)
    return lambda student, rng: often(works(lambda: ask(student, rng)))


def moved(name: str, *args: Any, x: Any, **kwargs: Any) -> Ask:
    """Return a case: whether a new module works for x, or several inputs, after a move.

    Example::

        test_moves = Check("The module can be moved.", about="devices")
        test_moves.case("A move.", moved("Norm", 5, x=drawn(2, 5, dtype=torch.float32)))
    """

    def ask(student: Any, rng: Rng) -> Any:
        inputs = [_made(value, rng) for value in (x if isinstance(x, tuple) else (x,))]
        make = functools.partial(getattr(student, name), *args, **kwargs)
        return works_too(lambda: make()(*inputs), lambda: assert_moves(make, *inputs))

    return ask


def parameters(name: str, *args: Any, layers: Collection[str] = (), **kwargs: Any) -> Ask:
    """Return a case: the names and the shapes of the parameters of a new module.

    With `layers`, those of other layers are called "others", whatever their names are.

    Example::

        test_layers = Check("gamma is the only parameter.", about="layers")
        test_layers.case("The parameters.", parameters("Norm", 5))
    """

    def ask(student: Any, rng: Rng) -> Any:
        found = parameter_shapes(getattr(student, name)(*args, **kwargs))
        own = {n: s for n, s in found.items() if not layers or n.partition(".")[0] in layers}
        others = sorted([*shape] for each, shape in found.items() if each not in own)
        shapes = {each: [*shape] * MANY for each, shape in own.items()}
        return {**shapes, "others": others} if layers else shapes

    return ask


def _target(target: Target, student: Any, rng: Rng) -> Any:
    return getattr(student, target) if isinstance(target, str) else target(student, rng)


def _made(value: Any, rng: Rng) -> Any:
    """Return an argument for one call: what a recipe makes, or a copy."""
    if callable(value) and not isinstance(value, type):
        return value(rng)
    return value.clone() if isinstance(value, Tensor) else copy.deepcopy(value)
