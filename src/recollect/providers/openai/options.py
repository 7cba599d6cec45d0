"""Options of chats, and the clients and run configurations that are made from them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ...errors import ModelRefusedError
from ...extras import require_extra

if TYPE_CHECKING:
    from agents import ModelProvider, RunConfig
    from openai import AsyncOpenAI

Api = Literal["auto", "responses", "chat_completions"]
_APIS: tuple[Api, ...] = ("auto", "responses", "chat_completions")
_NO_KEY = "none"  # for endpoints that ask for none; the client will not go without
_WORKFLOW = "recollect chat"


@dataclass(frozen=True)
class ModelEndpoint:
    """Where models are asked: OpenAI, or another that speaks one of its APIs, by `base_url`.

    `api` says which: `auto` is Responses at OpenAI, and Chat Completions, which more speak, elsewhere. What
    is not given is taken from `OPENAI_BASE_URL` and `OPENAI_API_KEY`.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    """Seconds that one request may take."""
    max_retries: int = 2
    api: Api = "auto"

    def __post_init__(self) -> None:
        if self.api not in _APIS:
            raise ValueError(f"api must be one of {', '.join(_APIS)}")
        if not self.timeout > 0:
            raise ValueError(f"timeout must be positive, and it is {self.timeout}")
        if self.max_retries < 0:
            raise ValueError(f"max_retries must not be negative, and it is {self.max_retries}")

    @property
    def url(self) -> str | None:
        """The endpoint that is asked; `None` for OpenAI's own."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or None

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own endpoint."""
        host = "api.openai.com" if self.url is None else urlsplit(self.url).hostname or ""
        return host == "openai.com" or host.endswith(".openai.com")

    @property
    def uses_responses(self) -> bool:
        """Whether the Responses API is used, and not Chat Completions."""
        return self.is_openai if self.api == "auto" else self.api == "responses"


def make_client(endpoint: ModelEndpoint, http_client: Any = None) -> "AsyncOpenAI":
    """A client for the endpoint, which whoever asked for it closes, with what it asks over HTTP with."""
    openai = require_extra("openai", "openai", "a model")
    key = endpoint.api_key or os.environ.get("OPENAI_API_KEY") or (None if endpoint.is_openai else _NO_KEY)
    if key is None:
        raise ModelRefusedError("there is no key for the model: set chat.api_key or OPENAI_API_KEY")
    client: AsyncOpenAI = openai.AsyncOpenAI(
        base_url=endpoint.url,
        api_key=key,
        timeout=endpoint.timeout,
        max_retries=endpoint.max_retries,
        http_client=http_client,
    )
    return client


def make_model_provider(client: "AsyncOpenAI", endpoint: ModelEndpoint) -> "ModelProvider":
    """What gives the SDK a model by its name, through this client and no other."""
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

    The SDK sends its traces to OpenAI, whoever's model is asked: they are off unless `traced`, and then they
    hold no contents; `group_id` and `trace_metadata` are sent as they are. A tool that a model makes up is
    told to it as an error, and does not end the run.
    """
    agents = require_extra("agents", "agents", "a run")
    given: dict[str, Any] = {} if model_provider is None else {"model_provider": model_provider}
    config: RunConfig = agents.RunConfig(
        **given,
        # Else an endpoint that streams Chat Completions would not say what a run cost.
        model_settings=agents.ModelSettings(include_usage=True),
        tracing_disabled=not traced,
        trace_include_sensitive_data=False,
        workflow_name=workflow_name,
        group_id=group_id if traced else None,
        trace_metadata=dict(trace_metadata or {}) if traced else None,
        session_settings=None,  # a limit here would read past the strategy of a session
        tool_not_found_behavior="return_error_to_model",
    )
    return config


@dataclass(frozen=True)
class ChatOptions:
    """Which model answers, where it is asked, and how long a turn waits for the one before."""

    model: str | None = None
    """For agents that name none; without one they are answered from memory alone."""
    endpoint: ModelEndpoint = field(default_factory=ModelEndpoint)
    timeout_seconds: float | None = 120.0
    """How long a turn may take, all that it asks of models and tools together."""
    lock_seconds: float = 30.0
    """How long a turn waits for another of the same conversation."""
    lease_seconds: float = 30.0
    """After which the conversation of a process that died is free again."""
    quiet_seconds: float | None = 300.0
    """Of quiet, after which a conversation is learned from; `None`: at once."""
    provider_conversations: bool = False
    """Whether conversations get an id at the provider (`conv_*`) when they are first chatted in."""
    injection_tokens: int = 1000
    """How many tokens of what is remembered go into the instructions."""


def read_options(settings: Any, quiet_seconds: float | None = None) -> ChatOptions:
    """The options that an object says by attributes of the same names, such as settings of the service."""
    if isinstance(settings, ChatOptions):
        return settings
    defaults = ChatOptions()
    told = {
        name: getattr(settings, name, getattr(defaults, name))
        for name in ("model", "timeout_seconds", "lock_seconds", "provider_conversations")
    }
    quiet = defaults.quiet_seconds if quiet_seconds is None else quiet_seconds
    return ChatOptions(endpoint=_endpoint(settings), quiet_seconds=quiet, **told)


def _endpoint(settings: Any) -> ModelEndpoint:
    key = getattr(settings, "api_key", None)
    reveal = getattr(key, "get_secret_value", None)
    return ModelEndpoint(
        base_url=getattr(settings, "base_url", None),
        api_key=reveal() if reveal is not None else key,
        timeout=getattr(settings, "timeout_seconds", ModelEndpoint.timeout),
        api=getattr(settings, "api", "auto"),
    )
