"""The dashboard: one page that looks at the service through its API, and nothing but files."""

from .routes import router

__all__ = ["router"]
