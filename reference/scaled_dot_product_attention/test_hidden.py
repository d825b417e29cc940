"""Hidden tests of scaled dot-product attention, which decide the points.

One mistake should cost one check. So a check of an edge accepts two answers: the right one, and the
one that follows from what the student's own code gives in the ordinary case.
"""

import functools

import pytest
import torch
from torch import Tensor

from grader.testing import (
    assert_close,
    assert_depends,
    assert_drawn_anew,
    assert_dropped,
    assert_dtype,
    assert_refused,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    output_of,
    parameter_shapes,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

BATCH, N_QUERIES, N_KEYS, D_KEY, D_VALUE = 2, 3, 5, 4, 6
DRAWS, RATE = 400, 0.39
NAMES = ("queries", "keys", "values", "valid_lens")


def qkv(rng, batch=BATCH, n_queries=N_QUERIES, n_keys=N_KEYS, d_key=D_KEY, d_value=D_VALUE):
    """Return random queries, keys and values with the sizes of this suite."""
    queries, keys = rng.randn(batch, n_queries, d_key), rng.randn(batch, n_keys, d_key)
    return queries, keys, rng.randn(batch, n_keys, d_value)


def attended(code, *arguments):
    """Return the output of a new module in evaluation mode, without gradients."""
    return output_of(code.DotProductAttention(0.0).eval(), *arguments)


def lengths(*numbers):
    """Return lengths as a tensor."""
    return torch.tensor(numbers)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it.

    Guards: what is forbidden, of which some differs from the reference at an edge.
    """
    arguments = qkv(rng)
    assert_written_by_hand(
        student,
        lambda: student.batched_product(rng.randn(2, 3, 4), rng.randn(2, 4, 5)),
        lambda: attended(student, *arguments, lengths(2, 4)),
        lambda: student.DotProductAttention(0.0).train()(*arguments),
    )


@pytest.mark.points(1)
def test_batched_product(student, rng):
    """`batched_product` multiplies item by item, and refuses shapes that do not fit.

    Guards: the shapes that `@` and `einsum` broadcast, and those with fewer or more axes.
    """
    for batch, n, m, p in ((2, 3, 4, 5), (3, 4, 2, 1), (1, 2, 3, 4), (4, 1, 1, 3), (3, 3, 3, 3)):
        a, b = rng.randn(batch, n, m), rng.randn(batch, m, p)
        expected = torch.einsum("bnm,bmp->bnp", a, b)
        shown = f"the product of {(batch, n, m)} and {(batch, m, p)}"
        assert_close(in_float64(student.batched_product(a, b)), expected, shown)
        large = in_float64(student.batched_product(a * 1e6, b)) / 1e6
        assert_close(large, expected, f"{shown}, for numbers of 1e6, divided by 1e6,")
    misfits = (
        ((2, 3, 4), (1, 4, 5)),
        ((1, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (3, 4, 5)),
        ((2, 3, 4), (2, 3, 5)),
        ((2, 3, 4), (2, 1, 5)),
        ((2, 3, 1), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((4, 3, 4), (4, 4)),
        ((4, 4), (4, 4, 3)),
        ((3, 4), (2, 4, 5)),
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4,)),
        ((2, 2, 3, 4), (2, 2, 4, 5)),
        ((2, 3, 4), (2, 2, 4, 5)),
    )
    for first, second in misfits:
        call = functools.partial(student.batched_product, rng.randn(*first), rng.randn(*second))
        assert_refused(student, call, f"batched_product with shapes {first} and {second}")


@pytest.mark.points(2)
def test_attention(student, reference, rng):
    """Without lengths, the output is the softmax of the scaled scores times the values.

    Guards: single queries, keys, features and batch items, scores of any size, and calls of one
    module with several sizes; there are no parameters.
    """
    sizes = ((2, 3, 5, 4, 6), (3, 7, 4, 5, 2), (4, 4, 4, 4, 4), (2, 3, 6, 9, 1), (2, 5, 3, 1, 4))
    singles = ((1, 3, 5, 4, 6), (2, 1, 5, 3, 4), (2, 3, 1, 4, 5), (1, 1, 1, 3, 2), (1, 1, 4, 2, 3))
    for shape in (*sizes, *singles):
        arguments = qkv(rng, *shape)
        shown = "(batch, n_queries, n_keys, d_key, d_value) = " + str(shape)
        output = in_float64(attended(student, *arguments))
        assert_close(output, attended(reference, *arguments), f"the output for {shown}")
    # Whole numbers, whose sums are exact in every floating type that code may compute in.
    queries, keys = (rng.randint(-2, 3, BATCH, n, D_KEY).double() for n in (N_QUERIES, N_KEYS))
    values = rng.randn(BATCH, N_KEYS, D_VALUE)
    queries[..., 0], keys[..., 0] = 0, 1
    own = functools.partial(attended, student, queries, keys, values)
    for far in (1e5, -1e5):
        shifted = queries + torch.tensor([far, 0, 0, 0], dtype=torch.float64)
        right = attended(reference, shifted, keys, values)
        what = f"the output for scores near {far / 2:g}"
        assert_right_or_own(attended(student, shifted, keys, values), right, own, what)
    right = attended(reference, queries, keys, values)
    large = in_float64(attended(student, queries, keys, values * 1e6)) / 1e6
    assert_right_or_own(large, right, own, "the output for values of 1e6, divided by 1e6,")
    module = student.DotProductAttention(0.0).eval()
    for shape in sizes:
        arguments = qkv(rng, *shape)
        right = attended(reference, *arguments)
        own = functools.partial(attended, student, *arguments)
        what = "the output of a module that was called with other sizes before"
        assert_right_or_own(output_of(module, *arguments), right, own, what)
    found = parameter_shapes(student.DotProductAttention(0.0))
    expect(not found, f"the module has the parameters {list(found)}, where none are expected")


@pytest.mark.points(1)
def test_lengths(student, reference, rng):
    """Padded keys are left out, for each batch item or for each query; length 0 gives zeros.

    Guards: lengths that do not fit are refused.
    """
    cases = {
        (4, 3, 5): (lengths(2, 4, 1, 5), lengths(0, 3, 5, 1)),
        (2, 3, 5): (lengths([2, 4, 3], [5, 1, 2]), lengths([0, 2, 1], [3, 0, 0])),
        (3, 3, 3): (lengths(2, 3, 1), lengths([1, 3, 2], [2, 1, 1], [3, 2, 1])),
        (2, 6, 4): (lengths(3, 2), lengths([1, 3, 2, 2, 1, 4], [3, 1, 2, 4, 1, 0])),
        (1, 2, 4): (lengths(3), lengths([2, 3])),
    }
    for (batch, n_queries, n_keys), kinds in cases.items():
        queries, keys, values = qkv(rng, batch, n_queries, n_keys)
        for lens in kinds:
            each = lens.view(batch, -1).expand(batch, n_queries)
            output = attended(student, queries, keys, values, lens)
            right = attended(reference, queries, keys, values, lens)

            def first_keys(each=each, q=queries, k=keys, v=values, right=right):
                output = torch.zeros_like(right)
                for b, i in (each > 0).nonzero().tolist():
                    some = slice(0, int(each[b, i]))
                    row = attended(student, q[b, i][None, None], k[b, None, some], v[b, None, some])
                    output[b, i] = row.view(-1)
                return output

            assert_right_or_own(output, right, first_keys, f"the output for {lens.tolist()}")
    arguments = qkv(rng)
    for lens in (
        lengths(2, N_KEYS + 1),
        lengths([2, 4, 3], [5, N_KEYS + 1, 2]),
        lengths(2, 3, 4),
        torch.ones(N_QUERIES, BATCH),
        torch.ones(BATCH, N_KEYS),
    ):
        shown = f"forward with {N_KEYS} keys and valid_lens of shape {tuple(lens.shape)}"
        if lens.max() > N_KEYS:
            shown = f"forward with {N_KEYS} keys and valid_lens {lens.tolist()}"
        assert_refused(student, functools.partial(attended, student, *arguments, lens), shown)


def assert_spoilt_values_stay(student, rng):
    """Raise `Mismatch` if padded values of nan are written into."""
    queries, keys, values = qkv(rng)
    values[:, 3:] = torch.nan
    module, lens = student.DotProductAttention(0.0), lengths(3, 2)
    assert_unchanged(student, module, queries, keys, values, lens, names=(*NAMES[:3], "valid_lens"))


@pytest.mark.points(1)
def test_padded_values(student, reference, rng):
    """The value of a key that is padded for every query has no effect, even if it is nan or inf.

    Guards: nan in a value that every query uses stays visible.
    """
    cases = (lengths(2, 4, 3), lengths([2, 4, 3], [3, 1, 2], [0, 0, 1]), lengths(0, 3, 1))
    queries, keys, values = qkv(rng, 3)
    for lens in cases:
        padded = torch.arange(N_KEYS) >= lens.view(3, -1).amax(dim=1, keepdim=True)
        clean = values.masked_fill(padded.unsqueeze(-1), 0.0)
        own = functools.partial(attended, student, queries, keys, clean, lens)
        right = attended(reference, queries, keys, clean, lens)
        ordinary = in_float64(own())
        expect((ordinary != 0).any(), "all outputs are 0")
        for filler in (torch.nan, torch.inf, -torch.inf, 1e30):
            spoilt = values.masked_fill(padded.unsqueeze(-1), filler)
            output = attended(student, queries, keys, spoilt, lens)
            shown = f"the output for padded values of {filler:g}"
            assert_right_or_own(output, right, own, shown)
    assert_spoilt_values_stay(student, rng)
    used = values.clone()
    used[:, 0, 0] = torch.nan
    for lens in (None, lengths(2, 4, 3)):
        output = attended(student, queries, keys, used, lens)
        seen = isinstance(output, Tensor) and output[..., 0].isnan().all()
        expect(seen, "nan in a value that every query uses does not make the output nan")


@pytest.mark.points(1)
def test_kept_weights(student, reference, rng):
    """After each call, `attention_weights` holds its weights before dropout, in both modes."""
    kinds = {
        (2, 3, 5): None,
        (3, 4, 6): lengths(2, 4, 1),
        (1, 1, 4): None,
        (2, 1, 5): None,
        (2, 3, 1): None,
    }
    for sizes, lens in kinds.items():
        queries, keys, _ = qkv(rng, *sizes)
        identity = torch.eye(sizes[2], dtype=torch.float64).expand(sizes[0], -1, -1)
        arguments = queries, keys, identity, lens  # the output is the weights
        right = attended(reference, *arguments)
        own = functools.partial(attended, student, *arguments)
        for training in (True, False):
            module = student.DotProductAttention(0.5).train(training)
            output = output_of(module, *arguments)
            expect(isinstance(output, Tensor), "the output is not a tensor")
            shown = f"attention_weights in {'training' if training else 'eval'} mode"
            assert_right_or_own(module.attention_weights, right, own, shown)
    for number in ("second", "third"):
        other = *qkv(rng)[:2], torch.eye(N_KEYS, dtype=torch.float64).expand(BATCH, -1, -1)
        output_of(module, *other)
        own = functools.partial(attended, student, *other)
        what = f"attention_weights after a {number} call"
        assert_right_or_own(module.attention_weights, attended(reference, *other), own, what)
    empty = *other, torch.zeros(BATCH, dtype=torch.int64)
    own = in_float64(output_of(module.eval(), *empty))
    if own.isfinite().all():  # another check asks what length 0 gives
        kept = in_float64(module.attention_weights)
        assert_same(kept, own, "attention_weights after a call with length 0")


@pytest.mark.points(1)
def test_dropout(student, rng):
    """In training, each weight is dropped on its own at the rate; in eval mode none is.

    Guards: the rest are scaled up, and rate 1 drops everything.
    """
    arguments = [tensor.repeat(DRAWS, 1, 1) for tensor in qkv(rng, batch=1, d_value=9)]
    # The values are independent vectors (5 of size 9), so an output determines the weights.
    inverse = torch.linalg.pinv(arguments[2][0])
    outputs = [
        in_float64(output_of(student.DotProductAttention(rate).train(), *arguments))
        for rate in (0.0, RATE, 1.0)
    ]
    expect(outputs[1].isfinite().all(), "the output in training is not finite")
    assert_depends(outputs[0])
    same_shape = outputs[0].shape == outputs[1].shape == (DRAWS, N_QUERIES, 9)
    expect(same_shape, "the output has another shape in training")
    plain, seen = (output @ inverse for output in outputs[:2])
    dropped = seen.abs() < plain.abs() / 2
    expected = (plain / (1 - RATE)).masked_fill(dropped, 0.0)
    what = "the weights in training (computed from the output)"
    assert_close(seen, expected, what, atol=1e-4)
    assert_dropped(dropped[:, plain[0].abs() > 1e-3], RATE, "weights")
    assert_close(outputs[2], torch.zeros_like(outputs[2]), "the output at rate 1")
    for lens in (torch.full((DRAWS,), N_KEYS), torch.full((DRAWS, N_QUERIES), N_KEYS)):
        found = in_float64(output_of(student.DotProductAttention(RATE).train(), *arguments, lens))
        differs = (found - outputs[0]).abs().amax() > 1e-3
        expect(differs, f"nothing is dropped with valid_lens of shape {tuple(lens.shape)}")
    module, few = student.DotProductAttention(0.5), [tensor[:2] for tensor in arguments]
    assert_drawn_anew(module.train(), *few)
    evaluated = in_float64(output_of(module.eval(), *few))
    assert_same(evaluated, outputs[0][:2], "the output in eval mode")


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """Gradients reach queries, keys and values, and are those of what the code computes.

    Guards: with lengths of both kinds, also of 0, and with dropout.
    """
    kinds = (None, lengths(2, 4), lengths([2, 4, 3], [5, 1, 2]), lengths([0, 4, 0], [5, 1, 2]))
    for lens, rate in zip(kinds, (0.0, 0.3, 0.0, 0.0)):
        inputs = dict(zip(NAMES, (*qkv(rng), lens)))
        modules = (code.DotProductAttention(rate) for code in (student, reference))
        assert_slopes(student, *modules, inputs, rng=rng)
    inputs = {"a": rng.randn(2, 3, 4), "b": rng.randn(2, 4, 5)}
    functions = student.batched_product, reference.batched_product
    assert_slopes(student, *functions, inputs, rng=rng)


@pytest.mark.points(1)
def test_tensors(student, reference, rng):
    """The output has the dtype of the arguments, which may be views and are not modified."""
    tensors = qkv(rng)
    for lens in (lengths(2, 4), lengths([2, 4, 3], [5, 1, 2]), None):
        plain = in_float64(attended(student, *tensors, lens))
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            shown = f"the output for arguments of {dtype}"
            output = attended(student, *(tensor.to(dtype) for tensor in tensors), lens)
            assert_dtype(output, dtype, shown)
            assert_close(output.double(), plain, shown, rtol=0.1, atol=0.1)
        right = attended(reference, *tensors, lens)
        turned = [tensor.mT.contiguous().mT for tensor in tensors]
        swapped = [tensor.transpose(0, 1).contiguous().transpose(0, 1) for tensor in tensors]
        for views in (tensors, turned, swapped):
            module = student.DotProductAttention(0.0).eval()
            output = assert_unchanged(student, module, *views, lens, names=NAMES).detach()
            assert_right_or_own(output, right, lambda p=plain: p, "the output for views")
    a, b = rng.randn(2, 3, 4), rng.randn(2, 4, 5)
    plain = student.batched_product(a, b)
    for views in ((a, b), [tensor.mT.contiguous().mT for tensor in (a, b)]):
        product = assert_unchanged(student, student.batched_product, *views, names=("a", "b"))
        assert_same(product, plain, "the product of views")
    narrow = student.batched_product(a.to(torch.bfloat16), b.to(torch.bfloat16))
    assert_dtype(narrow, torch.bfloat16, "the product of matrices in bfloat16")


@pytest.mark.points(1)
def test_no_python_loops(student, reference, rng):
    """No Python loop runs over batch, queries or keys."""
    for kind in ("a length for each batch item", "a length for each query", "no lengths"):

        def called(batch=BATCH, n_queries=N_QUERIES, n_keys=N_KEYS, kind=kind):
            lens = rng.randint(2, n_keys, batch, n_queries)
            kinds = {"a length for each batch item": lens[:, 0], "a length for each query": lens}
            arguments = *qkv(rng, batch, n_queries, n_keys), kinds.get(kind)
            return lambda code: attended(code, *arguments)

        assert_depends(called()(student))
        grown = {"batch": (105, 211), "n_queries": (106, 213), "n_keys": (109, 219)}
        axes = zip(("batch items", "queries", "keys"), grown.items())
        named = {f"{axis} ({kind})": dict([sizes]) for axis, sizes in axes}
        assert_vectorised(student, called, named, reference)

    def product(batch=2, n=3, m=4, p=5):
        a, b = rng.randn(batch, n, m), rng.randn(batch, m, p)
        return lambda code: code.batched_product(a, b)

    grown = {"batch items": {"batch": (105, 211)}, "rows": {"n": (103, 207)}}
    grown |= {"columns": {"p": (101, 203)}, "terms": {"m": (107, 215)}}
    assert_vectorised(student, product, grown, reference)
