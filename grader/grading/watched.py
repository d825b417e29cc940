"""Watches calls of a student's code: how many operations they run, which ones, and their memory."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import Any

from grader.errors import CheckFailure
from grader.grading.compare import assert_close, expect
from grader.sandbox.host.operations import MadeTensor, OperationCounts, forbidden_call
from grader.sandbox.host.proxies import Student, code_of

CALLED_BACK = "in C"  # stands for the place of calls from C functions such as `map`
OPERATIONS = "tensor operations"  # stands for tensor operations, beside the places of a call's work
MAX_REPEATED = 100  # the most runs of a line for tensors with a few numbers along each axis
SMALL_CALLS = 30  # right answers before a wrong answer for larger sizes counts
MAX_NAME = 80  # characters of a file in a message
REMEDY = "replace the Python loop by operations on whole tensors"


def watched(
    student: Student, *, kernels: bool = True, memory: bool = False
) -> AbstractContextManager[OperationCounts]:
    """Count the tensor operations of every call in the block.

    `counts["torch.bmm"]` counts calls of the function; with `kernels`, `counts["aten.bmm"]` counts
    runs of the operation, also within others. `largest` is the largest tensor that a function
    returned, be it a view, with its `shape`, `elements` and `bytes`. An expanded view does not
    count, nor a tensor that one of torch's functions makes inside itself. With `memory`, `peak` is
    the most bytes that the tensors of one call took at once, including those inside torch's
    functions, but not those from before the call. Code that hides operations from the count raises
    `StudentFailure`.

    Example::

        def test_one_product(student, rng):
            \"\"\"One matrix product is enough.\"\"\"
            with watched(student) as seen:
                student.scores(rng.randn(2, 3, 4), rng.randn(2, 5, 4))
            expect(seen.counts["aten.bmm"] == 1, "use one batched product")
    """
    return code_of(student).watched("memory" if memory else "all" if kernels else "functions")


def assert_vectorised(
    student: Student,
    prepared: Callable[..., Callable[..., Any]],
    grown: Mapping[str, Mapping[str, tuple[Any, Any]]],
    reference: Any = None,
) -> None:
    """Raise `Mismatch` if a call takes more work when one axis grows.

    Work is how often each line of the student's code runs, how often C functions such as `map`
    call something, and the number of tensor operations. `prepared` draws the arguments of a call
    and returns the call; it gets sizes by name, and has small ones as defaults. `grown` holds two
    larger sizes of each axis, by a plural name for its entries. No call is made twice, so data
    kept from earlier calls does not help; but code may build such data once, for example a mask
    for a larger size. With the `reference`, the call takes the code to call, and code fails whose
    result is right for small sizes but wrong for larger ones. Choose larger sizes above 100 there,
    because no line may run that often for small ones: so a loop of a constant length is found.

    Example::

        def test_has_no_loop(student, reference, rng):
            \"\"\"No Python loop runs over the batch.\"\"\"

            def called(batch=2):
                x = rng.randn(batch, 5)  # (batch, n_tokens)
                return lambda code: code.center(x)

            larger = {"sentences": {"batch": (11, 23)}}
            assert_vectorised(student, called, larger, reference)
    """
    few, is_right = _work(student, prepared(), reference)
    place = max(few, key=lambda place: few[place] if _line(place) else 0)
    expect(
        reference is None or not _line(place) or few[place] <= MAX_REPEATED,
        f"{_line(place)} runs {few[place]} times in a call with small tensors: {REMEDY}",
    )
    for axis, sizes in grown.items():
        larger = (prepared(**{name: pair[n] for name, pair in sizes.items()}) for n in (0, 1))
        many, is_still_right = _work(student, next(larger), reference)
        if is_right and not is_still_right:
            # An ordinary mistake may be right once by chance; other checks find it.
            again = (prepared() for _ in range(SMALL_CALLS))
            says = f"the result is right for small tensors, but not for a larger number of {axis}"
            expect(not all(_is_near(call(student), call(reference)) for call in again), says)
        grows = [place for place, count in many.items() if count > few[place]]
        if not grows:
            continue
        # Data that is built once for a larger size is built again for an even larger one.
        most, _ = _work(student, next(larger), reference)
        if grows := [place for place in grows if most[place] > many[place]]:
            place = max(grows, key=lambda place: (_line(place), most[place] - many[place]))
            said = _growth(place, few[place], many[place])
            expect(False, f"{said} when only the number of {axis} grew: {REMEDY}")


def _work(student: Student, call: Callable[..., Any], reference: Any) -> tuple[Counter[str], bool]:
    """Return how often each place runs in a call, and whether the result is the reference's."""
    codes = () if reference is None else (student,)
    with code_of(student).watched("work") as seen:
        result = call(*codes)
    is_right = reference is None or _is_near(result, call(reference))
    return Counter({**seen.ran, OPERATIONS: seen.operations}), is_right


def _is_near(actual: Any, right: Any) -> bool:
    """Return whether two results are nearly the same; other checks are stricter."""
    if isinstance(right, tuple):
        is_pair = isinstance(actual, tuple) and len(actual) == len(right)
        return is_pair and all(map(_is_near, actual, right))
    try:
        assert_close(actual, right, rtol=1e-2, atol=1e-3)
    except CheckFailure:
        return False
    return True


def _line(place: str) -> str:
    """Return a line in words, such as "line 12 of layer_norm.py"; nothing for any other place."""
    file, _, line = place.rpartition(":")
    return f"line {line} of {PurePath(file).name[:MAX_NAME]}" if line != "0" and file else ""


def _growth(place: str, few: int, many: int) -> str:
    if place == OPERATIONS:
        return f"{few} tensor operations became {many}"
    if line := _line(place):
        return f"{line} ran {many} times, not {few},"
    if place.startswith(CALLED_BACK):
        return f"functions such as `map` called another one {many} times, not {few},"
    return f"{many} bytes of code were run, not {few},"


def _described(made: MadeTensor, sizes: Mapping[str, int]) -> str:
    """Return a tensor's shape and bytes in words; `sizes` names the axes of these sizes."""
    names = {size: name for name, size in sizes.items() if [*sizes.values()].count(size) == 1}
    shape = ", ".join(names.get(size, str(size)) for size in made.shape)
    return f"a tensor of the shape ({shape}) and {_amount(made.bytes)}"


def _amount(count: float) -> str:
    """Return a number of bytes in words."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def assert_memory(
    student: Student, call: Callable[[], Any], at_most: float, sizes: Mapping[str, int]
) -> None:
    """Raise `Mismatch` if the tensors of a call take more than `at_most` bytes at once.

    The call's arguments do not count, but the memory inside torch's functions does. The message
    describes the largest tensor, and names each axis whose size occurs only once in `sizes`.

    Example::

        def test_memory(student, rng):
            \"\"\"No table of all pairs is made.\"\"\"
            x = rng.randn(500, 3)  # (n_tokens, d)
            with torch.no_grad():
                assert_memory(student, lambda: student.total(x), 1e6, {"n_tokens": 500, "d": 3})
    """
    peak, largest = _memory(student, call)
    expect(
        peak <= at_most,
        f"the tensors of the call took {_amount(peak)} at once, where {_amount(at_most)} are "
        f"enough: {_described(largest, sizes)} was made",
    )


def assert_linear_memory(
    student: Student, call: Callable[[int], Any], size: int, what: str = "n_tokens"
) -> None:
    """Raise `Mismatch` if the memory for the tensors of a call grows faster than a size.

    `call(n)` runs the code at the size `n`, called `what` in the message. It is called at `size`
    and at four times that size, where the tensors may take five times as many bytes at once.
    Choose a `size` well above every other one.

    Example::

        def test_linear_memory(student, rng):
            \"\"\"Memory grows with the number of tokens, not with its square.\"\"\"
            x = rng.randn(800, 3)  # (n_tokens, d)
            with torch.no_grad():
                assert_linear_memory(student, lambda n: student.total(x[:n]), 200)
    """
    small, _ = _memory(student, lambda: call(size))
    peak, largest = _memory(student, lambda: call(4 * size))
    expect(
        peak <= 5 * small,
        f"4 times as many {what} take {peak / max(small, 1):.0f} times the memory: "
        f"{_described(largest, {what: 4 * size})} was made",
    )


def _memory(student: Student, call: Callable[[], Any]) -> tuple[int, MadeTensor]:
    """Return the most bytes of tensors at once in a call, and the largest that it made."""
    with watched(student, memory=True) as seen:
        call()
    return seen.peak, seen.largest


def assert_written_by_hand(student: Student, *calls: Callable[[], Any]) -> None:
    """Raise `StudentFailure` for a forbidden call in the source or while `calls` run.

    Other failures of `calls` are ignored: other tests report them.

    Example::

        def test_written_by_hand(student, rng):
            \"\"\"The work is done by your own code.\"\"\"
            assert_written_by_hand(student, lambda: student.center(rng.randn(2, 5)))
    """
    code = code_of(student)
    if found := code.forbidden_in_source():
        raise forbidden_call(found[0].function, found[0])
    for call in calls:
        with contextlib.suppress(Exception), watched(student) as seen:
            call()
        seen.check(code.forbidden)
