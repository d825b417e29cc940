"""The checks of a transformer that counts, and their cases."""

import functools

import pytest
import torch

from grader.authors import (
    ACCEPTED,
    Aspect,
    Check,
    assert_reaches,
    assert_vectorised,
    assert_written_by_hand,
    built,
    changed,
    expect,
    gradient,
    in_float64,
    often,
    output,
    output_of,
    parameters,
    refused,
    seeded,
    steps_reported,
    trained,
    turned,
    watched,
    written,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

AXES = ("sequence", "token", "count")  # of an output, in the singular
BY_HAND = Aspect("by hand", "what `set_weights` makes of a model")
REPORTS = Aspect("reports", "what `train_counter` reports")
TRAINING = Aspect("steps", "what a few steps of `train_counter` do")
LAYERS = ("embedding", "W_query", "W_key", "W_value", "linear1", "linear2")
SIZES = 4, 7, 6  # vocab, length and d_model
MODEL = built("CountingTransformer", *SIZES, layers=LAYERS)


def tokens(n, length=5, vocab=4):
    """Return the recipe of sequences, (n, length)."""
    return lambda rng: rng.randint(0, vocab, n, length)


def draw(rng, n, vocab, length):
    """Return sequences, of which some use few of the tokens, so that all counts occur."""
    used = rng.randint(1, vocab + 1, n, 1)  # (n, 1) different tokens
    places = (rng.rand(n, length) * used).long()  # (n, length)
    names = rng.rand(n, vocab).argsort(dim=-1)  # (n, vocab), in an order of its own
    return names.gather(1, places)  # (n, length)


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Attention is written by your own code."""
    given = tokens(2)(rng)
    assert_written_by_hand(student, lambda: student.CountingTransformer(*SIZES)(given))


test_parameters = Check(
    "The parameters have the names and shapes of the task.", points=3, about="layers"
)
test_parameters.case("The sizes of all parameters.", parameters("CountingTransformer", *SIZES))
test_parameters.case(
    "The sizes in a model for longer sequences.",
    parameters("CountingTransformer", 3, 12, 5),
    hidden=True,
)


test_logits = Check("The logits are those of one block over BOS and the tokens.", points=6)
logits = test_logits.case
logits("Three sequences of five tokens.", output(MODEL, tokens(3)))
logits("Sequences as long as the model allows.", output(MODEL, tokens(3, 7)))
logits("As many sequences as tokens.", output(MODEL, tokens(5)), about="square")
logits("One token.", output(MODEL, tokens(3, 1)), about="single")
logits(
    "More features.",
    output(built("CountingTransformer", 6, 4, 9, layers=LAYERS), tokens(2, 3, 6)),
    hidden=True,
)


@logits(about="training")
def in_training(student, rng):
    """Training mode."""
    with seeded(student, 1):
        return MODEL(student, rng).train()(tokens(3)(rng))


test_gradients = Check("Gradients reach all parameters.", points=3, about="gradient")
test_gradients.case("The gradients of the parameters.", gradient(MODEL, tokens(3)))
test_gradients.case(
    "The gradients for longer sequences.", gradient(MODEL, tokens(2, 7)), hidden=True
)


test_any_input = Check(
    "Single sequences, views and dtypes work; too long sequences are refused; there is no loop.",
    points=3,
)
anything = test_any_input.case
anything("One sequence.", output(MODEL, tokens(1)), about="single")
anything("A transposed view.", output(MODEL, turned(tokens(3))), about="views")
anything(
    "A model in float32.",
    output(built("CountingTransformer", *SIZES, dtype=torch.float32, layers=LAYERS), tokens(3)),
    about="dtype",
    within=(1e-3, 1e-3),
)
anything("Which tokens have changed.", changed(MODEL, tokens(3)), about="writes")
for training in (False, True):
    anything(
        f"More tokens than the model allows{', in training' * training}.",
        refused(built("CountingTransformer", *SIZES, training=training), tokens(2, 8)),
        about="refusals",
    )


@anything(about="dtype")
def half_precision(student, rng):
    """A model in bfloat16, of which only the shape and the dtype of the output count."""
    return student.CountingTransformer(*SIZES).to(torch.bfloat16)(tokens(3)(rng)) * 0


@anything(tells=False, hidden=True)
def growth(student, rng):
    """The work of a call does not grow with the number of sequences or tokens."""

    def called(n=3, n_tokens=5):
        given = tokens(n, n_tokens)(rng)
        return lambda: student.CountingTransformer(4, n_tokens, 6)(given)

    grown = {"sequences": {"n": (9, 19)}, "tokens": {"n_tokens": (14, 29)}}
    assert_vectorised(student, called, grown)


test_set_weights = Check(
    "With weights by hand, every token of every sequence is counted right.",
    points=7,
    about=BY_HAND,
)
by_hand = test_set_weights.case


def counts_by_hand(*sizes, lengths):
    """Return a case: the counts in sequences of some lengths, with weights by hand."""

    def ask(student, rng):
        model = student.CountingTransformer(*sizes)
        student.set_weights(model)
        drawn = (draw(rng, 30, sizes[0], length) for length in lengths)
        return [model(each).argmax(dim=-1) for each in drawn]

    return ask


for vocab, length, d_model in ((4, 7, 5), (3, 12, 8), (2, 9, 300)):
    by_hand(
        f"The counts with weights by hand for vocab {vocab} and d_model {d_model}.",
        counts_by_hand(vocab, length, d_model, lengths=(length, length // 2)),
    )
for vocab, length, d_model in ((9, 20, 13), (1, 4, 2), (3, 1, 9)):
    by_hand(
        f"The counts for vocab {vocab} and length {length}.",
        counts_by_hand(vocab, length, d_model, lengths=(1, length)),
        hidden=True,
    )
by_hand(
    "Weights by hand for a d_model without a place for BOS.",
    lambda student, rng: student.set_weights(student.CountingTransformer(4, 7, 4)) or ACCEPTED,
    about="refusals",
)


@by_hand
def by_hand_long(student, rng):
    """The counts of twenty equal tokens or fewer, with weights by hand for 3 and 300 features."""
    rows = (torch.arange(20) >= torch.arange(20).view(20, 1)).long()  # (20, n_tokens)
    found = []
    for d_model in (3, 300):
        model = student.CountingTransformer(2, 20, d_model)
        student.set_weights(model)
        found.append(model(rows).argmax(dim=-1))
    return found


@by_hand
def still_trainable(student, rng):
    """Which parameters can be trained after set_weights."""
    model = student.CountingTransformer(4, 7, 5)
    student.set_weights(model)
    return [often(float(p.requires_grad)) for p in model.parameters()]


@by_hand
def dtype_by_hand(student, rng):
    """The dtype of what a float64 model gives after set_weights."""
    model = student.CountingTransformer(4, 7, 5).to(torch.float64)
    student.set_weights(model)
    return often(float(model(tokens(3)(rng)).dtype == torch.float64))


test_train_counter = Check(
    "train_counter makes as many steps as asked, reports each, and learns what `counts` says.",
    points=3,
    about=TRAINING,
)
steps = test_train_counter.case
SMALL = built("CountingTransformer", *SIZES, dtype=torch.float32, layers=LAYERS)


def untrained(student, rng):
    """Return a model, and six equal sequences of different tokens: any batch is the same."""
    return SMALL(student, rng), rng.permutation(4).repeat(6, 1)


def said_after(student, model, sequences, counts, n_steps):
    """Return what a model says of sequences after a training."""
    with seeded(student, 1):
        student.train_counter(model, sequences, counts, n_steps)
    return model(sequences).argmax(dim=-1)


def gains(student, model, sequences, counts):
    """Return how much likelier a training makes each count, (n, n_tokens, length + 1).

    Which count gains most does not depend on the optimizer and its rate.
    """
    before = model(sequences).log_softmax(dim=-1)
    with seeded(student, 1):
        student.train_counter(model, sequences, counts, 100)
    return (model(sequences).log_softmax(dim=-1) - before).detach()


@steps
def taught_numbers(student, rng):
    """Whether numbers of tokens, from 1, given in place of counts, are what gets likelier."""
    sequences = tokens(40, 4)(rng)
    found = gains(student, SMALL(student, rng), sequences, sequences + 1)
    of_shifts = [found.gather(2, (sequences + n).unsqueeze(2)).mean() for n in range(4)]
    return often(torch.stack(of_shifts).argmax() == 1)


@steps
def taught_zeros(student, rng):
    """Whether counts that are all 0 are what gets likelier, for each of six sequences."""
    model, sequences = untrained(student, rng)
    return gains(student, model, sequences, sequences * 0).mean(1).argmax(-1) == 0


@steps(decides=False)
def learned(student, rng):
    """What a model says of one sequence after eighty steps."""
    model, sequences = untrained(student, rng)
    return said_after(student, model, sequences, sequences + 2, 80)


@steps(decides=False)
def learned_of_pairs(student, rng):
    """What a model says of a sequence of two tokens, each twice, after eighty steps."""
    model, sequences = untrained(student, rng)
    sequences = sequences[:, [0, 1, 0, 1]]  # (6, 4): both are taught as often
    return said_after(student, model, sequences, sequences + 3, 80)


@steps(decides=False)
def after_another_call(student, rng):
    """Which parameters a step moves as it does in a model that was not trained before."""
    model, sequences = untrained(student, rng)
    said_after(student, model, sequences, sequences + 2, 3)
    other = SMALL(student, rng)
    other.load_state_dict(model.state_dict())
    for each in (model, other):
        said_after(student, each, sequences, 5 - sequences, 1)
    pairs = zip(model.named_parameters(), other.parameters())
    return {name: often(float(torch.allclose(one, two))) for (name, one), two in pairs}


def unchanged_by(n_steps):
    """Return a case: which parameters some steps leave as they are."""

    def ask(student, rng):
        model, sequences = untrained(student, rng)
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        said_after(student, model, sequences, sequences + 1, n_steps)
        pairs = model.named_parameters()
        return {name: often(float(torch.equal(p.detach(), before[name]))) for name, p in pairs}

    return ask


steps("Which parameters no step changes.", unchanged_by(0))
# Right code may make its last step with a learning rate of 0.
steps("Which parameters three steps do not change.", unchanged_by(3), decides=False)


@steps
def one_step(student, rng):
    """Whether one step computes more than none."""
    operations = []
    for n_steps in (0, 1):
        model, sequences = untrained(student, rng)
        with watched(student, kernels=False) as seen:
            student.train_counter(model, sequences, sequences + 1, n_steps)
        operations.append(seen.operations)
    return often(operations[1] > operations[0])


@steps
def updates_of_many(student, rng):
    """Whether two steps on 300 sequences go back through the model as often as on six."""
    calls = []
    for copies in (1, 50):
        model, sequences = untrained(student, rng)
        many = sequences.repeat(copies, 1)
        with watched(student, kernels=False) as seen:
            student.train_counter(model, many, many + 1, 2)
        calls.append(sum(n for name, n in seen.counts.items() if name.endswith(".backward")))
    return often(calls[0] == calls[1])


@steps(about=REPORTS)
def reported_steps(student, rng):
    """How often each number from 0 to 11 is reported while there are ten steps."""
    model, sequences = untrained(student, rng)
    with seeded(student, 1):
        train = functools.partial(student.train_counter, model, sequences, sequences + 2, 10)
        return steps_reported(student, 10, train)


@steps(about="writes")
def examples_afterwards(student, rng):
    """Which sequences and counts are others after a step of training."""
    model, _ = untrained(student, rng)
    examples = tokens(6)(rng), rng.randint(0, 7, 6, 5)  # sequences, and any counts
    copies = [each.clone() for each in examples]
    found = written(student, student.train_counter, model, *copies, 1)
    return [new != old for new, old in zip(found, examples)]


@steps
def size_of_the_loss(student, rng):
    """Whether the first loss is as large as a mean over all tokens."""
    sequences = draw(rng, 30, 5, 4)

    def train(model, report):
        student.train_counter(model, sequences, sequences + 1, 2, report=report)

    run = trained(student, "two steps", lambda: student.CountingTransformer(5, 6, 16), train)
    return often(bool(0.3 < run.losses[0][1] < 20))


@steps(tells=False, hidden=True)
def names(student, rng):
    """Names of tokens, given in place of counts, are learned in 150 steps, each reported once."""
    sequences = draw(rng, 300, 5, 4)

    def train(model, report):
        student.train_counter(model, sequences, sequences + 1, 150, report=report)

    run = trained(student, "names", lambda: student.CountingTransformer(5, 6, 16), train)
    said = run.module(sequences).argmax(dim=-1)
    share = (said == sequences + 1).double().mean().item()
    expect(share > 0.95, f"{share:.0%} of the names are learned")
    first = run.losses[0][1]
    expect(0.8 < first < 8, f"the first loss is {first:.3g}, which is not a mean over all tokens")
    reported = [step for step, _ in run.losses]
    expect(reported == [*range(1, 151)], "not every step is reported once, from 1 to `steps`")


@pytest.mark.points(6)
@pytest.mark.needs("test_logits", "test_train_counter")
def test_trained(student, rng):
    """After training, at least 99 of 100 tokens of new sequences are counted right."""

    def counted(sequences):
        return (sequences.unsqueeze(-1) == sequences.unsqueeze(-2)).sum(dim=-1)  # (n, n_tokens)

    sequences, new = draw(rng, 4000, 5, 6), draw(rng, 1000, 5, 6)
    counts = counted(sequences)

    def make():
        return student.CountingTransformer(5, 6, 32)

    def train(model, report):
        student.train_counter(model, sequences, counts, 800, report=report)

    def share_of_right(model):
        said = in_float64(output_of(model, new)).argmax(dim=-1)
        return (said == counted(new)).double().mean().item()

    for name in ("counting", "counting, again", "counting, once more"):
        run = trained(student, name, make, train)
        share = share_of_right(run.module)
        if share >= 0.99:  # from some starts a right training gets stuck: one in fifteen
            break
    what = "the share of tokens in new sequences that are counted right"
    assert_reaches(run, what, share, at_least=0.99)
    model = make()
    student.train_counter(model, sequences, counts, 1)
    share = share_of_right(model)
    expect(share < 0.9, "one step is enough to count: the weights do not come from training")
