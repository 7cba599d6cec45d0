"""The dashboard: static files of a page that uses the HTTP API."""

from .routes import router

__all__ = ["router"]
