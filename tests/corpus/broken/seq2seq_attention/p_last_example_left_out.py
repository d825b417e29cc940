# promise: The last example is never drawn in training.
from collections.abc import Callable

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0  # the token that comes before the first of every target


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        features = torch.tanh(self.W_state(state).unsqueeze(1) + self.W_source(encoder_states))
        return self.v(features).squeeze(-1)


class AttentionDecoder(nn.Module):
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
        weights = masked_softmax(self.alignment(state, encoder_states).unsqueeze(1), source_lens)
        context = torch.bmm(weights, encoder_states).squeeze(1)
        embedded = self.embedding(token)
        new_state = self.cell(torch.cat([embedded, context], dim=1), state)
        logits = self.out(torch.cat([new_state, context, embedded], dim=1))
        return logits, new_state, weights.squeeze(1)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        token = torch.full((targets.shape[0],), START, dtype=torch.int64, device=targets.device)
        logits, alignment = [], []
        for i in range(targets.shape[1]):
            step_logits, state, weights = self.step(token, state, encoder_states, source_lens)
            logits.append(step_logits)
            alignment.append(weights)
            token = targets[:, i] if teacher_forcing else step_logits.argmax(dim=1)
        return torch.stack(logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    last = max(len(targets) - 1, 1)
    losses = []
    for step in range(1, steps + 1):
        chosen = torch.randint(0, last, (32,), device=targets.device)
        x, y = encoder_states[chosen], targets[chosen]
        optimizer.zero_grad()
        logits, _ = decoder(y, x.new_zeros(len(x), decoder.cell.hidden_size), x)
        loss = F.cross_entropy(logits.transpose(1, 2), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, loss.item())
    return losses
