# right: Adam is written by hand with autograd.grad, and all examples are taken in each step

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
        source = self.W_source(encoder_states).transpose(0, 1)  # (n_source, batch, d_hidden)
        return self.v(torch.tanh(source + self.W_state(state))).squeeze(-1).t()


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
        scores = self.alignment(state, encoder_states).unsqueeze(-2)
        weights = masked_softmax(scores, source_lens)
        context = torch.matmul(weights, encoder_states).squeeze(-2)
        embedding = self.embedding(token)
        state = self.cell(torch.cat((embedding, context), -1), state)
        logits = self.out(torch.cat((state, context, embedding), -1))
        return logits, state, weights.squeeze(-2)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        written: list[tuple[Tensor, Tensor]] = []
        token = torch.full_like(targets[:, 0], START, dtype=torch.int64)
        while len(written) < targets.shape[1]:
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            token = targets[:, len(written)] if teacher_forcing else logits.detach().argmax(-1)
            written.append((logits, weights))
        return (
            torch.stack([logits for logits, _ in written], dim=1),
            torch.stack([weights for _, weights in written], dim=1),
        )


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    parameters = list(decoder.parameters())
    first = [torch.zeros_like(p) for p in parameters]
    second = [torch.zeros_like(p) for p in parameters]
    source = encoder_states.detach()
    state = torch.zeros(
        len(targets), decoder.cell.hidden_size, dtype=source.dtype, device=source.device
    )
    losses = []
    for number in range(1, steps + 1):
        logits, _ = decoder(targets, state, source)
        loss = F.cross_entropy(logits.movedim(2, 1), targets)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, g, m, s in zip(parameters, gradients, first, second, strict=True):
                m.mul_(0.9).add_(g, alpha=0.1)
                s.mul_(0.999).addcmul_(g, g, value=0.001)
                mean = m / (1 - 0.9**number)
                spread = (s / (1 - 0.999**number)).sqrt() + 1e-8
                p.sub_(0.01 * mean / spread)
        losses.append(loss.item())
        if report is not None:
            report(number, loss.detach())
    return losses
