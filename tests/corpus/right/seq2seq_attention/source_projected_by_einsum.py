# note: scores by einsum on the layers' weights, the loop fills python lists through a generator of tokens, and training takes slices of a shuffled order (torch.randperm)
from collections.abc import Callable

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        shapes = dict(W_state=(d_decoder, d_hidden), W_source=(d_encoder, d_hidden), v=(d_hidden, 1))
        for name, (a, b) in shapes.items():
            self.add_module(name, nn.Linear(a, b, bias=False))

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        a = torch.einsum("bd,hd->bh", state, self.W_state.weight)
        c = torch.einsum("bsd,hd->bsh", encoder_states, self.W_source.weight)
        return torch.einsum("bsh,oh->bs", torch.tanh(a[:, None] + c), self.v.weight)


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
        weights = masked_softmax(self.alignment(state, encoder_states)[:, None], source_lens)[:, 0]
        context = torch.einsum("bs,bsd->bd", weights, encoder_states)
        state = self.cell(torch.cat([embedded, context], -1), state)
        return self.out(torch.cat([state, context, embedded], -1)), state, weights

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        logits, alignment = [], []
        for i in range(targets.shape[1]):
            if i == 0:
                token = torch.full_like(targets[:, 0], START)
            elif teacher_forcing:
                token = targets[:, i - 1]
            else:
                token = logits[-1].argmax(-1)
            scores, state, weights = self.step(token, state, encoder_states, source_lens)
            logits.append(scores)
            alignment.append(weights)
        return torch.stack(logits, 1), torch.stack(alignment, 1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    n = len(targets)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses: list[float] = []
    for number in range(1, steps + 1):
        chosen = torch.randperm(n, device=targets.device)[:32]
        first = encoder_states.new_zeros(len(chosen), decoder.cell.hidden_size)
        logits, _ = decoder(targets[chosen], first, encoder_states[chosen])
        loss = F.cross_entropy(logits.transpose(1, 2), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(number, losses[-1])
    return losses
