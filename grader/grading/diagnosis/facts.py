"""Facts about wrong answers that no known mistake gives.

Each fact is a small function over an answer and the expected one; it returns a sentence that was
checked, or nothing. A sentence describes the answer, never the code behind it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from grader.grading.cases import Case
from grader.grading.compare import FORGOTTEN, digits_apart, in_digits
from grader.grading.diagnosis.answers import TOLERANCE, Answer, Leaf, Raised, Values
from grader.grading.diagnosis.asked import Answers
from grader.grading.words import OUTPUT, is_gradient, list_of, pairs_of_names, words_of
from grader.report import without_controls

if TYPE_CHECKING:
    from grader.grading.diagnosis.catalogue import AnyCatalogue

MAX_FACTS = 2
MAX_LISTED = 4  # places, calls or names in one sentence
MAX_NAME = 40  # characters of one of the student's names
ERRORS = {  # by the subject of the error
    "by hand": "refuses this call, which has to work",
    "in-place": "raises an error about an in-place operation",
    "contiguous": "raises an error about memory that is not contiguous",
    "dtype": "raises an error about dtypes",
    "device": "raises an error about devices",
    "graph": "raises an error about the graph of gradients",
    "index": "raises an error about an index",
    "shape": "raises an error about shapes",
}
PLAIN, FORM, SHAPE, FIRST = range(
    4
)  # the rank of a sentence before all facts, and that of the first fact
NOTHING = 1e-9  # relative, for values that count as zero
CLOSE = 1e-6  # relative and absolute, for values that count as equal
NARROW = (torch.bfloat16, torch.float16, torch.float32)  # the fewest digits first


@dataclass(frozen=True)
class Compared:
    """One tensor of an answer and the expected one, of the same shape, with the axes' names."""

    what: str
    actual: Tensor  # float64
    expected: Tensor
    axes: tuple[str, ...]  # the names of its axes, in the singular
    tolerance: tuple[float, float]  # relative and absolute, of the answer's dtype

    @functools.cached_property
    def wrong(self) -> Tensor:
        """The places where the two differ."""
        return ~self.close(self.actual, self.expected)

    def close(self, actual: Tensor, expected: Tensor) -> Tensor:
        """Return where two tensors are equal within the tolerance."""
        relative, absolute = self.tolerance
        near = (actual - expected).abs() <= absolute + relative * expected.abs()
        return near | (actual == expected) | (actual.isnan() & expected.isnan())

    def is_same(self, actual: Tensor, expected: Tensor) -> bool:
        """Return whether two tensors are equal within the tolerance."""
        return actual.shape == expected.shape and bool(self.close(actual, expected).all())


Fact = Callable[[Compared], str]


@dataclass(frozen=True)
class Said:
    """A fact in words, and the smallest case that shows it."""

    says: str
    case: Case
    is_all: bool = False  # whether it explains everything else that is wrong


def facts_of(catalogue: AnyCatalogue, wrong: Sequence[Case], answers: Answers) -> tuple[Said, ...]:
    """Return the most telling facts about the answers to the cases `wrong`."""
    found = [*_where_at_all(catalogue, wrong, answers), *_about_calls(catalogue, wrong, answers)]
    plain = [each for each in found if each.is_all]
    return tuple(plain[:1] or found[:MAX_FACTS])


# --- over all cases ------------------------------------------------------------------------------


def _where_at_all(
    catalogue: AnyCatalogue, wrong: Sequence[Case], answers: Answers
) -> Iterator[Said]:
    """Say which cases are wrong, if all others are right."""
    known = [case for case in catalogue.cases if case.name in answers]
    aspects = tuple(dict.fromkeys(case.aspect for case in wrong))
    rest = [case for case in known if case.aspect not in aspects]
    if len(aspects) > 2 or not rest:
        return
    is_wrong = {p.name for p in known if not catalogue.is_right(answers[p.name], p)}
    if any(case.name in is_wrong for case in rest):
        return
    if len(wrong) <= 2 and is_wrong == {case.name for case in wrong}:
        calls = " and ".join(f"“{_phrase(case)}”" for case in wrong)
        yield Said(f"Of {len(known)} other calls, only {calls} came out wrong.", wrong[0])
    else:
        phrases = " and ".join(dict.fromkeys(case.about.says for case in wrong))
        says = f"What came out wrong: {phrases.rstrip(',')}. Everything else came out right."
        yield Said(says, wrong[0])


def _about_calls(
    catalogue: AnyCatalogue, wrong: Sequence[Case], answers: Answers
) -> Iterator[Said]:
    """Return the facts about answers to single calls, the most telling first."""
    ranked: dict[str, list[tuple[int, int, Case]]] = {}
    words = words_of(catalogue.exercise)
    for case in wrong:
        expected = catalogue.reference.answer(case)
        called = functools.partial(words.of, sentence=case.sentence)
        for rank, says in _of_one(answers[case.name], expected, catalogue.axes, called):
            size = len(expected.numbers) if isinstance(expected, Values) else 0
            ranked.setdefault(says, []).append((rank, size, case))
            break
    for says, shown in sorted(ranked.items(), key=lambda each: each[1][0][0]):
        rank, _, case = min(shown, key=lambda each: each[1])
        if rank == PLAIN:
            yield Said(f"{says[0].upper()}{says[1:]}", case, is_all=True)
        else:
            yield Said(f"{_phrase(case)}: {says}", case)


def _phrase(case: Case) -> str:
    return case.sentence.rstrip(".")


def _of_one(
    answer: Answer, expected: Answer, axes: tuple[str, ...], called: Callable[[str], str]
) -> Iterator[tuple[int, str]]:
    """Yield the facts about one answer, each with its rank."""
    if isinstance(answer, Raised):
        if isinstance(expected, Values):
            yield AN_ERROR, f"your code {ERRORS.get(answer.subject, 'raises an error')}."
        return
    if isinstance(expected, Raised):
        yield FORM, "your code returns a value, where the call must be refused."
        return
    yield from _of_values(answer, expected, axes, called)


def _of_values(
    answer: Values, expected: Values, axes: tuple[str, ...], called: Callable[[str], str]
) -> Iterator[tuple[int, str]]:
    ours, theirs = ({leaf.place: leaf for leaf in each.leaves()} for each in (answer, expected))
    if says := _renamed(ours, theirs):
        yield PLAIN, says
        return
    for place, wanted in theirs.items():
        got, what = ours.get(place), called(place)
        if got is None:
            yield FORM, f"{what} is missing."
            return
        if got.value is None or wanted.value is None:
            if got.text == "None" != wanted.text:
                is_missing = is_gradient(place)
                says = f"{what} is missing." if is_missing else f"{what} is None: {FORGOTTEN}"
                yield (FORM if is_missing else PLAIN), says
                return
            if says := _form(what, got, wanted):
                yield FORM, says
                return
            continue
        if got.value.shape != wanted.value.shape:
            shapes = tuple(got.value.shape), tuple(wanted.value.shape)
            yield SHAPE, f"{what} has shape {shapes[0]}, not {shapes[1]}."
            return
        if got.value.isnan().all() and wanted.dtype == torch.bool:
            continue  # no fact about this one; other calls show the nan
        if got.dtype != wanted.dtype:
            names = (str(each.dtype).removeprefix("torch.") for each in (got, wanted))
            yield SHAPE, "{} is {}, not {}.".format(what, *names)
            return
        named = axes[len(axes) - got.value.dim() :] if got.value.dim() <= len(axes) else ()
        if wanted.dtype == torch.bool:  # for a yes or no, the wrong call says everything
            continue
        if what != OUTPUT:
            named = ()
        tolerance = TOLERANCE.get(wanted.dtype, (CLOSE, CLOSE))  # type: ignore[call-overload]
        compared = Compared(what, got.value, wanted.value, named, tolerance)
        if not compared.wrong.any():
            continue
        yield most_telling(compared)
        return


def _renamed(ours: Mapping[str, Leaf], theirs: Mapping[str, Leaf]) -> str:
    """Say that parameters have other names, if they have the expected shapes; else nothing."""
    asked, own = ({*map(list_of, side)} - {"", "others"} for side in (theirs, ours))
    left, others = asked - own, own - asked
    if not left or len(left) != len(others) or any(" " in name for name in left):
        return ""
    called = pairs_of_names(left, others)
    if any(_numbers_of(theirs, a) != _numbers_of(ours, b) for a, b in called.items()):
        return ""
    shown = sorted({_without_same_ends(*pair) for pair in called.items()})
    listed = [f"`{one}` is `{_quoted(other)}`" for one, other in shown]
    more = "; …" if len(listed) > MAX_LISTED else "."
    return f"your code has other names than the exercise: {'; '.join(listed[:MAX_LISTED])}{more}"


def _quoted(name: str) -> str:
    """Return a student's name for something, on one line, cut, and without terminal controls."""
    return " ".join(without_controls(name).split())[:MAX_NAME]


def _without_same_ends(one: str, other: str) -> tuple[str, str]:
    """Return two names without the part that both end in, such as `.weight`."""
    while one.rpartition(".")[2] == other.rpartition(".")[2]:
        one, other = one.rpartition(".")[0], other.rpartition(".")[0]
    return one, other


def _numbers_of(leaves: Mapping[str, Leaf], place: str) -> list[float]:
    inside = (leaf for each, leaf in leaves.items() if list_of(each) == place)
    return [leaf.value.item() for leaf in inside if leaf.value is not None and not leaf.value.dim()]


def _form(what: str, got: Leaf, wanted: Leaf) -> str:
    """Say how a value that is not a tensor differs."""
    if got.value is not None:
        return f"{what} is not {wanted.text}."
    if got.text == wanted.text:
        return ""
    return f"{what} is {got.text}." if wanted.value is not None else ""


# --- over one tensor ------------------------------------------------------------------------------


def nowhere_finite(c: Compared) -> str:
    """Say that every value is nan or infinite, where numbers are expected."""
    if c.actual.isfinite().any() or not c.expected.isfinite().any():
        return ""
    return f"{c.what} is {_not_finite(c.actual)} everywhere."


def _not_finite(values: Tensor) -> str:
    """Return a word for values of which none is finite."""
    if values.isnan().all():
        return "nan"
    return "infinite" if values.isinf().all() else "nan or infinite"


def all_zero(c: Compared) -> str:
    """Say that every value is zero."""
    scale = (
        max(float(c.expected.abs().nan_to_num(0.0, 0.0).max()), 1.0) if c.expected.numel() else 1.0
    )
    is_zero = c.actual.numel() > 1 and bool((c.actual.abs() <= NOTHING * scale).all())
    return f"{c.what} is zero everywhere." if is_zero else ""


def transposed(c: Compared) -> str:
    """Say that the last two axes are exchanged."""
    if c.actual.dim() < 2 or c.actual.shape[-1] != c.actual.shape[-2] or c.actual.shape[-1] < 2:
        return ""
    return f"{c.what} is transposed." if c.is_same(c.actual, c.expected.transpose(-2, -1)) else ""


def multiple(c: Compared) -> str:
    """Say that the output is the expected one times a number."""
    big = c.expected.abs() > CLOSE
    if int(big.sum()) < 3:
        return ""
    factor = float((c.actual[big] / c.expected[big]).median())
    if (
        abs(factor - 1) < 1e-4
        or not NOTHING < abs(factor) < math.inf
        or not c.is_same(c.actual, c.expected * factor)
    ):
        return ""
    is_near = abs(factor - 1) < 1e-3  # more digits, because fewer would say 1
    times = in_digits(factor, digits_apart([(factor, 1.0)])) if is_near else f"{factor:.4g}"
    return f"{c.what} is the expected one times {times}."


def shifted(c: Compared) -> str:
    """Say that a number was added everywhere."""
    if c.actual.numel() < 3:
        return ""
    offset = float((c.actual - c.expected).median())
    if not NOTHING <= abs(offset) < math.inf or not c.is_same(c.actual, c.expected + offset):
        return ""
    return f"{c.what} is the expected one {'minus' if offset < 0 else 'plus'} {abs(offset):.4g}."


def reordered(c: Compared) -> str:
    """Say that entries along one axis come in another order."""
    for axis, name in enumerate(c.axes):
        size = c.actual.shape[axis]
        if not 2 <= size <= 64:
            continue
        ours = c.actual.movedim(axis, 0).reshape(size, -1)
        theirs = c.expected.movedim(axis, 0).reshape(size, -1)
        match = c.close(ours.unsqueeze(1), theirs).all(-1)  # (size, size)
        if match.sum(0).eq(1).all() and match.sum(1).eq(1).all():
            order = match.int().argmax(1).tolist()
            return f"the {_plural(name)} come in another order: {', '.join(map(str, order))}."
    return ""


def finite_elsewhere(c: Compared) -> str:
    """Say that the wrong values are nan or infinite, and where they are."""
    wrong = c.actual[c.wrong]
    if wrong.isfinite().any():
        return ""
    places = _places(c) or f"in {len(wrong)} of {c.wrong.numel()} places"
    return f"{c.what} is {_not_finite(wrong)} {places}, and right elsewhere."


def few_digits(c: Compared) -> str:
    """Say that all values are close to the expected ones, and lack digits."""
    worst, scale = _worst(c)
    for narrow in NARROW if worst < scale / 100 else ():
        if _fits(c.actual, narrow) and not _fits(c.expected, narrow):
            name = str(narrow).removeprefix("torch.")
            return f"{c.what} is off by at most {worst:.2g}, and has only the digits of {name}."
    return ""


def _worst(c: Compared) -> tuple[float, float]:
    """Return the largest difference, and the largest expected absolute value."""
    return float((c.actual - c.expected).abs().max()), float(c.expected.abs().max())


def _fits(values: Tensor, dtype: torch.dtype) -> bool:
    """Return whether numbers keep all their digits in a dtype."""
    return torch.equal(values.to(dtype).double(), values)


def softmax_of_multiples(c: Compared) -> str:
    """Say that each row is what softmax makes of the right scores times a number."""
    if c.expected.dim() < 1 or min(map(float, (c.actual.amin(), c.expected.amin()))) < 0:
        return ""
    # The logarithms of weights are their scores, up to a number for each row.
    both = (c.actual > 0) & (c.expected > 0)
    ours, theirs = (_centred(weights.log(), both) for weights in (c.actual, c.expected))
    factor = float((ours * theirs).sum() / (theirs * theirs).sum())
    if not 1e-3 < abs(factor - 1) < math.inf:
        return ""
    factor = 0.0 if abs(factor) < CLOSE else factor
    scores = (c.expected.log() * factor).masked_fill(c.expected == 0, -torch.inf)
    if not c.is_same(c.actual, torch.softmax(scores, dim=-1).nan_to_num(0.0)):
        return ""
    if not factor:
        return f"in each row of {c.what}, all weights that are not 0 are equal."
    return f"each row of {c.what} is what softmax makes of the right scores times {factor:.4g}."


def _centred(scores: Tensor, where: Tensor) -> Tensor:
    """Return scores less the mean of their row; 0 in other places than `where`."""
    kept = scores.masked_fill(~where, 0.0)
    mean = kept.sum(-1, keepdim=True) / where.sum(-1, keepdim=True).clamp(min=1)
    return (kept - mean).masked_fill(~where, 0.0)


def rows_do_not_sum_to_one(c: Compared) -> str:
    """Say what rows of weights sum to."""
    if c.expected.dim() < 2 or c.expected.shape[-1] < 2 or (c.expected < -CLOSE).any():
        return ""
    wanted, got = c.expected.sum(-1), c.actual.sum(-1)
    ones = c.close(wanted, torch.ones_like(wanted))
    off = ones & ~c.close(got, wanted) & got.isfinite()
    if not ones.any() or not off.any() or (c.actual < -CLOSE).any():
        return ""
    low, high = float(got[off].min()), float(got[off].max())
    digits = digits_apart([(low, 1.0), (high, 1.0)])
    sums = " to ".join(dict.fromkeys(in_digits(value, digits) for value in (low, high)))
    return f"{int(off.sum())} of {int(ones.sum())} rows sum to {sums}, not to 1."


def wrong_where_zero(c: Compared) -> str:
    """Say that only entries are wrong that must be zero, or only entries that must not be."""
    zero = c.expected == 0
    if not zero.any() or zero.all():
        return ""
    if not (c.wrong & ~zero).any():
        return f"{c.what} is wrong only where 0 is expected."
    lost = c.wrong & (c.actual == 0)
    return f"{c.what} is 0 where it must not be." if bool((lost == c.wrong).all()) else ""


def on_the_diagonal(c: Compared) -> str:
    """Say that only the diagonal is wrong, or that only the diagonal is right."""
    if c.wrong.dim() < 2 or c.wrong.shape[-1] != c.wrong.shape[-2] or c.wrong.shape[-1] < 3:
        return ""
    diagonal = torch.eye(c.wrong.shape[-1], dtype=torch.bool).expand_as(c.wrong)
    if not (c.wrong & ~diagonal).any():
        return f"{c.what} is wrong only on the diagonal, and right elsewhere."
    is_right = torch.equal(c.wrong, ~diagonal)
    return f"{c.what} is right only on the diagonal, and wrong elsewhere." if is_right else ""


def only_some(c: Compared) -> str:
    """Say in which places along one axis all wrong values lie."""
    places = _places(c)
    worst, _ = _worst(c)
    by = f" by at most {worst:.2g}" if slightly(c) else ""
    return f"{c.what} is wrong {places}{by}, and right elsewhere." if places else ""


def slightly(c: Compared) -> str:
    """Say that all values are close to the expected ones."""
    worst, scale = _worst(c)
    if not worst < scale / 1000:
        return ""
    return f"{c.what} is off by at most {worst:.2g}; the largest value expected is {scale:.4g}."


def first_difference(c: Compared) -> str:
    """Say which numbers are at the first wrong place."""
    at = c.wrong.nonzero()[0].tolist()
    pair = float(c.actual[tuple(at)]), float(c.expected[tuple(at)])
    got, wanted = (in_digits(number, digits_apart([pair])) for number in pair)
    named = [f"{name} {place}" for name, place in zip(c.axes, at)]
    where = f" at {', '.join(named) if named else at}" if at else ""
    many = f"; {int(c.wrong.sum())} of {c.wrong.numel()} numbers differ" if at else ""
    return f"{c.what} is {got}{where}, where {wanted} is expected{many}."


def _places(c: Compared) -> str:
    """Return the shortest description of where the wrong values lie, or nothing."""
    found: list[tuple[int, str]] = []
    for axis, name in enumerate(c.axes):
        others = [each for each in range(c.wrong.dim()) if each != axis]
        hit = c.wrong.any(dim=others) if others else c.wrong  # (size,)
        wrong, right = ((hit == flag).nonzero().flatten().tolist() for flag in (True, False))
        if not right:
            continue
        if len(wrong) <= MAX_LISTED and len(wrong) <= len(right):
            which = _plural(name) if len(wrong) > 1 else name
            found.append((len(wrong), f"only in {which} {_listed(wrong)}"))
        elif len(right) <= MAX_LISTED:
            found.append((len(right), f"in every {name} but {_listed(right)}"))
    return min(found, default=(0, ""))[1]


def _plural(name: str) -> str:
    return f"{name[:-1]}ies" if name.endswith("ry") else f"{name}s"


def _listed(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


# The most telling first; the first that holds for a tensor is used.
FACTS: tuple[Fact, ...] = (
    nowhere_finite,
    all_zero,
    transposed,
    multiple,
    shifted,
    reordered,
    finite_elsewhere,
    few_digits,
    softmax_of_multiples,
    rows_do_not_sum_to_one,
    wrong_where_zero,
    on_the_diagonal,
    only_some,
    slightly,
)
# The ranks after all facts: of an error, and of a number if nothing else can be said.
AN_ERROR, LAST_RESORT = len(FACTS) + FIRST, len(FACTS) + FIRST + 1


def most_telling(c: Compared) -> tuple[int, str]:
    """Return the first fact that holds for a tensor with wrong values, and its rank."""
    for rank, fact in enumerate(FACTS, start=FIRST):
        if says := fact(c):
            return rank, says
    return LAST_RESORT, first_difference(c)
