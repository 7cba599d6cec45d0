"""Prompts come from the files of a package."""

import pytest

from recollect.models.prompts import load_prompt


def test_a_prompt_has_instructions_a_template_and_perhaps_a_schema() -> None:
    plain = load_prompt("recollect.strategies.summarizers", "v1", "summary")
    assert plain.schema is None
    assert plain.template.get_identifiers() == ["previous", "transcript", "length"]
    assert "----- data -----" not in plain.instructions + plain.template.template
    with_schema = load_prompt("recollect.memory.extraction", "v3", "extraction")
    assert with_schema.schema is not None
    assert with_schema.tokens > plain.tokens > 0


def test_an_unknown_prompt_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load_prompt("recollect.memory.extraction", "v0", "extraction")
