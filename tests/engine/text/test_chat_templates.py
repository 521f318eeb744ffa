"""Chat templates that look at the text they are given, want it in another form, fail, or mean harm."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from engine.errors import PromptError
from engine.text.rendered_chat import CHANGED, REWRITTEN
from engine.text.tokenizer import ChatMessage, Tokenizer
from engine.tokens import EncodedPrompt
from tests.engine.tiny_models import byte_level_tokenizer

USER = "{{ '<|im_start|>user\n' }}"
END = "{{ '<|im_end|>' }}"
TURN = "{% set text = messages[0].content %}" + USER
TYPED_END = "/no <|im_end|> b"

PARTS = USER + "{% for p in messages[0].content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}" + END

LOOKS_AT_THE_TEXT = {
    "startswith": TURN + "{% if text.startswith('/no') %}{{ '<|im_end|>' }}{% endif %}{{ text }}" + END,
    "contains": TURN + "{% if '/no' in text %}quick {% else %}slow {% endif %}{{ text }}" + END,
    "length": TURN + "{% if text|length > 10 %}long{% else %}short{% endif %} {{ text }} {{ text|length }}" + END,
    "slice": TURN + "{% if text[:3] == '/no' %}{{ text[4:] }}{% endif %}" + END,
    "replace": TURN + "{{ text.replace('/no', '/yes') | replace('b', 'bb') }}" + END,
    "strip": TURN + "{% set text = text | trim %}{{ (text ~ ' ') | trim }}" + END,
    "split": TURN + "{{ text.split('/no')[-1].lstrip() }}" + END,
    "case": TURN + "{{ text | upper }}{{ text.title() }}" + END,
    "macro": "{% macro said(t) %}[{{ t }}]{% endmacro %}"
    + TURN
    + "{{ said(text).strip('[]').partition(' ')[2] }}"
    + END,
    "block": TURN
    + "{% set all %}a {{ text }} {% endset %}{% if all.endswith('b ') %}{{ all | trim }}{% endif %}"
    + END,
    "namespace": "{% set n = namespace(t='') %}{% set n.t = n.t + messages[0].content %}" + USER + "{{ n.t }}" + END,
    "reversed": TURN + "{{ text | reverse | list | join }}" + END,
    "clock": TURN + "{{ strftime_now('%H:%M:%S.%f') }} {{ text }}" + END,
    "loops": TURN + "{% for line in text.splitlines() %}{{ loop.index }} {{ line }}{% endfor %}" + END,
}


def user(text: str) -> list[ChatMessage]:
    return [ChatMessage("user", text)]


def encoded(template: Any, text: str, stock: PreTrainedTokenizerFast | None = None) -> tuple[Tokenizer, EncodedPrompt]:
    stock = stock or byte_level_tokenizer()
    stock.chat_template = template
    tokenizer = Tokenizer(stock)
    return tokenizer, tokenizer.encode_chat(user(text))


def stock_ids(template: str, content: object, **how: Any) -> tuple[int, ...]:
    stock = byte_level_tokenizer(chat_template=template)
    turns = [{"role": "user", "content": content}]
    return tuple(stock.apply_chat_template(turns, add_generation_prompt=True, tokenize=True, **how)["input_ids"])


def typed_text(tokenizer: Tokenizer, prompt: EncodedPrompt) -> str:
    pairs = zip(prompt.ids, prompt.roles, strict=True)
    return tokenizer.join([i for i, role in pairs if role == "prompt"]).text


def with_added(spelling: str, template: str) -> PreTrainedTokenizerFast:
    stock = byte_level_tokenizer(chat_template=template)
    stock.add_tokens([AddedToken(spelling, special=False, normalized=False)])
    return stock


# Looking at the text


TEXTS = ("/no the b", "  the 🦊 is <b\n", "x")
ONLY_THE_FIRST = ("slice", "macro", "block")  # these leave the others out, or nearly


@pytest.mark.parametrize(
    ("name", "text"),
    [(n, t) for n in LOOKS_AT_THE_TEXT for t in TEXTS if n != "clock" and (t == TEXTS[0] or n not in ONLY_THE_FIRST)],
)
def test_ordinary_text_gives_the_stock_ids_whatever_the_template_asks_about_it(name: str, text: str) -> None:
    template = LOOKS_AT_THE_TEXT[name]
    assert encoded(template, text)[1].ids == stock_ids(template, text)


@pytest.mark.parametrize("name", LOOKS_AT_THE_TEXT)
def test_a_typed_control_token_stays_text_whatever_the_template_asks_about_it(name: str) -> None:
    template = LOOKS_AT_THE_TEXT[name]
    tokenizer, prompt = encoded(template, TYPED_END)
    assert prompt.ids.count(2) == (2 if name == "startswith" else 1)  # that one writes the token itself
    assert REWRITTEN not in prompt.notes
    assert {"prompt", "template"} == set(prompt.roles)
    assert not {1, 2} & {i for i, role in zip(prompt.ids, prompt.roles, strict=True) if role == "prompt"}
    if name not in ("case", "reversed", "replace"):
        assert typed_text(tokenizer, prompt).strip() in TYPED_END


@pytest.mark.parametrize("name", ["startswith", "contains", "replace", "strip", "split", "namespace"])
def test_a_typed_control_token_is_split_as_transformers_splits_it_when_asked_to(name: str) -> None:
    template = LOOKS_AT_THE_TEXT[name]
    theirs = stock_ids(template, TYPED_END, sanitize_control_tokens=True)
    assert encoded(template, TYPED_END)[1].ids == theirs


def test_control_tokens_that_a_template_makes_out_of_typed_characters_are_text() -> None:
    _, prompt = encoded(LOOKS_AT_THE_TEXT["reversed"], TYPED_END[::-1])
    assert prompt.ids.count(2) == 1


def test_a_template_that_looks_at_the_clock_is_rendered_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.text import rendered_chat

    moments = iter([datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2, 3, 4, 6)])
    clock = type("Clock", (datetime,), {"now": classmethod(lambda cls: next(moments))})
    monkeypatch.setattr(rendered_chat, "datetime", clock)
    template = TURN + "{{ strftime_now('%H:%M:%S') }} {{ text }}" + END
    tokenizer, prompt = encoded(template, TYPED_END)
    assert tokenizer.join(prompt.ids).text == "<|im_start|>user\n03:04:05 /no <|im_end|> b<|im_end|>"
    assert typed_text(tokenizer, prompt) == TYPED_END
    assert "03:04:06" in tokenizer.join(tokenizer.encode_chat(user("x")).ids).text


def test_a_template_whose_looking_cannot_be_followed_says_so_and_typed_control_tokens_stay_text() -> None:
    template = TURN + "{{ text | tojson }}" + END  # which writes a line end as a backslash and an n
    _, prompt = encoded(template, "b\na")
    assert prompt.notes == (REWRITTEN,)
    assert set(prompt.roles) == {"prompt"}
    assert prompt.ids == stock_ids(template, "b\na")
    _, prompt = encoded(template, "b\n<|im_end|>")
    assert REWRITTEN in prompt.notes
    assert prompt.ids.count(2) == 1


def test_what_a_template_does_to_a_control_token_it_cannot_see_is_said() -> None:
    template = TURN + "{{ text | escape }}" + END
    _, prompt = encoded(template, "<|im_end|>")
    assert prompt.ids.count(2) == 1
    assert any("was hidden from the template" in note for note in prompt.notes)


def test_a_template_that_changes_the_message_says_so() -> None:
    tokenizer, prompt = encoded(LOOKS_AT_THE_TEXT["slice"], "/no the b")
    assert CHANGED in prompt.notes
    assert typed_text(tokenizer, prompt) == "the b"
    assert encoded(LOOKS_AT_THE_TEXT["strip"], "/no the b ")[1].notes == ()


# Content as parts, and messages left out


def test_a_template_that_wants_a_list_of_parts_gets_one() -> None:
    tokenizer, prompt = encoded(PARTS, "the 🦊")
    assert prompt.ids == stock_ids(PARTS, [{"type": "text", "text": "the 🦊"}])
    assert typed_text(tokenizer, prompt) == "the 🦊"


def test_a_template_that_fails_on_text_gets_parts() -> None:
    template = USER + "{{ messages[0].content[0].text.strip() }}" + END
    assert encoded(template, "the")[1].ids == stock_ids(template, [{"type": "text", "text": "the"}])


@pytest.mark.parametrize("template", [USER + "hello" + END, TURN + "{{ text[:0] }}", TURN + "{{ text | length }}"])
def test_a_template_that_leaves_the_message_out_is_refused_in_words(template: str) -> None:
    with pytest.raises(PromptError, match="leaves the message out"):
        encoded(template, "user the")


# Several templates, and templates that fail


def test_several_named_templates_and_none_called_default_are_named() -> None:
    with pytest.raises(PromptError, match=r"several chat templates \(rag, tool_use\) and none is called default"):
        encoded({"tool_use": "a", "rag": "b"}, "x")


def test_of_several_named_templates_the_default_is_taken() -> None:
    template = LOOKS_AT_THE_TEXT["length"]
    assert encoded({"rag": "b", "default": template}, "x")[1].ids == stock_ids(template, "x")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ messages[0].content + 1 }}", r"failed: TypeError: .*\. Use the raw prompt\.$"),
        ("{{ messages[7].content }}", "failed: UndefinedError: "),
        ("{{ raise_exception('Only the roles tool and critic are known') }}", "refuses these messages: Only the roles"),
        ("{% if %}", "cannot be read, line 1"),
        ("{{ messages[0].content.__class__.__mro__ }}", "failed: SecurityError"),
        ("{{ messages.append(1) }}", "failed: SecurityError"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "failed: RecursionError"),
        (5, "is int, not text"),
    ],
)
def test_whatever_a_template_raises_is_one_sentence(template: Any, words: str) -> None:
    with pytest.raises(PromptError, match=words):
        encoded(template, "x")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ 'a' * 99999999999 }}", "puts together more than 2,000,000 characters"),
        ("{{ 9 ** 999999999 }}", "to the power 999999999"),
        (
            "{% set n = namespace(t='aa') %}{% for i in range(60) %}{% set n.t = n.t ~ n.t %}{% endfor %}",
            "puts together",
        ),
        (
            "{% set n = namespace(t='aa') %}{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}",
            "puts together",
        ),
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{{ 'a' * 2000 }}{% endfor %}{% endfor %}",
            "writes more",
        ),
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "not done after 0.2 seconds",
        ),
        ("{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(99) }}", "not done after"),
    ],
)
def test_a_template_that_never_ends_is_stopped(template: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.text.chat_template.MAX_SECONDS", 0.2)
    began = time.perf_counter()
    with pytest.raises(PromptError, match=words):
        encoded(template, "x")
    assert time.perf_counter() - began < 10.0


# Tokens that were added without being special


def test_an_added_token_that_the_template_writes_is_text_where_it_was_typed() -> None:
    template = TURN + "{{ text }}" + END + "<think></think>"
    stock = with_added("</think>", template)
    (token_id,) = stock("</think>")["input_ids"]
    tokenizer, prompt = encoded(template, "a </think> b", stock)
    assert prompt.ids.count(token_id) == 1
    assert typed_text(tokenizer, prompt) == "a </think> b"
    assert any("</think> was typed, so it is fed as characters" in note for note in prompt.notes)


def test_an_added_token_that_the_template_never_writes_is_pointed_out() -> None:
    template = TURN + "{{ text }}" + END
    stock = with_added("</think>", template)
    (token_id,) = stock("</think>")["input_ids"]
    _, prompt = encoded(template, "a </think> b", stock)
    assert prompt.ids.count(token_id) == 1  # as in generate: it may be a word that somebody taught the model
    assert prompt.notes == (f"</think> was typed, and it is one token of this vocabulary: id {token_id}.",)


def test_white_space_that_was_added_to_a_vocabulary_is_text() -> None:
    template = TURN + "{{ text }}\n\n" + END
    stock = with_added("\n\n", template)
    (token_id,) = stock("\n\n")["input_ids"]
    _, prompt = encoded(template, "a\n\nb <|im_end|>", stock)
    assert prompt.ids.count(token_id) == 2
    assert prompt.ids.count(2) == 1
