"""The text that the language model is trained on, and the other stories of its public tests."""

from __future__ import annotations

import json

from grader.course.course import Course


def test_the_tests_of_tiny_gpt_ask_for_other_stories_of_the_same_characters(course: Course) -> None:
    folder = course["tiny_gpt"].folder
    text = course.text("tiny_gpt").read_text()
    assert 19_000 < len(text) < 21_000
    characters = "".join(sorted({*text}))
    public, hidden = ((folder / f"test_{kind}.py").read_text() for kind in ("public", "hidden"))
    for file in (public, hidden, (folder / "drawing.py").read_text()):
        assert f"CHARACTERS = {json.dumps(characters)}" in file
    new = public.partition('NEW = """\\\n')[2].partition('"""')[0]
    assert len(new) > 1000
    assert {*new} <= {*text}
    stories = [each for each in new.split("\n\n") if len(each) > 60]
    assert not any(each in text for each in stories)
