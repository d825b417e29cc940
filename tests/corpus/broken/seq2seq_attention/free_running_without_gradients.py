# broken: Gradients reach the first state, encoder_states and all parameters, through all steps: without teacher forcing, the state is detached after each step
from collections.abc import Callable

import torch
import torch.nn.functional as F
from masked_softmax import masked_softmax
from torch import Tensor, nn

START = 0  # the token that comes before the first of every target


class AlignmentNetwork(nn.Module):
    """Scores how well each place of the source fits the decoder's state."""

    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        """Return a score for each place of the source, (batch, n_source)."""
        hidden = torch.tanh(self.W_state(state).unsqueeze(1) + self.W_source(encoder_states))
        return self.v(hidden).squeeze(-1)


class AttentionDecoder(nn.Module):
    """A GRU that reads the last token and what it attends to in the source, and names the next."""

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
        """Return the logits (batch, vocab) for the next token, the new state and the weights."""
        scores = self.alignment(state, encoder_states)
        weights = masked_softmax(scores.unsqueeze(1), source_lens)
        context = (weights @ encoder_states).squeeze(1)
        embedded = self.embedding(token)
        new_state = self.cell(torch.cat((embedded, context), dim=-1), state)
        logits = self.out(torch.cat((new_state, context, embedded), dim=-1))
        return logits, new_state, weights.squeeze(1)

    def forward(
        self,
        targets: Tensor,
        state: Tensor,
        encoder_states: Tensor,
        source_lens: Tensor | None = None,
        teacher_forcing: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Return logits (batch, n_target, vocab) and the alignment (batch, n_target, n_source)."""
        all_logits, alignment = [], []
        token = torch.full_like(targets[:, 0], START)
        for i in range(targets.shape[1]):
            logits, state, weights = self.step(token, state, encoder_states, source_lens)
            all_logits.append(logits)
            alignment.append(weights)
            if teacher_forcing:
                token = targets[:, i]
            else:
                token, state = logits.argmax(dim=-1), state.detach()
        return torch.stack(all_logits, dim=1), torch.stack(alignment, dim=1)


def train_decoder(
    decoder: AttentionDecoder,
    encoder_states: Tensor,
    targets: Tensor,
    steps: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train a decoder in place, with teacher forcing, and return the loss of each step."""
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    n_examples, d_decoder = len(targets), decoder.cell.hidden_size
    losses = []
    for step in range(1, steps + 1):
        drawn = torch.randint(n_examples, (32,), device=targets.device)
        asked = targets[drawn]
        state = encoder_states.new_zeros(len(asked), d_decoder)
        logits, _ = decoder(asked, state, encoder_states[drawn])
        loss = F.cross_entropy(logits.flatten(0, 1), asked.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, losses[-1])
    return losses
