"""Runs the course's own programs in this process: references, mistakes, stubs, mutants, corpora.

They go through the same proxies, messages and server as code in a worker, so that tests see the
same things: copies of tensors, failures in words, printed text. Only the process, its confinement
and the socket are left out, because they cost most of the time. Never for a student's code.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from grader.errors import StudentFailure, WorkerLost
from grader.sandbox import wire
from grader.sandbox.host.processor import waited_by
from grader.sandbox.host.worker import CallWatcher, late
from grader.sandbox.worker.operations import THREADS
from grader.sandbox.worker.server import Server

LOOK = 0.5  # seconds of processor time between two checks of a call's time


class _Late(BaseException):
    """A call has used up its time; `place` is the line that it was running."""

    def __init__(self, place: wire.Failure) -> None:
        self.place = place


class InThisProcess:
    """A transport to a server in this process: one worker's state, without the worker.

    Settings that both the code and the tests use are switched at each request: torch's generator,
    dtype and mode of gradients, and the standard streams. Other settings that a program may change
    are restored at the end.

    Time is processor time, and limited in the main thread only. Code that waits, or stays in a
    single operation of torch, is not interrupted.
    """

    layers: tuple[str, ...] = ()  # layers of confinement: there are none

    def __init__(self) -> None:
        self._server = Server((KeyboardInterrupt, _Late, StudentFailure, WorkerLost), self._hear)
        self._queue: list[wire.Quiet] = []
        self._watcher: CallWatcher | None = None  # of the current call
        self._generator = torch.default_generator.get_state()
        self._dtype = torch.get_default_dtype()
        self._waited = waited_by(os.getpid())
        self._restore = contextlib.ExitStack()
        self._restore.enter_context(warnings.catch_warnings())
        self._restore.callback(random.setstate, random.getstate())
        self._restore.callback(sys.setrecursionlimit, sys.getrecursionlimit())

    def post(self, request: wire.Quiet) -> None:
        """Queue a request without an answer; the next `request` carries it out first."""
        self._queue.append(request)

    def discard(self) -> None:
        """Drop the requests that are queued."""
        self._queue.clear()

    def request(
        self, request: Any, seconds: float, watcher: CallWatcher | None = None
    ) -> wire.Answer:
        """Return the answer to a request. Raises `StudentFailure` if it takes `seconds`."""
        requests, self._queue = [*self._queue, request], []
        self._watcher = watcher
        answer: wire.Answer | None = None
        try:
            with self._switched(), self._deadline(seconds):
                for each in requests:
                    answer = self._server.answer(each)
        except _Late as error:
            self.close()
            raise late(seconds, error.place) from None
        except BaseException:
            self.close()
            raise
        finally:
            self._watcher = None
        assert answer is not None
        # Threads of this process, such as those for progress, do not belong to the program.
        answer.operations.pop(THREADS, None)
        return answer

    def waited(self) -> float:
        """Return the seconds that this process has waited for a core since the code was loaded."""
        return waited_by(os.getpid()) - self._waited

    def close(self) -> None:
        """Forget the program, and restore the settings that it may have changed."""
        self._server.leave()
        self._restore.close()

    def _hear(self, progress: wire.TrainingStep) -> None:
        """Pass on the progress of a training, and end it if it has used too much."""
        if self._watcher is not None:
            self._watcher.hear(progress)
            self._watcher.check(os.getpid())

    @contextlib.contextmanager
    def _switched(self) -> Iterator[None]:
        """Give the code its own generator, dtype and streams in the block, then the tests'."""
        generator, dtype = torch.default_generator.get_state(), torch.get_default_dtype()
        grad, streams = torch.is_grad_enabled(), (sys.stdin, sys.stderr)
        trace = sys.gettrace()
        torch.default_generator.set_state(self._generator)
        if self._dtype is not dtype:
            torch.set_default_dtype(self._dtype)
        sys.stdin, sys.stderr = io.StringIO(), io.StringIO()
        try:
            yield
        finally:
            sys.stdin, sys.stderr = streams
            if sys.gettrace() is not trace:  # a breakpoint leaves a trace function
                sys.settrace(trace)
            self._dtype = torch.get_default_dtype()
            if self._dtype is not dtype:
                torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)
            self._generator = torch.default_generator.get_state()
            torch.default_generator.set_state(generator)

    @contextlib.contextmanager
    def _deadline(self, seconds: float) -> Iterator[None]:
        """Raise `_Late` in the code of the block once it has computed for `seconds`."""
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            yield
            return
        end = time.process_time() + seconds

        def look(number: int, frame: FrameType | None) -> None:
            if time.process_time() >= end:
                raise _Late(self._server.place_of(frame))
            if self._watcher is not None:
                self._watcher.check(os.getpid())

        before = signal.signal(signal.SIGPROF, look)
        # Repeatedly, so that code which catches everything ends, too.
        signal.setitimer(signal.ITIMER_PROF, min(seconds, LOOK), LOOK)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
