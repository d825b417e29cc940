# right
import torch as t
from adamw import AdamW, clip_gradients, learning_rate
from byte_pair_encoding import encode, train
from cross_entropy import cross_entropy
from modern_block import ModernBlock
from rms_norm import RMSNorm
from sampling import distribution, draw
from swiglu import hidden_size
from torch import nn


def learned_tokens(data, num_merges):
    return (m := train(data, num_merges)), t.tensor(encode(data, m))


class TinyLlama(nn.Module):
    def __init__(s, vocab, d_model, num_heads, num_kv_heads, num_layers, context_length, dropout):
        super().__init__()
        s.context_length, s.norm = context_length, RMSNorm(d_model)
        s.token_embedding = nn.Embedding.from_pretrained(t.randn(vocab, d_model) / 10, freeze=False)
        B = lambda: ModernBlock(d_model, num_heads, num_kv_heads, hidden_size(d_model, 8), context_length, dropout)
        s.blocks = nn.ModuleList([B() for _ in range(num_layers)])
    def forward(s, tokens, caches=None):
        E, c = s.token_embedding.weight, []
        x = E[tokens]
        for b, k in zip(s.blocks, caches or len(s.blocks) * [None]):
            x, k = b(x, k); c += [k]
        return s.norm(x) @ E.mT, c


def train_llama(model, tokens, steps, batch_size=16, peak=5e-3, warmup=25, report=None):
    o, n = AdamW(model.train().parameters(), weight_decay=.1), model.context_length + 1
    for i in range(1, steps + 1):
        w = tokens[t.randint(len(tokens) - n + 1, (batch_size, 1)) + t.arange(n)]
        o.zero_grad(); (l := cross_entropy(model(w[:, :-1])[0], w[:, 1:])).backward()
        clip_gradients(model.parameters(), 1)
        o.param_groups[0]["lr"] = learning_rate(i, peak, warmup, steps, peak * .1)
        o.step(); report and report(i, l.item())
    model.eval()


def bits_per_byte(model, data, merges):
    x = t.tensor(encode(data, merges)); n = model.context_length
    with t.no_grad():
        return sum(
            cross_entropy(model(x[None, i : i + n][:, : len(x) - 1 - i])[0][0], y := x[i + 1 : i + 1 + n]).item() * len(y)
            for i in range(0, len(x) - 1, n)
        ) / t.tensor(2.).double().log().item() / len(data)


def continue_text(model, prompt, uniforms, temperature=1.0, top_k=None, top_p=None):
    c, new, out = None, prompt[None], [prompt]
    with t.no_grad():
        for u in uniforms:
            l, c = model(new, c)
            new = t.tensor([[draw(distribution(l[0, -1], temperature, top_k, top_p), float(u))]])
            out.append(new[0])
    return t.cat(out)
