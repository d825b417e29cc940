# mistake: flattened_by_view
# the leading axes are merged by view, which raises an error for some views
import torch
from torch.nn import functional as F


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError(temp)
    batch = Q.shape[:-2]
    query = Q.view(-1, Q.shape[-2], Q.shape[-1])
    keys = K.view(-1, K.shape[-2], K.shape[-1])
    v = V.view(-1, V.shape[-2], V.shape[-1])
    scores = torch.bmm(query, keys.permute(0, 2, 1))
    probs = F.softmax(scores / temp, dim=2)
    out = torch.bmm(probs, v)
    return out.reshape(batch + (Q.shape[-2], V.shape[-1]))


def lookup(entries, key, temp=0.01):
    position = {keys: pos for pos, keys in enumerate(entries)}
    index = position[key]  # KeyError if missing
    eye = torch.eye(len(entries))
    values = torch.stack([torch.tensor(v, dtype=torch.float) for v in entries.values()])
    return attention(eye[[index]], eye, values, temp).flatten()
