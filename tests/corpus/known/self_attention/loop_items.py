# mistake: graph_cut
# scores_by_loops writes plain Python numbers (.item()) into its table, so no gradient reaches the inputs
import torch
from torch import Tensor


def scores_by_loops(inputs: Tensor) -> Tensor:
    n = inputs.size(0)
    attn_scores = torch.empty(n, n, dtype=inputs.dtype, device=inputs.device)
    for i in range(n):
        for j in range(n):
            attn_scores[i, j] = torch.dot(inputs[i], inputs[j]).item()
    return attn_scores


def scores_by_product(inputs: Tensor) -> Tensor:
    return torch.einsum("...id,...jd->...ij", inputs, inputs)


def normalise(scores: Tensor) -> Tensor:
    row_sums = torch.sum(scores, dim=-1).unsqueeze(-1)
    return scores / row_sums


def softmax_naive(scores: Tensor) -> Tensor:
    return torch.exp(scores) / torch.exp(scores).sum(dim=-1).unsqueeze(-1)


def softmax_stable(scores: Tensor) -> Tensor:
    largest = torch.max(scores, dim=-1, keepdim=True).values
    return softmax_naive(scores - largest)


def context_vectors(inputs: Tensor) -> Tensor:
    attn_weights = softmax_stable(scores_by_product(inputs))
    return torch.einsum("...ij,...jd->...id", attn_weights, inputs)
