"""Changes of JSON texts with comments and trailing commas, which leave the rest of the text as it is."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<value>"(?:[^"\\]|\\.)*"|[^\s{}\[\]:,"/]+)|(?P<mark>[{}\[\]:,])""",
    re.DOTALL,
)
_DEEPEST = 100


@dataclass
class Member:
    """A member of an object: its name, and where it stands in the text."""

    name: str
    start: int
    value: "Node"


@dataclass
class Node:
    """A value and where it stands in the text."""

    start: int
    end: int
    value: Any
    members: list[Member] = field(default_factory=list)
    """The members of an object."""

    def member(self, name: str) -> Member | None:
        """The last member of this name, which counts."""
        return next((each for each in reversed(self.members) if each.name == name), None)


def parse(text: str) -> Node:
    """The value of a text. Raises a `ValueError` with the line of a fault."""
    return _Parser(text).parse()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    def parse(self) -> Node:
        node = self._value(0)
        if self._peek() is not None:
            raise self._fault()
        return node

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, text: str | None = None) -> _Token:
        token = self._peek()
        if token is None or (text is not None and token.text != text):
            raise self._fault()
        self._next += 1
        return token

    def _fault(self) -> ValueError:
        token = self._peek()
        return ValueError(f"line {_line(self._text, len(self._text) if token is None else token.start)}")

    def _value(self, depth: int) -> Node:
        token = self._take()
        if depth > _DEEPEST:
            raise self._fault()
        if token.text == "{":
            return self._object(token, depth)
        if token.text == "[":
            return self._list(token, depth)
        return Node(token.start, token.end, self._scalar(token))

    def _scalar(self, token: _Token) -> Any:
        try:
            return json.loads(token.text, strict=False)
        except ValueError:
            raise ValueError(f"line {_line(self._text, token.start)}") from None

    def _object(self, opened: _Token, depth: int) -> Node:
        node = Node(opened.start, opened.end, {})
        while not self._ends("}", bool(node.members)):
            name = self._take()
            if not name.text.startswith('"'):
                raise ValueError(f"line {_line(self._text, name.start)}")
            self._take(":")
            member = Member(self._scalar(name), name.start, self._value(depth + 1))
            node.members.append(member)
            node.value[member.name] = member.value.value
        node.end = self._take("}").end
        return node

    def _list(self, opened: _Token, depth: int) -> Node:
        node = Node(opened.start, opened.end, [])
        while not self._ends("]", bool(node.value)):
            node.value.append(self._value(depth + 1).value)
        node.end = self._take("]").end
        return node

    def _ends(self, mark: str, needs_comma: bool) -> bool:
        """Whether the list or object ends here. A comma between two elements is read."""
        token = self._peek()
        if needs_comma and token is not None and token.text == ",":
            self._next += 1
            token = self._peek()
        elif needs_comma and (token is None or token.text != mark):
            raise self._fault()
        return token is not None and token.text == mark


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"line {_line(text, place)}")
        if found.lastgroup != "space":
            yield _Token(str(found.lastgroup), found.group(), place)
        place = found.end()


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


# --- changes ---


def set_member(text: str, holder: Node, name: str, value: Any, indent: str) -> str:
    """The text with a member of an object set to a value, as the last member if it is new."""
    known = holder.member(name)
    newline = "\r\n" if "\r\n" in text else "\n"
    inner = _indent_of(text, holder, indent)
    written = json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline + inner)
    if known is not None:
        return text[: known.value.start] + written + text[known.value.end :]
    member = f"{json.dumps(name)}: {written}"
    if not holder.members:
        outer = inner[: -len(indent)] if indent and inner.endswith(indent) else ""
        return text[: holder.start + 1] + newline + inner + member + newline + outer + text[holder.end - 1 :]
    end = holder.members[-1].value.end
    gap = text[end : holder.end - 1]  # a trailing comma and comments: they stay with the member before
    has_comma = any(token.text == "," for token in _tokens(gap))
    commas = ("", ",") if has_comma else (",", "")
    kept = gap.rstrip()
    added = f"{commas[0]}{kept}{newline}{inner}{member}{commas[1]}"
    return text[:end] + added + gap[len(kept) :] + text[holder.end - 1 :]


def remove_member(text: str, holder: Node, name: str) -> str:
    """The text without a member of an object, and without the comma that it needs no longer."""
    places = [place for place, each in enumerate(holder.members) if each.name == name]
    place, members = places[-1], holder.members
    start, end = members[place].start, members[place].value.end
    if place + 1 < len(members):
        between = text[end : members[place + 1].start]
        return text[:start] + text[end + between.index(",") + 1 :].lstrip(" \t\r\n")
    if place == 0:
        return text[: holder.start + 1] + text[end:].lstrip(" \t\r\n,")
    before = members[place - 1].value.end
    between = text[before:start]
    comma = before + between.index(",")
    return text[:comma] + text[comma + 1 : start].rstrip(" \t\r\n") + text[end:]


def _indent_of(text: str, holder: Node, unit: str) -> str:
    """The indent of the members of an object."""
    place = holder.members[0].start if holder.members else holder.start
    before = text[text.rfind("\n", 0, place) + 1 : place]
    blank = before[: len(before) - len(before.lstrip(" \t"))]
    return blank if holder.members and not before.strip(" \t") else blank + unit
