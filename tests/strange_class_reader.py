"""A template process whose readers add a note that names their process, and that do more if told.

    python -I strange_class_reader.py HOW FD ROOT

What they do, they do only where they serve a class; a reader of its own is honest.
"""

from __future__ import annotations

import ast
import codecs
import os
import signal
import socket
import sys
import time
from pathlib import Path

from msgspec import structs

from grader.processes import channel, forking
from grader.submissions.reader import messages, sharing
from grader.submissions.reader_process import template as reader_process

HOW, FD, ROOT = sys.argv[1:]
honest = reader_process.answer


def with_process(read: messages.Answer) -> messages.Answer:
    """Return the answer with a note that names this process."""
    if not isinstance(read, messages.FilesRead):
        return read
    return structs.replace(read, notes=(*read.notes, f"process {os.getpid()}"))


def misbehave(job: messages.ReadAttempt) -> None:
    """Do what the command line says, before the attempt is read."""
    match HOW:
        case "compiles":
            ast.parse("1")
        case "loads a codec":
            codecs.lookup("utf-7")
        case "fails":
            raise RuntimeError
        case "leaves":
            os._exit(0)
        case "is killed":
            os.abort()
        case "sleeps":
            time.sleep(60)
        case "computes":
            signal.raise_signal(signal.SIGXCPU)
        case "floods":
            os.write(forking.CONNECTION, channel.HEADER.pack(messages.MAX_ANSWER * 2))
        case "talks nonsense":
            os.write(forking.CONNECTION, channel.HEADER.pack(2) + b"\xc1\xc1")
        case "answers twice" if job.student == b"s001":
            read = with_process(honest(job))
            assert isinstance(read, messages.FilesRead)
            os.write(
                forking.CONNECTION, channel.framed(messages.encode(messages.PlainlyRead(1, read)))
            )
        case "takes links for folders":
            Path.is_symlink = lambda path: False  # type: ignore[method-assign]


def answer(job: messages.Job) -> messages.Answer:
    """Answer honestly or, in a reader that serves a class, after what is strange."""
    if not sharing._is_shared:
        return with_process(honest(job))
    assert isinstance(job, messages.ReadAttempt)
    misbehave(job)
    read = with_process(honest(job))
    if HOW == "reads beside the class" and isinstance(read, messages.FilesRead):
        beside = Path(os.fsdecode(job.parts[0].path)).parent.parent / "secret.py"
        try:
            text = beside.read_text()
        except OSError as error:
            text = os.strerror(error.errno or 0)
        return structs.replace(read, texts=dict.fromkeys(read.texts, text))
    return read


reader_process.answer = answer
reader_process.serve(socket.socket(fileno=int(FD)), Path(ROOT))
