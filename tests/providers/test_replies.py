"""What a test scripts comes out of every API, whole and streamed, to clients that await or not."""

from typing import Any

import anthropic
import openai
import pytest

from recollect.testing.providers import ApiError, ProviderServer, Reply, ToolCall, Usage

from .asking import APIS, PATHS, WAYS, Asked, ask

STOPS = {
    "responses": {"end": "completed", "length": "max_output_tokens", "content_filter": "content_filter"},
    "chat": {"end": "stop", "length": "length", "content_filter": "content_filter"},
    "messages": {"end": "end_turn", "length": "max_tokens", "content_filter": "refusal"},
}
CALLED = {"responses": "completed", "chat": "tool_calls", "messages": "tool_use"}
REFUSALS = (openai.APIStatusError, anthropic.APIStatusError)

every_api = pytest.mark.parametrize("api", APIS)
every_way = pytest.mark.parametrize("way", WAYS)


def script(server: ProviderServer, api: str) -> Any:
    return getattr(server, api)


@every_api
@every_way
def test_a_text_comes_as_scripted(server: ProviderServer, api: str, way: str) -> None:
    text = 'Sunny, 21 °C in Paris.\n巴黎晴天 😀 "quoted" \\ and\ttabs'
    script(server, api).reply(Reply(text, usage=Usage(11, 7)))
    assert ask(server, api, way) == Asked(text, [], STOPS[api]["end"], (11, 7))
    assert script(server, api).replies_left == 0


@every_api
@every_way
def test_calls_come_as_scripted(server: ProviderServer, api: str, way: str) -> None:
    calls = [ToolCall("weather", {"city": "北京"}), ToolCall("weather", '{"city": "Rome"}', "given_id")]
    script(server, api).reply(Reply("Let me see.", calls, usage=Usage(5, 6)))
    expected = [("weather", '{"city": "北京"}'), ("weather", '{"city": "Rome"}')]
    assert ask(server, api, way) == Asked("Let me see.", expected, CALLED[api], (5, 6))


@every_api
@every_way
def test_a_reply_may_be_one_call_and_nothing_else(server: ProviderServer, api: str, way: str) -> None:
    script(server, api).reply(ToolCall("weather"))
    asked = ask(server, api, way)
    assert (asked.text, asked.calls, asked.stop) == (None, [("weather", "{}")], CALLED[api])


@every_api
@every_way
@pytest.mark.parametrize("stop", ["length", "content_filter"])
def test_a_reply_stops_early(server: ProviderServer, api: str, way: str, stop: Any) -> None:
    if (api, way.split()[1]) == ("chat", "streamed"):
        server.chat.reply(Reply("It is", stop=stop))
        reason = {
            "length": openai.LengthFinishReasonError,
            "content_filter": openai.ContentFilterFinishReasonError,
        }
        with pytest.raises(reason[stop]):  # what the client makes of it, where it collects a stream
            ask(server, api, way)
    else:
        script(server, api).reply(Reply("It is", stop=stop))
        asked = ask(server, api, way)
        assert (asked.text, asked.stop) == ("It is", STOPS[api][stop])


@every_api
@every_way
def test_a_refusal_comes_as_the_api_tells_it(server: ProviderServer, api: str, way: str) -> None:
    script(server, api).reply(Reply(refusal="I will not."))
    asked = ask(server, api, way)
    if api == "messages":
        assert (asked.text, asked.stop) == ("I will not.", "refusal")
    else:
        assert (asked.text, asked.refusal, asked.stop) == (None, "I will not.", STOPS[api]["end"])


@every_api
def test_structured_output_is_json(server: ProviderServer, api: str) -> None:
    script(server, api).reply(Reply.json({"name": "Ada", "tags": ["é", 1]}))
    assert ask(server, api, "sync whole").text == '{"name": "Ada", "tags": ["é", 1]}'


@every_api
@every_way
def test_a_reply_can_be_computed_from_the_request(server: ProviderServer, api: str, way: str) -> None:
    script(server, api).reply_always(lambda request: f"{request.path} {request.body['model'][:3]}")
    expected = f"{PATHS[api].split()[1]} {'cla' if api == 'messages' else 'gpt'}"
    assert ask(server, api, way).text == ask(server, api, way).text == expected


@every_api
def test_replies_come_in_their_order_before_what_is_always_said(server: ProviderServer, api: str) -> None:
    script(server, api).reply_always("always")
    script(server, api).reply("first", "second")
    assert [ask(server, api, "sync whole").text for _ in range(4)] == ["first", "second", "always", "always"]


@every_api
@every_way
def test_with_nothing_scripted_the_server_says_so_and_makes_nothing_up(
    server: ProviderServer, api: str, way: str
) -> None:
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match="No reply is scripted for"):
        ask(server, api, way, max_retries=2)
    assert len(server.requests(PATHS[api])) == 1, "and nobody asks again in vain"


@every_api
def test_a_scripted_function_that_fails_tells_the_test(server: ProviderServer, api: str) -> None:
    script(server, api).reply(lambda request: request.body["no such field"])
    with pytest.raises(REFUSALS, match="KeyError"):
        ask(server, api, "sync whole")


@every_api
@every_way
def test_an_error_can_be_scripted_among_replies(server: ProviderServer, api: str, way: str) -> None:
    script(server, api).reply("first", ApiError(403, "Not for you."), "third")
    assert ask(server, api, way).text == "first"
    with pytest.raises((openai.PermissionDeniedError, anthropic.PermissionDeniedError), match="Not for you"):
        ask(server, api, way)
    assert ask(server, api, way).text == "third"


@every_api
@every_way
def test_an_error_can_strike_in_the_middle_of_a_stream(server: ProviderServer, api: str, way: str) -> None:
    error = ApiError(529, "Too many today.", code="server_error")
    script(server, api).reply(Reply("Some words and then", error=error))
    with pytest.raises((openai.APIError, anthropic.APIError, AssertionError), match="Too many today"):
        ask(server, api, way)  # the Responses API tells it in a response that has failed


@every_api
def test_usage_that_nobody_scripted_is_estimated_from_what_was_said(server: ProviderServer, api: str) -> None:
    script(server, api).reply("x" * 40, "x" * 400)
    short, long = (ask(server, api, "sync whole").usage for _ in range(2))
    assert (short[1], long[1]) == (10, 100)
    assert short[0] == long[0] > 10


@every_api
@every_way
def test_more_than_the_context_window_is_refused(server: ProviderServer, api: str, way: str) -> None:
    script(server, api).reply("never said")
    script(server, api).context_window = 10
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as caught:
        ask(server, api, way)
    assert script(server, api).replies_left == 1
    if api == "messages":
        assert "prompt is too long" in caught.value.message
    else:
        assert isinstance(caught.value, openai.BadRequestError)
        assert caught.value.code == "context_length_exceeded"
        assert caught.value.param == ("input" if api == "responses" else "messages")
    server.reset()
    script(server, api).reply("said")
    assert ask(server, api, way).text == "said"


@every_api
@every_way
def test_requests_are_recorded_without_keys(server: ProviderServer, api: str, way: str) -> None:
    script(server, api).reply("hello")
    ask(server, api, way)
    (recorded,) = server.requests(PATHS[api])
    assert recorded.body["tools"]
    assert bool(recorded.body.get("stream")) == way.endswith("streamed")
    assert not {"authorization", "x-api-key"} & set(recorded.headers)
    assert server.api_key not in str(recorded)


@every_api
@every_way
def test_a_wrong_key_is_refused_in_the_words_of_the_provider(
    server: ProviderServer, api: str, way: str
) -> None:
    with pytest.raises((openai.AuthenticationError, anthropic.AuthenticationError)) as caught:
        ask(server, api, way, api_key="wrong")
    if api == "messages":
        assert isinstance(caught.value, anthropic.AuthenticationError)
        assert caught.value.type == "authentication_error"
    else:
        assert isinstance(caught.value, openai.AuthenticationError)
        assert caught.value.code == "invalid_api_key"
    assert caught.value.request_id is not None
    assert caught.value.request_id.startswith("req_")
