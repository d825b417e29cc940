"""Hidden tests, which decide the points."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_depends,
    assert_dtype,
    assert_reaches,
    assert_refused,
    assert_refused_in_both_modes,
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

VOCAB, LENGTH, D_MODEL = 5, 6, 32
STEPS, N_SEQUENCES = 800, 4000
SIZES = 4, 7, 6  # vocab, length and d_model of a small model
SHARE = 0.99  # of new tokens that a trained model counts right


def draw(rng, n, vocab=VOCAB, length=LENGTH):
    """Return sequences, of which some use few of the tokens, so that all counts occur."""
    used = rng.randint(1, vocab + 1, n, 1)  # (n, 1) different tokens
    places = (rng.rand(n, length) * used).long()  # (n, length)
    names = rng.rand(n, vocab).argsort(dim=-1)  # (n, vocab), in an order of its own
    return names.gather(1, places)  # (n, length)


def counted(tokens):
    """Return how often each token occurs in its sequence."""
    return (tokens.unsqueeze(-1) == tokens.unsqueeze(-2)).sum(dim=-1)  # (batch, n_tokens)


def share_of_right(model, tokens, counts):
    """Return the share of tokens whose largest logit is that of the count."""
    logits = in_float64(output_of(model, tokens))
    expect(logits.shape[:2] == tokens.shape, f"the logits have the shape {tuple(logits.shape)}")
    return (logits.argmax(dim=-1) == counts).double().mean().item()


def small(student, state):
    """Return the student's small model with given parameters, as far as it has them."""
    return load_parameters(student.CountingTransformer(*SIZES), state)


def state_of(reference, rng):
    """Return random parameters of a small model."""
    model = reference.CountingTransformer(*SIZES)
    return {name: rng.randn(*each.shape) * 0.5 + 0.1 for name, each in model.named_parameters()}


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """Attention is written by your own code.

    Guards: the calls that the exercise forbids.
    """
    tokens = draw(rng, 2, 4, 5)
    assert_written_by_hand(student, lambda: student.CountingTransformer(*SIZES)(tokens))


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_parameters(student, reference, rng):
    """The parameters have the names and shapes of the task."""
    twins(student.CountingTransformer, reference.CountingTransformer, *SIZES, rng=rng)


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_logits(student, reference, rng):
    """The logits are those of one block over BOS and the tokens."""
    state = state_of(reference, rng)
    theirs, ours = (
        small(student, state),
        load_parameters(reference.CountingTransformer(*SIZES), state),
    )
    for n_tokens in (5, 7, 1):
        tokens = draw(rng, 3, 4, n_tokens)
        for training in (False, True):
            logits = in_float64(output_of(theirs.train(training), tokens))
            assert_close(logits, output_of(ours, tokens), f"the logits for {n_tokens} tokens")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_gradients(student, reference, rng):
    """Gradients reach all parameters."""
    state = state_of(reference, rng)
    theirs, ours = (
        small(student, state),
        load_parameters(reference.CountingTransformer(*SIZES), state),
    )
    assert_slopes(student, theirs, ours, {"tokens": draw(rng, 3, 4, 5)}, rng=rng)


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand")
def test_any_input(student, reference, rng):
    """Single sequences, views and dtypes work; too long sequences are refused; there is no loop."""
    model = small(student, state_of(reference, rng))
    tokens = draw(rng, 3, 4, 5)
    logits = in_float64(assert_unchanged(student, model, tokens, names=["tokens"]))
    assert_depends(logits.flatten(0, 1))
    alone = in_float64(output_of(model, tokens[1:2]))
    assert_same(alone, logits[1:2], "the logits of one sequence", shape=(1, 5, 8))
    view = in_float64(output_of(model, tokens.T.contiguous().T))
    assert_same(view, logits, "the logits for a transposed view", shape=(3, 5, 8))
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        other = student.CountingTransformer(*SIZES).to(dtype)
        assert_dtype(output_of(other, tokens), dtype, f"the output of a model in {dtype}")
    longer = draw(rng, 2, 4, 8)
    assert_refused_in_both_modes(student, model, longer, "a model of length 7 for 8 tokens")

    def called(n=3, n_tokens=5):
        fresh = draw(rng, n, 4, n_tokens)
        return lambda: student.CountingTransformer(SIZES[0], n_tokens, *SIZES[2:])(fresh)

    grown = {"sequences": {"n": (9, 19)}, "tokens": {"n_tokens": (14, 29)}}
    assert_vectorised(student, called, grown)


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_set_weights(student, reference, rng):
    """With weights by hand, every token of every sequence is counted right."""
    sizes = (4, 7, 5), (9, 20, 13), (1, 4, 2), (3, 1, 9), (2, 20, 3), (2, 20, 300)
    for vocab, length, d_model in sizes:
        model = student.CountingTransformer(vocab, length, d_model)
        student.set_weights(model)
        ours = reference.CountingTransformer(vocab, length, d_model)
        for n_tokens in {1, length // 2 or 1, length}:
            tokens = draw(rng, 60, vocab, n_tokens)
            assert_counts(model, ours, tokens, f"for vocab {vocab} and length {length}")
        expect(
            all(parameter.requires_grad for parameter in model.parameters()),
            "after set_weights, parameters can no longer be trained",
        )
    model = student.CountingTransformer(4, 7, 5).to(torch.float64)
    student.set_weights(model)
    tokens = draw(rng, 3, 4, 7)
    assert_dtype(
        output_of(model, tokens), torch.float64, "after set_weights, a float64 model's output"
    )
    call = lambda: student.set_weights(student.CountingTransformer(4, 7, 4))  # noqa: E731
    assert_refused(student, call, "set_weights with vocab 4 and d_model 4")


def assert_counts(model, ours, tokens, what):
    """Check that the weights count, in the student's model or in the reference's."""
    share = share_of_right(model, tokens, counted(tokens))
    if share < 1:
        # A mistake in the model has cost its points already.
        load_parameters(ours, {name: p.detach() for name, p in model.named_parameters()})
        own = share_of_right(ours, tokens, counted(tokens))
        expect(own == 1, f"{share:.0%} of the tokens are counted right {what}")


@pytest.mark.points(1)
@pytest.mark.needs("test_written_by_hand", "test_logits")
def test_train_counter(student, rng):
    """train_counter makes as many steps as asked, reports each, and learns what `counts` says."""
    tokens = draw(rng, 300)
    names = tokens + 1  # what the model is to say of each token: nothing that a count gives

    def train(model, report):
        student.train_counter(model, tokens, names, 150, report=report)

    run = trained(student, "names", lambda: student.CountingTransformer(VOCAB, LENGTH, 16), train)
    share = share_of_right(run.module, tokens, names)
    expect(
        share > 0.95, f"{share:.0%} of the labels that were given in place of counts are learned"
    )
    steps = [step for step, _ in run.losses]
    expect(steps == [*range(1, 151)], "not every step is reported once, from 1 to `steps`")
    first = run.losses[0][1]
    expect(0.8 < first < 8, f"the first loss is {first:.3g}, which is not a mean over all tokens")
    model = student.CountingTransformer(*SIZES)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    few = draw(rng, 4, 4, 5)
    student.train_counter(model, few, counted(few), 0)
    for name, parameter in model.named_parameters():
        assert_same(parameter.detach(), before[name], f"{name} after 0 steps")

    student.train_counter(model, few, torch.zeros_like(few), 40)  # a count like any other
    share = share_of_right(model, few, torch.zeros_like(few))
    expect(share > 0.95, f"if all counts are 0, {share:.0%} of the tokens are learned")

    def unnamed(tokens, counts):
        student.train_counter(model, tokens, counts, 2)

    assert_unchanged(student, unnamed, few, counted(few), names=["sequences", "counts"])


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand", "test_logits", "test_train_counter")
def test_trained(student, rng):
    """After training, at least 99 of 100 tokens of new sequences are counted right.

    Guards: what only a whole training shows, such as one that stops to learn too early.
    """
    tokens, new = draw(rng, N_SEQUENCES), draw(rng, 1000)
    counts = counted(tokens)

    def make():
        return student.CountingTransformer(VOCAB, LENGTH, D_MODEL)

    def train(model, report):
        student.train_counter(model, tokens, counts, STEPS, report=report)

    for name in ("counting", "counting, again", "counting, once more"):
        run = trained(student, name, make, train)
        share = share_of_right(run.module, new, counted(new))
        if share >= SHARE:  # from some starts a right training gets stuck: one in fifteen
            break
    what = "the share of tokens in new sequences that are counted right"
    assert_reaches(run, what, share, at_least=SHARE)
    model = make()
    student.train_counter(model, tokens, counts, 1)
    share = share_of_right(model, new, counted(new))
    expect(share < 0.9, "one step is enough to count: the weights do not come from training")
