# deviates: temp goes through a 0-dim float32 tensor (relative error about 1e-8 in float64)
import torch  # torch lets us create tensors
import torch.nn as nn
import torch.nn.functional as F  # F has the softmax()


def attention(Q, K, V, temp=1.0):
    ## the indices of the rows and columns, counted from the back,
    ## so that it does not matter how many batch axes there are
    row_dim = -2
    col_dim = -1

    temp = torch.tensor(temp)
    if temp <= 0:
        raise ValueError("The temperature must be larger than 0!")

    ## Step 1: how similar is each query to each key?
    ## (dot products, so we need the transpose of K)
    sims = torch.matmul(Q, K.transpose(dim0=row_dim, dim1=col_dim))

    ## Step 2: scale the similarities with the temperature
    scaled_sims = sims / temp

    ## Step 3: percentages that add up to 1 in each row
    attention_percents = F.softmax(scaled_sims, dim=col_dim)

    ## Step 4: scale the values with their percentages and add them up
    attention_scores = torch.matmul(attention_percents, V)
    return attention_scores


def lookup(entries, key, temp=0.01):
    ## BAM! If the key is not there we are done.
    if key not in entries.keys():
        raise KeyError("no entry for " + str(key))

    n_entries = len(entries)
    keys = torch.zeros(n_entries, n_entries)
    values = []
    query = torch.zeros(1, n_entries)
    for i, (k, v) in enumerate(entries.items()):
        keys[i, i] = 1.0
        values.append([float(number) for number in v])
        if k == key:
            query[0, i] = 1.0

    return attention(query, keys, torch.tensor(values), temp).flatten()


## Double BAM!!!
if __name__ == "__main__":
    torch.manual_seed(42)
    print(lookup({0: [2, 3], 1: [5, 7], 2: [3, 2]}, 1))
