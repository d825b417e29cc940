"""Probes of positional encoding: what tells its mistakes apart."""

import torch

from grader.probing import (
    ACCEPTED,
    Aspect,
    dropped_weights,
    gradients,
    often,
    probe,
    seeded,
    works,
    works_elsewhere,
    works_too,
    written,
)
from grader.testing import expect

AXES = ("batch item", "token", "column")  # of an output, in the singular
ADDS = Aspect("adds", "what the module adds to the tokens")
GAP = Aspect("gap", "what `permutation_gap` returns")
D_MODEL = 6


def made(student, context=5, d_model=D_MODEL, *, dtype=torch.float64, **options):
    """Return a module in evaluation mode."""
    with seeded(student, 1):  # a table that is drawn is the same for each program
        return student.PositionalEncoding(d_model, context, **options).to(dtype).eval()


def called(module, x):
    """Return an output in float32, because the encoding is rounded to float32 in any module."""
    return module(x).float()


@probe("values")
def table(student, rng):
    """A table of seven positions and six columns with a base of 4."""
    return student.sinusoidal(7, 6, base=4.0)


@probe("values")
def longer_table(student, rng):
    """A table of twelve positions and ten columns with a base of 2."""
    return student.sinusoidal(12, 10, base=2.0)


@probe("values")
def default_base(student, rng):
    """A table with the default base, rounded."""
    return student.sinusoidal(6, 8).to(torch.bfloat16)


@probe("square")
def square(student, rng):
    """A table of as many positions as columns."""
    return student.sinusoidal(4, 4, base=3.0)


@probe("options")
def odd_width(student, rng):
    """A table of an odd number of columns."""
    return student.sinusoidal(5, 7, base=4.0)


@probe("refusals")
def odd_widths_work(student, rng):
    """Whether a table of an odd number of columns is made."""
    return often(works(lambda: expect(student.sinusoidal(5, 7).shape == (5, 7), "it is another")))


@probe("single")
def one_column(student, rng):
    """A table of one column, and one of one position."""
    return [student.sinusoidal(12, 1, base=4.0), student.sinusoidal(1, 12, base=4.0)]


@probe(ADDS)
def whole_context(student, rng):
    """As many tokens as the context is long."""
    return called(made(student), rng.randn(2, 5, D_MODEL))


@probe(ADDS)
def part_of_context(student, rng):
    """Fewer tokens than the context is long."""
    return called(made(student, 9), rng.randn(2, 5, D_MODEL))


@probe(ADDS)
def all_sizes_equal(student, rng):
    """As many sentences as tokens and columns."""
    return called(made(student, 4, 4), rng.randn(4, 4, 4))


def beside_own(student, encode, x, permutation):
    """Return how far a gap is from the one of the student's own module."""
    gap = student.permutation_gap(encode, x, permutation)
    own = (encode(x[:, permutation]) - encode(x)[:, permutation]).abs().max()
    return (torch.as_tensor(gap) - own).detach().float()


@probe(GAP)
def gaps(student, rng):
    """The gaps of a dozen inputs, less those that the module has."""
    found = []
    for seed, order in enumerate(([1, 2, 0], [2, 0, 1], [2, 0, 3, 1], [1, 3, 0, 2]) * 3):
        n_tokens, d_model = len(order), 2 + 2 * (seed % 3)
        x = rng.randn(2, n_tokens, d_model)
        encode = made(student, n_tokens, d_model)
        found.append(beside_own(student, encode, x, torch.tensor(order)))
    return found


@probe(GAP)
def gaps_where_sizes_are_equal(student, rng):
    """The gaps of inputs of as many sentences as tokens and columns, less those of the module."""
    found = []
    for order in ([2, 0, 3, 1], [1, 3, 0, 2], [3, 0, 1, 2], [1, 0, 3, 2]) * 3:
        encode, x = made(student, 4, 4), rng.randn(4, 4, 4)
        found.append(beside_own(student, encode, x, torch.tensor(order)))
    return found


@probe("layers")
def parameters(student, rng):
    """How many parameters there are, and how many tensors are saved."""
    encode = made(student)
    return {
        "parameters": often(float(len(list(encode.named_parameters())))),
        "saved": often(float(len(encode.state_dict()))),
    }


@probe("gradient")
def gradient(student, rng):
    """The gradient of x."""
    found = gradients(made(student), rng.randn(2, 5, D_MODEL))
    return {name: found[name] for name in ("input 0", "gradients") if name in found}


@probe("training")
def dropped(student, rng):
    """What dropout makes of the sum, times 0.6."""
    x = rng.randn(40, 5, D_MODEL) + 5
    plain = made(student)(x)
    with seeded(student, 3):
        output = made(student, dropout=0.4).train()(x)
    found = torch.where(output == 0, plain, output * 0.6)  # the same for any draws
    return {"kept": found.float()[:6], "drops": often(bool((output == 0).any()))}


@probe("training")
def sums_dropped(student, rng):
    """Which numbers of two sentences are dropped together, over 40 draws."""
    module, x = made(student, dropout=0.5).train(), rng.randn(1, 3, D_MODEL).repeat(2, 1, 1) + 5
    with seeded(student, 7):
        outputs = torch.stack([module(x) for _ in range(40)])
    every = torch.ones(3, D_MODEL).bool()  # (tokens, features)
    return dropped_weights(outputs, torch.eye(D_MODEL, dtype=torch.float64), every)


@probe("training")
def default_rate(student, rng):
    """Training mode with the default rate."""
    with seeded(student, 4):
        return called(made(student).train(), rng.randn(4, 5, D_MODEL) + 5)


@probe("training")
def all_dropped(student, rng):
    """Training mode with dropout of 1."""
    return called(made(student, dropout=1.0).train(), rng.randn(2, 5, D_MODEL) + 5)


@probe("training")
def evaluated(student, rng):
    """Evaluation mode with dropout of 0.4."""
    with seeded(student, 5):
        return called(made(student, dropout=0.4), rng.randn(2, 5, D_MODEL) + 5)


@probe("dtype")
def half_precision(student, rng):
    """bfloat16."""
    module = made(student, dtype=torch.bfloat16)
    return module(rng.randn(2, 5, D_MODEL, dtype=torch.bfloat16))


@probe("dtype")
def single_precision(student, rng):
    """float32 in a module that was not converted."""
    return student.PositionalEncoding(D_MODEL, 5)(rng.randn(2, 5, D_MODEL, dtype=torch.float32))


@probe("dtype")
def double_precision(student, rng):
    """Inputs of 0 in float64, of which the shape and the dtype of the output count."""
    return made(student)(torch.zeros(2, 5, D_MODEL, dtype=torch.float64)) * 0


@probe("devices")
def moved(student, rng):
    """Whether the module works after a move to another device."""
    x = rng.randn(2, 5, D_MODEL, dtype=torch.float32)
    return works_elsewhere(lambda: student.PositionalEncoding(D_MODEL, 5, 0.5), x)


@probe("single")
def one_token(student, rng):
    """One token of one sentence."""
    return called(made(student, 1, 12), rng.randn(1, 1, 12))


@probe("views")
def transposed(student, rng):
    """x is a transposed view."""
    return called(made(student), rng.randn(D_MODEL, 5, 2).transpose(0, 2))


@probe("writes")
def argument(student, rng):
    """Which numbers of x are others after a call."""
    x = rng.randn(2, 5, D_MODEL)
    return written(student, made(student), x.clone())[0] != x


@probe("writes")
def argument_of_gap(student, rng):
    """Which numbers of x are others after a call of permutation_gap."""
    x, order = rng.randn(2, 5, D_MODEL), torch.tensor([2, 0, 3, 4, 1])
    encode = made(student)
    call = lambda x: student.permutation_gap(encode, x, order)  # noqa: E731
    return written(student, call, x.clone())[0] != x


@probe("refusals")
def too_many(student, rng):
    """One token more than the context is long."""
    made(student)(rng.randn(2, 6, D_MODEL))
    return ACCEPTED


@probe("refusals")
def far_too_many(student, rng):
    """Twelve tokens where the context has five."""
    made(student)(rng.randn(2, 12, D_MODEL))
    return ACCEPTED


@probe("refusals")
def two_for_one(student, rng):
    """Two tokens where the context has one."""
    made(student, 1)(rng.randn(2, 2, D_MODEL))
    return ACCEPTED


@probe("values")
def fewer_tokens_work(student, rng):
    """Whether fewer tokens work than the context is long."""
    encode, x = made(student), rng.randn(2, 5, D_MODEL)
    return works_too(lambda: called(encode, x), lambda: called(encode, x[:, :-1]))


@probe("single")
def one_column_added(student, rng):
    """Tokens of one feature."""
    return called(made(student, 5, 1), rng.randn(3, 4, 1))


@probe("dtype")
def converted_after_a_call(student, rng):
    """A module that was converted to bfloat16 after a call."""
    module, x = made(student, dtype=torch.float32), rng.randn(2, 5, D_MODEL)
    module(x.float())
    return module.to(torch.bfloat16)(x.bfloat16())
