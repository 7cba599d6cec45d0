"""What was said in a run."""

from typing import Any

import pytest
from agents import ModelResponse, Usage
from agents.testing import assistant_message, function_call
from openai.types.responses import ResponseOutputRefusal

from recollect.integrations.openai_agents.run_texts import answer_text, user_text


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


ANSWER = {"role": "assistant", "content": "answer"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("hello", "hello"),
        ([], ""),
        (None, ""),
        ([ANSWER], ""),
        ([user("a"), ANSWER, user("b")], "b"),
        ([user("a"), ANSWER, user("b"), user("c")], "b\nc"),
        (
            [user("old"), ANSWER, user("ask"), {"type": "function_call", "name": "f", "arguments": "{}"}],
            "ask",
        ),
        ([user([{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "y"}])], "x"),
        ([{"role": "developer", "content": "d"}, user("b")], "b"),
    ],
)
def test_the_newest_words_of_the_user(given: Any, words: str) -> None:
    assert user_text(given) == words


def response(*output: Any) -> ModelResponse:
    return ModelResponse(output=list(output), usage=Usage(), response_id=None)


def test_the_answer_is_the_last_message() -> None:
    responses = [response(assistant_message("let me see")), response(assistant_message("three"))]
    assert answer_text("three", responses) == "three"


def test_the_answer_may_be_that_of_a_tool() -> None:
    assert answer_text(3, [response(function_call("add", {}, call_id="c"))]) == "3"


def test_a_refusal_is_an_answer_too() -> None:
    refusal = assistant_message("")
    refusal.content = [ResponseOutputRefusal(type="refusal", refusal="I will not.")]
    assert answer_text(None, [response(refusal)]) == "I will not."


def test_there_may_be_no_answer() -> None:
    assert answer_text(None, []) == ""
