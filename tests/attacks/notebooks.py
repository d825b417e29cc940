"""Attacks on whoever reads a notebook."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attacks.corpus import KIT, RIGHT, Fill, Place
from attacks.sources import PLAIN

CODE = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
HEAD = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
MIB = 1 << 20


def _cells(*sources: Any, **more: Any) -> str:
    cells = [{**CODE, "id": f"c{n}", "source": text, **more} for n, text in enumerate(sources)]
    return json.dumps({**HEAD, "cells": cells})


def heading() -> str:
    """Heading cells: which this version lacks."""
    return '{"cells":[{"cell_type":"heading","metadata":{},"source":""}]}'


def headed_heading() -> str:
    """Heading cells: in an older version."""
    cell = {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["x"]}
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
                       "worksheets": [{"cells": [cell, {"cell_type": "heading"}]}]})  # fmt: skip


def high_heading() -> str:
    """Heading cells: of the billionth level."""
    cell = {"cell_type": "heading", "level": 10**9, "metadata": {}, "source": "x"}
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {},
                       "worksheets": [{"cells": [cell] * 3}]})  # fmt: skip


def negative_heading() -> str:
    """Heading cells: of levels that are no numbers."""
    cells = [{"cell_type": "heading", "level": level, "metadata": {}, "source": "x"}
             for level in (-1, 2.5, None, "6", [], 10**30)]  # fmt: skip
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]})


def empty_assignment() -> str:
    """Assigns a magic without a name."""
    return _cells("=% \\", "x = %\n", "x = !\n", "%\n", "!!\n", "??", "%%\n", "x=%\\\n\\\n")


def many_outputs() -> str:
    """Too many: outputs of an unknown kind, a hundred thousand."""
    cell = json.dumps({**CODE, "id": "c", "source": "softmax = 1"})
    outputs = ",".join(['{"output_type":"zz"}'] * (5 * MIB // 2 // 21))
    return json.dumps({**HEAD, "cells": []}).replace(
        '"cells": []', '"cells": [' + cell.replace('"outputs": []', f'"outputs": [{outputs}]') + "]"
    )


def many_cells() -> str:
    """Too many: cells, a hundred thousand."""
    cell = '{"cell_type":"code","metadata":{},"outputs":[],"source":"","execution_count":null}'
    return (
        '{"nbformat":4,"nbformat_minor":4,"metadata":{},"cells":['
        + ",".join([cell] * 80_000)
        + "]}"
    )


def many_lines() -> str:
    """Too many: lines of a cell, half a million."""
    return _cells(["\n"] * 500_000)


def many_magics() -> str:
    """Too many: lines like calls after a magic, fifty thousand."""
    return _cells("%x\n" + "/f a\n" * 50_000)


def many_helps() -> str:
    """Too many: brackets that never close, before a request for help."""
    return _cells("(\n" * 10_000 + "%x\n" + "a?\n" * 500)


def many_prompts() -> str:
    """Too many: console prompts, one before every line."""
    return _cells("%x\n" + "In [1]: >>> ...: " * 2_000 + "\n" + ">>> x\n... y\n" * 9_000)


def many_continued_magics() -> str:
    """Too many: lines of a magic, tens of thousands."""
    return _cells("%x \\\n" + "a \\\n" * 50_000 + "b\n", "!" + " \\\n" * 60_000)


def wide_characters() -> str:
    """Too many: four-byte characters, a quarter of a million."""
    return json.dumps(
        json.loads(_cells("x = '" + "\U0001f600" * 262_000 + "'")), ensure_ascii=False
    )


def deep_json() -> str:
    """Metadata: lists a million deep."""
    return '{"nbformat":4,"nbformat_minor":5,"cells":[],"metadata":' + "[" * MIB + "]" * MIB + "}"


def deep_objects() -> str:
    """Metadata: objects as deep as JSON parsers go."""
    return (
        '{"nbformat":4,"nbformat_minor":5,"cells":[],"metadata":' + '{"a":' * 900 + "1" + "}" * 901
    )


def long_numbers() -> str:
    """Versions: numbers of five thousand digits."""
    return '{"nbformat":' + "9" * 5_000 + ',"nbformat_minor":1e999,"metadata":{},"cells":[NaN]}'


def odd_versions() -> str:
    """Versions: -1, with half a minor version."""
    return '{"nbformat":-1,"nbformat_minor":0.5,"metadata":null,"cells":{}}'


def first_version() -> str:
    """Versions: the first."""
    cells = [{"cell_type": "code", "code": "softmax = 1"}, {"cell_type": "text"}, {}]
    return json.dumps({"nbformat": 1, "cells": cells})


def second_version() -> str:
    """Versions: the second, with nested worksheets."""
    sheet: Any = {
        "cells": [{"cell_type": "plaintext", "input": 3, "outputs": [{"output_type": "x"}]}]
    }
    return json.dumps({"nbformat": 2, "worksheets": [sheet, [sheet], None], "metadata": []})


def third_outputs() -> str:
    """Versions: the third, with outputs of no kind."""
    cell = {"cell_type": "code", "input": "softmax = 1", "language": [], "outputs": [{}, 3, None]}
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": [cell]}]})


def odd_sources() -> str:
    """Cells: sources of every kind but text."""
    return _cells(None, 3, {"a": 1}, [None], [["x"]], True, [{}], 1e400)


def odd_cells() -> str:
    """Cells: none in truth."""
    return json.dumps(
        {**HEAD, "cells": [None, 3, "code", [], {"cell_type": ["code"]}, {"source": ""}]}
    )


def same_ids() -> str:
    """Too many: cells with one id, a thousand."""
    return json.dumps({**HEAD, "cells": [{**CODE, "id": "c", "source": "x = 1"}] * 3_000})


def same_keys() -> str:
    """Every key twice."""
    return '{"cells":[],"cells":[{"cell_type":"code"}],"nbformat":4,"nbformat":3,"nbformat":[]}'


def halves_of_characters() -> str:
    """Half characters in texts and names."""
    return _cells("\ud800 = 1", "x = '\udfff'", "raise ValueError('\ud800')", "%\udcff", "!\ud800")


def own_markers() -> str:
    """Cells: the grader's markers of them, behind every line end."""
    mark = "# %% notebook cell 9"
    ends = ("\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\n", "\r\n")
    return _cells(
        *[f"x = 1{end}{mark}{end}import torch{end}y = torch" for end in ends], f"{mark}\n"
    )


def commented_out() -> str:
    """Cells: one commented out, with line ends that a comment ignores."""
    body = PLAIN.format(call="torch.softmax(scores, -1)").replace("\n", "\r")
    return _cells("import torch", "%%javascript\r" + body + "\n", "%%x\x0c" + body, ")\r" + body)


def breaks_the_search() -> str:
    """Cells: one that parses only alone, with the call in the next."""
    work = PLAIN.format(call="torch.softmax(scores, -1)")
    return _cells("import torch\n" + work, "x = 1\n\x0c\n  # odd", "if 1:\n\tx = 1\n", "x = 1;\\")


def magic_call() -> str:
    """Names the forbidden function in a timing magic."""
    work = PLAIN.format(call="torch.softmax(scores, -1)")
    return _cells(
        "import torch\nfrom torch import nn", f"%%time\n{work}", "%time y = torch.softmax"
    )


def shell() -> str:
    """Magics that run shells and files."""
    lines = ("!touch @DROP@/shell", "%%bash\ntouch @DROP@/bash", "%%writefile @DROP@/written\nx",
             "%run @HIDDEN@", "%load @HIDDEN@", "x = !cat @HIDDEN@", "%cd @ROOT@")  # fmt: skip
    return _cells(*lines, "get_ipython().system('touch @DROP@/system')")


def shell_in_the_reader() -> str:
    """Names codecs, languages and kernels to load."""
    kernel = {"name": "../../x", "argv": ["touch", "@DROP@/kernel"], "language": "os"}
    metadata = {"kernelspec": kernel, "language_info": {"codemirror_mode": kernel}}
    cell = {**CODE, "id": "c", "source": "# coding: @HIDDEN@\nx = 1"}
    return json.dumps({**HEAD, "metadata": metadata, "cells": [cell]})


def attached() -> str:
    """Attaches a false picture of six megabytes."""
    data = "A" * (6 * MIB)
    cell = {
        "cell_type": "markdown",
        "metadata": {},
        "source": "",
        "attachments": {"a": {"b": data}},
    }
    return json.dumps({**HEAD, "cells": [cell]})


def not_json() -> bytes:
    """UTF-32 that is not JSON."""
    return _cells("x = 1").encode("utf-32")


def text_of_another() -> str:
    """Another student's file as its code."""
    return _cells(RIGHT, "raise SystemExit")


NOTEBOOKS_OF: tuple[Callable[[], str | bytes], ...] = (
    *(heading, headed_heading, high_heading, negative_heading, empty_assignment, many_outputs),
    *(many_cells, many_lines, many_magics, many_helps, many_prompts, many_continued_magics),
    *(wide_characters, deep_json, deep_objects, long_numbers, odd_versions, first_version),
    *(second_version, third_outputs, odd_sources, odd_cells, same_ids, same_keys),
    *(halves_of_characters, own_markers, commented_out, breaks_the_search, magic_call, shell),
    *(shell_in_the_reader, attached, not_json, text_of_another),
)


def _placed(make: Callable[[], str | bytes]) -> Place:
    def place(folder: Path, name: str, fill: Fill) -> None:
        made = make()
        (folder / name).mkdir()
        data = made if isinstance(made, bytes) else fill(made).encode("utf-8", "surrogatepass")
        (folder / name / "blend.ipynb").write_bytes(data)

    place.__name__, place.__doc__ = make.__name__, make.__doc__
    return place


def two_kinds(folder: Path, name: str, fill: Fill) -> None:
    """A file and a notebook that differ."""
    (folder / name).mkdir()
    (folder / name / "blend.py").write_text(fill(KIT))
    (folder / name / "blend.ipynb").write_text(_cells(RIGHT))


NOTEBOOKS = (*map(_placed, NOTEBOOKS_OF), two_kinds)
