import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import (
    CALL_KINDS,
    PICTURE,
    Item,
    broken_histories,
    call_and_output,
    histories,
    odd_items,
    quick,
    texts,
)
from recollect.items import estimate_text_tokens, estimate_tokens, text_of

LONG = "word " * 400  # about 500 tokens
MEGABYTE = "data:image/png;base64," + "A" * 1_000_000


def user(content: object) -> Item:
    return {"role": "user", "content": content}


@quick
@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_ascii_is_four_characters_a_token(text: str) -> None:
    assert len(text) / 4 <= estimate_text_tokens(text) < len(text) / 4 + 1


@pytest.mark.parametrize(
    "text",
    ["北京今天天气很好", "繁體中文測試", "ひらがなとカタカナ", "안녕하세요서울", "全角！？ＡＢＣ", "𠀀𠀁𠀂"],
)
def test_cjk_is_a_token_a_character(text: str) -> None:
    assert estimate_text_tokens(text) == len(text)


def test_mixed_text_is_the_sum_of_its_scripts() -> None:
    assert estimate_text_tokens("abcd北京efgh天气") == 1 + 2 + 1 + 2


@pytest.mark.parametrize("text", ["Привет, мир!", "مرحبا بالعالم", "👍🏽👨‍👩‍👧", "é" * 10])
def test_other_scripts_are_four_characters_a_token(text: str) -> None:
    assert estimate_text_tokens(text) == -(-len(text) // 4)


@quick
@given(texts(), texts())
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert estimate_text_tokens(one + other) >= estimate_text_tokens(one)
    assert estimate_text_tokens(one + other) <= estimate_text_tokens(one) + estimate_text_tokens(other)


@quick
@given(histories() | broken_histories() | st.lists(odd_items(), max_size=5))
def test_a_history_costs_what_its_items_cost(items: list[Item]) -> None:
    assert estimate_tokens(items) == sum(map(estimate_tokens, items))
    assert all(estimate_tokens(item) >= estimate_text_tokens(text_of(item)) for item in items)


def test_an_empty_history_is_free_and_an_empty_item_is_not() -> None:
    assert estimate_tokens([]) == 0
    assert 0 < estimate_tokens(user("")) < 10


@pytest.mark.parametrize("content", [LONG, [{"type": "input_text", "text": LONG}]])
def test_a_message_costs_about_its_text(content: object) -> None:
    assert estimate_tokens(user(content)) == pytest.approx(500, abs=10)


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_the_arguments_of_a_call_are_counted(kind: str) -> None:
    call, _ = call_and_output(kind, "call_1", LONG)
    assert estimate_tokens(call) >= 450


@pytest.mark.parametrize("kind", sorted({*CALL_KINDS} - {"computer_call", "mcp_approval_request"}))
def test_the_output_of_a_call_is_counted(kind: str) -> None:
    _, output = call_and_output(kind, "call_1", LONG)
    assert estimate_tokens(output) >= 450


def test_the_name_of_a_function_is_counted() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    assert estimate_tokens({**call, "name": "f" * 400}) == estimate_tokens(call) + 99


@pytest.mark.parametrize("kind", ["input_image", "image"])
def test_an_image_costs_the_same_whatever_its_bytes(kind: str) -> None:
    small, large = (user([{"type": kind, "image_url": data}]) for data in (PICTURE, MEGABYTE))
    assert estimate_tokens(small) == estimate_tokens(large)
    assert 80 < estimate_tokens(large) < 2000


def test_every_image_counts() -> None:
    image = {"type": "input_image", "image_url": PICTURE}
    one, three = estimate_tokens(user([image])), estimate_tokens(user([image] * 3))
    assert three - one == 2 * (one - estimate_tokens(user([])))


def test_an_image_in_an_output_counts_like_one_in_a_message() -> None:
    image = {"type": "input_image", "image_url": MEGABYTE}
    output = {"type": "function_call_output", "call_id": "call_1", "output": [image]}
    assert estimate_tokens(output) == estimate_tokens(user([image]))


def test_a_screenshot_counts_as_an_image() -> None:
    _, output = call_and_output("computer_call", "call_1")
    image = user([{"type": "input_image", "image_url": PICTURE}])
    assert estimate_tokens(output) == estimate_tokens(image)


@pytest.mark.parametrize(
    "item",
    [
        user([{"type": "input_audio", "input_audio": {"data": MEGABYTE, "format": "wav"}}]),
        {"type": "computer_call_output", "call_id": "c", "output": {"image_url": MEGABYTE}},
        {"type": "image_generation_call", "id": "ig_1", "result": MEGABYTE},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": MEGABYTE},
    ],
)
def test_bytes_are_not_counted_as_text(item: Item) -> None:
    assert estimate_tokens(item) < 2000


def test_a_tokenizer_of_the_caller_counts_the_text_instead() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return 1000 if text else 0

    call = {"type": "function_call", "call_id": "call_1", "name": "", "arguments": "{}"}
    overhead = estimate_tokens({**call, "arguments": ""}, lambda _: 0)
    assert estimate_tokens([user("hi"), call], count) == 2 * (1000 + overhead)
    assert {"hi", "{}"} <= set(seen)
