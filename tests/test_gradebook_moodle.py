"""A grading worksheet of Moodle gets every grade, in any language, or is refused."""

from __future__ import annotations

import pytest
from gradebook_files import both, mark, refused

from grader.classroom.gradebooks import StudentMark, fill_moodle
from grader.classroom.gradebooks.table import BOM

ENGLISH = (
    "Identifier,Full name,Email address,Status,Group,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
    '"Participant 3000001",Student 001,s001@school.example,Submitted for grading,A,[[|7.5]],10.00,'
    'Yes,"Monday, 7 January 2030, 10:15 AM",-,"<p>Well,\n""done""</p>"\n'
    'Participant 3000002,"Student ""002""",s002@school.example,No submission,,"[[1.00|10]]",10.00,'
    "No,-,-,\n"
    "Participant 3000003,Student 003,s003@school.example,No submission,A,,10.00,Yes,-,-,\n"
)
GERMAN = (
    "ID,Vollständiger Name,ID-Nummer,E-Mail-Adresse,Status,Bewertung,Bestwertung,"
    "Bewertung kann geändert werden,Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),"
    "Feedback als Kommentar\r\n"
    "Teilnehmer/in3000001,Student 001,12345678,s001@school.example,Zur Bewertung abgegeben,"
    '[["3,50"|"7,5"]],"10,00",Ja,"Montag, 7. Januar 2030, 10:15","Montag, 7. Januar 2030",\r\n'
    "Teilnehmer/in3000002,Student 002,12345678,s002@school.example,Keine Abgabe,"
    '[[|10]],"10,00",Nein,-,-,\r\n'
    "Teilnehmer/in3000003,Student 003,,s003@school.example,Keine Abgabe,"
    ',"10,00",Ja,-,-,\r\n'
)
FRENCH = (
    "Identifiant;Nom complet;Adresse de courriel;Statut;Groupe;Note;Note maximale;"
    "État;La note peut être modifiée;Dernière modification (note);Feedback par commentaires\n"
    "Participant3000001;Étudiant 001;s001@school.example;Remis pour évaluation;2;[[|7,5]];10,00;"
    "Non évalué;Oui;-;\n"
    "Participant3000002;Étudiant 002;s002@school.example;Aucun travail remis;2;[[3,00|10]];10,00;"
    "Non évalué;Non;-;bien\n"
    "Participant3000003;Étudiant 003;s003@school.example;Aucun travail remis;2;;10,00;"
    "Non évalué;Oui;-;\n"
)
BLIND = (
    "Identifier,Status,Grade,Maximum Grade,Grade can be changed,Last modified (grade)\n"
    "Participant 3000001,-,[[|7.5]],10.00,Yes,-\nParticipant 3000002,-,[[|10]],10.00,Yes,-\n"
)
PLAIN = [mark("3000001", 7.5), mark("Participant 3000002", 10)]
MAILED = [mark("3000001", 7.5), mark("x", 10, email="S002@school.example")]


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize(
    ("page", "marks", "column", "without"),
    [
        (ENGLISH, PLAIN, "Grade", ("Student 003",)),
        (GERMAN, MAILED, "Bewertung", ("Student 003",)),
        (FRENCH, MAILED, "Note", ("Étudiant 003",)),
        (FRENCH, [MAILED[0], mark("x", 10, name="étudiant 002")], "Note", ("Étudiant 003",)),
        (BLIND, PLAIN, "Grade", ()),
        (ENGLISH.replace("Identifier", "Kennung"), PLAIN, "Grade", ("Student 003",)),
    ],
)
def test_moodle_gets_the_grades_and_keeps_every_other_byte(
    page: str, marks: list[StudentMark], column: str, without: tuple[str, ...], start: bytes
) -> None:
    before, after = both(page, start)
    filled = fill_moodle(before, marks)
    assert filled.data == after
    assert (filled.column, filled.written, filled.without) == (column, 2, without)


@pytest.mark.parametrize(
    "page",
    [
        "ID,Name,Status,Note,Höchste,Änderbar\nP1,s001,da,[[10|4]],10,Ja\nP2,s002,da,10,10,Ja\n",
        "ID,Name,Nummer,Status,Note,Höchste,Änderbar\nP1,s001,12345,da,[[10|4]],10,Ja\n",
        "ID,Name,Gruppe,Jahr,Art,Note,Höchste,Änderbar\nP1,s001,7,5,A,[[|4]],10,Ja\n",
        "ID,Name,Gruppe,Jahr,Art,Note,Höchste,Änderbar\nP1,s001,5,7,2,[[|4]],10,Ja\n",
        "ID,Name,Art,Jahr,Ort,Note,Höchste,Änderbar\n"
        "P1,s001,,7,A,[[|4]],10,Ja\nP2,s002,,8,A,,10,Ja\n",
    ],
)
def test_other_numbers_are_not_taken_for_the_maximum(page: str) -> None:
    before, after = both(page)
    filled = fill_moodle(before, [mark("1", 4)])
    assert (filled.data, filled.column) == (after, "Note")


AMBIGUOUS = (
    "ID,Name,Pflicht,Punkte,Seite,Note,Höchste,Änderbar\n"
    "P1,s001,,5,A,{},10,Ja\nP2,s002,,5,A,,10,Nein\n"
)


def test_the_user_must_choose_if_two_columns_could_hold_the_grades() -> None:
    before = AMBIGUOUS.format("").encode()
    said = refused(fill_moodle, before, [mark("1", 4)])
    assert "several columns could hold the grades: 'Pflicht', 'Note'" in said
    assert "--column" in said
    filled = fill_moodle(before, [mark("1", 4)], column="Note")
    assert filled.data == AMBIGUOUS.format("4").encode()
    said = refused(fill_moodle, before, [mark("1", 4)], column="Name")
    assert "'Name' is not followed by one that holds the maximum grade" in said


def test_columns_with_english_names_are_recognised_by_name() -> None:
    page = AMBIGUOUS.replace("Note,Höchste", "Grade,Maximum Grade")
    filled = fill_moodle(page.format("").encode(), [mark("1", 4)])
    assert filled.data == page.format("4").encode()


def test_an_exact_header_comes_before_headers_that_contain_it() -> None:
    before, after = both(FRENCH)
    assert fill_moodle(before, MAILED, column="Note").data == after
    assert "4 columns match 'note'" in refused(fill_moodle, before, MAILED, column="note")


def test_a_worksheet_without_grades_or_participants_is_refused() -> None:
    words = "Identifier,Full name,Grade,Scale,Grade can be changed\nParticipant 1,s001,,good,Yes\n"
    said = refused(fill_moodle, words.encode(), [mark("1", 4)])
    assert "no column seems to hold the grades: 'Identifier', 'Full name', 'Grade', 'Scale'" in said
    said = refused(fill_moodle, b"a,b\ns001,x\nt002,x\n", [])
    assert "no column holds participants with their numbers: 'a', 'b'" in said
    assert "no students" in refused(fill_moodle, b"Identifier,Grade\n", [])


def test_marks_with_another_maximum_are_refused_or_scaled_for_moodle() -> None:
    before, after = both(GERMAN)
    marks = [StudentMark(one.student, one.person, one.points * 4, 40) for one in MAILED]
    assert "out of 10 points, the marks are out of 40" in refused(fill_moodle, before, marks)
    assert fill_moodle(before, marks, scale=True).data == after


def test_a_grade_that_moodle_would_ignore_is_refused() -> None:
    marks = [mark("3000001", 12.5), mark("3000002", -1), mark("3000003", 10)]
    said = refused(fill_moodle, both(ENGLISH)[0], marks)
    assert "from 0 to 10, and would ignore 3000001: 12.5; 3000002: -1" in said


def test_unknown_participants_are_reported() -> None:
    said = refused(fill_moodle, both(ENGLISH)[0], [mark("s009", 1, email="s009@school.example")])
    assert "s009: no row" in said
    twice = ENGLISH.replace("s002@", "s001@")
    said = refused(fill_moodle, both(twice)[0], [mark("x", 1, email="s001@school.example")])
    assert "x: lines 2, 4 all match" in said
