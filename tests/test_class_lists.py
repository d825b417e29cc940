"""Rosters and groups of a class: whose a submission is, when it came, and for whom it counts."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from classroom import TINY, Instant, grade_lines, hand_in, marks, report_of, rows
from commandline import Cli, Said

from grader.classroom.standings import Standing, Standings

NO_TIME = "no time of submission is known, so lateness was not counted"
COURSE = """
title = "A tiny course"
points = 8
due = 2026-11-12T12:00:00+01:00
"""


@pytest.fixture
def strict(tiny_copy: Path) -> Path:
    """A course in which each day of delay costs a quarter."""
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text(f"{COURSE}[late]\nper_day = 25\n")
    return tiny_copy


def batch(
    cli: Cli, tmp_path: Path, course: Path = TINY, *more: object, **files: str | bytes
) -> Said:
    """Grade `class` with files of these names (`roster`, `groups`) as options."""
    options = [*more]
    for name, data in files.items():
        path = tmp_path / f"{name}.csv"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        options += [f"--{name}", path]
    place = ("--out", tmp_path / "out", "--course", course, "--seed", 5)
    return cli("batch", tmp_path / "class", *place, *options)


def late_days(tmp_path: Path, student: str) -> float:
    return report_of(tmp_path / "out", student)["mark"]["late_days"]


def flags(tmp_path: Path, student: str) -> list[str]:
    """The flags of a student, which the table of the class shows too."""
    found = report_of(tmp_path / "out", student)["flags"]
    page = (tmp_path / "out" / "index.html").read_text()
    assert [flag for flag in found if flag not in page] == []
    return found


def lines(tmp_path: Path, name: str = "grades.csv") -> dict[str, dict[str, str]]:
    return grade_lines(tmp_path / "out", name)


# --- the times in Moodle's worksheet --------------------------------------------------------------

HEADERS = {
    "en": "Identifier,Full name,Email address,Status,Group,Grade,Maximum Grade,"
    "Grade can be changed,Last modified (submission),Last modified (grade),Feedback comments",
    "de": "ID,Vollständiger Name,E-Mail-Adresse,Status,Gruppe,Bewertung,Bestwertung,"
    "Bewertung kann geändert werden,Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),"
    "Feedback als Kommentar",
    "fr": "Identifiant,Nom complet,Adresse de courriel,Statut,Groupe,Note,Note maximale,"
    "La note peut être modifiée,Dernière modification (travail remis),"
    "Dernière modification (note),Feedback par commentaires",
    "es": "Identificador,Nombre completo,Dirección de correo,Estatus,Grupo,Calificación,"
    "Calificación máxima,La calificación puede ser cambiada,Última modificación (entrega),"
    "Última modificación (calificación),Comentarios de retroalimentación",
    "it": "Identificativo,Nome completo,Indirizzo email,Stato,Gruppo,Valutazione,"
    "Valutazione massima,La valutazione può essere modificata,Ultima modifica (consegna),"
    "Ultima modifica (valutazione),Commenti",
    "pt": "Identificador,Nome completo,Endereço de e-mail,Status,Grupo,Nota,Nota máxima,"
    "Nota pode ser alterada,Última modificação (envio),Última modificação (nota),Comentários",
    "nl": "Identificatie,Volledige naam,E-mailadres,Status,Groep,Cijfer,Maximumcijfer,"
    "Cijfer kan aangepast worden,Laatst gewijzigd (inzending),Laatst gewijzigd (cijfer),Feedback",
    "pl": "Identyfikator,Pełna nazwa,Adres e-mail,Status,Grupa,Ocena,Maksymalna ocena,"
    "Ocena może zostać zmieniona,Ostatnia modyfikacja (zadanie),Ostatnia modyfikacja (ocena),Uwagi",
    "other": "Tunniste,Koko nimi,Sähköposti,Tila,Ryhmä,Arvosana,Enintään,Muutettavissa,"
    "Viimeksi muokattu (palautus),Viimeksi muokattu (arvosana),Palaute",
}
WORDS = {"en": "Participant ", "de": "Teilnehmer/in", "pl": "Uczestnik ", "nl": "Deelnemer "}
TIMES = {  # a day and some hours after the due date, as Moodle writes it
    "en": "Friday, 13 November 2026, 10:05 PM",
    "de": "Freitag, 13. November 2026, 22:05",
    "fr": "vendredi 13 novembre 2026, 22:05",
    "es": "viernes, 13 de noviembre de 2026, 22:05",
    "it": "venerdì, 13 novembre 2026, 22:05",
    "pt": "sexta-feira, 13 de novembro de 2026 às 22:05",
    "nl": "vrijdag, 13 november 2026, 22:05",
    "pl": "piątek, 13 listopada 2026, 22:05",
    "other": "13/11/26, 22:05",
}


def worksheet(language: str, *times: str) -> str:
    """A worksheet of Moodle's, with a line for each time of submission."""
    word = WORDS.get(language, "Participant")
    students = [
        f'{word}{70 + n},Student {n},s00{n}@school.example,Submitted,A,,8.00,Yes,"{time}",-,'
        for n, time in enumerate(times, start=1)
    ]
    return "\n".join([HEADERS[language], *students, ""])


def moodle_class(tmp_path: Path, students: int) -> None:
    names = [f"Student {n}_{70 + n}_assignsubmission_file" for n in range(1, students + 1)]
    hand_in(tmp_path / "class", {f"{name}/scale.py": "# 8 points" for name in names})


@pytest.mark.parametrize("language", HEADERS)
def test_the_times_of_moodles_worksheet_count_in_every_language(
    language: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 2)
    said = batch(cli, tmp_path, strict, roster=worksheet(language, TIMES[language], "-"))
    assert "moodle layout: 2 students" in said.err
    assert marks(tmp_path / "out") == {"71": "4", "72": "8"}
    assert late_days(tmp_path, "71") == 2  # days begun
    assert flags(tmp_path, "71") == []
    assert flags(tmp_path, "72") == [NO_TIME]
    assert report_of(tmp_path / "out", "71")["person"]["name"] == "Student 1"
    # Their groups are those of the course, in which everybody hands in alone.
    assert "hand-ins of one group" not in said.err


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "utf-16", "cp1252", "utf-8; sep=;", "cp1252; tabs"]
)
def test_a_worksheet_may_have_been_through_a_spreadsheet(
    encoding: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 1)
    text = worksheet("de", TIMES["de"]).replace(TIMES["de"], "13.11.2026 22:05")
    if "sep=" in encoding:
        text = "sep=;\r\n" + text.replace(",", ";")
    if "tabs" in encoding:
        text = text.replace(",", "\t")
    batch(cli, tmp_path, strict, roster=text.encode(encoding.partition(";")[0]))
    assert marks(tmp_path / "out") == {"71": "4"}
    assert report_of(tmp_path / "out", "71")["person"]["email"] == "s001@school.example"


def test_a_time_that_cannot_be_read_is_never_on_time(
    cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 3)
    unread = "sometime in spring"
    said = batch(cli, tmp_path, strict, roster=worksheet("en", TIMES["en"], unread, "-"))
    why = f"line 3 of the roster gives `{unread}` as time of submission, which cannot be read"
    assert f"72 (Student 2): {why}" in said.err
    assert flags(tmp_path, "72") == [NO_TIME, f"{why} as a date and time"]
    assert flags(tmp_path, "73") == [NO_TIME]


def test_dates_in_a_worksheet_are_read_in_the_order_that_they_prove(
    cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    moodle_class(tmp_path, 2)
    proven = worksheet("en", "11/13/26, 10:05 PM", "11/12/26, 11:00 AM")
    batch(cli, tmp_path, strict, roster=proven)
    assert marks(tmp_path / "out") == {"71": "4", "72": "8"}
    assert [flags(tmp_path, name) for name in ("71", "72")] == [[], []]


@pytest.mark.parametrize("layout", ["plain", "canvas", "moodle", "gradescope", "clones"])
def test_a_submission_without_any_time_is_flagged_if_lateness_costs_points(
    layout: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    names = {
        "canvas": "s001_71_101_scale.py",
        "moodle": "Student_71_assignsubmission_file/scale.py",
        "gradescope": "submission_71/scale.py",
    }
    hand_in(tmp_path / "class", {names.get(layout, "71/scale.py"): "# 8 points"})
    if layout == "clones":
        (tmp_path / "class" / "71" / ".git").mkdir()
    said = batch(cli, tmp_path, strict)
    assert f"{layout} layout" in said.err
    assert flags(tmp_path, "71")[-1] == NO_TIME
    (strict / "reference" / "course.toml").write_text(COURSE)  # lateness costs nothing
    cli("regrade", "--in", tmp_path / "out", "--course", strict, "--publish")
    assert NO_TIME not in flags(tmp_path, "71")


# --- rosters as they are written ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "points"),
    [
        ("2026-11-13 12:00", "6"),
        ("13.11.2026 12:00", "6"),
        ("11/13/2026 12:00 PM", "6"),
        ("13 Nov 2026 12:00", "6"),
        ("2026-11-13T12:00:00Z", "4"),
        ("2026-11-13 12:00:00 +0200", "6"),
    ],
)
def test_times_are_in_the_zone_of_the_due_date(
    time: str, points: str, cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, strict, roster=f"id;submitted\ns001;{time}\n")
    assert marks(tmp_path / "out") == {"s001": points}


@pytest.mark.parametrize(
    ("time", "why", "remedy"),
    [
        (
            "11/8/2026 12:00 PM",
            "could be two days: nothing says whether the day or the month comes first",
            "write it as 2026-11-08 or as 2026-08-11, with the time behind it",
        ),
        ("2026-11-08", "has no time of day", "write it as 2026-11-30T23:59+01:00"),
        ("31.2.2026 12:00", "is no time that exists", "write it as"),
    ],
)
def test_a_time_that_could_be_two_is_refused(
    time: str, why: str, remedy: str, cli: Cli, tmp_path: Path, strict: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, strict, roster=f"id,due\ns001,{time}\n")
    assert said.code == 2
    assert f"roster.csv:2: due is `{time}`, which {why}" in said.err
    assert remedy in " ".join(said.err.split())
    assert not (tmp_path / "out").exists()


def test_names_match_however_their_accents_are_written(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    apart, whole = (unicodedata.normalize(form, "Zoë Žižka") for form in ("NFD", "NFC"))
    name = f"{apart}_71_assignsubmission_file"
    hand_in(tmp_path / "class", {f"{name}/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, roster=f"name,section\n{whole},B\n")
    assert "on no line" not in said.err
    assert lines(tmp_path)["71"]["section"] == "B"


@pytest.mark.parametrize(
    "maxima",
    [
        "    Points Possible,,,,,8,(read only)",
        ",Points Possible,,,,8,",
        '"Points Possible (read only)",,,,,8,',
    ],
)
def test_rows_of_a_canvas_gradebook_that_are_no_students_are_skipped(
    maxima: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"studentone_501_101_scale.py": "# 8 points"})
    gradebook = (
        "Student,ID,SIS User ID,SIS Login ID,Section,Attention (99),Final Score\n"
        f",,,,,Manual Posting,\n{maxima}\n"
        '"One, Student",501,k1,one,A,,\n"Two, Student",502,k2,two,A,,\n'
        '"Student, Test",509,,test,A,,\n,,,,,Manual Posting (hidden),\n'
    )
    said = batch(cli, tmp_path, roster=gradebook)
    assert "of the roster, 1 handed in nothing: 502 (Two, Student)\n" in said.err


def test_a_workbook_is_no_roster(cli: Cli, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, roster=b"PK\x03\x04 and so on")
    assert (said.code, "is a workbook, not a CSV file" in said.err) == (2, True)
    assert "save it as CSV in UTF-8" in said.err


# --- who is on the roster -------------------------------------------------------------------------


@pytest.mark.slow
def test_submissions_on_no_roster_are_said_and_flagged(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {f"s{n:03}/scale.py": f"# {n % 9} points" for n in range(1, 31)}
    hand_in(tmp_path / "class", texts)
    said = batch(cli, tmp_path, roster="id,name\ns001,Student One\n")
    assert "29 on no line of the roster: s002; s003; " in said.err
    assert "; s021; and 9 more\n" in said.err
    assert flags(tmp_path, "s001") == []
    assert flags(tmp_path, "s002") == ["on no line of the roster"]
    batch(cli, tmp_path, TINY, "--no-roster")  # without a roster nobody is on none
    assert flags(tmp_path, "s002") == []


def test_two_lines_of_one_name_are_said_and_flagged(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    names = ["Same Name_71", "Same Name_72", "Other_73"]
    texts = {f"{name}_assignsubmission_file/scale.py": "# 8 points" for name in names}
    hand_in(tmp_path / "class", texts)
    listed = "number,name\n1,Same Name\n2,same name\n3,Other\n"
    said = batch(cli, tmp_path, roster=listed)
    says = "the roster has the name Same Name more than once: line 2 (1); line 3 (2)"
    assert said.err.count(says) == 1
    for student in ("71", "72"):
        assert flags(tmp_path, student) == ["on no line of the roster", says]
    assert flags(tmp_path, "73") == []


@pytest.mark.slow
def test_flags_of_the_roster_survive_a_merge(cli: Cli, instant: Instant, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2, 3)})
    (tmp_path / "class.csv").write_text("id\ns001\n")
    place = (tmp_path / "class", "--out", tmp_path / "out", "--course", TINY, "--seed", 5)
    for part in ("1/2", "2/2"):
        cli("batch", *place, "--shard", part, "--roster", tmp_path / "class.csv")
    cli("merge", tmp_path / "out", "--course", TINY)
    found = [flags(tmp_path, f"s00{n}") for n in (1, 2, 3)]
    assert found == [[], ["on no line of the roster"], ["on no line of the roster"]]


# --- groups ---------------------------------------------------------------------------------------

GROUPS = "group,id\nteam,s001\nteam,s002\nteam,s003\n"


def test_one_hand_in_counts_for_every_member_of_a_group(
    cli: Cli, instant: Instant, tmp_path: Path, strict: Path
) -> None:
    hand_in(tmp_path / "class", {"s002/scale.py": "# 8 points", "s004/scale.py": "# 2 points"})
    listed = (
        "id,name,submitted,due\ns001,Student One,,2026-12-24T18:00+01:00\n"
        "s002,Student Two,2026-11-13T12:00+01:00,\ns003,Student Three,,\n"
        "s004,Student Four,2026-11-12T12:00+01:00,\n"
    )
    said = batch(cli, tmp_path, strict, roster=listed, groups=GROUPS)
    assert "handed in nothing" not in said.err
    assert marks(tmp_path / "out") == {"s001": "8", "s002": "6", "s003": "6", "s004": "2"}
    assert len(instant.jobs) == 2  # each submission once
    assert lines(tmp_path)["s003"]["name"] == "Student Three"
    assert (
        "handed in by s002 (Student Two) for the group team"
        in (report_of(tmp_path / "out", "s003")["notes"])
    )
    assert report_of(tmp_path / "out", "s002")["notes"] == []
    assert [flags(tmp_path, f"s00{n}") for n in (1, 2, 3)] == [[], [], []]
    why = ("--why", "alone", "--in", tmp_path / "out", "--course", strict)
    cli("adjust", "s003", "scale", "-2", *why)
    assert marks(tmp_path / "out")["s003"] == "4.5"
    assert marks(tmp_path / "out")["s002"] == "6"


def test_members_of_a_group_are_not_similar_to_each_other(
    cli: Cli, tmp_path: Path, tiny_solution: str, instant: Instant
) -> None:
    own = "".join(f"def helper_{n}(a, b):\n    return [a * {n}, b - {n}]\n" for n in range(9))
    hand_in(tmp_path / "class", {"s001/scale.py": tiny_solution + own})
    batch(cli, tmp_path, groups=GROUPS)
    assert len(marks(tmp_path / "out")) == 3
    alone = (tmp_path / "out" / "index.html").read_text()
    hand_in(tmp_path / "class", {"s002/scale.py": tiny_solution + own})
    batch(cli, tmp_path, TINY, "--replace", groups="group,id\nteam,s003\nteam,s004\n")
    assert "identical" not in alone.lower()
    assert "identical" in (tmp_path / "out" / "index.html").read_text().lower()


def test_of_several_hand_ins_of_a_group_the_latest_counts(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    texts = {"s001/scale.py": "# 1 points", "s002/scale.py": "# 2 points"}
    hand_in(tmp_path / "class", texts)
    listed = (
        "id,name,submitted,group\ns001,Student One,2026-11-12T13:00+01:00,team\n"
        "s002,Student Two,2026-11-12T12:00+01:00,team\ns003,Student Three,,team\n"
    )
    said = batch(cli, tmp_path, roster=listed)
    assert set(marks(tmp_path / "out").values()) == {"1"}
    says = (
        "2 hand-ins of one group (team), of s001 (Student One); s002 (Student Two): "
        "the latest counts, that of s001 (Student One)"
    )
    assert says in said.err
    for student in ("s001", "s002", "s003"):
        assert flags(tmp_path, student) == [says]
    submitted = {row["submitted"] for row in lines(tmp_path).values()}
    assert submitted == {"2026-11-12T13:00:00+01:00"}


def test_without_times_the_first_of_a_groups_hand_ins_counts_and_is_flagged(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (2, 3)})
    said = batch(cli, tmp_path, groups=GROUPS)
    says = "no times say which is the latest, so that of s002 counts"
    assert says in said.err
    assert marks(tmp_path / "out") == {"s001": "2", "s002": "2", "s003": "2"}
    assert says in flags(tmp_path, "s003")[0]


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("studenttwo_72_101_scale.py", "group,id\nteam,71\nteam,72\n"),
        ("Student Two_72_assignsubmission_file/scale.py", "group,name\nteam,A\nteam,Student Two\n"),
        ("submission_72/scale.py", "team,participant\nteam,71\nteam,72\n"),
        ("lab-72/.git/HEAD", "group,login\nteam,71\nteam,72\n"),
        ("team/scale.py", "group,id\nTeam,71\nTeam,72\n"),
    ],
)
def test_groups_are_found_in_every_layout(
    name: str, groups: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {name: "# 8 points"})
    if ".git" in name:
        hand_in(tmp_path / "class", {"lab-72/scale.py": "# 8 points"})
        groups = groups.replace(",7", ",lab-7")
    batch(cli, tmp_path, groups=groups)
    assert list(marks(tmp_path / "out").values()) == ["8", "8"]


def test_a_group_that_handed_in_nothing_is_missing(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, groups="group,id,name\nb,s002,Student Two\na,s001,One\n")
    assert "1 handed in nothing: s002 (Student Two)" in said.err


def test_a_member_whose_id_is_no_file_name_gets_reports(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, groups="group,id\nteam,s001\nteam,../index\nteam,index\n")
    found = sorted(marks(tmp_path / "out"))
    assert [name.partition("-")[0] for name in found] == ["_index", "index", "s001"]
    for name in found:
        assert report_of(tmp_path / "out", name)["points"] == 8


def test_a_student_in_two_groups_is_refused(cli: Cli, tmp_path: Path) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    said = batch(cli, tmp_path, groups="group,id\na,s001\nb,s001\n")
    assert (said.code, "groups.csv:3: `s001` is already in line 2" in said.err) == (2, True)
    said = batch(cli, tmp_path, groups="id\ns001\n")
    assert (said.code, "groups.csv names no groups" in said.err) == (2, True)


def test_sections_that_are_called_groups_are_refused(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in range(1, 7)})
    listed = "id,group\n" + "".join(f"s00{n},{'ABC'[n % 3]}\n" for n in range(1, 7))
    said = batch(cli, tmp_path, roster=listed)
    assert said.code == 2
    assert "in 3 of 3 groups of the roster, several members handed in" in said.err
    assert "call the column `section`" in said.err
    assert batch(cli, tmp_path, roster=listed, groups=listed).code == 1
    assert set(marks(tmp_path / "out").values()) == {"1", "2", "3"}


def test_groups_are_resumed_and_split_like_the_class(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s002/scale.py": "# 3 points"})
    batch(cli, tmp_path, groups=GROUPS)
    resumed = cli("batch", "--resume", "--out", tmp_path / "out", "--course", TINY)
    assert resumed.code == 1
    assert marks(tmp_path / "out") == {"s001": "3", "s002": "3", "s003": "3"}
    assert rows(tmp_path / "out", "SELECT student, team FROM remarks ORDER BY student") == [
        (f"s00{n}", "team") for n in (1, 2, 3)
    ]


# --- those who handed in nothing, and the marks as files ------------------------------------------


@pytest.mark.parametrize(("rule", "points"), [("", ""), ("missing = 0\n", "0")])
def test_who_handed_in_nothing_has_a_line_in_the_marks(
    rule: str, points: str, cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{COURSE}{rule}")
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 3)})
    listed = "id,name,section\ns004,=cmd(),A\ns002,Student Two,B\ns003,Three,B\ns001,One,A\n"
    batch(cli, tmp_path, tiny_copy, roster=listed)
    cli("export", "csv", "--in", tmp_path / "out", "--course", tiny_copy)
    for name in ("grades.csv", "marks.csv"):
        found = lines(tmp_path, name)
        assert list(found) == ["s001", "s002", "s003", "s004"]
        assert [line["state"] for line in found.values()] == (
            ["to fix", "missing", "to fix", "missing"]
        )
        assert {found["s002"][column] for column in ("points", "earned", "scale")} == {points}
        assert (found["s002"]["max_points"], found["s002"]["section"]) == ("8", "B")
        assert found["s004"]["name"] == "'=cmd()"
        assert found["s003"]["points"] == "3"


def test_a_change_of_the_rule_for_missing_students_is_published(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    settings = tiny_copy / "reference" / "course.toml"
    settings.write_text(COURSE)
    hand_in(tmp_path / "class", {"s001/scale.py": "# 1 points"})
    batch(cli, tmp_path, tiny_copy, roster="id\ns001\ns002\n")
    settings.write_text(f"{COURSE}missing = 0\n")
    said = cli("batch", "--resume", "--out", tmp_path / "out", "--course", tiny_copy)
    assert (said.code, lines(tmp_path)["s002"]["points"]) == (1, "0")
    settings.write_text(f"{COURSE}missing = 5\n")
    said = cli("batch", "--resume", "--out", tmp_path / "out", "--course", tiny_copy)
    assert (said.code, "course.toml: missing: expected 0" in said.err) == (2, True)


@pytest.mark.parametrize(("rule", "filled"), [("", ""), ("missing = 0\n", "0")])
def test_gradebooks_get_0_for_nothing_only_if_the_course_says_so(
    rule: str, filled: str, cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    (tiny_copy / "reference" / "course.toml").write_text(f"{COURSE}{rule}")
    hand_in(tmp_path / "class", {"One_71_assignsubmission_file/scale.py": "# 8 points"})
    sheet = worksheet("de", "-", "-")
    batch(cli, tmp_path, tiny_copy, roster=sheet)
    export = ("export", "moodle", tmp_path / "roster.csv", "--in", tmp_path / "out")
    said = cli(*export, "--course", tiny_copy)
    assert said.code == 0
    made = (tmp_path / "out" / "roster-graded.csv").read_text()
    assert made == sheet.replace(",A,,", ",A,8,", 1).replace(",A,,", f",A,{filled},", 1)


@pytest.mark.parametrize("language", HEADERS)
def test_every_worksheet_that_is_a_roster_takes_the_marks(
    language: str, cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    moodle_class(tmp_path, 2)
    batch(cli, tmp_path, roster=worksheet(language, TIMES[language], "-"))
    export = ("export", "moodle", tmp_path / "roster.csv", "--in", tmp_path / "out")
    assert "2 marks in column" in cli(*export, "--course", TINY).out
    made = (tmp_path / "out" / "roster-graded.csv").read_text()
    assert made == worksheet(language, TIMES[language], "-").replace(",A,,", ",A,8,")


def test_the_marks_open_in_a_spreadsheet_as_utf_8(
    cli: Cli, instant: Instant, tmp_path: Path
) -> None:
    hand_in(tmp_path / "class", {"s001/scale.py": "# 8 points"})
    batch(cli, tmp_path, roster="id,name\ns001,Zoë Žižka\n")
    cli("export", "csv", "--in", tmp_path / "out", "--course", TINY)
    for name in ("grades.csv", "marks.csv"):
        data = (tmp_path / "out" / name).read_bytes()
        assert data.startswith(b"\xef\xbb\xbfsubmission,points,")
        assert "Zoë Žižka".encode() in data


# --- names ----------------------------------------------------------------------------------------


def test_names_stand_beside_ids_wherever_a_person_reads(
    cli: Cli, instant: Instant, tmp_path: Path, tiny_copy: Path
) -> None:
    texts = {"s001/scale.py": "# 8 points", "s002/scale.py": "lost", "s003/scale.py": "# 3 points"}
    hand_in(tmp_path / "class", texts)
    names = [*(f"s00{n},Name {n}" for n in range(1, 4)), *(f"t{n},T {n}" for n in range(30))]
    listed = "\n".join(["id,name", *names])
    said = batch(cli, tmp_path, tiny_copy, roster=listed)
    assert "  s001 (Name 1)    8 / 8  nothing to fix\n" in said.out
    assert "  s002 (Name 2) (scale): the process that graded it ended; " in said.err
    assert "handed in nothing: t0 (T 0); t1 (T 1); " in said.err
    assert "; t19 (T 19); and 10 more\n" in said.err
    place = ("--in", tmp_path / "out", "--course", tiny_copy)
    assert (
        "  s003 (Name 3)    4 / 8  " in cli("adjust", "s003", "scale", 1, "--why", "x", *place).out
    )
    hidden = tiny_copy / "reference" / "scale" / "test_hidden.py"
    hidden.write_text(f"{hidden.read_text()}\n# changed\n")
    instant.points["scale"] = 5
    again = cli("regrade", *place)
    assert "  s001 (Name 1)       8 → 5      of 8  scale -3\n" in again.out
    sheet = tmp_path / "gradebook.csv"
    sheet.write_text("Student,ID,Section,Homework (1)\nNobody,9,A,\n")
    assert "s003 (Name 3)" in cli("export", "canvas", sheet, *place).err
    cli("regrade", *place, "--publish")
    said = cli("export", "canvas", sheet, *place)
    assert "\n  s001 (Name 1): no row\n" in said.err


def test_whoever_needs_review_after_a_merge_is_named_with_the_name(
    cli: Cli, instant: Instant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(tmp_path / "class", {f"s00{n}/scale.py": f"# {n} points" for n in (1, 2)})
    (tmp_path / "class.csv").write_text("id,name\ns001,Name 1\ns002,Name 2\n")
    place = (tmp_path / "class", "--out", tmp_path / "out", "--course", TINY, "--seed", 5)
    cli("batch", *place, "--shard", "1/1", "--roster", tmp_path / "class.csv")
    whole = Standings.standing

    def broken(standings: Standings, student: str) -> Standing | None:
        if student == "s002":
            raise ValueError("broken")
        return whole(standings, student)

    monkeypatch.setattr(Standings, "standing", broken)
    said = cli("merge", tmp_path / "out", "--course", TINY)
    assert "! s002 (Name 2): the grader failed here (ValueError: broken); needs review" in said.err
    assert marks(tmp_path / "out")["s001"] == "1"
