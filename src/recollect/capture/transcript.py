"""A transcript of a coding agent as steps: what the readers of all programs yield. Pure functions."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ..items import Item

_MOST_SAID = 64_000  # characters of a message
# What a program, a hook or a command adds to the words of the user. It always stands in tags of its own.
_ADDED = re.compile(
    r"<(?P<tag>system-reminder|hook_context|remembered-data|session_context|environment_context"
    r"|user_instructions|turn_aborted|skill|command-(?:name|message|args|stdout|stderr)|local-command-\w+"
    r"|bash-(?:input|stdout|stderr)|task-notification|ide_\w+|user-prompt-submit-hook)\b[^>]*>"
    r".*?(?:</(?P=tag)>|\Z)",
    re.DOTALL,
)
_NOT_TYPED = re.compile(r"\s*(?:\[Request interrupted|Caveat: The messages below|# AGENTS\.md instructions)")


@dataclass(frozen=True)
class Said:
    """Words of the user or of the agent."""

    role: Literal["user", "assistant"]
    text: str = field(repr=False)
    message_id: str


@dataclass(frozen=True)
class Run:
    """A shell command that has ended."""

    command: str = field(repr=False)
    succeeded: bool
    purpose: str = field(default="", repr=False)
    """What the agent said it is for."""


@dataclass(frozen=True)
class Step:
    """What one record of a transcript adds."""

    time: str | None = None
    items: tuple[Item, ...] = field(default=(), repr=False)
    said: Said | None = None
    usage: Mapping[str, int] | None = None
    """The tokens of one call of the model, as the rows of sessions name them."""
    run: Run | None = None
    touched: tuple[str, ...] = field(default=(), repr=False)
    """Files that were written."""
    plan: tuple[str, ...] = field(default=(), repr=False)
    """The open points of the list of tasks, if the record has a new one."""
    is_side: bool = False
    """Whether a subagent did it."""


@dataclass
class About:
    """What a transcript says about itself. It is filled while the records are read."""

    program: str
    session_id: str | None = None
    cwd: str | None = None
    remote: str | None = None
    branch: str | None = None
    version: str | None = None
    parent: str | None = None
    """The session whose subagent this is."""
    models: list[str] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)
    """Records of types that the reader does not know, by type."""

    def note(self, **given: Any) -> None:
        """Fill fields that are not known yet with texts."""
        for name, value in given.items():
            if getattr(self, name) is None and isinstance(value, str) and value:
                setattr(self, name, value)

    def note_model(self, model: Any) -> None:
        """Add the name of a model."""
        if isinstance(model, str) and model and model not in self.models and not model.startswith("<"):
            self.models.append(model)

    def note_unknown(self, kind: Any) -> None:
        """Count a record of a type that is not known."""
        name = kind[:60] if isinstance(kind, str) else type(kind).__name__
        self.unknown[name] = self.unknown.get(name, 0) + 1


class Reader(Protocol):
    """Reads the records of one transcript in their order."""

    about: About

    def read(self, record: Mapping[str, Any]) -> Iterable[Step]:
        """The steps of a record. Raises a `TypeError`, `ValueError` or `KeyError` if it is malformed."""
        ...


def own_text(text: str) -> str:
    """What the user typed: without what the program, a hook or memory added to it."""
    text = _ADDED.sub("", text)
    if _NOT_TYPED.match(text):
        return ""
    return text.strip()[:_MOST_SAID]


def texts_in(blocks: Any) -> Iterator[str]:
    """The texts of a message: of a text, or of a list of content blocks."""
    if isinstance(blocks, str):
        yield blocks
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            yield block["text"]


def usage_row(**counts: Any) -> dict[str, int]:
    """The tokens of one call of the model; what is missing is 0."""
    whole = {name: value for name, value in counts.items() if isinstance(value, int) and value >= 0}
    row = {"input_tokens": 0, "output_tokens": 0, **whole, "requests": 1}
    return {**row, "total_tokens": row["input_tokens"] + row["output_tokens"]}
