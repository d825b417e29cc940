"""Probes: calls whose answers tell one mistake from another."""

import functools

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
    written,
)
from grader.testing import parameter_shapes, watched

AXES = ("sequence", "token", "count")  # of an output, in the singular

SIZES = 4, 7, 6  # vocab, length and d_model
BY_HAND = Aspect("by hand", "what `set_weights` makes of a model")
REPORTS = Aspect("reports", "what `train_counter` reports")
TRAINING = Aspect("steps", "what a few steps of `train_counter` do")
LAYERS = ("embedding", "W_query", "W_key", "W_value", "linear1", "linear2")


def draw(rng, n, vocab=4, length=5):
    """Return sequences, (n, length)."""
    return rng.randint(0, vocab, n, length)


def make(student, rng, **options):
    """Return a small model with random parameters, in evaluation mode."""
    return build(student.CountingTransformer, *SIZES, rng=rng, layers=LAYERS, **options)


@probe("values")
def logits(student, rng):
    """Three sequences of five tokens."""
    return make(student, rng)(draw(rng, 3))


@probe("values")
def full_length(student, rng):
    """Sequences as long as the model allows."""
    return make(student, rng)(draw(rng, 3, length=7))


@probe("square")
def square(student, rng):
    """As many sequences as tokens."""
    return make(student, rng)(draw(rng, 5))


@probe("training")
def in_training(student, rng):
    """Training mode."""
    with seeded(student, 1):
        return make(student, rng).train()(draw(rng, 3))


@probe("single")
def single(student, rng):
    """One token, and one sequence."""
    model = make(student, rng)
    return [model(draw(rng, 3, length=1)), model(draw(rng, 1))]


@probe("layers")
def parameters(student, rng):
    """The sizes of all parameters."""
    shapes = parameter_shapes(student.CountingTransformer(*SIZES))
    return {name: often(list(shape)) for name, shape in shapes.items()}


@probe("gradient")
def slopes(student, rng):
    """The gradients of the parameters."""
    return gradients(make(student, rng), draw(rng, 3))


@probe("dtype")
def dtypes(student, rng):
    """A model in float32."""
    return make(student, rng, dtype=torch.float32)(draw(rng, 3))


@probe("writes")
def tokens_afterwards(student, rng):
    """Which tokens have changed."""
    tokens = draw(rng, 3)
    return written(student, make(student, rng), tokens.clone())[0] != tokens


@probe("refusals")
def too_long(student, rng):
    """More tokens than the model allows."""
    make(student, rng)(draw(rng, 2, length=8))
    return ACCEPTED


@probe("refusals")
def too_narrow(student, rng):
    """Weights by hand for a d_model without a place for BOS."""
    student.set_weights(student.CountingTransformer(4, 7, 4))
    return ACCEPTED


@probe(BY_HAND)
def by_hand(student, rng):
    """The counts with weights by hand."""
    found = []
    for vocab, length, d_model in ((4, 7, 5), (3, 12, 8), (2, 9, 300)):
        model = student.CountingTransformer(vocab, length, d_model)
        student.set_weights(model)
        found += [model(draw(rng, 20, vocab, length)).argmax(dim=-1)]
    return found


@probe(BY_HAND)
def by_hand_long(student, rng):
    """The counts of twenty equal tokens or fewer, with weights by hand for 3 and 300 features."""
    tokens = (torch.arange(20) >= torch.arange(20).view(20, 1)).long()  # (20, n_tokens)
    found = []
    for d_model in (3, 300):
        model = student.CountingTransformer(2, 20, d_model)
        student.set_weights(model)
        found.append(model(tokens).argmax(dim=-1))
    return found


@probe(BY_HAND)
def still_trainable(student, rng):
    """Which parameters can be trained after set_weights."""
    model = student.CountingTransformer(4, 7, 5)
    student.set_weights(model)
    return [often(float(p.requires_grad)) for p in model.parameters()]


def untrained(student, rng):
    """Return a model, and six equal sequences of different tokens: any batch is the same."""
    model = build(student.CountingTransformer, *SIZES, rng=rng, dtype=torch.float32, layers=LAYERS)
    return model, rng.permutation(4).repeat(6, 1)


@probe(TRAINING, decides=False)
def learned(student, rng):
    """What a model says of one sequence after eighty steps."""
    model, tokens = untrained(student, rng)
    with seeded(student, 1):
        student.train_counter(model, tokens, tokens + 2, 80)
    return model(tokens).argmax(dim=-1)


@probe(TRAINING, decides=False)
def learned_of_pairs(student, rng):
    """What a model says of a sequence of two tokens, each twice, after eighty steps."""
    model, tokens = untrained(student, rng)
    tokens = tokens[:, [0, 1, 0, 1]]  # (6, 4): both are taught as often
    with seeded(student, 1):
        student.train_counter(model, tokens, tokens + 3, 80)
    return model(tokens).argmax(dim=-1)


@probe(TRAINING, decides=False)
def after_another_call(student, rng):
    """Which parameters a step moves as it does in a model that was not trained before."""
    model, tokens = untrained(student, rng)
    with seeded(student, 1):
        student.train_counter(model, tokens, tokens + 2, 3)
    other, _ = untrained(student, rng)
    other.load_state_dict(model.state_dict())
    for each in (model, other):
        with seeded(student, 1):
            student.train_counter(each, tokens, 5 - tokens, 1)
    pairs = zip(model.named_parameters(), other.parameters())
    return {name: often(float(torch.allclose(one, two))) for (name, one), two in pairs}


@probe(TRAINING, decides=False)
def unchanged(student, rng):
    """Which parameters no step changes, and which ones three steps do not."""
    found = {}
    for steps in (0, 3):  # right code may make its last step with a learning rate of 0
        model, tokens = untrained(student, rng)
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        with seeded(student, 1):
            student.train_counter(model, tokens, tokens + 1, steps)
        found[f"{steps} steps"] = {
            name: often(float(torch.equal(p.detach(), before[name])))
            for name, p in model.named_parameters()
        }
    return found


@probe(TRAINING)
def one_step(student, rng):
    """Whether one step computes more than none."""
    operations = []
    for steps in (0, 1):
        model, tokens = untrained(student, rng)
        with watched(student, kernels=False) as seen:
            student.train_counter(model, tokens, tokens + 1, steps)
        operations.append(seen.operations)
    return often(operations[1] > operations[0])


@probe(TRAINING)
def updates_of_many(student, rng):
    """Whether two steps on 300 sequences go back through the model as often as on six."""
    calls = []
    for copies in (1, 50):
        model, tokens = untrained(student, rng)
        many = tokens.repeat(copies, 1)
        with watched(student, kernels=False) as seen:
            student.train_counter(model, many, many + 1, 2)
        calls.append(sum(n for name, n in seen.counts.items() if name.endswith(".backward")))
    return often(calls[0] == calls[1])


@probe("writes")
def examples_afterwards(student, rng):
    """Which sequences and counts are others after a step of training."""
    model, _ = untrained(student, rng)
    examples = draw(rng, 6), rng.randint(0, 7, 6, 5)  # sequences, and any counts
    copies = [each.clone() for each in examples]
    found = written(student, student.train_counter, model, *copies, 1)
    return [new != old for new, old in zip(found, examples)]


@probe(BY_HAND)
def dtype_by_hand(student, rng):
    """The dtype of what a float64 model gives after set_weights."""
    model = student.CountingTransformer(4, 7, 5).to(torch.float64)
    student.set_weights(model)
    return often(float(model(draw(rng, 3)).dtype == torch.float64))


@probe(TRAINING)
def taught_zeros(student, rng):
    """Whether counts that are all 0 are learned in eighty steps."""
    model, tokens = untrained(student, rng)
    with seeded(student, 1):
        student.train_counter(model, tokens, tokens * 0, 80)
    return (model(tokens).argmax(dim=-1) == 0).double().mean(1) > 0.9


@probe(REPORTS)
def reported_steps(student, rng):
    """How often each number from 0 to 11 is reported while there are ten steps."""
    model, tokens = untrained(student, rng)
    with seeded(student, 1):
        train = functools.partial(student.train_counter, model, tokens, tokens + 2, 10)
        return steps_reported(student, 10, train)
