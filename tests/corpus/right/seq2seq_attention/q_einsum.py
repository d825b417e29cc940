from collections.abc import Callable

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        source = torch.einsum("he,bse->sbh", self.W_source.weight, encoder_states)
        hidden = (source + self.W_state(state)).tanh()
        return torch.einsum("sbh,oh->bs", hidden, self.v.weight)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores.unsqueeze(1), source_lens).squeeze(1)
        context = torch.einsum("bs,bse->be", weights, encoder_states)
        embedded = self.embedding(token)
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        return self.out(torch.cat([state, context, embedded], dim=-1)), state, weights

    def _steps(self, targets, state, encoder_states, source_lens, teacher_forcing):
        token = torch.full_like(targets[:, 0], START)
        for wanted in targets.unbind(dim=1):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            yield logits, weights
            token = wanted if teacher_forcing else logits.argmax(dim=-1)

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        steps = self._steps(targets, state, encoder_states, source_lens, teacher_forcing)
        logits, alignment = zip(*steps)
        return torch.stack(logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    parameters = list(decoder.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    losses = []
    for number in range(1, steps + 1):
        drawn = torch.randperm(len(targets), device=targets.device)[:32]
        source, wanted = encoder_states[drawn].detach(), targets[drawn]
        first = source.new_zeros(len(drawn), decoder.cell.hidden_size)
        logits, _ = decoder(wanted, first, source)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
            parameter.grad = gradient
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(number, losses[-1])
    return losses
