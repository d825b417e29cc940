# mistake: targets_not_shifted
# with teacher forcing, step i > 0 takes targets[:, i], the token it should write, instead of the one before
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
        hidden = torch.tanh(self.W_state(state)[:, None, :] + self.W_source(encoder_states))
        return self.v(hidden)[..., 0]


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        weights = masked_softmax(self.alignment(state, encoder_states)[:, None, :], source_lens)
        context = (weights @ encoder_states)[:, 0]
        embedded = self.embedding(token)
        new_state = self.cell(torch.cat([embedded, context], dim=1), state)
        return self.out(torch.cat([new_state, context, embedded], dim=1)), new_state, weights[:, 0]

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        outputs, maps = [], []
        logits = None
        for i in range(targets.size(1)):
            if i == 0:
                token = torch.full((targets.size(0),), START, dtype=torch.long, device=targets.device)
            elif teacher_forcing:
                token = targets[:, i]
            else:
                token = logits.argmax(1)
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            outputs.append(logits)
            maps.append(weights)
        return torch.stack(outputs, 1), torch.stack(maps, 1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    adam = torch.optim.Adam(decoder.parameters(), lr=1e-2)
    losses = []
    for step in range(1, steps + 1):
        pick = torch.randint(len(targets), (min(32, len(targets)),))
        x, y = encoder_states[pick], targets[pick]
        logits, _ = decoder(y, x.new_zeros(len(x), decoder.cell.hidden_size), x)
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        if report is not None:
            report(step, loss.item())
    return losses
