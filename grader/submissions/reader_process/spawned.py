"""A reader that was not forked: a separate Python process, which does one job.

    python -I -m grader.submissions.reader_process.spawned

It meets its host through an `Invitation`.
"""

from __future__ import annotations

import os
import sys

from grader.processes import channel
from grader.sandbox.confinement.layers import prepare
from grader.sandbox.invitation import Guest
from grader.submissions.reader import messages
from grader.submissions.reader_process.jobs import answer, confine_reader

PRIVATE = "private"  # the reader's folder in the scratch folder


def run_spawned_reader() -> None:
    """Meet the host, do one job, and send one message."""
    guest = Guest()
    prepare()
    with guest.connect() as connection:
        confinement = messages.decode_confinement(channel.receive(connection.recv))
        job = messages.decode_job(channel.receive(connection.recv))
        if not isinstance(job, messages.ReadPaths):  # once confined, it cannot read our modules
            import grader.submissions.layouts  # noqa: F401, PLC0415, slow: a check needs none
        confined = confine_reader(confinement, guest.folder / PRIVATE, guest.host_pid)
        guest.obey()  # it has no orders, and ends with its host; its thread is confined as well
        messages.send(connection, confined)
        if not confined.fault and not isinstance(job, messages.ReadPlainly):
            messages.send(connection, answer(job))


if __name__ == "__main__":
    try:
        run_spawned_reader()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)
