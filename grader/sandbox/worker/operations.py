"""Watching which operations some code dispatches, whatever it calls them in its source."""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Where threads are started; what `threading` uses has had another name since Python 3.13.
STARTS = (
    (_thread, "start_new_thread"),
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
)


class Watch:
    """Counts, between enter and exit, `aten.*` kernels and `torch.*` functions by name.

    `counts["aten.bmm"]` is how often the kernel ran; `counts["torch.layer_norm"]` how often the
    Python-level function was called. Composite functions that dissolve into small kernels (such
    as `multi_head_attention_forward`) show up by their `torch.*` name alone; what compiled code
    does, as kernels alone. Without `kernels` only functions are counted, at half the cost.
    Torch sees one thread; threads started meanwhile are watched as well.
    """

    def __init__(self, *, kernels: bool = True) -> None:
        self.counts: Counter[str] = Counter()
        self._kernels = kernels
        self._stack = ExitStack()

    def __enter__(self) -> Watch:
        self._stack.enter_context(self._counting())
        for module, name in STARTS:
            if start := getattr(module, name, None):
                setattr(module, name, self._watched(start))
                self._stack.callback(setattr, module, name, start)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def _counting(self) -> Iterator[None]:
        with _Functions(self.counts):
            if not self._kernels:
                yield
                return
            with _Kernels(self.counts):
                yield

    def _watched(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def starting(function: Callable[..., Any], *rest: Any, **options: Any) -> Any:
            def counted(*args: Any, **kwargs: Any) -> Any:
                with self._counting():
                    return function(*args, **kwargs)

            return start(counted, *rest, **options)

        return starting


class _Kernels(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counts = counts

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: keeping torch's compiler out would import it, for nearly a second."""
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
