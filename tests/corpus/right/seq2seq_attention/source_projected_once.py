# right: forward projects the source and embeds the forced tokens once, before the loop, and writes into empty tensors made beforehand

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

    def with_projected(self, state: Tensor, projected: Tensor) -> Tensor:
        return self.v(torch.tanh(self.W_state(state).unsqueeze(1) + projected)).flatten(1)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        return self.with_projected(state, self.W_source(encoder_states))


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def _advance(
        self,
        embedded: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        projected: Tensor,
        source_lens: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        scores = self.alignment.with_projected(state, projected)
        weights = masked_softmax(scores[:, None], source_lens)[:, 0]
        context = torch.einsum("bne,bn->be", encoder_states, weights)
        state = self.cell(torch.cat((embedded, context), dim=-1), state)
        return self.out(torch.cat((state, context, embedded), dim=-1)), state, weights

    def step(
        self,
        token: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        projected = self.alignment.W_source(encoder_states)
        return self._advance(self.embedding(token), state, encoder_states, projected, source_lens)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        batch, n_target = targets.shape
        projected = self.alignment.W_source(encoder_states)
        logits = projected.new_empty(batch, n_target, self.out.out_features)
        alignment = projected.new_empty(batch, n_target, encoder_states.shape[1])
        if teacher_forcing:
            embedded = self.embedding(F.pad(targets[:, :-1], (1, 0), value=START))
        else:
            token = torch.full((batch,), START, device=targets.device)
        for i in range(n_target):
            now = embedded[:, i] if teacher_forcing else self.embedding(token)
            y, state, weights = self._advance(now, state, encoder_states, projected, source_lens)
            logits[:, i] = y
            alignment[:, i] = weights
            if not teacher_forcing:
                token = y.max(dim=-1).indices
        return logits, alignment


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=0.01, weight_decay=0.0)
    n_examples = targets.shape[0]
    size = min(48, n_examples)
    deck = torch.empty(0, dtype=torch.int64)
    losses: list[float] = []
    while len(losses) < steps:
        if len(deck) < size:
            deck = torch.randperm(n_examples)
        hand, deck = deck[:size].to(targets.device), deck[size:]
        wanted = targets.index_select(0, hand)
        source = encoder_states.detach().index_select(0, hand)
        state = source.new_zeros(size, decoder.cell.hidden_size)
        logits, _ = decoder(wanted, state, source)
        log_p = logits.log_softmax(dim=-1).gather(2, wanted.unsqueeze(2))
        loss = -log_p.mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(len(losses), losses[-1])
    return losses
