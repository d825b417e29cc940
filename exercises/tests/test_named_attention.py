"""Public tests of named attention, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
)

pytestmark = pytest.mark.needs("test_by_hand")

SIZES = {"batch": 2, "query": 3, "seq": 5, "key": 4, "val": 6, "head": 3, "chans": 7}
QUERY, KEY, VALUE = ("batch", "query", "key"), ("batch", "seq", "key"), ("batch", "seq", "val")
X, W_Q, W_V = ("batch", "seq", "chans"), ("head", "chans", "key"), ("head", "chans", "val")
MULTI_HEAD = (X, W_Q, W_Q, W_V, ("head", "val", "chans"))


def named(rng, *names, **sizes):
    """Return a random named tensor with these axes."""
    return rng.randn(*({**SIZES, **sizes}[name] for name in names)), names


def in_order(result, *names):
    """Return the tensor of a named result with its axes in the order of `names`."""
    tensor, found = result
    says = f"the result has the axes {found}; {names} are expected, in any order"
    expect(sorted(found) == sorted(names), says)
    return tensor.permute([list(found).index(name) for name in names])


def worked():
    """Return query, key and value of the worked example."""
    query = torch.tensor([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    key = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    value = torch.tensor([[1.0, 3.0, 0.0], [2.0, 4.0, 1.0]])
    return (query, ("query", "key")), (key, ("seq", "key")), (value, ("seq", "val"))


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes the attention."""
    three = [named(rng, *names) for names in (QUERY, KEY, VALUE)]
    five = [named(rng, *names) for names in MULTI_HEAD]
    calls = (lambda: student.attend(*three), lambda: student.multi_head(*five))
    assert_written_by_hand(student, *calls)


@pytest.mark.points(5)
def test_worked_example(student):
    """The worked example, with the axes of the key in both orders."""
    query, key, value = worked()
    output = torch.tensor([[1.3595, 3.3595, 0.3595], [1.7604, 3.7604, 0.7604]])
    for named_key in (key, (key[0].T, ("key", "seq"))):
        products = student.contract(query, named_key, "key")
        assert_close(in_order(products, "query", "seq"), torch.tensor([[2.0, 1.0], [0.0, 2.0]]))
        result = student.attend(query, named_key, value)
        assert_close(in_order(result, "query", "val"), output, atol=1e-4)


@pytest.mark.points(4)
def test_contract_is_a_product(student, rng):
    """`contract` gives the matrix product of each batch item, and can sum over two axes."""
    (a, _), (b, _) = query, key = named(rng, *QUERY), named(rng, *KEY)
    product = in_order(student.contract(query, key, "key"), "batch", "query", "seq")
    assert_close(product, a @ b.mT)
    (a, _), (b, _) = x, y = named(rng, "query", "head", "val"), named(rng, "head", "val", "chans")
    product = in_order(student.contract(x, y, "head", "val"), "query", "chans")
    assert_close(product, a.flatten(1) @ b.flatten(0, 1))


@pytest.mark.points(2)
def test_heads_are_added_up(student, rng):
    """The output of `multi_head` with two heads is the sum of those with one head each."""
    x, *weights = (named(rng, *names, head=2) for names in MULTI_HEAD)
    both = in_order(student.multi_head(x, *weights), *X)
    parts = []
    for head in (slice(0, 1), slice(1, 2)):
        one = [(tensor[head], names) for tensor, names in weights]
        parts.append(in_order(student.multi_head(x, *one), *X))
    expect((both != 0).any(), "the output is 0")
    assert_close(both, parts[0] + parts[1])


@pytest.mark.points(2)
def test_order_does_not_matter(student, rng):
    """With the axes of every argument in another order, `multi_head` gives the same output."""
    five = [named(rng, *names) for names in MULTI_HEAD]
    turned = [(tensor.permute(2, 0, 1), (c, a, b)) for tensor, (a, b, c) in five]
    usual, other = (in_order(student.multi_head(*each), *X) for each in (five, turned))
    expect((usual != 0).any(), "the output is 0")
    assert_close(other, usual)


@pytest.mark.points(0)
def test_further_axes(student, rng):
    """`multi_head` keeps a further axis of `x`, and attends within each of its entries."""
    weights = [named(rng, *names) for names in MULTI_HEAD[1:]]
    further = named(rng, "batch", "side", "seq", "chans", side=3)
    whole = in_order(student.multi_head(further, *weights), "batch", "side", "seq", "chans")
    for side in range(3):
        alone = student.multi_head((further[0][:, side], X), *weights)
        assert_close(whole[:, side], in_order(alone, *X))


@pytest.mark.points(4)
def test_refused(student, rng):
    """A missing, doubled or unequal axis is refused, and so is a query with seq."""
    query, key, value = (named(rng, *names) for names in (QUERY, KEY, VALUE))
    for bad in (
        named(rng, "batch", "query"),
        named(rng, "query", "query", "key"),
        named(rng, *QUERY, key=1),
        named(rng, *QUERY, batch=3),
    ):
        assert_refused(student, lambda bad=bad: student.contract(bad, key, "key"), "contract")
    for bad in (named(rng, "batch", "seq", "key"), named(rng, *QUERY, batch=1)):
        assert_refused(student, lambda bad=bad: student.attend(bad, key, value), "attend")
    without = named(rng, "batch", "val")
    assert_refused(student, lambda: student.attend(query, key, without), "attend")


@pytest.mark.points(0)
def test_tensors(student, rng):
    """Nothing is written into an argument, the dtype is kept, and gradients arrive."""
    tensors = [named(rng, *names)[0] for names in MULTI_HEAD]

    def call(*tensors):
        return student.multi_head(*zip(tensors, MULTI_HEAD))

    assert_unchanged(student, call, *tensors, names=("x", "W_q", "W_k", "W_v", "W_o"))
    halves = [tensor.bfloat16().requires_grad_() for tensor in tensors]
    output = call(*halves)[0]
    assert_dtype(output, torch.bfloat16, "the output for bfloat16")
    output.double().pow(2).sum().backward()
    expect(all(tensor.grad is not None for tensor in halves), "a tensor gets no gradient")


@pytest.mark.points(0)
def test_no_loops(student, rng):
    """No Python loop runs over the entries of an axis."""

    def called(**sizes):
        five = [named(rng, *names, **sizes) for names in MULTI_HEAD]
        return lambda: student.multi_head(*five)

    grown = {f"entries of {axis}": {axis: (11, 23)} for axis in ("batch", "seq", "head")}
    assert_vectorised(student, called, grown)
