"""Prompts from versioned files of a package: `prompts/VERSION/NAME.txt`, with a schema in `NAME.json`.

A prompt file has the instructions, a line `----- data -----`, and the template for the data.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from ..items import estimate_text_tokens

_BOUNDARY = "----- data -----\n"


@dataclass(frozen=True)
class PromptTemplate:
    """The contents of the files of one prompt."""

    instructions: str
    template: Template
    schema: Mapping[str, Any] | None
    """`None` if the prompt asks for plain text."""
    tokens: int
    """An estimate of the tokens of all of the above."""


@cache
def load_prompt(package: str, version: str, name: str) -> PromptTemplate:
    """Load a prompt of a package. The files are read once."""
    folder = files(package).joinpath("prompts", version)
    text = folder.joinpath(f"{name}.txt").read_text(encoding="utf-8")
    schema_file = folder.joinpath(f"{name}.json")
    schema = schema_file.read_text(encoding="utf-8") if schema_file.is_file() else ""
    instructions, template = text.split(_BOUNDARY)
    return PromptTemplate(
        instructions.strip(),
        Template(template.strip()),
        json.loads(schema) if schema else None,
        estimate_text_tokens(text) + estimate_text_tokens(schema),
    )
