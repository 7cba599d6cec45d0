"""The default model of Anthropic: one name for all, and one that is not retired."""

import inspect
from typing import get_args

import pytest
from anthropic.resources.messages.messages import DEPRECATED_MODELS
from anthropic.types import Model

from recollect import AnthropicExtractor, AnthropicSummarizer
from recollect.extras import DEFAULT_ANTHROPIC_MODEL


def test_the_default_is_a_model_that_the_package_knows_and_does_not_warn_of() -> None:
    known = {name for choice in get_args(Model) for name in get_args(choice)}
    assert DEFAULT_ANTHROPIC_MODEL in known
    assert DEFAULT_ANTHROPIC_MODEL not in DEPRECATED_MODELS


@pytest.mark.parametrize("kind", [AnthropicExtractor, AnthropicSummarizer])
def test_there_is_one_default(kind: type) -> None:
    assert inspect.signature(kind).parameters["model"].default == DEFAULT_ANTHROPIC_MODEL
