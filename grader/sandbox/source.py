"""Searches a student's source for its uses of torch. Nothing is run."""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from grader.sandbox.syntax import BINDS_ANY, INDIRECT, Unsearchable, searched_nodes

MAX_TEXT = 1_000_000  # characters searched of a source
MAX_PARTS = 12  # parts of a dotted name; no name of torch has more
MAX_NAME = 80  # characters of one part, or of a text that may name one
MAX_MEANINGS = 64  # meanings of one name
MAX_ROUNDS = 12  # rounds in which meanings are followed from name to name
METHOD = "torch.Tensor."  # also stands for the attributes of anything unknown
# Functions that define attributes whose names they get as texts.
DEFINERS = {
    *("setattr", "add_module", "register_module", "register_buffer", "register_parameter"),
    *("namedtuple", "make_dataclass", "Enum", "add_argument", "ModuleDict", "ParameterDict"),
}


class Use(NamedTuple):
    """A line of a source that uses something imported, by its full name."""

    line: int
    name: str


def forbidden_calls(
    text: str, file: str, patterns: Sequence[str], names: Collection[str] = ()
) -> list[Use]:
    """Return the uses of names that match a pattern such as `torch*.layer_norm`.

    In a notebook, only the cells that the functions and classes `names` need count; without names,
    all. The list is empty for a source that does not parse; loading that source reports the error.
    Raises `Unsearchable`.
    """
    if not may_name(text, patterns):
        return []
    uses = used_names(text, file, names)
    matching = (use for use in uses if any(fnmatchcase(use.name, each) for each in patterns))
    return [use for use in matching if _exists(use.name)]


def _exists(name: str) -> bool:
    """Return False for a method of tensors that torch does not have, if torch is loaded."""
    if not name.startswith(METHOD) or (torch := sys.modules.get("torch")) is None:
        return True
    part = name.removeprefix(METHOD).partition(".")[0]
    modules = [each for key, each in sys.modules.copy().items() if key.startswith("torch")]
    return (
        any(part in getattr(module, "__dict__", ()) for module in modules)
        or hasattr(torch.Tensor, part)
        or hasattr(torch.nn.Module, part)
        or any(hasattr(space, part) for space in (torch.ops.aten, torch.ops.prims))
    )


def may_name(text: str, patterns: Sequence[str]) -> bool:
    """Return whether a source may match a pattern; if False, no search is necessary."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)  # as Python does
    return bool(patterns) and (
        any(_landmark(pattern) in plain for pattern in patterns)
        or INDIRECT.search(plain) is not None
    )


def used_names(text: str, file: str, names: Collection[str] = ()) -> list[Use]:
    """Return the full names of everything imported that a source uses, in the order of lines.

    All meanings that a name gets anywhere in the source count: imports, assignments of every kind,
    defaults, attributes, and constant texts given to `getattr`, `vars(…)[…]`, `eval` and the like.
    The cells of a notebook are parsed one by one, because a notebook runs without those that do
    not parse; with `names`, only the cells that these need are searched. Raises `Unsearchable` if
    the parser or the search gives up.
    """
    if len(text) > MAX_TEXT:
        raise Unsearchable(f"it is longer than {MAX_TEXT} characters")
    try:
        return sorted(_Resolver(searched_nodes(text, file, names, _reaches_any)).uses)
    except (RecursionError, MemoryError) as error:
        raise Unsearchable("it is nested too deeply") from error


def _reaches_any(nodes: list[ast.AST]) -> bool:
    """Return whether some nodes look up an attribute that can bind any global name.

    The attribute's name is a text made of constants, or its module is known only at run time.
    """
    looks_up = any(
        isinstance(node, ast.Name | ast.Attribute) and _last_name(node) in BY_TEXT for node in nodes
    )
    return looks_up and _Resolver(nodes).reaches_any()


def _last_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _landmark(pattern: str) -> str:
    """Return the longest plain piece of a pattern: a text without it cannot match the pattern."""
    return max(re.split(r"[*?\[\].]+", pattern.partition("torch")[2]), key=len)


class _Meaning(NamedTuple):
    """A possible value of an expression: something with a full name, or a constant text."""

    text: str
    is_name: bool = True

    def of(self, part: str) -> _Meaning | None:
        """Return the attribute `part` of this; None if no name of torch can be that long."""
        if not self.is_name or len(part) > MAX_NAME or self.text.count(".") + 2 > MAX_PARTS:
            return None
        return _Meaning(f"{self.text}.{part}")


_Meanings = frozenset[_Meaning]
NOTHING: _Meanings = frozenset()
LOOKUPS = {"getattr", "operator.attrgetter", "builtins.getattr"}
NAMESPACES = {"vars", "builtins.vars"}
IMPORTERS = {"__import__", "importlib.import_module", "importlib.__import__", "builtins.__import__"}
RUNNERS = {"eval", "exec", "builtins.eval", "builtins.exec"}
BY_TEXT = {"getattr", "attrgetter", "methodcaller", "__getattribute__", "__getattr__"}
BUILTINS = {"getattr", "vars", "__import__", "eval", "exec"}


@dataclass
class _Resolver:
    """Finds the full name and the line of every use of something imported, in `uses`."""

    nodes: list[ast.AST]
    uses: set[Use] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.names: dict[str, set[_Meaning]] = {name: {_Meaning(name)} for name in BUILTINS}
        self.attributes: dict[str, set[_Meaning]] = {}  # assigned attributes, of any object
        self.stars: list[str] = []  # modules imported with `import *`
        self._known: dict[int, _Meanings] = {}  # meanings of expressions, by id, in this round
        self.own = {name for node in self.nodes for name in _own_names(node)}
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        self._follow()
        kinds = (ast.Attribute, ast.Call, ast.Name, ast.Subscript)
        for node in self.nodes:
            if isinstance(node, kinds):
                names = [meaning.text for meaning in self._meanings(node) if meaning.is_name]
                self.uses.update(Use(node.lineno, name) for name in names if "." in name)
            self.uses.update(self._of_unknown(node))

    def _of_unknown(self, node: ast.AST) -> Iterator[Use]:
        """Yield the meanings of an attribute of something unknown, which may be a tensor or torch.

        `x.softmax(-1)` may be torch's; an attribute that the source defines or assigns is its own.
        """
        match node:
            case ast.Attribute(value=owner, attr=name, ctx=ast.Load()):
                if not any(meaning.is_name for meaning in self._known.get(id(owner), ())):
                    yield from self._maybe_torchs(node.lineno, [name])
            case ast.Call(func=ast.Attribute(attr=way) | ast.Name(id=way), args=args):
                if way in BY_TEXT:
                    texts = [text for arg in args[:2] for text in self._texts(arg)]
                    yield from self._maybe_torchs(node.lineno, texts)

    def reaches_any(self) -> bool:
        """Return whether an attribute that can bind any global name is looked up."""
        for node in self.nodes:
            match node:
                case ast.Call(func=ast.Attribute() | ast.Name() as func, args=args):
                    if (way := _last_name(func)) not in BY_TEXT:
                        continue
                    texts = [text for arg in args[:2] for text in self._texts(arg)]
                    owners = self._known.get(id(args[0]), NOTHING) if args else NOTHING
                    is_named = any(owner.is_name for owner in owners)
                    if any(map(BINDS_ANY.search, texts)) or (
                        not texts and (is_named or way != "getattr")
                    ):
                        return True
        return False

    def _maybe_torchs(self, line: int, names: Iterable[str]) -> Iterator[Use]:
        yield from (
            Use(line, METHOD + name)
            for name in names
            if name.isidentifier() and len(name) <= MAX_NAME and name not in self.own
        )

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                root = alias.name.partition(".")[0]
                full = alias.name if alias.asname else root
                self._add(self.names, alias.asname or root, [_Meaning(full)])
                self.uses.add(Use(node.lineno, alias.name))
            elif alias.name == "*":
                self.stars.append(node.module or "")
            else:
                full = f"{node.module or ''}.{alias.name}"
                self._add(self.names, alias.asname or alias.name, [_Meaning(full)])
                self.uses.add(Use(node.lineno, full))

    def _add(
        self, table: dict[str, set[_Meaning]], name: str, meanings: Iterable[_Meaning]
    ) -> bool:
        """Add meanings of a name; return whether one is new."""
        known = table.setdefault(name, set())
        before = len(known)
        known.update(meanings)
        if len(known) > MAX_MEANINGS:
            raise Unsearchable(f"the name {name[:MAX_NAME]} means too many things")
        return len(known) > before

    def _follow(self) -> None:
        """Give the names the meanings of their values, until nothing new is found."""
        bindings = [pair for node in self.nodes for pair in _bindings(node)]
        for _ in range(MAX_ROUNDS):
            changed = False
            for target, value in bindings:
                if self._bind(target, self._meanings(value)):
                    changed = True
                    self._known.clear()  # earlier findings rest on the old meanings
            if not changed:
                return
        raise Unsearchable("too many names are bound to each other")

    def _bind(self, target: _Target, meanings: _Meanings) -> bool:
        """Give a name or an attribute its meanings; return whether one is new."""
        if not meanings:
            return False
        if isinstance(target, ast.Attribute):
            return self._add(self.attributes, target.attr, meanings)
        is_new = self._add(self.names, target, meanings)
        # A name in a class is an attribute of its objects, too.
        return self._add(self.attributes, target, meanings) or is_new

    def _meanings(self, node: ast.AST) -> _Meanings:
        """Return the possible values of an expression; its parts are found without recursion."""
        pending = [node]
        while pending:
            top = pending[-1]
            missing = [p for p in _parts(top) if id(p) not in self._known]
            if missing:
                pending += missing
            else:
                pending.pop()
                found = frozenset(self._direct(top))
                if len(found) > MAX_MEANINGS:
                    raise Unsearchable("an expression means too many things")
                self._known[id(top)] = found
        return self._known[id(node)]

    def _direct(self, node: ast.AST) -> Iterator[_Meaning]:
        """Yield the possible values of an expression, given those of its parts."""
        match node:
            case ast.Name(id=name):
                yield from self.names.get(name, ())
                if name not in self.names:
                    yield from (_Meaning(f"{star}.{name}") for star in self.stars)
            case ast.Constant(value=str(text)) if len(text) <= MAX_NAME * 4:
                yield _Meaning(text, is_name=False)
            case ast.Attribute(value=owner, attr=name):
                yield from self._attribute(self._known[id(owner)], name)
            case ast.Subscript(value=owner, slice=key):
                yield from self._item(self._known[id(owner)], self._texts(key))
            case ast.Call(func=func, args=args):
                yield from self._call(func, args)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                for first in self._texts(left):
                    yield from (
                        _Meaning(first + second, is_name=False)
                        for second in self._texts(right)
                        if len(first + second) <= MAX_NAME * 4
                    )
            case ast.JoinedStr(values=values):
                yield from (_Meaning(t, is_name=False) for t in self._joined(values))
            case _:  # an expression of parts, such as a tuple or a condition, may be any of them
                for part in _parts(node):
                    yield from self._known[id(part)]

    def _attribute(self, owners: _Meanings, name: str) -> Iterator[_Meaning]:
        names = [owner for owner in owners if owner.is_name]
        for owner in names:
            if name in ("__dict__", "__getattribute__", "__getattr__"):
                yield _Meaning(f"{name} of {owner.text}")
            elif found := owner.of(name):
                yield found
        if not names:
            yield from self.attributes.get(name, ())

    def _item(self, owners: _Meanings, keys: list[str]) -> Iterator[_Meaning]:
        """Yield the possible values of a subscript, of a namespace or of a container."""
        for owner in owners:
            if not owner.is_name:
                continue
            for key in keys:
                if owner.text == "sys.modules":
                    yield _Meaning(key)
                elif found := _Meaning(owner.text.partition(" of ")[2] or owner.text).of(key):
                    yield found
            if not keys:
                yield owner

    def _call(self, func: ast.expr, args: list[ast.expr]) -> Iterator[_Meaning]:
        texts = [self._texts(arg) for arg in args[:2]] + [[], []]
        for function in self._known[id(func)]:
            name = function.text
            if name in LOOKUPS:
                owners = self._known[id(args[0])] if args else NOTHING
                yield from (found for part in texts[1] for found in self._dotted(owners, part))
            elif name in NAMESPACES and args:
                yield from self._attribute(self._known[id(args[0])], "__dict__")
            elif name in IMPORTERS:
                whole = "__import__" not in name
                yield from (_Meaning(t if whole else t.partition(".")[0]) for t in texts[0])
            elif name in RUNNERS:
                yield from (found for code in texts[0] for found in self._evaluated(code))
            elif " of " in name and args:  # F.__dict__.get("…"), F.__getattribute__("…")
                owner = name.partition(" of ")[2].removesuffix(".get").removesuffix(".pop")
                for part in texts[0]:
                    yield from self._dotted(frozenset({_Meaning(owner)}), part)
        if isinstance(func, ast.Call) and args:
            yield from self._got(func, self._known[id(args[0])])

    def _got(self, getter: ast.Call, owners: _Meanings) -> Iterator[_Meaning]:
        """Yield the possible values of `attrgetter("…")(owner)`."""
        makers = {maker.text for maker in self._known[id(getter.func)]}
        if "operator.attrgetter" in makers and getter.args:
            for path in self._texts(getter.args[0]):
                yield from self._dotted(owners, path)

    def _dotted(self, owners: _Meanings, path: str) -> _Meanings:
        for part in path.split(".")[:MAX_PARTS]:
            owners = frozenset(self._attribute(owners, part))
        return owners

    def _evaluated(self, code: str) -> Iterator[_Meaning]:
        """Yield the meanings of a constant text of a few names as an expression."""
        if re.fullmatch(r"[\w.]+", head := code.partition("(")[0].strip()):
            root, _, path = head.partition(".")
            owners = frozenset(self.names.get(root, ()))
            yield from self._dotted(owners, path) if path else owners

    def _texts(self, node: ast.expr) -> list[str]:
        return [m.text for m in self._known.get(id(node), ()) if not m.is_name]

    def _joined(self, values: list[ast.expr]) -> list[str]:
        texts = [""]
        for value in values:
            pieces = self._texts(value.value if isinstance(value, ast.FormattedValue) else value)
            texts = [text + piece for text in texts for piece in pieces]
            if len(texts) > MAX_MEANINGS:
                raise Unsearchable("a text means too many things")
        return [text for text in texts if len(text) <= MAX_NAME * 4]


def _parts(node: ast.AST) -> list[ast.expr]:
    """Return the expressions on which the meaning of an expression depends."""
    match node:
        case ast.Attribute(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
            return [value]
        case ast.Subscript(value=value, slice=key):
            return [value, key]
        case ast.Call(func=func, args=args):
            maker = [func.func, *func.args[:1]] if isinstance(func, ast.Call) else []
            return [func, *args[:2], *maker]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [left, right]
        case ast.JoinedStr(values=values):
            return [v.value if isinstance(v, ast.FormattedValue) else v for v in values]
        case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
            return elts
        case ast.Dict(values=values) | ast.BoolOp(values=values):
            return values
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
        case ast.Await(value=value):
            return [value]
    return []


def _own_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node defines as the source's own, which are not torch's."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.ClassDef(name=name, body=body):
            yield name
            fields = (target for each in body for target, _ in _bindings(each))
            yield from (target for target in fields if isinstance(target, str))
            yield from (
                each.target.id
                for each in body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            )
        case ast.Attribute(attr=name, ctx=ast.Store()) | ast.keyword(arg=str(name)):
            yield name
        case ast.Call(func=ast.Attribute(attr=way) | ast.Name(id=way)) if way in DEFINERS:
            for each in (part for arg in node.args for part in ast.walk(arg)):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield from re.findall(r"\w+", each.value.replace("-", "_").lstrip("_"))


_Target = str | ast.Attribute


def _bindings(node: ast.AST) -> Iterator[tuple[_Target, ast.expr]]:
    """Yield the names and attributes that a node binds, each with the expression of its value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _unpacked(target, value)
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield from _unpacked(target, value)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield from _unpacked(target, value)
        case ast.comprehension(target=target, iter=value):
            yield from _unpacked(target, value)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            given = value.args if isinstance(value, ast.Call) else []
            for entered in (value, *given):  # a context may give what it was made with
                yield from _unpacked(target, entered)
        case ast.arguments(posonlyargs=first, args=args, kwonlyargs=named):
            positional = [*first, *args]
            defaults = node.defaults
            pairs = zip(positional[len(positional) - len(defaults) :], defaults)
            yield from ((arg.arg, value) for arg, value in pairs)
            yield from ((a.arg, value) for a, value in zip(named, node.kw_defaults) if value)


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[_Target, ast.expr]]:
    """Yield the bindings of an assignment; a target in a tuple may get any item of the value."""
    match target:
        case ast.Name(id=name):
            yield name, value
        case ast.Attribute():
            yield target, value
        case ast.Subscript(value=container):  # an item may be read like any other
            yield from _unpacked(container, value)
        case ast.Starred(value=inner):
            yield from _unpacked(inner, value)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if len(values) == len(targets) and not any(
                isinstance(item, ast.Starred) for item in (*values, *targets)
            ):
                for inner, item in zip(targets, values):
                    yield from _unpacked(inner, item)
            else:
                for inner in targets:
                    yield from _unpacked(inner, value)
