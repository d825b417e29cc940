# note: set_weights shares one diagonal between query and key, BOS has a longer row, and logits are minus the squared distance of 1 / (1 + count); training draws batches from a TensorDataset with a sampler
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


class CountingTransformer(nn.Module):
    def __init__(self, vocab: int, length: int, d_model: int):
        super().__init__()
        self.sizes = (vocab, length, d_model)
        self.embedding = nn.Embedding(vocab + 1, d_model)
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.linear1, self.linear2 = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, length + 1)

    def forward(self, tokens: Tensor) -> Tensor:
        vocab, length, d_model = self.sizes
        batch, n = tokens.shape
        if n > length:
            raise ValueError("too many tokens")
        e = self.embedding.weight
        x = torch.cat([e[vocab].expand(batch, 1, d_model), e[tokens]], dim=1)
        attention = torch.softmax(self.W_query(x) @ self.W_key(x).mT * d_model**-0.5, dim=2)
        x = torch.baddbmm(x, attention, self.W_value(x))
        return self.linear2(F.relu(self.linear1(x))).narrow(1, 1, n)


def train_counter(model, sequences: Tensor, counts: Tensor, steps: int, report=None) -> None:
    if steps == 0:
        return
    data = TensorDataset(sequences, counts)
    sampler = RandomSampler(data, replacement=True, num_samples=128 * steps)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.001, total_iters=steps)
    for step, (x, y) in enumerate(DataLoader(data, batch_size=128, sampler=sampler), start=1):
        optimizer.zero_grad(set_to_none=True)
        log_p = model(x).log_softmax(-1)
        loss = -log_p.gather(2, y.long().unsqueeze(2)).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        if report is not None:
            report(step, loss.item())


def set_weights(model: nn.Module) -> None:
    vocab, length, d = model.sizes
    if d < vocab + 1:
        raise ValueError(f"d_model = {d} is less than vocab + 1 = {vocab + 1}")
    one = torch.eye(d)
    # key of BOS: 1 in all columns of tokens; query of a token: its own column
    key = one.clone()
    key[:vocab, vocab] = 1
    key[vocab, vocab] = 0
    scale = (50 * d**0.5) ** 0.5
    value = torch.zeros(d, d)
    value[vocab, vocab] = 1
    first = torch.zeros(4 * d, d)
    first[0, vocab] = 1
    z = 1 / torch.arange(1, length + 2, dtype=torch.float64)
    second = torch.zeros(length + 1, 4 * d, dtype=torch.float64)
    second[:, 0] = 2 * z
    weights = {
        "embedding.weight": one[: vocab + 1],
        "W_query.weight": scale * one,
        "W_key.weight": scale * key,
        "W_value.weight": value,
        "linear1.weight": first,
        "linear1.bias": torch.zeros(4 * d),
        "linear2.weight": 1e4 * second,
        "linear2.bias": -1e4 * z**2,
    }
    model.load_state_dict(weights)
