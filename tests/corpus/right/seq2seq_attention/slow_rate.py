# note: Adam with a learning rate of 0.003
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
        """Return a score for each place of the source, (batch, n_source).

        state           (batch, d_decoder)
        encoder_states  (batch, n_source, d_encoder)
        """
        query = self.W_state(state).unsqueeze(1)  # (batch, 1, d_hidden)
        keys = self.W_source(encoder_states)  # (batch, n_source, d_hidden)
        hidden = torch.tanh(query + keys)  # (batch, n_source, d_hidden)
        return self.v(hidden).squeeze(-1)  # (batch, n_source)


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
        """Return the logits (batch, vocab) for the next token, the new state and the weights.

        token           (batch,), the one before
        state           (batch, d_decoder), the one before
        encoder_states  (batch, n_source, d_encoder)
        source_lens     None or (batch,)
        returns         (batch, vocab), (batch, d_decoder) and (batch, n_source)
        """
        embedded = self.embedding(token)  # (batch, d_embed)
        # The cell reads the context, so only the state from before it is there to ask with.
        scores = self.alignment(state, encoder_states).unsqueeze(1)  # (batch, 1, n_source)
        weights = masked_softmax(scores, source_lens)  # (batch, 1, n_source)
        context = (weights @ encoder_states).squeeze(1)  # (batch, d_encoder)
        new_state = self.cell(torch.cat([embedded, context], dim=-1), state)  # (batch, d_decoder)
        logits = self.out(torch.cat([new_state, context, embedded], dim=-1))  # (batch, vocab)
        return logits, new_state, weights.squeeze(1)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Return logits (batch, n_target, vocab) and the alignment (batch, n_target, n_source).

        targets         (batch, n_target), the tokens that are asked for
        state           (batch, d_decoder), the first one
        encoder_states  (batch, n_source, d_encoder)
        source_lens     None or (batch,)
        """
        token = torch.full_like(targets[:, 0], START)  # (batch,)
        all_logits, alignment = [], []
        for target in targets.unbind(dim=1):  # (batch,)
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            all_logits.append(logits)
            alignment.append(weights)
            token = target if teacher_forcing else logits.argmax(dim=-1)  # (batch,)
        return torch.stack(all_logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a decoder in place, with teacher forcing, and return the loss of each step.

    encoder_states  (n_examples, n_source, d_encoder)
    targets         (n_examples, n_target)
    report          None, or called after each step with its number, from 1, and its loss
    """
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.003)
    losses = []
    for step in range(1, steps + 1):
        drawn = torch.randint(len(targets), (32,))  # (batch,)
        source, target = encoder_states[drawn], targets[drawn]
        state = source.new_zeros(len(drawn), decoder.cell.hidden_size)  # (batch, d_decoder)
        logits, _ = decoder(target, state, source)  # (batch, n_target, vocab)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())  # ()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, losses[-1])
    return losses
