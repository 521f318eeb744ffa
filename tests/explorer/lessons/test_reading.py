"""A lesson's file as values, and everything that can be wrong in one with its line and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.lessons import __main__ as command
from explorer.lessons.lesson import Choice, Span
from explorer.lessons.prose import is_allowed_link
from explorer.lessons.reading import BadLesson, read_file, read_lesson
from tests.explorer.lessons.lesson_file import GOOD, line_of, with_line


def faults_of(written: str) -> list[tuple[int, str]]:
    with pytest.raises(BadLesson) as bad:
        read_lesson(written, "small")
    return [(fault.line, fault.words) for fault in bad.value.faults]


def test_a_lesson_is_read_with_its_scenes_and_the_teachers_notes():
    lesson = read_lesson(GOOD, "small")
    assert (lesson.title, lesson.minutes, lesson.model, lesson.prompt) == ("Small", 2, "Tiny", "abc")
    assert lesson.notes == "Take **two** minutes."
    first, second = lesson.scenes
    assert [action.act for action in first.do] == ["prefill"] and first.do[0].prompt == "abc"
    assert (first.title, first.show, first.tour) == ("First", ("tokens", "cache"), True)
    assert second.ask is not None and second.you is not None and second.you.act == "step"
    assert second.ask.choices == (
        Choice((Span("text", "one"),), right=False),
        Choice((Span("value", "step.token"),), right=True),
    )


def test_text_is_spans_and_nothing_in_it_becomes_markup():
    written = with_line(
        "The prompt has **{prefill.in_count}** tokens. They are `read` by *prefill*.",
        "Read **this {step.kv_len} now**, `<b>`, *prefill*, <script>alert(1)</script> &amp; {not a value}.",
    )
    text = read_lesson(written, "small").scenes[0].text[0]
    assert [(span.kind, span.text) for span in text[:6]] == [
        ("text", "Read "),
        ("strong", "this "),
        ("value", "step.kv_len"),
        ("strong", " now"),
        ("text", ", "),
        ("code", "<b>"),
    ]
    assert Span("term", "prefill", "prefill") in text
    assert "".join(span.text for span in text).endswith("<script>alert(1)</script> & {not a value}.")


BROKEN = [
    ("minutes: 2", "minutes: soon", "minutes is a whole number from 1 to 300, got 'soon'"),
    ("minutes: 2", "colour: red", "There is no 'colour' here"),
    ("model: Tiny", "model:", "needs a model"),
    ("- do: prefill", "- do: prefil", "There is no act 'prefil'"),
    ("- do: prefill", "- do: step", "step needs a run. Put do: prefill before it."),
    ("- do: prefill", "- dance: yes", "'dance' is no key"),
    ("- show: tokens, cache", "- show: tokens, cach", "There is no place 'cach'. Did you mean cache?"),
    ("- you: step", "- you: look at step 7", "There is no step 7 to look at: the run has 0"),
    ("- you: step", "- you: rewind to 3", "There is nothing to rewind"),
    ("- then: It is {step.token}, see [more](https://example.org/a).", "- then: {guess.rank}", "it needs a guess"),
    ("- you: step", "- you: undo", "There is no act 'undo'"),
    ("- you: step", "- you: set warmth 3", "There is no setting 'warmth'"),
    ("- you: step", "- you: set temperature -1", "temperature must be 0 or more, got -1.0"),
    ("- you: step", "- you: force mat", "force needs a text between quotes"),
    ("- you: step", "- you: open cellar", "There is nothing to open called 'cellar'"),
    ("- you: step", "- you: step 1000", "step needs a whole number from 1 to 200, got '1000'"),
    ("  - [x] {step.token}", "  - [ ] {step.token}", "exactly one of them - [x]"),
    ("  - [x] {step.token}", "  - [x] {step.tokn}", "There is no value {step.tokn}. Did you mean step.token?"),
    ("- you: step", "- you: set top-k nan", "top-k needs a whole number"),
    ("- you: step", "- you: set top-k 5.5", "top-k needs a whole number"),
    ("- you: step", "- you: look at layer 1 layer 2", "look at layer 3 head 2. It got"),
    ("- tour: yes", "- tour: no", "tour is yes, got 'no'. Leave the line out"),
    ("## Second", "### Second", "A scene begins with a heading: ## and its title."),
]


@pytest.mark.parametrize(("line", "changed", "said"), BROKEN, ids=[said[:40] for _, _, said in BROKEN])
def test_what_is_wrong_is_said_with_its_line(line: str, changed: str, said: str):
    written = with_line(line, changed)
    found = faults_of(written)
    words = [(at, what) for at, what in found if said in what]
    assert words, found
    own, question, scene = (
        line_of(written, changed.strip()),
        line_of(written, "- choose"),
        written[: written.index(changed)],
    )
    heading = 1 + max(i for i, text in enumerate(scene.split("\n")) if text.startswith(("##", "---")))
    assert words[0][0] in (own, question, heading)


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("https://example.org", True),
        ("http://example.org/a?b=c", True),
        ("without-cache", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("//example.org", False),
        ("mailto:a@example.org", False),
    ],
)
def test_links_lead_to_the_web_or_to_a_page_of_loupe(address: str, is_allowed: bool):
    written = GOOD.replace("https://example.org/a", address)
    if is_allowed:
        read_lesson(written, "small")
    elif address.startswith(("//", "mailto")):
        assert "Links begin with http" in faults_of(written)[0][1]
    else:  # markdown-it itself takes it for no link: it stays text
        assert all(span.kind != "link" for span in read_lesson(written, "small").scenes[1].then)


NUMBER = "- choose: Which?\n  - [ ] one\n  - [x] {step.token}\n"


@pytest.mark.parametrize("answer", ["nan", "inf", "1e999", "many", ""])
def test_the_answer_of_a_number_question_is_a_number_that_json_has(answer: str):
    written = GOOD.replace(NUMBER, f"- number: How many?\n- answer: {answer}\n")
    assert faults_of(written) == [
        (22, f"answer is a value such as {{step.kv_len}}, or a number, got {answer!r}."),
    ]


def test_a_value_that_is_read_as_text_is_no_answer_to_a_number_question():
    written = GOOD.replace(NUMBER, "- number: How many?\n- answer: {step.token}\n")
    assert faults_of(written) == [
        (22, "{step.token} is no number: the token that it sampled. Ask with choose or guess."),
    ]


def test_a_fault_stands_at_its_own_line_that_of_the_act_the_choice_the_settings_or_what_stands_beneath():
    for line, changed, at in [
        ("- you: step", "- you: rewind to 3", "rewind to 3"),
        ("  - [x] {step.token}", "  - [x] {step.tokn}", "tokn"),
        ("prompt: abc", "prompt: abc\nsettings: temperature -1", "settings"),
        ("- you: step", "- you: step\n  - slowly", "slowly"),
    ]:
        written = with_line(line, changed)
        assert [where for where, _ in faults_of(written)] == [line_of(written, at)]


def test_a_scene_has_a_title():
    assert (19, "A scene needs a title after its ##.") in faults_of(with_line("## Second", "##"))


def test_spaces_within_quotes_are_kept_and_a_value_may_go_on_in_the_next_line():
    act = read_lesson(with_line("- you: step", '- you: force "  mat"'), "small").scenes[1].you
    assert act is not None and act.text == "  mat"
    act = read_lesson(with_line("- you: step", "- you: set temperature 0,\n  top-k 5"), "small").scenes[1].you
    assert act is not None and act.changes.sampling == {"temperature": 0, "top_k": 5}


@pytest.mark.parametrize("address", ["http://[a", "http://a]b", "http://a℀b"])
def test_a_link_whose_host_cannot_be_one_is_no_link(address: str):
    assert not is_allowed_link(address)


def test_the_notes_may_be_parted_from_the_scenes_by_a_line_with_a_space():
    assert "Take" in read_lesson(GOOD.replace("---\n\n# For", "---\n \n# For"), "small").notes


def test_a_file_saved_with_a_byte_order_mark_is_read_like_any_other(tmp_path: Path):
    (tmp_path / "small.md").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_file(tmp_path / "small.md") == read_lesson(GOOD, "small")


def test_sixty_words_are_read_and_sixty_one_are_too_many():
    line = "The prompt has **{prefill.in_count}** tokens. They are `read` by *prefill*."
    assert len(read_lesson(with_line(line, "word " * 60), "small").scenes) == 2
    assert "This scene has 61 words" in faults_of(with_line(line, "word " * 61))[0][1]


def test_all_faults_are_said_at_once_in_the_order_of_their_lines():
    written = (
        GOOD.replace("minutes: 2", "minutes: x").replace("- you: step", "- you: jump").replace("cache\n", "cellar\n")
    )
    lines = [line for line, _ in faults_of(written)]
    assert len(lines) == 3 and lines == sorted(lines)


def test_a_file_without_the_block_at_the_top_or_of_another_name_or_not_of_text_is_refused(tmp_path: Path):
    assert "The file begins with ---" in faults_of("## A scene\n\nWords.")[0][1]
    for name, content, said in [
        ("Why.md", GOOD.encode(), "is no name for a lesson"),
        ("tour.md", GOOD.encode(), "cannot be called tour"),
        ("bytes.md", b"\xff\xfe", "is not UTF-8"),
        ("large.md", b"x" * 200_001, "at most 200,000"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadLesson, match=said):
            read_file(tmp_path / name)


def test_the_checker_names_file_line_and_fault_and_says_so_to_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text(GOOD)
    bad.write_text(with_line("- you: step", "- you: leap"))
    assert command.main(["check", str(good)]) == 0
    assert command.main(["check", str(good), str(bad)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{good}: OK, 2 scenes"
    assert said[2].startswith(f"{bad}:{line_of(bad.read_text(), 'leap')}: There is no act 'leap'")
