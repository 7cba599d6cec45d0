"""Histories as agents write them, for the tests of every layer: well-formed, broken, and odd.

`histories()` is what a model accepts, `broken_histories()` what it refuses, `odd_items()` any JSON object.
"""

import functools
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Item = dict[str, Any]

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

PLACEHOLDER_ID = "__fake_id__"
NOBODY = "nobody_"  # how the ids of injected orphans start
PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
WORDS = [
    "",
    "hi",
    "What is the weather in Paris?",
    "北京今天天气怎么样?",
    "東京の天気は?",
    "안녕하세요, 서울!",
    "👍🏽 gut 👨‍👩‍👧",
    "two\nlines\t\u2028\x00",
]


@functools.cache
def texts() -> SearchStrategy[str]:
    return st.sampled_from(WORDS) | st.text(max_size=20)


def picture() -> Item:
    return {"type": "input_image", "image_url": PICTURE, "detail": "auto"}


# Messages


@functools.cache
def user_messages() -> SearchStrategy[Item]:
    """With and without a `type`; the content a string or a list of parts."""
    part = st.one_of(
        st.builds(lambda text: {"type": "input_text", "text": text}, texts()),
        st.builds(picture),
        st.builds(lambda: {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
    )
    return _messages(["user"], texts() | st.lists(part, min_size=1, max_size=3))


@functools.cache
def system_messages() -> SearchStrategy[Item]:
    return _messages(["system", "developer"], texts())


@functools.cache
def assistant_messages() -> SearchStrategy[Item]:
    part = st.one_of(
        st.builds(lambda text: {"type": "output_text", "text": text, "annotations": []}, texts()),
        st.builds(lambda text: {"type": "refusal", "refusal": text}, texts()),
    )
    ids = st.sampled_from(["msg", PLACEHOLDER_ID])
    return _messages(["assistant"], texts() | st.lists(part, min_size=1, max_size=2), id=ids)


def _messages(
    roles: list[str], content: SearchStrategy[Any], **optional: SearchStrategy[Any]
) -> SearchStrategy[Item]:
    fields = {"role": st.sampled_from(roles), "content": content}
    return st.fixed_dictionaries(fields, optional={"type": st.just("message"), **optional})


# What a model makes besides messages


@functools.cache
def thoughts() -> SearchStrategy[list[Item]]:
    """No reasoning item, one, or several in a row."""
    summary = texts().map(lambda text: [{"type": "summary_text", "text": text}])
    thought = st.fixed_dictionaries(
        {"type": st.just("reasoning"), "id": st.just("rs"), "summary": st.builds(list) | summary},
        optional={"encrypted_content": st.just("gAAAAA")},
    )
    return st.lists(thought, max_size=2)


@functools.cache
def hosted_calls() -> SearchStrategy[Item]:
    """Calls of tools that the provider runs itself: they have no output item."""
    return st.one_of(
        st.builds(lambda q: {"type": "web_search_call", "id": "ws", "action": {"query": q}}, texts()),
        st.builds(
            lambda q: {"type": "file_search_call", "id": "fs", "queries": [q], "results": None}, texts()
        ),
        st.builds(
            lambda a: {"type": "mcp_call", "id": "mcp", "name": "ask", "arguments": a, "output": "42"},
            texts(),
        ),
        st.builds(lambda c: {"type": "code_interpreter_call", "id": "ci", "code": c, "outputs": []}, texts()),
    )


@functools.cache
def compactions() -> SearchStrategy[Item]:
    return st.builds(lambda: {"type": "compaction", "id": "cmp", "encrypted_content": "gAAAAA"})


# Calls and their outputs

CALL_KINDS = (
    "function_call",
    "custom_tool_call",
    "computer_call",
    "shell_call",
    "local_shell_call",
    "apply_patch_call",
    "tool_search_call",
    "program",
    "mcp_approval_request",
)


def call_and_output(kind: str, call_id: str, words: str = "") -> tuple[Item, Item]:
    """A call of this kind and the output that answers it, both about these words."""
    call, output = _ABOUT[kind](words)
    if kind == "mcp_approval_request":
        return {"type": kind, "id": call_id, **call}, {**output, "approval_request_id": call_id}
    call = {"type": kind, "call_id": call_id, **call}
    if kind == "local_shell_call":  # the output names the call in its own id
        return {**call, "id": f"ls_{call_id}"}, {**output, "id": call_id}
    return call, {**output, "call_id": call_id}


_ABOUT = {
    "function_call": lambda words: (
        {"name": "get_weather", "arguments": json.dumps({"city": words}, ensure_ascii=False)},
        {"type": "function_call_output", "output": words},
    ),
    "custom_tool_call": lambda words: (
        {"name": "sql", "input": words},
        {"type": "custom_tool_call_output", "output": words},
    ),
    "computer_call": lambda words: (
        {"id": f"cu_{words}", "action": {"type": "type", "text": words}, "pending_safety_checks": []},
        {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": PICTURE}},
    ),
    "shell_call": lambda words: (
        {"action": {"commands": [words]}},
        {
            "type": "shell_call_output",
            "output": [{"stdout": words, "stderr": "", "outcome": {"type": "exit"}}],
        },
    ),
    "local_shell_call": lambda words: (
        {"action": {"type": "exec", "command": ["echo", words], "env": {}}, "status": "completed"},
        {"type": "local_shell_call_output", "output": words},
    ),
    "apply_patch_call": lambda words: (
        {"operation": {"type": "update_file", "path": "a.py", "diff": words}, "status": "completed"},
        {"type": "apply_patch_call_output", "status": "completed", "output": words},
    ),
    "tool_search_call": lambda words: (
        {"arguments": {"query": words}, "execution": "client"},
        {"type": "tool_search_output", "tools": [{"type": "function", "name": "t", "description": words}]},
    ),
    "program": lambda words: (
        {"code": words, "fingerprint": "f"},
        {"type": "program_output", "result": words, "status": "completed"},
    ),
    "mcp_approval_request": lambda words: (
        {"name": "delete", "server_label": "files", "arguments": words},
        {"type": "mcp_approval_response", "approve": True},
    ),
}


def handoff(call_id: str) -> list[Item]:
    """One agent hands over to another: a function call whose output names the new agent."""
    return [
        {"type": "function_call", "call_id": call_id, "name": "transfer_to_billing", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": '{"assistant": "billing"}'},
    ]


@st.composite
def _tool_steps(draw: DrawFn, ids: Iterator[int]) -> list[Item]:
    """Parallel calls, perhaps with thoughts before each, then their outputs in any order."""
    items, outputs = [], []
    for kind in draw(st.lists(st.sampled_from(CALL_KINDS), min_size=1, max_size=3)):
        call, output = call_and_output(kind, f"call_{next(ids)}", draw(texts()))
        if kind == "function_call" and draw(st.booleans()):  # an output may be a list of parts, too
            output["output"] = [{"type": "input_text", "text": output["output"]}, picture()]
        items += [*draw(thoughts()), call]
        outputs.append(output)
    return items + draw(st.permutations(outputs))


# Histories


@st.composite
def histories(draw: DrawFn, *, max_turns: int = 4, open_end: bool | None = None) -> list[Item]:
    """What a model accepts. An open end, a call in the newest turn that awaits its output, at random."""
    items = draw(st.lists(system_messages(), max_size=2))
    turns = draw(st.integers(1 if open_end else 0, max_turns))
    if open_end is None:
        open_end = draw(st.booleans())
    call_ids_start_again = draw(st.booleans())
    ids = itertools.count()
    for turn in range(turns):
        ids = itertools.count() if call_ids_start_again else ids
        items += draw(_turns(ids, open_end=open_end and turn == turns - 1))
    return _with_ids_of_their_own(items)


@st.composite
def _turns(draw: DrawFn, ids: Iterator[int], *, open_end: bool) -> list[Item]:
    items = [draw(user_messages())]
    for step in draw(st.lists(st.sampled_from(["tools", "hosted", "handoff", "compact", "say"]), max_size=3)):
        if step == "tools":
            items += draw(_tool_steps(ids))
        elif step == "hosted":
            items += [*draw(thoughts()), draw(hosted_calls())]
        elif step == "handoff":
            items += [*draw(thoughts()), *handoff(f"call_{next(ids)}")]
        elif step == "compact":
            items.append(draw(compactions()))
        else:
            items += [*draw(thoughts()), draw(assistant_messages())]
    return items + draw(_tool_steps(ids))[:-1] if open_end else items


def _with_ids_of_their_own(items: list[Item]) -> list[Item]:
    """Number the ids of what the model made, where they are not the ids of calls."""
    made = ("rs", "msg", "ws", "fs", "mcp", "ci", "cmp")
    return [
        {**item, "id": f"{item['id']}_{index}"} if item.get("id") in made else item
        for index, item in enumerate(items)
    ]


# Broken histories


@st.composite
def broken_histories(draw: DrawFn) -> list[Item]:
    """A history that lost some of its items, with one to three orphans that `is_injected` tells apart."""
    lost = draw(st.sets(st.integers(0, 30), max_size=2))
    items = [item for index, item in enumerate(draw(histories())) if index not in lost]
    for number in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(["output", "call", "thought"]))
        call, output = call_and_output(draw(st.sampled_from(CALL_KINDS)), f"{NOBODY}{number}")
        users = [index for index, item in enumerate(items) if item.get("role") == "user"]
        if what == "call" and users:  # before the newest turn, where no call may stay open
            items.insert(draw(st.integers(0, users[-1])), call)
        elif what == "thought":
            where = draw(st.sampled_from([*users, len(items)]))
            items.insert(where, {"type": "reasoning", "id": f"{NOBODY}{number}", "summary": []})
        else:
            items.insert(draw(st.integers(0, len(items))), output)
    return items


def is_injected(item: Item) -> bool:
    """Whether `broken_histories` put this orphan in."""
    ids = (item.get(field) for field in ("id", "call_id", "approval_request_id"))
    return any(isinstance(given, str) and given.removeprefix("ls_").startswith(NOBODY) for given in ids)


# Odd items

_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_FIELDS = ("type", "role", "id", "call_id", "content", "output", "arguments", "summary", "name", "naïve", "")
_KINDS = ("message", "reasoning", "item_reference", "compaction", "from_the_future", *CALL_KINDS)


@functools.cache
def odd_texts() -> SearchStrategy[str]:
    """Any text, with lone surrogates; never the two halves of a pair side by side, which JSON would join."""
    characters = st.characters() | st.sampled_from("\ud800\udfff\x00\u2028😀")
    return st.text(characters, max_size=10).filter(lambda text: not _SPLIT_PAIR.search(text))


@functools.cache
def odd_values() -> SearchStrategy[Any]:
    """Any JSON value, with integers beyond 64 bits, the extremes of floats, and up to 60 levels more."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**200), 2**200),
        st.sampled_from([2**63, 2**64, 2**64 + 1, -(2**63) - 1, -0.0, 1.0, 5e-324, 1.7976931348623157e308]),
        st.floats(allow_nan=False, allow_infinity=False),
        odd_texts(),
    )
    values = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_texts(), inner, max_size=3),
        max_leaves=8,
    )
    return st.builds(nested, values, st.integers(0, 60) | st.just(0))


def nested(value: Any, levels: int) -> Any:
    """The value inside so many levels of lists and objects."""
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


@functools.cache
def odd_items() -> SearchStrategy[Item]:
    """Any JSON object: unknown types and fields, and known fields that hold what they should not."""
    keys = st.sampled_from(_FIELDS) | odd_texts()
    kinds = st.sampled_from(_KINDS) | odd_values()
    fields = st.dictionaries(keys, odd_values(), max_size=4)
    return fields | st.builds(lambda kind, rest: {**rest, "type": kind}, kinds, fields)
