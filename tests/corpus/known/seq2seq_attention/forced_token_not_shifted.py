# mistake: targets_not_shifted

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
        s = self.W_state(state)[:, None, :]
        h = self.W_source(encoder_states)
        return self.v(torch.tanh(s + h))[..., 0]


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
        e = self.embedding(token)
        a = masked_softmax(self.alignment(state, encoder_states)[:, None], source_lens)[:, 0]
        c = torch.einsum("bn,bne->be", a, encoder_states)
        s = self.cell(torch.cat((e, c), -1), state)
        return self.out(torch.cat((s, c, e), -1)), s, a

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        batch, n_target = targets.shape
        logits, alignment = [], []
        for i in range(n_target):
            if i == 0:
                token = torch.full((batch,), START, dtype=torch.long, device=targets.device)
            elif teacher_forcing:
                token = targets[:, i]
            else:
                token = logits[-1].argmax(dim=-1)
            y, state, a = self.step(token, state, encoder_states, source_lens)
            logits.append(y)
            alignment.append(a)
        return torch.stack(logits, 1), torch.stack(alignment, 1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    adam = torch.optim.Adam(decoder.parameters(), lr=0.01)
    history: list[float] = []
    for number in range(1, steps + 1):
        some = torch.randperm(len(targets), device=targets.device)[:32]
        first = encoder_states.new_zeros(len(some), decoder.cell.hidden_size)
        logits, _ = decoder(targets[some], first, encoder_states[some])
        loss = F.cross_entropy(logits.transpose(1, 2), targets[some])
        adam.zero_grad()
        loss.backward()
        adam.step()
        history.append(loss.item())
        if report:
            report(number, loss.item())
    return history
