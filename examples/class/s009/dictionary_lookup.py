import torch
import torch.nn.functional as F


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError("temp must be bigger than zero")

    scores = torch.matmul(Q, torch.transpose(K, -2, -1))
    scores = scores / temp
    weights = F.softmax(scores, dim=-1)
    output = torch.matmul(weights, V)
    return output


def lookup(entries, key, temp=0.01):
    if key not in entries.keys():
        raise KeyError("key not found: " + str(key))

    key_list = []
    value_list = []
    for k, v in entries.items():
        key_list.append(k)
        value_list.append(v)

    keys = torch.eye(len(key_list))
    values = torch.Tensor(value_list)
    query = keys[key_list.index(key)]
    query = query.unsqueeze(0)
    output = attention(query, keys, values, temp)
    return output.squeeze(0)
