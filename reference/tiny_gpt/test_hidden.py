"""Hidden tests of a tiny GPT, which decide the points.

Blocks and norms are right ones, so only what is written here is graded. The functions are asked of
the student's own model: what they should give follows from its logits, so one mistake costs one
check. The text that the model is trained on is `text.txt`; what it is asked afterwards is made of
its lines anew in each run.
"""

import functools
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from grader.testing import (
    assert_close,
    assert_dropped,
    assert_dtype,
    assert_moves,
    assert_reaches,
    assert_refused,
    assert_refused_in_both_modes,
    assert_right_or_own,
    assert_same,
    assert_slopes,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    in_float64,
    load_parameters,
    manual_seed,
    output_of,
    parameter_shapes,
    trained,
    watched,
)

pytestmark = pytest.mark.needs("test_written_by_hand")

VOCAB, D_MODEL, HEADS, LAYERS, CONTEXT = SIZES = (11, 12, 3, 2, 7)
TINY = (5, 4, 2, 1, 3)  # of models that are trained for a few steps
WIDE = (5, 16, 2, 1, 3)  # and of one that learns in 60, whatever it starts with
LAYER_SHAPES = {
    "attention.W_query.weight": (1, 1),  # in units of d_model
    "attention.W_key.weight": (1, 1),
    "attention.W_value.weight": (1, 1),
    "attention.out_proj.weight": (1, 1),
    "attention.out_proj.bias": (1,),
    "feed_forward.linear1.weight": (4, 1),
    "feed_forward.linear1.bias": (4,),
    "feed_forward.linear2.weight": (1, 4),
    "feed_forward.linear2.bias": (1,),
    "norm1.gamma": (1,),
    "norm1.beta": (1,),
    "norm2.gamma": (1,),
    "norm2.beta": (1,),
}

TEXT = Path(__file__).with_name("text.txt").read_text("utf-8")
NAMES = sorted({*re.findall(r"^the (\w+) and the", TEXT, re.MULTILINE)})  # in titles: who acts
CHARACTERS = "\n ',.?abcdefghijklmnoprstuvwxy"
STORIES = (len(CHARACTERS), 64, 4, 2, 64, 0.0)  # the model that is trained on the text
STEPS, AT_MOST, TOO_GOOD = 500, 1.2, 2.4  # losses after training, and after a single step
SHARE = 0.6  # of the words that are written, to be among those of the text


def shapes_of(sizes):
    """Return the shapes of all parameters by name."""
    vocab, d_model, _, num_layers, context_length = sizes
    shapes = {
        "token_embedding.weight": (vocab, d_model),
        "position_embedding.weight": (context_length, d_model),
        "norm.gamma": (d_model,),
        "norm.beta": (d_model,),
    }
    for layer in range(num_layers):
        for name, units in LAYER_SHAPES.items():
            shapes[f"blocks.{layer}.{name}"] = tuple(unit * d_model for unit in units)
    return shapes


def state_of(rng, sizes=SIZES):
    """Return random parameters of all layers by name."""
    shapes = shapes_of(sizes).items()
    return {name: rng.randn(*shape) * 0.5 + ("gamma" in name) for name, shape in shapes}


def made(code, state, sizes=SIZES, dropout=0.0):
    """Return a model with the parameters `state`, in float64 and evaluation mode."""
    return load_parameters(code.TinyGPT(*sizes, dropout), state)


def logits_of(model, tokens):
    """Return what a model gives for tokens, in float64, if it has three axes."""
    logits = in_float64(output_of(model, tokens))
    expect(logits.ndim == 3, f"the logits have the shape {tuple(logits.shape)}")
    expect(logits.shape[:2] == tokens.shape, f"the logits have the shape {tuple(logits.shape)}")
    return logits


def new_stories(rng):
    """Return a text of lines of the stories, in which others act than there."""
    lines = [line for line in TEXT.splitlines() if line.endswith((".", "?"))]
    chosen = [re.split(r"(\w+)", lines[n]) for n in rng.randint(0, len(lines), 45).tolist()]
    words = [word for line in chosen for word in (*line, "\n")]
    others = rng.randint(0, len(NAMES), len(words)).tolist()
    return "".join(NAMES[n] if word in NAMES else word for word, n in zip(words, others))


def encode(text):
    """Return a text as tokens, (n_text,)."""
    return torch.tensor([CHARACTERS.index(character) for character in text])


@pytest.mark.points(0)
def test_written_by_hand(student, rng):
    """The model is made of your own parts, not of torch's Transformer.

    Guards: the calls that the exercise forbids.
    """
    tokens = rng.randint(0, VOCAB, 2, 5)
    model = student.TinyGPT(*SIZES, 0.0)
    calls = (
        functools.partial(output_of, model, tokens),
        lambda: student.generate(model, tokens, 1),
        lambda: student.next_token_loss(model, tokens),
    )
    assert_written_by_hand(student, *calls)


@pytest.mark.points(2)
def test_logits(student, reference, rng):
    """The logits are those of embeddings, blocks, final norm and the token embedding as the head.

    Any number of tokens up to the context works, and any batch.
    """
    cases = {
        SIZES: [(2, 5), (3, 7), (1, 1)],
        (5, 4, 2, 3, 9): [(3, 9), (2, 1)],
        (6, 6, 6, 1, 6): [(6, 6)],
        (8, 6, 1, 2, 1): [(4, 1)],
    }
    for sizes, shapes in cases.items():
        state = state_of(rng, sizes)
        theirs, ours = (made(code, state, sizes) for code in (student, reference))
        for shape in shapes:
            tokens = rng.randint(0, sizes[0], *shape)
            what = f"the logits for tokens {shape}"
            assert_close(in_float64(output_of(theirs, tokens)), output_of(ours, tokens), what)


@pytest.mark.points(1)
def test_parameters(student):
    """There are the parameters of the statement, and no others; embeddings start small.

    Guards: parameters beside those of the statement, whatever they do.
    """
    for sizes in (SIZES, (31, 40, 2, 3, 50)):
        found, wanted = parameter_shapes(student.TinyGPT(*sizes, 0.0)), shapes_of(sizes)
        wrong = ", ".join(sorted(set(found) ^ set(wanted)))
        expect(not wrong, f"these parameters are missing or unexpected: {wrong}")
        for name, shape in wanted.items():
            expect(found[name] == shape, f"{name} has the shape {found[name]}, not {shape}")
    start = student.TinyGPT(31, 40, 2, 3, 50, 0.0).state_dict()
    for name in ("token_embedding.weight", "position_embedding.weight"):
        std, mean = start[name].std().item(), start[name].mean().item()
        says = f"{name} starts with a standard deviation of {std:.2f} around {mean:.2f}"
        expect(0.08 < std < 0.12 and abs(mean) < 0.02, f"{says}, where 0.10 around 0 is expected")


@pytest.mark.points(1)
def test_context(student, rng):
    """context_length tokens are accepted; for more, forward raises an error.

    Without positions of their own, tokens beyond the context would be read as others.
    """
    for context in (1, 4, CONTEXT):
        sizes = (VOCAB, D_MODEL, HEADS, LAYERS, context)
        model = student.TinyGPT(*sizes, 0.0)
        tokens = rng.randint(0, VOCAB, 2, context + 1)
        logits_of(model, tokens[:, :-1].clone())
        shown = f"TinyGPT{(*sizes, 0.0)} of {context + 1} tokens"
        assert_refused_in_both_modes(student, model, tokens, shown)


@pytest.mark.points(1)
def test_gradients(student, reference, rng):
    """In both modes, gradients reach all parameters, and are the slopes of the logits."""
    state = state_of(rng)
    theirs, ours = (made(code, state, dropout=0.3) for code in (student, reference))
    assert_slopes(
        student, theirs, ours, {"tokens": rng.randint(0, VOCAB, 2, CONTEXT)}, rng=rng, step=1e-5
    )


@pytest.mark.points(1)
def test_dropout(student, rng):
    """In training, embeddings and blocks drop values at the rate; in eval mode, nothing is."""
    rate, draws = 0.3, 300
    state, tokens = state_of(rng), rng.randint(0, VOCAB, 2, 5)
    without = logits_of(made(student, state), tokens)
    same = logits_of(made(student, state, dropout=0.6), tokens)
    assert_same(same, without, "the logits in eval mode")
    # Only one part adds ones to a stream of zeros. Each token but 0 shows one feature.
    sizes = (D_MODEL + 1, *SIZES[1:])
    places = {
        "the embeddings": "position_embedding.weight",
        "the first block": "blocks.0.attention.out_proj.bias",
        "the last block": f"blocks.{LAYERS - 1}.feed_forward.linear2.bias",
    }
    for part, place in places.items():
        state = {name: torch.zeros(shape) for name, shape in shapes_of(sizes).items()}
        state["token_embedding.weight"] = torch.eye(D_MODEL + 1)[:, 1:]
        state["norm.gamma"] += 1
        state[place] += 1
        model = made(student, state, sizes, rate).train()
        shown = logits_of(model, torch.zeros(draws, 1, dtype=torch.long))[:, 0, 1:]
        expect(shown.isfinite().all(), "the logits in training are not finite")
        expect(shown.any(), f"what {part} add is not in the logits, or never dropped")
        low, high = shown.amin(-1, keepdim=True), shown.amax(-1, keepdim=True)
        assert_dropped(shown < (low + high) / 2, rate, f"values of {part}")


@pytest.mark.points(1)
def test_any_input(student, rng):
    """The model converts to other dtypes and devices; what the functions get may be views."""
    state, tokens = state_of(rng), rng.randint(0, VOCAB, 3, 5)
    model = made(student, state)
    wide = logits_of(model, tokens)
    view = tokens.T.contiguous().T
    found = assert_unchanged(student, functools.partial(output_of, model), view, names=["tokens"])
    assert_same(found, wide, "the logits for a transposed view")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        logits = output_of(model.to(dtype), tokens)
        assert_dtype(logits, dtype, f"after model.to({dtype}), the output")
        far = (logits.double() - wide).abs().max() / wide.abs().max()
        expect(far < 0.1, f"after model.to({dtype}), the logits are others")
    assert_moves(lambda: student.TinyGPT(*SIZES, 0.5), tokens)
    model = made(student, state)
    losses = [
        assert_unchanged(
            student, functools.partial(student.next_token_loss, model), each, names=["windows"]
        )
        for each in (tokens, view)
    ]
    assert_same(losses[1], losses[0], "the loss of a transposed view")
    text = torch.stack([rng.randint(0, VOCAB, 9), torch.zeros(9, dtype=torch.long)], 1)[:, 0]
    windows = assert_unchanged(
        student, lambda text: student.random_windows(text, 4, 9), text, names=["tokens"]
    )
    assert_same(windows.double(), text.expand(4, 9).double(), "the windows of a view")
    texts = [
        assert_unchanged(
            student, lambda prompt: student.generate(model, prompt, 3, 0.0), each, names=["prompt"]
        )
        for each in (tokens, view)
    ]
    assert_same(texts[1].double(), texts[0].double(), "the text after a transposed view")


@pytest.mark.points(1)
def test_no_python_loops(student, rng):
    """No Python loop runs over batch, tokens or windows, nor over the places of the mask."""
    model = student.TinyGPT(*SIZES, 0.0)

    def read(batch=2, n_tokens=3):
        tokens = rng.randint(0, VOCAB, batch, n_tokens)
        return lambda: output_of(student.TinyGPT(*SIZES[:-1], n_tokens + 1, 0.0), tokens)

    def lost(batch=2, n_tokens=3):
        longer = student.TinyGPT(*SIZES[:-1], n_tokens, 0.0)
        windows = rng.randint(0, VOCAB, batch, n_tokens)
        return functools.partial(output_of, student.next_token_loss, longer, windows)

    def drawn(n_windows=3, length=5):
        text = rng.randint(0, VOCAB, 2 * length + 20)
        return lambda: student.random_windows(text, n_windows, length)

    def written(batch=2):
        prompts = rng.randint(0, VOCAB, batch, 2)
        return lambda: student.generate(model, prompts, 2, 0.7, 4)

    for call in (read, lost):
        grown = {"sentences": {"batch": (9, 19)}, "tokens": {"n_tokens": (14, 31)}}
        assert_vectorised(student, call, grown)
    grown = {"windows": {"n_windows": (23, 47)}, "tokens of a window": {"length": (31, 64)}}
    assert_vectorised(student, drawn, grown)
    assert_vectorised(student, written, {"prompts": {"batch": (9, 19)}})


@pytest.mark.points(2)
def test_loss(student, reference, rng):
    """The loss is the mean cross-entropy of each next token, given the tokens before it."""
    state = state_of(rng)
    large = dict(state, **{"norm.gamma": state["norm.gamma"] * 1e4})
    windows = rng.randint(0, VOCAB, 5, 8)
    for case, used in (
        (state, windows[:2, :6]),
        (state, windows),
        (state, windows[:1, :2]),
        (large, windows),
    ):
        theirs, ours = (made(code, case) for code in (student, reference))
        own = functools.partial(cross_entropy, theirs, used)
        loss = student.next_token_loss(theirs, used)
        expect(isinstance(loss, torch.Tensor), "the loss is not a tensor")
        expect(loss.ndim == 0, f"the loss has the shape {tuple(loss.shape)}")
        right = output_of(reference.next_token_loss, ours, used)
        assert_right_or_own(
            loss.reshape(1), right.reshape(1), lambda own=own: own().detach().reshape(1), "the loss"
        )
    theirs = made(student, state)
    slopes = []
    for loss in (student.next_token_loss(theirs, windows), cross_entropy(theirs, windows)):
        theirs.zero_grad()
        expect(loss.requires_grad, "the loss has no gradient")
        loss.backward()
        slopes.append({name: p.grad for name, p in theirs.named_parameters()})
    for name, slope in slopes[1].items():
        found = slopes[0][name]
        expect(slope is None or found is not None, f"no gradient of the loss reaches {name}")
        if slope is not None:
            assert_close(found, slope, f"the gradient of {name}")


def cross_entropy(model, windows):
    """Return the loss that follows from a model's own logits."""
    logits = model(windows[:, :-1].clone()).flatten(0, 1)
    return F.cross_entropy(logits, windows[:, 1:].flatten())


@pytest.mark.points(1)
def test_windows(student, rng):
    """random_windows draws pieces of the text; each place is as likely as any other."""
    for n_text, length, draws in ((12, 5, 1600), (9, 9, 3), (4, 1, 800), (30, 29, 400)):
        text = rng.permutation(n_text) * 3 + 1  # no number occurs twice
        windows = student.random_windows(text, draws, length)
        expect(isinstance(windows, torch.Tensor), "random_windows does not return a tensor")
        shape = tuple(windows.shape)
        expect(shape == (draws, length), f"{draws} windows of {length} have the shape {shape}")
        assert_dtype(windows, torch.int64, "what random_windows returns")
        pieces = text.unfold(0, length, 1)  # (n_starts, length)
        is_piece = (windows[:, None] == pieces).all(-1)  # (draws, n_starts)
        expect(is_piece.any(-1).all(), "some windows are not pieces of the text")
        shares = is_piece.double().mean(0) * len(pieces)
        most = 0.0 if len(pieces) == 1 else 0.5
        says = "some places of the text begin a window far more often than others"
        expect((shares - 1).abs().max() <= most, says)
    text = rng.permutation(50)
    every_second = torch.stack([torch.arange(50), text], 1).flatten()[::2]  # a view
    windows = student.random_windows(every_second, 8, 4)
    says = "windows of a view are no pieces of it"
    expect(torch.equal(windows - windows[:, :1], torch.arange(4).expand(8, 4)), says)
    first, other = (student.random_windows(text, 8, 4) for _ in range(2))
    expect(not torch.equal(first, other), "two calls draw the same windows")
    same = [seeded(student, lambda: student.random_windows(text, 8, 4)) for _ in range(2)]
    expect(torch.equal(*same), "torch.manual_seed does not make random_windows repeatable")
    assert_refused(
        student,
        lambda: student.random_windows(text, 3, 51),
        "random_windows of a text of 50 tokens with length 51",
    )


def seeded(student, call):
    """Return the result of a call after a fixed seed."""
    manual_seed(student, 11, only_torch=True)
    return call()


@pytest.mark.points(2)
@pytest.mark.needs("test_windows")
def test_training_steps(student, reference, rng):
    """train_gpt takes the steps of the statement, in training mode, and ends in eval mode."""
    state = state_of(rng, TINY)
    # The text has a single window, so nothing is left to chance; nor at a dropout rate of 1.
    text = rng.randint(0, TINY[0], TINY[-1] + 1)
    for options, dropout in ((), 0.0), ((5, 0.02), 0.0), ((), 1.0):
        theirs, ours = (made(code, state, TINY, dropout) for code in (student, reference))
        start = {name: p.detach().clone() for name, p in theirs.named_parameters()}
        student.train_gpt(theirs, text, 3, *options)
        reference.train_gpt(ours, text, 3, *options)
        expect(theirs.training is False, "after train_gpt, the model is not in eval mode")
        found, right = (dict(each.named_parameters()) for each in (theirs, ours))
        if not all(name in found and is_close(found[name], right[name]) for name in right):
            right = by_hand(student, start, text, dropout, *options[1:])
        what = "with dropout 1" if dropout else f"with the options {options}" if options else ""
        for name, value in found.items():
            assert_close(value, right[name].detach(), f"{name} after three steps {what}".strip())
    sizes = []
    for batch_size in (4, 64):
        with watched(student) as seen:
            student.train_gpt(student.TinyGPT(*TINY, 0.0), text, 1, batch_size)
        sizes.append(seen.largest.elements)
    expect(sizes[1] > 4 * sizes[0], "batch_size does not say how many windows a step draws")
    # A text of zeros and then ones: who looks at one part alone does not learn the other.
    text = torch.arange(2).repeat_interleave(30)
    model = student.TinyGPT(*WIDE, 0.0)
    student.train_gpt(model, text, 60, 16, 0.03)
    for token in (0, 1):
        loss = cross_entropy(model, torch.full((1, 4), token)).item()
        expect(loss < 0.7, "after training on a text, the model has not learned some part of it")


def is_close(found, right):
    """Return whether a parameter is the right one."""
    return found.shape == right.shape and torch.allclose(found.double(), right, atol=1e-6)


def by_hand(student, state, text, dropout, learning_rate=3e-3):
    """Return the parameters after three steps of AdamW on the losses of the student's model."""
    model = made(student, state, TINY, dropout).train()
    values = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(values.values(), lr=learning_rate)
    for _ in range(3):
        model.zero_grad()
        student.next_token_loss(model, text[None]).backward()
        for name, parameter in model.named_parameters():
            values[name].grad = parameter.grad
        optimizer.step()
        model.load_state_dict({name: value.detach() for name, value in values.items()}, False)
    return values


@pytest.mark.points(1)
def test_greedy(student, rng):
    """At temperature 0, each token is the most likely one after the last context_length tokens."""
    model = made(student, state_of(rng))
    for n_prompt, n in ((3, 9), (CONTEXT + 4, 5), (1, 1), (2, 0)):
        prompt = rng.randint(0, VOCAB, 4, n_prompt)
        right = prompt
        for _ in range(n):
            logits = logits_of(model, right[:, -CONTEXT:].clone())[:, -1]
            right = torch.cat([right, logits.argmax(dim=-1, keepdim=True)], dim=1)
        for top_k in (None, 3):
            found = written(student, model, prompt, n, 0.0, top_k)
            assert_close(found, right.double(), f"{n} tokens after a prompt of {n_prompt}")


def written(student, model, prompt, n, *options):
    """Return what the student's `generate` gives, in float64."""
    found = student.generate(model, prompt, n, *options)
    expect(isinstance(found, torch.Tensor), "generate does not return a tensor")
    assert_dtype(found, torch.int64, "what generate returns")
    shape, wanted = tuple(found.shape), (len(prompt), prompt.shape[1] + n)
    expect(shape == wanted, f"generate returns the shape {shape}, where {wanted} is expected")
    return found.double()


@pytest.mark.points(1)
def test_sampling(student, rng):
    """Tokens are drawn with the probabilities softmax(logits / temperature), of the top_k if given.

    Each row is drawn on its own, and torch.manual_seed makes it repeatable.
    """
    draws = 500
    model = made(student, state_of(rng))
    prompts = rng.randint(0, VOCAB, 2, 4)
    logits = logits_of(model, prompts)[:, -1]  # (2, vocab)
    # Temperatures for this model, at which no token has nearly all of the probability.
    unit = logits.std(dim=-1).mean().item() + 1e-6
    for factor, top_k in ((0.4, None), (1.5, None), (1.0, 3), (0.5, 4), (1.5, VOCAB + 5)):
        kept = logits.topk(min(top_k or VOCAB, VOCAB)).values[:, -1:]  # (2, 1)
        left = logits.masked_fill(logits < kept, -torch.inf) / (factor * unit)
        right = torch.softmax(left, dim=-1)  # (2, vocab)
        many = prompts.repeat(draws, 1)
        found = written(student, model, many, 1, factor * unit, top_k)[:, -1].long()
        expect(((found >= 0) & (found < VOCAB)).all(), "generate draws tokens that there are not")
        counts = F.one_hot(found, VOCAB).double().view(draws, 2, VOCAB)
        given = f"top_k={top_k}" if top_k else f"a temperature of {factor * unit:.2f}"
        says = f"with {given}, tokens are not drawn with the probabilities asked for"
        expect((counts.mean(0) - right).abs().max() < 0.1, says)
        expect((counts.sum(0)[right == 0] == 0).all(), f"with {given}, others are drawn as well")
        together = (counts[:-1] * counts[1:]).sum(-1).mean(0)  # of one prompt, one after another
        expect((together - right.square().sum(-1)).abs().max() < 0.12, "rows are not independent")
    several = rng.randint(0, VOCAB, 10, 4)
    best = logits_of(model, several)[:, -1].topk(3).indices  # (10, 3)
    found = written(student, model, several.repeat(100, 1), 1, 50 * unit, 3)[:, -1].long()
    expect(((found >= 0) & (found < VOCAB)).all(), "generate draws tokens that there are not")
    counts = F.one_hot(found, VOCAB).view(100, 10, VOCAB).sum(0)
    are_drawn = torch.equal(counts > 0, F.one_hot(best, VOCAB).sum(1) > 0)
    expect(are_drawn, "with top_k=3, a row does not draw from its own three likeliest tokens")
    many = prompts.repeat(20, 1)
    warm = [2 * unit]
    same = [seeded(student, lambda: written(student, model, many, 4, *warm)) for _ in range(2)]
    expect(torch.equal(*same), "torch.manual_seed does not make generate repeatable")
    others = written(student, model, many, 4, *warm)
    expect(not torch.equal(same[0], others), "two calls draw the same tokens")
    default = [
        seeded(student, lambda o=o: written(student, model, many, 4, *o)) for o in ((), (1,))
    ]
    expect(torch.equal(*default), "without a temperature, it is not 1")


@pytest.mark.points(1)
def test_generate_options(student, rng):
    """generate drops nothing, keeps the mode of the model, and refuses what makes no sense."""
    state, prompt = state_of(rng), rng.randint(0, VOCAB, 3, 4)
    plain = written(student, made(student, state), prompt, 5, 0.0)
    for mode in (False, True):
        model = made(student, state, dropout=0.5).train(mode)
        found = written(student, model, prompt, 5, 0.0)
        name = "training" if mode else "eval"
        assert_close(found, plain, f"the text of a model in {name} mode")
        expect(model.training is mode, f"after generate, a model in {name} mode is in another one")
    for options in ((-1.0,), (1.0, 0), (1.0, -2)):
        shown = f"generate(model, prompt, 2, {', '.join(map(str, options))})"
        call = functools.partial(student.generate, model, prompt, 2, *options)
        assert_refused(student, call, shown)


@pytest.mark.points(2)
@pytest.mark.needs("test_logits", "test_parameters", "test_context", "test_gradients")
@pytest.mark.needs("test_dropout", "test_loss", "test_windows", "test_training_steps")
@pytest.mark.needs("test_greedy", "test_sampling", "test_generate_options")
@pytest.mark.needs("test_any_input", "test_no_python_loops")
def test_stories(student, rng):
    """Trained on the stories, the model predicts the characters of others, and writes words.

    Guards: what only a whole training shows. The other checks see each mistake in a few steps.
    """
    text = encode(TEXT)

    def train(model, report):
        student.train_gpt(model, text, STEPS, report=report)

    def make():
        return student.TinyGPT(*STORIES)

    run = trained(student, "stories", make, train)
    steps = [step for step, _ in run.losses]
    says = "report is not called with the number of each step, from 1 on"
    expect(steps and steps[0] == 1 and steps[-1] == STEPS, says)
    expect(run.losses[0][1] > 2.5, "the first loss that is reported is not that of a new model")
    fresh = encode(new_stories(rng)).unfold(0, STORIES[4] + 1, STORIES[4]).contiguous()
    loss = cross_entropy(run.module, fresh).item()
    assert_reaches(run, "the loss on stories that it has not seen", loss, at_most=AT_MOST)
    logits = logits_of(run.module, fresh[:4, :-1].clone())
    changed = fresh[:4, :-1].clone()
    changed[:, 20:] = (changed[:, 20:] + 7) % len(CHARACTERS)
    says = "the logits before the characters that changed"
    assert_same(logits_of(run.module, changed)[:, :20], logits[:, :20], says)
    one, other = (NAMES[n] for n in rng.randint(0, len(NAMES), 2).tolist())
    title = encode(f"the {one} and the {other}\n\n")
    story = student.generate(run.module, title[None], 300, 0.5)[0]
    known = set(TEXT.split())
    words = "".join(CHARACTERS[token] for token in story.tolist()).split()[:-1]
    share = sum(word in known for word in words) / len(words)
    what = "the share of its words that are in the stories"
    assert_reaches(run, what, share, at_least=SHARE)
    model = make()
    student.train_gpt(model, text, 1)
    expect(cross_entropy(model, fresh).item() > TOO_GOOD, "a single step of training is enough")
