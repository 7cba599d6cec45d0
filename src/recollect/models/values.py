"""The request to a model and its response, in the same form for every provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..items import ModelUsage

MOST_TOKENS = 2**40
"""The largest count of tokens that is believed. A larger number in a response is an error of the endpoint."""


@dataclass(frozen=True)
class ResponseSchema:
    """A JSON schema that the response must match."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ModelRequest:
    """One request: the instructions, the data to work on, and the form of the response."""

    instructions: str
    text: str = field(repr=False)
    schema: ResponseSchema | None = None
    """`None` asks for plain text."""
    max_output_tokens: int | None = None
    """Sent only to providers that require a limit; `None` is the default of the client."""


@dataclass(frozen=True)
class ModelResponse:
    """The response of a model to one request."""

    text: str = field(repr=False)
    usage: ModelUsage
    is_complete: bool = True
    """False if the model stopped because the response reached its length limit."""
    is_refusal: bool = False


def usage_of(input_tokens: int, output_tokens: int) -> ModelUsage:
    """The usage of one request."""
    return ModelUsage(1, min(input_tokens, MOST_TOKENS), min(output_tokens, MOST_TOKENS))


def parse_count(value: object) -> int:
    """Parse a count of tokens from a response; 0 if the endpoint does not report one."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return min(max(value, 0), MOST_TOKENS)
