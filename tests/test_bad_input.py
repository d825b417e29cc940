"""Whatever a submission does, it costs only the tests it breaks, and says what happened."""

from __future__ import annotations

import ast
import gc
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from classroom import short_limit
from commandline import Cli, Grade

from grader.course.course import Course, load_course
from grader.course.stubs import make_stub, statement_of
from grader.course.suite_text import shipped
from grader.grading.grader import Grader
from grader.grading.session import with_grader
from grader.report import ExerciseResult
from grader.sandbox.host.zygote import Zygote
from grader.sandbox.source import forbidden_calls
from grader.submissions.submission import Submission

pytestmark = pytest.mark.in_turn

GradeTiny = Callable[[str], ExerciseResult]


def misbehaving(solution: str, deed: str) -> str:
    """The reference, except that the factor 3 does `deed`."""
    lines = "\n".join(f"        {line}" for line in deed.splitlines())
    broken = solution.replace(
        "    if factor < 0:", f"    if factor == 3.0:\n{lines}\n    if factor < 0:"
    )
    assert broken != solution
    return broken


DEEDS = {
    "returns None": ("return None", "the output is None, where a tensor is expected"),
    "returns a tuple": ("return (x, x)", "the output is a tuple of 2, where a tensor is expected"),
    "returns a number": ("return 3.5", "the output is a number (3.5), where a tensor is expected"),
    "returns a string": ("return 'x'", "the output is a string ('x')"),
    "returns an object": ("return nn.Linear(2, 2)", "the output is an object of type Linear"),
    "returns itself inside": ("a = []; a.append(a); return a", "your code raised RecursionError"),
    "wrong shape": ("return x.T", "the output has shape (3, 2), where (2, 3) is expected"),
    "wrong dtype": ("return x.float() * 3", "the output is float32, where float64 is expected"),
    "complex": ("return x.to(torch.complex128)", "the output is an object of type complex128"),
    "nan": ("return x * float('nan')", "the output is nan at [0, 0]"),
    "wrong values": ("return x * 3.1", "(6 of 6 values differ, by up to"),
    "raises": ("raise KeyError('lost')", "your code raised KeyError: 'lost'"),
    "raises a pytest outcome": (
        "import pytest; pytest.skip('please')",
        "your code raised Skipped: please",
    ),
    "raises what cannot be shown": (
        "class Odd(Exception):\n    def __str__(self): raise self\nraise Odd",
        "your code raised Odd: (its message cannot be shown)",
    ),
    "sys.exit": ("import sys; sys.exit(0)", "your code raised SystemExit: 0"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "your code raised KeyboardInterrupt"),
    "os._exit": (
        "import os; os._exit(0)",
        "your code ended the process it ran in (exit code 0)",
    ),
    "replaces its process": (
        "import os; os.execv('/bin/true', ['true'])",
        "PermissionError: [Errno 1] Operation not permitted; graded code may use no",
    ),
    "starts a process": (
        "import os; os.fork(); return x * 3",
        "PermissionError: [Errno 1] Operation not permitted; graded code may use no",
    ),
    "opens a file of its own": (
        "return torch.load('weights.pt')",
        "No such file or directory: 'weights.pt'; graded code may use no other file",
    ),
    "segfault": ("import ctypes; ctypes.string_at(0)", "a segmentation fault"),
    "recurses without end": ("return scale(x, factor)", "your code raised RecursionError"),
    "recurses in C": (
        "import sys; sys.setrecursionlimit(10**9)\nf = lambda _: [*map(f, [0])]\nf(0)",
        "your code",
    ),
    "allocates a lot": ("return torch.zeros(10**12)", "your code raised RuntimeError"),
    "allocates without end": (
        "hoard = []\nwhile True: hoard.append(torch.empty(2**26))",
        "can't allocate memory",
    ),
    "answers by itself": (
        "import os\nfor fd in range(3, 64):\n"
        "    try: os.write(fd, b'\\x00\\x00\\x00\\x01x')\n    except OSError: pass\nreturn x * 3",
        "your code interfered with the grader's connection",
    ),
    "closes every file": (
        "import os; os.closerange(0, 1000); return x * 3",
        "your code",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("deed", DEEDS)
def test_a_deed_costs_only_the_test_it_breaks(
    deed: str, grade_tiny: GradeTiny, tiny_solution: str
) -> None:
    code, said = DEEDS[deed]
    check_only_thrice_failed(grade_tiny(misbehaving(tiny_solution, code)), said)


def check_only_thrice_failed(result: ExerciseResult, said: str) -> None:
    outcomes = {test.name: test.outcome for test in result.tests}
    assert outcomes.pop("test_thrice") == "failed"
    assert set(outcomes.values()) == {"passed"}
    assert result.points == 6
    assert said in result.tests[2].message


HANGS = {
    "loops for ever": "while True: pass",
    "sleeps in native code": "import time; time.sleep(60)",
    "ignores signals": (
        "import signal\n"
        "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "while True: pass"
    ),
    "swallows everything": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("deed", HANGS)
def test_code_that_hangs_costs_only_the_test_it_breaks(
    deed: str, grade_tiny: GradeTiny, tiny_solution: str
) -> None:
    with short_limit(0.4, lambda request: 3.0 in getattr(request, "args", ())):
        result = grade_tiny(misbehaving(tiny_solution, HANGS[deed]))
    check_only_thrice_failed(result, "your code did not finish within 0.4 seconds")


@pytest.mark.slow
def test_a_hang_at_import_fails_with_its_reason(grade_tiny: GradeTiny) -> None:
    with short_limit(0.4):
        result = grade_tiny("while True: pass\n")
    assert result.points == 0
    assert result.first_failure is not None
    said = "your code did not finish within 0.4 seconds; it was at `while True: pass`"
    assert result.first_failure.message.startswith(said)


HARMLESS = {
    "prints a megabyte": "print('x' * 2**20)",
    "writes to the descriptors": "import os; os.write(1, b'noise'); os.write(2, b'noise')",
    "closes stdout": "import os; os.close(0); os.close(1); os.close(2)",
    "leaves threads running": (
        "import threading, time\n"
        "for _ in range(3): threading.Thread(target=time.sleep, args=(60,)).start()"
    ),
    "leaves a busy thread": (
        "import threading\nthreading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()"
    ),
    "changes the seed": "torch.manual_seed(0)",
    "turns gradients off": "torch.set_grad_enabled(False)",
}


@pytest.mark.slow
@pytest.mark.parametrize("deed", HARMLESS)
def test_a_right_answer_counts_whatever_else_the_code_does(
    deed: str, grade_tiny: GradeTiny, tiny_solution: str
) -> None:
    result = grade_tiny(misbehaving(tiny_solution, HARMLESS[deed]))
    assert result.passed, result.first_failure


def test_print_output_is_shown_and_cut(grade_tiny: GradeTiny, tiny_solution: str) -> None:
    loud = misbehaving(tiny_solution, "print('my shape', x.shape)\nprint('y' * 2**20)\nreturn x")
    test = grade_tiny(loud).first_failure
    assert test is not None
    assert test.printed.startswith("my shape torch.Size([2, 3])")
    assert len(test.printed) < 1000


def test_terminal_controls_do_not_reach_a_report(grade_tiny: GradeTiny, tiny_solution: str) -> None:
    nasty = misbehaving(tiny_solution, r"raise ValueError('\x1b[2Jgone\x07 \u202etxet')")
    test = grade_tiny(nasty).first_failure
    assert test is not None
    assert test.message == "your code raised ValueError: gone txet"


WHOLE_FILES = {
    "a syntax error": (
        "def scale(x, factor:\n    return x\n",
        "your code raised SyntaxError: '(' was never closed",
    ),
    "a package that is not there": (
        "import no_such_package\n\ndef scale(x, factor): return no_such_package.scale(x, factor)\n",
        "your code raised ModuleNotFoundError: No module named 'no_such_package'",
    ),
    "an import of the answers": (
        "from reference.masked_softmax.solution import masked_softmax as scale\n",
        "No module named 'reference'",
    ),
    "an error of the kind that a test waits for": (
        "raise ValueError('x')\n",
        "your code raised ValueError: x",
    ),
    "no function": ("x = 1\n", "scale.py defines no `scale`"),
    "another name": (
        "def scale_it(x, factor): return x * factor\n",
        "scale.py defines no `scale`; did you mean `scale_it`?",
    ),
    "too few arguments": (
        "def scale(x): return x\n",
        "your code raised TypeError: scale() takes 1 positional argument but 2 were given",
    ),
    "an exception at import": ("1 / 0\n", "your code raised ZeroDivisionError: division by zero"),
    "an exit at import": ("import sys; sys.exit()\n", "your code raised SystemExit"),
    "a crash at import": ("import os; os._exit(4)\n", "(exit code 4)"),
    "a null byte": ("x = '\0'\n", "null bytes"),
    "an empty file": ("", "scale.py defines no `scale`"),
}


@pytest.mark.parametrize("what", WHOLE_FILES)
def test_a_file_that_does_not_load_fails_with_its_reason(what: str, grade_tiny: GradeTiny) -> None:
    text, said = WHOLE_FILES[what]
    result = grade_tiny(text)
    assert result.points == 0
    assert result.first_failure is not None
    assert said in result.first_failure.message


def test_a_syntax_error_has_file_line_and_caret(cli: Cli, tiny_copy: Path) -> None:
    work = tiny_copy / "work"
    work.mkdir()
    (work / "scale.py").write_text("def scale(x, factor):\n    return x factor\n")
    said = cli("check", work, "--course", tiny_copy)
    assert said.code == 1
    assert f"{work}/scale.py:2" in said.out
    lines = said.out.splitlines()
    at = lines.index("      return x factor")
    assert lines[at + 1].index("^") == lines[at].index("factor")


def test_an_error_names_the_students_line_and_no_other(
    grade_tiny: GradeTiny, tiny_solution: str
) -> None:
    test = grade_tiny(misbehaving(tiny_solution, "x @ x")).first_failure
    assert test is not None
    assert test.where is not None
    assert (test.where.file, test.where.source.strip()) == ("scale.py", "x @ x")


# --- what is asked of the command -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said", "remedy"),
    [
        (
            ["check", "nowhere/at_all"],
            "there is no file, folder or exercise nowhere/at_all",
            "try:",
        ),
        (["check", "scal"], "did you mean `scale`?", "grader check --help"),
        (["check", "--seed", "x"], "'x' is not a valid integer", "grader check --help"),
        (["check", "--format", "pdf"], "'pdf' is not one of", "grader check --help"),
        (["hint", "skale"], "there is no exercise `skale`; did you mean `scale`?", "grader status"),
        (["test"], "there is no command `test`; did you mean `check`?", "grader --help"),
        (["chek"], "there is no command `chek`; did you mean `check`?", "grader --help"),
        (["check", "--course", "/nonexistent"], "no course at /nonexistent", "--course DIR"),
    ],
)
def test_a_wrong_request_is_one_message_with_a_remedy_and_exit_2(
    arguments: list[str],
    said: str,
    remedy: str,
    cli: Cli,
    tiny_copy: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tiny_copy)
    result = cli(*arguments)
    assert result.code == 2
    assert said in result.err
    assert remedy in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


def test_an_exercise_from_two_places_is_a_wrong_request(cli: Cli, tiny_copy: Path) -> None:
    for name in ("s001", "s002"):
        (tiny_copy / name).mkdir()
        (tiny_copy / name / "scale.py").write_text("x = 1\n")
    result = cli("check", tiny_copy / "s001", tiny_copy / "s002", "--course", tiny_copy)
    assert result.code == 2
    assert "scale is given twice" in result.err
    assert "one submission at a time" in result.err


def test_a_report_is_never_written_over_the_work(cli: Cli, tiny_copy: Path) -> None:
    work = tiny_copy / "scale.py"
    work.write_text("x = 1\n")
    result = cli("check", work, "--course", tiny_copy, "-o", work)
    assert result.code == 2
    assert "is the file that is graded" in result.err
    assert work.read_text() == "x = 1\n"


def test_only_an_untouched_stub_is_not_started(cli: Cli, tiny_copy: Path) -> None:
    work = tiny_copy / "scale.py"
    work.write_text(
        "from torch import nn\nclass Scale(nn.Module): pass\n"
        "def scale(x, factor): raise NotImplementedError('later')\n"
    )
    said = cli("check", work, "--course", tiny_copy).out
    assert "not started" not in said
    assert "your code raised TypeError" in said  # what is wrong before what is not written yet


@pytest.mark.slow
def test_a_complex_or_sparse_tensor_is_called_what_it_is(
    grade_tiny: GradeTiny, tiny_solution: str
) -> None:
    for code, said in (("x.to(torch.complex64)", "complex64"), ("x.to_sparse()", "sparse")):
        test = grade_tiny(misbehaving(tiny_solution, f"return {code}")).first_failure
        assert test is not None
        assert f"{said} tensor" in test.message


def test_an_empty_folder_is_a_wrong_request(cli: Cli, tiny_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = cli("check", tmp_path / "empty", "--course", tiny_copy)
    assert result.code == 2
    assert "no exercise file in" in result.err


def test_a_file_of_another_name_is_named_with_what_was_meant(
    cli: Cli, tiny_copy: Path, tmp_path: Path
) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "scale1.py").write_text("x = 1\n")
    result = cli("check", tmp_path / "w", "--course", tiny_copy)
    assert result.code == 2
    assert (
        "`scale1.py` is not an exercise file and was left out; did you mean `scale`?" in result.err
    )


def test_a_file_that_is_not_utf8_says_which_byte(cli: Cli, tiny_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "scale.py").write_bytes(b"# fine\n# caf\xe9\n")
    result = cli("check", tmp_path / "w", "--course", tiny_copy)
    assert result.code == 1
    assert "`scale.py` is not UTF-8: byte 0xe9 in line 2" in " ".join(result.out.split())


def test_links_are_left_out_and_said_so(cli: Cli, tiny_copy: Path, tmp_path: Path) -> None:
    work = tmp_path / "w"
    work.mkdir()
    (work / "scale.py").symlink_to(tiny_copy / "reference" / "scale" / "solution.py")
    result = cli("check", work, "--course", tiny_copy)
    assert result.code == 2
    assert "`scale.py` is a link and was left out" in result.err


def test_a_linked_folder_is_left_out_too(cli: Cli, tiny_copy: Path, tmp_path: Path) -> None:
    work = tmp_path / "w"
    work.mkdir()
    (work / "scale").symlink_to(tiny_copy / "reference" / "scale")
    result = cli("check", work, "--course", tiny_copy)
    assert result.code == 2
    assert "`scale/solution.py` is a link and was left out" in result.err


@pytest.mark.slow
def test_a_file_name_that_is_not_text_does_not_cost_the_report(
    cli: Cli, tiny_copy: Path, tmp_path: Path, tiny_solution: str
) -> None:
    work = tmp_path / "w"
    work.mkdir()
    (work / "scale.py").write_text(tiny_solution)
    Path(os.fsdecode(os.fsencode(work) + b"/\xff.py")).write_text("")
    result = cli("check", work, "--course", tiny_copy, "--format", "json")
    assert result.code == 0
    assert "xff.py` is not an exercise file" in result.out


@pytest.mark.slow
def test_spoiling_the_inputs_earns_nothing(grade_tiny: GradeTiny, tiny_solution: str) -> None:
    cheat = tiny_solution.replace("    if factor < 0:", "    x.zero_()\n    if factor < 0:")
    empty = (
        "import torch\ndef scale(x, factor):\n    x.data = x.new_empty(0)\n    return x.clone()\n"
    )
    for text in (cheat, empty):
        outcomes = {test.name: test.outcome for test in grade_tiny(text).tests}
        assert (outcomes["test_twice"], outcomes["test_thrice"]) == ("failed", "failed")


@pytest.mark.slow
def test_an_output_that_cannot_be_written_is_said(cli: Cli, tiny_copy: Path) -> None:
    work = tiny_copy / "reference"
    result = cli("check", work, "--course", tiny_copy, "-o", "/nonexistent/report.json")
    assert result.code == 2
    assert "cannot write /nonexistent/report.json" in result.err


LONG = {  # long or deep sources: each is read in a moment, or not at all
    "a chain of attributes": "import torch as a\ndef f(): return a" + ".b" * 1500,
    "many chains": "import torch as a\n" + ("def f(): return a" + ".b" * 900 + "\n") * 60,
    "a name that grows": "import torch as a\n" + "a = a.b\n" * 12_000,
    "nested getattr": "import torch as a\nx = lambda: "
    + "getattr(" * 80
    + "a"
    + ", 'b')" * 80
    + "\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LONG)
def test_reading_a_source_is_neither_long_nor_deep(what: str) -> None:
    start = time.process_time()
    assert forbidden_calls(f"{LONG[what]}\n# multiply", "x.py", ["torch*.multiply"]) == []
    assert time.process_time() - start < 20  # it takes less than one


@pytest.mark.slow
def test_a_test_that_computes_something_huge_from_an_answer_fails(
    tiny_copy: Path, grade: Grade, tiny_solution: str
) -> None:
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    suite.write_text(
        suite.read_text()
        + """

def test_huge(student, rng):
    \"\"\"A sum with itself.\"\"\"
    x = student.scale(rng.randn(3, 3), 5.0)
    assert (x + x.T).sum() != float("inf")
"""
    )
    huge = misbehaving(tiny_solution, "pass").replace("factor == 3.0", "factor == 5.0")
    huge = huge.replace("pass\n", "return torch.zeros(200_000, 1, dtype=torch.int8)\n", 1)
    result = grade(load_course(tiny_copy), {"scale": huge}).exercises[0]
    outcomes = {test.name: test.outcome for test in result.tests}
    assert outcomes.pop("test_huge") == "failed"
    assert set(outcomes.values()) == {"passed"}
    assert "what your code returned cannot be used here" in result.tests[-1].message


@pytest.mark.slow
def test_a_failed_test_keeps_nothing_of_what_it_held(
    tiny_course: Course, zygote: Zygote, tiny_solution: str
) -> None:
    """A class of wrong answers takes no more memory than one."""
    wrong = misbehaving(tiny_solution, "return torch.zeros(400_000, dtype=torch.float64)")

    def large_tensors() -> int:
        found = [thing for thing in gc.get_objects() if type(thing) is torch.Tensor]
        return sum(tensor.numel() > 100_000 for tensor in found)

    def body(grader: Grader) -> None:
        for _ in range(3):
            report = grader.grade(Submission("s001", {"scale": wrong}), ["scale"], 1).report
            assert report.points == 6
        assert large_tensors() == 0

    with_grader(tiny_course, ["scale"], zygote, body)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("student.scale(x, 2.0)[0]", "your code returned is None: is a `return` missing?"),
        (
            "assert_close(student.scale(x, 2.0), 2 * x)",
            "the output is None, where a tensor is expected: is a `return` missing?",
        ),
    ],
)
def test_a_missing_return_is_asked_for(
    call: str, says: str, tiny_copy: Path, grade: Grade, tiny_solution: str
) -> None:
    suite = tiny_copy / "reference" / "scale" / "test_hidden.py"
    body = f'    """Last."""\n    x = rng.randn(2)\n    {call}\n'
    suite.write_text(f"{suite.read_text()}\n\ndef test_last(student, rng):\n{body}")
    text = tiny_solution.replace("return x * factor", "x * factor")
    (result,) = grade(load_course(tiny_copy), {"scale": text}).exercises
    assert says in result.tests[-1].message


def test_code_that_wants_a_gpu_is_told_that_there_is_none(
    tiny_course: Course, grade: Grade, tiny_solution: str
) -> None:
    text = tiny_solution.replace("return x * factor", "return x.cuda() * factor")
    (result,) = grade(tiny_course, {"scale": text}).exercises
    assert result.first_failure is not None
    assert "graded code has no GPU: take the device of the inputs" in result.first_failure.message


def test_threads_that_read_files_make_one_tree_at_a_time(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once can end in a SystemError of CPython, which is about neither file."""
    parse, now, most = ast.parse, list[int](), list[int]()

    def slowly(*arguments: Any, **options: Any) -> ast.AST:
        now.append(1)
        time.sleep(0.002)
        most.append(len(now))
        try:
            return parse(*arguments, **options)
        finally:
            now.pop()

    monkeypatch.setattr(ast, "parse", slowly)
    exercise = course["layer_norm"]
    jobs = [
        lambda n=n: (
            make_stub(exercise),
            statement_of(f'"""Number {n}."""\n'),
            forbidden_calls(f"x = {n}\n", "x.py", ["torch*.multiply"]),
            shipped(f"x = {n}\n"),
        )
        for n in range(6)
    ]
    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(job) for job in jobs]:
            job.result()
    assert len(most) >= 4 * len(jobs)
    assert {*most} == {1}
