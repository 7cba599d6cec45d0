"""The application: its parts, what a request passes, and its routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware.cors import CORSMiddleware

from ..providers.factory import AgentRegistry
from .error_handlers import install_fault_handlers
from .maintenance import Upkeep
from .openapi import describe_api
from .routes import ROUTERS
from .service import Service, open_service
from .settings import Settings
from .telemetry.middleware import TelemetryMiddleware
from .transport.gate import Gate

# The framework's own would tell query strings, and what is wrong with a request in words that may quote it.
_NO_OTHER_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
# What a page may read of an answer, besides what it always may.
_EXPOSED = ("ETag", "Location", "Retry-After", "Idempotency-Replayed", "X-Request-Id")


def create_app(settings: Settings | None = None, registry: AgentRegistry | None = None) -> FastAPI:
    """The service as an ASGI application; its parts are opened when it starts, and closed when it ends.

    Agents are those of the file that the settings name, or of a `registry` that is made in code.
    """
    settings = settings or Settings()
    app = FastAPI(
        title="Recollect",
        version=version("recollect"),
        lifespan=_lifespan,
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_OTHER_TELEMETRY,
    )
    app.state.settings = settings
    app.state.service = service = open_service(settings, registry)
    install_fault_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    describe_api(app)
    app.add_middleware(Gate, limits=settings.server)
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.server.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=_EXPOSED,
        )
    app.add_middleware(TelemetryMiddleware, metrics=service.metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    upkeep = Upkeep(service)
    try:
        await service.warm_up()
        service.start()
        upkeep.start()
        yield
    finally:
        await upkeep.stop()
        await service.aclose()
