"""The path through a course is drawn, and told to whoever cannot see it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from grader.reports.course_path import Stop, path_in_words
from grader.reports.pages import path_picture

SVG = "{http://www.w3.org/2000/svg}"
STOPS = [
    Stop("softmax", "Softmax"),
    Stop("masks", "Masks & more", ("softmax", "elsewhere")),
    Stop("heads", "<Heads>", ("masks", "softmax")),
]


def test_each_exercise_and_each_thing_that_it_builds_on_is_drawn() -> None:
    drawn = ET.fromstring(path_picture(STOPS))
    assert [text.text for text in drawn.iter(f"{SVG}text")] == [stop.title for stop in STOPS]
    said = {title.text for title in drawn.iter(f"{SVG}title")}
    assert said == {
        "Masks & more builds on Softmax",
        "<Heads> builds on Masks & more",
        "<Heads> builds on Softmax",
    }


def test_no_arc_leaves_the_picture_however_long_the_path_is() -> None:
    stops = [Stop(f"e{n}", f"Exercise {n}", ("e0",) if n else ()) for n in range(40)]
    drawn = ET.fromstring(path_picture(stops))
    x = float(next(drawn.iter(f"{SVG}circle")).attrib["cx"])
    bends = [float(path.attrib["d"].split("C ")[1].split()[0]) for path in drawn.iter(f"{SVG}path")]
    assert min(x - 0.75 * (x - bend) for bend in bends) > 0


def test_the_lists_with_an_exercise_stand_beside_it() -> None:
    stops = [Stop("softmax", "Softmax", lists=("short", "long")), Stop("heads", "Heads")]
    drawn = ET.fromstring(path_picture(stops))
    assert [span.text for span in drawn.iter(f"{SVG}tspan")] == ["short · long"]
    assert float(drawn.attrib["width"]) > float(
        ET.fromstring(path_picture([Stop("softmax", "Softmax"), stops[1]])).attrib["width"]
    )


def test_the_path_is_told_in_words() -> None:
    told = path_in_words(STOPS)
    assert told == "Softmax; Masks & more, after Softmax; <Heads>, after Masks & more and Softmax"
