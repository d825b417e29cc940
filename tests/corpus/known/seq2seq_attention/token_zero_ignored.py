# mistake: zeros_left_out_of_the_loss
# the loss of train_decoder leaves out targets that are 0, as if START were padding, so it is not the mean over all tokens
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
        mixed = self.W_state(state).unsqueeze(1) + self.W_source(encoder_states)
        return self.v(mixed.tanh()).flatten(1)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        weights = masked_softmax(self.alignment(state, encoder_states).unsqueeze(1), source_lens)
        context = torch.matmul(weights, encoder_states).squeeze(1)
        word = self.embedding(token)
        state = self.cell(torch.cat((word, context), dim=-1), state)
        logits = self.out(torch.cat((state, context, word), dim=-1))
        return logits, state, weights.squeeze(1)

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        shifted = F.pad(targets, (1, 0), value=START)
        logits: list[Tensor] = []
        maps: list[Tensor] = []
        for i in range(targets.shape[1]):
            if teacher_forcing or i == 0:
                token = shifted[:, i]
            else:
                token = logits[-1].argmax(-1)
            out, state, w = self.step(token, state, encoder_states, source_lens)
            logits.append(out)
            maps.append(w)
        return torch.stack(logits, dim=1), torch.stack(maps, dim=1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    losses = []
    for step in range(1, steps + 1):
        rows = torch.randperm(len(targets), device=targets.device)[:32]
        state = encoder_states.new_zeros(len(rows), decoder.cell.hidden_size)
        logits, _ = decoder(targets[rows], state, encoder_states[rows])
        loss = criterion(logits.flatten(0, 1), targets[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, loss.item())
    return losses
