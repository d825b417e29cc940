# right: nn.SiLU as a module, a dict of act functions as in Hugging Face, and a loop that counts up to the multiple.
from torch import nn

ACT2FN = {"silu": nn.SiLU, "relu": nn.ReLU}


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0, hidden_act="silu"):
        super().__init__()
        self.W_gate, self.W_up = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.W_down = nn.Linear(d_ff, d_model, bias=False)
        self.act_fn = ACT2FN[hidden_act]()
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, hidden_states):
        gate = self.act_fn(self.W_gate(hidden_states))
        hidden = gate.mul(self.W_up(hidden_states))
        hidden = self.dropout(hidden)
        return self.W_down(hidden)


def hidden_size(d_model, multiple=256):
    if not multiple >= 1:
        raise ValueError(multiple)
    size = 8 * d_model // 3
    rest = size % multiple
    if rest:
        size += multiple - rest
    return size
