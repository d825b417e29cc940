"""Probes: calls whose answers tell one mistake from another."""

import functools

import torch

from grader.probing import Aspect, build, gradients, often, probe, steps_reported, written

AXES = ("batch item", "step", "feature")  # of an output, in the singular
SIZES = (7, 2, 4, 5, 6)  # vocab, d_embed, d_decoder, d_encoder, d_hidden
SCORES = Aspect("alignment network", "the scores of AlignmentNetwork")
STEP = Aspect("step", "what a step returns")
FREE = Aspect("free running", "the values without teacher forcing")
LOSSES = Aspect("losses", "the losses of the training")
REPORTS = Aspect("reports", "what `train_decoder` reports")
EXAMPLES = Aspect("examples", "which examples are trained on")


def draw(rng, batch=3, n_source=8, n_target=5):
    """Return targets, a state and encoder states, whose sizes all differ."""
    targets = rng.randint(1, 7, batch, n_target)  # (batch, n_target)
    state = rng.randn(batch, 4)  # (batch, d_decoder)
    return targets, state, rng.randn(batch, n_source, 5)  # (batch, n_source, d_encoder)


def make(student, rng):
    """Return a decoder with random parameters."""
    return build(student.AttentionDecoder, *SIZES, rng=rng)


def network(student, rng):
    """Return an alignment network with random parameters."""
    return build(student.AlignmentNetwork, 4, 5, 6, rng=rng)


@probe(SCORES)
def scores(student, rng):
    """The scores of three states with eight places each."""
    return network(student, rng)(*draw(rng)[1:])


@probe("values")
def forced(student, rng):
    """Logits and alignment with teacher forcing."""
    logits, alignment = make(student, rng)(*draw(rng))
    return {"logits": logits, "alignment": alignment}


@probe("values")
def under_lengths(student, rng):
    """Logits and alignment with source_lens."""
    found = make(student, rng)(*draw(rng), torch.tensor([5, 3, 8]))
    return {"logits": found[0], "alignment": found[1]}


@probe(STEP)
def one_step(student, rng):
    """What one step returns."""
    targets, state, encoder_states = draw(rng, batch=4)
    found = make(student, rng).step(targets[:, 0], state, encoder_states)
    return dict(zip(("logits", "state", "weights"), found))


@probe(FREE)
def free(student, rng):
    """Logits and alignment without teacher forcing."""
    found = make(student, rng)(*draw(rng), None, False)
    return {"logits": found[0], "alignment": found[1]}


@probe("square")
def square(student, rng):
    """All sizes are equal."""
    decoder = build(student.AttentionDecoder, 4, 4, 4, 4, 4, rng=rng)
    found = decoder(rng.randint(1, 4, 4, 4), rng.randn(4, 4), rng.randn(4, 4, 4))
    return {"logits": found[0], "alignment": found[1]}


@probe("layers")
def parameters(student, rng):
    """The shapes of the parameters."""
    module = student.AttentionDecoder(*SIZES)
    return {
        name: often(*(float(n) for n in parameter.shape))
        for name, parameter in module.named_parameters()
    }


@probe("gradient")
def slopes(student, rng):
    """The gradients of the logits."""
    decoder = make(student, rng)
    targets, state, encoder_states = draw(rng)
    found = gradients(lambda *x: decoder(targets, *x)[0], state, encoder_states)
    # A parameter that nothing depends on has the gradient None or zeros.
    return found | {
        name: torch.zeros(()) if p.grad is None or (p.grad == 0).all() else p.grad
        for name, p in decoder.named_parameters()
    }


@probe("gradient")
def slopes_of_the_alignment(student, rng):
    """The gradients of the alignment."""
    decoder = make(student, rng)
    targets, state, encoder_states = draw(rng)
    return gradients(lambda *x: decoder(targets, *x)[1], state, encoder_states)


@probe("length 0")
def nothing_to_read(student, rng):
    """A source of length 0."""
    decoder, lens = make(student, rng), torch.tensor([4, 0, 2])
    logits, alignment = decoder(*draw(rng), lens)
    return {"logits": logits, "alignment": alignment, "finite": logits.isfinite()}


@probe("length 0")
def slopes_with_nothing_to_read(student, rng):
    """The gradients with a source of length 0."""
    decoder, lens = make(student, rng), torch.tensor([4, 0, 2])
    targets, state, encoder_states = draw(rng)
    found = gradients(lambda *x: decoder(targets, *x, lens)[0], state, encoder_states)
    finite = {
        name: value.isfinite() for name, value in found.items() if isinstance(value, torch.Tensor)
    }
    return {"finite": finite, **found}


@probe("single")
def single(student, rng):
    """One batch item, and then one place of the source."""
    decoder = make(student, rng)
    items = decoder(*draw(rng, batch=1))
    places = decoder(*draw(rng, n_source=1))
    return {"item": items[0], "its alignment": items[1], "place": places[0]}


@probe("views")
def views(student, rng):
    """The logits for transposed views."""
    targets, state, encoder_states = draw(rng)
    strided = encoder_states.transpose(1, 2).contiguous().transpose(1, 2)
    return make(student, rng)(targets.T.contiguous().T, state.T.contiguous().T, strided)[0]


@probe("dtype")
def dtypes(student, rng):
    """The dtypes of logits and alignment in bfloat16."""
    decoder = build(student.AttentionDecoder, *SIZES, rng=rng, dtype=torch.bfloat16)
    targets, state, encoder_states = draw(rng)
    found = decoder(targets, state.bfloat16(), encoder_states.bfloat16())
    return [often(each.dtype == torch.bfloat16) for each in found]


@probe("writes")
def arguments(student, rng):
    """The arguments after a call of the decoder."""
    inputs = *draw(rng), torch.tensor([4, 2, 8])
    before = [value.clone() for value in inputs]
    found = written(student, make(student, rng), *inputs)
    return [new != old for new, old in zip(found, before)]


def example(student, rng):
    """Return a decoder, and encoder states and targets of 40 examples that are all the same.

    The number of targets divides the usual sizes of a batch: then each step's logits meet each
    target equally often if the two are flattened in another order.
    """
    decoder = build(student.AttentionDecoder, *SIZES, rng=rng, dtype=torch.float32)
    states = rng.randn(1, 3, 5).float().repeat(40, 1, 1)  # (n_examples, n_source, d_encoder)
    targets = torch.cat([rng.randint(1, 7, 1, 3), torch.zeros(1, 1, dtype=torch.long)], 1)
    return decoder, states, targets.repeat(40, 1)


@probe(LOSSES)
def first_loss(student, rng):
    """The loss of the first step."""
    return student.train_decoder(*example(student, rng), 1) * 10


@probe(LOSSES)
def number_of_losses(student, rng):
    """How many losses four steps have."""
    return often(float(len(student.train_decoder(*example(student, rng), 4))))


@probe("training")
def moved(student, rng):
    """Which parameters a step moves."""
    decoder, states, targets = example(student, rng)
    before = {name: p.detach().clone() for name, p in decoder.named_parameters()}
    student.train_decoder(decoder, states, targets, 1)
    after = decoder.named_parameters()
    return {name: often(not torch.equal(p, before[name])) for name, p in after if name in before}


@probe(EXAMPLES)
def drawn_examples(student, rng):
    """Which fifths of 240 examples have an effect on 20 steps."""
    return _drawn(student, rng, 48)


def _drawn(student, rng, each):
    decoder = build(student.AttentionDecoder, *SIZES, rng=rng, dtype=torch.float32)
    # Encoder states of each part have one number of their own, which one column of W_source meets.
    decoder.load_state_dict({"alignment.W_source.weight": torch.zeros(6, 5)}, strict=False)
    numbers = rng.randn(5 * each, 3, 1).float() + 2.0  # (n_examples, n_source, 1)
    parts = torch.eye(5).repeat_interleave(each, dim=0).unsqueeze(1)  # (n_examples, 1, d_encoder)
    student.train_decoder(decoder, numbers * parts, rng.randint(1, 7, 5 * each, 4), 20)
    weight = dict(decoder.named_parameters())["alignment.W_source.weight"]
    return [often(bool(has)) for has in (weight != 0).any(dim=0)]


@probe(EXAMPLES)
def each_example_drawn(student, rng):
    """Which of five examples have an effect on 20 steps."""
    return _drawn(student, rng, 1)


@probe("training", decides=False)
def later_losses(student, rng):
    """The losses of twelve steps."""
    losses = student.train_decoder(*example(student, rng), 12)
    return torch.tensor(losses, dtype=torch.float64)


@probe("gradient")
def gradient_of_long_targets(student, rng):
    """The gradient of the first state, for the last of twelve steps."""
    decoder = make(student, rng)
    targets, state, encoder_states = draw(rng, n_target=12)
    return gradients(lambda first: decoder(targets, first, encoder_states)[0][:, -1], state)


@probe(LOSSES)
def float64_loss(student, rng):
    """The loss of the first step of a float64 decoder."""
    decoder, states, targets = example(student, rng)
    return student.train_decoder(decoder.to(torch.float64), states.double(), targets, 1) * 10


@probe("gradient")
def slopes_without_teacher_forcing(student, rng):
    """The gradients of the first state and the encoder states without teacher forcing."""
    decoder = make(student, rng)
    targets, *states = draw(rng)
    return gradients(lambda *x: decoder(targets, *x, None, False)[0], *states)


@probe(REPORTS)
def reported_steps(student, rng):
    """How often each number from 0 to 11 is reported while there are ten steps."""
    train = functools.partial(student.train_decoder, *example(student, rng), 10)
    return steps_reported(student, 10, train)
