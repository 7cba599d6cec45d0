"""Opens what the daemon works with. Importing this module takes longer than listening."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ..memory.store import MemoryStore
from .service import HookService
from .settings import read_settings
from .state import CaptureState

_WORKERS = 1


@asynccontextmanager
async def open_service(folder: Path, answer_seconds: float) -> AsyncIterator[HookService]:
    """The service of a folder, with its settings. Its store also learns from what is recorded."""
    settings, state = read_settings(folder), CaptureState(folder)
    settings.url = settings.url or str(Path.home() / "recollect.db")
    try:
        async with MemoryStore(settings.url, tenant=settings.tenant, workers=_WORKERS) as store:
            service = HookService(store, settings, state, folder, answer_seconds)
            await service.warm_up()
            store.start()
            yield service
    finally:
        state.close()
