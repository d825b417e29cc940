"""Probes of named attention: what tells its mistakes apart."""

import torch
from torch import Tensor

from grader.errors import StudentFailure
from grader.probing import ACCEPTED, Aspect, gradients, often, probe, written

AXES = ("batch item", "query", "feature")  # of an output, in the singular

ORDER = Aspect("order", "tensors whose axes are in another order")
PRODUCT = Aspect("product", "what `contract` returns")
MESSAGES = Aspect("messages", "the messages of errors", is_edge=True)
HEADS = Aspect("heads", "what `multi_head` returns")
SIZES = {"batch": 2, "query": 3, "seq": 5, "key": 4, "val": 6, "head": 7, "chans": 8, "side": 2}
QUERY, KEY, VALUE = ("batch", "query", "key"), ("batch", "seq", "key"), ("batch", "seq", "val")
SCORES, OUTPUT = ("batch", "query", "seq"), ("batch", "query", "val")
X, W_Q, W_V = ("batch", "seq", "chans"), ("head", "chans", "key"), ("head", "chans", "val")
MULTI_HEAD = (X, W_Q, W_Q, W_V, ("head", "val", "chans"))
REFUSALS = "ValueError", "AssertionError", "RuntimeError", "IndexError"


def named(rng, *names, **sizes):
    """Return a random named tensor with these axes."""
    return rng.randn(*({**SIZES, **sizes}[name] for name in names)), names


def three(rng, *names, **sizes):
    """Return a named query, key and value; `names` replaces their names."""
    return [named(rng, *each, **sizes) for each in names or (QUERY, KEY, VALUE)]


def five(rng, **sizes):
    """Return the arguments of `multi_head`."""
    return [named(rng, *each, **sizes) for each in MULTI_HEAD]


def turned(x, *order):
    """Return a named tensor with its axes in another order."""
    return x[0].permute(order).contiguous(), tuple(x[1][place] for place in order)


def in_order(result, *names):
    """Return the tensor of a result in the order of `names`; with other axes, by their names."""
    tensor, found = result
    if not isinstance(tensor, Tensor) or tensor.ndim != len(found):
        return [tensor, list(found)]
    found = [str(name)[:20] for name in found[:20]]
    wanted = names if sorted(found) == sorted(names) else sorted(found)
    if sorted(found) == sorted(names):
        return tensor.permute([found.index(name) for name in names])
    order = sorted(range(tensor.ndim), key=lambda place: found[place])
    return {"axes": " ".join(wanted), "tensor": tensor.permute(order)}


# --- ordinary calls -------------------------------------------------------------------------------


@probe("values")
def ordinary(student, rng):
    """`attend` with batch in all three."""
    return in_order(student.attend(*three(rng)), *OUTPUT)


@probe("values")
def longer(student, rng):
    """`attend` with more queries than keys."""
    return in_order(student.attend(*three(rng, query=7, seq=4, key=9)), *OUTPUT)


@probe("values")
def weights(student, rng):
    """The weights of `attend`, with unit vectors as values."""
    query, key = named(rng, *QUERY), named(rng, *KEY)
    value = torch.eye(5, dtype=torch.float64), ("seq", "val")
    return in_order(student.attend(query, key, value), *OUTPUT)


@probe("square")
def square(student, rng):
    """`attend` with all sizes equal."""
    return in_order(student.attend(*three(rng, **dict.fromkeys(SIZES, 4))), *OUTPUT)


@probe(PRODUCT)
def product(student, rng):
    """The product over key of a query and a key with batch."""
    return in_order(student.contract(named(rng, *QUERY), named(rng, *KEY), "key"), *SCORES)


@probe(PRODUCT)
def matrices(student, rng):
    """The product of two matrices."""
    left, right = named(rng, "query", "key"), named(rng, "seq", "key")
    return in_order(student.contract(left, right, "key"), "query", "seq")


@probe(PRODUCT)
def two_sums(student, rng):
    """The product over head and val."""
    left, right = named(rng, "query", "head", "val"), named(rng, "head", "val", "chans")
    return in_order(student.contract(left, right, "head", "val"), "query", "chans")


@probe(PRODUCT)
def one_sided(student, rng):
    """A product with axes that only one of the tensors has."""
    left, right = named(rng, "batch", "query", "key"), named(rng, "head", "seq", "key")
    wanted = "batch", "query", "head", "seq"
    return in_order(student.contract(left, right, "key"), *wanted)


@probe(PRODUCT)
def equal_sizes(student, rng):
    """A product of tensors with all sizes equal."""
    sizes = dict.fromkeys(SIZES, 4)
    left, right = named(rng, *QUERY, **sizes), named(rng, *KEY, **sizes)
    return in_order(student.contract(left, right, "key"), *SCORES)


@probe(HEADS)
def heads(student, rng):
    """`multi_head` with batch."""
    return in_order(student.multi_head(*five(rng)), *X)


@probe(HEADS)
def equal_heads(student, rng):
    """`multi_head` with all sizes equal."""
    return in_order(student.multi_head(*five(rng, **dict.fromkeys(SIZES, 3))), *X)


@probe(HEADS)
def one_head(student, rng):
    """`multi_head` with one head."""
    return in_order(student.multi_head(*five(rng, head=1)), *X)


# --- other orders and axes ------------------------------------------------------------------------


@probe(ORDER)
def turned_product(student, rng):
    """`contract` with the axes of both tensors in another order."""
    left, right = turned(named(rng, *QUERY), 2, 0, 1), turned(named(rng, *KEY), 1, 2, 0)
    return in_order(student.contract(left, right, "key"), *SCORES)


@probe(ORDER)
def turned_query(student, rng):
    """`attend` with the query as (key, query, batch)."""
    query, key, value = three(rng)
    return in_order(student.attend(turned(query, 2, 1, 0), key, value), *OUTPUT)


@probe(ORDER)
def turned_key(student, rng):
    """`attend` with the key as (key, seq, batch)."""
    query, key, value = three(rng)
    return in_order(student.attend(query, turned(key, 2, 1, 0), value), *OUTPUT)


@probe(ORDER)
def seq_first(student, rng):
    """`attend` with key and value as (seq, batch, …)."""
    query, key, value = three(rng)
    key, value = turned(key, 1, 0, 2), turned(value, 1, 0, 2)
    return in_order(student.attend(query, key, value), *OUTPUT)


@probe(ORDER)
def batch_in_the_middle(student, rng):
    """`attend` of queries without batch and keys as (seq, batch, key)."""
    query, key, value = three(rng, ("query", "key"), KEY, VALUE)
    return in_order(student.attend(query, turned(key, 1, 0, 2), value), *OUTPUT)


@probe(ORDER)
def further_axis(student, rng):
    """`attend` of keys as (seq, side, key), where only they have side."""
    query, key, value = three(rng, ("query", "key"), ("side", "seq", "key"), ("seq", "val"))
    result = student.attend(query, turned(key, 1, 0, 2), value)
    return in_order(result, "side", "query", "val")


@probe(ORDER)
def turned_head(student, rng):
    """`multi_head` with the axes of every tensor in another order."""
    return in_order(student.multi_head(*(turned(x, 2, 0, 1) for x in five(rng))), *X)


@probe("leading axes")
def plain(student, rng):
    """`attend` without batch."""
    names = ("query", "key"), ("seq", "key"), ("seq", "val")
    return in_order(student.attend(*three(rng, *names)), "query", "val")


@probe("leading axes")
def shared_query(student, rng):
    """`attend` of queries without batch."""
    return in_order(student.attend(*three(rng, ("query", "key"), KEY, VALUE)), *OUTPUT)


@probe("leading axes")
def several(student, rng):
    """`attend` with batch and head, of which the value has head alone."""
    names = (
        ("batch", "head", "query", "key"),
        ("batch", "head", "seq", "key"),
        ("head", "seq", "val"),
    )
    result = student.attend(*three(rng, *names))
    return in_order(result, "batch", "head", "query", "val")


@probe("leading axes")
def without_batch(student, rng):
    """`multi_head` without batch."""
    given = [named(rng, "seq", "chans"), *five(rng)[1:]]
    return in_order(student.multi_head(*given), "seq", "chans")


@probe("single")
def one_key(student, rng):
    """`attend` with one key, and with one query of one batch item."""
    results = [student.attend(*three(rng, seq=1))]
    results.append(student.attend(*three(rng, batch=1, query=1)))
    return [in_order(result, *OUTPUT) for result in results]


@probe("single")
def one_number(student, rng):
    """`attend` with keys and values of one number."""
    return in_order(student.attend(*three(rng, key=1, val=1)), *OUTPUT)


@probe("single")
def one_token(student, rng):
    """`multi_head` with one token."""
    return in_order(student.multi_head(*five(rng, seq=1)), *X)


# --- what else is promised ------------------------------------------------------------------------


@probe("gradient")
def gradient(student, rng):
    """The gradients of `attend`."""
    tensors = [tensor for tensor, _ in three(rng)]

    def call(*tensors):
        return in_order(student.attend(*zip(tensors, (QUERY, KEY, VALUE))), *OUTPUT)

    return gradients(call, *tensors)


@probe("gradient")
def gradient_of_heads(student, rng):
    """The gradients of `multi_head`."""
    sizes = {"head": 3, "chans": 4, "val": 2, "key": 5, "seq": 6}
    tensors = [tensor for tensor, _ in five(rng, **sizes)]
    return gradients(lambda *t: in_order(student.multi_head(*zip(t, MULTI_HEAD)), *X), *tensors)


@probe("gradient")
def gradient_of_product(student, rng):
    """The gradients of `contract`."""
    tensors = [named(rng, *names)[0] for names in (QUERY, KEY)]

    def call(a, b):
        return in_order(student.contract((a, QUERY), (b, KEY), "key"), *SCORES)

    return gradients(call, *tensors)


@probe("extreme scores")
def large(student, rng):
    """`attend` with scores of ten thousand."""
    query, key, value = three(rng)
    return in_order(student.attend((query[0] * 1e4, QUERY), key, value), *OUTPUT)


@probe("extreme scores")
def finite(student, rng):
    """Which outputs are finite if the scores rise from 20 to 20,000."""
    query, key, value = three(rng, query=8)
    rising = torch.logspace(1.3, 4.3, 8, dtype=torch.float64).view(1, 8, 1)
    output = in_order(student.attend((query[0] * rising, QUERY), key, value), *OUTPUT)
    return output.isfinite() if isinstance(output, Tensor) else output


@probe("views")
def views(student, rng):
    """`attend` of transposed views."""
    views = [(tensor.mT.contiguous().mT, names) for tensor, names in three(rng)]
    return in_order(student.attend(*views), *OUTPUT)


@probe("dtype")
def single_precision(student, rng):
    """`attend` in float32."""
    given = [(tensor.float(), names) for tensor, names in three(rng)]
    return in_order(student.attend(*given), *OUTPUT)


@probe("dtype")
def half_precision(student, rng):
    """`attend` in bfloat16."""
    given = [(tensor.bfloat16(), names) for tensor, names in three(rng)]
    return in_order(student.attend(*given), *OUTPUT)


@probe("dtype")
def half_product(student, rng):
    """`contract` in bfloat16."""
    left, right = named(rng, *QUERY), named(rng, *KEY)
    result = student.contract((left[0].bfloat16(), QUERY), (right[0].bfloat16(), KEY), "key")
    return in_order(result, *SCORES)


@probe("writes")
def arguments(student, rng):
    """Which numbers of query, key and value are others after a call of `attend`."""
    before = [tensor for tensor, _ in three(rng)]
    copies = [tensor.clone() for tensor in before]
    after = written(student, lambda *t: student.attend(*zip(t, (QUERY, KEY, VALUE))), *copies)
    return [new != old for new, old in zip(after, before)]


# --- refusals -------------------------------------------------------------------------------------


@probe("refusals")
def missing_in_right(student, rng):
    """`contract` over an axis that only the left tensor has."""
    student.contract(named(rng, *QUERY), named(rng, "batch", "seq"), "key")
    return ACCEPTED


@probe("refusals")
def missing_in_left(student, rng):
    """`contract` over an axis that only the right tensor has."""
    student.contract(named(rng, "batch", "query"), named(rng, *KEY), "key")
    return ACCEPTED


@probe("refusals")
def no_seq_in_key(student, rng):
    """`attend` of a key without seq."""
    student.attend(*three(rng, QUERY, ("batch", "key"), VALUE))
    return ACCEPTED


@probe("refusals")
def no_seq_in_value(student, rng):
    """`attend` of a value without seq."""
    student.attend(*three(rng, QUERY, KEY, ("batch", "val")))
    return ACCEPTED


@probe("refusals")
def doubled_left(student, rng):
    """`contract` of a left tensor that has an axis twice."""
    student.contract(named(rng, "query", "query", "key"), named(rng, *KEY), "key")
    return ACCEPTED


@probe("refusals")
def doubled_right(student, rng):
    """`contract` of a right tensor that has an axis twice."""
    student.contract(named(rng, *QUERY), named(rng, "seq", "seq", "key"), "key")
    return ACCEPTED


@probe("refusals")
def doubled_sum_left(student, rng):
    """`contract` over an axis that the left tensor has twice."""
    student.contract(named(rng, "query", "key", "key"), named(rng, *KEY), "key")
    return ACCEPTED


@probe("refusals")
def doubled_sum_right(student, rng):
    """`contract` over an axis that the right tensor has twice."""
    student.contract(named(rng, *QUERY), named(rng, "seq", "key", "key"), "key")
    return ACCEPTED


@probe("refusals")
def unequal(student, rng):
    """`contract` with 4 and 3 numbers along key."""
    student.contract(named(rng, *QUERY), named(rng, *KEY, key=3), "key")
    return ACCEPTED


@probe("refusals")
def one_for_all(student, rng):
    """`contract` with a batch of one beside a batch of two."""
    student.contract(named(rng, *QUERY, batch=1), named(rng, *KEY), "key")
    return ACCEPTED


@probe("refusals")
def one_for_all_right(student, rng):
    """`contract` with one number along key in the right tensor."""
    student.contract(named(rng, *QUERY), named(rng, *KEY, key=1), "key")
    return ACCEPTED


@probe("refusals")
def query_with_seq(student, rng):
    """`attend` of a query that has the axis seq."""
    student.attend(*three(rng, KEY, KEY, VALUE))
    return ACCEPTED


def names_it(axis, function, *given):
    """Return ten times and more whether no error hides the axis: what is accepted hides nothing."""
    try:
        function(*given)
    except StudentFailure as failure:
        if failure.kind not in REFUSALS:
            raise
        return often(axis in failure.message)
    except (ValueError, RuntimeError, IndexError) as error:  # of the reference and known mistakes
        return often(axis in str(error))
    return ACCEPTED


@probe(MESSAGES)
def missing_in_message(student, rng):
    """Whether the message says that key is missing."""
    left, right = named(rng, "batch", "query"), named(rng, *KEY)
    return names_it("key", student.contract, left, right, "key")


@probe(MESSAGES)
def missing_seq_in_message(student, rng):
    """Whether the message says that the key has no seq."""
    return names_it("seq", student.attend, *three(rng, QUERY, ("batch", "key"), VALUE))


@probe(MESSAGES)
def doubled_in_message(student, rng):
    """Whether the message says that query is there twice."""
    left, right = named(rng, "query", "query", "key"), named(rng, *KEY)
    return names_it("query", student.contract, left, right, "key")


@probe(MESSAGES)
def unequal_in_message(student, rng):
    """Whether the message says that batch has two sizes."""
    left, right = named(rng, *QUERY), named(rng, *KEY, batch=3)
    return names_it("batch", student.contract, left, right, "key")


@probe(MESSAGES)
def seq_in_message(student, rng):
    """Whether the message says that the query has seq."""
    return names_it("seq", student.attend, *three(rng, KEY, KEY, VALUE))


@probe("leading axes")
def another_batch_axis(student, rng):
    """`multi_head` of an x with the axis out in the place of batch."""
    given = [named(rng, "out", "seq", "chans", out=3), *five(rng)[1:]]
    return in_order(student.multi_head(*given), "out", "seq", "chans")


@probe("refusals")
def doubled_in_the_right_tensor(student, rng):
    """An axis that the right one of two tensors has twice."""
    student.contract(named(rng, *QUERY), named(rng, "seq", "key", "key"), "key")
    return ACCEPTED


@probe("leading axes")
def axes_with_other_names(student, rng):
    """`multi_head` of an x with axes called row, q, class and batch-1."""
    names = "row", "q", "class", "batch-1", "seq", "chans"
    sizes = {"row": 1, "q": 2, "class": 1, "batch-1": 1}
    given = [named(rng, *names, **sizes), *five(rng)[1:]]
    return in_order(student.multi_head(*given), *names)
