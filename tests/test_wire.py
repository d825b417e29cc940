"""The wire carries the values of a closed list unchanged and refuses everything else."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grader.processes.channel import HEADER
from grader.sandbox import wire


def crossed(value: object) -> object:
    packed = wire.pack(value, lambda t: wire.pack_tensor(t, keep_layout=True), wire.refuse)
    framed = wire.frame(wire.Reply(id=1, value=packed))
    assert wire.body_length(framed[: HEADER.size]) == len(framed) - HEADER.size
    answer = wire.decode_answer(framed[HEADER.size :])
    assert isinstance(answer, wire.Reply)
    return wire.unpack(answer.value, wire.unpack_tensor, wire.refuse)


@pytest.mark.slow
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9) | st.floats(allow_nan=False))
)
def test_plain_values_come_back_equal(value: list[object]) -> None:
    nested = {"list": value, 3: tuple(value), "deep": [{1: [None, True]}]}
    assert crossed(nested) == nested


@given(st.binary(max_size=300))
def test_bytes_come_back_as_bytes_also_as_a_key(data: bytes) -> None:
    assert crossed([data, {data: 256}]) == [data, {data: 256}]


@pytest.mark.parametrize("dtype", wire.DTYPES.values(), ids=str)
def test_every_dtype_comes_back_bit_for_bit(dtype: torch.dtype) -> None:
    tensor = (torch.arange(24) % 5).view(2, 3, 4).to(dtype)
    back = crossed(tensor)
    assert isinstance(back, torch.Tensor)
    assert back.dtype == dtype
    assert torch.equal(back, tensor)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([math.nan, math.inf, -0.0, 1e-310]),
        torch.zeros(0, 3),
        torch.tensor(3.5),
        torch.randn(3, 4).T,
        torch.randn(4, 6)[1::2, ::3],
        torch.randn(1, 4).expand(3, 4),
        torch.randn(2, 3, 5).permute(2, 0, 1),
    ],
    ids=["special", "empty", "scalar", "transposed", "sliced", "expanded", "permuted"],
)
def test_layout_and_special_values_survive(tensor: torch.Tensor) -> None:
    back = crossed(tensor)
    assert isinstance(back, torch.Tensor)
    assert torch.equal(back.nan_to_num(7.0), tensor.nan_to_num(7.0))
    if tensor.numel():
        assert back.stride() == tensor.stride()


def test_a_tensor_subclass_arrives_as_a_plain_tensor() -> None:
    class Agreeable(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (
                True
                if "equal" in func.__name__
                else super().__torch_function__(func, types, args, kwargs or {})
            )

    back = crossed(torch.ones(2).as_subclass(Agreeable))
    assert type(back) is torch.Tensor


BROKEN = {
    "an unknown dtype": wire.WireTensor("object", [1], b"\0" * 8),
    "too few bytes": wire.WireTensor("float64", [2], b"\0" * 8),
    "too many bytes": wire.WireTensor("float64", [1], b"\0" * 16),
    "a negative size": wire.WireTensor("float64", [-1], b""),
    "a huge size": wire.WireTensor("float64", [2**62, 2**62], b""),
    "too many dimensions": wire.WireTensor("uint8", [1] * 17, b"\0"),
    "a negative stride": wire.WireTensor("uint8", [2], b"\0\0", [-1]),
    "strides past the data": wire.WireTensor("uint8", [2], b"\0\0", [5]),
    "strides of another rank": wire.WireTensor("uint8", [2], b"\0\0", [1, 1]),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_tensor_with_wrong_metadata_is_malformed(what: str) -> None:
    with pytest.raises(wire.Malformed):
        wire.unpack_tensor(BROKEN[what])


@given(st.binary(max_size=300))
def test_noise_is_malformed_or_a_message_and_nothing_else(data: bytes) -> None:
    for decode in (wire.decode_answer, wire.decode_request):
        try:
            message = decode(data)
        except wire.Malformed:
            continue
        assert isinstance(message, msgspec.Struct)


def test_deep_nesting_is_malformed() -> None:
    deep = b"\x82\xa4type\xa1l\xa5items\x91" * 100_000
    with pytest.raises(wire.Malformed):
        wire.decode_answer(b"\x83\xa4type\xa5reply\xa2id\x01\xa5value" + deep)


def test_a_long_frame_is_refused_before_it_is_read() -> None:
    with pytest.raises(wire.Malformed, match="at most"):
        wire.body_length(HEADER.pack(wire.MAX_FRAME + 1))


def test_what_is_not_on_the_list_does_not_cross() -> None:
    for thing in (object(), {1, 2}, bytearray(b"bytes"), 2**64, lambda: None):
        with pytest.raises(wire.Malformed):
            crossed(thing)
    for tensor in (torch.zeros(2, dtype=torch.complex64), torch.eye(2).to_sparse()):
        with pytest.raises(wire.Malformed):
            crossed(tensor)
