"""The checks of positional encoding and their cases."""

import torch

from grader.authors import (
    Aspect,
    Check,
    assert_drawn_anew,
    assert_dropped,
    assert_vectorised,
    built,
    changed,
    drawn,
    dropped_weights,
    expect,
    gradients,
    often,
    output,
    refused,
    seeded,
    turned,
    works,
    works_elsewhere,
    works_too,
    written,
)

AXES = ("batch item", "token", "column")  # of an output, in the singular
ADDS = Aspect("adds", "what the module adds to the tokens")
GAP = Aspect("gap", "what `permutation_gap` returns")
TABLE = "sinusoidal"
D_MODEL, CONTEXT = 6, 5


def made(d_model=D_MODEL, context=CONTEXT, dropout=0.0, **options):
    """Return what makes a module in float64; a table that is a parameter stays as it is."""
    options.setdefault("layers", ["none"])
    return built("PositionalEncoding", d_model, context, dropout, **options)


def added(x, **options):
    """Return a case: the output in float32, because the table is rounded to it in any module."""
    ask = output(made(**options), x)
    return lambda student, rng: ask(student, rng).float()


def rounding(context):
    """Return the tolerance of a table: an angle is rounded as its position is large."""
    return 0.0, 2e-6 * context + 1e-5


test_table = Check(
    "sinusoidal gives each position the sines and cosines of its angles, in float32.", points=3
)
table = test_table.case
for sentence, sizes, base in (
    ("Seven positions and six columns, with a base of 4.", (7, 6), 4.0),
    ("Twelve positions and ten columns, with a base of 2.", (12, 10), 2.0),
):
    table(sentence, output(TABLE, *sizes, base=base), within=rounding(sizes[0]))
table("As many positions as columns.", output(TABLE, 4, 4, base=3.0), about="square")
table("A base that is a whole number.", output(TABLE, 6, 4, base=3), hidden=True)
table("A base without its name.", output(TABLE, 6, 4, 100.0), hidden=True)
for sizes in ((6, 8), (3, 8), (5, 2), (500, 10)):
    sentence = "The default base, with {} positions and {} columns.".format(*sizes)
    table(sentence, output(TABLE, *sizes), within=rounding(sizes[0]))
table("One position.", output(TABLE, 1, 12, base=4.0), about="single")
table("The dtype of a table.", output(TABLE, 3, 4), about="dtype")


@table
def table_without_gradients(student, rng):
    """Whether the table has gradients."""
    return often(student.sinusoidal(5, 6).requires_grad)


test_odd_width = Check("An odd d_model is allowed: the last column is a sine.", about="options")
odd = test_odd_width.case
odd("An odd number of columns.", output(TABLE, 5, 7, base=4.0))
odd("Three columns and the default base.", output(TABLE, 4, 3), hidden=True)
odd("One column.", output(TABLE, 12, 1, base=4.0), about="single")
odd("The dtype of a table of an odd width.", output(TABLE, 3, 5), about="dtype")


@odd(about="layers")
def odd_widths_work(student, rng):
    """Whether a table of an odd number of columns is made."""
    return often(works(lambda: expect(student.sinusoidal(5, 7).shape == (5, 7), "it is another")))


test_adds = Check(
    "The module adds the first n_tokens rows of the table to the tokens of each sentence.",
    points=2,
    about=ADDS,
)
adds = test_adds.case
adds("As many tokens as the context is long.", added(drawn(2, 5, 6)))
adds("Fewer tokens than the context is long.", added(drawn(2, 5, 6), context=9))
adds("As many sentences as tokens and columns.", added(drawn(4, 4, 4), d_model=4, context=4))
adds("One sentence of two tokens.", added(drawn(1, 2, 8), d_model=8, context=9), hidden=True)
adds("More sentences than tokens.", added(drawn(6, 3, 2), d_model=2, context=3), hidden=True)
adds("Tokens of a million.", added(drawn(3, 5, 4, times=1e6), d_model=4), hidden=True)
adds("More tokens.", added(drawn(2, 108, 6), context=110), within=rounding(108), hidden=True)
for sentence, shape in (("One token.", (1, 1, 12)), ("One column in all tokens.", (3, 4, 1))):
    adds(sentence, added(drawn(*shape), d_model=shape[2]), about="single")


@adds(about="values")
def fewer_tokens_work(student, rng):
    """Whether fewer tokens work than the context is long."""
    encode, x = made()(student, rng), rng.randn(2, 5, D_MODEL)
    return works_too(lambda: encode(x), lambda: encode(x[:, :-1]))


test_nothing_to_train_or_save = Check(
    "There are no parameters, state_dict is empty, and the encoding moves with the module.",
    about="layers",
)
layers = test_nothing_to_train_or_save.case


@layers
def kept_by_the_module(student, rng):
    """How many parameters there are, and how many tensors are saved."""
    encode = student.PositionalEncoding(D_MODEL, CONTEXT)
    return {
        "parameters": often(float(len(list(encode.named_parameters())))),
        "saved": often(float(len(encode.state_dict()))),
    }


@layers(hidden=True)
def encoding_without_gradients(student, rng):
    """Whether an output has gradients if x has none."""
    return often(student.PositionalEncoding(3, 7)(rng.randn(2, 4, 3).float()).requires_grad)


@layers(about="devices")
def move(student, rng):
    """Whether the module works after a move to another device."""
    x = rng.randn(2, 5, D_MODEL).float()
    return works_elsewhere(lambda: student.PositionalEncoding(D_MODEL, CONTEXT, 0.5), x)


test_dropout = Check(
    "In training, each number of the sum is dropped on its own; in evaluation, none is.",
    about="training",
)
training = test_dropout.case


@training
def dropped(student, rng):
    """What dropout makes of the sum, times 0.6."""
    x = rng.randn(40, 5, D_MODEL) + 5
    plain = made()(student, rng)(x)
    with seeded(student, 3):
        found = made(dropout=0.4, training=True)(student, rng)(x)
    kept = torch.where(found == 0, plain, found * 0.6)  # the same for any draws
    return {"kept": kept.float()[:6], "drops": often(bool((found == 0).any()))}


@training
def sums_dropped(student, rng):
    """Which numbers of two sentences are dropped together, over 40 draws."""
    encode = made(context=3, dropout=0.5, training=True)(student, rng)
    x = rng.randn(1, 3, D_MODEL).repeat(2, 1, 1) + 5
    with seeded(student, 7):
        outputs = torch.stack([encode(x) for _ in range(40)])
    every = torch.ones(3, D_MODEL).bool()  # (tokens, features)
    return dropped_weights(outputs, torch.eye(D_MODEL, dtype=torch.float64), every)


@training(tells=False, hidden=True)
def rate_of_dropout(student, rng):
    """At a rate of 0.39, each number of 200 tokens is dropped on its own, and others next time."""
    x = rng.randn(2, 200, 4) + 5
    encode = made(4, 200, 0.39, training=True)(student, rng)
    found = encode(x) == 0
    assert_dropped(found.transpose(0, 1), 0.39, "numbers of the output")
    assert_drawn_anew(encode, x, what="numbers")
    return torch.tensor(found.shape)


far = lambda rng: rng.randn(4, 5, D_MODEL) + 5  # noqa: E731
training("Training with a dropout of 1.", added(far, dropout=1.0, training=True))
training("Evaluation with a dropout of 0.4.", added(far, dropout=0.4))


@training
def default_rate(student, rng):
    """Training with the default rate."""
    encode = student.PositionalEncoding(D_MODEL, CONTEXT).to(torch.float64).train()
    return encode(far(rng)).float()


test_too_many_tokens = Check(
    "More tokens than context_length are refused, and as many as that are encoded.",
    about="refusals",
)
too_many = test_too_many_tokens.case
for sentence, context, n_tokens, options in (
    ("One token more than the context is long.", 5, 6, {}),
    ("One token more, in training.", 5, 6, {"training": True}),
    ("Twelve tokens where the context has five.", 5, 12, {}),
    ("Two tokens where the context has one.", 1, 2, {}),
    ("Four tokens where the context has one, in training.", 1, 4, {"training": True}),
):
    ask = refused(made(4, context, **options), drawn(2, n_tokens, 4))
    too_many(sentence, ask)
too_many(
    "Three tokens where the context has two.", refused(made(4, 2), drawn(2, 3, 4)), hidden=True
)
too_many(
    "Two tokens where the context has two.",
    added(drawn(2, 2, 4), d_model=4, context=2),
    about=ADDS,
)


test_gap = Check(
    "The gap is the largest difference between permuting before the block and after it.",
    points=2,
    about=GAP,
)
gap = test_gap.case


def beside_own(student, rng, n_sentences, order, d_model):
    """Return how far a gap is from the one of the student's own module."""
    encode, permutation = made(d_model, len(order))(student, rng), torch.tensor(order)
    x = rng.randn(n_sentences, len(order), d_model)
    found = torch.as_tensor(student.permutation_gap(encode, x, permutation))
    own = (encode(x[:, permutation]) - encode(x)[:, permutation]).abs().max()
    return (found - own).detach().float()


@gap
def gaps(student, rng):
    """The gaps of two dozen inputs, less those that the module has."""
    orders = ([1, 2, 0], [2, 0, 1], [2, 0, 3, 1], [1, 3, 0, 2]) * 6
    return [beside_own(student, rng, 2, order, 2 + 2 * (n % 3)) for n, order in enumerate(orders)]


@gap
def gaps_where_sizes_are_equal(student, rng):
    """The gaps of inputs of as many sentences as tokens and columns, less those of the module."""
    orders = ([2, 0, 3, 1], [1, 3, 0, 2], [3, 0, 1, 2], [1, 0, 3, 2]) * 6
    return [beside_own(student, rng, 4, order, 4) for order in orders]


@gap(hidden=True)
def gaps_of_longer_sentences(student, rng):
    """The gaps of sentences of five tokens, and of one, less those of the module."""
    orders = ([2, 0, 3, 4, 1], [4, 0, 1, 3, 2], [0, 1, 2, 3, 4], [0])
    return [beside_own(student, rng, 3, order, 1) for order in orders]


@gap(hidden=True)
def form_of_a_gap(student, rng):
    """Whether a gap is a float or a tensor without axes."""
    encode, x = made()(student, rng), rng.randn(2, 5, D_MODEL)
    found = student.permutation_gap(encode, x, torch.tensor([2, 0, 3, 4, 1]))
    return often(isinstance(found, float | int) or getattr(found, "shape", None) == ())


test_any_input = Check(
    "Gradients, views and other dtypes work; no loop is needed, and no argument is modified."
)
inputs = test_any_input.case


@inputs(about="gradient")
def slopes(student, rng):
    """The gradient of x."""
    found = gradients(made()(student, rng), rng.randn(2, 5, D_MODEL))
    return {name: found[name] for name in ("input 0", "gradients") if name in found}


inputs("x is a transposed view.", added(turned(drawn(2, 5, 6))), about="views")
inputs("The first axes of x are swapped.", added(turned(drawn(2, 5, 6), 0, 1)), about="views")
for mode, training in (("evaluation", False), ("training", True)):
    ask = changed(made(training=training), drawn(2, 5, 6))
    inputs(f"Which numbers of x are others after a call in {mode}.", ask, about="writes")


@inputs(about="writes")
def arguments_of_gap(student, rng):
    """Which numbers of x and the permutation are others after a call of permutation_gap."""
    given, encode = [rng.randn(2, 5, D_MODEL), torch.tensor([2, 0, 3, 4, 1])], made()(student, rng)
    call = lambda *given: student.permutation_gap(encode, *given)  # noqa: E731
    after = written(student, call, *(each.clone() for each in given))
    return [one != other for one, other in zip(given, after)]


for name, dtype in (("bfloat16", torch.bfloat16), ("float32", torch.float32)):
    ask = output(made(dtype=dtype), drawn(2, 5, 6, dtype=dtype))
    inputs(f"x in {name}.", ask, about="dtype", within=(6e-2, 5e-2))
zeros = torch.zeros(2, 5, 6, dtype=torch.float64)
as_new = lambda student, rng: student.PositionalEncoding(D_MODEL, CONTEXT)  # noqa: E731
inputs(
    "A module that was not converted.",
    output(as_new, drawn(2, 5, 6, dtype=torch.float32)),
    about="dtype",
)


@inputs(about="dtype")
def double_precision(student, rng):
    """Inputs of 0 in float64, of which the shape and the dtype of the output count."""
    return made()(student, rng)(zeros.clone()) * 0


@inputs(about="dtype", within=(6e-2, 5e-2))
def converted_after_a_call(student, rng):
    """A module that was converted to bfloat16 after a call."""
    encode, x = as_new(student, rng), rng.randn(2, 5, D_MODEL)
    encode(x.float())
    return encode.to(torch.bfloat16)(x.bfloat16())


@inputs(about="dtype", within=(2e-2, 0.0))
def far_rows_in_bfloat16(student, rng):
    """The last rows of a table of 600, added to zeros in bfloat16."""
    encode = student.PositionalEncoding(D_MODEL, 600).to(torch.bfloat16)
    return encode(torch.zeros(1, 600, D_MODEL, dtype=torch.bfloat16))[:, 590:]


@inputs(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens or columns."""

    def called(batch=1, n_tokens=3, d_model=4):
        x, encode = rng.randn(batch, n_tokens, d_model), made(d_model, n_tokens)

        def call():
            student.sinusoidal(n_tokens + 1, d_model)
            module = encode(student, rng)
            module(x)
            student.permutation_gap(module, x, torch.arange(n_tokens))

        return call

    grown = {"batch": (2, 3), "n_tokens": (108, 217), "d_model": (110, 222)}
    axes = zip(("sentences", "tokens", "columns"), grown.items())
    assert_vectorised(student, called, {axis: dict([sizes]) for axis, sizes in axes})
