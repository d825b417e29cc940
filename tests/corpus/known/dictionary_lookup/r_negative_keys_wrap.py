# mistake: negative_keys_from_the_end
import torch


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError("temperature must be positive")
    attn = torch.softmax(torch.matmul(Q, K.mT) / temp, dim=-1)
    return torch.matmul(attn, V)


def lookup(entries, key, temp=0.01):
    if key not in entries:
        raise KeyError(key)
    ks = list(entries.keys())
    vs = [entries[k] for k in ks]
    eye = torch.eye(max(ks) + 1)
    K = eye[ks]                      # (n, max+1)
    Q = eye[key].unsqueeze(0)        # (1, max+1)
    V = torch.tensor(vs, dtype=torch.float32)
    return attention(Q, K, V, temp).squeeze(0)
