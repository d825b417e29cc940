"""Hidden tests, which decide the points."""

import math

import pytest
import torch
import torch.nn.functional as F

from grader.testing import (
    assert_close,
    assert_depends,
    assert_dtype,
    assert_reaches,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    output_of,
    trained,
    twins,
)

SIZES = (7, 2, 4, 5, 6)  # vocab, d_embed, d_decoder, d_encoder, d_hidden
VOCAB, D_DECODER, D_ENCODER = SIZES[0], SIZES[2], SIZES[3]
ARGUMENTS = ("targets", "state", "encoder_states", "source_lens")
LENGTH, PLACE = 6, 8  # of a sequence that is reversed, and of the sines and cosines of its places
TRAINED = (11, 8, 32, 11 + PLACE, 32)  # the sizes of the decoder that is trained
STEPS, EXAMPLES, FRESH = 300, 512, 400
SHARE = 0.98  # of what must be right


def draw(rng, batch=2, n_source=8, n_target=3):
    """Return targets, a state and encoder states, whose sizes all differ."""
    targets = rng.randint(1, VOCAB, batch, n_target)  # (batch, n_target)
    state = rng.randn(batch, D_DECODER)  # (batch, d_decoder)
    return targets, state, rng.randn(batch, n_source, D_ENCODER)


def pair(student, reference, rng, scale=1.0):
    """Return both decoders with the same parameters, and the student's with those that it has."""
    ours = reference.AttentionDecoder(*SIZES)
    state = {name: rng.randn(*p.shape) * scale for name, p in ours.named_parameters()}
    theirs = load_parameters(student.AttentionDecoder(*SIZES), state)
    return theirs, load_parameters(ours, state)


def stepped(decoder, token, state, encoder_states, lens=None):
    """Return logits, the new state and weights of one step, in float64."""
    found = output_of(decoder.step, token, state, encoder_states, lens)
    expect(isinstance(found, tuple | list) and len(found) == 3, "step does not return three things")
    return tuple(in_float64(each) for each in found)


def written(decoder, *inputs):
    """Return logits and the alignment of a whole target, in float64."""
    found = output_of(decoder, *inputs)
    says = "the decoder does not return two things"
    expect(isinstance(found, tuple | list) and len(found) == 2, says)
    return tuple(in_float64(each) for each in found)


def by_steps(decoder, targets, state, encoder_states, teacher_forcing=True):
    """Return logits and the alignment that the student's own steps give for a whole target."""
    token, logits, weights = torch.zeros_like(targets[:, 0]), [], []
    for target in targets.T:
        right, state, each = stepped(decoder, token, state, encoder_states)
        logits.append(right)
        weights.append(each)
        token = target if teacher_forcing else right.argmax(dim=-1)
    return torch.stack(logits, 1), torch.stack(weights, 1)


def alike(rng):
    """Return encoder states and targets of 40 examples that are the same, as every batch then is.

    returns  (n_examples, n_source, d_encoder) in float32, and (n_examples, n_target)
    """
    states = rng.randn(1, 4, D_ENCODER).float().repeat(40, 1, 1)
    return states, torch.tensor([[3, 1, 6, 0, 5]]).repeat(40, 1)


def encode(tokens):
    """Return encoder states: each token as a one-hot vector, with sines and cosines of its place.

    tokens   (batch, LENGTH)
    returns  (batch, LENGTH, 11 + PLACE)
    """
    rates = 10000.0 ** (-torch.arange(0, PLACE, 2) / PLACE)  # (PLACE / 2,)
    angles = torch.arange(LENGTH).unsqueeze(1) * rates  # (LENGTH, PLACE / 2)
    places = torch.cat([angles.sin(), angles.cos()], dim=1)  # (LENGTH, PLACE)
    return torch.cat([F.one_hot(tokens, 11), places.expand(len(tokens), -1, -1)], dim=2)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The work is done by your own code.

    Guards: the calls that the exercise forbids.
    """
    inputs = draw(rng)
    assert_written_by_hand(student, lambda: student.AttentionDecoder(*SIZES).double()(*inputs))


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_alignment_network(student, reference, rng):
    """AlignmentNetwork scores each place of the source by v . tanh(W_state s + W_source h)."""
    makes = student.AlignmentNetwork, reference.AlignmentNetwork
    theirs, ours = twins(*makes, D_DECODER, D_ENCODER, 6, rng=rng)
    for batch, n_source in ((2, 8), (3, 3), (1, 1)):
        _, state, encoder_states = draw(rng, batch, n_source)
        scores = in_float64(output_of(theirs, state, encoder_states))
        assert_close(scores, output_of(ours, state, encoder_states), "the scores")
    for sizes, says in (((5, 5, 5), "all sizes are equal"), ((5, 5, 1), "d_hidden is 1")):
        theirs, ours = twins(*makes, *sizes, rng=rng)
        state, encoder_states = rng.randn(5, 5), rng.randn(5, 5, 5)
        scores = in_float64(output_of(theirs, state, encoder_states))
        assert_close(scores, output_of(ours, state, encoder_states), f"the scores where {says}")


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_step(student, reference, rng):
    """A step attends with the state before it, moves the state on and gives logits."""
    theirs, ours = twins(student.AttentionDecoder, reference.AttentionDecoder, *SIZES, rng=rng)
    own = dict(theirs.named_parameters())
    for batch, n_source in ((2, 8), (3, 1)):
        targets, state, encoder_states = draw(rng, batch, n_source)
        token = targets[:, 0]
        logits, new_state, weights = stepped(theirs, token, state, encoder_states)

        def scored(state=state, encoder_states=encoder_states):
            return in_float64(output_of(theirs.alignment, state, encoder_states))

        right = ours.step(token, state, encoder_states)
        assert_right_or_own(
            weights, right[2].detach(), lambda: torch.softmax(scored(), dim=-1), "weights of a step"
        )
        # What follows is asked for these weights, which the student's own scores may have given.
        context = (weights.unsqueeze(1) @ encoder_states).squeeze(1)  # (batch, d_encoder)
        embedded = own["embedding.weight"].detach()[token]  # (batch, d_embed)
        with torch.no_grad():
            expected = ours.cell(torch.cat([embedded, context], dim=1), state)
            assert_close(new_state, expected, "the new state")
            expected = ours.out(torch.cat([expected, context, embedded], dim=1))
            assert_close(logits, expected, "the logits of a step")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_lengths(student, reference, rng):
    """Behind source_lens nothing is attended to, and nothing at all with length 0."""
    theirs, ours = pair(student, reference, rng)
    targets, state, encoder_states = draw(rng, batch=4)
    lens = torch.tensor([5, 0, 8, 1])  # (batch,)
    logits, alignment = written(theirs, targets, state, encoder_states, lens)
    expect(alignment.shape == (4, 3, 8), f"the alignment has the shape {tuple(alignment.shape)}")
    hidden = torch.arange(8) >= lens.view(4, 1, 1)  # (batch, 1, n_source)
    expect((alignment * hidden == 0).all(), "a place behind source_lens has a weight")
    others = encoder_states.where(~hidden.transpose(1, 2), 30.0)
    again = written(theirs, targets, state, others, lens)
    assert_same(again[0], logits, "the logits for other numbers behind source_lens")
    for item, length in enumerate(lens.tolist()):
        one = targets[[item]], state[[item]], encoder_states[[item], :length]
        if length == 0:  # one place of zeros with the weight 1 has the same context
            one = *one[:2], torch.zeros(1, 1, D_ENCODER, dtype=torch.float64)
        given = targets[[item]], state[[item]], encoder_states[[item]], lens[[item]]
        right = output_of(ours, *given)[0]
        assert_right_or_own(
            logits[[item]], right, lambda one=one: written(theirs, *one)[0], "the logits"
        )
        weights = stepped(theirs, one[0][:, 0], *given[1:])[2]
        assert_same(weights, alignment[[item], 0], "the weights of step and of the decoder")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_teacher_forcing(student, reference, rng):
    """With teacher forcing, each step gets START or the target before the one to write."""
    theirs, ours = pair(student, reference, rng)
    for batch, n_source, n_target in ((2, 8, 5), (3, 4, 4), (1, 1, 1)):
        inputs = draw(rng, batch, n_source, n_target)
        found = written(theirs, *inputs)
        right = output_of(ours, *inputs)
        own = None
        for place, what in enumerate(("the logits", "the alignment")):
            try:
                assert_close(found[place], right[place], what)
            except Exception:
                own = own or by_steps(theirs, *inputs)
                assert_close(found[place], own[place], what)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_free_running(student, reference, rng):
    """Without teacher forcing, each step gets START or the most likely token of the one before."""
    theirs, _ = pair(student, reference, rng)
    targets, state, encoder_states = draw(rng, 6, 8, 5)
    encoder_states = encoder_states * 3  # so that the items get different tokens
    own = by_steps(theirs, targets, state, encoder_states, teacher_forcing=False)
    found = written(theirs, targets, state, encoder_states, None, False)
    assert_same(found[0], own[0], "the logits, compared with those of your steps")
    assert_same(found[1], own[1], "the alignment, compared with the weights of your steps")
    assert_depends(own[0][:, -1])
    named = {"teacher_forcing": False, "source_lens": None, "encoder_states": encoder_states}
    again = output_of(theirs, targets=targets * 0 + 2, state=state, **named)
    assert_same(in_float64(again[0]), own[0], "the logits for other targets")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_gradients(student, reference, rng):
    """Gradients reach the first state, the encoder states and all parameters."""
    theirs, ours = pair(student, reference, rng)
    targets, state, encoder_states = draw(rng)
    inputs = {"state": state, "encoder_states": encoder_states}
    for lens in (None, torch.tensor([0, 3])):
        for place in (0, 1):  # the logits, then the alignment

            def given(decoder, lens=lens, place=place):
                return lambda *inputs: decoder(targets, *inputs, lens)[place]

            assert_slopes(student, given(theirs), given(ours), inputs, rng=rng)
    long, first, source = draw(rng, 2, 2, 12)

    for *options, what in ((None, True, "state"), (None, False, "state, free running")):

        def last_logits(decoder, options=options):
            return lambda state: decoder(long, state, source, *options)[0][:, -1]

        assert_slopes(student, last_logits(theirs), last_logits(ours), {what: first}, rng=rng)
    upstream, outputs = rng.randn(2, 3, VOCAB), []
    for decoder in (theirs, ours):
        decoder.zero_grad()
        logits = decoder(targets, state, encoder_states)[0]
        expect(logits.shape == upstream.shape, f"the logits have the shape {tuple(logits.shape)}")
        (logits * upstream).sum().backward()
        outputs.append(logits.detach())
    is_right = torch.allclose(*outputs)
    right = {name: p.grad for name, p in ours.named_parameters()}
    for name, parameter in theirs.named_parameters():
        expect(parameter.grad is not None, f"no gradient reaches {name}")
        expect((parameter.grad != 0).any(), f"the gradient of {name} is zero")
        if is_right and name in right:
            assert_close(parameter.grad, right[name], f"the gradient of {name}")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_any_input(student, reference, rng):
    """Sizes of one, views and other dtypes work; no loop is needed, and no input is modified."""
    theirs, _ = pair(student, reference, rng)
    lens = torch.tensor([4, 2])  # (batch,)
    inputs = targets, state, encoder_states = draw(rng)
    call = assert_unchanged(
        student, lambda *x: output_of(theirs, *x), *inputs, lens, names=ARGUMENTS
    )
    every = in_float64(call[0])
    assert_depends(every[:, 0])
    token = targets[:, 0].contiguous()
    names = ("token", *ARGUMENTS[1:])
    step = lambda *x: output_of(theirs.step, *x)  # noqa: E731
    assert_unchanged(student, step, token, state, encoder_states, lens, names=names)
    views = targets.T.contiguous().T, state.T.contiguous().T
    strided = encoder_states.transpose(1, 2).contiguous().transpose(1, 2)
    again = written(theirs, *views, strided, lens)[0]
    assert_same(again, every, "the logits for transposed views", shape=(2, 3, VOCAB))
    one = written(theirs, targets[1:], state[1:], encoder_states[1:], lens[1:])[0]
    assert_same(one, every[1:], "the logits for one batch item")
    tiny = student.AttentionDecoder(3, 1, 1, 1, 1).to(torch.float64)
    found = written(tiny, torch.tensor([[2]]), rng.randn(1, 1), rng.randn(1, 1, 1))
    assert_close(found[1], torch.ones(1, 1, 1).double(), "the alignment with one place")
    for dtype in (torch.float32, torch.bfloat16):
        new = student.AttentionDecoder(*SIZES)
        decoder = new if dtype == torch.float32 else new.to(dtype)
        found = output_of(decoder, targets, state.to(dtype), encoder_states.to(dtype), lens)
        for output in found:
            assert_dtype(output, dtype, f"the output for inputs in {dtype}")
        for name, parameter in decoder.state_dict().items():
            assert_dtype(parameter, dtype, f"{name} of a decoder in {dtype}")

    def called(**sizes):
        fresh = draw(rng, **sizes)
        return lambda: student.AttentionDecoder(*SIZES).to(torch.float64)(*fresh)

    grown = {"batch items": {"batch": (9, 20)}, "places of the source": {"n_source": (19, 40)}}
    assert_vectorised(student, called, grown)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand", "test_teacher_forcing")
def test_losses(student, reference, rng):
    """train_decoder learns from all examples and returns the loss of each step."""
    states, targets = alike(rng)
    theirs = pair(student, reference, rng, scale=0.5)[0].to(torch.float32)
    before = {name: p.detach().clone() for name, p in theirs.named_parameters()}
    logits = written(theirs, targets[:1], torch.zeros(1, D_DECODER), states[:1])[0]
    first = F.cross_entropy(logits.flatten(0, 1), targets[0]).item()
    call = lambda *x: student.train_decoder(theirs, *x, 1)  # noqa: E731
    losses = assert_unchanged(student, call, states, targets, names=("encoder_states", "targets"))
    expect(isinstance(losses, list) and len(losses) == 1, "there is not one loss for each step")
    expect(isinstance(losses[0], float), "a loss is not a float")
    says = f"the first loss is {losses[0]:.4g}, where the mean cross entropy is {first:.4g}"
    expect(math.isclose(losses[0], first, rel_tol=1e-4), says)
    for name, parameter in theirs.named_parameters():
        expect(not torch.equal(parameter, before[name]), f"the training leaves {name} as it is")
    expect(student.train_decoder(theirs, states, targets, 0) == [], "0 steps have losses")
    double = student.AttentionDecoder(*SIZES).to(torch.float64)
    losses = student.train_decoder(double, states.double(), targets, 1)
    expect(len(losses) == 1, "in float64, one step does not have one loss")
    smallest = student.AttentionDecoder(VOCAB, 1, 1, 1, 1)
    losses = student.train_decoder(smallest, states[:1, :1, :1], targets[:1, :1], 2)
    expect(len(losses) == 2, "with sizes of one, two steps do not have two losses")

    losses = student.train_decoder(theirs, states, targets, 40)
    expect(len(losses) == 40, f"40 steps have {len(losses)} losses")
    says = f"40 steps on one example lower the loss from {first:.3g} to {losses[-1]:.3g} only"
    expect(losses[-1] < 0.6 * first, says)
    assert_all_drawn(student, reference, rng)


def assert_all_drawn(student, reference, rng):
    """Raise `Mismatch` unless examples from everywhere have an effect on the training.

    Encoder states of each part of the examples have one number of their own, which one column of
    W_source meets. As that is zero at first, it stays so where these examples are not drawn.
    """
    name = "alignment.W_source.weight"
    for each in (60, 1):  # examples in a part
        theirs = pair(student, reference, rng, scale=0.5)[0].to(torch.float32)
        shape = dict(theirs.named_parameters())[name].shape
        theirs.load_state_dict({name: torch.zeros(shape)}, strict=False)
        parts = torch.eye(D_ENCODER).repeat_interleave(each, dim=0).unsqueeze(1)
        numbers = rng.randn(each * D_ENCODER, 4, 1).float() + 2.0  # (n_examples, n_source, 1)
        targets = rng.randint(1, VOCAB, len(numbers), 5)  # (n_examples, n_target)
        student.train_decoder(theirs, numbers * parts, targets, 25)
        seen = (dict(theirs.named_parameters())[name] != 0).any(dim=0)  # (d_encoder,)
        if seen.any():  # otherwise the loss does not reach it, which is asked for elsewhere
            says = f"25 steps on {len(numbers)} examples learn from a part of them only"
            expect(seen.all(), says)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand", "test_teacher_forcing")
def test_reports(student, rng):
    """train_decoder calls report with the number and the loss of each step."""
    states, targets = alike(rng)
    returned: list[float] = []

    def train(decoder, report):
        returned.extend(student.train_decoder(decoder, states, targets, 5, report))

    run = trained(student, "five steps", lambda: student.AttentionDecoder(*SIZES), train)
    numbers = [number for number, _ in run.losses]
    expect(numbers == [1, 2, 3, 4, 5], f"five steps are reported as {numbers}")
    pairs = zip(run.losses, returned) if len(returned) == len(numbers) else ()
    for (_, reported), loss in pairs:
        same = math.isclose(reported, loss, rel_tol=1e-3)
        expect(same, f"the loss {loss:.4g} is returned, and {reported:.4g} is reported")


def reversing(student, rng):
    """Return the student's decoder after it was trained to reverse."""
    sources = rng.randint(1, 11, EXAMPLES, LENGTH)  # (n_examples, n_source)
    data = encode(sources), sources.flip(1)

    def train(decoder, report):
        student.train_decoder(decoder, *data, STEPS, report)

    return trained(student, "reversing", lambda: student.AttentionDecoder(*TRAINED), train)


@pytest.mark.points(2)
@pytest.mark.needs(
    *("test_alignment_network", "test_step", "test_teacher_forcing", "test_free_running"),
    *("test_gradients", "test_losses"),
)
def test_reversal(student, rng):
    """After 300 steps, the decoder writes fresh sequences backwards, along an anti-diagonal."""
    run = reversing(student, rng)
    decoder = run.module
    sources = rng.randint(1, 11, FRESH, LENGTH)  # (batch, n_source)
    targets = sources.flip(1)  # (batch, n_target)
    state = torch.zeros(FRESH, TRAINED[2])  # (batch, d_decoder)
    # targets are not shown to it: without teacher forcing, it gets what it has written.
    logits, alignment = written(
        decoder, torch.zeros_like(targets), state, encode(sources), None, False
    )
    right = (logits.argmax(dim=-1) == targets).all(dim=1).double().mean().item()
    assert_reaches(run, "the share of fresh sequences that are right", right, at_least=SHARE)
    places = torch.arange(LENGTH - 1, -1, -1)  # (n_target,)
    met = (alignment.argmax(dim=-1) == places).double().mean().item()
    says = "the share of steps whose largest weight is on the token to write"
    assert_reaches(run, says, met, at_least=SHARE)
