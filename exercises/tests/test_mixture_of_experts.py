"""Public tests of the mixture of experts, which students can read and run."""

import pytest
import torch

from grader.testing import (
    assert_close,
    assert_dtype,
    assert_refused,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    output_of,
)

pytestmark = pytest.mark.needs("test_by_hand")

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0], [0.0, 3.0, 1.0, 2.0], [1.0, 1.5, 2.5, 0.0]])


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """No function of torch computes all experts at once."""
    x = rng.randn(2, 6, 3).float()
    assert_written_by_hand(student, lambda: output_of(student.MixtureOfExperts(3, 5, 4, 2), x))


@pytest.mark.points(7)
def test_route(student):
    """The worked example: two of four experts for each of three tokens."""
    gates, experts = student.route(LOGITS, 2)
    assert_close(gates, torch.tensor([[0.731059, 0.268941]]).expand(3, 2), "the gates")
    wanted = [[0, 1], [1, 3], [2, 1]]
    expect(experts.tolist() == wanted, f"the experts are {experts.tolist()}, not {wanted}")


@pytest.mark.points(6)
def test_load_balance_loss(student):
    """The loss of the worked example, and of experts that are chosen equally often."""
    assert_close(student.load_balance_loss(LOGITS, 2), torch.tensor(1.155886), "the loss")
    balanced = 5 * torch.eye(4) + torch.eye(4).roll(1, 1)  # each expert is first and second once
    for top_k in (1, 2):
        loss = student.load_balance_loss(balanced, top_k)
        assert_close(loss, torch.tensor(1.0), f"the loss of balanced experts for top_k = {top_k}")


@pytest.mark.points(2)
def test_parameters(student):
    """The module has a router without bias, and experts of three layers."""
    found = {n: tuple(p.shape) for n, p in student.MixtureOfExperts(3, 5, 4, 2).named_parameters()}
    layers = (("W_gate", (5, 3)), ("W_up", (5, 3)), ("W_down", (3, 5)))
    wanted = {f"experts.{e}.{name}.weight": shape for e in range(4) for name, shape in layers}
    wanted["router.weight"] = (4, 3)
    expect(found == wanted, f"the parameters are {found}, where {wanted} are expected")


@pytest.mark.points(5)
def test_each_token_alone(student, rng):
    """A token's output does not depend on the others, and the loss is that of all tokens."""
    module, x = student.MixtureOfExperts(3, 5, 4, 2).to(torch.float64), rng.randn(2, 6, 3)
    output, loss = output_of(module, x)
    alone = torch.stack([output_of(module, row[None])[0][0] for row in x.view(12, 3)])
    assert_close(output.view(12, 3), alone, "the outputs of tokens in one call")
    rows = x.view(12, 3) @ module.state_dict()["router.weight"].T
    assert_close(loss, student.load_balance_loss(rows, 2), "the loss of all tokens")


@pytest.mark.points(3)
def test_shares_add_up(student, rng):
    """If all experts are equal, two of them give together what one gives."""
    first = student.MixtureOfExperts(3, 5, 4, 1).state_dict()
    state = {n: first[n if n == "router.weight" else f"experts.0.{n[10:]}"] for n in first}
    x, outputs = rng.randn(2, 6, 3).float(), []
    for top_k in (1, 2, 4):
        module = student.MixtureOfExperts(3, 5, 4, top_k)
        module.load_state_dict(state)
        outputs.append(output_of(module, x)[0])
    assert_close(outputs[1], outputs[0], "the output of two equal experts")
    assert_close(outputs[2], outputs[0], "the output of four equal experts")


@pytest.mark.points(2)
def test_refusals(student):
    """A top_k of 0 or of more than all experts is refused."""
    student.route(LOGITS, 4)
    assert_refused(student, lambda: student.route(LOGITS, 0), "a top_k of 0")
    assert_refused(student, lambda: student.route(LOGITS, 5), "a top_k of 5 for four experts")


@pytest.mark.points(0)
def test_dtype(student, rng):
    """The module works in bfloat16."""
    module = student.MixtureOfExperts(3, 5, 4, 2).to(torch.bfloat16)
    output, _ = output_of(module, rng.randn(2, 6, 3).bfloat16())
    assert_dtype(output, torch.bfloat16, "the output")


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over tokens."""

    def called(n_tokens=30):
        module, x = student.MixtureOfExperts(3, 5, 2, 1), rng.randn(n_tokens, 3).float()
        return lambda: output_of(module, x)

    assert_vectorised(student, called, {"tokens": {"n_tokens": (90, 190)}})
