"""The checks of a tiny GPT and their cases.

Blocks and norms are right ones, so only what is written here is graded. The text that the model is
trained on is `text.txt`; what it is asked afterwards is made of its lines anew in each run.
"""

import functools
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from grader.authors import (
    Aspect,
    Check,
    Rng,
    assert_dropped,
    assert_reaches,
    assert_same,
    assert_vectorised,
    assert_written_by_hand,
    build,
    built,
    changed,
    expect,
    gradient,
    load_parameters,
    moved,
    often,
    only_dtype,
    output,
    output_of,
    parameter_shapes,
    parameters,
    refused,
    seeded,
    steps_reported,
    trained,
    watched,
    works_too,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "character")  # of an output, in the singular
LOSS = Aspect("loss", "the loss")
WINDOWS = Aspect("windows", "the windows of a text")
REPORTS = Aspect("reports", "what `train_gpt` reports")
STEPS = Aspect("steps", "what training does")
TEXT = Aspect("text", "the text that is generated")
DRAWN = Aspect("drawn", "how the next token is drawn")
START = Aspect("start", "the numbers that a model starts with", is_edge=True)
VOCAB, D_MODEL, HEADS, LAYERS, CONTEXT = SIZES = (13, 6, 3, 2, 7)
TINY = (5, 4, 2, 1, 11)  # of models that are trained for a few steps
# 1 / temperature, so far apart that chance does not matter; 1.4 is that of a common default, 0.7.
STRENGTHS = torch.tensor([0.1, 0.5, 1.0, 1.4, 2.0, 4.0, 20.0], dtype=torch.float64)
CHARACTERS = "\n ',.?abcdefghijklmnoprstuvwxy"
# A temperature that takes the likeliest token without being a case of its own, as 0 is.
NEARLY_0 = 1e-6
STORIES = (len(CHARACTERS), 64, 4, 2, 64, 0.0)  # the model that is trained on the text
N_STEPS, AT_MOST, TOO_GOOD = 500, 1.2, 2.4  # losses after training, and after a single step
SHARE = 0.6  # of the words that are written, to be among those of the text


def gpt(*sizes, dropout=0.0, **options):
    """Return what makes a model with random parameters, in evaluation mode."""
    return built("TinyGPT", *(sizes or SIZES), dropout, **options)


def model(student, rng, *sizes, **options):
    """Return such a model."""
    return gpt(*sizes, **options)(student, rng)


def tokens(*shape, vocab=VOCAB):
    """Return the recipe of random tokens."""
    return lambda rng: rng.randint(0, vocab, *shape)


def one_hot(found, count=VOCAB):
    """Return tokens as one-hot vectors; raise `Mismatch` if there are no such tokens."""
    expect(((found >= 0) & (found < count)).all(), "there are no such tokens")
    return F.one_hot(found, count)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The model is made of your own parts, not of torch's Transformer."""
    given, make = rng.randint(0, VOCAB, 2, 5), lambda: student.TinyGPT(*SIZES, 0.0)
    assert_written_by_hand(
        student,
        lambda: output_of(make(), given),
        lambda: student.generate(make(), given, 1),
        lambda: student.next_token_loss(make(), given),
    )


test_logits = Check(
    "The logits are those of embeddings, blocks, final norm and the token embedding as the head.",
    points=5,
)
logits = test_logits.case
logits("Fewer tokens than the context is long.", output(gpt(), tokens(2, 5)))
full = output(gpt(5, 8, 2, 3, 6), tokens(3, 6, vocab=5))
logits("As many tokens as the context is long, in three layers.", full)
logits("Wider models.", output(gpt(11, 12, 3, 2, 9), tokens(4, 7, vocab=11)), hidden=True)
logits("All sizes equal.", output(gpt(*[4] * 5), tokens(4, 4, vocab=4)), about="square")
logits("One token.", output(gpt(), tokens(2, 1)), about="single")
logits("One sentence.", output(gpt(), tokens(1, 5)), about="single")
shortest = output(gpt(8, 6, 1, 2, 1), tokens(4, 1, vocab=8))
logits("A context of one token.", shortest, about="single", hidden=True)


test_parameters = Check(
    "There are the parameters of the statement, and no others; embeddings start small.",
    points=3,
    about="layers",
)
layers = test_parameters.case
layers("The shapes of the parameters.", parameters("TinyGPT", *SIZES, 0.0))
layers(
    "The shapes of the parameters of a larger model.",
    parameters("TinyGPT", 31, 40, 2, 3, 50, 0.0),
    hidden=True,
)
EMBEDDINGS = "token_embedding.weight", "position_embedding.weight"


@layers(about=START)
def start(student, rng):
    """How large the embeddings of a new model are, in tenths, and how far from 0 their mean is."""
    state = student.TinyGPT(40, 60, 3, 1, 30, 0.0).state_dict()
    found = [state[name] for name in EMBEDDINGS]
    return often([[(each.std() * 20).round(), (each.mean() * 20).round() == 0] for each in found])


test_context = Check(
    "context_length tokens are accepted; for more, forward raises an error.",
    points=3,
    about="refusals",
)
too_many = test_context.case
too_many("One token more than the context is long.", refused(gpt(), tokens(2, CONTEXT + 1)))
in_training = refused(gpt(training=True), tokens(2, CONTEXT + 1))
too_many("One token more in training.", in_training, hidden=True)
two = refused(gpt(13, 6, 3, 1, 1), tokens(2, 2))
too_many("Two tokens for a context of one.", two, hidden=True)


test_gradients = Check(
    "In both modes, gradients reach all parameters, and are the slopes of the logits.",
    points=3,
    about="gradient",
)
slopes = test_gradients.case
slopes("The gradients of the parameters.", gradient(gpt(), tokens(2, 5)))
slopes("The gradients in training.", gradient(gpt(training=True), tokens(2, CONTEXT)), hidden=True)


test_dropout = Check(
    "In training, embeddings and blocks drop values at the rate; in eval mode, nothing is.",
    points=3,
    about="training",
)
training = test_dropout.case
training("Training mode without dropout.", output(gpt(training=True), tokens(2, 5)))
training("Training mode with dropout of 1.", output(gpt(dropout=1.0, training=True), tokens(2, 5)))
some = output(gpt(dropout=0.5), tokens(2, 5))
training("Evaluation mode with a dropout rate of a half.", some, about="options")


@training(decides=False)
def dropped(student, rng):
    """Which logits are finite, and how far apart they are, in training with dropout of a half."""
    made = model(student, rng, dropout=0.5, training=True)
    with seeded(student, 5):
        found = made(rng.randint(0, VOCAB, 1, 2).repeat(300, 1)).detach()
    return [found.std(0), found.mean(0)]


@training(tells=False, hidden=True)
def rate_of_each_part(student, rng):
    """At a rate of 0.3, embeddings and each block drop values, each on its own."""
    # Only one part adds ones to a stream of zeros. Each token but 0 shows one feature.
    places = {
        "the embeddings": "position_embedding.weight",
        "the first block": "blocks.0.attention.out_proj.bias",
        "the last block": f"blocks.{LAYERS - 1}.feed_forward.linear2.bias",
    }
    for part, place in places.items():
        made = student.TinyGPT(13, 12, *SIZES[2:], 0.3)
        state = {name: torch.zeros(shape) for name, shape in parameter_shapes(made).items()}
        state["token_embedding.weight"] = torch.eye(13)[:, 1:]
        state |= {"norm.gamma": torch.ones(12), place: torch.ones_like(state[place])}
        shown = output_of(load_parameters(made, state).train(), torch.zeros(300, 1).long())
        shown = shown[:, 0, 1:]
        expect(shown.isfinite().all(), "the logits in training are not finite")
        expect(shown.any(), f"what {part} add is not in the logits, or never dropped")
        low, high = shown.amin(-1, keepdim=True), shown.amax(-1, keepdim=True)
        assert_dropped(shown < (low + high) / 2, 0.3, f"values of {part}")
    return True


test_any_input = Check(
    "The model converts to other dtypes and devices; what the functions get may be views.", points=3
)
inputs = test_any_input.case


def transposed(rng):
    """Return tokens as a transposed view."""
    return rng.randint(0, VOCAB, 5, 3).T


def loss_of(student, rng):
    """Return the loss of a model as a function of windows."""
    made = model(student, rng)
    return lambda windows: student.next_token_loss(made, windows)


def text_of(student, rng):
    """Return the likeliest text of a model as a function of the prompt."""
    made = model(student, rng)
    return lambda prompt: student.generate(made, prompt, 2, NEARLY_0)


def text_of_few(student, rng):
    """Return the text of a model in training mode, with a top_k, as a function of the prompt."""
    made = model(student, rng).train()
    return lambda prompt: student.generate(made, prompt, 2, 0.0, 3)


inputs("A view as a prompt, with top_k.", output(text_of_few, transposed), hidden=True)
inputs("One prompt with top_k.", output(text_of_few, tokens(1, 3)), hidden=True)
inputs(
    "Which tokens are others after a text with top_k.",
    changed(text_of_few, tokens(3, 5)),
    about="writes",
    hidden=True,
)
inputs("The tokens are a transposed view.", output(gpt(), transposed), about="views")
inputs("The windows of a loss are a view.", output(loss_of, transposed), about="views", hidden=True)
inputs("A prompt is a transposed view.", output(text_of, transposed), about="views", hidden=True)
for target, sentence in (
    (gpt(), "Which tokens are others after a call."),
    (text_of, "Which tokens of a prompt are others after `generate`."),
    (loss_of, "Which tokens of windows are others after their loss."),
):
    inputs(sentence, changed(target, tokens(3, 5)), about="writes")


@inputs(about="views")
def windows_of_a_view(student, rng):
    """The distances of the tokens of a window from its first one, in a text that is a view."""
    text = torch.stack([torch.arange(20), rng.permutation(20)], 1).flatten()[::2]
    windows = written(student, lambda text: student.random_windows(text, 3, 5), text)
    expect(torch.equal(windows[0], text), "the text is written into")
    windows = student.random_windows(text, 3, 5)
    return windows - windows[:, :1]


# Of bfloat16, the dtype counts: rounding adds up from block to block.
half = only_dtype(gpt(dtype=torch.bfloat16), tokens(2, 5))
inputs("The dtype and shape of the logits in bfloat16.", half, about="dtype")
elsewhere = moved("TinyGPT", *SIZES, 0.5, x=tokens(2, 5))
inputs("Whether a new module works after a move to another device.", elsewhere, about="devices")


@inputs(about="dtype", hidden=True)
def converted(student, rng):
    """Whether the logits stay the same but for rounding if a model is converted."""
    made, given = model(student, rng), rng.randint(0, VOCAB, 3, 5)
    wide, far = output_of(made, given), []
    for dtype in (torch.float32, torch.bfloat16):
        found = output_of(made.to(dtype), given)
        far.append((found.double() - wide).abs().max() < 0.2 * wide.abs().max())
    return often(*map(bool, far))


test_no_python_loops = Check(
    "No Python loop runs over batch, tokens or windows, nor over the places of the mask.", points=3
)


@test_no_python_loops.case(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences, tokens, windows or prompts."""
    made = student.TinyGPT(*SIZES, 0.0)

    def read(batch=2, n_tokens=3):
        given = rng.randint(0, VOCAB, batch, n_tokens)
        return lambda: output_of(student.TinyGPT(*SIZES[:-1], n_tokens + 1, 0.0), given)

    def lost(batch=2, n_tokens=3):
        longer = student.TinyGPT(*SIZES[:-1], n_tokens, 0.0)
        windows = rng.randint(0, VOCAB, batch, n_tokens)
        return functools.partial(output_of, student.next_token_loss, longer, windows)

    def drawn(n_windows=3, length=5):
        text = rng.randint(0, VOCAB, 2 * length + 20)
        return lambda: student.random_windows(text, n_windows, length)

    def generated(batch=2):
        prompts = rng.randint(0, VOCAB, batch, 2)
        return lambda: [student.generate(made, prompts, 2, 0.7, top_k) for top_k in (4, None)]

    for call in (read, lost):
        grown = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (14, 31)}}
        assert_vectorised(student, call, grown)
    grown = {"windows": {"n_windows": (23, 47)}, "tokens of a window": {"length": (31, 64)}}
    assert_vectorised(student, drawn, grown)
    assert_vectorised(student, generated, {"prompts": {"batch": (9, 19)}})


test_loss = Check(
    "The loss is the mean cross-entropy of each next token, given the tokens before it.",
    points=5,
    about=LOSS,
)
losses = test_loss.case


def losses_of(n_windows, length, gamma=None):
    """Return a case: a dozen losses of random windows, in whatever dtype they are computed."""

    def ask(student, rng):
        made = model(student, rng)
        if gamma:
            load_parameters(made, {"norm.gamma": torch.full((D_MODEL,), gamma)})
        windows = [rng.randint(0, VOCAB, n_windows, length) for _ in range(12)]
        return [student.next_token_loss(made, each).detach().double() for each in windows]

    return ask


losses("The losses of twelve pairs of windows.", losses_of(2, 6))
losses("The losses of twelve windows of two tokens.", losses_of(1, 2))
losses("The losses of windows of one token more than the context.", losses_of(1, CONTEXT + 1))
losses("The losses of five windows.", losses_of(5, 4), hidden=True)
losses("Losses where probabilities are as small as 1e-20.", losses_of(2, 6, 30.0))
losses("Losses of logits of ten thousand.", losses_of(5, 8, 1e4), hidden=True)


@losses
def gradient_of_the_loss(student, rng):
    """The gradients of the loss."""
    made = model(student, rng)
    made.zero_grad()
    student.next_token_loss(made, rng.randint(0, VOCAB, 3, 6)).backward()
    return {name: each.grad for name, each in made.named_parameters()}


test_windows = Check(
    "random_windows draws pieces of the text; each place is as likely as any other.",
    points=3,
    about=WINDOWS,
)
windows = test_windows.case
whole = lambda rng: rng.permutation(12)  # noqa: E731
windows("Windows as long as the text.", output("random_windows", whole, 4, 12))
windows(
    "Windows that are longer than the text.",
    refused("random_windows", tokens(6), 2, 7),
    about="refusals",
)
windows("A text of 50 tokens.", refused("random_windows", tokens(50), 3, 51), about="refusals")


@windows
def where_windows_begin(student, rng):
    """How often each of the two places is drawn where two windows fit, in halves."""
    found = []
    for length in range(2, 10):
        with seeded(student, length):
            drawn = student.random_windows(torch.arange(length + 1), 400, length)
        counts = one_hot(drawn[:, 0], length + 1)[:, :2].double().mean(0)
        found.append((counts * 2).round())
    return found


@windows
def all_places(student, rng):
    """Which of twelve places begin one of two thousand windows, and how their tokens go on."""
    with seeded(student, 7):
        drawn = student.random_windows(torch.arange(14), 2000, 3)
    return {"begin": one_hot(drawn[:, 0], 14).bool().any(0), "go on": drawn - drawn[:, :1]}


@windows
def repeated_windows(student, rng):
    """Whether the same windows are drawn after the same `torch.manual_seed`, and later others."""
    text, found = rng.permutation(500), []
    for _ in range(2):
        with seeded(student, 5, only_torch=True):
            found.append(student.random_windows(text, 12, 3))
    return often(torch.equal(*found), torch.equal(found[1], student.random_windows(text, 12, 3)))


@windows(tells=False, hidden=True)
def places_are_alike(student, rng):
    """Windows are pieces of the text, and no place begins one far more often than others."""
    for n_text, length, draws in ((12, 5, 1600), (9, 9, 3), (4, 1, 800), (30, 29, 400)):
        text = rng.permutation(n_text) * 3 + 1  # no number occurs twice
        drawn = student.random_windows(text, draws, length)
        expect(drawn.shape == (draws, length), f"{draws} windows have the shape {drawn.shape}")
        expect(drawn.dtype == torch.int64, "windows are not of int64")
        pieces = text.unfold(0, length, 1)  # (n_starts, length)
        is_piece = (drawn[:, None] == pieces).all(-1)  # (draws, n_starts)
        expect(is_piece.any(-1).all(), "some windows are not pieces of the text")
        shares = is_piece.double().mean(0) * len(pieces)
        says = "some places of the text begin a window far more often than others"
        expect((shares - 1).abs().max() <= (0.5 if len(pieces) > 1 else 0.0), says)
    return True


test_training_steps = Check(
    "train_gpt takes the steps of the statement, in training mode, and ends in eval mode.",
    points=5,
    about=STEPS,
)
steps = test_training_steps.case


def taken(n_steps, *options, **of_model):
    """Return a case: the parameters after steps on a text of a single window, and the mode."""

    def ask(student, rng):
        made = model(student, rng, *TINY, **of_model)
        student.train_gpt(made, rng.randint(0, 5, TINY[-1] + 1), n_steps, *options)
        return {name: each.detach() for name, each in made.named_parameters()}

    return ask


steps("The parameters after three steps.", taken(3))
steps("The parameters after three steps at a learning rate of 0.05.", taken(3, 3, 0.05))
steps("The parameters after three steps with dropout of 1.", taken(3, dropout=1.0))
steps("The parameters after two steps of five windows each.", taken(2, 5, 0.02), hidden=True)


def mode_after(n_steps):
    """Return a case: whether a model in training mode is still in it after some steps."""

    def ask(student, rng):
        made = model(student, rng, *TINY, training=True)
        student.train_gpt(made, rng.randint(0, 5, 12), n_steps)
        return often(made.training)

    return ask


steps("The mode after no step of training.", mode_after(0))
steps("The mode after a step.", mode_after(1), hidden=True)


@steps
def what_is_read(student, rng):
    """After sixty steps on zeros and then ones: which of the two the model has learned."""
    made = model(student, rng, 2, 4, 2, 1, 3)
    with seeded(student, 6):
        student.train_gpt(made, torch.arange(2).repeat_interleave(30), 60, 16, 0.03)
    ends = torch.arange(2)[:, None].repeat(4, 3)
    return (torch.softmax(made(ends), dim=-1) > 0.5).double()


@steps(tells=False, hidden=True)
def windows_of_a_step(student, rng):
    """batch_size says how many windows a step draws."""
    text, sizes = rng.randint(0, 5, 12), []
    for batch_size in (4, 64):
        with watched(student) as seen:
            student.train_gpt(student.TinyGPT(*TINY, 0.0), text, 1, batch_size)
        sizes.append(seen.largest.elements)
    expect(sizes[1] > 4 * sizes[0], "batch_size does not say how many windows a step draws")
    return True


@steps(about=REPORTS, decides=False)
def reported_steps(student, rng):
    """How often each number from 0 to 5 is reported while there are four steps."""
    made, text = model(student, rng, *TINY), rng.randint(0, 5, 12)
    return steps_reported(student, 4, lambda to: student.train_gpt(made, text, 4, report=to))


test_greedy = Check(
    "At temperature 0, each token is the most likely one after the last context_length tokens.",
    points=3,
    about=TEXT,
)
greedy = test_greedy.case


def writer(student, rng, number=0, dropout=0.0):
    """Return a model that goes on in more ways than one.

    Most models whose parameters are all random go on with one token, whatever they read.
    """
    made = build(student.TinyGPT, *SIZES, dropout, rng=Rng(rng.seed + number))
    shapes = parameter_shapes(made).items()
    shifts = {name: torch.zeros(shape) for name, shape in shapes if name.endswith(("bias", "beta"))}
    return load_parameters(made, shifts)


def texts(n_prompt, n, *options, temperature=0.0, dropout=0.0, training=False):
    """Return a case: the likeliest texts of three models after six prompts each."""

    def ask(student, rng):
        prompts = [rng.randint(0, VOCAB, 6, n_prompt) for _ in range(3)]
        made = [writer(student, rng, number, dropout).train(training) for number in range(3)]
        pairs = zip(made, prompts)
        return [student.generate(*each, n, temperature, *options) for each in pairs]

    return ask


greedy("The likeliest texts after short prompts.", texts(3, 12))
greedy("The likeliest texts after prompts longer than the context.", texts(CONTEXT + 3, 4))
greedy("The likeliest texts with a `top_k` of 3.", texts(3, 6, 3))
greedy("The likeliest texts after prompts of one token.", texts(1, 5), hidden=True)
greedy("The dtype of a text.", texts(2, 1), about="dtype", hidden=True)
greedy("No more tokens than the prompt has.", texts(5, 0))


@greedy
def longer_than_the_context(student, rng):
    """Whether a text grows beyond the context."""
    made, prompt = model(student, rng), rng.randint(0, VOCAB, 1, CONTEXT)
    one, two = (functools.partial(student.generate, made, prompt, n) for n in (1, 2))
    return works_too(one, two)


test_sampling = Check(
    "Tokens are drawn with the probabilities softmax(logits / temperature), of the top_k if given.",
    points=3,
    about=DRAWN,
)
sampling = test_sampling.case


def strength(seed, *options, n_prompts=20, draws=250):
    """Return a case: how strongly logits count where tokens are drawn, twelve times.

    In right code it is 1 / temperature, in whatever order that draws: it is the one of STRENGTHS
    under which what was drawn is likeliest. The logits are those of the student's own model.
    """

    def ask(student, rng):
        prompts, made = rng.randint(0, VOCAB, n_prompts, 4), writer(student, rng)
        right = made(prompts)[:, -1]  # (n_prompts, VOCAB)
        with seeded(student, seed):
            found = student.generate(made, prompts.repeat_interleave(draws, dim=0), 1, *options)
        counts = one_hot(found[:, -1].view(n_prompts, draws)).double().sum(1)  # (n_prompts, VOCAB)
        among = right.masked_fill(counts == 0, -torch.inf)  # with a top_k as well
        scores = torch.log_softmax(STRENGTHS[:, None, None] * among, dim=-1)
        likelihood = (scores.masked_fill(counts == 0, 0.0) * counts).sum((1, 2))  # (n_strengths,)
        return STRENGTHS[likelihood.argmax()].repeat(12)

    return ask


for given, seed, options in (
    ("at a temperature of 0.5", 8, (0.5,)),
    ("without a temperature", 8, ()),
    ("at a temperature of 2", 9, (2.0,)),
    ("at a temperature of 0.5, with a `top_k` of 4", 9, (0.5, 4)),
    ("at a temperature of 2, with a `top_k` beyond the vocabulary", 9, (2.0, 40)),
):
    sampling(f"How strongly the logits count {given}.", strength(seed, *options))


@sampling(about="options")
def top_k_beyond_the_vocabulary(student, rng):
    """Whether a `top_k` beyond the vocabulary works, as another one does."""
    made, prompt = model(student, rng), rng.randint(0, VOCAB, 2, 4)
    one, other = (functools.partial(student.generate, made, prompt, 1, 1.0, k) for k in (3, 40))
    return works_too(one, other)


@sampling
def which_are_drawn(student, rng):
    """Which tokens are drawn with a `top_k` of 3, 1 and 40 at a temperature of 50."""
    made, prompt = model(student, rng), rng.randint(0, VOCAB, 1, 4).repeat(400, 1)
    found = []
    for top_k in (3, 1, 40):
        with seeded(student, 9):
            text = student.generate(made, prompt, 1, 50.0, top_k)
        found.append(one_hot(text[:, -1]).bool().any(0))
    return found


@sampling
def which_follow_each_prompt(student, rng):
    """Which three tokens each of four models draws after each of ten prompts."""
    found = []
    for number in range(4):
        made, prompts = writer(student, rng, number), rng.randint(0, VOCAB, 10, 4)
        # First the prompt with the lowest limit: as that of all rows it lets more tokens pass.
        limits = made(prompts)[:, -1].topk(3).values[:, -1]
        prompts = prompts[limits.argsort()].repeat_interleave(100, dim=0)
        with seeded(student, 9):
            drawn = student.generate(made, prompts, 1, 50.0, 3)[:, -1].view(10, 100)
        found.append(one_hot(drawn).bool().any(1))
    return found


sampling(
    "Which tokens are drawn at a temperature of a millionth, for twelve prompts.",
    lambda student, rng: student.generate(model(student, rng), tokens(12, 4)(rng), 1, NEARLY_0),
)


@sampling
def repeated_text(student, rng):
    """Whether the same text is written after the same `torch.manual_seed`, and later another."""
    made, prompts, found = model(student, rng), rng.randint(0, VOCAB, 12, 4), []
    for _ in range(2):
        with seeded(student, 5, only_torch=True):
            found.append(student.generate(made, prompts, 6, 50.0))
    return often(torch.equal(*found), torch.equal(found[1], student.generate(made, prompts, 6, 50)))


@sampling
def rows_of_one_prompt(student, rng):
    """Whether rows with the same prompt go on in the same way."""
    prompt, made = rng.randint(0, VOCAB, 1, 4), model(student, rng)
    with seeded(student, 9):
        found = student.generate(made, prompt.repeat(12, 1), 6, 3.0)
    return often((found == found[:1]).all())


@sampling(tells=False, hidden=True)
def frequencies(student, rng):
    """Tokens come as often as their probabilities say, and each row is drawn on its own."""
    made, prompts = writer(student, rng), rng.randint(0, VOCAB, 2, 4)
    right = output_of(made, prompts)[:, -1]  # (2, vocab)
    unit = right.std(dim=-1).mean().item() + 1e-6
    for factor, top_k in ((0.4, None), (1.5, None), (1.0, 3), (0.5, 4), (1.5, VOCAB + 5)):
        kept = right.topk(min(top_k or VOCAB, VOCAB)).values[:, -1:]  # (2, 1)
        left = right.masked_fill(right < kept, -torch.inf) / (factor * unit)
        wanted = torch.softmax(left, dim=-1)  # (2, vocab)
        found = student.generate(made, prompts.repeat(500, 1), 1, factor * unit, top_k)[:, -1]
        counts = one_hot(found).double().view(500, 2, VOCAB)
        says = "tokens are not drawn with the probabilities asked for"
        expect((counts.mean(0) - wanted).abs().max() < 0.1, says)
        expect((counts.sum(0)[wanted == 0] == 0).all(), "others are drawn as well")
        together = (counts[:-1] * counts[1:]).sum(-1).mean(0)  # of one prompt, one after another
        expect((together - wanted.square().sum(-1)).abs().max() < 0.12, "rows are not independent")
    return True


test_generate_options = Check(
    "generate drops nothing, keeps the mode of the model, and refuses what makes no sense.",
    points=3,
    about="refusals",
)
options = test_generate_options.case
dropping = texts(3, 6, temperature=NEARLY_0, dropout=1.0, training=True)
options("The likeliest texts in training mode with dropout of 1.", dropping, about=TEXT)
half_dropped = texts(4, 5, temperature=NEARLY_0, dropout=0.5)
options(
    "The likeliest texts of a model with dropout of a half.", half_dropped, about=TEXT, hidden=True
)


@options(about=TEXT)
def mode_afterwards(student, rng):
    """The mode of a model that was in training mode, and of one that was not."""
    made, prompt = model(student, rng), rng.randint(0, VOCAB, 2, 3)
    student.generate(made.train(), prompt, 1)
    found = [made.training]
    student.generate(made.eval(), prompt, 1)
    return often(*found, made.training)


def generating(student, rng):
    """Return what continues a prompt with a model."""
    return functools.partial(student.generate, model(student, rng))


for sentence, *given in (
    ("A negative temperature.", -0.5),
    ("A `top_k` of 0.", 1.0, 0),
    ("A temperature of -1.", -1.0),
    ("A `top_k` of -2.", 1.0, -2),
):
    options(sentence, refused(generating, tokens(2, 3), 1, *given))


@functools.cache
def stories():
    """Return the text that the model is trained on, and who acts in it."""
    text = Path(__file__).with_name("text.txt").read_text("utf-8")
    return text, sorted({*re.findall(r"^the (\w+) and the", text, re.MULTILINE)})  # in titles


def new_stories(rng):
    """Return a text of lines of the stories, in which others act than there."""
    text, names = stories()
    lines = [line for line in text.splitlines() if line.endswith((".", "?"))]
    chosen = [re.split(r"(\w+)", lines[n]) for n in rng.randint(0, len(lines), 45).tolist()]
    words = [word for line in chosen for word in (*line, "\n")]
    others = rng.randint(0, len(names), len(words)).tolist()
    return "".join(names[n] if word in names else word for word, n in zip(words, others))


def encode(text):
    """Return a text as tokens, (n_text,)."""
    return torch.tensor([CHARACTERS.index(character) for character in text])


def cross_entropy(made, windows):
    """Return the loss that follows from a model's own logits."""
    found = output_of(made, windows[:, :-1].clone()).flatten(0, 1)
    return F.cross_entropy(found, windows[:, 1:].flatten()).item()


@pytest.mark.points(5)
@pytest.mark.needs("test_logits", "test_parameters", "test_context", "test_gradients")
@pytest.mark.needs("test_dropout", "test_loss", "test_windows", "test_training_steps")
@pytest.mark.needs("test_sampling")
@pytest.mark.needs("test_any_input", "test_no_python_loops")
def test_stories(student, rng):
    """Trained on the stories, the model predicts the characters of others, and writes words.

    Guards: what only a whole training shows. The other checks see each mistake in a few steps.
    """
    (text, names), make = stories(), lambda: student.TinyGPT(*STORIES)
    train = lambda made, to: student.train_gpt(made, encode(text), N_STEPS, report=to)  # noqa: E731
    run = trained(student, "stories", make, train)
    numbers = [number for number, _ in run.losses]
    says = "report is not called with the number of each step, from 1 on"
    expect(numbers and numbers[0] == 1 and numbers[-1] == N_STEPS, says)
    expect(run.losses[0][1] > 2.5, "the first loss that is reported is not that of a new model")
    fresh = encode(new_stories(rng)).unfold(0, STORIES[4] + 1, STORIES[4]).contiguous()
    loss = cross_entropy(run.module, fresh)
    assert_reaches(run, "the loss on stories that it has not seen", loss, at_most=AT_MOST)
    others = fresh[:4, :-1].clone()
    right = output_of(run.module, others)
    others[:, 20:] = (others[:, 20:] + 7) % len(CHARACTERS)
    says = "the logits before the characters that changed"
    assert_same(output_of(run.module, others)[:, :20], right[:, :20], says)
    one, other = (names[n] for n in rng.randint(0, len(names), 2).tolist())
    title = encode(f"the {one} and the {other}\n\n")
    story = student.generate(run.module, title[None], 300, 0.5)[0]
    known = set(text.split())
    words = "".join(CHARACTERS[token] for token in story.tolist()).split()[:-1]
    share = sum(word in known for word in words) / len(words)
    what = "the share of its words that are in the stories"
    assert_reaches(run, what, share, at_least=SHARE)
    made = make()
    student.train_gpt(made, encode(text), 1)
    expect(cross_entropy(made, fresh) > TOO_GOOD, "a single step of training is enough")
