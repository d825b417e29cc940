"""Public tests of a tiny GPT, which students can read and run."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_moves,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    output_of,
    parameter_shapes,
    raises,
    trained,
)

pytestmark = pytest.mark.needs("test_by_hand")

SIZES = (11, 12, 3, 2, 7)  # vocab, d_model, num_heads, num_layers, context_length
EXAMPLE = (3, 2, 1, 1, 2, 0.0)
REFUSALS = "ValueError", "AssertionError", "RuntimeError", "IndexError"
# The stories stand beside this file.
HERE = Path(__file__)
BESIDE = HERE.with_name("text.txt"), HERE.with_suffix(".txt")
TEXT = next(path for path in BESIDE if path.is_file()).read_text("utf-8")
CHARACTERS = "\n ',.?abcdefghijklmnoprstuvwxy"  # the token of a character is its place here


def worked(student):
    """Return the model of the worked example."""
    shapes = parameter_shapes(student.TinyGPT(*EXAMPLE)).items()
    state = {name: torch.zeros(shape) + ("gamma" in name) for name, shape in shapes}
    state["token_embedding.weight"] = torch.tensor([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0]])
    state["position_embedding.weight"] = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    state["blocks.0.attention.W_value.weight"] = torch.eye(2)
    state["blocks.0.attention.out_proj.weight"] = 3 * torch.eye(2)
    return load_parameters(student.TinyGPT(*EXAMPLE), state)


def random_model(student, rng):
    """Return a model with random parameters."""
    model = student.TinyGPT(*SIZES, 0.0)
    shapes = parameter_shapes(model).items()
    return load_parameters(model, {name: rng.randn(*shape) * 0.5 for name, shape in shapes})


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """The model is made of your own parts, not of torch's Transformer."""
    tokens = rng.randint(0, 11, 2, 5)
    assert_written_by_hand(student, lambda: output_of(student.TinyGPT(*SIZES, 0.0), tokens))


@pytest.mark.points(8)
def test_worked_example(student):
    """The logits, the loss and the texts of the worked example."""
    model = worked(student)
    expected = torch.tensor([[[1.0, -2.0, 2.0], [-1.0, 2.0, -2.0]]], dtype=torch.float64)
    logits = output_of(model, torch.tensor([[0, 1]]))
    assert_close(logits, expected, "the logits", atol=1e-3)
    loss = student.next_token_loss(model, torch.tensor([[0, 1, 1]])).item()
    expect(abs(loss - 2.1962) < 1e-3, f"the loss is {loss:.4f}, where 2.1962 is expected")
    for prompt, text in (([0], [0, 2, 2, 2]), ([0, 1], [0, 1, 1, 1, 1])):
        found = student.generate(model, torch.tensor([prompt]), 3, 0.0)
        assert_close(found, torch.tensor([text]), f"the text after {prompt}")


@pytest.mark.points(6)
def test_parts(student):
    """The model has the parameters of the statement, and no others."""
    found = parameter_shapes(student.TinyGPT(*SIZES, 0.0))
    wanted = {
        "token_embedding.weight": (11, 12),
        "position_embedding.weight": (7, 12),
        "norm.gamma": (12,),
        "norm.beta": (12,),
    }
    others = [name for name in found if name not in wanted and not name.startswith("blocks.")]
    expect(not others, f"these parameters are not expected: {', '.join(others)}")
    for name, shape in wanted.items():
        expect(found.get(name) == shape, f"{name} should have the shape {shape}")
    for layer in range(2):
        shape = found.get(f"blocks.{layer}.feed_forward.linear1.weight")
        expect(shape == (48, 12), f"block {layer} has no feed-forward network of 48 units")


@pytest.mark.points(8)
def test_agrees_with_torch(student, rng):
    """With the same weights, the logits are those of torch's encoder layers."""
    model, tokens = random_model(student, rng), rng.randint(0, 11, 3, 6)
    state = {name: value.detach() for name, value in model.named_parameters()}
    x = state["token_embedding.weight"][tokens] + state["position_embedding.weight"][:6]
    for layer in range(2):
        block = nn.TransformerEncoderLayer(
            12, 3, 48, 0.0, batch_first=True, norm_first=True, dtype=torch.float64
        )
        block.load_state_dict(torch_names(state, f"blocks.{layer}."))
        mask = torch.ones(6, 6).triu(1).bool()
        x = output_of(block.eval(), x, src_mask=mask)
    x = F.layer_norm(x, (12,), state["norm.gamma"], state["norm.beta"])
    assert_close(output_of(model, tokens), x @ state["token_embedding.weight"].T)


def torch_names(state, prefix):
    """Return the parameters of a block under the names that torch's encoder layer gives them."""
    state = {
        name.removeprefix(prefix): each for name, each in state.items() if name.startswith(prefix)
    }
    projections = [state[f"attention.{name}.weight"] for name in ("W_query", "W_key", "W_value")]
    renamed = {
        "self_attn.in_proj_weight": torch.cat(projections),
        "self_attn.in_proj_bias": torch.zeros(36, dtype=torch.float64),
    }
    for kind in ("weight", "bias"):
        renamed[f"self_attn.out_proj.{kind}"] = state[f"attention.out_proj.{kind}"]
        for n in (1, 2):
            renamed[f"linear{n}.{kind}"] = state[f"feed_forward.linear{n}.{kind}"]
    for n in (1, 2):
        renamed[f"norm{n}.weight"] = state[f"norm{n}.gamma"]
        renamed[f"norm{n}.bias"] = state[f"norm{n}.beta"]
    return renamed


@pytest.mark.points(0)
@pytest.mark.needs("test_parts")
def test_dropout(student):
    """In training, what the embeddings and each block add is dropped once, at the rate."""
    sizes = (13, 12, 2, 2, 4)
    shapes = parameter_shapes(student.TinyGPT(*sizes, 0.0)).items()
    # Ones are added in one place only. The logit of each token but 0 shows one feature.
    for place in (
        "position_embedding.weight",
        "blocks.0.attention.out_proj.bias",
        "blocks.1.feed_forward.linear2.bias",
    ):
        state = {
            name: torch.zeros(shape) + (name in (place, "norm.gamma")) for name, shape in shapes
        }
        state["token_embedding.weight"] = torch.eye(13)[:, 1:]
        model = load_parameters(student.TinyGPT(*sizes, 0.4), state).train()
        features = output_of(model, torch.zeros(250, 1, dtype=torch.long))[:, 0, 1:]
        half = (features.amin(-1, keepdim=True) + features.amax(-1, keepdim=True)) / 2
        assert_dropped(features < half, 0.4, f"features, of those that {place} adds,")


@pytest.mark.points(6)
def test_next_token_loss(student, rng):
    """The loss is the cross-entropy of each next token, given the tokens before it."""
    model, windows = random_model(student, rng), rng.randint(0, 11, 3, 8)
    logits = output_of(model, windows[:, :-1].clone())
    expected = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
    loss = student.next_token_loss(model, windows).detach()
    assert_close(in_float64(loss), expected, "the loss")


@pytest.mark.points(6)
def test_random_windows(student):
    """Windows are pieces of the text, from its first place to its last."""
    text = torch.arange(10) * 10
    windows = student.random_windows(text, 400, 4)
    expect(tuple(windows.shape) == (400, 4), f"the windows have the shape {tuple(windows.shape)}")
    starts = windows[:, :1]
    assert_close(windows, starts + torch.arange(4) * 10, "the windows, from their first tokens on,")
    found = starts.flatten().unique().tolist()
    expect(found == [10 * n for n in range(7)], f"windows begin with {found} alone")
    with raises(student, *REFUSALS):
        student.random_windows(text, 3, 11)


@pytest.mark.points(5)
def test_generate(student, rng):
    """generate draws from the top_k, keeps the mode, and refuses what makes no sense."""
    model, prompt = random_model(student, rng), rng.randint(0, 11, 1, 9)
    logits = output_of(model, prompt[:, -7:].clone())[0, -1]
    many = prompt.repeat(500, 1)
    best = set(logits.topk(3).indices.tolist())
    found = set(student.generate(model.train(), many, 1, 50.0, 3)[:, -1].tolist())
    expect(found == best, f"with top_k=3, the tokens {found} are drawn, where {best} are the best")
    expect(model.training is True, "a model in training mode is in another one after generate")
    found = set(student.generate(model, many, 1, 0.0)[:, -1].tolist())
    expect(found == {logits.argmax().item()}, "at temperature 0, another token than the best comes")
    for options in ((-1.0,), (1.0, 0)):
        with raises(student, *REFUSALS):
            student.generate(model, prompt, 1, *options)


@pytest.mark.points(3)
def test_too_many_tokens(student, rng):
    """More tokens than the context is long are refused."""
    model = student.TinyGPT(*SIZES, 0.0)
    tokens = rng.randint(0, 11, 2, 8)
    output_of(model, tokens[:, :-1].clone())
    with raises(student, *REFUSALS):
        output_of(model, tokens)


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over batch, tokens or windows; devices and views work."""
    model, text = student.TinyGPT(*SIZES, 0.0), rng.randint(0, 11, 40)

    def called(batch=2, n_tokens=3):
        tokens = rng.randint(0, 11, batch, n_tokens)
        return lambda: output_of(student.TinyGPT(*SIZES[:-1], n_tokens + 1, 0.0), tokens)

    def drawn(n_windows=4):
        fresh = rng.randint(0, 11, 40)
        return lambda: student.random_windows(fresh, n_windows, 3)

    more = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (11, 23)}}
    assert_vectorised(student, called, more)
    assert_vectorised(student, drawn, {"windows": {"n_windows": (20, 41)}})
    assert_moves(lambda: student.TinyGPT(*SIZES, 0.5), text[None, :7].clone())
    view = text.view(8, 5).T[:, :4]
    assert_unchanged(student, lambda tokens: output_of(model, tokens), view, names=["tokens"])


@pytest.mark.points(8)
@pytest.mark.needs("test_worked_example", "test_next_token_loss", "test_random_windows")
def test_stories(student):
    """After 500 steps on the stories, the loss on stories that are new is at most 1.2."""

    def train(model, report):
        student.train_gpt(model, encode(TEXT), 500, report=report)

    run = trained(student, "stories", lambda: student.TinyGPT(30, 64, 4, 2, 64, 0.0), train)
    expect(run.losses and run.losses[-1][0] == 500, "report does not hear of step 500")
    windows = encode(NEW).unfold(0, 65, 64).contiguous()
    logits = output_of(run.module, windows[:, :-1].clone())
    loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()).item()
    expect(loss <= 1.2, f"on new stories, the loss is {loss:.2f}, where 1.2 is asked for")


def encode(text):
    """Return a text as tokens, (n_text,)."""
    return torch.tensor([CHARACTERS.index(character) for character in text])


NEW = """\
the duck and the boat

a duck lived on the lake behind the mill.
one day she saw a boat at the side of the lake.
what is that? asked the duck.
it is a boat, said the frog. the miller sits in it.
why does he sit in it? asked the duck. can he not swim?
you may ask, said the frog, and then you will know.
so the duck went to the miller and asked.
i am old, said the miller, and the water is cold.
and from that day on, the duck went along with the boat.

the wolf and the bridge

a wolf came to the bridge, and on the bridge sat a goat.
may i go over? asked the wolf.
wait until noon, said the goat. i look at the fish.
so the wolf sat down and waited until noon.
at noon the goat was still on the bridge.
wait until the evening, said the goat.
so the wolf sat down and looked at the fish as well.
in the evening they went home, and it did not matter.

the letter of the owl

dear friend, the night is long, and the moon is high.
i sit in the old tree and look at the light in the mill.
the fox reads, and the mouse has a bit of bread.
every night the wolf sings, and i sing with him.
come and see me when the river is low.
your friend, the owl.
"""
