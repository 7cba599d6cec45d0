"""A model that fails, in each way that it can: the turn is told as failed, and the next one works."""

from typing import Any

import httpx2
import pytest

from recollect.testing.providers import (
    ApiError,
    CloseAfter,
    CloseBefore,
    Filtered,
    Garble,
    Overloaded,
    ProviderServer,
    Refuse,
    Reply,
    TooLong,
    Truncate,
    WrongKey,
)

from .places import COMPLETIONS, Place, say, stream, texts_in

ATTEMPTS = 3  # the client tries again where that may help
SOON = 0.01
BEFORE = {
    "500": Refuse(500, retry_after=SOON),
    "429": Refuse(429, retry_after=SOON),
    "400": Refuse(400),
    "too long": TooLong(),
    "filtered": Filtered(),
    "wrong key": WrongKey(),
    "overloaded": Overloaded(),
    "closed before": CloseBefore(),
    "closed after": CloseAfter(),
    "garbage": Garble(),
    "html": Garble(content_type="text/html"),
}
LONG = Reply("A long answer that breaks off somewhere in the middle of what it says.", piece=4)


def last_turn(client: httpx2.Client, conversation: str) -> dict[str, Any]:
    turn: dict[str, Any] = client.get(f"/v1/conversations/{conversation}/usage").json()["turns"][-1]
    return turn


def check_it_goes_on(client: httpx2.Client, server: ProviderServer, user: str, conversation: str) -> None:
    """The turn is recorded as failed, with what the user said; the next one is answered and sees it."""
    turn = last_turn(client, conversation)
    assert (turn["status"], bool(turn["error_code"])) == ("failed", True)
    assert texts_in(client, conversation) == [("user", "Hello.")]
    server.reset()
    server.chat.reply("Here I am.")
    answer = say(client, user, "Are you there?", conversation_id=conversation)
    assert (answer.status_code, answer.json().get("text")) == (200, "Here I am."), answer.text
    seen = [each["content"] for each in server.requests(COMPLETIONS)[-1].body["messages"]]
    assert seen[-1] == "Are you there?"
    assert not [text for text in seen if "breaks off" in str(text)]
    assert last_turn(client, conversation)["status"] == "done"
    said = [text for _, text in texts_in(client, conversation)]
    assert said == ["Hello.", "Are you there?", "Here I am."]


@pytest.mark.parametrize("fault", BEFORE.values(), ids=BEFORE)
def test_a_model_that_fails_before_it_answers(
    place_on_sqlite: Place, server: ProviderServer, user: str, fault: Any
) -> None:
    with place_on_sqlite.client() as client:
        server.chat.reply("Let us begin.")
        conversation = say(client, user, "Begin.").json()["conversation_id"]
        for form in (say, stream):
            server.chat.reply_always("Never said.")
            server.fail_next(COMPLETIONS, fault, times=ATTEMPTS)
            told = form(client, user, "Hello.", conversation_id=conversation)
            _check_told(told)
            assert last_turn(client, conversation)["status"] == "failed"
            server.reset()
            server.chat.reply("Here I am.")
            answer = say(client, user, "Are you there?", conversation_id=conversation)
            assert (answer.status_code, answer.json().get("text")) == (200, "Here I am."), answer.text
            assert last_turn(client, conversation)["status"] == "done"


def _check_told(told: Any) -> None:
    if isinstance(told, httpx2.Response):
        assert (told.status_code, told.json()["code"]) == (502, "model_failed")
        assert "asked for" not in told.text, "what a provider says is not repeated"
        return
    kinds = [kind for kind, _ in told]
    assert (kinds[0], kinds[-1]) == ("turn.started", "turn.failed")
    assert told[-1][1]["code"] in ("model_unavailable", "model_refused", "model_failed")
    assert "asked for" not in told[-1][1]["detail"]


@pytest.mark.parametrize("how", ["error", "cut", "cut in the middle of an event"])
def test_a_model_that_fails_in_the_middle_of_its_answer(
    place: Place, server: ProviderServer, user: str, how: str
) -> None:
    if how == "error":
        reply = Reply(LONG.text, piece=4, error=ApiError(500, "This failure was asked for."))
        server.chat.reply_always(reply)
    else:
        server.chat.reply_always(LONG)
        server.fail_next(COMPLETIONS, Truncate(2000 if how == "cut" else 1990), times=ATTEMPTS)
    with place.client() as client:
        events = stream(client, user, "Hello.")
        _check_told(events)
        deltas = [data["text"] for kind, data in events if kind == "text.delta"]
        assert deltas
        assert LONG.text is not None
        assert LONG.text.startswith("".join(deltas))
        check_it_goes_on(client, server, user, events[0][1]["conversation_id"])


def test_an_answer_that_is_empty_is_a_failure(
    place_on_sqlite: Place, server: ProviderServer, user: str
) -> None:
    with place_on_sqlite.client() as client:
        server.chat.reply("")
        events = stream(client, user, "Hello.")
        assert events[-1][1]["code"] == "model_failed"
        check_it_goes_on(client, server, user, events[0][1]["conversation_id"])
