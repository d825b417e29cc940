# mistake: logits_from_old_state
r"""# Sequence to sequence with attention

A decoder writes a sequence token by token. Before each token it looks at the
states of an encoder, one for each place of the source, and takes the ones that
fit its own state. This is the attention that came before Transformers.

    score(s, h) = v . tanh(W_state s + W_source h)

Write two modules

    AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        W_state    linear layer d_decoder -> d_hidden, no bias
        W_source   linear layer d_encoder -> d_hidden, no bias
        v          linear layer d_hidden -> 1, no bias

    AttentionDecoder(vocab, d_embed, d_decoder, d_encoder, d_hidden)
        embedding  nn.Embedding(vocab, d_embed)
        alignment  AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        cell       nn.GRUCell(d_embed + d_encoder, d_decoder)
        out        linear layer d_decoder + d_encoder + d_embed -> vocab

which have no other parameters, and one function

    train_decoder(decoder, encoder_states, targets, steps, report=None)

AlignmentNetwork, called with

    state           (batch, d_decoder)
    encoder_states  (batch, n_source, d_encoder)
    returns         (batch, n_source), the score of each place of the source

decoder.step(token, state, encoder_states, source_lens=None) takes

    token           (batch,), the token before, as int64
    state           (batch, d_decoder), the state before
    source_lens     None or (batch,), as in masked_softmax

and computes, in this order,

    weights    softmax of the scores over the valid places of the source,
               with the state before
    context    the sum of encoder_states, weighted
    new state  cell of (embedding of the token, context) and the state before
    logits     out of (new state, context, embedding)

where (a, b) joins a and b along the last axis, in this order. It returns the
logits (batch, vocab), the new state (batch, d_decoder) and the weights
(batch, n_source). The weights come from your masked_softmax, which the file
imports: finish it first.

decoder(targets, state, encoder_states, source_lens=None, teacher_forcing=True)
takes n_target steps from the given state:

    targets    (batch, n_target), the tokens that it should write
    returns    logits (batch, n_target, vocab) and
               alignment (batch, n_target, n_source), the weights of each step

Step i, for i = 0, 1, ..., n_target - 1, gives the logits for targets[:, i].
The token that it takes is

    START, which is 0                                for i = 0
    targets[:, i - 1]                                for i > 0, with forcing
    the token with the largest logit of step i - 1   for i > 0, without

With teacher forcing, the three steps for targets [3, 1, 2] take 0, 3 and 1.
Without, targets says only how many steps there are.

train_decoder changes the parameters of the decoder in `steps` steps of an
optimizer. Each step
  - draws some of all examples at random, such as 32 (or takes all of them);
  - calls the decoder with teacher forcing, and with zeros as the first state;
  - computes the loss: the cross entropy, as a mean over all tokens of the
    targets that were drawn;
  - moves the parameters against the gradient of this loss alone. Adam with a
    learning rate of 0.01 works well;
  - calls report(step, loss), unless report is None: with its number, from 1,
    and the loss as a number. A tensor of one number will do.

    encoder_states  (n_examples, n_source, d_encoder)
    targets         (n_examples, n_target)
    returns         the losses, a list of `steps` floats

The task that your decoder is trained on
  - It writes sequences of 6 digits backwards. The tokens 1 to 10 are the
    digits. An encoder state is the token as a one-hot vector of size 11 joined
    with 4 sines and 4 cosines of its place, so d_encoder is 19. Other sizes:
    vocab 11, d_embed 8, d_decoder 32, d_hidden 32.
  - After 300 steps on 512 examples, without teacher forcing, at least 98 % of
    fresh sequences must come out right as a whole, and the largest weight of
    each step must be on the token to write (in 98 % of the steps): the
    alignment is an anti-diagonal. The solution needs about 100 steps, and 3
    seconds for all of them. A minute is the limit.

Requirements
  - All sizes may differ, or be 1. n_source and n_target differ, too.
  - source_lens says how many places of the source may be attended to. What
    stands behind them has no effect, as long as it is finite and nothing
    overflows, and gets the weight 0. With length 0, weights and context are
    zeros, and gradients stay finite.
  - Gradients reach the first state, encoder_states and all parameters, through
    all steps.
  - The inputs have the dtype of the module: float32, or another one after a
    call such as decoder.to(torch.bfloat16).
  - The arguments are not modified, except the decoder that is trained, and may
    be views, such as transposed tensors.
  - A Python loop runs over the target tokens, because each step needs the
    state of the one before. None runs over the batch or the source.

Example

    W_state.weight  = [[1., 0.], [0., 1.]]
    W_source.weight = [[1., 0., 0.], [0., 1., 1.]]
    v.weight        = [[2., 1.]]
    state           = [[0.5, -1.]]
    encoder_states  = [[[1., 0., 0.], [0., 2., 0.], [-1., 0., 1.]]]

    scores  = [[1.0487, 1.6858, -0.9242]]
    weights = [[0.3300, 0.6241, 0.0459]], or with source_lens = [2]
              [[0.3459, 0.6541, 0.0000]]

AttentionDecoder(4, 2, 3, 5, 2), each of its parameters filled with
torch.linspace(-1, 1, n) for its n numbers, row by row, gives for

    targets        = [[3, 1, 2]]
    state          = [[1., 0., -1.]]
    encoder_states = [[[1., 0., 0., 0., 0.],
                       [0., 1., 0., 0., 0.],
                       [0., 0., 1., 0., 0.]]]

    alignment = [[[0.2879, 0.3289, 0.3832],
                  [0.2799, 0.3352, 0.3849],
                  [0.3021, 0.3369, 0.3611]]]
    logits    = [[[-1.4182, -0.8182, -0.2182, 0.3817],
                  [-4.2698, -1.4124, 1.4450, 4.3024],
                  [-3.1333, -1.3552, 0.4228, 2.2009]]]

Without teacher forcing, the last step gets the token 3 instead of 1:

    logits[:, 2] = [[-4.6772, -1.5963, 1.4846, 4.5656]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: Attention between two sequences, inside a recurrent decoder,
trained until it aligns them.

From: Neural Machine Translation by Jointly Learning to Align and Translate
(2015)
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0  # the token that comes before the first of every target


class AlignmentNetwork(nn.Module):
    """Scores how well each place of the source fits the decoder's state: v · tanh(W s + U h)."""

    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        """Return a score for each place of the source, (batch, n_source)."""
        hidden = torch.tanh(self.W_state(state).unsqueeze(1) + self.W_source(encoder_states))
        return self.v(hidden).squeeze(-1)


class AttentionDecoder(nn.Module):
    """A GRU that reads the last token and what it attends to in the source, and names the next."""

    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(
        self,
        token: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits (batch, vocab) for the next token, the new state and the weights."""
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores.unsqueeze(1), source_lens)
        context = torch.bmm(weights, encoder_states).squeeze(1)
        embedded = self.embedding(token)
        new_state = self.cell(torch.cat([embedded, context], dim=-1), state)
        logits = self.out(torch.cat([state, context, embedded], dim=-1))
        return logits, new_state, weights.squeeze(1)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Return logits (batch, n_target, vocab) and the alignment (batch, n_target, n_source)."""
        batch, n_target = targets.shape
        token = torch.full((batch,), START, dtype=torch.long, device=targets.device)
        all_logits, all_weights = [], []
        for i in range(n_target):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            all_logits.append(logits)
            all_weights.append(weights)
            token = targets[:, i] if teacher_forcing else logits.argmax(dim=-1)
        return torch.stack(all_logits, dim=1), torch.stack(all_weights, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a decoder in place, with teacher forcing, and return the loss of each step."""
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses = []
    for step in range(1, steps + 1):
        chosen = torch.randint(len(targets), (32,), device=targets.device)
        first = encoder_states.new_zeros(32, decoder.cell.hidden_size)
        logits, _ = decoder(targets[chosen], first, encoder_states[chosen])
        loss = F.cross_entropy(logits.flatten(0, 1), targets[chosen].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, losses[-1])
    return losses
