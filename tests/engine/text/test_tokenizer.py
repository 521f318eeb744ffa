"""A token is bytes, and text is joined from bytes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, processors
from transformers import PreTrainedTokenizerFast

from engine.errors import EmptyPrompt, LoupeError, PromptTooLong
from engine.models.loader import LoadedModel
from engine.text.tokenizer import MAX_CHARACTERS, ChatMessage, Tokenizer, visible
from engine.tokens import CharPart
from tests.engine.tiny_models import byte_level_tokenizer, nfc_tokenizer, sentencepiece_tokenizer

FOX_AND_EEL = "🦊 鰻"


@pytest.fixture
def byte_level() -> Tokenizer:
    return Tokenizer(byte_level_tokenizer())


@pytest.fixture
def sentencepiece() -> Tokenizer:
    return Tokenizer(sentencepiece_tokenizer())


def raw_bytes(tokenizer: Tokenizer, ids: tuple[int, ...]) -> bytes:
    return b"".join(tokenizer.raw(i) for i in ids)


def user(text: str) -> list[ChatMessage]:
    return [ChatMessage("user", text)]


def stock_chat_ids(stock: PreTrainedTokenizerFast, text: str) -> tuple[int, ...]:
    turns = [{"role": "user", "content": text}]
    return tuple(stock.apply_chat_template(turns, add_generation_prompt=True, tokenize=True)["input_ids"])


# Bytes


@pytest.mark.parametrize(
    "text", [FOX_AND_EEL, "a b\n\tc", "á", " hello , world ' s", "שלום", "👨‍👩‍👧 é\u0301", "\x00\x7f"]
)
def test_token_bytes_concatenate_to_the_prompt_bytes(byte_level: Tokenizer, text: str) -> None:
    ids = byte_level.encode(text).ids
    assert raw_bytes(byte_level, ids) == text.encode()
    assert byte_level.join(ids).text == text


@pytest.mark.parametrize("text", [FOX_AND_EEL, "a b\n\tc", "á", "he , bell's"])
def test_sentencepiece_bytes_are_the_prompt_after_one_space_of_its_own(sentencepiece: Tokenizer, text: str) -> None:
    encoded = sentencepiece.encode(text)
    assert encoded.roles[0] == "template"
    assert raw_bytes(sentencepiece, encoded.ids[1:]) == b" " + text.encode()


def test_each_token_says_which_bytes_of_a_split_character_it_holds(byte_level: Tokenizer) -> None:
    pieces = byte_level.pieces(byte_level.encode("🦊").ids)  # f0 9f merged, then a6, then 8a
    assert [p.raw for p in pieces] == [b"\xf0\x9f", b"\xa6", b"\x8a"]
    assert [p.parts for p in pieces] == [
        (CharPart("🦊", 1, 2, 4),),
        (CharPart("🦊", 3, 3, 4),),
        (CharPart("🦊", 4, 4, 4),),
    ]
    assert all(p.text is None for p in pieces)


def test_a_tail_that_is_not_complete_is_pending_and_has_no_character_yet(byte_level: Tokenizer) -> None:
    ids = byte_level.encode("a🦊").ids[:-1]
    joined = byte_level.join(ids)
    assert (joined.text, joined.pending) == ("a", b"\xf0\x9f\xa6")
    assert byte_level.pieces(ids)[-1].parts == (CharPart(None, 3, 3, 4),)


def test_bytes_that_can_never_be_a_character_become_one_replacement_and_do_not_stay_pending(
    byte_level: Tokenizer,
) -> None:
    ids = (*byte_level.encode("🦊").ids[:1], byte_level.find("a"))
    assert byte_level.join(ids).text == "\ufffda"
    assert byte_level.join(ids).pending == b""
    assert byte_level.pieces(ids)[0].parts == (CharPart(None, 1, 2, 4),)
    assert byte_level.pieces(ids)[1].parts == ()


def test_two_split_characters_side_by_side_keep_their_own_bytes(sentencepiece: Tokenizer) -> None:
    ids = sentencepiece.encode("🦊鰻").ids
    parts = [part for piece in sentencepiece.pieces(ids) for part in piece.parts]
    assert [(p.char, p.first, p.last, p.of) for p in parts] == [
        ("🦊", 1, 1, 4),
        ("🦊", 2, 2, 4),
        ("🦊", 3, 3, 4),
        ("🦊", 4, 4, 4),
        ("鰻", 1, 1, 3),
        ("鰻", 2, 2, 3),
        ("鰻", 3, 3, 3),
    ]


def test_special_tokens_are_joined_as_they_are_spelled(byte_level: Tokenizer) -> None:
    assert byte_level.join((1, byte_level.find("a"), 2)).text == "<|im_start|>a<|im_end|>"
    assert byte_level.piece(2).special
    assert not byte_level.piece(byte_level.find("a")).special


def test_an_id_beyond_the_vocabulary_has_no_bytes(byte_level: Tokenizer) -> None:
    piece = byte_level.piece(100_000)
    assert (piece.raw, piece.text) == (b"", "")
    assert visible(piece) == "⟨no token 100000⟩"


def test_a_typed_byte_spelling_stays_text_in_a_byte_level_vocabulary(byte_level: Tokenizer) -> None:
    assert raw_bytes(byte_level, byte_level.encode("<0xF0>").ids) == b"<0xF0>"


def test_an_added_token_stands_for_its_own_text_even_if_it_looks_like_byte_letters() -> None:
    stock = byte_level_tokenizer()
    stock.add_special_tokens({"additional_special_tokens": ["¡fin¡"]})
    tokenizer = Tokenizer(stock)
    (token_id,) = tokenizer.encode("¡fin¡").ids
    assert tokenizer.raw(token_id) == "¡fin¡".encode()  # as byte letters it would be a1 66 69 6e a1


# Visible forms


@pytest.mark.parametrize("family", [byte_level_tokenizer, sentencepiece_tokenizer])
def test_space_newline_and_tab_are_signs_in_both_families(family: type) -> None:
    tokenizer = Tokenizer(family())
    shown = "".join(visible(tokenizer.piece(i)) for i in tokenizer.encode("a b\n\tc").ids)
    assert shown.removeprefix("<s>").removeprefix("·") == "a·b⏎⇥c"


def test_a_latin_letter_is_shown_as_itself_and_not_as_its_byte_letters(byte_level: Tokenizer) -> None:
    (token_id,) = byte_level.encode("á").ids
    assert visible(byte_level.piece(token_id)) == "á"


def test_part_of_a_character_is_shown_in_hex(byte_level: Tokenizer) -> None:
    assert visible(byte_level.piece(byte_level.encode("🦊").ids[0])) == "⟨f0 9f⟩"


def test_characters_without_ink_show_their_code_point(byte_level: Tokenizer) -> None:
    from engine.tokens import TokenPiece

    assert visible(TokenPiece(0, "\u200b".encode(), "\u200b", False)) == "⟨U+200B⟩"
    assert visible(TokenPiece(0, "\u0301".encode(), "\u0301", False)) == "◌\u0301"


# Raw prompts


def test_an_empty_prompt_is_refused_where_there_is_no_start_token(byte_level: Tokenizer) -> None:
    with pytest.raises(EmptyPrompt, match="Type at least one character"):
        byte_level.encode("")


def test_an_empty_prompt_starts_from_the_start_token_where_there_is_one(sentencepiece: Tokenizer) -> None:
    encoded = sentencepiece.encode("")
    assert encoded.ids == (1,)
    assert "<s>" in encoded.notes[0]


def test_a_blank_prompt_runs_and_its_spaces_are_seen(byte_level: Tokenizer) -> None:
    encoded = byte_level.encode("   ")
    assert "".join(visible(byte_level.piece(i)) for i in encoded.ids) == "···"


def test_raw_text_gets_exactly_one_start_token_and_it_is_not_the_users(sentencepiece: Tokenizer) -> None:
    encoded = sentencepiece.encode("he")
    assert encoded.ids.count(1) == 1
    assert encoded.roles == ("template", *["prompt"] * (len(encoded.ids) - 1))


def test_a_start_token_typed_on_top_of_the_tokenizers_own_is_pointed_out(sentencepiece: Tokenizer) -> None:
    encoded = sentencepiece.encode("<s>he")
    assert encoded.ids[:2] == (1, 1)  # stock ids: what generate would run on
    assert "adds one more" in encoded.notes[0]


def test_raw_control_tokens_are_the_models_own_and_count_as_typed(byte_level: Tokenizer) -> None:
    encoded = byte_level.encode("<|im_start|>a")
    assert encoded.ids[0] == 1
    assert encoded.roles == ("prompt", "prompt")


def test_a_prompt_that_ends_in_a_space_is_kept_and_pointed_out(byte_level: Tokenizer) -> None:
    encoded = byte_level.encode("the ")
    assert raw_bytes(byte_level, encoded.ids) == b"the "
    assert "ends in a space" in encoded.notes[0]
    assert byte_level.encode("the").notes == ()


def test_an_end_token_the_tokenizer_appends_is_pointed_out() -> None:
    stock = byte_level_tokenizer()
    stock.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|im_end|>", special_tokens=[("<|im_end|>", 2)]
    )
    encoded = Tokenizer(stock).encode("a")
    assert encoded.roles == ("prompt", "template")
    assert encoded.notes == ("The tokenizer ends every prompt with <|im_end|>.",)


def test_a_tokenizer_that_rewrites_text_is_pointed_out() -> None:
    tokenizer = Tokenizer(nfc_tokenizer())
    encoded = tokenizer.encode("a\u0301")  # composes to á
    assert raw_bytes(tokenizer, encoded.ids) == "á".encode()
    assert "rewrote" in encoded.notes[0]
    assert tokenizer.encode("á").notes == ()


def test_half_a_surrogate_pair_is_replaced_and_pointed_out(byte_level: Tokenizer) -> None:
    encoded = byte_level.encode("\ud83ea")
    assert byte_level.join(encoded.ids).text == "\ufffda"
    assert "surrogate" in encoded.notes[0]


def test_a_paste_beyond_the_limit_is_refused_at_once_with_what_to_cut(byte_level: Tokenizer) -> None:
    began = time.perf_counter()
    with pytest.raises(PromptTooLong, match=r"Shorten it by 800,000\."):
        byte_level.encode("a" * (MAX_CHARACTERS + 800_000))
    assert time.perf_counter() - began < 1.0


def test_the_largest_allowed_text_without_a_space_is_tokenised(byte_level: Tokenizer) -> None:
    assert len(byte_level.encode("x" * MAX_CHARACTERS).ids) == MAX_CHARACTERS


# Finding a token


def test_a_token_is_found_by_its_text_then_by_its_id(byte_level: Tokenizer) -> None:
    assert byte_level.raw(byte_level.find(" the")) == b" the"
    assert byte_level.raw(byte_level.find("1")) == b"1"  # a token that spells the number goes before the id
    assert byte_level.find("250") == 250
    assert byte_level.find("#1") == 1
    assert byte_level.find("<|im_end|>") == 2


def test_a_text_is_offered_with_and_without_its_leading_space(byte_level: Tokenizer) -> None:
    plain, spaced = byte_level.find("the"), byte_level.find(" the")
    assert byte_level.readings("the") == (plain, spaced)
    assert byte_level.readings(" the") == (spaced, plain)
    assert byte_level.readings("th") == (byte_level.find("th"),)  # " th" takes two tokens
    assert byte_level.readings(" ") == (byte_level.find(" "),)


def test_an_id_that_the_model_has_and_the_tokenizer_lacks_is_asked_for_by_its_number(byte_level: Tokenizer) -> None:
    size = byte_level.vocab_size
    assert byte_level.readings(f"#{size}", size + 5) == (size,)
    assert byte_level.readings(str(size + 4), size + 5) == (size + 4,)
    with pytest.raises(LoupeError, match=f"There is no token {size + 5}: this model's ids go from 0 to {size + 4}"):
        byte_level.readings(f"#{size + 5}", size + 5)
    with pytest.raises(LoupeError, match="There is no token 9999999999999999999"):
        byte_level.readings("#" + "9" * 5000, size + 5)


def test_tokens_without_bytes_are_told_apart_by_their_ids() -> None:
    backend = Backend(models.WordPiece({"[UNK]": 0, "the": 1, "##": 2, "##m": 3}, unk_token="[UNK]"))
    backend.decoder = decoders.WordPiece()
    tokenizer = Tokenizer(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]"))
    assert [visible(tokenizer.piece(i)) for i in (2, 3, 4, 5)] == ["⟨empty 2⟩", "m", "⟨no token 4⟩", "⟨no token 5⟩"]
    assert [tokenizer.piece(i).known for i in (2, 3, 4, 5)] == [True, True, False, False]


def test_text_that_takes_several_tokens_is_refused_with_those_tokens(byte_level: Tokenizer) -> None:
    with pytest.raises(LoupeError, match=r"it takes 2: the \(\d+\)  o \(\d+\)"):
        byte_level.find("theo")


def test_an_ordinary_token_goes_before_a_byte_token_of_the_same_bytes(sentencepiece: Tokenizer) -> None:
    assert sentencepiece.find("a") == sentencepiece.encode("ba").ids[-1]
    assert sentencepiece.find("\n") == 3 + 0x0A  # only a byte token has it


@pytest.mark.parametrize("text", ["", "99999999999", "-1", "²", "\ud800"])
def test_what_names_no_token_is_refused(byte_level: Tokenizer, text: str) -> None:
    with pytest.raises(LoupeError):
        byte_level.find(text)


# Threads


def test_sixteen_threads_share_one_tokenizer_without_an_error() -> None:
    stock = byte_level_tokenizer()
    tokenizer = Tokenizer(stock)
    texts = [f"the {n} 🦊 " * (n + 1) for n in range(16)]
    expected = [tokenizer.encode(text).ids for text in texts]

    def work(n: int) -> bool:
        for _ in range(20):
            with tokenizer._lock:  # what the library does on its own when it pads or truncates
                stock(texts[n], truncation=True, max_length=8, padding="max_length")
            if tokenizer.encode(texts[n]).ids != expected[n]:
                return False
            tokenizer.encode_chat(user(texts[n]))
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


# The bundled model


@pytest.mark.slow
def test_the_bundled_tokenizer_splits_digits_one_by_one(bundled: LoadedModel) -> None:
    pieces = bundled.tokenizer.pieces(bundled.tokenizer.encode("in 2048").ids)
    assert [p.text for p in pieces] == ["in", " ", "2", "0", "4", "8"]


@pytest.mark.slow
def test_the_bundled_model_reads_the_cat_sat_as_three_tokens(bundled: LoadedModel) -> None:
    assert bundled.tokenizer.encode("The cat sat").ids == (504, 2644, 2643)
