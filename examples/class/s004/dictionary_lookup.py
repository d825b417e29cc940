import torch


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError("temp")
    # softmax by hand, minus the maximum so exp does not overflow
    s = torch.einsum("...id,...jd->...ij", Q, K) / temp
    s = s - s.max(dim=-1, keepdim=True).values.detach()
    e = s.exp()
    w = e / e.sum(dim=-1, keepdim=True)
    return torch.einsum("...ij,...jv->...iv", w, V)


def lookup(entries, key, temp=0.01):
    wanted = [float(k == key) for k in entries]
    if sum(wanted) == 0:
        raise KeyError(key)
    Q = torch.tensor([wanted])
    K = torch.diag(torch.ones(len(entries)))
    V = torch.tensor([[float(v) for v in row] for row in entries.values()])
    return attention(Q, K, V, temp).squeeze(0)
