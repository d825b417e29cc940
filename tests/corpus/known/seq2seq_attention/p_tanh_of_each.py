# mistake: tanh_of_each_part
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
        of_state = torch.tanh(self.W_state(state))
        of_source = torch.tanh(self.W_source(encoder_states))
        both = of_source + of_state.unsqueeze(1).expand_as(of_source)
        return self.v(both).flatten(1)


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
        embedded = self.embedding(token)
        weights = masked_softmax(self.alignment(state, encoder_states).unsqueeze(1), source_lens)
        context = torch.matmul(weights, encoder_states)[:, 0]
        new = self.cell(torch.cat([embedded, context], -1), state)
        return self.out(torch.cat([new, context, embedded], -1)), new, weights[:, 0]

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        batch, length = targets.shape
        starts = torch.full((batch, 1), START, dtype=targets.dtype, device=targets.device)
        forced = torch.cat((starts, targets), dim=1)
        logits_list: list[Tensor] = []
        weights_list: list[Tensor] = []
        for i in range(length):
            if teacher_forcing or not logits_list:
                token = forced[:, i]
            else:
                token = logits_list[-1].argmax(-1)
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            logits_list += [logits]
            weights_list += [weights]
        return torch.stack(logits_list, 1), torch.stack(weights_list, 1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    opt = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses: list[float] = []
    for step in range(steps):
        idx = torch.multinomial(torch.ones(len(targets)), min(32, len(targets)))
        x, y = encoder_states[idx], targets[idx]
        logits, _ = decoder(y, x.new_zeros(len(x), decoder.cell.hidden_size), x)
        loss = F.nll_loss(F.log_softmax(logits, -1).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(float(loss.detach()))
        if report is not None:
            report(step + 1, losses[-1])
    return losses
