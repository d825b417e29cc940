import torch


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError("temp")
    similarities = Q @ K.transpose(-2, -1) / temp
    return torch.nn.Softmax(dim=-1)(similarities) @ V


def lookup(entries, key, temp=0.01):
    names = {name: number for number, name in enumerate(entries.keys())}
    if key not in names:
        raise KeyError(key)
    one_hot = torch.nn.functional.one_hot(torch.tensor([names[key]]), len(names)).float()
    values = torch.tensor(list(entries.values())).float()
    return attention(one_hot, torch.eye(len(names)), values, temp).squeeze()
