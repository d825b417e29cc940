"""The connection to a Dask scheduler: lists its workers, and lets one evaluate a text.

Dask can send a text to any worker, even one without this package. Knows nothing of jobs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from distributed import Client

from grader.errors import RequestError

SECONDS = 30  # seconds to reach the scheduler, and for each of its answers
KEPT = "what was graded is kept"
GO_ON = "once it runs, the same command goes on"


class SchedulerConnection:
    """A connection to the scheduler at `address`; methods raise RequestError once it has ended."""

    def __init__(self, address: str) -> None:
        self.address = address
        try:
            self._client = Client(address, timeout=SECONDS, set_as_default=False, name="grader")
        except (OSError, ValueError, TypeError) as error:
            message = f"no Dask scheduler answers at {address}: {error}"
            remedy = "dask scheduler   starts one and says its address"
            raise RequestError(message, remedy) from None
        self._executor = self._client.get_executor(pure=False)

    def workers(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the scheduler's data on each worker, by its address."""
        try:
            if self._client.status != "running":
                raise OSError("the connection has ended")
            facts: Any = self._client.sync(self._identity, callback_timeout=SECONDS)
        except Exception as error:
            raise self._gone(error) from None
        workers: Mapping[str, Mapping[str, Any]] = facts["workers"]
        return workers

    async def _identity(self) -> Any:
        """Ask the scheduler itself, because the client's data on workers may be old."""
        scheduler: Any = self._client.scheduler
        return await scheduler.identity(n_workers=-1)

    def evaluate(self, worker: str, text: str, names: Mapping[str, Any]) -> Future[Any]:
        """Let the worker at an address evaluate a text with these names."""
        try:
            answer: Future[Any] = self._executor.submit(eval, text, dict(names), workers=[worker])
        except Exception as error:
            raise self._gone(error) from None
        return answer

    def close(self, workers: Iterable[str], text: str, names: Mapping[str, Any]) -> None:
        """Let these workers evaluate a last text, and disconnect."""
        with contextlib.suppress(Exception):  # a cluster that is gone needs no release
            if self._client.status == "running":
                self._client.run(eval, text, dict(names), workers=list(workers), on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)

    def _gone(self, error: BaseException) -> RequestError:
        says = f"the scheduler at {self.address} does not answer any more"
        return RequestError(f"{says} ({str(error) or type(error).__name__}); {KEPT}", GO_ON)
