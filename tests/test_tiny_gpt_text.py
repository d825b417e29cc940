"""The texts that language models are trained on, and what is derived from them."""

from __future__ import annotations

import json

from reference_cases import References

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


def test_the_picture_of_tiny_llama_knows_the_merges_of_its_notes(
    course: Course, references: References
) -> None:
    data = course.text("tiny_llama").read_bytes()
    assert 19_000 < len(data) < 21_000
    drawing: dict[str, list[tuple[int, int]]] = {}
    exec((course["tiny_llama"].folder / "drawing.py").read_text(), drawing)
    merges, _ = references["tiny_llama"].learned_tokens(data[: len(data) * 9 // 10], 32)
    assert drawing["MERGES"] == merges
