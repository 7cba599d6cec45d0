"""What the doctor finds out about models and agents. They are reached, and not asked: it costs no tokens."""

import os
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...errors import RecollectError
from ..database import told_url
from ..output import plural
from .database import Finding, State, guarded

if TYPE_CHECKING:
    from ...providers.openai.registry import AgentRegistry
    from ...server.settings import ChatSettings, Settings

KEYS_OF = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_ADDRESSES_OF = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
_CLIENTS_OF = {"openai": "AsyncOpenAI", "anthropic": "AsyncAnthropic"}
_PATIENCE = 5.0  # seconds for an answer


@dataclass(frozen=True)
class _Endpoint:
    """A model of a provider, and what its client is given beside what it takes from the environment."""

    kind: str
    model: str
    options: dict[str, str] = field(default_factory=dict, repr=False)
    key_name: str = ""
    address_name: str = ""


async def look_at_models(settings: "Settings | None") -> list[Finding]:
    """Who learns, and who answers in chats."""
    if settings is None:
        return [_offline("model", "learns")]
    learning = await _extractor(settings.memory.extractor)
    try:
        registry = _agents_of(settings.chat)
    except RecollectError as error:
        return [learning, Finding("agents", "wrong", str(error), "mend it, or what chat.default_agent says")]
    return [learning, _agents(registry), await _chat(settings.chat, registry)]


def _agents_of(chat: "ChatSettings") -> "AgentRegistry":
    """The agents of the file, if there is one; among them must be the one that is asked by default."""
    from ...providers.openai.registry import AgentRegistry

    registry = AgentRegistry() if chat.agents_file is None else AgentRegistry.from_toml(chat.agents_file)
    registry.get(chat.default_agent)
    return registry


def _agents(registry: "AgentRegistry") -> Finding:
    return Finding("agents", "ok", f"{plural(len(registry.names()), 'agent')}: {', '.join(registry.names())}")


def _offline(name: str, does: str) -> Finding:
    return Finding(name, "ok", f"offline: {does} by rule, with no key")


async def _extractor(name: str) -> Finding:
    kind, _, model = name.partition(":")
    if kind not in KEYS_OF:
        return _offline("model", "learns")
    return await _reached("model", _Endpoint(kind, model, {}, KEYS_OF[kind], _ADDRESSES_OF[kind]))


async def _chat(chat: "ChatSettings", registry: "AgentRegistry") -> Finding:
    """The model of the agent that is asked by default: those of the others are at the same endpoint."""
    from ...providers.openai.options import ModelEndpoint

    model = registry.get(chat.default_agent).model or chat.model
    if not model:
        return _offline("chat", "answers")
    key = None if chat.api_key is None else chat.api_key.get_secret_value()
    asked = ModelEndpoint(chat.base_url, key)
    if key is None and not os.environ.get(KEYS_OF["openai"]) and not asked.is_openai:
        key = "none"  # as in a chat: many endpoints ask for none
    given = {"base_url": asked.url, "api_key": key}
    options = {name: value for name, value in given.items() if value is not None}
    address = "RECOLLECT_CHAT__BASE_URL" if chat.base_url else _ADDRESSES_OF["openai"]
    return await _reached("chat", _Endpoint("openai", model, options, "RECOLLECT_CHAT__API_KEY", address))


async def _reached(name: str, endpoint: _Endpoint) -> Finding:
    kind, told = endpoint.kind, f"{endpoint.kind}:{endpoint.model}"
    if find_spec(kind) is None:
        return Finding(name, "wrong", f"{told} needs the extra {kind}", f"pip install 'recollect[{kind}]'")
    if "api_key" not in endpoint.options and not os.environ.get(KEYS_OF[kind]):
        return Finding(name, "wrong", f"{told} has no key", f"set {endpoint.key_name}")
    package = import_module(kind)  # which may take longer than an answer
    return await guarded(name, lambda: _answer(name, told, endpoint, package))


async def _answer(name: str, told: str, endpoint: _Endpoint, package: Any) -> Finding:
    """What the provider says of the model; its own words may quote a part of the key, and are not told."""
    made = getattr(package, _CLIENTS_OF[endpoint.kind])
    async with made(timeout=_PATIENCE, max_retries=0, **endpoint.options) as client:
        where = told_url(str(client.base_url)).rstrip("/")
        try:
            found = await client.models.retrieve(endpoint.model)
        except package.APIConnectionError:
            fix = f"see that {endpoint.address_name} is right, and that nothing stands between"
            return Finding(name, "wrong", f"{told}: {where} cannot be reached", fix)
        except package.APIStatusError as error:
            state, words, fix = _refusal(error.status_code, endpoint)
            return Finding(name, state, f"{told}: {where} {words}", fix)
    if getattr(found, "id", None) is None:
        fix = f"see that {endpoint.address_name} is the address of an API"
        return Finding(name, "wrong", f"{told}: {where} answers as no API of models does", fix)
    return Finding(name, "ok", f"{told}: {where} has it, and takes the key")


def _refusal(status: int, endpoint: _Endpoint) -> tuple[State, str, str]:
    """What a status means: how bad it is, what is told, and what mends it."""
    if status in (401, 403):
        return "wrong", "refuses the key", f"set {endpoint.key_name} to a key that it takes"
    if status == 404:
        words = "answers 404 for this model: its name is wrong, or the provider has retired it"
        return "warning", words, "name a model that the provider offers now"
    return "warning", f"answers with status {status}", "ask again later"
