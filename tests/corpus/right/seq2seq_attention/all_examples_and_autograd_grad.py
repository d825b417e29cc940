# note: training uses all examples in each step, torch.autograd.grad instead of backward, and AdamW without decay; the outputs are written into preallocated lists and the cell is called on a joined slice
from collections.abc import Callable

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.v = nn.Linear(d_hidden, 1, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        fits = self.W_source(encoder_states) + self.W_state(state).unsqueeze(-2)
        return self.v(fits.tanh()).squeeze(-1)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.d_decoder = d_decoder
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.embedding = nn.Embedding(vocab, d_embed)
        self.cell = nn.GRUCell(input_size=d_embed + d_encoder, hidden_size=d_decoder)
        self.out = nn.Linear(in_features=d_decoder + d_encoder + d_embed, out_features=vocab)

    def step(
        self,
        token: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        w = masked_softmax(self.alignment(state, encoder_states).unsqueeze(1), source_lens)
        context = (w @ encoder_states).squeeze(1)
        e = self.embedding(token)
        new_state = self.cell(torch.hstack((e, context)), state)
        return self.out(torch.hstack((new_state, context, e))), new_state, w.squeeze(1)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        n_target = targets.size(1)
        inputs = torch.cat([torch.full_like(targets[:, :1], START), targets[:, :-1]], dim=1)
        token, rows = inputs[:, 0], [None] * n_target
        for i in range(n_target):
            logits, state, w = self.step(token, state, encoder_states, source_lens)
            rows[i] = (logits, w)
            if i + 1 < n_target:
                token = inputs[:, i + 1] if teacher_forcing else logits.max(dim=-1).indices
        return tuple(torch.stack(column, dim=1) for column in zip(*rows))


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    parameters = list(decoder.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.0)
    history = []
    for step in range(steps):
        state = torch.zeros(
            targets.size(0), decoder.d_decoder, dtype=encoder_states.dtype, device=encoder_states.device
        )
        logits, _ = decoder(targets, state, encoder_states)
        log_p = logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1))
        loss = -log_p.mean()
        for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
            p.grad = g
        optimizer.step()
        history.append(float(loss.detach()))
        if report is not None:
            report(step + 1, history[-1])
    return history
