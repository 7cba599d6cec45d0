"""Messages of LangChain as items, and back, exactly. Pure functions.

What an item has no place for is in its field `langchain`: the id, the metadata and so on. An answer with tool
calls becomes several items. Those after the first one say that they continue it.

Items that did not come from LangChain become messages too. Consecutive items of the model are one message. It
carries its items, so that they are stored again as they were.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from pydantic.fields import FieldInfo

from ...errors import InvalidTypeError
from ...items import Item
from ...items.shapes import is_from_model, is_reasoning, role_of, type_of
from .parts import to_blocks, to_parts

_FIELD = "langchain"
ITEMS = "recollect_items"
"""The key in `additional_kwargs` of a message that did not come from LangChain: the items it was made of."""

_IN_ITEM = ("content", "type", "tool_calls", "tool_call_id", "role")
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "function": "tool"}


# --- messages to items ---


def messages_to_items(messages: Sequence[BaseMessage]) -> list[Item]:
    """The items of messages. Raises `InvalidTypeError` for something that is no message to store."""
    return [item for message in messages for item in _items_of(message)]


def _items_of(message: BaseMessage) -> list[Item]:
    if isinstance(message, RemoveMessage) or not isinstance(message, BaseMessage):
        raise InvalidTypeError(f"a {type(message).__name__} is no message that can be stored")
    carried = message.additional_kwargs.get(ITEMS)
    if isinstance(carried, list) and _from_foreign(carried) == message:
        return [dict(item) for item in carried]
    if isinstance(message, ToolMessage):
        return [_tool_item(message)]
    if isinstance(message, AIMessage):
        return _answer_items(message)
    text_type = "input_text"
    content, odd = to_parts(message.content, text_type)
    role = message.role if isinstance(message, ChatMessage) else _ROLES.get(message.type, "user")
    return [{"type": "message", "role": role, "content": content, _FIELD: _rest_of(message, odd)}]


def _rest_of(message: BaseMessage, odd: dict[str, str]) -> dict[str, Any]:
    """What the item has no place for, without what has its default."""
    fields = {
        name: getattr(message, name)
        for name, field in type(message).model_fields.items()
        if name not in _IN_ITEM and not _is_default(getattr(message, name), field)
    }
    rest: dict[str, Any] = {"type": message.type}
    return rest | ({"data": fields} if fields else {}) | ({"odd": odd} if odd else {})


def _is_default(value: object, field: FieldInfo) -> bool:
    default = field.get_default(call_default_factory=True, validated_data={})
    return type(value) is type(default) and value == default


def _tool_item(message: ToolMessage) -> Item:
    output, odd = to_parts(message.content, "input_text")
    return {
        "type": "function_call_output",
        "call_id": message.tool_call_id,
        "output": output,
        _FIELD: _rest_of(message, odd),
    }


def _answer_items(message: AIMessage) -> list[Item]:
    """Reasoning first, then the text, then the tool calls."""
    blocks: list[Any] = message.content if isinstance(message.content, list) else []
    thoughts = [number for number, block in enumerate(blocks) if _is_thought(block)]
    shown: Any = [block for block in blocks if not _is_thought(block)] if blocks else message.content
    content, odd = to_parts(shown, "output_text")
    rest = _rest_of(message, odd) | ({"thoughts": thoughts} if thoughts else {})
    items: list[Item] = [dict(blocks[number]) for number in thoughts]
    if content or not (thoughts or message.tool_calls):
        items.append({"type": "message", "role": "assistant", "content": content})
    elif isinstance(content, list):
        rest["is_list"] = True
    items += [_call_item(call) for call in message.tool_calls]
    for item in items[1:]:
        item[_FIELD] = {**item.get(_FIELD, {}), "continues": True}
    items[0][_FIELD] = {**items[0].get(_FIELD, {}), **rest}
    return items


def _is_thought(block: Any) -> bool:
    return isinstance(block, dict) and is_reasoning(block) and _FIELD not in block


def _call_item(call: Any) -> Item:
    others = {name: value for name, value in call.items() if name not in ("name", "args", "id", "type")}
    item: Item = {
        "type": "function_call",
        "call_id": call["id"] or "",
        "name": call["name"],
        "arguments": json.dumps(call["args"]),
    }
    rest = ({"call": others} if others else {}) | ({"no_id": True} if call["id"] is None else {})
    return item | ({_FIELD: rest} if rest else {})


# --- items to messages ---


def items_to_messages(items: Sequence[Item]) -> list[BaseMessage]:
    """The messages of items."""
    return [_message_of(group) for group in _groups(items)]


def _groups(items: Sequence[Item]) -> Iterator[list[Item]]:
    """The items of each message."""
    numbered, number, was_ours = [], 0, False
    for item in items:
        rest = item.get(_FIELD) or {}
        continues = rest.get("continues") and was_ours
        is_foreign = "type" not in rest and not continues
        if not continues:
            number += 1
        was_ours = not is_foreign
        # Consecutive items of the model, which did not come from LangChain, have one key.
        numbered.append((("model",) if is_foreign and is_from_model(item) else (number,), item))
    for _, group in groupby(numbered, key=lambda pair: pair[0]):
        yield [item for _, item in group]


def _message_of(items: list[Item]) -> BaseMessage:
    rest = items[0].get(_FIELD) or {}
    return _from_ours(items, rest) if "type" in rest else _from_foreign(items)


def _from_ours(items: list[Item], rest: dict[str, Any]) -> BaseMessage:
    kind = rest["type"]
    data = {**rest.get("data", {}), "content": _content_of(items, rest)}
    if kind == "tool":
        data["tool_call_id"] = items[0]["call_id"]
    elif kind in ("ai", "AIMessageChunk"):
        data["tool_calls"] = [_call_of(item) for item in items if type_of(item) == "function_call"]
    elif kind in ("chat", "ChatMessageChunk"):
        data["role"] = items[0]["role"]
    (message,) = messages_from_dict([{"type": kind, "data": data}])
    return message


def _content_of(items: list[Item], rest: dict[str, Any]) -> Any:
    shown = next((item for item in items if type_of(item) in ("message", "function_call_output")), None)
    missing: Any = [] if rest.get("is_list") or rest.get("thoughts") else ""
    found = missing if shown is None else shown.get("content", shown.get("output"))
    blocks = to_blocks(found, rest.get("odd", {}))
    thoughts = [item for item in items if is_reasoning(item)]
    for number, thought in zip(rest.get("thoughts", []), thoughts, strict=False):
        blocks = [*blocks[:number], _without_field(thought), *blocks[number:]]
    return blocks


def _without_field(item: Item) -> Item:
    return {name: value for name, value in item.items() if name != _FIELD}


def _call_of(item: Item) -> dict[str, Any]:
    rest = item.get(_FIELD) or {}
    call_id = None if rest.get("no_id") else item["call_id"]
    call = {"name": item["name"], "args": json.loads(item["arguments"]), "id": call_id, "type": "tool_call"}
    return {**call, **rest.get("call", {})}


# --- items that did not come from LangChain ---


def _from_foreign(items: list[Item]) -> BaseMessage:
    carried = {ITEMS: items}
    item = items[0]
    if is_from_model(item):
        return _foreign_answer(items)
    if type_of(item) == "message":
        content = to_blocks(item.get("content", ""), {})
        role = role_of(item)
        if role == "user":
            return HumanMessage(content=_usable(content), additional_kwargs=carried)
        if role in ("system", "developer"):
            return SystemMessage(content=_usable(content), additional_kwargs=carried)
        return ChatMessage(content=_usable(content), role=str(role), additional_kwargs=carried)
    output = to_blocks(item.get("output", ""), {})
    call_id = str(item.get("call_id", ""))
    return ToolMessage(content=_usable(output), tool_call_id=call_id, additional_kwargs=carried)


def _foreign_answer(items: list[Item]) -> AIMessage:
    contents = [to_blocks(item.get("content", ""), {}) for item in items if type_of(item) == "message"]
    calls = [call for item in items if (call := _foreign_call(item)) is not None]
    texts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    content = contents[0] if len(contents) == 1 else texts
    return AIMessage(content=_usable(content or ""), tool_calls=calls, additional_kwargs={ITEMS: items})


def _foreign_call(item: Item) -> Any:
    if type_of(item) != "function_call":
        return None
    try:
        arguments = json.loads(item.get("arguments") or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return None
    return {
        "name": str(item.get("name", "")),
        "args": arguments,
        "id": str(item.get("call_id", "")),
        "type": "tool_call",
    }


def _usable(content: Any) -> Any:
    """A content that LangChain accepts: a text, or a list of texts and objects."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return [part if isinstance(part, str | dict) else json.dumps(part) for part in content]
    return json.dumps(content)
