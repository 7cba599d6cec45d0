"""Input callbacks: what the model is shown, and that nothing is torn, leaked or stored twice by it."""

import asyncio
import copy
import inspect
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import (
    SessionInputCallback,
    chain_callbacks,
    drop_sensitive,
    find_orphans,
    limit_history,
    mask_sensitive,
    summarize_head,
    text_of,
)
from recollect.testing.contract import message, texts

from ..histories import CALL_KINDS, Item, call_and_output, histories, quick

NEW = [message("new")]


def system(text: str) -> Item:
    return {"role": "system", "content": text}


def answer(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def thought(text: str) -> Item:
    return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}]}


def call(call_id: str, **arguments: Any) -> Item:
    words = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function_call", "call_id": call_id, "name": "look_up", "arguments": words}


def output(call_id: str, text: str = "found") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def shown(callback: SessionInputCallback, history: list[Item], new: list[Item] | None = None) -> list[Item]:
    """What a callback makes of a history, whether it is async or not."""

    async def run() -> list[Item]:
        result = callback(history, NEW if new is None else new)
        return await result if inspect.isawaitable(result) else result

    return asyncio.run(run())


def are_among(items: list[Item], others: list[Item]) -> bool:
    """Whether all items are the very objects that the others are, in the same order."""
    rest = iter(others)
    return all(any(item is other for other in rest) for item in items)


# --- limit ---


@pytest.mark.parametrize(("limit", "kept"), [(0, ""), (1, "e"), (3, "cde"), (5, "abcde"), (99, "abcde")])
def test_limit_shows_the_newest_and_all_that_is_new(limit: int, kept: str) -> None:
    history = [message(letter) for letter in "abcde"]
    new = [message("x"), message("y"), message("z")]
    assert texts(shown(limit_history(limit), history, new)) == [*kept, "x", "y", "z"]
    assert texts(history) == list("abcde"), "the history itself is left alone"


def test_limit_keeps_what_stands_before_the_first_turn() -> None:
    history = [system("be kind"), system("today is Friday"), *(message(n) for n in range(10))]
    assert texts(shown(limit_history(4), history)) == ["be kind", "today is Friday", "8", "9", "new"]
    assert texts(shown(limit_history(2), history)) == ["be kind", "today is Friday", "new"]
    assert texts(shown(limit_history(1), history)) == ["be kind", "new"]


def test_limit_counts_no_system_message_of_a_later_turn_as_the_start() -> None:
    history = [message("a"), system("later"), message("b"), message("c")]
    assert texts(shown(limit_history(2), history)) == ["b", "c", "new"]


def test_limit_leaves_out_a_tool_call_that_does_not_fit_whole() -> None:
    history = [message("a"), thought("hm"), call("c"), output("c"), answer("done")]
    for limit, kept in ((1, history[4:]), (2, history[4:]), (3, history[4:]), (4, history[1:]), (5, history)):
        assert shown(limit_history(limit), history) == [*kept, *NEW]


def test_limit_shows_the_newest_also_of_a_history_without_a_user_message() -> None:
    history = [answer(letter) for letter in "abcde"]
    assert shown(limit_history(2), history) == [*history[3:], *NEW]


def test_limit_of_an_empty_history() -> None:
    assert shown(limit_history(3), []) == NEW


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="max_items must not be negative: -1"):
        limit_history(-1)


@quick
@given(histories())
def test_limit_never_leaves_an_orphan(history: list[Item]) -> None:
    first_user = next((n for n, item in enumerate(history) if item.get("role") == "user"), 0)
    for limit in range(len(history) + 2):
        combined = shown(limit_history(limit), history)
        kept = combined[:-1]
        assert combined[-1] is NEW[0]
        assert are_among(kept, history), "a copy would be stored as new"
        assert len(kept) <= limit
        assert find_orphans(kept) == []
        assert are_among(history[: min(first_user, limit)], kept)


# --- drop ---


def test_drop_leaves_out_what_has_a_word_in_any_case() -> None:
    history = [message("my Password is x"), answer("fine"), message("weather?"), system("PASSWORDS matter")]
    assert shown(drop_sensitive(["password"]), history) == [history[1], history[2], *NEW]
    assert shown(drop_sensitive(["PassWord"]), history) == [history[1], history[2], *NEW]


def test_drop_takes_words_literally_and_patterns_as_patterns() -> None:
    history = [message("a.b"), message("axb"), message("call 555-1234")]
    assert texts(shown(drop_sensitive(["a.b"]), history)) == ["axb", "call 555-1234", "new"]
    assert texts(shown(drop_sensitive(patterns=["a.b"]), history)) == ["call 555-1234", "new"]
    assert texts(shown(drop_sensitive(["a.b"], [r"\d{3}-\d{4}"]), history)) == ["axb", "new"]


@pytest.mark.parametrize(
    "history",
    [
        [thought("hm"), call("c", key="secret"), output("c"), answer("done")],
        [thought("hm"), call("c", key="x"), output("c", "it is secret"), answer("done")],
        [thought("a secret"), call("c", key="x"), output("c"), answer("done")],
    ],
    ids=["in the call", "in the output", "in the thought"],
)
def test_drop_takes_the_whole_group(history: list[Item]) -> None:
    history = [message("before"), *history]
    assert shown(drop_sensitive(["secret"]), history) == [message("before"), answer("done"), *NEW]


def test_drop_leaves_the_new_input_and_everything_harmless_alone() -> None:
    history = [message("a"), call("c"), output("c")]
    new = [message("my secret")]
    combined = shown(drop_sensitive(["secret"]), history, new)
    assert are_among(combined, [*history, *new])
    assert len(combined) == 4


@quick
@given(histories(), st.sampled_from(["hi", "paris", "天", "a", "42", "billing"]))
def test_drop_never_leaves_an_orphan_or_the_word(history: list[Item], word: str) -> None:
    kept = shown(drop_sensitive([word]), history)[:-1]
    assert are_among(kept, history)
    assert find_orphans(kept) == []
    assert not any(word in text_of(item).lower() for item in kept)


# --- mask ---


def masked(item: Item, *words: str, **options: Any) -> Item:
    item = copy.deepcopy(item)
    (result,) = shown(mask_sensitive(words, **options), [item], [])
    assert result is item, "it stays the same object: a copy would be stored as new"
    return item


def test_mask_replaces_words_in_any_case_and_leaves_the_rest() -> None:
    item = message("Alice told ALICE and alicent about Bob")
    assert masked(item, "alice")["content"] == "[redacted] told [redacted] and [redacted]nt about Bob"
    assert masked(item, "alice", "bob", mask="X")["content"] == "X told X and Xnt about X"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (answer("ask Alice"), answer("ask #")),
        (
            {"role": "user", "content": [{"type": "input_text", "text": "Alice"}, {"type": "input_image"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "#"}, {"type": "input_image"}]},
        ),
        (call("c", name="Alice", n=[1, {"deep": "to Alice"}]), call("c", name="#", n=[1, {"deep": "to #"}])),
        (output("c", "Alice is in"), output("c", "# is in")),
        (output("c", '{"name": "Alice"}'), output("c", '{"name": "#"}')),
        (output("c", '["Alice", null, true]'), output("c", '["#", null, true]')),
        (thought("Alice wants"), thought("# wants")),
        (
            {"type": "custom_tool_call", "input": "find Alice"},
            {"type": "custom_tool_call", "input": "find #"},
        ),
        (
            {"type": "function_call_output", "output": [{"type": "input_text", "text": "Alice"}]},
            {"type": "function_call_output", "output": [{"type": "input_text", "text": "#"}]},
        ),
    ],
    ids=["answer", "parts", "arguments", "output", "object", "list", "thought", "input", "output parts"],
)
def test_mask_reaches_every_text_of_an_item(item: Item, expected: Item) -> None:
    assert masked(item, "alice", mask="#") == expected


@pytest.mark.parametrize("mask", ['"quoted"', "back\\slash \\1 \\g<0>", "new\nline", "", "面"], ids=repr)
def test_arguments_stay_json_whatever_the_mask_is(mask: str) -> None:
    item = call("c", said='Alice said "hi"', n=2**70, x=1.5, ok=True, none=None)
    arguments = json.loads(masked(item, "alice", mask=mask)["arguments"])
    assert arguments == {"said": f'{mask} said "hi"', "n": 2**70, "x": 1.5, "ok": True, "none": None}


def test_mask_replaces_a_number_inside_arguments_whole() -> None:
    item = call("c", card=4111111111111111, amount=20, rate=0.5)
    arguments = json.loads(masked(item, patterns=[r"4\d{15}"])["arguments"])
    assert arguments == {"card": "[redacted]", "amount": 20, "rate": 0.5}


def test_mask_leaves_ids_types_roles_and_names_alone() -> None:
    item = {
        "type": "function_call",
        "id": "function",
        "call_id": "function",
        "name": "function",
        "status": "function",
        "arguments": '{"a": "function"}',
    }
    assert masked(item, "function", mask="#") == {**item, "arguments": '{"a": "#"}'}
    said = {"type": "message", "role": "user", "id": "user", "content": [{"type": "user", "text": "user"}]}
    assert masked(said, "user", mask="#")["content"] == [{"type": "user", "text": "#"}]
    assert masked(said, "user", mask="#")["role"] == "user"


def test_mask_works_on_the_new_input_too() -> None:
    history, new = [message("Alice 1")], [message("Alice 2"), message("Bob")]
    combined = shown(mask_sensitive(["alice"]), history, new)
    assert texts(combined) == ["[redacted] 1", "[redacted] 2", "Bob"]
    assert combined[0] is history[0]
    assert combined[1:] == new
    assert combined[1] is new[0]


def test_mask_takes_patterns() -> None:
    item = message("write to a@example.com or B@EXAMPLE.com, a.b")
    assert masked(item, "a.b", patterns=[r"\S+@example\.com"])["content"] == (
        "write to [redacted] or [redacted], [redacted]"
    )


def test_text_that_has_nothing_to_hide_is_not_rewritten() -> None:
    item = {"type": "function_call", "call_id": "c", "arguments": '{ "n":1.0,"n":1e3, "é": "\\u00e9" }'}
    assert masked(item, "alice") == item


@quick
@given(histories(), st.sampled_from(["hi", "paris", "天", "a", "42"]))
def test_mask_keeps_every_item_what_it_is(history: list[Item], word: str) -> None:
    before = copy.deepcopy(history)
    assert are_among(shown(mask_sensitive([word], mask="#"), history)[:-1], history)
    assert len(before) == len(history)
    for old, new in zip(before, history, strict=True):
        for field in ("type", "role", "id", "call_id", "name", "approval_request_id"):
            assert old.get(field) == new.get(field)
        assert list(old) == list(new)
        if old.get("type") == "function_call":
            json.loads(new["arguments"])
        elif isinstance(old.get("content"), str):
            assert word not in new["content"].lower()
    assert find_orphans(history) == []


# --- what drop and mask look for ---


@pytest.mark.parametrize("make", [drop_sensitive, mask_sensitive])
def test_nothing_to_look_for_is_refused(make: Callable[..., SessionInputCallback]) -> None:
    for words, patterns in (([], []), ([""], []), (["", ""], ())):
        with pytest.raises(ValueError, match="at least one word or pattern"):
            make(words, patterns)
    with pytest.raises(ValueError, match="at least one word or pattern"):
        make()


@pytest.mark.parametrize("make", [drop_sensitive, mask_sensitive])
@pytest.mark.parametrize("bad", ["(", "[a", "a{2,1}", "(?P<n", "*"])
def test_a_bad_pattern_is_refused(make: Callable[..., SessionInputCallback], bad: str) -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        make(["good"], ["good", bad])


@pytest.mark.parametrize("make", [drop_sensitive, mask_sensitive])
def test_an_empty_word_among_others_matches_nothing(make: Callable[..., SessionInputCallback]) -> None:
    assert shown(make(["", "secret"]), [message("hello")]) == [message("hello"), *NEW]


def test_words_may_come_from_a_generator_and_serve_many_runs() -> None:
    callback = drop_sensitive(word for word in ["a", "b"])
    for _ in range(2):
        assert texts(shown(callback, [message("a"), message("b"), message("c")])) == ["c", "new"]


ESCAPED = {
    "type": "function_call",
    "call_id": "c",
    "name": "f",
    "arguments": json.dumps({"to": "Müller, 东京"}),  # "M\\u00fcller": as most tools write it
}


@pytest.mark.parametrize("word", ["müller", "东京"])
def test_words_are_found_in_escaped_arguments(word: str) -> None:
    assert shown(drop_sensitive([word]), [copy.deepcopy(ESCAPED)]) == NEW
    assert word not in json.loads(masked(ESCAPED, word)["arguments"])["to"].lower()


@pytest.mark.parametrize("key", ["id", "type", "name", "data", "status"])
def test_mask_reaches_everything_inside_arguments(key: str) -> None:
    assert masked(call("c", **{key: "alice"}), "alice", mask="#")["arguments"] == json.dumps({key: "#"})


def test_mask_reaches_the_keys_inside_arguments() -> None:
    assert "alice" not in masked(call("c", **{"alice@example.com": 1}), "alice")["arguments"]


@pytest.mark.parametrize("key", ["name", "data", "status"])
def test_mask_reaches_everything_inside_arguments_that_are_no_text(key: str) -> None:
    item = {"type": "tool_search_call", "call_id": "c", "arguments": {key: "alice"}}
    assert "alice" not in str(masked(item, "alice"))


def test_patterns_do_not_disturb_each_other() -> None:
    item = message("11 aa bb")
    assert masked(item, patterns=[r"(a)a", r"(\d)\1"])["content"] == "[redacted] [redacted] bb"
    assert masked(item, patterns=[r"(?P<x>a)a", r"(?P<x>b)b"])["content"] == "11 [redacted] [redacted]"


def test_a_pattern_may_begin_with_flags() -> None:
    assert masked(message("Alice\nBob"), patterns=[r"(?im)^bob$"])["content"] == "Alice\n[redacted]"


def test_a_pattern_may_span_the_text_of_arguments() -> None:
    arguments = masked(call("c", password="hunter2"), patterns=[r'"password":\s*"[^"]*"'])["arguments"]
    assert "hunter2" not in arguments
    json.loads(arguments)


def test_the_longer_of_two_words_is_masked_whole() -> None:
    assert masked(message("to annabel"), "ann", "annabel", mask="#")["content"] == "to #"


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_no_kind_of_tool_call_hides_a_word_from_drop(kind: str) -> None:
    assert shown(drop_sensitive(["secret"]), [*call_and_output(kind, "c", "secret")]) == NEW


@pytest.mark.parametrize("kind", sorted({*CALL_KINDS} - {"computer_call"}))
def test_no_kind_of_tool_call_hides_a_word_from_mask(kind: str) -> None:
    assert "secret" not in str(shown(mask_sensitive(["secret"]), [*call_and_output(kind, "c", "secret")]))


def test_mask_leaves_pictures_and_what_is_encrypted_alone() -> None:
    """Whatever the letters of them happen to spell: changed, they would be refused."""
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORabcK"}
    said = {"role": "user", "content": [picture, {"type": "input_text", "text": "abc"}]}
    screen = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORabcK"}
    for item in (
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gAAAabc"},
        {"type": "compaction", "id": "c", "encrypted_content": "gAAAabc"},
        {"type": "computer_call_output", "call_id": "c", "output": screen},
    ):
        assert masked(item, "abc") == item
    assert masked(said, "abc", mask="#")["content"] == [picture, {"type": "input_text", "text": "#"}]


@pytest.mark.parametrize("make", [drop_sensitive, mask_sensitive])
@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "secret"}},
        {"type": "file_search_call", "id": "f", "queries": ["secret"], "results": None},
        {"type": "file_search_call", "id": "f", "queries": [], "results": [{"text": "secret"}]},
        {"type": "code_interpreter_call", "id": "c", "code": "secret", "outputs": []},
        {"type": "code_interpreter_call", "id": "c", "code": "", "outputs": [{"logs": "secret"}]},
        {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "error": "secret"},
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else None,
)
def test_no_hosted_tool_hides_a_word(make: Callable[..., SessionInputCallback], item: Item) -> None:
    assert "secret" not in str(shown(make(["secret"]), [copy.deepcopy(item)]))


# --- summarize the head ---


def test_a_short_history_is_not_summarized() -> None:
    def summarize(_: list[Item]) -> str:
        raise AssertionError("there is nothing to summarize")

    history = [message(n) for n in range(3)]
    for count in (0, 2, 3):
        assert shown(summarize_head(summarize, 3), history[:count]) == [*history[:count], *NEW]


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
def test_a_long_history_is_shown_as_summary_and_newest(wait: bool) -> None:
    def summarize(items: list[Item]) -> str:
        return " and ".join(texts(items))

    async def summarize_later(items: list[Item]) -> str:
        await asyncio.sleep(0)
        return summarize(items)

    history = [message(n) for n in range(5)]
    combined = shown(summarize_head(summarize_later if wait else summarize, 3), history)
    summary = system("[Summary of the earlier conversation]\n0 and 1 and 2")
    assert combined == [summary, message(3), message(4), *NEW]


def test_the_summary_stands_after_what_precedes_the_first_turn() -> None:
    history = [system("be kind"), *(message(n) for n in range(5))]
    combined = shown(summarize_head(lambda items: ", ".join(texts(items)), 3), history)
    assert texts(combined) == ["be kind", "[Summary of the earlier conversation]\n0, 1, 2, 3", "4", "new"]


def test_a_summary_alone_is_shown_where_there_is_room_for_nothing_else() -> None:
    history = [message("a"), message("b")]
    combined = shown(summarize_head(lambda items: str(len(items)), 1), history)
    assert texts(combined) == ["[Summary of the earlier conversation]\n2", "new"]


def test_a_summary_is_made_in_place_of_an_item_of_the_history() -> None:
    """The Runner stores what is neither history nor input: a fresh item would be stored every time."""
    history = [{**message(n), "type": "message", "id": f"msg_{n}"} for n in range(4)]
    combined = shown(summarize_head(lambda _: "summary", 2), history)
    assert are_among(combined, [*history, *NEW])
    assert combined[0] == system("[Summary of the earlier conversation]\nsummary"), "nothing of it is left"


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
def test_a_summarizer_that_fails_does_not_break_a_run(wait: bool, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: list[Item]) -> str:
        raise LookupError("with my-secret-word")

    async def fail_later(items: list[Item]) -> str:
        return fail(items)

    history = [system("be kind"), *(message(n) for n in range(5))]
    with caplog.at_level(logging.WARNING):
        combined = shown(summarize_head(fail_later if wait else fail, 3), history)
    assert texts(combined) == ["be kind", "4", "new"]
    assert "summarizer failed (LookupError)" in caplog.text
    assert "my-secret-word" not in caplog.text


@pytest.mark.parametrize("max_items", [0, -1])
def test_a_summary_needs_room(max_items: int) -> None:
    with pytest.raises(ValueError, match="max_items must be at least 1"):
        summarize_head(lambda _: "", max_items)


@quick
@given(histories(), st.integers(1, 20))
def test_a_summary_never_leaves_an_orphan(history: list[Item], max_items: int) -> None:
    whole = copy.deepcopy(history)
    left_out: list[Item] = []

    def summarize(items: list[Item]) -> str:
        left_out.extend(copy.deepcopy(items))
        return "summary"

    combined = shown(summarize_head(summarize, max_items), history)
    assert are_among(combined, [*history, *NEW])
    assert len(combined) <= max_items + 1
    assert find_orphans(combined[:-1]) == []
    assert bool(left_out) == (len(whole) > max_items)
    if left_out:
        assert len(combined) - 2 + len(left_out) == len(whole), "each item is shown or summarized"
        assert all(item in whole for item in left_out)


# --- chain ---


def test_chained_callbacks_work_one_on_what_the_other_made() -> None:
    history = [message("secret 1"), message("2"), message("3"), message("secret 4"), message("5")]
    first_drop = chain_callbacks(drop_sensitive(["secret"]), limit_history(2))
    first_limit = chain_callbacks(limit_history(2), drop_sensitive(["secret"]))
    assert texts(shown(first_drop, history)) == ["3", "5", "new"]
    assert texts(shown(first_limit, history)) == ["5", "new"]


def test_a_chain_may_mix_sync_and_async_callbacks() -> None:
    history = [message(f"Alice {n}") for n in range(6)]
    chain = chain_callbacks(
        mask_sensitive(["alice"], mask="X"),
        summarize_head(lambda items: ", ".join(texts(items)), 3),
        limit_history(2),
    )
    assert texts(shown(chain, history, [message("Alice says")])) == [
        "[Summary of the earlier conversation]\nX 0, X 1, X 2, X 3",
        "X 5",
        "X says",
    ]


def test_each_callback_in_a_chain_gets_history_and_input_apart() -> None:
    seen = []

    def note(history: list[Item], new: list[Item]) -> list[Item]:
        seen.append((texts(history), texts(new)))
        return [*history, *new]

    shown(
        chain_callbacks(note, limit_history(1), note, limit_history(0), note),
        [message("a"), message("b")],
        [message("x"), message("y")],
    )
    assert seen == [(["a", "b"], ["x", "y"]), (["b"], ["x", "y"]), ([], ["x", "y"])]


@pytest.mark.parametrize("new", [[], [message("x")]], ids=len)
def test_a_chain_of_nothing_shows_everything(new: list[Item]) -> None:
    assert shown(chain_callbacks(), [message("a")], new) == [message("a"), *new]
    assert shown(chain_callbacks(limit_history(5)), [message("a")], new) == [message("a"), *new]
