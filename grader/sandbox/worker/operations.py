"""Counting the operations that code dispatches, independent of the names in its source."""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# The functions that start threads. `threading` uses the last one since Python 3.13.
THREAD_STARTERS = (
    (_thread, "start_new_thread"),
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
)


class OperationWatch:
    """A context manager that counts `aten.*` kernels and `torch.*` functions by name.

    `counts["aten.bmm"]` is how often the kernel ran, `counts["torch.layer_norm"]` how often the
    Python function was called. A composite function such as `multi_head_attention_forward` has only
    its `torch.*` name, compiled code only kernels. Without `kernels` only functions are counted, at
    half the cost. Torch's modes apply to one thread, so threads started in the block count as well.
    """

    def __init__(self, *, kernels: bool = True) -> None:
        self.counts: Counter[str] = Counter()
        self._kernels = kernels
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> OperationWatch:
        self._stack.enter_context(self._counting())
        for module, name in THREAD_STARTERS:
            if start := getattr(module, name, None):
                setattr(module, name, self._counting_start(start))
                self._stack.callback(setattr, module, name, start)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def _counting(self) -> Iterator[None]:
        kernels = _Kernels(self.counts) if self._kernels else contextlib.nullcontext()
        with _Functions(self.counts), kernels:
            yield

    def _counting_start(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """Return `start`, a function that starts a thread, so that the thread counts too."""

        def counting_start(function: Callable[..., Any], *rest: Any, **options: Any) -> Any:
            def counted(*args: Any, **kwargs: Any) -> Any:
                with self._counting():
                    return function(*args, **kwargs)

            return start(counted, *rest, **options)

        return counting_start


class _Kernels(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counts = counts

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: to keep torch's compiler out would import it, which takes a second."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        self._counts[f"aten.{func.overloadpacket.__name__}"] += 1
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        self._counts[f"torch.{getattr(func, '__name__', func)}"] += 1
        return func(*args, **(kwargs or {}))
