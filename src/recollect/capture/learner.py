"""Tells sessions in which a coding agent was the model of our own learner: nothing is learned from those."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ..memory.extraction.prompt import PROMPT_VERSION
from ..models.prompts import load_prompt
from .transcript import texts_in

_START = 60  # characters of our prompt


def is_of_learner(items: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the first message of the user has the prompt of the learner in it."""
    first = next((each for each in items if each.get("role") == "user"), None)
    return first is not None and any(_prompt() in text for text in texts_in(first.get("content")))


@cache
def _prompt() -> str:
    package = __package__.rpartition(".")[0]
    return load_prompt(f"{package}.memory.extraction", PROMPT_VERSION, "extraction").instructions[:_START]
