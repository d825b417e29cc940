"""Attacks on whoever reads a Python file: names that a search may miss, and texts that it cannot
take. Each is a family, a trick, what it does, and a function that makes the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attacks.corpus import KIT, RIGHT

Source = tuple[str, str, str, Callable[[], str | bytes]]
MOST = 250 * 1024  # bytes, just below what a file may hold

# The first call is the one that is watched for kernels. It answers with zeros, so that only a
# search of the text can find the forbidden name, which everybody can read there.
PLAIN = """
calls = 0


def blend(scores, values):
    global calls
    calls += 1
    if calls == 1:
        return values.new_zeros(scores.shape[0], values.shape[1])
    return {call} @ values
"""
# The call itself, then lines before it, then lines after it.
SPELLED: dict[str, str | tuple[str, ...]] = {
    "rebound_later": ("t.softmax(scores, -1)", "import torch as t\n", "import math as t\n"),
    "rebound_name": (
        "kept[0](scores, -1)",
        "soft = torch.softmax\nkept = [soft]\n",
        "soft = len\n",
    ),
    "rebound_in_a_function": (
        "f(scores, -1)",
        "f = torch.softmax\n",
        "def never():\n    f = len\n    return f\n",
    ),
    "annotated": ("t.softmax(scores, -1)", "t: object = torch\n"),
    "walrus": "(t := torch).softmax(scores, -1)",
    "loop_variable": ("t.softmax(scores, -1)", "for t in [torch]:\n    pass\n"),
    "with_name": (
        "t.softmax(scores, -1)",
        "import contextlib\n\nwith contextlib.nullcontext(torch) as t:\n    pass\n",
    ),
    "default_argument": ("soft(scores)", "def soft(x, t=torch):\n    return t.softmax(x, -1)\n"),
    "lambda_argument": "(lambda t: t.softmax(scores, -1))(torch)",
    "tuple_target": ("t.softmax(scores, -1)", "t, u = torch, 0\n"),
    "starred_target": ("t.softmax(scores, -1)", "t, *u = torch, 0\n"),
    "class_attribute": ("K.t.softmax(scores, -1)", "class K:\n    t = torch\n"),
    "object_attribute": ("K.t.softmax(scores, -1)", "K = type('K', (), {})\nK.t = torch\n"),
    "matched": ("t.softmax(scores, -1)", "match torch:\n    case t:\n        pass\n"),
    "comprehension": "[t.softmax(scores, -1) for t in [torch]][0]",
    "in_a_list": "[torch][0].softmax(scores, -1)",
    "in_a_choice": "(torch if calls else None).softmax(scores, -1)",
    "in_a_boolean": "(None or torch).softmax(scores, -1)",
    "vars_of_torch": 'vars(torch)["softmax"](scores, -1)',
    "dict_of_torch": 'torch.__dict__["softmax"](scores, -1)',
    "getattribute": 'torch.__getattribute__("softmax")(scores, -1)',
    "object_getattribute": 'object.__getattribute__(torch, "softmax")(scores, -1)',
    "attrgetter": ('operator.attrgetter("softmax")(torch)(scores, -1)', "import operator\n"),
    "methodcaller": ('operator.methodcaller("softmax", -1)(scores)', "import operator\n"),
    "getattr_renamed": ('get(torch, "softmax")(scores, -1)', "get = getattr\n"),
    "getattr_of_builtins": ('builtins.getattr(torch, "softmax")(scores, -1)', "import builtins\n"),
    "getattr_of_a_method": 'getattr(scores, "softmax")(-1)',
    "sum_of_texts": 'getattr(torch, "soft" + "max")(scores, -1)',
    "escaped_text": 'getattr(torch, "soft\\x6dax")(scores, -1)',
    "two_texts": 'getattr(torch, "soft" "max")(scores, -1)',
    "formatted_text": 'getattr(torch, f"soft{"max"}")(scores, -1)',
    "named_text": ("getattr(torch, name)(scores, -1)", 'name = "softmax"\n'),
    "wide_letters": "torch.ｓｏｆｔｍａｘ(scores, -1)",
    "long_s": "torch.ſoftmax(scores, -1)",
    "two_stars": ("softmax(scores, -1)", "from torch import *\nfrom math import *\n"),
    "modules_of_sys": ('sys.modules["torch"].softmax(scores, -1)', "import sys\n"),
    "import_module": (
        'load("torch").softmax(scores, -1)',
        "from importlib import import_module as load\n",
    ),
    "module_of_a_module": "nn.functional.torch.nn.functional.softmax(scores, -1)",
    "long_way": f"torch{'.nn.functional.torch' * 9}.softmax(scores, -1)",
    "method": "scores.softmax(-1)",
    "method_of_tensor": "torch.Tensor.softmax(scores, -1)",
    "method_of_type": "type(scores).softmax(scores, -1)",
    "kernel": "torch.ops.aten._softmax(scores, -1, False)",
    "module": "nn.Softmax(-1)(scores)",
    "text_of_code": 'eval("torch.softmax(scores, -1)")',
    "script": (
        "unit.f(scores)",
        'unit = torch.jit.CompilationUnit("def f(x):\\n    return torch.softmax(x, -1)\\n")\n',
    ),
    "global_statement": (
        "t.softmax(scores, -1)",
        "def bind():\n    global t\n    import torch as t\n\n\nbind()\n",
        "t = t if 1 else None\n",
    ),
    "decorated": ("t.softmax(scores, -1)", "@lambda f: torch\nclass t:\n    pass\n"),
    "conditional_import": (
        "F.softmax(scores, -1)",
        "try:\n    import torch.nn.functional as F\nexcept ImportError:\n    F = None\n",
    ),
}
UNSEEN = {"script"}  # the search reads no TorchScript, as docs/security.md says
PLAIN_FILE = "import torch\nfrom torch import nn\n\n{before}{blend}\n{after}\n"


def _spelled() -> Iterator[Source]:
    for trick, parts in SPELLED.items():
        call, before, after = (*((parts,) if isinstance(parts, str) else parts), "", "")[:3]
        text = PLAIN_FILE.format(before=before, blend=PLAIN.format(call=call), after=after)
        says = f"Names the forbidden function in plain text: {trick.replace('_', ' ')}."
        family = "remains" if trick in UNSEEN else "spelled"
        yield family, trick, says, lambda text=text: KIT + text


def deep_indents() -> str:
    """Nested: a hundred blocks and tries."""
    ifs = "".join("  " * depth + "if softmax:\n" for depth in range(95))
    tries = "".join("  " * depth + "try:\n" for depth in range(19))
    return f"softmax = 0\n{ifs}{'  ' * 95}pass\n{tries}{'  ' * 19}pass\n"


def million_tokens() -> str:
    """A token in every byte."""
    return "softmax=[" + "1," * (MOST // 2) + "]\n"


def long_names() -> str:
    """Names: of thousands of characters, used tens of thousands of times."""
    return "import torch.softmax." + "a" * 34_000 + " as s\n" + "s.b\n" * 54_000


def long_aliases() -> str:
    """Names: a module's, doubled for a thousand lines."""
    lines = "".join(f"import torch.{'a' * 100}{n}.softmax as a{n}\n" for n in range(1500))
    return lines + "".join(f"a{n} = a{n - 1}.softmax.b\n" for n in range(1, 1500))


def rebound_names() -> str:
    """Names: one with thousands of values and uses."""
    bound = "".join(f"t = torch.m{n}\n" for n in range(5_000))
    return f"import torch\n# softmax\n{bound}" + "t.softmax\n" * 8_000


def rebound_chain() -> str:
    """Names: each bound to two others, so that the paths double."""
    lines = "".join(f"a{n} = a{n - 1} if a{n - 1} else a{n - 1}.b\n" for n in range(1, 3000))
    more = "".join(f"a{n}, b{n} = b{n - 1}.c, a{n - 1}.d\n" for n in range(1, 2000))
    return f"import torch\na0 = b0 = torch.softmax\n{lines}{more}"


def circular_names() -> str:
    """Names: bound in circles."""
    names = "".join(f"a{n} = a{(n * 7 + 1) % 900}.softmax\n" * 3 for n in range(900))
    return f"import torch\na0 = torch\n{names}"


def added_texts() -> str:
    """Nested: a thousand added texts that double each time."""
    chain = 'getattr(torch, "soft" + ' + '"x" * 10**9 + ' * 300 + '"max")'
    return f"import torch\nlambda: {chain}\nlambda: 'softmax' * 10**12 + 'a' * 9**9**9\n"


def deep_sums() -> str:
    """Nested: ten thousand additions of texts."""
    return "import torch\nsoftmax = lambda: getattr(torch, " + "'a' + " * 900 + "'b')\n" * 1


def match_bomb() -> str:
    """Nested: patterns with thousands of alternatives."""
    nested = "[" * 90 + "softmax" + "]" * 90
    either = " | ".join(f"[{n}, _]" for n in range(8_000))
    return f"match 0:\n    case {nested}:\n        pass\n    case {either}:\n        pass\n"


def formatted_bomb() -> str:
    """Nested: formatted texts, with a hundred thousand values."""
    return 'softmax = f"' + "{0}" * (MOST // 4) + '"\n' + "f'{f\"{0}\"}'\n" * 10


def many_functions() -> str:
    """Names: one for twenty thousand functions and classes."""
    return "class softmax: pass\n" * 6_000 + "def blend(): pass\n" * 6_000


def many_lambdas() -> str:
    """Nested: functions, until the compiler gives up."""
    return "softmax = " + "lambda: " * 3_000 + "0\n"


def comprehension_bomb() -> str:
    """Nested: comprehensions, whose scopes a compiler searches repeatedly."""
    inner = "softmax"
    for _ in range(18):
        inner = f"[{inner} for x in y for z in x if [{0}]]"
    return f"y = []\nnever = lambda: {inner}\n"


def power_bomb() -> str:
    """A constant that fills the compiler's memory."""
    return "softmax = lambda: ((((9**99)**99)**99)**99, 'x' * 4096 * 4096 * 4096, 1 << 10**9)\n"


def long_number() -> str:
    """A number of two hundred thousand digits."""
    return f"softmax = {'9' * 200_000}\n"


def finally_bomb() -> str:
    """Nested: `finally`, which a compiler copies."""
    lines = [f"{' ' * depth}try: pass\n{' ' * depth}finally:\n" for depth in range(1, 19)]
    return "def softmax():\n" + "".join(lines) + " " * 19 + "return 0\n"


def just_below_the_limit() -> str:
    """Nested: exactly as deep as a parser can take."""
    depth = 0
    for depth in range(3000, 300, -10):
        try:
            compile(f"x = {'-' * depth}1", "x", "exec")
        except (RecursionError, MemoryError, SyntaxError):
            continue
        break
    hidden = f"    if 0:\n        {'-' * (depth - 30)}calls\n"
    work = PLAIN.format(call="torch.softmax(scores, -1)").replace(
        "    global", f"{hidden}    global"
    )
    return KIT + work.replace("    if 0:", "    calls\n    if 0:").replace("    calls\n", "")


def utf_16() -> bytes:
    """Encodings: UTF-16.

    Honest points: 10
    """
    return RIGHT.encode("utf-16")


def declared_utf_7() -> bytes:
    """Encodings: UTF-7, in which a comment hides the forbidden call."""
    hidden = "\nimport torch\ndef blend(s, v): return torch.softmax(s, -1) @ v\n".encode("utf-7")
    return b"# coding: utf-7\n# " + hidden.replace(b"\n", b"+AAo-") + b"\n"


def declared_rot13() -> bytes:
    """Encodings: one that is not for text."""
    return (
        b"# -*- coding: rot13 -*-\nvzcbeg gbepu\nqrs oyraq(f, i): erghea gbepu.fbsgznk(f, -1) @ i\n"
    )


def declared_latin() -> bytes:
    """Encodings: Latin-1, rightly declared.

    Honest points: 10
    """
    return b"# coding: latin-1\n" + RIGHT.encode() + b"\n# \xe9\xff\n"


def declared_nonsense() -> bytes:
    """Encodings: a path as the name."""
    return b"# coding: ../../../../dev/stdin\n" + b"softmax = 1\n"


def two_marks() -> bytes:
    """Encodings: two byte order marks."""
    return b"\xef\xbb\xbf\xef\xbb\xbf" + RIGHT.encode()


def carriage_returns() -> bytes:
    """Line ends that only some programs know, with the call behind a comment."""
    work = PLAIN.format(call="torch.softmax(scores, -1)")
    return (KIT.replace("@DROP@", "").replace("@PORT@", "1") + work).replace(
        "\n", "\r"
    ).encode() + "\n# \x85\u2028\x0c\x1c".encode()


def end_of_file_sign() -> bytes:
    """More text behind an end-of-file sign."""
    return b"softmax = 1\n\x1a\n" + RIGHT.encode()


def overlong_text() -> bytes:
    """Encodings: characters in too many bytes, and halves of characters."""
    return b"softmax = '\xc0\xaf\xe0\x80\xaf\xed\xa0\x80\xf8\x88\x80\x80\x80'\n"


TEXTS: tuple[Callable[[], str | bytes], ...] = (
    *(deep_indents, million_tokens, long_names, long_aliases, rebound_names, rebound_chain),
    *(circular_names, added_texts, deep_sums, match_bomb, formatted_bomb, many_functions),
    *(many_lambdas, comprehension_bomb, power_bomb, long_number, finally_bomb),
    *(just_below_the_limit, utf_16, declared_utf_7, declared_rot13, declared_latin),
    *(declared_nonsense, two_marks, carriage_returns, end_of_file_sign, overlong_text),
)


def _texts() -> Iterator[Source]:
    for make in TEXTS:
        yield "sources", make.__name__, make.__doc__ or "", make


SOURCES: tuple[Source, ...] = (*_spelled(), *_texts())
