"""Options of chats, and the clients and run configurations that are made from them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ...extras import require_extra
from ...items import with_tail
from ..errors import ModelNotConfiguredError

if TYPE_CHECKING:
    from agents import ModelProvider, RunConfig
    from openai import AsyncOpenAI

Api = Literal["auto", "responses", "chat_completions"]
_APIS: tuple[Api, ...] = ("auto", "responses", "chat_completions")
OFFLINE = "offline"
"""The model of agents without one."""
_NO_KEY = "none"  # the client needs a key even for endpoints that need none
_WORKFLOW = "recollect chat"


@dataclass(frozen=True)
class ModelEndpoint:
    """The endpoint of the models: OpenAI, or a compatible one at `base_url`.

    `api` chooses the API: `auto` is Responses at OpenAI, and Chat Completions elsewhere, since more endpoints
    support it. Missing values come from `OPENAI_BASE_URL` and `OPENAI_API_KEY`.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    """The time limit of one request in seconds."""
    max_retries: int = 2
    api: Api = "auto"

    def __post_init__(self) -> None:
        if self.api not in _APIS:
            raise ValueError(f"api must be one of {', '.join(_APIS)}")
        if not self.timeout > 0:
            raise ValueError(f"timeout must be positive, not {self.timeout}")
        if self.max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, not {self.max_retries}")

    @property
    def url(self) -> str | None:
        """The URL of the endpoint; `None` for OpenAI's own."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or None

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI's own endpoint."""
        host = "api.openai.com" if self.url is None else urlsplit(self.url).hostname or ""
        return host == "openai.com" or host.endswith(".openai.com")

    @property
    def uses_responses(self) -> bool:
        """Whether runs use the Responses API and not Chat Completions."""
        return self.is_openai if self.api == "auto" else self.api == "responses"


def key_of(endpoint: ModelEndpoint) -> str | None:
    """The API key of an endpoint; `None` if it needs one and none is configured."""
    return endpoint.api_key or os.environ.get("OPENAI_API_KEY") or (None if endpoint.is_openai else _NO_KEY)


def make_client(
    endpoint: ModelEndpoint, http_client: Any = None, kind: "type[AsyncOpenAI] | None" = None
) -> "AsyncOpenAI":
    """A client for the endpoint, of a given class. The caller closes it, and with it the `http_client`.

    Raises a `ModelNotConfiguredError` if there is no API key.
    """
    openai = require_extra("openai", "openai", "a model")
    key = key_of(endpoint)
    if key is None:
        raise ModelNotConfiguredError("no API key for the model: set chat.api_key or OPENAI_API_KEY")
    client: AsyncOpenAI = (kind or openai.AsyncOpenAI)(
        base_url=endpoint.url,
        api_key=key,
        timeout=endpoint.timeout,
        max_retries=endpoint.max_retries,
        http_client=http_client,
    )
    return client


def make_model_provider(client: "AsyncOpenAI", endpoint: ModelEndpoint) -> "ModelProvider":
    """The provider from which the SDK gets models by name. All of them use this client."""
    agents = require_extra("agents", "agents", "a model")
    provider: ModelProvider = agents.OpenAIProvider(
        openai_client=client,
        use_responses=endpoint.uses_responses,
        use_responses_websocket=False,
    )
    return provider


def make_run_config(
    model_provider: "ModelProvider | None" = None,
    *,
    traced: bool = False,
    workflow_name: str = _WORKFLOW,
    group_id: str | None = None,
    trace_metadata: Mapping[str, str] | None = None,
) -> "RunConfig":
    """The SDK's configuration of a run.

    Tracing is off unless `traced`, since the SDK sends traces to OpenAI even if the model is at another
    endpoint. Traces hold no contents, but `group_id` and `trace_metadata` are sent as they are. If a model
    calls a tool that does not exist, it gets an error, and the run goes on.
    """
    agents = require_extra("agents", "agents", "a run")
    given: dict[str, Any] = {} if model_provider is None else {"model_provider": model_provider}
    config: RunConfig = agents.RunConfig(
        **given,
        # Without this, an endpoint that streams Chat Completions reports no usage.
        model_settings=agents.ModelSettings(include_usage=True),
        tracing_disabled=not traced,
        trace_include_sensitive_data=False,
        workflow_name=workflow_name,
        group_id=group_id if traced else None,
        trace_metadata=dict(trace_metadata or {}) if traced else None,
        session_settings=None,  # a limit here would bypass the strategy of the session
        tool_not_found_behavior="return_error_to_model",
        call_model_input_filter=add_tail,
    )
    return config


def add_tail(call: Any) -> Any:
    """The input of a model with the memories of its run after the newest message of the user.

    The SDK stores nothing of it.
    """
    remembered = getattr(call.context, "remembered", None)
    if remembered is not None:
        call.model_data.input = with_tail(call.model_data.input, remembered.tail)
    return call.model_data


@dataclass(frozen=True)
class ChatOptions:
    """The options of chats: the model, its endpoint, and the time limits of turns."""

    model: str | None = None
    """The model of agents that name none. Without it, they answer from memory alone."""
    endpoint: ModelEndpoint = field(default_factory=ModelEndpoint)
    timeout_seconds: float | None = 120.0
    """The time limit of a turn, for all requests to models and tools together."""
    lock_seconds: float = 30.0
    """How long a turn waits for another turn of the same conversation."""
    lease_seconds: float = 30.0
    """The lease of the lock on a conversation. It expires after this time if its process dies."""
    quiet_seconds: float | None = 300.0
    """How long a conversation is quiet before a run learns from it; `None`: it learns at once."""
    provider_conversations: bool = False
    """Whether the first turn of a conversation creates it at the provider too (`conv_*`)."""
    injection_tokens: int = 1000
    """The size limit of the memories after the question, in tokens."""


def read_options(settings: Any, quiet_seconds: float | None = None) -> ChatOptions:
    """The options from an object with attributes of the same names, such as the settings of a service."""
    if isinstance(settings, ChatOptions):
        return settings
    defaults = ChatOptions()
    given = {
        name: getattr(settings, name, getattr(defaults, name))
        for name in ("model", "timeout_seconds", "lock_seconds", "provider_conversations")
    }
    quiet = defaults.quiet_seconds if quiet_seconds is None else quiet_seconds
    return ChatOptions(endpoint=_endpoint(settings), quiet_seconds=quiet, **given)


def _endpoint(settings: Any) -> ModelEndpoint:
    key = getattr(settings, "api_key", None)
    reveal = getattr(key, "get_secret_value", None)
    return ModelEndpoint(
        base_url=getattr(settings, "base_url", None),
        api_key=reveal() if reveal is not None else key,
        timeout=getattr(settings, "timeout_seconds", ModelEndpoint.timeout),
        api=getattr(settings, "api", "auto"),
    )
