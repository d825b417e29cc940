"""A program: source texts that import each other, loaded as modules in a separate namespace.

It loads a student's files in the worker and the reference solutions in the host, so imports work
the same way in both. A worker gets compiled stand-ins. Nothing is read from disk and `sys.path` is
not touched. A package that is not installed fails where it is used, not where it is imported.
"""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import marshal
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_loader
from types import CodeType, FrameType, ModuleType
from typing import Any

from grader.sandbox.absent import Muted, importer
from grader.sandbox.cells import BROKEN, CELL, NOTEBOOK
from grader.sandbox.syntax import parsed
from grader.sandbox.wire import Source
from grader.syntax_trees import syntax_tree


class Program(MetaPathFinder, Loader):
    """An importer for the modules of one program, which are `sources` by module name.

    In it, the packages `muted` do nothing, whether they are installed or not.
    """

    def __init__(self, sources: Mapping[str, Source], muted: Collection[str] = ()) -> None:
        self.sources = sources
        # As in a notebook; here every magic does nothing.
        shell = {"get_ipython": Muted()}
        importing = {"__import__": importer(sources, muted, self._is_guarded)}
        self._builtins = {**vars(builtins), **shell, **importing}
        self._modules: dict[str, ModuleType] = {}
        self._outside: dict[str, ModuleType | None] = {}
        self._lines: dict[str, tuple[int, None, list[str], str]] = {}  # by file, for `linecache`
        self._depth = 0

    def load(self, name: str) -> ModuleType:
        """Return the module `name`; if it is new, run its code, and raise its errors."""
        with self.active():
            if name not in self._modules:
                spec = self.find_spec(name)
                assert spec is not None, f"{name} is not a module of this program"
                module = module_from_spec(spec)
                sys.modules[name] = self._modules[name] = module
                try:
                    self.exec_module(module)
                except BaseException:
                    del self._modules[name]
                    sys.modules.pop(name, None)
                    raise
            return self._modules[name]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let `import` find this program's modules in the block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Let `import` find this program's modules; may be nested."""
        self._depth += 1
        if self._depth == 1:
            self._outside = {name: sys.modules.pop(name, None) for name in self.sources}
            sys.modules.update(self._modules)
            sys.meta_path.insert(0, self)
            linecache.cache.update(self._lines)  # another program's files may have the same names

    def leave(self) -> None:
        """Undo one `enter`; the last one restores other modules of the same names."""
        self._depth -= 1
        if self._depth:
            return
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in self._outside.items():
            loaded = sys.modules.pop(name, None)
            if loaded is not None:
                self._modules[name] = loaded
            if module is not None:
                sys.modules[name] = module

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of one of this program's modules, None for any other name."""
        if fullname not in self.sources:
            return None
        return spec_from_loader(fullname, self, origin=self.sources[fullname].file)

    def exec_module(self, module: ModuleType) -> None:
        """Compile and run one module's text, or run its code."""
        source = self.sources[module.__name__]
        module.__file__ = source.file
        module.__dict__["__builtins__"] = self._builtins
        if not source.own:
            exec(_stand_in(source), module.__dict__)
            return
        lines = source.text.splitlines(keepends=True)
        self._lines[source.file] = (len(source.text), None, lines, source.file)
        linecache.cache.update(self._lines)
        if not source.file.endswith(NOTEBOOK):
            exec(_compiled(source.text, source.file), module.__dict__)
            return
        module.__dict__[BROKEN] = list(_run_cells(source, module.__dict__))

    def _is_guarded(self, frame: FrameType) -> bool:
        """Return whether the current line of a frame of this program handles a failed import."""
        for source in self.sources.values():
            if source.file == frame.f_code.co_filename:
                return bool(source.code) or frame.f_lineno in _guarded_lines(source.text)
        return True


def is_stand_in(code: CodeType) -> bool:
    """Return whether this is code of a stand-in, under any file name."""
    return id(code) in _stand_ins


@functools.lru_cache(maxsize=64)
def _stand_in(source: Source) -> CodeType:
    """Return the code of a stand-in, which is the same object in every program."""
    code = marshal.loads(source.code) if source.code else _compiled(source.text, source.file)
    _keep_codes(code)
    return code


def _keep_codes(code: CodeType) -> None:
    """Remember the code of a stand-in and of all functions and classes in it."""
    _stand_ins[id(code)] = code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            _keep_codes(each)


_stand_ins: dict[int, CodeType] = {}  # by id, which is valid as long as the code is kept


@functools.lru_cache(maxsize=512)
def _compiled(text: str, file: str) -> CodeType:
    """Compile a text without its block for scripts, which is not searched either."""
    if "__name__" not in text and text.isascii():  # other letters may be the same name to Python
        return compile(text, file, "exec", dont_inherit=True)
    return compile(parsed(text, file), file, "exec", dont_inherit=True)


@functools.lru_cache(maxsize=8)
def _guarded_lines(text: str) -> frozenset[int]:
    """Return the lines of a source in the body of a `try` with handlers, or in a `with`.

    A notebook with a cell that does not parse has no such lines.
    """
    try:
        nodes = [*ast.walk(syntax_tree(text))]
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    guards = [
        n for n in nodes if isinstance(n, ast.With) or (isinstance(n, ast.Try) and n.handlers)
    ]
    inner = (statement for guard in guards for statement in guard.body)
    return frozenset(
        line for each in inner for line in range(each.lineno, (each.end_lineno or 0) + 1)
    )


def _run_cells(source: Source, namespace: dict[str, Any]) -> Iterator[str]:
    """Run one cell after the other, like a notebook; yield a message for each failed one."""
    lines = source.text.split("\n")
    starts = [n for n, line in enumerate(lines) if line.startswith(CELL)]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        # With empty lines in front, so that line numbers are those of the whole text.
        text = "\n" * start + "\n".join(lines[start:end])
        try:
            exec(_compiled(text, source.file), namespace)
        except Exception as error:
            number = lines[start].removeprefix(CELL)
            yield f"cell {number} raised {type(error).__name__}: {str(error)[:200]}"
