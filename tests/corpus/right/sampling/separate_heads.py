# right: separate heads style
import torch


def _check(temperature, top_k, top_p):
    if temperature < 0:
        raise ValueError("temperature must be at least 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p must be in (0, 1]")


def _row(row, temperature, top_k, top_p):
    if temperature == 0:
        out = torch.zeros_like(row)
        out[row.argmax()] = 1
        return out
    wide = row.to(torch.promote_types(row.dtype, torch.float32)) / temperature
    if top_k is not None and top_k < len(wide):
        limit = wide.sort(descending=True).values[top_k - 1]
        wide = torch.where(wide < limit, torch.full_like(wide, float("-inf")), wide)
    probabilities = wide.softmax(0)
    if top_p is not None:
        total = 0.0
        limit = None
        for p in probabilities.sort(descending=True).values.tolist():
            if total >= top_p:
                break
            limit = p
            total += p
        probabilities = torch.where(probabilities >= limit, probabilities, torch.zeros_like(probabilities))
        probabilities = probabilities / probabilities.sum()
    return probabilities.to(row.dtype)


def distribution(logits, temperature=1.0, top_k=None, top_p=None):
    _check(temperature, top_k, top_p)
    rows = logits.reshape(-1, logits.shape[-1])
    done = [_row(row, temperature, top_k, top_p) for row in rows]
    return torch.stack(done).reshape(logits.shape)


def draw(probabilities, u):
    token = 0
    for total in probabilities.cumsum(0):
        if total <= u:
            token += 1
    return token


def speculate(draft_tokens, draft, target, u, v):
    out = []
    for i in range(len(draft_tokens)):
        token = int(draft_tokens[i])
        p = target[i, token]
        q = draft[i, token]
        if u[i] * q < p:
            out.append(token)
        else:
            residual = torch.clamp(target[i] - draft[i], min=0)
            out.append(draw(residual / residual.sum(), v))
            return out
    out.append(draw(target[len(draft_tokens)], v))
    return out
