# mistake: lengths_ignored

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
        mixed = torch.tanh(self.W_state(state)[:, None] + self.W_source(encoder_states))
        return torch.einsum("bnh,oh->bn", mixed, self.v.weight)


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
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores[:, None, :], source_lens)[:, 0, :]
        context = (weights[:, :, None] * encoder_states).sum(dim=1)
        embedding = self.embedding(token)
        new_state = self.cell(torch.hstack((embedding, context)), state)
        return self.out(torch.hstack((new_state, context, embedding))), new_state, weights

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        batch, n_target = targets.shape
        start = torch.full((batch, 1), START, dtype=targets.dtype, device=targets.device)
        forced = torch.cat((start, targets[:, :-1]), dim=1)
        token = forced[:, 0]
        logits, alignment = [], []
        for i in range(n_target):
            if teacher_forcing:
                token = forced[:, i]
            y, state, w = self.step(token, state, encoder_states)
            logits.append(y)
            alignment.append(w)
            token = y.argmax(-1)
        return torch.stack(logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses = []
    for step in range(1, steps + 1):
        batch = torch.randperm(targets.shape[0], device=targets.device)[:64]
        x, y = encoder_states[batch], targets[batch]
        optimizer.zero_grad()
        logits, _ = decoder(y, x.new_zeros(x.shape[0], decoder.cell.hidden_size), x)
        loss = F.cross_entropy(logits.flatten(end_dim=1), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, loss.item())
    return losses
