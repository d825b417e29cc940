"""Run `grader` with what Windows does not have taken away from its own modules.

    python tests/as_windows.py COMMAND …

Other people's modules see the system as it is: what they do on Windows is their concern. The
processes that the grader starts are treated in the same way.
"""

from __future__ import annotations

import builtins
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

ABSENT_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
ABSENT = {
    "os": """
        fork forkpty killpg setsid waitid wait wait3 wait4 getpgid setpgid getsid geteuid getuid
        getgid getegid setuid setgid sched_setaffinity sched_getaffinity sysconf fchmod fchown chown
        lchown mkfifo mknod posix_fallocate posix_spawn posix_spawnp pread pwrite sendfile openpty
        statvfs uname nice ttyname O_ACCMODE O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK
        O_PATH O_SYNC WNOHANG WEXITED WNOWAIT P_PID
    """,
    "signal": """
        SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTRAP SIGTSTP
        SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU SIGXFSZ alarm setitimer pthread_kill pthread_sigmask
        sigwait siginterrupt
    """,
    "socket": "AF_UNIX send_fds recv_fds SCM_RIGHTS",
    "select": "poll epoll",
}


class AsOnWindows(ModuleType):
    """A module of the standard library without some names, and with others."""

    def __init__(self, real: ModuleType, absent: set[str], changed: dict[str, Any]) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _absent=absent, _changed=changed)

    def __getattr__(self, name: str) -> Any:
        if name in self._absent:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return self._changed[name] if name in self._changed else getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


def open_as_on_windows(path: Any, flags: int, mode: int = 0o777) -> int:
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return os.open(path, flags, mode)


def scandir_as_on_windows(path: Any = ".") -> Any:
    if isinstance(path, int):
        raise TypeError("scandir: path should be string, bytes, os.PathLike or None, not int")
    return os.scandir(path)


class Popen(subprocess.Popen):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        if options.get("pass_fds") or options.get("preexec_fn"):
            raise ValueError("preexec_fn and pass_fds are not supported on Windows platforms")
        super().__init__(*arguments, **options)


def library_of(name: str | None, *arguments: Any, **options: Any) -> Any:
    if name is None:
        raise TypeError("bad argument type for built-in operation")
    return __import__("ctypes").CDLL(name, *arguments, **options)


def refuse_files(*lists: Any) -> Any:
    raise OSError(10038, "An operation was attempted on something that is not a socket")


CHANGED: dict[str, dict[str, Any]] = {
    "os": {
        "open": open_as_on_windows,
        "scandir": scandir_as_on_windows,
        "supports_dir_fd": set(),
        "O_BINARY": 0,
        "O_NOINHERIT": os.O_CLOEXEC,
    },
    "sys": {"platform": "win32"},
    "select": {"select": refuse_files},
    "subprocess": {"Popen": Popen, "CREATE_NO_WINDOW": 0},
    "ctypes": {"CDLL": library_of, "PyDLL": library_of},
}
KEYBOARD = SimpleNamespace(kbhit=lambda: False, getwch=lambda: "q")


def as_on_windows(import_module: Callable[..., Any]) -> Callable[..., Any]:
    """Return an import that gives modules of the grader what they would find on Windows."""
    known: dict[str, ModuleType] = {}

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        spec = (globals or {}).get("__spec__")
        importer = getattr(spec, "name", "") or (globals or {}).get("__name__", "")
        if not importer.startswith("grader") or level:
            return import_module(name, globals, locals, fromlist, level)
        if name in ABSENT_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
        if name == "msvcrt":
            return KEYBOARD
        found = import_module(name, globals, locals, fromlist, level)
        if name not in ABSENT and name not in CHANGED:
            return found
        if name not in known:
            absent = set(ABSENT.get(name, "").split())
            known[name] = AsOnWindows(found, absent, CHANGED.get(name, {}))
        return known[name]

    return importing


if __name__ == "__main__":
    builtins.__import__ = as_on_windows(builtins.__import__)
    import grader.processes.child

    grader.processes.child.module_command = lambda module: (
        *(sys.executable, "-I", "-X", "utf8", "-W", "ignore", __file__, "-m", module),
    )
    if sys.argv[1:2] == ["-m"]:
        del sys.argv[:2]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        from grader.__main__ import main

        main(sys.argv[1:])
