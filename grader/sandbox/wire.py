"""The wire format between host and worker: msgspec structs in length-prefixed MessagePack frames.

No value can carry code: the closed list of values is `Value`. A tensor is rebuilt from dtype, shape
and raw bytes. Data that does not decode raises `Malformed`.
"""

from __future__ import annotations

import builtins
import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import torch
from torch import Tensor

from grader.processes.channel import HEADER, framed

# Between a call's arguments and its watch, only what was there before student code may run: these
# functions look up names in builtins of their own.
BUILTINS = {**vars(builtins)}
globals()["__builtins__"] = BUILTINS

MAX_FRAME = 4 * 1024 * 1024  # bytes, checked before reading; decoded, up to 50 times the memory
MAX_DEPTH = 64  # levels of nested lists
MAX_ITEMS = 100_000  # items in one value; a tensor counts as one
MAX_ENTRIES = 2000  # items in a message's own lists: parameters, gradients, names of operations
MAX_KEYS = 1000  # of a dict with keys that are not strings: such hashes can be made to collide
MAX_TEXT = 4000  # characters of a student's error message or source line
MAX_PRINTED = 4000  # characters that are sent of what a test prints
MAX_PROGRESS = 4096  # messages about one call that are read
IMPORTING = "importing"  # what a late worker says that waits for an import

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
# Kept from before student code runs, because it may replace torch's names by its own functions.
_EMPTY, _FROM_BYTES, _PRODUCT = torch.empty, torch.frombuffer, math.prod
_VIEW, _AS_STRIDED = Tensor.view, Tensor.as_strided
PLAIN_TENSORS = {Tensor, torch.nn.Parameter, torch.nn.Buffer}
CONTAINERS: tuple[Any, ...] = (list, tuple, dict)
# An object's type, its bases and its attributes, read so that no class can override the answer.
_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_names: Callable[[type], Any] = type.__dict__["__dict__"].__get__


class Malformed(ValueError):
    """A frame, message or value that the wire format does not allow."""


Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Sizes = Annotated[list[int], msgspec.Meta(max_length=16)]  # a tensor's shape or strides
Items = msgspec.Meta(max_length=MAX_ITEMS)
Many = msgspec.Meta(max_length=MAX_ENTRIES)
Text = Annotated[str, msgspec.Meta(max_length=2 * MAX_TEXT)]
# The operations of a request that are counted.
Watch = Literal["", "names", "functions", "work", "all", "memory", "nan"]


class WireTensor(msgspec.Struct, tag="t", frozen=True):
    """A tensor as bytes: its elements in row-major order, or the storage that `stride` spans."""

    dtype: str
    shape: Sizes
    data: bytes
    stride: Sizes | None = None
    requires_grad: bool = False
    leaf: bool = True  # its number in the sender's autograd graph


class WireBytes(msgspec.Struct, tag="b", frozen=True):
    """Bytes, in a struct because a decoder takes only one kind of text in a union."""

    data: bytes


class WireList(msgspec.Struct, tag="l", frozen=True):
    """A list."""

    items: Annotated[list[Value], Items]


class WireTuple(msgspec.Struct, tag="u", frozen=True):
    """A tuple."""

    items: Annotated[list[Value], Items]


class WireDict(msgspec.Struct, tag="d", frozen=True):
    """A dict, as pairs, because keys may be other values than strings."""

    pairs: Annotated[list[tuple[Value, Value]], Items]


class Handle(msgspec.Struct, tag="h", frozen=True):
    """A reference to an object that stays in the worker, such as a module or a function."""

    id: int
    type_name: str
    parameters: Annotated[dict[str, Sizes], Many] = {}  # for an `nn.Module`: shapes by name


# Replaces `report(step, loss)` among a call's arguments: each call of it sends a `TrainingStep`.
REPORT = Handle(0, "function")
Plain = None | bool | Int64 | float | str
Value = Plain | WireBytes | WireTensor | WireList | WireTuple | WireDict | Handle


# --- requests, host to worker -----------------------------------------------------------------


class Source(msgspec.Struct, frozen=True):
    """The text of one module; `own` if the student wrote it, else it is a stand-in.

    A worker gets a stand-in as `code`, marshalled for the same Python, without its text.
    """

    file: str
    text: str
    own: bool = True
    code: bytes = b""


class Begin(msgspec.Struct, tag="begin", frozen=True):
    """Start a new test: drop handles and graphs, seed torch. Has no answer."""

    seed: int


class Seed(msgspec.Struct, tag="seed", frozen=True):
    """Seed torch's generator, or all that code may use, within a test. Has no answer."""

    seed: int
    only_torch: bool = False


class Load(msgspec.Struct, tag="load", frozen=True):
    """Import module `main` of the program `program`, made of `sources` by module name."""

    id: int
    program: str
    main: str
    sources: dict[str, Source]
    muted: list[str] = []  # packages that do nothing if the program imports them


class Search(msgspec.Struct, tag="search", frozen=True):
    """Search sources, by module name, for names that match the patterns of each.

    In notebooks, only the cells that the functions and classes in `names` need are searched.

    Only a worker that has loaded nothing may answer: any other answer is not trusted.
    The answer has a list for each source, of lines and names, or the reason why it has none.
    """

    id: int
    sources: dict[str, Source]
    patterns: dict[str, list[str]]
    names: dict[str, list[str]]


class Call(msgspec.Struct, tag="call", frozen=True):
    """Call a handle, or its attribute `name`.

    `watch` asks for a report: the `names` of functions that this test has not called before; all
    `functions` called; `work`, which adds lines and calls of Python to them; `all`, which adds
    kernels to the functions; `memory`, which adds the peak of memory to `all`; or `nan`, the place
    where nan begins. A `quiet` call has no answer; its failure is the answer to the next request.
    """

    id: int
    target: int
    name: str | None
    args: list[Value]
    kwargs: dict[str, Value]
    grad: bool = True  # torch's gradient mode during the call
    watch: Watch = ""
    quiet: bool = False


class Adopt(msgspec.Struct, tag="adopt", frozen=True):
    """Fill a module's parameters from a vector and take its dtype; `quiet` as in `Call`."""

    id: int
    target: int
    values: WireTensor
    quiet: bool = True


class Move(msgspec.Struct, tag="move", frozen=True):
    """Let a module run as if on another device; `quiet` as in `Call`."""

    id: int
    target: int
    quiet: bool = True


class Get(msgspec.Struct, tag="get", frozen=True):
    """Read an attribute of a handle."""

    id: int
    target: int
    name: str
    watch: Watch = ""


class Backward(msgspec.Struct, tag="backward", frozen=True):
    """Run the backward pass of call `call`. The answer has the gradients of its input tensors."""

    id: int
    call: int
    grads: list[WireTensor]
    watch: Watch = ""


class Inspect(msgspec.Struct, tag="inspect", frozen=True):
    """List the parameters and buffers of an `nn.Module` handle."""

    id: int
    target: int
    watch: Watch = ""


class Sync(msgspec.Struct, tag="sync", frozen=True):
    """Only ask for the failure of an earlier quiet call, if there is one."""

    id: int


Request = Begin | Seed | Sync | Search | Load | Call | Adopt | Move | Get | Backward | Inspect
# Requests without an answer; a `Call` has none only if it is quiet.
Quiet = Begin | Seed | Call | Adopt | Move


# --- answers, worker to host --------------------------------------------------------------------


class Changed(msgspec.Struct, frozen=True):
    """A tensor argument after the call wrote into it; `place` counts the call's tensors from 0."""

    place: int
    tensor: WireTensor


class StateEntry(msgspec.Struct, frozen=True):
    """One parameter or buffer of a module."""

    name: str
    is_parameter: bool
    tensor: WireTensor
    grad: WireTensor | None = None


class Reply(msgspec.Struct, tag="reply", frozen=True):
    """The result of a request that succeeded."""

    id: int
    value: Value = None
    changed: Annotated[list[Changed], Many] = []
    rewritten: Annotated[list[int], Many] = []  # arguments whose lists or dicts have changed
    entries: Annotated[list[StateEntry], Many] = []
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
    """An error that the student's code raised, as text: type, bases, message and frames.

    Also the place of late code; its message is `IMPORTING` while it waits for an import.
    """

    id: int
    kind: Text
    mro: Annotated[list[Text], Many]
    message: Text
    frames: Annotated[list[WireFrame], Many]
    printed: Text = ""
    operations: Annotated[dict[str, int], Many] = {}


class TrainingStep(msgspec.Struct, tag="progress", frozen=True):
    """A call's progress: sent before its answer, whenever the code calls `report(step, loss)`."""

    id: int
    step: Int64
    loss: float


Answer = Reply | Failure

_requests = msgspec.msgpack.Decoder(Request)
_answers = msgspec.msgpack.Decoder(Answer | TrainingStep)

encode: Callable[[Request | Answer | TrainingStep], bytes] = msgspec.msgpack.Encoder().encode


def decode_request(data: bytes) -> Request:
    """Return the request in a frame's body. Raises `Malformed`."""
    return _decode(_requests, data)  # type: ignore[no-any-return]


def decode_answer(data: bytes) -> Answer | TrainingStep:
    """Return the answer in a frame's body, or a step before it. Raises `Malformed`."""
    return _decode(_answers, data)  # type: ignore[no-any-return]


def _decode(decoder: Any, data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the message cannot be decoded: {str(error)[:200]}") from None


def pack_tensor(tensor: Tensor, *, keep_layout: bool = False) -> WireTensor:
    """Return a strided CPU tensor as bytes; `keep_layout` keeps its strides.

    Raises `Malformed` for a tensor of another layout, device or dtype, and for one that computes
    its values on reading.
    """
    tensor = plain_tensor(tensor)
    dtype = DTYPE_NAMES.get(tensor.dtype)
    if dtype is None or tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise Malformed(f"a {tensor.dtype} tensor on {tensor.device} cannot be sent")
    plain = tensor.detach()
    stride = None
    if keep_layout and not plain.is_contiguous():
        stride, count = list(plain.stride()), _extent(plain.shape, plain.stride())
    else:
        plain, count = plain.contiguous(), plain.numel()
    data = ctypes.string_at(plain.data_ptr(), count * plain.element_size()) if count else b""
    shape = list(plain.shape)
    return WireTensor(dtype, shape, data, stride, tensor.requires_grad, tensor.is_leaf)


def plain_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor with torch's own methods; a plain one is returned itself.

    Raises `Malformed` for a subclass with a `__torch_dispatch__` of its own.
    """
    if type(tensor) in PLAIN_TENSORS:
        return tensor
    kinds = _mro(type(tensor))
    if any("__torch_dispatch__" in _names(kind) for kind in kinds[: kinds.index(Tensor)]):
        raise Malformed(f"a {type(tensor).__name__[:80]} computes its values when it is read")
    with torch._C.DisableTorchFunctionSubclass():
        return torch._C.TensorBase.as_subclass(tensor, Tensor)


def is_a(value: Any, kind: type) -> bool:
    """Return whether a value's real type is `kind` or a subclass; its `__class__` may lie."""
    return kind in _mro(type(value))


def unpack_tensor(wire: WireTensor) -> Tensor:
    """Return a plain tensor built from bytes, after checking every length. Raises `Malformed`."""
    dtype, shape, stride = DTYPES.get(wire.dtype), wire.shape, wire.stride
    if dtype is None:
        raise Malformed(f"unknown dtype {wire.dtype[:40]!r}")
    if len(shape) > 16 or any(not 0 <= size < 2**40 for size in shape):
        raise Malformed(f"{tuple(shape[:17])} is not a shape")
    if _PRODUCT([max(size, 1) for size in shape]) > MAX_FRAME:  # an empty tensor can still be huge
        raise Malformed(f"a tensor of shape {tuple(shape)} is too large")
    count = _PRODUCT(shape)
    if stride is not None:
        if len(stride) != len(shape) or any(not 0 <= step < 2**40 for step in stride):
            raise Malformed("the strides do not match the shape")
        count = _extent(shape, stride)
    if len(wire.data) != count * dtype.itemsize:
        raise Malformed(f"{len(wire.data)} bytes for a tensor of shape {tuple(shape)}")
    if not count:
        return _EMPTY(shape, dtype=dtype)
    flat = _FROM_BYTES(bytearray(wire.data), dtype=dtype)
    return _VIEW(flat, shape) if stride is None else _AS_STRIDED(flat, shape, stride)


def _extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride))


def pack(value: Any, tensor: Callable[[Tensor], Value], other: Callable[[Any], Value]) -> Value:
    """Return a value in wire form; `other` packs values outside the list. Raises `Malformed`."""
    kind = type(value)
    if kind is Tensor or is_a(value, Tensor):
        return tensor(value)
    if value is None or kind in (bool, float, str) or (kind is int and -(2**63) <= value < 2**63):
        return value  # type: ignore[no-any-return]
    if kind is bytes:
        return WireBytes(value)
    base = next((base for base in CONTAINERS if is_a(value, base)), None)
    if base is None:
        return other(value)
    # A subclass may override these methods with code of its own, so packing runs the base's.
    if (size := base.__len__(value)) > MAX_ITEMS:
        raise Malformed(f"a {kind.__name__} of {size} items cannot be sent")
    if base is dict:
        pairs = dict.items(value)
        return WireDict([(pack(k, tensor, other), pack(v, tensor, other)) for k, v in pairs])
    items = [pack(item, tensor, other) for item in base.__iter__(value)]
    return WireList(items) if base is list else WireTuple(items)


def unpack(value: Any, tensor: Callable[[WireTensor], Any], handle: Callable[[Handle], Any]) -> Any:
    """Return the Python value of a wire value; `handle` resolves handles. Raises `Malformed`."""
    if isinstance(value, WireTensor):  # the common case, without the cost of the closure
        return tensor(value)
    left = MAX_ITEMS

    def inner(value: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if depth > MAX_DEPTH or left < 0:
            raise Malformed(f"more than {MAX_DEPTH} levels of nesting or {MAX_ITEMS} items")
        if isinstance(value, WireTensor):
            return tensor(value)
        if isinstance(value, Handle):
            return handle(value)
        if isinstance(value, WireBytes):
            return value.data
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
        raise Malformed(f"a dict of {len(pairs)} keys, some of which are not strings")
    try:
        return {item(key): item(value) for key, value in pairs}
    except TypeError as error:
        raise Malformed(f"a key of a dict cannot be hashed: {error}") from None


def refuse(value: Any) -> NoReturn:
    """Raise `Malformed`: the `other` of a sender that offers no handles."""
    raise Malformed(f"a {type(value).__name__} cannot be sent")


def frame(message: Request | Answer | TrainingStep) -> bytes:
    """Return a message as bytes to send, its length in front."""
    return framed(encode(message))


def body_length(header: bytes) -> int:
    """Return the length that a header announces. Raises `Malformed` if it exceeds `MAX_FRAME`."""
    length: int = HEADER.unpack(header)[0]
    if length > MAX_FRAME:
        raise Malformed(f"a frame of {length} bytes; at most {MAX_FRAME} may be sent")
    return length
