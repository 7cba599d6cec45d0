"""The routes of the proxy. They are APIs of others, so our OpenAPI document does not describe them."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.routing import APIRoute

from ..dependencies import ServiceDep, WriteStore, service_of
from ..error_handlers import status_of
from ..problems import Problem
from .accounting import Account
from .chat_completions import ChatCompletions
from .messages import Messages
from .proxy import Proxy
from .responses import Responses
from .values import Dialect


class AccountedRoute(APIRoute):
    """A route whose refused calls are in the audit log. Those that are passed on get there when they end."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route, followed by an entry of a refused call."""
        handle = super().get_route_handler()
        if self.operation_id is None:
            return handle

        async def handle_booked(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:
                await _enter_refused(request, error)
                raise

        return handle_booked


async def _enter_refused(request: Request, error: Exception) -> None:
    service, account = service_of(request), Account.of(request)
    assert service.proxy is not None
    user_id = await service.proxy.user_of(request, _DIALECTS.get(account.action))
    store = service.memory.for_tenant(account.tenant)
    service.proxy.accounting.enter(account, status_of(error), store, user_id)


router = APIRouter(prefix="/proxy", include_in_schema=False, route_class=AccountedRoute)

_CHAT_COMPLETIONS, _RESPONSES, _MESSAGES = ChatCompletions(), Responses(), Messages()
_DIALECTS: dict[str, Dialect] = {
    "proxy.chat_completions": _CHAT_COMPLETIONS,
    "proxy.responses": _RESPONSES,
    "proxy.messages": _MESSAGES,
    "proxy.count_tokens": _MESSAGES,
}
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_UNKNOWN = (
    "The proxy has /proxy/openai/v1/{chat/completions, responses, embeddings, models} and"
    " /proxy/anthropic/v1/{messages, messages/count_tokens}."
)


async def _proxy(service: ServiceDep) -> Proxy:
    assert service.proxy is not None
    return service.proxy


ProxyDep = Annotated[Proxy, Depends(_proxy)]
# A name of dots alone would be another path of the provider.
ModelName = Annotated[str, Path(pattern=r"^\.*[A-Za-z0-9_:@-][A-Za-z0-9._:@-]*$", max_length=200)]


@router.post("/openai/v1/chat/completions", operation_id="proxy.chat_completions")
async def chat_completions(request: Request, proxy: ProxyDep, store: WriteStore) -> Response:
    """A chat completion with memories."""
    path = "/chat/completions"
    return await proxy.pass_on_with_memory(request, proxy.openai, path, _CHAT_COMPLETIONS, store)


@router.post("/openai/v1/responses", operation_id="proxy.responses")
async def responses(request: Request, proxy: ProxyDep, store: WriteStore) -> Response:
    """A response with memories."""
    return await proxy.pass_on_with_memory(request, proxy.openai, "/responses", _RESPONSES, store)


@router.post("/openai/v1/embeddings", operation_id="proxy.embeddings")
async def embeddings(request: Request, proxy: ProxyDep, store: WriteStore) -> Response:
    """Embeddings, passed on as they are."""
    return await proxy.pass_on_counted(request, proxy.openai, "/embeddings", store)


@router.get("/openai/v1/models")
async def models(request: Request, proxy: ProxyDep, _: WriteStore) -> Response:
    """The models, passed on as they are."""
    return await proxy.pass_on(request, proxy.openai, "/models")


@router.get("/openai/v1/models/{model}")
async def model(model: ModelName, request: Request, proxy: ProxyDep, _: WriteStore) -> Response:
    """One model, passed on as it is."""
    return await proxy.pass_on(request, proxy.openai, f"/models/{model}")


@router.post("/anthropic/v1/messages", operation_id="proxy.messages")
async def messages(request: Request, proxy: ProxyDep, store: WriteStore) -> Response:
    """A message with memories."""
    return await proxy.pass_on_with_memory(request, proxy.anthropic, "/v1/messages", _MESSAGES, store)


@router.post("/anthropic/v1/messages/count_tokens", operation_id="proxy.count_tokens")
async def count_tokens(request: Request, proxy: ProxyDep, store: WriteStore) -> Response:
    """The number of tokens of a call with its memories."""
    path = "/v1/messages/count_tokens"
    return await proxy.pass_on_with_memory(request, proxy.anthropic, path, _MESSAGES, store, uses_model=False)


@router.api_route("/{path:path}", methods=_METHODS)
async def unknown(path: str) -> Response:  # noqa: ARG001
    """Refuse any other path: the provider's other APIs do not pass."""
    raise Problem("not_found", _UNKNOWN)
