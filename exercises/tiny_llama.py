r"""# A tiny Llama

This is the last exercise: your own parts become a model as they are built
today. Its tokens are learned from bytes, its blocks are those of LLaMA, its
loss and its optimizer are yours, and it writes with a cache. Import all of
these. Given below, and left as it is: learned_tokens, which learns merges from
a text and encodes it.

Write the class

    TinyLlama(vocab, d_model, num_heads, num_kv_heads, num_layers,
              context_length, dropout)

    token_embedding      nn.Embedding(vocab, d_model)
    blocks               nn.ModuleList of num_layers blocks, each of them
                         ModernBlock(d_model, num_heads, num_kv_heads,
                                     hidden_size(d_model, 8), context_length,
                                     dropout)
    norm                 RMSNorm(d_model)

    forward(tokens, caches=None)
    tokens    (batch, n_tokens), int64, the next tokens
    caches    None before the first token, or the caches of an earlier call
    returns   the pair (logits, caches)
              logits  (batch, n_tokens, vocab)       dtype of the parameters
              caches  a list with the cache of each block, in their order

    x       = token_embedding[tokens]
    x       = the blocks, one after the other, each with its own cache
    logits  = norm(x) token_embedding^T

The head is the token embedding itself, so there are no other parameters. It
starts with normal random numbers of standard deviation 0.1 (nn.init.normal_).
There is no table of positions, because the blocks turn queries and keys. The
model drops nothing besides what its blocks drop. The logits of all chunks, one
after the other, are those of the whole sequence in one call. For more than
context_length tokens, cached ones included, the blocks raise ValueError. The
attribute context_length is given.

and three functions

    train_llama(model, tokens, steps, batch_size=16, peak=5e-3, warmup=25,
                report=None)

trains the model on a text tokens (n_text,), int64, in place, with your AdamW
on all parameters, at a weight_decay of 0.1 and otherwise as it is by default.
The text has at least context_length + 1 tokens. Each step, in training mode,

  - draws batch_size random pieces of context_length + 1 tokens. All places at
    which a whole piece fits are equally likely, also the first and the last.
  - The model reads all tokens of a piece but the last, and from each of them
    has to predict the one that follows. The loss is their mean cross-entropy.
  - computes its gradients alone (the model comes without gradients), and clips
    them to a norm of 1,
  - lets AdamW take a step at learning_rate(step, peak, warmup, steps,
    peak / 10), where the first step is 1,
  - calls report(step, loss) with the loss before that step as a float, unless
    report is None.

Afterwards the model is in eval mode.

    bits_per_byte(model, data, merges)

    data      bytes, of two tokens or more
    merges    a list of pairs, as byte_pair_encoding.train returns it
    returns   a float

It says how well the model predicts data, in a unit that does not depend on the
tokenizer: a token with probability p costs -log2(p) bits, and the bits of all
tokens but the first are divided by the number of bytes of data. The model
reads the first context_length tokens of data, then the next context_length
ones without those before, and so on. The last piece may be shorter.

    continue_text(model, prompt, uniforms, temperature=1.0, top_k=None,
                  top_p=None)

    prompt    (n_prompt,), int64, with n_prompt at least 1
    uniforms  (n,), numbers from 0 to 1
    returns   (n_prompt + n,), the prompt continued by n tokens

The number uniforms[i] draws token i: draw(probabilities, uniforms[i]), from
the distribution of the last logits with these options. The model reads the
prompt at once, then only the newest token, with the caches of those before. It
does not read the last token that is drawn, so n_prompt + n - 1 tokens have to
fit into the context.

Requirements
  - bits_per_byte and continue_text get a model in eval mode. Their results
    need no gradients.
  - The random numbers of train_llama are those of torch's own generator.
  - tokens, prompt and uniforms may be views. They are not modified, nor are
    caches, which can be used twice.
  - Gradients reach all parameters.
  - model.to(dtype) is enough to convert the model, for example to bfloat16.
    After a move to another device, it works there.
  - No Python loop runs over batch or tokens. Loops over blocks, over training
    steps and over the n new tokens are right here.
  - nn.Transformer and its layers, and nn.MultiheadAttention, are not allowed.

Your own earlier exercises take part as far as they are right; the grader puts
correct ones in the place of the others, and the report says which.

The check trains a model of d_model 64 with 4 heads, 2 of keys, 2 layers, a
context of 64 tokens and a dropout of 0.1 for 500 steps on nine tenths of 20 kB
of notes, in bytes and 32 merges. The last tenth must then take at most 1.35
bits per byte, also with other words in it, and a single step of training must
not be enough. This takes about a minute. The report shows the loss, the bits
per byte and a text that the model wrote.

Example

    wave(*shape, start=0) is the sine of start, start + 1, ... in float64, as a
    tensor of this shape: (torch.arange(n) + start).double().sin().view(shape)

    model = TinyLlama(5, 4, 2, 1, 2, 8, 0.0).double().eval(), 520 parameters:
    number i of the sorted names (from 0) is filled with wave(start=100 * i)

    logits, caches = model(torch.tensor([[0, 1, 2]]))
    logits[0, 2] = [0.1863, 0.2541, -0.5185, 0.4237, -0.0354]

    At temperature 0, [4] goes on as 4 2 1 0 1 0. At temperature 1, with the
    uniforms .1, .3, .5, .7, .9, it goes on as 4 0 1 2 3 4.

    With a vocab of 257 and an embedding of zeros, each token costs log2(257)
    bits. b"abab" with merges [(97, 98)] is two tokens, of which one counts:
    log2(257) / 4 = 2.0014 bits per byte.

Write it by hand. These names of torch are not accepted here: Transformer,
transformer_encoder_layer, MultiheadAttention, multi_head_attention,
flex_attention.

What is new: The whole way from bytes to a model that writes, made of your
own parts.

From: Llama 2: Open Foundation and Fine-Tuned Chat Models (2023)
"""

import math
from collections.abc import Callable

import torch
from adamw import AdamW, clip_gradients, learning_rate
from byte_pair_encoding import encode, train
from cross_entropy import cross_entropy
from modern_block import ModernBlock
from rms_norm import RMSNorm
from sampling import distribution, draw
from swiglu import hidden_size
from torch import Tensor, nn
from torch.nn import functional as F


def learned_tokens(data: bytes, num_merges: int) -> tuple[list[tuple[int, int]], Tensor]:
    """Return the merges that are learned from data, and its tokens, (n_tokens,)."""
    merges = train(data, num_merges)
    return merges, torch.tensor(encode(data, merges))


class TinyLlama(nn.Module):
    """Token embedding, modern blocks, a norm, and the token embedding again as the head."""

    def __init__(
        self,
        vocab: int,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        num_layers: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        raise NotImplementedError("fill in tiny_llama")

    def forward(
        self, tokens: Tensor, caches: list[tuple[Tensor, Tensor]] | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Map the next tokens (batch, n_tokens) to logits (batch, n_tokens, vocab) and caches.

        Raises ValueError for more tokens than context_length, those in the caches included.
        """
        raise NotImplementedError("fill in tiny_llama")


def train_llama(
    model: TinyLlama,
    tokens: Tensor,
    steps: int,
    batch_size: int = 16,
    peak: float = 5e-3,
    warmup: int = 25,
    report: Callable[[int, float], None] | None = None,
) -> None:
    """Train the model on a text tokens (n_text,), and leave it in evaluation mode.

    report, if given, is called with the number of each step, from 1 on, and its loss.
    """
    raise NotImplementedError("fill in tiny_llama")


def bits_per_byte(model: TinyLlama, data: bytes, merges: list[tuple[int, int]]) -> float:
    """Return how many bits a byte of data takes, if each token costs -log2 of its probability.

    data has two tokens or more. The model reads context_length tokens at a time.
    """
    raise NotImplementedError("fill in tiny_llama")


def continue_text(
    model: TinyLlama,
    prompt: Tensor,
    uniforms: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Continue prompt (n_prompt,) by a token for each of uniforms (n,), to (n_prompt + n,)."""
    raise NotImplementedError("fill in tiny_llama")
