"""Work on the course's own programs, shared among all cores."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any


@contextlib.contextmanager
def on_all_cores(jobs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a `map` over processes on all cores, or a plain one here if that is no slower.

    The results come as they are ready, in any order.
    """
    count = min(jobs, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    if count < 2:
        yield map
        return
    ignored = signal.SIGINT, signal.SIG_IGN  # Ctrl-C is for this process, which ends them
    spawn = multiprocessing.get_context("spawn")
    # A `multiprocessing.Pool` would wait forever for a process that a signal has ended.
    with ProcessPoolExecutor(count, spawn, signal.signal, ignored) as pool:

        def mapped(work: Callable[[Any], Any], given: Iterable[Any]) -> Iterator[Any]:
            for done in as_completed([pool.submit(work, one) for one in given]):
                yield done.result()

        try:
            yield mapped
        except BaseException:
            for child in multiprocessing.active_children():  # nobody waits for what they are at
                child.terminate()
            raise
