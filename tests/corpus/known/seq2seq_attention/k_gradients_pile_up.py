# mistake: no_zero_grad
# train_decoder never sets the gradients to zero, so each step moves by the sum of all gradients so far
from collections.abc import Callable

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.W_state = linear(d_decoder, d_hidden)
        self.W_source = linear(d_encoder, d_hidden)
        self.v = linear(d_hidden, 1)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        return self.v(torch.tanh(self.W_state(state[:, None]) + self.W_source(encoder_states))).squeeze(-1)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(
        self, token: Tensor, state: Tensor, encoder_states: Tensor, source_lens: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores[:, None], source_lens)[:, 0]
        context = torch.einsum("bn,bnd->bd", weights, encoder_states)
        embedding = self.embedding(token)
        state = self.cell(torch.cat([embedding, context], -1), state)
        return self.out(torch.cat([state, context, embedding], -1)), state, weights

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        token = torch.zeros_like(targets[:, 0]) + START
        steps = []
        for i in range(targets.shape[1]):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            steps.append((logits, weights))
            token = targets[:, i] if teacher_forcing else logits.argmax(-1)
        logits, weights = zip(*steps)
        return torch.stack(logits, 1), torch.stack(weights, 1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        batch = torch.randint(len(targets), (32,))
        state = torch.zeros(32, decoder.cell.hidden_size, dtype=encoder_states.dtype)
        logits, _ = decoder(targets[batch], state, encoder_states[batch])
        loss = F.cross_entropy(logits.flatten(0, 1), targets[batch].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step + 1, losses[-1])
    return losses
