# mistake: no_zero_grad

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
        projected = self.W_source(encoder_states) + self.W_state(state.unsqueeze(1))
        return self.v(projected.tanh()).squeeze(2)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)
        self.d_decoder = d_decoder

    def step(
        self,
        token: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        scores = self.alignment(state, encoder_states).unsqueeze(1)
        weights = masked_softmax(scores, source_lens)
        context = torch.bmm(weights, encoder_states).squeeze(1)
        embedding = self.embedding(token)
        state = self.cell(torch.cat((embedding, context), dim=1), state)
        logits = self.out(torch.cat((state, context, embedding), dim=1))
        return logits, state, weights.squeeze(1)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        token = targets.new_full((targets.shape[0],), START)
        outputs = []
        for target in targets.unbind(dim=1):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            outputs.append((logits, weights))
            token = target if teacher_forcing else logits.argmax(dim=1)
        logits, weights = zip(*outputs, strict=True)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        rows = torch.randint(0, targets.shape[0], (32,), device=targets.device)
        zeros = torch.zeros(32, decoder.d_decoder, dtype=encoder_states.dtype, device=encoder_states.device)
        logits, _ = decoder(targets[rows], zeros, encoder_states[rows])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets[rows].reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step + 1, loss.item())
    return losses
