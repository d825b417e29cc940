"""Pages of a class for those who review it: with names, or with nothing that tells whose it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from classroom import Instant, hand_in, marks, rows, run
from commandline import Cli, Said
from test_similarity import program

ROSTER = (
    "id,name,login,email,number,section\n"
    "s001,Zoë Ångström,zoe-a,zoe@school.example,8842317,A\n"
    's002,"Berg, Anna",abergx,anna.berg@school.example,8842318,B\n'
    "s003,Ann Marie Cole,amc77,amc@school.example,8842319,A\n"
    "s004,Max Query,maxq,maxq@school.example,8842320,A\n"
    "s005,Zoe Adams,zadams9,zadams@school.example,8842321,A\n"
)
PERSONAL = re.compile(
    "s00[1-5]|ångström|zoë|adams|zoe-a|abergx|berg|anna|cole|marie|amc|maxq|school.example|88423",
    re.I,
)
LONG = program(1)
FILES = {
    "s001/zoe_angstrom_scale.py": (
        '# Zoë Ångström, 8842317\n# 6 points\n"""By zoe@school.example."""\n'
        f"def scale(x):\n    s001_result = max(x)\n    return s001_result\n{LONG}\n"
    ),
    "s002/scale.py": (
        "# Anna (with Ann Marie Cole), login abergx\n# 5 points\n"
        f"annaBerg = 'berg anna'\nanna_berg_total = 1\n{LONG}\n"
    ),
    "s005/adams_z.7z": "no Python",
    "s004/scale.py": "# Max took the max of each row\n# 7 points\ntop = max(1, 2)\n",
    **{f"s{n:03}/scale.py": f"# the max of {n}\n# 8 points\n{program(n)}" for n in range(11, 20)},
}


@pytest.fixture
def graded(cli: Cli, instant: Instant, tmp_path: Path) -> Path:
    """A class whose files, names and texts tell who wrote them; s003 hands in nothing."""
    hand_in(tmp_path / "class", FILES)
    (tmp_path / "class.csv").write_text(ROSTER, "utf-8")
    said = run(cli, tmp_path, "--roster", tmp_path / "class.csv")
    assert said.code == 1, said.err
    return tmp_path / "out"


def share(cli: Cli, out: Path, *more: object) -> Said:
    said = cli("share", "--in", out, "--course", Path(__file__).parent / "tiny", *more)
    assert said.code == 0, said.err
    return said


def pages(folder: Path) -> dict[str, str]:
    found = folder.rglob("*")
    return {str(path.relative_to(folder)): path.read_text() for path in found if path.is_file()}


def pseudonym_of(out: Path, points: int) -> str:
    """Return the pseudonym of the only student with these points."""
    found = [
        name
        for name, page in pages(out / "shared").items()
        if name.startswith("code/") and f"<p>{points} of 8 points" in page
    ]
    (page,) = found
    return Path(page).stem


def test_nothing_in_an_anonymous_page_tells_whose_it_is(graded: Path, cli: Cli) -> None:
    said = share(cli, graded, "--anonymous")
    found = pages(graded / "shared")
    kinds = sorted({name.partition("/")[0] for name in found})
    assert kinds == ["code", "index.html", "reports", "similar"]
    assert len([name for name in found if name.startswith("code/")]) == 13
    for name, page in {**found, "what the command says": said.out + said.err}.items():
        assert PERSONAL.findall(f"{Path(name).name} {page.replace(str(graded), '')}") == [], name
    assert "13 students, under pseudonyms: " in said.out
    # One who handed in nothing has a pseudonym as well; sections are left out.
    missing = found["index.html"].partition('id="missing"')[2].partition("</section>")[0]
    assert re.findall(r"<li><bdi>anon-[a-z2-7]{8}</bdi></li>", missing)
    # What is similar, and why somebody needs review, is still there to see.
    pair = next(page for name, page in found.items() if name.startswith("similar/"))
    assert pair.count("hll") > 20
    assert "… was used for scale because its name nearly fits" in found["index.html"]


def test_no_sentence_of_a_teacher_tells_whose_it_is(graded: Path, cli: Cli) -> None:
    place = ("--in", graded, "--course", Path(__file__).parent / "tiny")
    cli("comment", "s002", "scale:1", "Anna, is `dim=-1` right? Ask Ann Marie Cole.", *place)
    cli("adjust", "s002", "scale", "+1", "--why", "Anna Berg had a sign wrong", *place)
    cli("adjust", "s002", "--final", "-1", "--why", "shown by Berg", *place)
    cli("waive", "scale", "test_all", "--give", "full", "--reason", "unfair, says Anna",
        "--for", "s002", *place)  # fmt: skip
    assert "unfair, says Anna" in (graded / "reports/s002.html").read_text()
    share(cli, graded, "--anonymous")
    for name, page in pages(graded / "shared").items():
        assert PERSONAL.findall(page.replace(str(graded), "")) == [], name
    reports = [page for name, page in pages(graded / "shared").items() if "reports/" in name]
    (report,) = [page for page in reports if "dim=-1" in page]
    assert re.search(r"anon-\w{8}, is .*dim=-1.* right", report)


def test_code_stays_code(graded: Path, cli: Cli) -> None:
    share(cli, graded, "--anonymous")
    page = (graded / "shared/code" / f"{pseudonym_of(graded, 7)}.html").read_text()
    text = re.sub("<[^>]+>", "", page)
    assert "top = max(1, 2)" in text
    # Many say `max`, so it tells of nobody that a comment does.
    assert "the max of each row" in text
    assert "scale.py" in text


def test_links_of_anonymous_pages_lead_somewhere(graded: Path, cli: Cli) -> None:
    share(cli, graded, "--anonymous")
    for name, page in pages(graded / "shared").items():
        for link in re.findall(r'href="([^"#]+)"', page):
            assert (graded / "shared" / name).parent.joinpath(link).exists(), (name, link)


def test_pseudonyms_stay_in_a_folder_and_differ_in_another(
    graded: Path, cli: Cli, tmp_path: Path
) -> None:
    share(cli, graded, "--anonymous")
    before = set(pages(graded / "shared"))
    run(cli, tmp_path)  # another run over the same class
    share(cli, graded, "--anonymous")
    assert set(pages(graded / "shared")) == before
    out = tmp_path / "another"
    tiny = Path(__file__).parent / "tiny"
    cli("batch", tmp_path / "class", "--out", out, "--seed", 5, "--course", tiny)
    share(cli, out, "--anonymous")
    assert not {name for name in pages(out / "shared") if "anon-" in name} & before


def test_a_pseudonym_is_enough_to_explain_and_adjust_a_mark(graded: Path, cli: Cli) -> None:
    share(cli, graded, "--anonymous")
    name, place = (
        pseudonym_of(graded, 6),
        ("--in", graded, "--course", Path(__file__).parent / "tiny"),
    )
    for what in (
        ("explain", name),
        ("history", name),
        ("adjust", name, "scale", "+1", "--why", "a sign"),
        ("adjust", name, "scale", "+9", "--why", "too much"),
    ):
        said = cli(*what, *place)
        shown = (said.out + said.err).replace(str(graded), "")
        assert name in shown
        assert PERSONAL.findall(shown) == [], what
    assert said.code == 2  # the last asks for more than the maximum
    # Names come back with the marks.
    assert marks(graded)["s001"] == f"{6 + 1}"
    cli("export", "csv", *place)
    assert "Zoë Ångström" in (graded / "marks.csv").read_text()


def test_an_adjustment_finds_a_student_by_name_too(graded: Path, cli: Cli) -> None:
    tiny = Path(__file__).parent / "tiny"
    done = cli(
        "adjust", "Zoë Ångström", "scale", "+1", "--why", "x", "--in", graded, "--course", tiny
    )
    assert (done.code, marks(graded)["s001"]) == (0, f"{6 + 1}")
    assert rows(graded, "SELECT student FROM adjustments") == [("s001",)]


def test_pages_may_be_shared_with_names(graded: Path, cli: Cli, tmp_path: Path) -> None:
    share(cli, graded, "--anonymous", "--out", tmp_path / "shown")
    share(cli, graded, "--out", tmp_path / "shown")
    found = pages(tmp_path / "shown")
    assert not [name for name in found if "anon-" in name]
    assert found["index.html"] == (graded / "index.html").read_text()
    assert found["code/s001.html"] == (graded / "code/s001.html").read_text()
    tiny = Path(__file__).parent / "tiny"
    said = cli("share", "--in", graded, "--out", graded, "--course", tiny)
    assert (said.code, "holds the results of a class" in said.err) == (2, True)


def test_an_erased_student_is_in_no_shared_page(graded: Path, cli: Cli) -> None:
    share(cli, graded)
    tiny = Path(__file__).parent / "tiny"
    assert cli("erase", "s001", "--in", graded, "--course", tiny, "--yes").code == 0
    assert not (graded / "shared").exists()
