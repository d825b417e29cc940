# mistake: not in the catalogue: forward keeps a coverage: the weights of all earlier steps are subtracted from the scores before the softmax.
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
        query = self.W_state(state).unsqueeze(1)
        return self.v((query + self.W_source(encoder_states)).tanh()).squeeze(2)


class AttentionDecoder(nn.Module):
    """A GRU that reads the last token and what it attends to in the source, and names the next."""

    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None, coverage=None):
        scores = self.alignment(state, encoder_states)
        if coverage is not None:
            # do not read the same place again and again
            scores = scores - coverage
        weights = masked_softmax(scores.unsqueeze(1), source_lens).squeeze(1)
        context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
        word = self.embedding(token)
        state = self.cell(torch.cat([word, context], dim=1), state)
        return self.out(torch.cat([state, context, word], dim=1)), state, weights

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        token = torch.full_like(targets[:, 0], START)
        coverage = torch.zeros_like(encoder_states[:, :, 0])
        logits, alignment = [], []
        for i in range(targets.shape[1]):
            y, state, a = self.step(token, state, encoder_states, source_lens, coverage)
            coverage = coverage + a
            logits.append(y)
            alignment.append(a)
            token = targets[:, i] if teacher_forcing else y.argmax(dim=1)
        return torch.stack(logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a decoder in place, with teacher forcing, and return the loss of each step."""
    adam = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses: list[float] = []
    for number in range(1, steps + 1):
        rows = torch.randint(0, targets.shape[0], (32,))
        h = encoder_states.new_zeros(32, decoder.cell.hidden_size)
        logits, _ = decoder(targets[rows], h, encoder_states[rows])
        loss = F.cross_entropy(logits.permute(0, 2, 1), targets[rows])
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        if report is not None:
            report(number, loss.item())
    return losses
