"""The checks of the attention decoder and their cases."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F

from grader.authors import (
    Aspect,
    Check,
    assert_reaches,
    assert_vectorised,
    assert_written_by_hand,
    build,
    built,
    changed,
    drawn,
    expect,
    gradients,
    often,
    output,
    output_of,
    parameters,
    steps_reported,
    trained,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("batch item", "step", "feature")  # of an output, in the singular
SCORES = Aspect("alignment network", "the scores of AlignmentNetwork")
STEP = Aspect("step", "what a step returns")
FREE = Aspect("free running", "the values without teacher forcing")
LOSSES = Aspect("losses", "the losses of the training")
REPORTS = Aspect("reports", "what `train_decoder` reports")
EXAMPLES = Aspect("examples", "which examples are trained on")
SIZES = (7, 2, 4, 5, 6)  # vocab, d_embed, d_decoder, d_encoder, d_hidden
LENGTH, PLACE = 6, 8  # of a sequence that is reversed, and of the sines and cosines of its places
TRAINED = (11, 8, 32, 11 + PLACE, 32)  # the sizes of the decoder that is trained
STEPS, EXAMPLES_OF_IT, FRESH = 300, 512, 400
SHARE = 0.98  # of what must be right


def draw(rng, batch=3, n_source=8, n_target=5, sizes=SIZES):
    """Return targets, a state and encoder states, whose sizes all differ."""
    vocab, _, d_decoder, d_encoder, _ = sizes
    targets = rng.randint(1, vocab, batch, n_target)  # (batch, n_target)
    return targets, rng.randn(batch, d_decoder), rng.randn(batch, n_source, d_encoder)


def tokens(*shape):
    """Return the recipe of tokens to write."""
    return lambda rng: rng.randint(1, SIZES[0], *shape)


def decoder(student, rng, sizes=SIZES, **options):
    """Return a decoder with random parameters."""
    return build(student.AttentionDecoder, *sizes, rng=rng, **options)


def stepped(lens=None, **of):
    """Return a case: what one step returns."""

    def ask(student, rng):
        targets, *states = draw(rng, **of)
        found = decoder(student, rng, of.get("sizes", SIZES)).step(targets[:, 0], *states, lens)
        return dict(zip(("logits", "state", "weights"), found, strict=True))

    return ask


def decoded(lens=None, forcing=True, times=1.0, **of):
    """Return a case: logits and alignment of whole targets."""

    def ask(student, rng):
        targets, state, source = draw(rng, **of)
        made = decoder(student, rng, of.get("sizes", SIZES))
        found = made(targets, state, source * times, lens, forcing)
        return dict(zip(("logits", "alignment"), found, strict=True))

    return ask


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code."""
    assert_written_by_hand(student, lambda: student.AttentionDecoder(*SIZES).double()(*draw(rng)))


test_alignment_network = Check(
    "AlignmentNetwork scores each place of the source by v . tanh(W_state s + W_source h).",
    points=3,
    about=SCORES,
)
for sentence, batch, n_source, *sizes in (
    ("Three states, with eight places each.", 3, 8, 4, 5, 6),
    ("One state and one place.", 1, 1, 4, 5, 6),
    ("As many states as places, and all sizes are equal.", 5, 5, 5, 5, 5),
    ("A d_hidden of 1.", 2, 3, 5, 4, 1),
):
    inputs = drawn(batch, sizes[0]), drawn(batch, n_source, sizes[1])
    ask = output(built("AlignmentNetwork", *sizes), *inputs)
    test_alignment_network.case(sentence, ask)
seven = output(built("AlignmentNetwork", 3, 6, 4), drawn(2, 3), drawn(2, 7, 6))
test_alignment_network.case("Seven places.", seven, hidden=True)
names = parameters("AlignmentNetwork", 4, 5, 6)
test_alignment_network.case("The parameters of AlignmentNetwork.", names, about="layers")


test_step = Check(
    "A step attends with the state before it, moves the state on and gives logits.",
    points=5,
    about=STEP,
)
test_step.case("One step.", stepped(batch=4))
test_step.case("One step, with a source of one place.", stepped(n_source=1), hidden=True)
names = parameters("AttentionDecoder", *SIZES)
test_step.case("The parameters of AttentionDecoder.", names, about="layers")


test_lengths = Check(
    "Behind source_lens nothing is attended to, and nothing at all with length 0.", points=3
)
lengths = test_lengths.case
lengths("A length for each source.", decoded(torch.tensor([5, 3, 8])))
lengths("A step with source_lens.", stepped(torch.tensor([5, 8, 1])), about=STEP)
lengths("Lengths of a few sources.", decoded(torch.tensor([1, 6]), batch=2), hidden=True)
lengths("A step with nothing to read.", stepped(torch.tensor([0, 4, 2])), about="length 0")


@lengths(about="length 0")
def nothing_to_read(student, rng):
    """A source of length 0."""
    logits, alignment = decoder(student, rng)(*draw(rng), torch.tensor([4, 0, 2]))
    return {"logits": logits, "alignment": alignment, "finite": logits.isfinite()}


@lengths(about="extreme scores")
def behind_the_source(student, rng):
    """Numbers of 30 behind source_lens."""
    targets, state, source = draw(rng)
    source[0, 5:], source[1, 3:] = 30.0, 30.0
    return decoder(student, rng)(targets, state, source, torch.tensor([5, 3, 8]))[0]


test_teacher_forcing = Check(
    "With teacher forcing, each step gets START or the target before the one to write.", points=3
)
forced = test_teacher_forcing.case
forced("Logits and alignment with teacher forcing.", decoded())
square = decoded(batch=4, n_source=4, n_target=4, sizes=(4,) * 5)
forced("All sizes are equal.", square, about="square")
forced("More targets than places.", decoded(batch=2, n_source=3, n_target=7), hidden=True)


test_free_running = Check(
    "Without teacher forcing, each step gets START or the most likely token of the one before.",
    points=3,
    about=FREE,
)
free = test_free_running.case
free("Logits and alignment without teacher forcing.", decoded(forcing=False))
free("Six targets, from states of other sizes.", decoded(None, False, 3.0, batch=6), hidden=True)


@free(hidden=True)
def arguments_by_name(student, rng):
    """Arguments by their names, with targets that are all 2."""
    targets, state, source = draw(rng, batch=4)
    named = {"teacher_forcing": False, "source_lens": None, "encoder_states": source * 3}
    return decoder(student, rng)(targets=targets * 0 + 2, state=state, **named)[0]


test_gradients = Check(
    "Gradients reach the first state, the encoder states and all parameters.",
    points=2,
    about="gradient",
)
slopes = test_gradients.case


def slopes_of(place, *options, **of):
    """Return a case: the gradients of the logits, place 0, or of the alignment, place 1."""

    def ask(student, rng):
        targets, *states = draw(rng, **of)
        made = decoder(student, rng)
        return gradients(lambda *states: made(targets, *states, *options)[place], *states)

    return ask


@slopes
def slopes_of_the_parameters(student, rng):
    """The gradients of the parameters, from the logits."""
    made, inputs = decoder(student, rng), draw(rng)
    gradients(lambda state: made(inputs[0], state, inputs[2])[0], inputs[1])
    # A parameter that nothing depends on has the gradient None or zeros.
    return {
        name: torch.zeros(()) if p.grad is None or (p.grad == 0).all() else p.grad
        for name, p in made.named_parameters()
    }


slopes("The gradients of the logits.", slopes_of(0))
slopes("The gradients of the alignment.", slopes_of(1))
slopes("The gradients without teacher forcing.", slopes_of(0, None, False))
slopes("The gradients under lengths.", slopes_of(0, torch.tensor([2, 7, 5])), hidden=True)


@slopes
def gradient_of_long_targets(student, rng):
    """The gradient of the first state, for the last of twelve steps."""
    made = decoder(student, rng)
    targets, state, source = draw(rng, n_target=12)
    return gradients(lambda first: made(targets, first, source)[0][:, -1], state)


for place, what in enumerate(("logits", "alignment")):
    ask = slopes_of(place, torch.tensor([4, 0, 2]))
    slopes(f"The gradients of the {what} with a source of length 0.", ask, about="length 0")


@slopes(about="length 0")
def finite_slopes(student, rng):
    """Which gradients are finite with a source of length 0."""
    found = slopes_of(0, torch.tensor([4, 0, 2]))(student, rng)
    return {name: value.isfinite() for name, value in found.items() if torch.is_tensor(value)}


test_any_input = Check(
    "Sizes of one, views and other dtypes work; no loop is needed, and no input is modified.",
    points=2,
)
inputs = test_any_input.case
for sentence, sizes in (
    ("One batch item.", {"batch": 1}),
    ("One place in the source.", {"n_source": 1}),
    ("One target.", {"n_target": 1}),
    ("Sizes of one.", {"batch": 1, "n_source": 1, "n_target": 1, "sizes": (3, 1, 1, 1, 1)}),
):
    inputs(sentence, decoded(**sizes), about="single")
inputs(
    "One batch item with a length, without teacher forcing.",
    decoded(torch.tensor([5]), False, 3.0, batch=1),
    about="single",
    hidden=True,
)
inputs(
    "A step of one batch item with a length.",
    stepped(torch.tensor([5]), batch=1),
    about="single",
    hidden=True,
)


@inputs(about="views")
def views(student, rng):
    """The logits for transposed views."""
    targets, state, source = draw(rng)
    strided = targets.T.contiguous().T, state.T.contiguous().T, source.mT.contiguous().mT
    return decoder(student, rng)(*strided, torch.tensor([4, 2, 8]))[0]


@inputs(about="dtype")
def dtypes(student, rng):
    """Whether logits, alignment and parameters are in bfloat16, as the decoder is."""
    made = student.AttentionDecoder(*SIZES).to(torch.bfloat16)
    targets, state, source = draw(rng)
    found = made(targets, state.bfloat16(), source.bfloat16(), torch.tensor([4, 2, 8]))
    kept = [value.dtype == torch.bfloat16 for value in made.state_dict().values()]
    return [*(often(each.dtype == torch.bfloat16) for each in found), often(all(kept))]


@inputs(about="views", hidden=True)
def views_without_teacher_forcing(student, rng):
    """The logits for transposed views, in training mode and without teacher forcing."""
    targets, state, source = draw(rng)
    strided = targets.T.contiguous().T, state.T.contiguous().T, source.mT.contiguous().mT * 3
    return decoder(student, rng).train()(*strided, None, False)[0]


@inputs(about="dtype", hidden=True)
def dtypes_without_teacher_forcing(student, rng):
    """Whether logits and alignment are in bfloat16 without lengths and teacher forcing."""
    made, (targets, *states) = student.AttentionDecoder(*SIZES).to(torch.bfloat16), draw(rng)
    found = made(targets, *(each.bfloat16() for each in states), teacher_forcing=False)
    return [often(each.dtype == torch.bfloat16) for each in found]


@inputs(about="dtype")
def single_precision(student, rng):
    """The logits in float32."""
    targets, state, source = draw(rng)
    return decoder(student, rng, dtype=torch.float32)(targets, state.float(), source.float())[0]


GIVEN = tokens(3, 5), drawn(3, 4), drawn(3, 8, 5)  # targets, a state and encoder states
ask = changed(decoder, *GIVEN, torch.tensor([4, 2, 8]))
inputs("Which arguments of the decoder are others after a call.", ask, about="writes")
inputs(
    "Which are others without lengths and teacher forcing.",
    changed(
        lambda student, rng: functools.partial(decoder(student, rng), teacher_forcing=False),
        *GIVEN,
    ),
    about="writes",
    hidden=True,
)
step = lambda student, rng: decoder(student, rng).step  # noqa: E731
inputs(
    "Which are others after a step without lengths.",
    changed(step, tokens(3), *GIVEN[1:]),
    about="writes",
    hidden=True,
)
inputs(
    "Which arguments are others after a step.",
    changed(step, tokens(3), *GIVEN[1:], torch.tensor([4, 0, 8])),
    about="writes",
    hidden=True,
)


@inputs(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of batch items or places."""

    def called(**sizes):
        fresh, made = draw(rng, **sizes), student.AttentionDecoder(*SIZES).to(torch.float64)
        lens = torch.full(fresh[0].shape[:1], 2)
        return lambda: (made(*fresh), made(*fresh, lens, False))

    grown = {"batch items": {"batch": (9, 20)}, "places of the source": {"n_source": (19, 40)}}
    assert_vectorised(student, called, grown)
    return True


test_losses = Check(
    "train_decoder learns from all examples and returns the loss of each step.",
    points=3,
    about=LOSSES,
)
losses = test_losses.case


def example(student, rng):
    """Return a decoder, and encoder states and targets of 40 examples that are all the same.

    The number of targets divides the usual sizes of a batch: then each step's logits meet each
    target equally often if the two are flattened in another order.
    """
    states = rng.randn(1, 3, 5).float().repeat(40, 1, 1)  # (n_examples, n_source, d_encoder)
    targets = torch.cat([rng.randint(1, 7, 1, 3), torch.zeros(1, 1, dtype=torch.long)], 1)
    return decoder(student, rng, dtype=torch.float32), states, targets.repeat(40, 1)


@losses(within=(1e-4, 1e-5))
def first_loss(student, rng):
    """The loss of the first step."""
    return student.train_decoder(*example(student, rng), 1) * 10


@losses
def number_of_losses(student, rng):
    """How many losses four steps have, and none, and whether they are a list of floats."""
    made, *given = example(student, rng)
    found, none = (student.train_decoder(made, *given, n_steps) for n_steps in (4, 0))
    is_list = isinstance(found, list) and all(isinstance(loss, float) for loss in found)
    return often(float(len(found)), float(len(none)), is_list)


@losses(hidden=True)
def number_of_losses_of_small_sizes(student, rng):
    """How many losses two steps have with sizes of one."""
    _, states, targets = example(student, rng)
    smallest = student.AttentionDecoder(7, 1, 1, 1, 1)
    return often(len(student.train_decoder(smallest, states[:1, :1, :1], targets[:1, :1], 2)))


@losses(about="training")
def moved(student, rng):
    """Which parameters three steps move."""
    made, states, targets = example(student, rng)
    before = {name: p.detach().clone() for name, p in made.named_parameters()}
    student.train_decoder(made, states, targets, 3)
    after = made.named_parameters()
    return {name: often(not torch.equal(p, before[name])) for name, p in after if name in before}


@losses(about="training", decides=False)
def later_losses(student, rng):
    """The losses of twelve steps."""
    return torch.tensor(student.train_decoder(*example(student, rng), 12), dtype=torch.float64)


@losses(about="training", hidden=True)
def learned(student, rng):
    """Whether 40 steps on one example lower its loss; how far is for the rate to say."""
    found = student.train_decoder(*example(student, rng), 40)
    return often(found[-1] < found[0])


@losses(about="training")
def gradients_pile_up(student, rng):
    """Whether the gradients that twelve steps leave are far larger than those of the first."""
    (made, *examples), norms = example(student, rng), []
    for n_steps in (1, 12):
        student.train_decoder(made, *examples, n_steps)
        left = [p.grad for _, p in made.named_parameters() if p.grad is not None]
        norms.append(sum(float(each.square().sum()) for each in left) ** 0.5)
    return often(norms[1] > 3 * norms[0])


def learning(student, rng):
    """Return what trains a decoder for a step on encoder states and targets."""
    made = decoder(student, rng, dtype=torch.float32)
    return lambda states, targets: student.train_decoder(made, states, targets, 1)


losses(
    "Which numbers of the examples are others after a step.",
    changed(learning, drawn(40, 3, 5, dtype=torch.float32), tokens(40, 4)),
    about="writes",
    hidden=True,
)
for n_examples in (240, 5):

    def learned_from(student, rng, each=n_examples // 5):
        made = decoder(student, rng, dtype=torch.float32)
        # Encoder states of each part have one number of their own, which one column meets.
        name = "alignment.W_source.weight"
        made.load_state_dict({name: torch.zeros(6, 5)}, strict=False)
        numbers = rng.randn(5 * each, 3, 1).float() + 2.0  # (n_examples, n_source, 1)
        parts = torch.eye(5).repeat_interleave(each, dim=0).unsqueeze(1)
        student.train_decoder(made, numbers * parts, rng.randint(1, 7, 5 * each, 4), 20)
        return [often(bool(has)) for has in (dict(made.named_parameters())[name] != 0).any(dim=0)]

    sentence = f"Which fifths of {n_examples} examples have an effect on 20 steps."
    losses(sentence, learned_from, about=EXAMPLES)


test_reports = Check(
    "train_decoder calls report with the number and the loss of each step.", points=2, about=REPORTS
)


@test_reports.case
def reported_steps(student, rng):
    """How often each number from 0 to 11 is reported while there are ten steps."""
    train = functools.partial(student.train_decoder, *example(student, rng), 10)
    return steps_reported(student, 10, train)


@test_reports.case(tells=False, hidden=True)
def reported_losses(student, rng):
    """The losses of five steps are reported as they are returned."""
    (_, *examples), returned = example(student, rng), []

    def train(made, report):
        returned.extend(student.train_decoder(made, *examples, 5, report))

    run = trained(student, "five steps", lambda: student.AttentionDecoder(*SIZES), train)
    numbers = [number for number, _ in run.losses]
    expect(numbers == [1, 2, 3, 4, 5], f"five steps are reported as {numbers}")
    for (_, reported), loss in zip(run.losses, returned):
        same = math.isclose(reported, loss, rel_tol=1e-3)
        expect(same, f"the loss {loss:.4g} is returned, and {reported:.4g} is reported")
    return True


def encode(tokens):
    """Return encoder states: each token as a one-hot vector, with sines and cosines of its place.

    tokens   (batch, LENGTH)
    returns  (batch, LENGTH, 11 + PLACE)
    """
    rates = 10000.0 ** (-torch.arange(0, PLACE, 2) / PLACE)  # (PLACE / 2,)
    angles = torch.arange(LENGTH).unsqueeze(1) * rates  # (LENGTH, PLACE / 2)
    places = torch.cat([angles.sin(), angles.cos()], dim=1)  # (LENGTH, PLACE)
    return torch.cat([F.one_hot(tokens, 11), places.expand(len(tokens), -1, -1)], dim=2)


@pytest.mark.points(5)
@pytest.mark.needs(
    *("test_alignment_network", "test_step", "test_teacher_forcing", "test_free_running"),
    *("test_gradients", "test_losses"),
)
def test_reversal(student, rng):
    """After 300 steps, the decoder writes fresh sequences backwards, along an anti-diagonal."""
    sources = rng.randint(1, 11, EXAMPLES_OF_IT, LENGTH)  # (n_examples, n_source)
    data = encode(sources), sources.flip(1)

    def train(made, report):
        student.train_decoder(made, *data, STEPS, report)

    run = trained(student, "reversing", lambda: student.AttentionDecoder(*TRAINED), train)
    sources = rng.randint(1, 11, FRESH, LENGTH)  # (batch, n_source)
    state = torch.zeros(FRESH, TRAINED[2])  # (batch, d_decoder)
    # The targets are not shown to it: without teacher forcing, it gets what it has written.
    inputs = torch.zeros_like(sources), state, encode(sources), None, False
    logits, alignment = output_of(run.module, *inputs)
    right = (logits.argmax(dim=-1) == sources.flip(1)).all(dim=1).double().mean().item()
    assert_reaches(run, "the share of fresh sequences that are right", right, at_least=SHARE)
    places = torch.arange(LENGTH - 1, -1, -1)  # (n_target,)
    met = (alignment.argmax(dim=-1) == places).double().mean().item()
    says = "the share of steps whose largest weight is on the token to write"
    assert_reaches(run, says, met, at_least=SHARE)
