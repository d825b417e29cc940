"""The checks of cross-attention and of the blocks made of it, and their cases."""

import functools

import pytest
import torch

from grader.attention_cases import dropout_cases, each_on_its_own, identity
from grader.authors import (
    ROUGH,
    Aspect,
    Check,
    assert_close,
    assert_dropped,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    drawn,
    gradient,
    load_parameters,
    moved,
    often,
    only_dtype,
    output,
    output_of,
    parameters,
    reached,
    refused,
    scaled,
    seeded,
    slopes_with_dropout,
    turned,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "query", "feature")
ATTENTION, ENCODER, DECODER = "CrossAttention", "EncoderBlock", "DecoderBlock"
MASKS = Aspect("masks", "the values with masks")
ENCODERS = Aspect("encoder", "the values of the encoder block")
DECODERS = Aspect("decoder", "the values of the decoder block")
D_QUERY, D_CONTEXT, D_OUT, HEADS = 5, 7, 12, 3
MODEL = (6, 3, 9)  # d_model, num_heads, d_ff
X, C = drawn(2, 4, D_QUERY), drawn(2, 6, D_CONTEXT)
TOKENS, MEMORY = drawn(2, 4, 6), drawn(2, 7, 6)
MASK = torch.tensor([[1, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 0]]).bool()
OWN = torch.tensor([[1, 0, 1, 1], [1, 1, 1, 0]]).bool()  # each row has a key, causal or not
LATE = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]]).bool()  # causal, six rows have none
SEEN = torch.tensor([[1, 1, 0, 1, 1, 0, 1], [0, 1, 1, 1, 1, 1, 0]]).bool()
NONE = torch.zeros(2, 6, dtype=torch.bool)
RATE = {"dropout": 0.39, "training": True}


def attention(*, d_query=D_QUERY, d_context=D_CONTEXT, d_out=D_OUT, heads=HEADS, **options):
    """Return what makes a module with random parameters."""
    dropout, causal = options.pop("dropout", 0.0), options.pop("causal", False)
    sizes = d_query, d_context, d_out, dropout, heads
    return built(ATTENTION, *sizes, **({"causal": True} if causal else {}), **options)


own = functools.partial(attention, d_context=D_QUERY)  # the same width for x as x and as context
plain = lambda **options: identity(  # noqa: E731
    "out_proj", 8, own(d_out=8, heads=2, causal=True, **options)
)


def block(name, dropout=0.0, *, d_ff=MODEL[2], **options):
    """Return what makes a block of the usual sizes."""
    return built(name, *MODEL[:2], d_ff, dropout, **options)


# Calls of every kind: what is called, its maker and its arguments.
CALLS = (
    ("self-attention", own, (X,)),
    ("a context", attention, (X, C)),
    ("a masked context", attention, (X, C, MASK)),
    ("masked self-attention", own, (X, None, OWN)),
    ("causal, masked self-attention", functools.partial(own, causal=True), (X, None, OWN)),
    ("an encoder", functools.partial(block, ENCODER), (TOKENS,)),
    ("a masked encoder", functools.partial(block, ENCODER), (TOKENS, OWN)),
    ("a decoder", functools.partial(block, DECODER), (TOKENS, MEMORY)),
    ("a masked decoder", functools.partial(block, DECODER), (TOKENS, MEMORY, OWN, SEEN)),
)


def hidden_as(value, mask=MASK, width=D_CONTEXT):
    """Return the recipe of a context whose hidden tokens consist of this value."""
    values = drawn(*mask.shape, width)
    return lambda rng: values(rng).masked_fill(~mask.unsqueeze(2), value)


def with_finite(ask):
    """Return a case: the answer, and which numbers of it are finite."""

    def both(student, rng):
        found = ask(student, rng)
        tensors = found if isinstance(found, dict) else {"output": found}
        return {**tensors, **{f"finite {n}": t.isfinite() for n, t in tensors.items()}}

    return both


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The attention is written by hand, without a torch function that does all of it."""
    x, context = rng.randn(2, 4, 6).float(), rng.randn(2, 5, 6).float()
    assert_written_by_hand(
        student,
        lambda: output_of(student.CrossAttention(6, 6, 6, 0.0, 3), x, context),
        lambda: output_of(student.EncoderBlock(*MODEL, 0.0), x),
        lambda: output_of(student.DecoderBlock(*MODEL, 0.0), x, context),
    )


test_attention = Check("x attends to context, or to itself if there is none.", points=3)
values = test_attention.case
values("Six keys and four queries.", output(attention(), X, C))
values("Self-attention.", output(own(), X))
same = attention(d_query=4, d_context=4, d_out=4, heads=4)
values("All sizes equal.", output(same, drawn(4, 4, 4), drawn(4, 4, 4)), about="square")
values("Four heads.", output(attention(heads=4), drawn(2, 3, D_QUERY), C))
for n_queries, n_keys in ((1, 6), (4, 1)):
    given = drawn(2, n_queries, D_QUERY), drawn(2, n_keys, D_CONTEXT)
    values(f"{n_queries} queries, {n_keys} keys.", output(attention(), *given), about="single")
values(
    "One item, one head.",
    output(attention(heads=1), drawn(1, 4, 5), drawn(1, 6, 7)),
    about="single",
)
values(
    "More queries than keys.",
    output(attention(heads=2), drawn(3, 8, 5), drawn(3, 2, 7)),
    hidden=True,
)
huge = scaled(attention(), W_query=1e3, W_key=1e3)
values("Scores of a million.", output(huge, X, C), about="extreme scores", hidden=True)


@values(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the batch, the queries, the keys or the heads."""

    def called(batch=2, n_queries=3, n_keys=4, heads=2):
        x, c = rng.randn(batch, n_queries, 5).float(), rng.randn(batch, n_keys, 7).float()
        mask = torch.ones(batch, n_keys, dtype=torch.bool)

        def call():
            cross = student.CrossAttention(5, 7, 216, 0.0, heads)
            causal = student.CrossAttention(5, 5, 216, 0.0, heads, True)
            return output_of(cross, x, c, mask), output_of(causal, x)

        return call

    grown = {"sentences": {"batch": (105, 211)}, "queries": {"n_queries": (106, 213)}}
    grown |= {"keys": {"n_keys": (107, 215)}, "heads": {"heads": (108, 216)}}
    assert_vectorised(student, called, grown)


test_key_mask = Check(
    "Keys whose key_mask is False get no weight, whatever they are.", points=2, about=MASKS
)
masked = test_key_mask.case
masked("A mask for each item.", output(attention(), X, C, MASK))
masked("Masked self-attention.", output(own(), X, None, OWN))
one = output(attention(), drawn(2, 1, D_QUERY), C, MASK)
masked("One query, a masked context.", one, about="single")
masked("A mask for as many keys as queries.", output(attention(), X, drawn(2, 4, D_CONTEXT), OWN))
masked("Every key allowed.", output(attention(), X, C, ~NONE))
for n in (1, 3):
    alone = torch.arange(6).expand(2, 6) < n
    masked(f"The first {n} keys allowed.", output(attention(), X, C, alone))
far = lambda rng: C(rng) * (1 + 999 * ~MASK).unsqueeze(2)  # noqa: E731
masked(
    "Hidden keys a thousand times as large.",
    output(attention(), X, far, MASK),
    about="extreme scores",
)
low = scaled(attention(), W_query=1e4, W_key=1e4)
masked("Scores of 1e8 and -1e8.", output(low, X, C, MASK), about="extreme scores", hidden=True)


test_empty_rows = Check(
    "A query without any key gives out_proj.bias, with finite gradients.",
    points=2,
    about="length 0",
)
empty = test_empty_rows.case
some = torch.tensor([[0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0]]).bool()
# Small, because a gradient has as many numbers as there are parameters.
small = functools.partial(attention, d_out=4, heads=2)
empty("One item without keys.", with_finite(output(small(), X, C, some)))
empty("Its gradients.", with_finite(gradient(small(), X, C, some)), hidden=True)
causal_late = output(own(causal=True, d_out=6), X, None, LATE)
empty("Causal, and the first keys are hidden.", with_finite(causal_late))
empty("Its gradients, causal.", with_finite(gradient(own(causal=True), X, None, LATE)), hidden=True)
empty(
    "Items without keys, in training.",
    with_finite(output(attention(training=True), X, C, NONE)),
    hidden=True,
)


test_hidden_tokens = Check(
    "Hidden tokens of context may be nan: no output or gradient changes.", points=2, about=MASKS
)
nan = test_hidden_tokens.case
for make, sentence in ((output, "Hidden tokens"), (gradient, "The gradients if hidden tokens")):
    nan(f"{sentence} are nan.", with_finite(make(small(), X, hidden_as(torch.nan), MASK)))
    context = hidden_as(torch.inf)
    nan(f"{sentence} are infinite.", with_finite(make(small(), X, context, MASK)), hidden=True)


@nan
def own_tokens(student, rng):
    """The outputs of real tokens in causal self-attention where padded ones are nan."""
    found = own(causal=True)(student, rng)(hidden_as(torch.nan, OWN, D_QUERY)(rng), None, OWN)
    return {"output": found[OWN], "finite": found[OWN].isfinite()}


memory = hidden_as(torch.nan, SEEN, 6)
nan(
    "A decoder whose memory has nan.",
    with_finite(gradient(block(DECODER), TOKENS, memory, OWN, SEEN)),
    hidden=True,
)


test_causal = Check(
    "With causal=True, query i attends to keys 0 to i that key_mask allows.",
    points=2,
    about="options",
)
causal = test_causal.case
causal("Causal self-attention.", output(own(causal=True), X))
causal("Causal and masked.", output(own(causal=True), X, None, OWN))
causal("Causal, and every key allowed.", output(own(causal=True), X, None, torch.ones(2, 4).bool()))
causal("Causal, with two heads.", output(own(causal=True, heads=2), drawn(3, 6, 5)), hidden=True)
later = lambda rng: X(rng) * 1e3 ** (torch.arange(4) // 3).view(4, 1)  # noqa: E731
causal(
    "A last token a thousand times as large.",
    output(own(causal=True), later),
    about="extreme scores",
)


test_parts = Check(
    "Names and shapes of the parameters; only out_proj has a bias.", points=2, about="layers"
)
parts = test_parts.case
parts("Attention.", parameters(ATTENTION, D_QUERY, D_CONTEXT, D_OUT, 0.0, HEADS))
parts("An encoder.", parameters(ENCODER, *MODEL, 0.0))
parts("A decoder.", parameters(DECODER, *MODEL, 0.0))
parts("A decoder of other sizes.", parameters(DECODER, 4, 2, 3, 0.5), hidden=True)


test_encoder = Check(
    "EncoderBlock: pre-norm self-attention with key_mask, then feed-forward.",
    points=2,
    about=ENCODERS,
)
encoder = test_encoder.case
encoder("Without a mask.", output(block(ENCODER), TOKENS))
encoder("With a mask.", output(block(ENCODER), TOKENS, OWN))
encoder(
    "A masked encoder of other sizes.",
    output(built(ENCODER, 8, 2, 5, 0.0), drawn(2, 4, 8), LATE),
    hidden=True,
)


test_decoder = Check(
    "DecoderBlock: causal self-attention, attention to memory, feed-forward, pre-norm.",
    points=2,
    about=DECODERS,
)
decoder = test_decoder.case
decoder("Without masks.", output(block(DECODER), TOKENS, MEMORY))
decoder("With both masks.", output(block(DECODER), TOKENS, MEMORY, OWN, SEEN))
decoder("With key_mask alone.", output(block(DECODER), TOKENS, MEMORY, OWN))
decoder("With memory_mask alone.", output(block(DECODER), TOKENS, MEMORY, None, SEEN))
other = torch.tensor([[0, 1, 1, 0], [0, 1, 0, 1]]).bool()
decoder("As many tokens as memories.", output(block(DECODER), TOKENS, drawn(2, 4, 6), OWN, other))
decoder(
    "Other sizes.",
    output(built(DECODER, 8, 2, 5, 0.0), drawn(3, 5, 8), drawn(3, 2, 8)),
    hidden=True,
)
for name in (ENCODER, DECODER):
    given = [TOKENS, MEMORY][: 1 + (name == DECODER)]
    thousand = [drawn(2, 4, 6, times=1e3), *given[1:]]
    decoder(
        f"Tokens of a thousand, {name}.", output(block(name), *thousand), about="extreme scores"
    )


test_gradients = Check("Gradients reach every input and parameter.", points=2, about="gradient")
test_dropout = Check(
    "In training, weights and, in blocks, outputs of sub-layers are dropped; in eval mode nothing.",
    points=2,
    about="training",
)
test_anything = Check(
    "Views and other dtypes work; arguments are not modified.", points=2, about="dtype"
)
dropped = test_dropout.case
dropout_cases(test_dropout, plain, D_QUERY, heads=2)
dropped(
    "Each weight on its own.", each_on_its_own(plain, D_QUERY, heads=2), tells=False, hidden=True
)


def asked_of(name, make, given):
    """Yield what is asked of a call of every kind: where, the sentence, the case and its keys."""
    thin = {"d_out": 6} if given[0] is X else {"d_ff": 3}
    yield test_gradients.case, "The gradients", gradient(make(**thin), *given), "", None
    yield (
        dropped,
        "A rate of a half in eval mode",
        output(make(dropout=0.5), *given),
        "options",
        None,
    )
    yield dropped, "Training at a rate of 0", output(make(training=True), *given), "", None
    at_one = make(dropout=1.0, training=True)
    yield dropped, "Training at a rate of 1", output(at_one, *given), "", None
    large = [
        turned(lambda rng, each=each: each(rng) * 1e3) if callable(each) else each for each in given
    ]
    usable = test_anything.case
    yield usable, "Large views", output(make(), *large), "views", None
    yield usable, "The arguments after a call", changed(make(), *given), "writes", None
    for dtype, within in ((torch.float32, (1e-3, 1e-3)), (torch.bfloat16, ROUGH)):
        low = [
            (lambda rng, e=each, d=dtype: e(rng).to(d)) if callable(each) else each
            for each in given
        ]
        yield usable, f"{dtype}", output(make(dtype=dtype), *low), "", within


for name, make, given in CALLS[2::3]:
    for add, says, ask, about, within in asked_of(name, make, given):
        add(f"{says}, {name}.", ask, about=about, within=within)
for name, make, given in (*CALLS[::3], *CALLS[1::3]):
    for add, says, ask, about, within in asked_of(name, make, given):
        add(f"{says}, {name}.", ask, about=about, within=within, hidden=True)


def silenced(name, rate, *silent):
    """Return what makes a block whose parts `silent` add nothing, and the others their biases."""
    last = ("self_attention.out_proj", "cross_attention.out_proj", "feed_forward.linear2")

    def make(student, rng):
        module = block(name, rate)(student, rng)
        state = module.state_dict()
        zero = [n for n in state if n.startswith(silent or tuple(f"{each}.w" for each in last))]
        ones = {f"{each}.bias": torch.ones(6) for each in last if not silent}
        return load_parameters(module, {**{n: 0 * state[n] for n in zero}, **ones}).train()

    return make


def parts_drop(name, part, *silent):
    """Return a case: whether values that `part` adds are more than two, over many draws."""

    def ask(student, rng):
        module = silenced(name, 0.5, *silent)(student, rng)
        given = [rng.randn(1, n, 6).repeat(80, 1, 1) for n in (4, 7)][: 1 + (name == DECODER)]
        with seeded(student, 5):
            masks = [torch.ones(80, each.shape[1]).bool() for each in given]
            added = output_of(module, *given, *(masks if "attention" in part else ())) - given[0]
        return often(len(added[:, -1, 0].round(decimals=6).unique()) > 2)

    return ask


SUBLAYERS = {ENCODER: ("attention", "feed_forward")}
SUBLAYERS[DECODER] = ("self_attention", "cross_attention", "feed_forward")
for name, sublayers in SUBLAYERS.items():
    for part in sublayers:
        last = {each: f"{each}.{'linear2' if each[0] == 'f' else 'out_proj'}" for each in sublayers}
        silent = [last[each] for each in sublayers if each != part]
        dropped(f"Whether {part} of {name} drops inside.", parts_drop(name, part, *silent))


@dropped(tells=False, hidden=True)
def each_value_at_the_rate(student, rng):
    """Each value that a sub-layer of a decoder adds is dropped on its own at a rate of 0.37."""
    tokens = torch.zeros(200, 4, 6, dtype=torch.float64)
    added = output_of(silenced(DECODER, 0.37)(student, rng), tokens, tokens) * 0.63
    assert_close(added, added.round().clamp(0, 3), "what three sub-layers add, times 0.63")
    assert_dropped(added < 0.5, 0.37**3, "values of all three sub-layers")


for sentence, made, given in (
    ("causal", own(causal=True, **RATE), (X,)),
    ("with a context", attention(**RATE), (X, C)),
):
    test_gradients.case(f"What gets a gradient with dropout, {sentence}.", reached(made, *given))
    slopes = slopes_with_dropout(made, *given)
    test_gradients.case(f"The slopes with dropout, {sentence}.", slopes, tells=False, hidden=True)
x, c = (drawn(2, 4, n, dtype=torch.float32) for n in (5, 7))
new = moved(ATTENTION, 5, 7, 12, 0.5, 3, x=(x, c, OWN))
test_anything.case("On another device.", new, about="devices")
new = moved(ATTENTION, 5, 7, 12, 0.5, 3, x=(x, c))
test_anything.case("Without a mask, on another device.", new, about="devices", hidden=True)
made = attention(**RATE)
test_gradients.case("What gets a gradient with dropout and a mask.", reached(made, X, C, MASK))
new = moved(ATTENTION, 5, 5, 12, 0.5, 3, True, x=(x, None, OWN))
test_anything.case("Causal, on another device.", new, about="devices", hidden=True)
half = drawn(2, 4, 5, dtype=torch.bfloat16)
ask = only_dtype(own(causal=True, dropout=0.5, dtype=torch.bfloat16, training=True), half)
test_anything.case("bfloat16 in training.", ask, hidden=True)


test_misuse = Check(
    "A context if causal, and heads that do not divide d_out, are refused.",
    points=2,
    about="refusals",
)
misuses = test_misuse.case
misuses("A context if causal.", refused(attention(causal=True), X, C))
misuses("The same x as context.", refused(own(causal=True), X, X))
misuses("In training, with a mask.", refused(attention(causal=True, training=True), X, C, MASK))
misuses("Eight heads, twelve features.", refused(ATTENTION, 5, 7, 12, 0.0, 8))
misuses("Four heads, six features.", refused(ATTENTION, 5, 5, 6, 0.0, 4, True), hidden=True)
