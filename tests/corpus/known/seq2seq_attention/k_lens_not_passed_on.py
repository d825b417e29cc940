# mistake: lengths_ignored
# the decoder's forward does not pass source_lens to its steps, so all places of the source are attended to
import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

START = 0


class AlignmentNetwork(nn.Module):
    def __init__(self, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.W_state = nn.Linear(d_decoder, d_hidden, bias=False)
        self.W_source = nn.Linear(d_encoder, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, state: Tensor, encoder_states: Tensor) -> Tensor:
        s = self.W_state(state).unsqueeze(1)
        h = self.W_source(encoder_states)
        return self.v((s + h).tanh()).squeeze(2)


class AttentionDecoder(nn.Module):
    def __init__(self, vocab: int, d_embed: int, d_decoder: int, d_encoder: int, d_hidden: int):
        super().__init__()
        self.d_decoder = d_decoder
        self.embedding = nn.Embedding(vocab, d_embed)
        self.alignment = AlignmentNetwork(d_decoder, d_encoder, d_hidden)
        self.cell = nn.GRUCell(d_embed + d_encoder, d_decoder)
        self.out = nn.Linear(d_decoder + d_encoder + d_embed, vocab)

    def step(self, token, state, encoder_states, source_lens=None):
        e = self.embedding(token)
        scores = self.alignment(state, encoder_states).unsqueeze(1)
        weights = masked_softmax(scores, source_lens).squeeze(1)
        context = (weights.unsqueeze(2) * encoder_states).sum(1)
        state = self.cell(torch.cat((e, context), 1), state)
        return self.out(torch.cat((state, context, e), 1)), state, weights

    def forward(self, targets, state, encoder_states, source_lens=None, teacher_forcing=True):
        batch, n_target = targets.shape
        token = targets.new_full((batch,), START)
        logits, alignment = [], []
        for i in range(n_target):
            step_logits, state, weights = self.step(token, state, encoder_states)
            logits.append(step_logits)
            alignment.append(weights)
            if teacher_forcing:
                token = targets[:, i]
            else:
                token = step_logits.argmax(-1)
        return torch.stack(logits, 1), torch.stack(alignment, 1)


def train_decoder(decoder, encoder_states, targets, steps, report=None):
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    losses = []
    for step in range(1, steps + 1):
        i = torch.randperm(targets.shape[0])[:32]
        zeros = torch.zeros(len(i), decoder.d_decoder).to(encoder_states)
        logits, _ = decoder(targets[i], zeros, encoder_states[i])
        loss = cross_entropy(logits.mT, targets[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(step, loss.item())
    return losses
