"""A template process whose readers behave badly when a file holds the word `hostile`.

python -I hostile_reader.py HOW FD ROOT
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

from msgspec import structs

from grader.processes import channel, forking
from grader.sandbox.confinement.layers import die_with
from grader.submissions.reader import messages
from grader.submissions.reader_process import jobs
from grader.submissions.reader_process import template as reader_process

HOW, FD, ROOT = sys.argv[1:]
template = os.getpid()
honest = reader_process.answer


def behave(job: messages.Job, read: messages.FilesRead) -> messages.Answer:  # noqa: PLR0912
    """Do what the command line says."""
    match HOW:
        case "sleeps":
            time.sleep(60)
        case "computes" | "has little time":
            while True:
                pass
        case "is killed":
            Path("kill me").touch()
            time.sleep(60)
        case "crashes":
            ctypes.string_at(0)
        case "leaves":
            os._exit(0)
        case "eats memory":
            jobs._read_attempt = lambda job: bytearray(1 << 40)  # type: ignore[assignment]
            return honest(job)
        case "floods" | "nonsense":
            size = 10 if HOW == "nonsense" else messages.MAX_ANSWER + 1
            body = channel.HEADER.pack(size) + b"\xc1" * size
            while body:
                body = body[os.write(forking.CONNECTION, body) :]
        case "other answer":
            return messages.ClassUnpacked(())
        case "other exercise":
            return messages.FilesRead("s", {"0" * 64: ""}, {"x": "0" * 64}, {"x": "x.py"}, {}, ())
        case "too much text":
            return _with_text(read, "x" * (messages.MAX_TEXTS + 1))
        case "text of nothing":
            return structs.replace(read, texts={**read.texts, "0" * 64: "x = 1"})
        case "no text":
            return structs.replace(read, texts={})
        case "says the disk is full":
            return messages.ReadingRefused("cannot read what s001 handed in", "", errno.ENOSPC)
        case "reads a neighbour":
            own = Path(os.fsdecode(job.parts[0].path))  # type: ignore[union-attr]
            try:
                text = (own.parent / "s002" / "scale.py").read_text()
            except OSError as error:
                text = os.strerror(error.errno or 0)
            return _with_text(read, text)
    return read


def _with_text(read: messages.FilesRead, text: str) -> messages.FilesRead:
    return structs.replace(read, texts=dict.fromkeys(read.texts, text))


def answer(job: messages.Job) -> messages.Answer:
    """Answer honestly, unless a file is hostile."""
    was_warm = "IPython.core.inputtransformer2" in sys.modules
    read = honest(job)
    if HOW == "says whether it was warm" and isinstance(read, messages.FilesRead):
        return _with_text(read, str(was_warm))
    if isinstance(read, messages.FilesRead) and "hostile" in "".join(read.texts.values()):
        return behave(job, read)
    return read


def kill_on_request() -> NoReturn:
    """Kill every reader whose folder holds `kill me`, as somebody on this machine may do."""
    while True:
        for path in Path(ROOT).glob("*/kill me"):
            with contextlib.suppress(ProcessLookupError):  # it has ended, its folder is still there
                os.kill(int(path.parent.name), signal.SIGKILL)
        time.sleep(0.01)


if HOW == "has little time":
    resource.setrlimit(resource.RLIMIT_CPU, (3, 3))  # also of every reader, for itself alone
if HOW == "is killed" and os.fork() == 0:  # no thread: the template forks as if it had but one
    die_with(template)
    kill_on_request()
reader_process.answer = answer
reader_process.serve(socket.socket(fileno=int(FD)), Path(ROOT))
