"""Public tests of a tiny Llama, which students can read and run."""

from pathlib import Path

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    parameter_shapes,
    raises,
    trained,
)

pytestmark = pytest.mark.needs("test_by_hand")

SIZES = (5, 4, 2, 1, 2, 8, 0.0)
NOTES = (288, 64, 4, 2, 2, 64, 0.1)  # the model that is trained on the notes
# The notes stand beside this file.
HERE = Path(__file__)
BESIDE = HERE.with_name("text.txt"), HERE.with_suffix(".txt")
TEXT = next(path for path in BESIDE if path.is_file()).read_text("utf-8").encode()


def wave(*shape, start=0):
    """Return the sine of start, start + 1, ... as a tensor of this shape."""
    n = int(torch.tensor(shape).prod())
    return (torch.arange(n) + start).double().sin().view(shape)


def worked(student):
    """Return the model of the worked example."""
    shapes = sorted(parameter_shapes(student.TinyLlama(*SIZES)).items())
    state = {name: wave(*shape, start=100 * i) for i, (name, shape) in enumerate(shapes)}
    return load_parameters(student.TinyLlama(*SIZES), state)


@pytest.mark.points(0)
def test_by_hand(student):
    """The model is made of your own parts, not of torch's Transformer."""
    ids = torch.tensor([[0, 1, 2]])
    assert_written_by_hand(student, lambda: output_of(student.TinyLlama(*SIZES), ids))


@pytest.mark.points(11)
def test_worked_example(student):
    """The logits and the texts of the worked example."""
    logits, caches = output_of(worked(student), torch.tensor([[0, 1, 2]]))
    expected = torch.tensor([0.1863, 0.2541, -0.5185, 0.4237, -0.0354], dtype=torch.float64)
    assert_close(logits[0, 2], expected, "the last logits", atol=1e-3)
    expect(len(caches) == 2, f"there are {len(caches)} caches, where each of 2 blocks has one")
    uniforms, prompt = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9]), torch.tensor([4])
    for temperature, text in ((0.0, [4, 2, 1, 0, 1, 0]), (1.0, [4, 0, 1, 2, 3, 4])):
        found = student.continue_text(worked(student).eval(), prompt, uniforms, temperature)
        assert_close(found, torch.tensor(text), f"the text at temperature {temperature}")


@pytest.mark.points(6)
def test_parts(student):
    """The model has the parameters of the statement, and no others."""
    found = parameter_shapes(student.TinyLlama(*SIZES))
    wanted = {"token_embedding.weight": (5, 4), "norm.gamma": (4,)}
    others = [name for name in found if name not in wanted and not name.startswith("blocks.")]
    expect(not others, f"these parameters are not expected: {', '.join(others)}")
    for name, shape in wanted.items():
        expect(found.get(name) == shape, f"{name} should have the shape {shape}")
    for layer in range(2):
        shape = found.get(f"blocks.{layer}.feed_forward.W_up.weight")
        expect(shape == (16, 4), f"block {layer} has no feed-forward network of 16 units")


@pytest.mark.points(9)
def test_chunks(student):
    """The logits of chunks are those of the whole sequence; too many tokens are refused."""
    model, tokens = worked(student), torch.tensor([[3, 1, 4, 1, 0, 2], [2, 2, 0, 3, 1, 4]])
    whole, _ = output_of(model, tokens)
    found, caches = [], None
    for chunk in tokens.split([3, 1, 2], dim=1):
        logits, caches = output_of(model, chunk.clone(), caches)
        found.append(logits)
    assert_close(torch.cat(found, dim=1), whole, "the logits of three chunks", atol=1e-4)
    with raises(student, "ValueError", "AssertionError", "RuntimeError", "IndexError"):
        output_of(model, tokens[:, :3].clone(), caches)


@pytest.mark.points(8)
def test_bits_of_zeros(student):
    """If all tokens are equally likely, each costs the logarithm of their number."""
    model = student.TinyLlama(257, 4, 2, 1, 1, 8, 0.0)
    zeros = {name: torch.zeros(shape) for name, shape in parameter_shapes(model).items()}
    model = load_parameters(model, zeros).eval()
    for data, expected in ((b"abab", 2.0014), (b"ab" * 20 + b"ccc", 8.0056 * 22 / 43)):
        bits = student.bits_per_byte(model, data, [(97, 98)])
        expect(abs(bits - expected) < 1e-3, f"{data} takes {bits:.4f} bits, not {expected:.4f}")


@pytest.mark.points(8)
def test_steps(student):
    """Sixty steps on 0 1 2 3 4 0 1 ... teach all parameters what comes next."""
    model = student.TinyLlama(*SIZES)
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    student.train_llama(model, torch.arange(40) % 5, 60, peak=0.02)
    for name, each in model.named_parameters():
        expect(not torch.equal(each, before[name]), f"training does not change {name}")
    expect(model.training is False, "the model is in training mode after train_llama")
    logits, _ = output_of(model, torch.arange(5)[None])
    assert_close(logits[0].argmax(-1), (torch.arange(5) + 1) % 5, "what comes after 0 to 4")


@pytest.mark.points(8)
@pytest.mark.needs("test_worked_example", "test_bits_of_zeros", "test_steps")
def test_notes(student):
    """After 500 steps on nine tenths of the notes, the rest takes at most 1.35 bits per byte."""
    cut = len(TEXT) * 9 // 10
    merges, tokens = student.learned_tokens(TEXT[:cut], 32)

    def train(model, report):
        student.train_llama(model, tokens, 500, report=report)

    run = trained(student, "notes", lambda: student.TinyLlama(*NOTES), train)
    bits = student.bits_per_byte(run.module, TEXT[cut:], merges)
    expect(bits <= 1.35, f"the last tenth takes {bits:.2f} bits per byte, where 1.35 is asked for")
