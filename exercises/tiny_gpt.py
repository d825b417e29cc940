r"""# A tiny GPT

A language model reads the tokens of a text and gives, for each of them, a
distribution over the token that comes next. This is the last exercise: your
own blocks become such a model. You train it on short stories and letters, and
it writes some of its own. Here a token is a character, given as a number from
0 to vocab - 1.

Write the class

    TinyGPT(vocab, d_model, num_heads, num_layers, context_length, dropout)

    token_embedding      nn.Embedding(vocab, d_model)
    position_embedding   nn.Embedding(context_length, d_model)
    blocks               nn.ModuleList of num_layers blocks, each of them
                         TransformerBlock(d_model, num_heads, 4 * d_model,
                                          context_length, dropout)
    norm                 LayerNorm(d_model)

    forward(tokens)
    tokens    (batch, n_tokens), int64
    returns   logits (batch, n_tokens, vocab)        dtype of the parameters

    x       = dropout(token_embedding[tokens] + position_embedding[0, 1, ...])
    x       = the blocks, one after the other
    logits  = norm(x) token_embedding^T

dropout is a rate from 0 to 1. The head that turns features into logits is the token embedding itself, so
there are no other parameters. Both embeddings start with normal random numbers
of standard deviation 0.1 (nn.init.normal_). The blocks are causal and
pre-norm, so changing a later token changes no earlier logits. For more than
context_length tokens, forward raises ValueError. The attribute context_length
is given.

and four functions

    next_token_loss(model, windows)

    windows   (batch, n_tokens + 1), int64: n_tokens is 1 or more
    returns   the loss, a tensor without axes

The model reads all tokens of a window but the last one, and from each of them
has to predict the one that follows. The loss is the mean of
-log softmax(logits)[next token] over all of these. It stays finite for logits
of +-1e4.

    random_windows(tokens, n_windows, length)

    tokens    (n_text,), a text; int64
    returns   (n_windows, length), each row a piece of the text

Each row starts at a place of its own. All places at which a whole window fits
are equally likely, the first and the last of them included. A text that is
shorter than a window is refused: ValueError.

    train_gpt(model, tokens, steps, batch_size=16, learning_rate=3e-3,
              report=None)

trains the model on a text tokens (n_text,), in place. It uses
torch.optim.AdamW on all parameters, with this learning rate and otherwise as
it is by default. Each step, in training mode,

  - draws batch_size random windows of context_length + 1 tokens,
  - computes their loss, its gradients alone, and lets AdamW take one step (the
    model comes without gradients),
  - calls report(step, loss) with its number, from 1, and the loss before that
    step as a float, unless report is None.

Afterwards the model is in eval mode.

    generate(model, prompt, n, temperature=1.0, top_k=None)

    prompt    (batch, n_prompt), int64, with n_prompt at least 1
    returns   (batch, n_prompt + n): each prompt, continued by n tokens

It takes one token at a time: the model reads the last context_length tokens,
or all if there are fewer, and the last logits decide the next token.

  - It is drawn with the probabilities softmax(logits / temperature), for each
    row of the batch on its own.
  - At temperature 0 it is the token with the largest logit, whatever top_k is:
    the same prompt always gives the same text. temperature < 0: ValueError.
  - With top_k, only the top_k tokens with the largest logits can be drawn, and,
    if you like, those whose logits equal the last of these. A top_k of vocab or
    more is the same as None. top_k < 1: ValueError.
  - Nothing is dropped while text is generated. Afterwards, the model is in the
    mode that it was in. The result needs no gradients.

Requirements
  - The random numbers are those of torch's own generator, so torch.manual_seed
    before a call makes it repeatable. There is no argument for a generator.
  - tokens, windows and prompt may be views. They are not modified.
  - Gradients of the loss reach all parameters.
  - model.to(dtype) is enough to convert the model, for example to bfloat16; its
    logits stay the same but for rounding.
    After a move to another device, the model works there.
  - No Python loop runs over batch, tokens or windows. Loops over blocks, over
    training steps and over the n new tokens are right here.
  - nn.Transformer and its layers, and nn.MultiheadAttention, are not allowed.
    F.cross_entropy, torch.topk and torch.multinomial are.

Your own earlier exercises take part as far as they are right; the grader puts
correct ones in the place of the others, and the report says which.

The check trains a model of d_model 64 with 4 heads, 2 layers and a context of
64 characters on 20 kB of stories for 500 steps. On stories that it has not
seen, its loss must then be at most 1.2. (A model that knows only how frequent
each character is has 2.9.) At least 6 of 10 words that it writes at temperature
0.5 must be words of the stories, and a single step of training must not be
enough. This takes about half a minute. The report shows the loss, a text that
the model wrote, and what its heads attend to.

Example (vocab 3, d_model 2, one head, one layer, context_length 2)

    token_embedding     [[1., 2.], [3., 1.], [0., 2.]]
    position_embedding  [[0., 1.], [2., 0.]]
    W_query = W_key = 0, W_value = identity, out_proj.weight = 3 * identity
    linear2.weight = 0, all biases 0, norms fresh

    tokens  [0, 1]     x           [[1., 3.], [5., 1.]]
                       attention   [[-3., 3.], [0., 0.]]
                       after it    [[-2., 6.], [5., 1.]]
                       norm        [[-1., 1.], [1., -1.]]
                       logits      [[1., -2., 2.], [-1., 2., -2.]]

    The loss of the window [0, 1, 1] is the mean of 4.3266 and 0.0659: 2.1962.
    At temperature 0, the prompt [0] goes on as 0 2 2 2, and [0, 1] as 0 1 1 1.

Write it by hand. These names of torch are not accepted here:
TransformerEncoderLayer, TransformerDecoderLayer, Transformer,
transformer_encoder_layer, MultiheadAttention, multi_head_attention.

What is new: Embeddings below the blocks and a head above them, trained to
predict the next token.

From: Language Models are Unsupervised Multitask Learners (2019)
"""

from collections.abc import Callable

import torch
from layer_norm import LayerNorm
from torch import Tensor, nn
from torch.nn import functional as F
from transformer_block import TransformerBlock


class TinyGPT(nn.Module):
    """Embeddings, Transformer blocks, a norm, and the token embedding again as the head."""

    def __init__(
        self,
        vocab: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        raise NotImplementedError("fill in tiny_gpt")

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (batch, n_tokens) to logits (batch, n_tokens, vocab).

        Raises ValueError for more than context_length tokens.
        """
        raise NotImplementedError("fill in tiny_gpt")


def next_token_loss(model: TinyGPT, windows: Tensor) -> Tensor:
    """Return the mean cross-entropy of each token in windows given those before it, ().

    windows (batch, n_tokens + 1): the model gets all but the last token of each, and has to predict
    all but the first.
    """
    raise NotImplementedError("fill in tiny_gpt")


def random_windows(tokens: Tensor, n_windows: int, length: int) -> Tensor:
    """Return random pieces of a text tokens (n_text,), as (n_windows, length).

    Raises ValueError if the text is shorter than a window.
    """
    raise NotImplementedError("fill in tiny_gpt")


def train_gpt(
    model: TinyGPT,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 3e-3,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model on a text tokens (n_text,), and leave it in evaluation mode.

    report, if given, is called with the number of each step, from 1 on, and its loss.
    """
    raise NotImplementedError("fill in tiny_gpt")


def generate(
    model: TinyGPT,
    prompt: Tensor,
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Tensor:
    """Continue each row of prompt (batch, n_prompt) by n tokens, to (batch, n_prompt + n).

    Temperature 0 takes the most likely token. With top_k, only the top_k most likely tokens can be
    drawn. Raises ValueError for a negative temperature, or a top_k below 1.
    """
    raise NotImplementedError("fill in tiny_gpt")
