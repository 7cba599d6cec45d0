"""OpenAI's list of models."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from .core import ApiError, Dialect
from .openai_dialect import OpenAIDialect

_NAMES = ("gpt-4o-mini", "text-embedding-3-small")


class ModelsApi:
    """Return the names of a few models."""

    dialect: Dialect = OpenAIDialect()
    path = "/v1/models"

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the API."""
        return [Route(self.path, self._list), Route(f"{self.path}/{{model}}", self._get)]

    def reset(self) -> None:
        """Do nothing: the models are fixed."""

    async def _list(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_model(name) for name in _NAMES]})

    async def _get(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in _NAMES:
            raise ApiError(404, f"The model '{name}' does not exist.", "model", "model_not_found")
        return JSONResponse(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "recollect"}
