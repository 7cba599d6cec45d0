import datetime as dt
import decimal
import enum
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import Item, broken_histories, histories, nested, odd_items, quick
from recollect.errors import InvalidItemError, RecollectError
from recollect.items import decode_item, encode_items

BIG = 2**64


def round_trip(item: Item) -> Item | None:
    [stored] = encode_items([item])
    return decode_item(stored)


def type_name(value: object) -> str:
    """An id for a test that is the same in every process."""
    return type(value).__name__


def exactly(value: Any) -> str:
    """Tells 1, 1.0, -0.0 and True apart, and the order of keys."""
    return repr(value)


@quick
@given(st.lists(odd_items(), max_size=4))
def test_odd_items_come_back_exactly(items: list[Item]) -> None:
    assert exactly([decode_item(stored) for stored in encode_items(items)]) == exactly(items)


@quick
@given(histories() | broken_histories())
def test_histories_come_back_exactly(items: list[Item]) -> None:
    assert exactly([decode_item(stored) for stored in encode_items(items)]) == exactly(items)


@quick
@given(odd_items())
def test_what_is_stored_is_json_in_utf_8_for_everybody(item: Item) -> None:
    [stored] = encode_items([item])
    assert exactly(json.loads(stored)) == exactly(item)
    assert decode_item(stored.encode()) == item


@pytest.mark.parametrize(
    "value",
    [
        BIG - 1,
        BIG,
        BIG + 1,
        -BIG,
        10**400,
        1.0,
        -0.0,
        1e16,
        0.1,
        True,
        None,
        "",
        "\x00",
        "\ud800",
        "😀",
        "\u2028",
    ],
)
def test_a_value_comes_back_exactly(value: Any) -> None:
    for item in ({"a": value}, {"a": [{"b": value}]}, {"lone \udfff": 0, "a": value}):
        assert exactly(round_trip(item)) == exactly(item)


def test_a_lone_surrogate_in_a_key_comes_back() -> None:
    assert round_trip({"\ud800": {"\udfff": 1}}) == {"\ud800": {"\udfff": 1}}


def test_a_string_enum_comes_back_as_its_string() -> None:
    color = enum.StrEnum("color", ["red"])
    assert exactly(round_trip({"color": color.red})) == exactly({"color": "red"})


def test_no_items_are_no_rows_and_a_tuple_will_do() -> None:
    assert encode_items([]) == []
    assert encode_items(({"a": 1}, {})) == ['{"a":1}', "{}"]


def test_the_items_are_left_as_they_were() -> None:
    item = {"a": [1, {"b": "\ud800"}]}
    encode_items([item])
    assert item == {"a": [1, {"b": "\ud800"}]}


def exactly_or_refused(item: Item) -> bool:
    try:
        back = round_trip(item)
    except InvalidItemError as error:
        return error.index == 0
    return back == item


@pytest.mark.parametrize("levels", [100, 300, 500, 900, 1000, 1500, 5000, 100_000])
@pytest.mark.parametrize("core", ["plain", "\ud800"])
def test_deep_nesting_comes_back_or_is_refused(levels: int, core: str) -> None:
    assert exactly_or_refused({"deep": nested(core, levels)})


def test_a_hundred_levels_are_not_too_deep() -> None:
    item = {"deep": nested("\ud800", 100)}
    assert round_trip(item) == item


@pytest.mark.parametrize("levels", [300, 600, 800])
def test_what_was_stored_comes_back_also_where_the_stack_is_deep(levels: int) -> None:
    item = {"deep": nested("core", levels)}
    try:
        [stored] = encode_items([item])
    except InvalidItemError:
        return
    assert from_deeper(300, lambda: decode_item(stored)) is not None


def from_deeper(frames: int, call: Callable[[], Any]) -> Any:
    return from_deeper(frames - 1, call) if frames else call()


@pytest.mark.parametrize(
    "item",
    [
        {"text": "\ud83d\ude00"},
        {"\ud83d\ude00": 1},
        {"\ud83d\ude00": 1, "😀": 2},
    ],
)
def test_a_surrogate_pair_in_two_halves_comes_back_or_is_refused(item: Item) -> None:
    assert exactly_or_refused(item)


def test_an_integer_too_long_to_write_is_refused() -> None:
    with pytest.raises(InvalidItemError, match="item 0 "):
        encode_items([{"a": 10**5000}])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        ((1, 2), "tuple"),
        ((), "tuple"),
        ({1, 2}, "set"),
        (b"bytes", "bytes"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "datetime"),
        (dt.date(2026, 1, 1), "date"),
        (uuid.UUID(int=1), "UUID"),
        (decimal.Decimal("1.5"), "Decimal"),
        (object(), "object"),
        ({1: "int key"}, "the key 1"),
        ({None: "no key"}, "the key None"),
        ({True: "yes"}, "the key True"),
    ],
    ids=type_name,
)
def test_what_would_come_back_changed_is_refused_with_its_place(value: Any, reason: str) -> None:
    items = [{"fine": 1}, {"content": [{"text": "x"}, {"odd": value}]}]
    with pytest.raises(InvalidItemError) as caught:
        encode_items(items)
    assert caught.value.index == 1
    assert str(caught.value).startswith("item 1 cannot be stored: content[1].odd ")
    assert reason in caught.value.reason


def test_an_integer_key_of_the_item_itself_is_refused() -> None:
    with pytest.raises(InvalidItemError, match="item 0 cannot be stored: it has the key 7"):
        encode_items([{7: "seven"}])


@pytest.mark.parametrize("item", ["text", 7, None, ["a"], ("a", 1), b"{}", object()], ids=type_name)
def test_what_is_no_object_is_refused(item: Any) -> None:
    with pytest.raises(InvalidItemError, match=f"item 1 .* {type(item).__name__}") as caught:
        encode_items([{}, item])
    assert caught.value.index == 1


@pytest.mark.parametrize("items", [{"role": "user"}, "text", None, 7, iter([]), {"a"}], ids=type_name)
def test_what_is_no_list_is_refused(items: Any) -> None:
    with pytest.raises(InvalidItemError, match=type(items).__name__) as caught:
        encode_items(items)
    assert caught.value.index is None


def test_what_contains_itself_is_refused() -> None:
    loop: Item = {"role": "user"}
    loop["content"] = [loop]
    with pytest.raises(InvalidItemError, match=r"item 1 .* contains itself"):
        encode_items([{}, loop])


def test_a_refusal_is_a_type_error_and_one_of_ours() -> None:
    assert issubclass(InvalidItemError, TypeError)
    assert issubclass(InvalidItemError, RecollectError)


@pytest.mark.parametrize(
    "stored",
    [
        "",
        " ",
        "{",
        "null",
        "[]",
        '[{"a": 1}]',
        '"text"',
        "7",
        "NaN",
        "true",
        '{"a": 1} {"b": 2}',
        "{'a': 1}",
        "\ud800",
    ],
)
def test_what_is_stored_but_no_object_is_none(stored: str) -> None:
    assert decode_item(stored) is None
    assert decode_item(stored.encode(errors="surrogatepass")) is None


@pytest.mark.parametrize(
    "stored",
    [b"\xff", b"\x00\x01\x02", b'{"a": "\xff"}', b"\xfe\xff", b"gAAAAABm", b"\x80\x04}q\x00."],
)
def test_garbage_bytes_are_none(stored: bytes) -> None:
    assert decode_item(stored) is None


@quick
@given(st.binary(max_size=30) | odd_items().map(lambda item: json.dumps(item).encode()[:-1]))
def test_no_bytes_make_it_raise(stored: bytes) -> None:
    assert isinstance(decode_item(stored), dict | None)


@quick
@given(st.text(st.characters(), max_size=30))
def test_no_text_makes_it_raise(stored: str) -> None:
    assert isinstance(decode_item(stored), dict | None)
    assert isinstance(decode_item(f'{{"a": "{stored}"}}'), dict | None)


@quick
@given(odd_items(), st.booleans())
def test_what_the_standard_library_wrote_is_read(item: Item, ascii_only: bool) -> None:
    stored = json.dumps(item, ensure_ascii=ascii_only, indent=1)
    assert exactly(decode_item(stored.encode(errors="surrogatepass"))) == exactly(item)


def test_not_a_number_is_read_where_others_wrote_it() -> None:
    written = {"a": [float("nan"), float("inf"), float("-inf")], "b": "\ud800"}
    assert exactly(decode_item(json.dumps(written))) == exactly(written)


def test_deep_garbage_is_none() -> None:
    assert decode_item("[" * 100_000) is None
    assert decode_item('{"a":' * 100_000) is None
