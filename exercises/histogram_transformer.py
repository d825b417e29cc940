r"""# A transformer that counts

How often does each token occur in its sequence?

    tokens  2  0  2  1  2  0
    counts  3  2  3  1  3  2

One block of attention with one head can say it. A token attends to all tokens
that are like itself. But attention takes means: the mean of three equal values
is the same as that of two. So each sequence gets a token in front that is
always there, BOS (beginning of sequence). If a token attends equally to BOS
and to the tokens like itself, the weight of BOS is 1 / (1 + count).

In this exercise you let a model find such weights, and then set them by hand.

Write

    CountingTransformer(vocab, length, d_model)

    tokens   (batch, n_tokens), whole numbers from 0 to vocab - 1; n_tokens is
             from 1 to length, more is a ValueError
    returns  (batch, n_tokens, length + 1), the logits of the counts 0 to
             length, for each token

    x       = embedding of BOS and the tokens
    weights = softmax(W_query(x) W_key(x)^T / sqrt(d_model)), over the keys
    x       = x + weights W_value(x)
    logits  = linear2(relu(linear1(x))), without the row of BOS

with the layers

    embedding              vocab + 1 rows of d_model numbers, the last for BOS
    W_query W_key W_value  d_model -> d_model, without biases
    linear1                d_model -> 4 * d_model, with a bias
    linear2                4 * d_model -> length + 1, with a bias

There is no positional encoding, no mask and no dropout: a count depends on no
order. All tokens and BOS are queries and keys.

    train_counter(model, sequences, counts, steps, report=None)

    sequences  (n, n_tokens)
    counts     (n, n_tokens), what the model is to say of each token, from 0
               to length
    steps      how many updates of the parameters are made, each by the mean
               cross-entropy of some sequences, a few hundred at most; 0
               changes nothing
    report     if given, call report(step, loss) after each step, with its
               number from 1 and its loss as a number

It trains the model in place, and learns whatever `counts` says. 4000 sequences
of 6 tokens, with vocab 5 and d_model 32, have to be enough to count 99 of 100
tokens of new sequences right after 800 steps. Adam does that with batches of
128 sequences, drawn at random, and a learning rate that begins at 0.01 and
falls to 0. It takes some seconds. Now and then a right training gets stuck, so
the check trains up to three models, for one minute of processor time together.

    set_weights(model)

sets all parameters of a CountingTransformer, without training, so that the
largest logit is that of the right count: for each token of every sequence of 1
to `length` tokens. It has to hold for any vocab and any length up to 20. If
d_model is less than vocab + 1, raise ValueError; a larger one is fine, such as
300.

Requirements
  - The names and shapes of the parameters are those above.
  - Attention is written by hand; optimizers and losses of torch are fine.
  - Gradients reach all parameters. They can be trained after set_weights, too.
  - After .to(dtype), the model has outputs of this dtype; set_weights keeps it.
  - No argument but the parameters of the model is modified.
  - No Python loop runs over batch or tokens in the model.

Example

    model = CountingTransformer(vocab=3, length=6, d_model=4)
    set_weights(model)
    model(torch.tensor([[2, 0, 2, 1, 2, 0]])).argmax(-1)

    [[3, 2, 3, 1, 3, 2]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, transformer,
Transformer, nn.attention.

What is new: A model is trained, and then taken apart: weights by hand that
do what it learned.

From: Thinking Like Transformers (2021)
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CountingTransformer(nn.Module):
    """One block of one head that says how often each token occurs in its sequence."""

    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        raise NotImplementedError("fill in histogram_transformer")

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each count, for each token.

        tokens   (batch, n_tokens), from 0 to vocab - 1
        returns  (batch, n_tokens, length + 1)
        """
        raise NotImplementedError("fill in histogram_transformer")


def train_counter(
    model: nn.Module,
    sequences: Tensor,
    counts: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model to give `counts` for `sequences`, with `steps` updates of its parameters.

    sequences  (n, n_tokens), from 0 to vocab - 1
    counts     (n, n_tokens), from 0 to length
    report     called after each step with its number, from 1, and its loss
    """
    raise NotImplementedError("fill in histogram_transformer")


def set_weights(model: nn.Module) -> None:
    """Set the parameters of a CountingTransformer, without training, so that it counts exactly."""
    raise NotImplementedError("fill in histogram_transformer")
