"""Watching which operations some code dispatches, whatever it calls them in its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Watch:
    """Counts, between enter and exit, `aten.*` kernels and `torch.*` functions by name.

    `counts["aten.bmm"]` is how often the kernel ran; `counts["torch.layer_norm"]` how often the
    Python-level function was called. Composite functions that dissolve into small kernels (such
    as `multi_head_attention_forward`) show up by their `torch.*` name alone; what compiled code
    does, as kernels alone. Without `kernels` only functions are counted, at half the cost.
    """

    def __init__(self, *, kernels: bool = True) -> None:
        self.counts: Counter[str] = Counter()
        functions = _Functions(self.counts)
        self._modes = (functions, _Kernels(self.counts)) if kernels else (functions,)

    def __enter__(self) -> Watch:
        for mode in self._modes:
            mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exc: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*exc)  # type: ignore[no-untyped-call]


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
