"""Plants: compiled bytecode for the reference."""

import os
import py_compile

open("@DROP@/planted.py", "w").write("def blend(*a): return 0\n")
py_compile.compile(
    "@DROP@/planted.py",
    cfile="@REFERENCES@/__pycache__/reference_blend.cpython-311.pyc",
)
