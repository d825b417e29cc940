"""The references of today's models are what torch and closed forms say they are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from comparing import assert_close
from reference_cases import (
    SEEDS,
    References,
    loss_case,
    sizes,
)
from torch import Tensor, nn

from grader.testing import Rng


def test_slopes_are_those_of_two_powers_of_two(references: References) -> None:
    for n in range(1, 66):
        power = 2 ** (len(f"{n:b}") - 1)
        exponents = [-8 * h / power for h in range(1, power + 1)]
        exponents += [-4 * (2 * k + 1) / power for k in range(n - power)]
        wanted = torch.tensor(exponents).double().exp2()
        assert_close(references["sliding_window"].alibi_slopes(n), wanted, f"{n} slopes")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_window_of_one_gives_the_values(seed: int, references: References) -> None:
    Q, K, V = (Rng(seed + n).randn(2, 3, 5, 4) for n in range(3))
    found = references["sliding_window"].sliding_attention(Q, K, V, 1, Rng(seed).rand(3))
    assert_close(found, V, "the output")


@pytest.mark.parametrize("seed", SEEDS)
def test_rms_norm_of_centred_tokens_is_layer_norm(seed: int, references: References) -> None:
    x = Rng(seed).randn(*sizes(Rng(seed), 3))
    x = x - x.mean(dim=-1, keepdim=True)
    norm, d_model = references["rms_norm"].RMSNorm, x.shape[-1]
    assert_close(norm(d_model)(x), F.layer_norm(x, (d_model,)), "the output of a new layer")


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e6])
def test_rms_norm_without_eps_ignores_the_size_of_a_token(
    factor: float, references: References
) -> None:
    x, norm = Rng(1).randn(2, 5, 6), references["rms_norm"].RMSNorm(6, eps=0.0)
    assert_close(norm(x * factor), norm(x), "the output of a new layer")


def test_a_gate_that_gates_itself_squares_what_passes(references: References) -> None:
    net, z = references["swiglu"].SwiGLU(5, 5).double(), Rng(1).randn(3, 5)
    for layer in (net.W_gate, net.W_up, net.W_down):
        nn.init.eye_(layer.weight)
    assert_close(net(z), z**2 * z.sigmoid(), "the output")
    nn.init.zeros_(net.W_gate.weight)
    assert_close(net(z), torch.zeros_like(z), "the output behind a gate of zero")


def modern(references: References) -> tuple[nn.Module, Tensor]:
    """A block with parameters that are not small, and five tokens."""
    block, rng = references["modern_block"].ModernBlock(16, 4, 2, 6, 16).double(), Rng(1)
    for parameter in block.parameters():
        parameter.data.copy_(rng.randn(*parameter.shape) * 0.5)
    return block, rng.randn(1, 5, 16)


@pytest.mark.parametrize("cuts", range(16))
def test_a_modern_block_reads_five_tokens_in_any_chunks(cuts: int, references: References) -> None:
    block, x = modern(references)
    ends = [i + 1 for i in range(4) if cuts >> i & 1]
    cache, outputs = None, []
    for chunk in x.tensor_split(ends, dim=1):
        output, cache = block(chunk, cache)
        outputs.append(output)
    whole, kept = block(x)
    assert_close(torch.cat(outputs, dim=1), whole, "the output")
    assert_close(torch.stack(cache), torch.stack(kept), "the cache")


def test_a_modern_block_whose_parts_add_nothing_is_the_identity(references: References) -> None:
    block, x = modern(references)
    nn.init.zeros_(block.attention.out_proj.weight)
    nn.init.zeros_(block.feed_forward.W_down.weight)
    assert_close(block(x)[0], x, "the output")


def test_the_size_of_llama_is_a_multiple_of_256(references: References) -> None:
    sizes_of = {4096: 11008, 5120: 13824}  # d_model: d_ff, of the models with 7 and 13 billion
    assert {each: references["swiglu"].hidden_size(each) for each in sizes_of} == sizes_of


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gradient_by_hand_is_that_of_autograd(seed: int, references: References) -> None:
    case, module = loss_case(Rng(seed), references["cross_entropy"]), references["cross_entropy"]
    logits = case.leaves["logits"]
    (wanted,) = torch.autograd.grad(case.function(module)(case.leaves), logits)
    found = module.cross_entropy_gradient(logits.detach(), **case.options)
    assert_close(found, wanted, "the gradient")
    assert_close(found.sum(-1), torch.zeros_like(found[..., 0]), "the sum of each row")


def test_a_loss_of_nothing_is_zero(references: References) -> None:
    logits, targets = Rng(0).randn(3, 4).requires_grad_(), torch.full((3,), -100)
    loss = references["cross_entropy"].cross_entropy(logits, targets, label_smoothing=0.3)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss == 0
    assert not gradient.any()


@pytest.mark.parametrize("seed", SEEDS)
def test_ten_steps_are_those_of_torchs_adamw(seed: int, references: References) -> None:
    rng, module = Rng(seed), references["adamw"]
    given = {"lr": 0.1 + float(rng.rand(1)), "betas": (0.7, 0.9), "eps": 0.01, "weight_decay": 0.3}
    params = [rng.randn(*sizes(rng, n)) for n in (1, 2, 3)]
    gradients = [[rng.randn(*p.shape) for p in params] for _ in range(10)]
    for step in (0, 1, 4):
        gradients[step][2] = None
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.2, "weight_decay": 0.0}]
    history, _ = module.run_steps(groups, gradients, **given)

    leaves = [nn.Parameter(p.clone()) for p in params]
    optimizer = torch.optim.AdamW(
        [groups[0] | {"params": leaves[:2]}, groups[1] | {"params": leaves[2:]}], **given
    )
    for found, step in zip(history, gradients, strict=True):
        for leaf, gradient in zip(leaves, step, strict=True):
            leaf.grad = gradient
        optimizer.step()
        for one, other in zip(found, leaves, strict=True):
            assert_close(one, other.detach(), "a parameter")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_first_step_is_the_rate(seed: int, references: References) -> None:
    rng = Rng(seed)
    parameter, gradient = rng.randn(5), rng.randn(5) * 10.0 ** int(rng.randint(-2, 4, 1))
    given = {"lr": 0.3, "eps": 1e-15, "weight_decay": 0.0}
    history, _ = references["adamw"].run_steps([{"params": [parameter]}], [[gradient]], **given)
    assert_close(history[0][0], parameter - 0.3 * gradient.sign(), "the parameter")


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_are_clipped_as_torch_does(seed: int, references: References) -> None:
    rng = Rng(seed)
    gradients = [rng.randn(*sizes(rng, n)) * 9 for n in (1, 2, 3)]
    found, norm = references["adamw"].clipped(gradients, 5.0)
    leaves = [nn.Parameter(torch.zeros_like(each)) for each in gradients]
    for leaf, gradient in zip(leaves, gradients, strict=True):
        leaf.grad = gradient.clone()
    wanted = nn.utils.clip_grad_norm_(leaves, 5.0)
    assert_close(torch.tensor(norm, dtype=wanted.dtype), wanted, "the norm")
    for one, leaf in zip(found, leaves, strict=True):
        assert_close(one, leaf.grad, "a gradient", rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_low_rank_change_starts_at_zero_and_keeps_its_rank(
    seed: int, references: References
) -> None:
    rng = Rng(seed)
    r, more, n_tokens = sizes(rng, 3)
    linear = nn.Linear(r + more, r + 2 * more).double()
    layer = references["low_rank_adaptation"].LowRankLinear(linear, r, 3.0)
    x = rng.randn(n_tokens, r + more)
    assert_close(layer(x), linear(x), "the output at the start", rtol=0, atol=0)
    before = linear.weight.clone()
    layer(x).square().sum().backward()
    assert_close(layer.A.grad, torch.zeros_like(layer.A), "the first gradient of A")
    assert layer.B.grad.abs().max() > 0, "the first gradient of B is zero"
    layer.B.data -= layer.B.grad
    layer.merge()
    assert torch.linalg.matrix_rank(linear.weight - before) <= r


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_experts_are_one_and_tokens_may_be_permuted(
    seed: int, references: References
) -> None:
    rng = Rng(seed)
    n_tokens, d_model, d_ff, num_experts = sizes(rng, 4)
    top_k = int(rng.randint(1, num_experts + 1, 1))
    module = references["mixture_of_experts"].MixtureOfExperts(d_model, d_ff, num_experts, top_k)
    module.double()
    x, order = rng.randn(n_tokens, d_model), rng.permutation(n_tokens)
    output, loss = module(x)
    permuted, same_loss = module(x[order])
    assert_close(permuted, output[order], "the output of permuted tokens")
    assert_close(same_loss, loss, "their loss")
    for expert in module.experts:
        expert.load_state_dict(module.experts[0].state_dict())
    assert_close(module(x)[0], module.experts[0](x), "the output of equal experts")
