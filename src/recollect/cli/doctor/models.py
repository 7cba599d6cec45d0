"""Checks of models and agents. They look the model up and send no prompt, so they cost no tokens."""

import os
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...errors import RecollectError
from ..database import hide_credentials
from ..output import plural
from .database import Finding, State, run_check

if TYPE_CHECKING:
    from ...providers.openai.registry import AgentRegistry
    from ...server.settings import ChatSettings, Settings

KEYS_OF = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_ADDRESSES_OF = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_CLIENTS_OF = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}
_TIMEOUT = 5.0  # seconds for a response


@dataclass(frozen=True)
class _Endpoint:
    """A model of a provider, with the client options that do not come from the environment."""

    kind: str
    model: str
    options: dict[str, str] = field(default_factory=dict, repr=False)
    key_name: str = ""
    address_name: str = ""


async def check_models(settings: "Settings | None") -> list[Finding]:
    """Check the model that learns, the agents, and the model of chats."""
    if settings is None:
        return [_offline("model", "learns")]
    learning = await _extractor(settings.memory.extractor)
    try:
        registry = _agents_of(settings.chat)
    except RecollectError as error:
        return [learning, Finding("agents", "wrong", str(error), "fix it, or change chat.default_agent")]
    return [learning, _agents(registry), await _chat(settings.chat, registry)]


def _agents_of(chat: "ChatSettings") -> "AgentRegistry":
    """Load the agents of the file, if there is one. The default agent must be among them."""
    from ...providers.openai.registry import AgentRegistry

    registry = AgentRegistry() if chat.agents_file is None else AgentRegistry.from_toml(chat.agents_file)
    registry.get(chat.default_agent)
    return registry


def _agents(registry: "AgentRegistry") -> Finding:
    return Finding("agents", "ok", f"{plural(len(registry.names()), 'agent')}: {', '.join(registry.names())}")


def _offline(name: str, does: str) -> Finding:
    return Finding(name, "ok", f"offline: {does} by rules, without a key")


async def _extractor(name: str) -> Finding:
    kind, _, model = name.partition(":")
    if kind not in KEYS_OF:
        return _offline("model", "learns")
    return await _check_endpoint("model", _Endpoint(kind, model, {}, KEYS_OF[kind], _ADDRESSES_OF[kind]))


async def _chat(chat: "ChatSettings", registry: "AgentRegistry") -> Finding:
    """Check the model of the default agent. All agents use the same endpoint."""
    from ...providers.openai.options import ModelEndpoint

    model = registry.get(chat.default_agent).model or chat.model
    if not model:
        return _offline("chat", "answers")
    key = None if chat.api_key is None else chat.api_key.get_secret_value()
    used = ModelEndpoint(chat.base_url, key)
    if key is None and not os.environ.get(KEYS_OF["openai"]) and not used.is_openai:
        key = "none"  # as in a chat: many endpoints need no key
    given = {"base_url": used.url, "api_key": key}
    options = {name: value for name, value in given.items() if value is not None}
    address = "RECOLLECT_CHAT__BASE_URL" if chat.base_url else _ADDRESSES_OF["openai"]
    return await _check_endpoint(
        "chat", _Endpoint("openai", model, options, "RECOLLECT_CHAT__API_KEY", address)
    )


async def _check_endpoint(name: str, endpoint: _Endpoint) -> Finding:
    kind, name_of_model = endpoint.kind, f"{endpoint.kind}:{endpoint.model}"
    if find_spec(kind) is None:
        return Finding(
            name,
            "wrong",
            f"{name_of_model} needs the extra {kind}",
            f"pip install 'recollect-memory[{kind}]'",
        )
    if "api_key" not in endpoint.options and not os.environ.get(KEYS_OF[kind]):
        return Finding(name, "wrong", f"{name_of_model} has no key", f"set {endpoint.key_name}")
    package = import_module(kind)  # may take longer than the response
    return await run_check(name, lambda: _look_up(name, name_of_model, endpoint, package))


async def _look_up(name: str, name_of_model: str, endpoint: _Endpoint, package: Any) -> Finding:
    """Look the model up. The error text of the provider is not shown: it may quote part of the key."""
    made = getattr(package, _CLIENTS_OF[endpoint.kind])
    async with made(timeout=_TIMEOUT, max_retries=0, **endpoint.options) as client:
        where = hide_credentials(str(client.base_url)).rstrip("/")
        try:
            found = await client.models.retrieve(endpoint.model)
        except package.APIConnectionError:
            fix = f"check {endpoint.address_name}, proxies and firewalls"
            return Finding(name, "wrong", f"{name_of_model}: {where} cannot be reached", fix)
        except package.APIStatusError as error:
            state, words, fix = _refusal(error.status_code, endpoint)
            return Finding(name, state, f"{name_of_model}: {where} {words}", fix)
    if getattr(found, "id", None) is None:
        fix = f"check that {endpoint.address_name} is the address of an API"
        return Finding(name, "wrong", f"{name_of_model}: {where} is not a model API", fix)
    return Finding(name, "ok", f"{name_of_model}: available at {where}, key accepted")


def _refusal(status: int, endpoint: _Endpoint) -> tuple[State, str, str]:
    """Map a status to a state, a text and a fix."""
    if status in (401, 403):
        return "wrong", "rejects the key", f"set {endpoint.key_name} to a valid key"
    if status == 404:
        words = "returns 404 for this model: the name is wrong, or the provider has retired it"
        return "warning", words, "choose a model that the provider offers"
    return "warning", f"returns status {status}", "try again later"
