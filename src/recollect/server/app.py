"""The ASGI application: its parts, middleware and routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware.cors import CORSMiddleware

from ..providers.factory import AgentRegistry
from .error_handlers import install_error_handlers
from .learner import LearningProcess
from .maintenance import Maintenance
from .openapi import describe_api
from .proxy import routes as proxy_routes
from .routes import ROUTERS
from .service import Service, open_service
from .settings import Settings
from .telemetry.middleware import TelemetryMiddleware
from .transport.gate import Gate

# The framework's own telemetry would record query strings, and validation errors that quote the request.
_NO_FRAMEWORK_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
# Response headers that a page of an allowed origin may read, besides the safelisted ones.
_EXPOSED = (
    *("ETag", "Location", "Retry-After", "Idempotency-Replayed", "X-Request-Id"),
    *("X-Recollect-Memory", "X-Recollect-Request-Id"),
)


def create_app(
    settings: Settings | None = None,
    registry: AgentRegistry | None = None,
    learning: LearningProcess | None = None,
) -> FastAPI:
    """Create the service as an ASGI application. Its lifespan starts and closes the parts.

    Agents come from `registry`, or from the file that `chat.agents_file` names. Without `learning`, the
    service has a learning process of its own.
    """
    settings = settings or Settings()
    app = FastAPI(
        title="Recollect",
        version=version("recollect-memory"),
        lifespan=_lifespan,
        docs_url=None,  # its pages load scripts from other hosts
        redoc_url=None,
        openapi_url=None,  # `describe_api` serves the document
        redirect_slashes=False,
        telemetry=_NO_FRAMEWORK_TELEMETRY,
    )
    app.state.settings = settings
    app.state.service = service = open_service(settings, registry, learning)
    install_error_handlers(app)
    # The proxy comes first: each call would be compared with all other routes before.
    for router in (*([proxy_routes.router] if settings.proxy.enabled else []), *ROUTERS):
        app.router.routes += router.routes  # an included router would match each request twice
    describe_api(app)
    app.add_middleware(Gate, limits=settings.server, proxy=settings.proxy)
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
    maintenance = Maintenance(service)
    try:
        service.start()
        maintenance.start()
        yield
    finally:
        await maintenance.stop()
        await service.aclose()
