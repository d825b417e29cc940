"""A worker that was not forked: a separate Python process, which imports torch itself.

    python -I -m grader.sandbox.worker.spawned

It meets its host through an `Invitation`. An order on its standard input asks for the place of the
code.
"""

from __future__ import annotations

import os
import sys
import threading

import torch

from grader.processes import channel
from grader.sandbox import control
from grader.sandbox.confinement.layers import prepare
from grader.sandbox.invitation import Guest
from grader.sandbox.worker.operations import count_own_threads
from grader.sandbox.worker.serving import Conversation, drop_project_paths, warm_up

PRIVATE = "private"  # the worker's folder in the scratch folder


def run_spawned_worker() -> None:
    """Warm up, meet the host, and answer its requests until it has closed the connection."""
    guest = Guest()
    torch.set_num_threads(1)
    drop_project_paths()
    warm_up()
    prepare()
    with guest.connect() as connection:
        confinement = control.decode_confinement(channel.receive(connection.recv))
        conversation = Conversation(connection)
        if conversation.begin(confinement, guest.folder / PRIVATE, guest.host_pid):
            main = threading.get_ident()  # the thread that runs the student's code
            guest.obey(lambda: conversation.tell_place(sys._current_frames().get(main)))
            count_own_threads()
            conversation.serve()


if __name__ == "__main__":
    try:
        run_spawned_worker()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)
