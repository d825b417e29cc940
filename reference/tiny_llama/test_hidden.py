"""The checks of a tiny Llama and their cases.

Its parts are right ones, so only what is written here is graded. The notes that the model is
trained on are `text.txt`; what it is asked afterwards has other words in each run.
"""

import functools
import math
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from grader.authors import (
    Aspect,
    Check,
    assert_close,
    assert_reaches,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    expect,
    gradient,
    moved,
    often,
    only_dtype,
    output,
    output_of,
    parameters,
    refused,
    scaled,
    seeded,
    steps_reported,
    trained,
    watched,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "token", "next token")  # of an output, in the singular
CHUNKS = Aspect("chunks", "the logits with caches")
REPORTS = Aspect("reports", "what `train_llama` reports")
STEPS = Aspect("steps", "what training does")
BITS = Aspect("bits", "the bits per byte")
TEXT = Aspect("text", "the text that is written")
START = Aspect("start", "the numbers that a model starts with", is_edge=True)
VOCAB, CONTEXT = 13, 9
SIZES = (VOCAB, 12, 6, 3, 2, CONTEXT)  # six heads of size 2, two share one of keys
TINY = (5, 4, 2, 1, 1, 11)  # of models that are trained for a few steps
BYTES = (260, 4, 2, 1, 1, 5)  # of models that read bytes and three merges
MERGES = [(97, 98), (256, 99), (99, 99)]
NOTES = (288, 64, 4, 2, 2, 64, 0.1)  # the model that is trained on the notes
N_STEPS, AT_MOST, TOO_GOOD = 500, 1.35, 3.0  # bits per byte after training, and after one step


def single(x):
    """Return a tensor in float32, in which right blocks may compute angles."""
    return x.detach().float() if x.dtype == torch.float64 else x


class Reading:
    """A model that reads tokens in chunks, each with the caches of those before."""

    def __init__(self, model, sizes):
        self.model, self.sizes, self.caches = model, sizes, None

    def __call__(self, tokens):
        self.caches, found = None, []
        for chunk in tokens.split(self.sizes, dim=1) if self.sizes else [tokens]:
            given = [chunk] if self.caches is None else [chunk, self.caches]
            logits, self.caches = self.model(*given)
            found.append(logits)
        found = torch.cat(found, dim=1)
        return found.float() if found.dtype == torch.float64 else found

    def __getattr__(self, name):
        return getattr(self.model, name)

    def train(self, mode=True):
        self.model.train(mode)
        return self


def llama(*sizes, dropout=0.0, **options):
    """Return what makes a model with random parameters, in evaluation mode."""
    return built("TinyLlama", *(sizes or SIZES), dropout, **options)


def reading(*sizes, chunks=(), **options):
    """Return what makes such a model that reads in chunks, or all at once."""
    return lambda student, rng: Reading(llama(*sizes, **options)(student, rng), list(chunks))


def tokens(*shape, vocab=VOCAB):
    """Return the recipe of random tokens."""
    return lambda rng: rng.randint(0, vocab, *shape)


def transposed(rng):
    """Return tokens as a transposed view."""
    return rng.randint(0, VOCAB, 5, 3).T


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The model is made of your own parts, not of torch's Transformer."""
    given, make = rng.randint(0, VOCAB, 2, 5), lambda: student.TinyLlama(*SIZES, 0.0).eval()
    assert_written_by_hand(
        student,
        lambda: output_of(make(), given),
        lambda: student.continue_text(make(), given[0], torch.rand(2)),
    )


test_logits = Check(
    "The logits are those of embedding, blocks, final norm and the token embedding as the head.",
    points=6,
)
logits = test_logits.case
logits("Fewer tokens than the context is long.", output(reading(), tokens(2, 5)))
full = output(reading(5, 8, 2, 1, 3, 6), tokens(3, 6, vocab=5))
logits("As many tokens as the context is long, in three layers.", full)
logits("All sizes equal.", output(reading(8, 8, 4, 4, 2, 8), tokens(8, 8, vocab=8)), about="square")
logits("One token of one sentence.", output(reading(), tokens(1, 1)), about="single")
logits("Wider.", output(reading(11, 20, 5, 1, 2, 8), tokens(4, 7, vocab=11)), hidden=True)
ask = refused(llama(), tokens(2, CONTEXT + 1))
logits("One token more than the context is long.", ask, about="refusals")


test_parameters = Check(
    "There are the parameters of the statement, and no others; the embedding starts small.",
    points=3,
    about="layers",
)
layers = test_parameters.case
layers("The shapes of the parameters.", parameters("TinyLlama", *SIZES, 0.0))
ask = parameters("TinyLlama", 31, 40, 4, 2, 3, 50, 0.0)
layers("The shapes of the parameters of a larger model.", ask, hidden=True)


@layers(about=START)
def start(student, rng):
    """How large the embedding of a new model is, in tenths, and how far from 0 its mean is."""
    found = student.TinyLlama(40, 60, 2, 1, 1, 30, 0.0).state_dict()["token_embedding.weight"]
    return often((found.std() * 20).round(), (found.mean() * 20).round() == 0)


test_caches = Check(
    "The logits of chunks are those of the whole sequence; each block has a cache of its own.",
    points=8,
    about=CHUNKS,
)
cached = test_caches.case
cached("One token after the other.", output(reading(chunks=(1, 1, 1)), tokens(3, 3)))
cached("Five tokens, then two.", output(reading(chunks=(5, 2)), tokens(2, 7)))
ask = output(reading(7, 8, 2, 2, 3, 9, chunks=(2, 3, 1)), tokens(2, 6, vocab=7))
cached("Three chunks in three layers.", ask, hidden=True)


@cached
def what_is_cached(student, rng):
    """The keys and values that each block keeps after two chunks."""
    made = reading(chunks=(3, 2))(student, rng)
    made(tokens(2, 5)(rng))
    return [[single(each) for each in cache] for cache in made.caches]


@cached
def used_twice(student, rng):
    """The logits of a second call with the same caches."""
    made, first, then = llama()(student, rng), tokens(2, 3)(rng), tokens(2, 2)(rng)
    _, caches = made(first)
    made(then, caches)
    return single(made(then, caches)[0])


@cached(about="refusals", hidden=True)
def beyond_the_context(student, rng):
    """One token more than fits after those in the caches."""
    reading(chunks=(CONTEXT - 1, 2))(student, rng)(tokens(2, CONTEXT + 1)(rng))
    return True


test_any_input = Check(
    "Dropout, gradients, dtypes, devices and views are those of the blocks; no loop is needed.",
    points=6,
)
usable = test_any_input.case
usable("The gradients of the parameters.", gradient(reading(), tokens(2, 5)), about="gradient")
ask = gradient(reading(training=True), tokens(3, 4))
usable("The gradients in training.", ask, about="gradient", hidden=True)
ask = output(reading(dropout=1.0, training=True), tokens(2, 5))
usable("Training mode with dropout of 1.", ask, about="training")
ask = output(reading(dropout=0.5), tokens(2, 5))
usable("Evaluation mode with a dropout rate of a half.", ask, about="options")
usable("The tokens are a transposed view.", output(reading(), transposed), about="views")
usable("Which tokens are others after a call.", changed(reading(), tokens(3, 5)), about="writes")
half = only_dtype(reading(dtype=torch.bfloat16), tokens(2, 5))
usable("The dtype and shape of the logits in bfloat16.", half, about="dtype")
ask = moved("TinyLlama", *SIZES, 0.5, x=tokens(2, 5))
usable("Whether a new model works after a move to another device.", ask, about="devices")


@usable(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sentences or tokens."""

    def read(batch=2, n_tokens=3):
        given = rng.randint(0, VOCAB, batch, n_tokens)
        return lambda: output_of(student.TinyLlama(*SIZES[:-1], n_tokens + 1, 0.0), given)

    grown = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (14, 31)}}
    assert_vectorised(student, read, grown)


test_steps = Check(
    "train_llama takes the steps of the statement, in training mode, and ends in eval mode.",
    points=11,
    about=STEPS,
)
steps = test_steps.case
# Rounded, because a step divides by the size of gradients, which some float32 is in.
ROUNDED = (1e-3, 1e-3)


def taken(n_steps, *options, dropout=0.0):
    """Return a case: the parameters after steps on a text of a single piece, and the mode.

    The embedding is large, so that the norms of gradients are above 1 at first, and fall below it.
    """
    target = scaled(llama(*TINY, dropout=dropout), token_embedding=3.0)

    def ask(student, rng):
        made = target(student, rng)
        student.train_llama(made, rng.randint(0, 5, TINY[-1] + 1), n_steps, *options)
        return {name: single(each) for name, each in made.named_parameters()} | {
            "mode": often(made.training)
        }

    return ask


steps("The parameters after three steps.", taken(3, 4, 0.1), within=ROUNDED)
steps("The parameters after ten steps, two of warm-up.", taken(10, 4, 0.05, 2), within=ROUNDED)
ask = taken(6, 4, 0.05, 2, dropout=1.0)
steps("The parameters after six steps with dropout of 1.", ask, within=ROUNDED)
ask = taken(9, 3, 0.04, 4)
steps("The parameters after nine steps, four of warm-up.", ask, within=ROUNDED, hidden=True)


@steps
def what_is_read(student, rng):
    """What comes after each of twelve tokens, after steps on a text of one after the other."""
    with seeded(student, 6):
        made = student.TinyLlama(12, 16, 2, 1, 1, 1, 0.0)
        student.train_llama(made, torch.arange(12), 24, 32, 0.1, 2)
    return F.one_hot(made(torch.arange(12)[:, None])[0].argmax(-1), 12)[:11]


@steps(tells=False, hidden=True)
def pieces_of_a_step(student, rng):
    """batch_size says how many pieces a step draws."""
    text, sizes = rng.randint(0, 5, 12), []
    for batch_size in (40, 400):
        with watched(student) as seen:
            student.train_llama(student.TinyLlama(*TINY, 0.0), text, 1, batch_size)
        sizes.append(seen.largest.elements)
    expect(sizes[1] > 4 * sizes[0], "batch_size does not say how many pieces a step draws")
    return True


@steps(about=REPORTS, decides=False)
def reported_steps(student, rng):
    """How often each number from 0 to 5 is reported while there are four steps."""
    made, text = llama(*TINY)(student, rng), rng.randint(0, 5, 12)
    return steps_reported(student, 4, lambda to: student.train_llama(made, text, 4, report=to))


test_bits = Check(
    "bits_per_byte is the bits of all tokens but the first, for each byte of the text.",
    points=6,
    about=BITS,
)
bits = test_bits.case


def bits_of(*lengths, letters=3):
    """Return a case: the bits per byte of texts of some lengths."""

    def ask(student, rng):
        made = llama(*BYTES)(student, rng)
        texts = [bytes(rng.randint(97, 97 + letters, n).tolist()) for n in lengths]
        return [student.bits_per_byte(made, each, MERGES) for each in texts]

    return ask


bits("Texts of eighteen and more bytes.", bits_of(*range(18, 30)))
bits("Texts of single letters, in which nothing is merged.", bits_of(*range(20, 32), letters=1))
bits("Texts of at most one piece.", bits_of(*[4, 5, 6] * 4))
bits("Texts of forty and more bytes.", bits_of(*range(40, 60)), hidden=True)


test_text = Check(
    "continue_text draws each token with its number, from the distribution that is asked for.",
    points=5,
    about=TEXT,
)
text = test_text.case


def texts(n_prompt, n, *options, dropout=0.0):
    """Return a case: the texts of a model after three prompts."""

    def ask(student, rng):
        made = llama(dropout=dropout)(student, rng)
        given = [(rng.randint(0, VOCAB, n_prompt), rng.rand(n)) for _ in range(3)]
        return [student.continue_text(made, *each, *options) for each in given]

    return ask


text("The likeliest texts.", texts(3, 6, 0.0))
text("Texts that are drawn without options.", texts(2, 7))
text("Texts at a temperature of 3.", texts(4, 5, 3.0))
text("Texts with a `top_k` of 3 at a temperature of 5.", texts(3, 6, 5.0, 3))
text("Texts with a `top_p` of 0.4 at a temperature of 5.", texts(1, 8, 5.0, None, 0.4))
text("Texts of a model with dropout of a half.", texts(3, 5, 2.0, dropout=0.5), hidden=True)
text("Texts with all options.", texts(5, 5, 4.0, 6, 0.8), hidden=True)
text("No more tokens than the prompt has.", texts(4, 0))
text("As many tokens as fit.", texts(1, CONTEXT), hidden=True)


def writer(student, rng):
    """Return the text of a model as a function of the prompt and the numbers."""
    return functools.partial(student.continue_text, llama()(student, rng))


numbers = lambda rng: rng.rand(4)  # noqa: E731
pieces = lambda rng: rng.randint(0, VOCAB, 5, 2)[:, 0]  # noqa: E731
text("A prompt that is a view.", output(writer, pieces, numbers), about="views")
text("What is changed.", changed(writer, tokens(3), numbers), about="writes")
ask = refused(writer, tokens(CONTEXT - 1), lambda rng: rng.rand(4))
text("More tokens than the context is long.", ask, about="refusals", hidden=True)


@text
def what_is_read_again(student, rng):
    """Whether all tokens so far are read again for each new one."""
    made = student.TinyLlama(200, 4, 2, 1, 1, 60, 0.0).eval()
    with watched(student, kernels=False) as seen:
        student.continue_text(made, torch.tensor([3]), rng.rand(40))
    return often(seen.largest.elements >= 200 * 20)


@functools.cache
def notes():
    """Return the bytes that the model is trained on, and the words of the others."""
    data = Path(__file__).with_name("text.txt").read_text("utf-8").encode()
    cut = len(data) * 9 // 10
    return data[:cut], re.split(r"(\w+)", data[cut:].decode())


def new_notes(rng):
    """Return the other notes, in which other people do other things than there."""
    _, words = notes()
    people, things = (
        sorted({*re.findall(each, "".join(words))})
        for each in (r"said the (\w+)", r"(?:have an?|the) \w+ (\w+) (?:of|than)")
    )
    for kind in (people, things):
        others = rng.permutation(len(kind)).tolist()
        new = {word: kind[n] for word, n in zip(kind, others)}
        words = [new.get(word, word) for word in words]
    return "".join(words).encode()


@pytest.mark.points(5)
@pytest.mark.needs("test_logits", "test_parameters", "test_caches", "test_any_input")
@pytest.mark.needs("test_steps", "test_bits", "test_text")
def test_notes(student, rng):
    """Trained on the notes, the model predicts the bytes of others, with caches as without.

    Guards: what only a whole training shows. The other checks see each mistake in a few steps.
    """
    (seen, _), make = notes(), lambda: student.TinyLlama(*NOTES)
    merges, read = student.learned_tokens(seen, 32)
    train = lambda made, to: student.train_llama(made, read, N_STEPS, report=to)  # noqa: E731
    run = trained(student, "notes", make, train)
    told = [number for number, _ in run.losses]
    says = "report is not called with the number of each step, from 1 on"
    expect(told and told[0] == 1 and told[-1] == N_STEPS, says)
    expect(run.losses[0][1] > 4, "the first loss that is reported is not that of a new model")
    fresh = new_notes(rng)
    bits = student.bits_per_byte(run.module, fresh, merges)
    assert_reaches(run, "the bits per byte of notes that it has not seen", bits, at_most=AT_MOST)
    some = read[rng.randint(0, len(read) - 64, 3, 1) + torch.arange(64)]
    whole, _ = output_of(run.module, some)
    parts = Reading(run.module, [40, 23, 1])(some)
    assert_close(parts, whole, "the logits of three chunks", atol=1e-3)
    loss = F.cross_entropy(whole[:, :-1].flatten(0, 1), some[:, 1:].flatten()).item()
    expect(loss / math.log(2) < 4, "the logits do not predict the text")
    made = make()
    student.train_llama(made, read, 1)
    found = student.bits_per_byte(made, fresh, merges)
    expect(found > TOO_GOOD, "a single step of training is enough")
