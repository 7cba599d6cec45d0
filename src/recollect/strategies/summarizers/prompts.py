"""Requests to a model: summarize a transcript, or shorten a summary.

The transcript is data. The instructions tell the model not to follow anything that is said in it.
"""

import hashlib
from collections.abc import Sequence

from ...models import ModelRequest
from ...models.prompts import load_prompt
from .transcript import Entry, render

PROMPT_VERSION = "v1"
"""The folder of the prompts in use."""
OVERHEAD = 450  # tokens of a request besides the transcript and the previous summary

_ROOM_FOR_THOUGHTS = 1_000  # tokens: models that think spend them from the limit of the response


def summary_request(part: Sequence[Entry], previous: str | None, max_tokens: int) -> ModelRequest:
    """The request for one summary of the previous summary and a part of the transcript."""
    known = "" if previous is None else _mark_data("The summary so far:", "summary", previous) + "\n\n"
    transcript = _mark_data("What was said then:", "transcript", render(part))
    return _request("summary", max_tokens, previous=known, transcript=transcript)


def shortening_request(summary: str, max_tokens: int) -> ModelRequest:
    """The request to shorten a summary."""
    return _request("shortening", max_tokens, summary=_mark_data("The summary:", "summary", summary))


def _request(name: str, max_tokens: int, **data: str) -> ModelRequest:
    prompt = load_prompt(__package__, PROMPT_VERSION, name)
    text = prompt.template.substitute(data, length=_length(max_tokens))
    return ModelRequest(prompt.instructions, text, max_output_tokens=2 * max_tokens + _ROOM_FOR_THOUGHTS)


def _mark_data(title: str, name: str, data: str) -> str:
    """Data between markers that cannot occur in it, because they contain its hash."""
    marker = f"{name}-{hashlib.sha256(data.encode()).hexdigest()[:12]}"
    return f"{title}\n<{marker}>\n{data.strip()}\n</{marker}>"


def _length(max_tokens: int) -> str:
    """The limit in words, which models keep better than tokens, and somewhat below the accepted length."""
    words, characters = max(1, max_tokens * 6 // 10), max(1, max_tokens * 8 // 10)
    return f"of at most {words} words (in Chinese or Japanese: at most {characters} characters)"
