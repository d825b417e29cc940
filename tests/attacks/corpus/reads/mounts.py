"""Reads by: mounts and another root."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x10020000)
libc.mount(b"/", b"/tmp", None, 4096, None)
libc.chroot(b"/")
tell(open("@HIDDEN@").read())
