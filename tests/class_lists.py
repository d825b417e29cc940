"""Lists of a class as teachers have them: rosters, groups, worksheets of Moodle."""

from __future__ import annotations

from pathlib import Path

from classroom import TINY, grade_lines, hand_in, report_of
from commandline import Cli, Said

NO_TIME = "no time of submission is known for {}, so their lateness was not counted: {}"
COURSE = """
title = "A tiny course"
points = 8
due = 2026-11-12T12:00:00+01:00
"""


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
