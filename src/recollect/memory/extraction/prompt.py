"""The prompt of an extraction: instructions from versioned files, and quoted data within a token budget.

A conversation that is too long for one request is split into parts; every message is in one of them.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ...items import estimate_text_tokens
from ...models import ModelRequest, ResponseSchema
from ...models.prompts import PromptTemplate, load_prompt
from ..conversation import Message
from ..entry import Entry
from ..pipeline.stages import Excerpt
from .quotes import number_messages, quote_earlier, quote_known, quote_messages, tokens_of_message

PROMPT_VERSION = "v3"
"""The folder of the prompt in use."""

_NAME = "extraction"
_MIND = "mind"
_SHARE = 0.75  # of the room in a request; the rest is for the messages before the part
_MOST_PARTS = 8  # messages of a conversation that is longer than these parts are shortened
_MOST_EARLIER = 20  # messages before a part that may be quoted
_CHINESE = re.compile("[\u4e00-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
_LATIN = re.compile("[A-Za-z]+")
_IN_CHINESE = " 每条 text 都用中文写，以“用户”开头。"
_MOST_OF_KNOWN = 1500  # tokens of known entries
_MOST_OF_NOTES = 4000  # tokens of the entries that a model infers from
_SHARE_OF_KNOWN = 3  # known entries have at most one part in so many of the room


@dataclass(frozen=True)
class Application:
    """What an application wants to be noted, beyond the instructions that all have."""

    instructions: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds of its own, with their descriptions."""

    @property
    def text(self) -> str:
        """The part of the instructions that says so."""
        parts = [
            self.instructions.strip(),
            f"Also note: {'; '.join(self.include)}." if self.include else "",
            f"Never note: {'; '.join(self.exclude)}." if self.exclude else "",
            *(f'Further "kind": "{name}" for {meaning}.' for name, meaning in self.kinds.items()),
        ]
        said = "\n".join(filter(None, parts))
        return f"\n\nWishes of this application:\n{said}" if said else ""

    @property
    def tokens(self) -> int:
        """An estimate of its tokens."""
        return estimate_text_tokens(self.text)

    def schema(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema of a response, with the kinds of the application."""
        if not self.kinds:
            return given
        schema = copy.deepcopy(dict(given))
        schema["properties"]["memories"]["items"]["properties"]["kind"]["enum"] += list(self.kinds)
        return schema


@dataclass(frozen=True)
class ExtractionPrompt:
    """A request, and counts of what was shortened or left out to make it fit."""

    request: ModelRequest
    counts: Mapping[str, int] = field(default_factory=dict)


def extraction_template() -> PromptTemplate:
    """The prompt and the schema of the response."""
    return load_prompt(__package__, PROMPT_VERSION, _NAME)


def extraction_prompt(
    excerpt: Excerpt, budget: int, application: Application | None = None
) -> ExtractionPrompt:
    """Ask what the messages say about the user, and which known entries that replaces.

    The part that is the same for all requests comes first: providers cache it.
    """
    template = extraction_template()
    wishes = application or Application()
    room = budget - template.tokens - wishes.tokens
    known = quote_known(excerpt.known, min(_MOST_OF_KNOWN, room // _SHARE_OF_KNOWN))
    messages = quote_messages(excerpt, number_messages(excerpt), room - known.tokens)
    earlier = quote_earlier(excerpt, room - known.tokens - messages.tokens)
    text = template.template.substitute(
        known=known.text, earlier=earlier.text, messages=messages.text, language=_language_of(excerpt)
    )
    schema = None if template.schema is None else ResponseSchema(_NAME, wishes.schema(template.schema))
    counts = {
        "messages_shortened": messages.shortened,
        "messages_left_out": messages.left_out,
        "known_left_out": known.left_out,
    }
    return ExtractionPrompt(ModelRequest(template.instructions + wishes.text, text, schema), counts)


def inference_prompt(excerpt: Excerpt, known: Sequence[Entry], budget: int) -> ExtractionPrompt:
    """Ask what known entries imply about the user that none of them says."""
    template = load_prompt(__package__, PROMPT_VERSION, _MIND)
    room = budget - template.tokens
    notes = quote_known(known, min(_MOST_OF_NOTES, 2 * room // _SHARE_OF_KNOWN))
    messages = quote_messages(excerpt, number_messages(excerpt), min(_MOST_OF_NOTES, room - notes.tokens))
    text = template.template.substitute(
        known=notes.text, messages=messages.text, language=_language_of(excerpt)
    )
    schema = None if template.schema is None else ResponseSchema(_MIND, template.schema)
    return ExtractionPrompt(
        ModelRequest(template.instructions, text, schema), {"known_left_out": notes.left_out}
    )


def _language_of(excerpt: Excerpt) -> str:
    """A reminder to write in the language of the user: small models answer in that of the instructions."""
    said = " ".join(message.content[:500] for message in excerpt.messages if excerpt.is_users(message))
    is_chinese = len(_CHINESE.findall(said)) > len(_LATIN.findall(said)) and not _KANA.search(said)
    return _IN_CHINESE if is_chinese else ""


# --- parts of a long conversation ---


def split_excerpt(excerpt: Excerpt, budget: int) -> list[Excerpt]:
    """Split an excerpt into as few parts as fit into requests of `budget` tokens.

    Each part comes with the messages before it. Parts without a message of the user are left out.
    """
    sizes = [tokens_of_message(excerpt, message) for message in excerpt.messages]
    room = max(_SHARE * (budget - extraction_template().tokens), sum(sizes) / _MOST_PARTS)
    starts = [*_starts(sizes, room), len(sizes)]
    parts = [_part(excerpt, *edges) for edges in pairwise(starts)]
    return [part for part in parts if has_user_message(part)]


def has_user_message(excerpt: Excerpt) -> bool:
    """Whether any message is the user's."""
    return any(excerpt.is_users(message) for message in excerpt.messages)


def _starts(sizes: Sequence[int], room: float) -> list[int]:
    """The index of the first message of each part."""
    starts, left = [0], room
    for index, size in enumerate(sizes):
        if size > left and index > starts[-1]:
            starts.append(index)
            left = room
        left -= size
    return starts


def _part(excerpt: Excerpt, start: int, end: int) -> Excerpt:
    before: tuple[Message, ...] = (*excerpt.before, *excerpt.messages[max(0, start - _MOST_EARLIER) : start])
    return replace(excerpt, messages=excerpt.messages[start:end], before=before)
