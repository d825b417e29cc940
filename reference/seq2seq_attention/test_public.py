"""Public tests, which students can read and run: the examples of the statement, and a training."""

import pytest
import torch
import torch.nn.functional as F

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    parameter_shapes,
    trained,
)

SIZES = (4, 2, 3, 5, 2)  # vocab, d_embed, d_decoder, d_encoder, d_hidden
SHAPES = {
    "embedding.weight": (4, 2),
    "alignment.W_state.weight": (2, 3),
    "alignment.W_source.weight": (2, 5),
    "alignment.v.weight": (1, 2),
    "cell.weight_ih": (9, 7),
    "cell.weight_hh": (9, 3),
    "cell.bias_ih": (9,),
    "cell.bias_hh": (9,),
    "out.weight": (4, 10),
    "out.bias": (4,),
}
LOGITS = [
    [-1.4182, -0.8182, -0.2182, 0.3817],
    [-4.2698, -1.4124, 1.4450, 4.3024],
    [-3.1333, -1.3552, 0.4228, 2.2009],
]
ALIGNMENT = [[0.2879, 0.3289, 0.3832], [0.2799, 0.3352, 0.3849], [0.3021, 0.3369, 0.3611]]


def with_weights(student):
    """Return a decoder whose parameters run from -1 to 1."""
    state = {
        name: torch.linspace(-1, 1, shape.numel(), dtype=torch.float64).view(shape)
        for name, shape in ((name, torch.Size(sizes)) for name, sizes in SHAPES.items())
    }
    return load_parameters(student.AttentionDecoder(*SIZES), state)


def example():
    """Return targets, the first state and the encoder states of the statement's example."""
    targets = torch.tensor([[3, 1, 2]])  # (batch, n_target)
    state = torch.tensor([[1.0, 0.0, -1.0]], dtype=torch.float64)  # (batch, d_decoder)
    return targets, state, torch.eye(3, 5, dtype=torch.float64).unsqueeze(0)


@pytest.mark.points(0)
def test_written_by_hand(student):
    """The work is done by your own code."""
    assert_written_by_hand(student, lambda: with_weights(student)(*example()))


@pytest.mark.points(3)
@pytest.mark.needs("test_written_by_hand")
def test_parameters(student):
    """The decoder has the layers of the statement, and no others."""
    found = parameter_shapes(student.AttentionDecoder(*SIZES))
    expect(found == SHAPES, f"the parameters are {found}, not {SHAPES}")


@pytest.mark.points(5)
@pytest.mark.needs("test_written_by_hand")
def test_alignment_network(student):
    """The scores of the example come out."""
    state = {
        "W_state.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        "W_source.weight": torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
        "v.weight": torch.tensor([[2.0, 1.0]]),
    }
    network = load_parameters(student.AlignmentNetwork(2, 3, 2), state)
    encoder_states = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]]])
    scores = output_of(network, torch.tensor([[0.5, -1.0]]).double(), encoder_states.double())
    expected = torch.tensor([[1.0487, 1.6858, -0.9242]], dtype=torch.float64)
    assert_close(scores, expected, "the scores", atol=1e-4)


@pytest.mark.points(8)
@pytest.mark.needs("test_written_by_hand")
def test_teacher_forcing(student):
    """The alignment and the logits of the example come out."""
    logits, alignment = output_of(with_weights(student), *example())
    expected = torch.tensor([ALIGNMENT], dtype=torch.float64)
    assert_close(alignment, expected, "the alignment", atol=1e-4)
    assert_close(logits, torch.tensor([LOGITS], dtype=torch.float64), "the logits", atol=1e-4)


@pytest.mark.points(2)
@pytest.mark.needs("test_written_by_hand")
def test_free_running(student):
    """Without teacher forcing, the last step of the example gets the token 3."""
    logits, _ = output_of(with_weights(student), *example(), None, False)
    last = torch.tensor([[-4.6772, -1.5963, 1.4846, 4.5656]], dtype=torch.float64)
    assert_close(logits[:, 2], last, "the logits of the last step", atol=1e-4)


@pytest.mark.points(5)
@pytest.mark.needs("test_written_by_hand")
def test_lengths(student):
    """With a length of 2, the third place of the source is not attended to."""
    lens = torch.tensor([2])  # (batch,)
    _, alignment = output_of(with_weights(student), *example(), lens)
    expect((alignment[..., 2] == 0).all(), "the third place has a weight")
    total = alignment.sum(dim=-1)  # (batch, n_target)
    assert_close(total, torch.ones_like(total), "the sum of the weights")


def draw(rng, batch=2, n_source=5):
    """Return random targets, a first state and encoder states, for decoders of these sizes."""
    targets = rng.randint(1, 4, batch, 3)  # (batch, n_target)
    state = rng.randn(batch, 3).float()  # (batch, d_decoder)
    return targets, state, rng.randn(batch, n_source, 5).float()


@pytest.mark.points(0)
@pytest.mark.needs("test_teacher_forcing", "test_free_running")
def test_whole_tensors(student, rng):
    """No Python loop runs over the batch or the source."""

    def called(**sizes):
        inputs = draw(rng, **sizes)

        def call():
            decoder = student.AttentionDecoder(*SIZES)
            return [output_of(decoder, *inputs, None, forced) for forced in (True, False)]

        return call

    larger = {"batch items": {"batch": (9, 19)}, "places of the source": {"n_source": (14, 29)}}
    assert_vectorised(student, called, larger)


@pytest.mark.points(0)
@pytest.mark.needs("test_teacher_forcing")
def test_dtype(student, rng):
    """The decoder works in bfloat16."""
    targets, *states = draw(rng)
    low = student.AttentionDecoder(*SIZES).to(torch.bfloat16)
    found = output_of(low, targets, *(each.to(torch.bfloat16) for each in states))
    for name, output in zip(("logits", "alignment"), found):
        assert_dtype(output, torch.bfloat16, f"for bfloat16, {name}")


@pytest.mark.points(0)
@pytest.mark.needs("test_teacher_forcing")
def test_losses(student):
    """train_decoder returns and reports the mean cross entropy of each step, and lowers it."""
    targets, _, encoder_states = example()
    examples = encoder_states.float().repeat(40, 1, 1), targets.repeat(40, 1)  # all of them alike
    decoder = with_weights(student).to(torch.float32)
    logits, _ = output_of(decoder, targets, torch.zeros(1, 3), examples[0][:1])
    first = F.cross_entropy(logits[0], targets[0])
    losses = student.train_decoder(decoder, *examples, 12)
    expect(len(losses) == 12, f"12 steps return {len(losses)} losses")
    expect(all(isinstance(loss, float) for loss in losses), "the losses are not floats")
    assert_close(torch.tensor(losses[0]), first, "the loss of the first step", rtol=1e-3)
    expect(losses[-1] < losses[0], f"12 steps change the loss from {losses[0]} to {losses[-1]}")

    returned: list[float] = []

    def train(decoder, report):
        returned.extend(student.train_decoder(decoder, *examples, 4, report))

    run = trained(student, "four steps", lambda: student.AttentionDecoder(*SIZES), train)
    numbers = [number for number, _ in run.losses]
    expect(numbers == [1, 2, 3, 4], f"four steps are reported as {numbers}")
    if returned:  # the checks of one copy keep a training
        reported = torch.tensor([loss for _, loss in run.losses])
        assert_close(reported, torch.tensor(returned), "the losses that are reported", rtol=1e-3)


def encode(tokens):
    """Return encoder states: each token as a one-hot vector, with sines and cosines of its place.

    tokens   (batch, n_source)
    returns  (batch, n_source, 11 + 8)
    """
    rates = 10000.0 ** (-torch.arange(0, 8, 2) / 8)  # (4,)
    angles = torch.arange(tokens.shape[1]).unsqueeze(1) * rates  # (n_source, 4)
    places = torch.cat([angles.sin(), angles.cos()], dim=1)  # (n_source, 8)
    return torch.cat([F.one_hot(tokens, 11), places.expand(len(tokens), -1, -1)], dim=2)


@pytest.mark.points(8)
@pytest.mark.needs("test_teacher_forcing", "test_free_running")
def test_reversal(student, rng):
    """After 300 steps of training, fresh sequences come out backwards, and are attended to so."""
    sources = rng.randint(1, 11, 512, 6)  # (n_examples, n_source)

    def train(decoder, report):
        student.train_decoder(decoder, encode(sources), sources.flip(1), 300, report)

    def make():
        return student.AttentionDecoder(11, 8, 32, 19, 32)

    decoder = trained(student, "reversing", make, train).module
    fresh = rng.randint(1, 11, 200, 6)  # (batch, n_source)
    inputs = torch.zeros_like(fresh), torch.zeros(200, 32), encode(fresh)
    logits, alignment = output_of(decoder, *inputs, None, False)
    right = (logits.argmax(dim=-1) == fresh.flip(1)).all(dim=1).double().mean().item()
    expect(right >= 0.98, f"{right:.1%} of fresh sequences are right, where 98 % are asked for")
    highest = alignment.argmax(dim=-1) == torch.arange(5, -1, -1)  # (batch, n_target)
    share = highest.double().mean().item()
    expect(share >= 0.98, f"{share:.1%} of the steps attend most to the token that they write")
