"""The dashboard: one page that looks at the service through its API, and nothing but files."""

from .serving import router

__all__ = ["router"]
