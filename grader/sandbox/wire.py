"""The wire between the trusted host and the student's worker: a closed list of plain values.

Messages are msgspec structs in length-prefixed MessagePack frames. Nothing that crosses can carry
code: values are None, bool, int, float, str, tensor, list, tuple, dict and handle, and a tensor is
rebuilt from dtype, shape and raw bytes. Whatever does not decode is `Malformed`.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import torch
from torch import Tensor

MAX_FRAME = 4 * 1024 * 1024  # bytes, refused before they are read; decoded, up to 50 times as much
MAX_DEPTH = 64  # lists in lists
MAX_ITEMS = 100_000  # in one value, tensors counted as one
MAX_ENTRIES = 2000  # parameters, gradients, names of operations: of a message's own lists
MAX_KEYS = 1000  # of a dict, unless all are strings: hashes can be made to collide
MAX_TEXT = 4000  # characters of a student's message, type name or source line that cross
HEADER = struct.Struct(">I")

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Malformed(ValueError):
    """A frame or value that is not of the wire's closed list."""


# --- values ---------------------------------------------------------------------------------


Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Sizes = Annotated[list[int], msgspec.Meta(max_length=16)]  # a tensor's shape or strides
Items = msgspec.Meta(max_length=MAX_ITEMS)
Many = msgspec.Meta(max_length=MAX_ENTRIES)
Text = Annotated[str, msgspec.Meta(max_length=2 * MAX_TEXT)]


class WireTensor(msgspec.Struct, tag="t", frozen=True):
    """A tensor as bytes in row-major order; with `stride`, as the storage behind a strided view.

    `leaf` says whether the receiver's tensor is a leaf of the autograd graph, as the sender's is.
    """

    dtype: str
    shape: Sizes
    data: bytes
    stride: Sizes | None = None
    requires_grad: bool = False
    leaf: bool = True


class WireList(msgspec.Struct, tag="l", frozen=True):
    """A list."""

    items: Annotated[list[Value], Items]


class WireTuple(msgspec.Struct, tag="u", frozen=True):
    """A tuple."""

    items: Annotated[list[Value], Items]


class WireDict(msgspec.Struct, tag="d", frozen=True):
    """A dict, as pairs, so that keys need not be strings."""

    pairs: Annotated[list[tuple[Value, Value]], Items]


class Handle(msgspec.Struct, tag="h", frozen=True):
    """An object that stays in the worker: a module, a function, anything not in the list above.

    For an `nn.Module`, `parameters` has the shape of each parameter by name.
    """

    id: int
    type_name: str
    parameters: Annotated[dict[str, Sizes], Many] = {}


Value = None | bool | Int64 | float | str | WireTensor | WireList | WireTuple | WireDict | Handle


# --- requests, host to worker -----------------------------------------------------------------


class Source(msgspec.Struct, frozen=True):
    """The text of one module. `own` says whether the student wrote it (else: a stand-in)."""

    file: str
    text: str
    own: bool = True


class Begin(msgspec.Struct, tag="begin", frozen=True):
    """A new test starts: forget handles and graphs, seed torch. Has no answer."""

    seed: int


class Seed(msgspec.Struct, tag="seed", frozen=True):
    """Seed torch's generator, in the middle of a test. Has no answer."""

    seed: int


class Load(msgspec.Struct, tag="load", frozen=True):
    """Import module `main` of a program made of `sources` (module name to text)."""

    id: int
    program: str
    main: str
    sources: dict[str, Source]


class Call(msgspec.Struct, tag="call", frozen=True):
    """Call a handle, or its method `name`.

    `watch` asks which operations ran: the `functions` called, or `all`, the kernels too.

    A `quiet` call has no answer; if it fails, the next request is answered with its failure.
    """

    id: int
    target: int
    name: str | None
    args: list[Value]
    kwargs: dict[str, Value]
    grad: bool = True
    watch: Literal["", "functions", "all"] = ""
    quiet: bool = False


class Adopt(msgspec.Struct, tag="adopt", frozen=True):
    """Fill a module's parameters from a vector, in its dtype; quiet, as a quiet `Call`."""

    id: int
    target: int
    values: WireTensor
    quiet: bool = True


class Get(msgspec.Struct, tag="get", frozen=True):
    """Read an attribute of a handle."""

    id: int
    target: int
    name: str


class Backward(msgspec.Struct, tag="backward", frozen=True):
    """Run the backward pass of an earlier call; answers the gradients of its input tensors."""

    id: int
    call: int
    grads: list[WireTensor]


class Inspect(msgspec.Struct, tag="inspect", frozen=True):
    """List the parameters and buffers of an `nn.Module` handle."""

    id: int
    target: int


class Sync(msgspec.Struct, tag="sync", frozen=True):
    """Ask for nothing but the failure of an earlier quiet call, if there was one."""

    id: int


Request = Begin | Seed | Sync | Load | Call | Adopt | Get | Backward | Inspect


Quiet = Begin | Seed | Call | Adopt  # what has no answer (a `Call` only if it is quiet)


# --- answers, worker to host --------------------------------------------------------------------


class Changed(msgspec.Struct, frozen=True):
    """An argument tensor, by its place among the call's tensors, that the call wrote into."""

    place: int
    tensor: WireTensor


class Entry(msgspec.Struct, frozen=True):
    """One parameter or buffer of a module."""

    name: str
    is_parameter: bool
    tensor: WireTensor
    grad: WireTensor | None = None


class Reply(msgspec.Struct, tag="reply", frozen=True):
    """What a request gave."""

    id: int
    value: Value = None
    changed: Annotated[list[Changed], Many] = []
    entries: Annotated[list[Entry], Many] = []
    grads: Annotated[list[WireTensor | None], Many] = []
    operations: Annotated[dict[str, int], Many] = {}
    printed: Text = ""


class WireFrame(msgspec.Struct, frozen=True):
    """A place in one of the student's files."""

    file: Text
    line: Int64
    source: Text
    column: Int64 = 0
    function: Text = ""


class Failure(msgspec.Struct, tag="failure", frozen=True):
    """The student's code raised: type name, names of the base types, message and frames as text."""

    id: int
    kind: Text
    mro: Annotated[list[Text], Many]
    message: Text
    frames: Annotated[list[WireFrame], Many]
    printed: Text = ""
    operations: Annotated[dict[str, int], Many] = {}


Answer = Reply | Failure

_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(Request)
_answers = msgspec.msgpack.Decoder(Answer)

encode: Callable[[Request | Answer], bytes] = _encoder.encode


def decode_request(data: bytes) -> Request:
    """A request from a frame's body; raises `Malformed`."""
    return _decode(_requests, data)  # type: ignore[no-any-return]


def decode_answer(data: bytes) -> Answer:
    """An answer from a frame's body; raises `Malformed`."""
    return _decode(_answers, data)  # type: ignore[no-any-return]


def _decode(decoder: Any, data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not a message of the wire: {str(error)[:200]}") from None


# --- tensors ------------------------------------------------------------------------------------


def pack_tensor(tensor: Tensor, *, keep_layout: bool = False) -> WireTensor:
    """A strided CPU tensor as bytes. `keep_layout` keeps strides, so that views stay views."""
    dtype = DTYPE_NAMES.get(tensor.dtype)
    if dtype is None or tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise Malformed(f"a {tensor.dtype} tensor on {tensor.device} cannot cross")
    plain = tensor.detach()
    stride = None
    if keep_layout and not plain.is_contiguous():
        stride, count = list(plain.stride()), extent(plain.shape, plain.stride())
    else:
        plain, count = plain.contiguous(), plain.numel()
    data = ctypes.string_at(plain.data_ptr(), count * plain.element_size()) if count else b""
    return WireTensor(
        dtype=dtype,
        shape=list(plain.shape),
        data=data,
        stride=stride,
        requires_grad=tensor.requires_grad,
        leaf=tensor.is_leaf,
    )


def unpack_tensor(wire: WireTensor) -> Tensor:
    """A plain tensor from bytes; every length is checked first. Raises `Malformed`."""
    dtype = DTYPES.get(wire.dtype)
    if dtype is None:
        raise Malformed(f"no dtype {wire.dtype[:40]!r}")
    if len(wire.shape) > 16 or any(not 0 <= size < 2**40 for size in wire.shape):
        raise Malformed(f"no tensor has shape {tuple(wire.shape[:17])}")
    if math.prod(max(size, 1) for size in wire.shape) > MAX_FRAME:  # empty ones have a size, too
        raise Malformed(f"a tensor of shape {tuple(wire.shape)} is too large")
    count = math.prod(wire.shape)
    if wire.stride is not None:
        fitting = len(wire.stride) == len(wire.shape)
        if not fitting or any(not 0 <= step < 2**40 for step in wire.stride):
            raise Malformed("strides do not fit the shape")
        count = extent(wire.shape, wire.stride)
    if len(wire.data) != count * dtype.itemsize:
        raise Malformed(f"{len(wire.data)} bytes for a tensor of shape {tuple(wire.shape)}")
    if not count:
        return torch.empty(wire.shape, dtype=dtype)
    flat = torch.frombuffer(bytearray(wire.data), dtype=dtype)
    if wire.stride is not None:
        return flat.as_strided(wire.shape, wire.stride)
    return flat.view(wire.shape)


def extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """How many elements of storage a strided view spans."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride))


# --- whole values -------------------------------------------------------------------------------


def pack(value: Any, tensor: Callable[[Tensor], Value], other: Callable[[Any], Value]) -> Value:
    """A Python value for the wire. `tensor` packs tensors; `other` whatever is not in the list."""
    if isinstance(value, Tensor):
        return tensor(value)
    kind = type(value)
    if value is None or kind in (bool, float, str) or (kind is int and -(2**63) <= value < 2**63):
        return value  # type: ignore[no-any-return]
    if isinstance(value, list | tuple | dict) and len(value) > MAX_ITEMS:
        raise Malformed(f"a {kind.__name__} of {len(value)} items cannot cross")
    if isinstance(value, list):
        return WireList([pack(item, tensor, other) for item in value])
    if isinstance(value, tuple):
        return WireTuple([pack(item, tensor, other) for item in value])
    if isinstance(value, dict):
        return WireDict(
            [(pack(k, tensor, other), pack(v, tensor, other)) for k, v in value.items()]
        )
    return other(value)


def unpack(value: Any, tensor: Callable[[WireTensor], Any], handle: Callable[[Handle], Any]) -> Any:
    """A Python value from the wire. `tensor` builds tensors, `handle` resolves handles."""
    if isinstance(value, WireTensor):  # as most are
        return tensor(value)
    left = MAX_ITEMS

    def inner(value: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if depth > MAX_DEPTH or left < 0:
            raise Malformed(f"more than {MAX_DEPTH} lists in lists, or {MAX_ITEMS} items")
        if isinstance(value, WireTensor):
            return tensor(value)
        if isinstance(value, Handle):
            return handle(value)
        if isinstance(value, WireList):
            return [inner(item, depth + 1) for item in value.items]
        if isinstance(value, WireTuple):
            return tuple([inner(item, depth + 1) for item in value.items])
        if isinstance(value, WireDict):
            return _dict(value.pairs, lambda item: inner(item, depth + 1))
        return value

    return inner(value, 0)


def _dict(pairs: list[tuple[Value, Value]], item: Callable[[Value], Any]) -> dict[Any, Any]:
    if len(pairs) > MAX_KEYS and not all(isinstance(key, str) for key, _ in pairs):
        raise Malformed(f"a dict of {len(pairs)} keys that are not strings")
    try:
        return {item(key): item(value) for key, value in pairs}
    except TypeError as error:
        raise Malformed(f"a dict key cannot be hashed: {error}") from None


def refuse(value: Any) -> NoReturn:
    """The `other` of a sender that has no handles to give."""
    raise Malformed(f"a {type(value).__name__} cannot cross")


# --- frames -------------------------------------------------------------------------------------


def frame(message: Request | Answer) -> bytes:
    """A message with its length in front, ready to send."""
    body = encode(message)
    return HEADER.pack(len(body)) + body


def body_length(header: bytes) -> int:
    """The length a header announces; refuses one beyond the cap before anything is read."""
    length: int = HEADER.unpack(header)[0]
    if length > MAX_FRAME:
        raise Malformed(f"a frame of {length} bytes; at most {MAX_FRAME} may cross")
    return length
