"""Probes of a tiny GPT: what tells its mistakes apart. None of them trains for more than steps."""

import torch

from grader.probing import (
    ACCEPTED,
    Aspect,
    build,
    gradients,
    often,
    probe,
    seeded,
    steps_reported,
    works_elsewhere,
    works_too,
    written,
)
from grader.testing import Rng, load_parameters, parameter_shapes

AXES = ("batch item", "token", "character")  # of an output, in the singular

VOCAB, D_MODEL, HEADS, LAYERS, CONTEXT = SIZES = (13, 6, 3, 2, 7)
TINY = (5, 4, 2, 1, 11)  # of models that are trained for a few steps
LOSS = Aspect("loss", "the loss")
WINDOWS = Aspect("windows", "the windows of a text")
REPORTS = Aspect("reports", "what `train_gpt` reports")
STEPS = Aspect("steps", "what training does")
TEXT = Aspect("text", "the text that is generated")
DRAWN = Aspect("drawn", "how the next token is drawn")
# 1 / temperature, so far apart that chance does not matter; 1.4 is that of a common default, 0.7.
STRENGTHS = torch.tensor([0.1, 0.5, 1.0, 1.4, 2.0, 4.0, 20.0], dtype=torch.float64)
START = Aspect("start", "the numbers that a model starts with", is_edge=True)


def model(student, rng, *, sizes=SIZES, dropout=0.0, dtype=torch.float64):
    """Return a model with random parameters, in evaluation mode."""
    return build(student.TinyGPT, *sizes, dropout, rng=rng, dtype=dtype)


def steps(student, rng, dropout, *options):
    """Return the parameters after three steps on a text of a single window."""
    trained = model(student, rng, sizes=TINY, dropout=dropout)
    student.train_gpt(trained, rng.randint(0, 5, 12), 3, *options)
    return {name: each.detach() for name, each in trained.named_parameters()}


def writer(student, rng, number=0, dropout=0.0):
    """Return a model that goes on in more ways than one.

    Most models whose parameters are all random go on with one token, whatever they read.
    """
    made = build(student.TinyGPT, *SIZES, dropout, rng=Rng(rng.seed + number))
    shifts = {
        name: torch.zeros(shape)
        for name, shape in parameter_shapes(made).items()
        if name.endswith(("bias", "beta"))
    }
    return load_parameters(made, shifts)


def texts(student, rng, n_prompt, n, *options, dropout=0.0, training=False):
    """Return the likeliest texts of three models after six prompts each."""
    found = []
    for number in range(3):
        made = writer(student, rng, number, dropout).train(training)
        prompts = rng.randint(0, VOCAB, 6, n_prompt)
        found.append(student.generate(made, prompts, n, 0.0, *options))
    return found


def strength(student, rng, seed, *options, n_prompts=20, draws=500):
    """Return how strongly logits count where tokens are drawn, twelve times.

    In right code it is 1 / temperature, in whatever order that draws: it is the one of STRENGTHS
    under which what was drawn is likeliest. The logits are those of the student's own model.
    """
    prompts, made = rng.randint(0, VOCAB, n_prompts, 4), writer(student, rng)
    logits = made(prompts)[:, -1]  # (n_prompts, VOCAB)
    with seeded(student, seed):
        written = student.generate(made, prompts.repeat_interleave(draws, dim=0), 1, *options)
    drawn = torch.nn.functional.one_hot(written[:, -1].view(n_prompts, draws), VOCAB)
    counts = drawn.double().sum(1)  # (n_prompts, VOCAB)
    among = logits.masked_fill(counts == 0, -torch.inf)  # (n_prompts, VOCAB), with a top_k as well
    scores = torch.log_softmax(STRENGTHS[:, None, None] * among, dim=-1)
    likelihood = (scores.masked_fill(counts == 0, 0.0) * counts).sum((1, 2))  # (n_strengths,)
    return STRENGTHS[likelihood.argmax()].repeat(12)


@probe("values")
def ordinary(student, rng):
    """Fewer tokens than the context is long."""
    return model(student, rng)(rng.randint(0, VOCAB, 2, 5))


@probe("values")
def full_context(student, rng):
    """As many tokens as the context is long, in three layers."""
    return model(student, rng, sizes=(5, 8, 2, 3, 6))(rng.randint(0, 5, 3, 6))


@probe("square")
def square(student, rng):
    """All sizes equal."""
    return model(student, rng, sizes=(4, 4, 4, 4, 4))(rng.randint(0, 4, 4, 4))


@probe("single")
def one_token(student, rng):
    """One token."""
    return model(student, rng)(rng.randint(0, VOCAB, 2, 1))


@probe("single")
def one_item(student, rng):
    """One sentence."""
    return model(student, rng)(rng.randint(0, VOCAB, 1, 5))


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    named = student.TinyGPT(*SIZES, 0.0).named_parameters()
    return {name: [size for size in each.shape for _ in range(10)] for name, each in named}


@probe(START)
def start(student, rng):
    """How large the embeddings of a new model are, in tenths."""
    with seeded(student, 2):
        state = student.TinyGPT(40, 60, 3, 1, 30, 0.0).state_dict()
    names = "token_embedding.weight", "position_embedding.weight"
    found = [(state[name].std() * 20).round() for name in names]
    return often(found)


@probe("gradient")
def gradient(student, rng):
    """The gradients of the parameters."""
    return gradients(model(student, rng), rng.randint(0, VOCAB, 2, 5))


@probe("training")
def training(student, rng):
    """Training mode without dropout."""
    return model(student, rng).train()(rng.randint(0, VOCAB, 2, 5))


@probe("training")
def dropped_all(student, rng):
    """Training mode with dropout of 1."""
    return model(student, rng, dropout=1.0).train()(rng.randint(0, VOCAB, 2, 5))


@probe("training", decides=False)
def dropped(student, rng):
    """Which logits are finite, and how far apart they are, in training with dropout of a half."""
    trained = model(student, rng, dropout=0.5).train()
    with seeded(student, 5):
        logits = trained(rng.randint(0, VOCAB, 1, 2).repeat(300, 1)).detach()
    return [logits.std(0), logits.mean(0)]


@probe("options")
def dropout_in_evaluation(student, rng):
    """Evaluation mode with a dropout rate of a half."""
    with seeded(student, 3):
        return model(student, rng, dropout=0.5)(rng.randint(0, VOCAB, 2, 5))


@probe("views")
def transposed(student, rng):
    """The tokens are a transposed view."""
    return model(student, rng)(rng.randint(0, VOCAB, 5, 2).T)


@probe("dtype")
def half_precision(student, rng):
    """The dtype and shape of the logits in bfloat16, whose rounding adds up from block to block."""
    return torch.zeros_like(model(student, rng, dtype=torch.bfloat16)(rng.randint(0, VOCAB, 2, 5)))


@probe("writes")
def argument(student, rng):
    """Which tokens are others after a call."""
    tokens = rng.randint(0, VOCAB, 3, 5)
    return written(student, model(student, rng), tokens.clone())[0] != tokens


@probe("writes")
def prompt_afterwards(student, rng):
    """Which tokens of a prompt are others after `generate`."""
    prompt, made = rng.randint(0, VOCAB, 3, 5), model(student, rng)
    return (
        written(student, lambda it: student.generate(made, it, 2, 0.0), prompt.clone())[0] != prompt
    )


@probe("refusals")
def too_long(student, rng):
    """One token more than the context is long."""
    model(student, rng)(rng.randint(0, VOCAB, 2, CONTEXT + 1))
    return ACCEPTED


@probe("refusals")
def window_too_long(student, rng):
    """Windows that are longer than the text."""
    student.random_windows(rng.randint(0, VOCAB, 6), 2, 7)
    return ACCEPTED


@probe("refusals")
def negative_temperature(student, rng):
    """A negative temperature."""
    student.generate(model(student, rng), rng.randint(0, VOCAB, 2, 3), 1, -0.5)
    return ACCEPTED


@probe("refusals")
def no_top(student, rng):
    """A `top_k` of 0."""
    student.generate(model(student, rng), rng.randint(0, VOCAB, 2, 3), 1, 1.0, 0)
    return ACCEPTED


def loss_of(student, made, rng, n_windows, length):
    """The loss of random windows, in whatever dtype it is computed."""
    windows = rng.randint(0, VOCAB, n_windows, length)  # (n_windows, length)
    return student.next_token_loss(made, windows).detach().double()  # ()


@probe(LOSS)
def losses(student, rng):
    """The losses of twelve pairs of windows."""
    made = model(student, rng)
    return [loss_of(student, made, rng, 2, 6) for _ in range(12)]


@probe(LOSS)
def losses_of_short_windows(student, rng):
    """The losses of twelve windows of two tokens."""
    made = model(student, rng)
    return [loss_of(student, made, rng, 1, 2) for _ in range(12)]


@probe(LOSS)
def losses_of_full_windows(student, rng):
    """The losses of twelve windows of one token more than the context."""
    made = model(student, rng)
    return [loss_of(student, made, rng, 1, CONTEXT + 1) for _ in range(12)]


@probe(LOSS)
def losses_of_a_sure_model(student, rng):
    """The losses of twelve pairs of windows, where probabilities are as small as 1e-20."""
    made = load_parameters(model(student, rng), {"norm.gamma": torch.full((D_MODEL,), 30.0)})
    return [loss_of(student, made, rng, 2, 6) for _ in range(12)]


@probe(LOSS)
def gradient_of_the_loss(student, rng):
    """The gradients of the loss."""
    made = model(student, rng)
    made.zero_grad()
    student.next_token_loss(made, rng.randint(0, VOCAB, 3, 6)).backward()
    return {name: each.grad for name, each in made.named_parameters()}


@probe(WINDOWS)
def whole_text(student, rng):
    """Windows as long as the text."""
    return student.random_windows(rng.permutation(12), 4, 12)


@probe(WINDOWS)
def where_windows_begin(student, rng):
    """How often each of the two places is drawn where two windows fit, in halves."""
    found = []
    for length in range(2, 10):
        with seeded(student, length):
            windows = student.random_windows(torch.arange(length + 1), 400, length)
        counts = torch.nn.functional.one_hot(windows[:, 0], length + 1)[:, :2].double().mean(0)
        found.append((counts * 2).round())
    return found


@probe(WINDOWS)
def all_places(student, rng):
    """Which of twelve places begin a window of three, of two thousand windows."""
    with seeded(student, 7):
        windows = student.random_windows(torch.arange(14), 2000, 3)
    return torch.nn.functional.one_hot(windows[:, 0], 14).bool().any(0)


@probe(WINDOWS)
def repeated_windows(student, rng):
    """Whether the same windows are drawn after the same `torch.manual_seed`."""
    text, found = rng.permutation(500), []
    for _ in range(2):
        with seeded(student, 5, only_torch=True):
            found.append(student.random_windows(text, 12, 3))
    return often(torch.equal(*found))


@probe(WINDOWS)
def along_a_window(student, rng):
    """The distances of the tokens of a window from its first one."""
    with seeded(student, 7):
        windows = student.random_windows(torch.arange(20), 3, 5)
    return windows - windows[:, :1]


@probe(STEPS)
def three_steps(student, rng):
    """The parameters after three steps."""
    return steps(student, rng, 0.0)


@probe(STEPS)
def large_steps(student, rng):
    """The parameters after three steps at a learning rate of 0.05."""
    return steps(student, rng, 0.0, 3, 0.05)


@probe(STEPS)
def steps_with_dropout(student, rng):
    """The parameters after three steps with dropout of 1."""
    return steps(student, rng, 1.0)


@probe(STEPS)
def no_steps(student, rng):
    """Whether a model in training mode is still in it after no step of training."""
    trained = model(student, rng, sizes=TINY).train()
    student.train_gpt(trained, rng.randint(0, 5, 12), 0)
    return often(trained.training)


@probe(STEPS)
def what_is_read(student, rng):
    """After sixty steps on zeros and then ones: which of the two the model has learned."""
    trained = model(student, rng, sizes=(2, 4, 2, 1, 3))
    with seeded(student, 6):
        student.train_gpt(trained, torch.arange(2).repeat_interleave(30), 60, 16, 0.03)
    ends = torch.arange(2)[:, None].repeat(4, 3)
    return (torch.softmax(trained(ends), dim=-1) > 0.5).double()


@probe(TEXT)
def greedy(student, rng):
    """The likeliest texts after short prompts."""
    return texts(student, rng, 3, 12)


@probe(TEXT)
def greedy_after_long_prompts(student, rng):
    """The likeliest texts after prompts longer than the context."""
    return texts(student, rng, CONTEXT + 3, 4)


@probe(TEXT)
def greedy_of_the_best(student, rng):
    """The likeliest texts with a `top_k` of 3."""
    return texts(student, rng, 3, 6, 3)


@probe(TEXT)
def greedy_in_training_mode(student, rng):
    """The likeliest texts of models in training mode with dropout of 1."""
    return texts(student, rng, 3, 6, dropout=1.0, training=True)


@probe(TEXT)
def mode_afterwards(student, rng):
    """The mode of a model that was in training mode, and of one that was not."""
    made, prompt = model(student, rng), rng.randint(0, VOCAB, 2, 3)
    student.generate(made.train(), prompt, 1)
    found = [made.training]
    student.generate(made.eval(), prompt, 1)
    return often(*found, made.training)


@probe(TEXT)
def nothing_more(student, rng):
    """No more tokens than the prompt has."""
    return student.generate(model(student, rng), rng.randint(0, VOCAB, 3, 5), 0)


@probe(DRAWN)
def drawn_cold(student, rng):
    """How strongly the logits count at a temperature of 0.5."""
    return strength(student, rng, 8, 0.5)


@probe(DRAWN)
def drawn(student, rng):
    """How strongly the logits count without a temperature."""
    return strength(student, rng, 8)


@probe(DRAWN)
def drawn_warm(student, rng):
    """How strongly the logits count at a temperature of 2."""
    return strength(student, rng, 9, 2.0)


@probe(DRAWN)
def drawn_of_the_best(student, rng):
    """How strongly the logits count at a temperature of 0.5, with a `top_k` of 4."""
    return strength(student, rng, 9, 0.5, 4)


@probe(DRAWN)
def drawn_of_more_than_all(student, rng):
    """How strongly the logits count at a temperature of 2, with a `top_k` beyond the vocabulary."""
    return strength(student, rng, 9, 2.0, 40)


@probe(TEXT)
def longer_than_the_context(student, rng):
    """Whether a text grows beyond the context."""
    made, prompt = model(student, rng), rng.randint(0, VOCAB, 1, CONTEXT)
    return works_too(
        lambda: student.generate(made, prompt, 1, 0.0),
        lambda: student.generate(made, prompt, 2, 0.0),
    )


@probe(DRAWN)
def which_are_drawn(student, rng):
    """Which tokens are drawn with a `top_k` of 3, 1 and 40 at a temperature of 50."""
    made, prompt = model(student, rng), rng.randint(0, VOCAB, 1, 4).repeat(400, 1)
    found = []
    for top_k in (3, 1, 40):
        with seeded(student, 9):
            written = student.generate(made, prompt, 1, 50.0, top_k)
        found.append(torch.nn.functional.one_hot(written[:, -1], VOCAB).bool().any(0))
    return found


@probe(DRAWN)
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
        found.append(torch.nn.functional.one_hot(drawn, VOCAB).bool().any(1))
    return found


@probe(DRAWN)
def which_are_drawn_cold(student, rng):
    """Which tokens are drawn at a temperature of a thousandth, for twelve prompts."""
    made = model(student, rng)
    return student.generate(made, rng.randint(0, VOCAB, 12, 4), 1, 1e-3)


@probe(DRAWN)
def repeated_text(student, rng):
    """Whether the same text is written after the same `torch.manual_seed`."""
    made, prompts, found = model(student, rng), rng.randint(0, VOCAB, 12, 4), []
    for _ in range(2):
        with seeded(student, 5, only_torch=True):
            found.append(student.generate(made, prompts, 6, 50.0))
    return often(torch.equal(*found))


@probe(DRAWN)
def rows_of_one_prompt(student, rng):
    """Whether rows with the same prompt go on in the same way."""
    prompt, made = rng.randint(0, VOCAB, 1, 4), model(student, rng)
    with seeded(student, 9):
        found = student.generate(made, prompt.repeat(12, 1), 6, 3.0)
    return often((found == found[:1]).all())


@probe("views")
def windows_of_a_view(student, rng):
    """The distances of the tokens of a window from its first one, in a text that is a view."""
    text = torch.stack([torch.arange(20), rng.permutation(20)], 1).flatten()[::2]
    with seeded(student, 7):
        windows = student.random_windows(text, 3, 5)
    return windows - windows[:, :1]


@probe(REPORTS)
def reported_steps(student, rng):
    """How often each number from 0 to 5 is reported while there are four steps."""
    trained, text = model(student, rng, sizes=TINY), rng.randint(0, 5, 12)

    def train(report):
        student.train_gpt(trained, text, 4, report=report)

    return steps_reported(student, 4, train)


@probe("devices")
def moved(student, rng):
    """Whether a new module works after a move to another device."""
    return works_elsewhere(lambda: student.TinyGPT(*SIZES, 0.5), rng.randint(0, VOCAB, 2, 5))
