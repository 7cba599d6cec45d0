"""Who is compared: encrypted sessions of ours and of the SDK on files of SQLite, and plain ones."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from recollect.sessions.encryption import EncryptedSession
from recollect.sessions.sqlite import SQLiteSession

from ..sessions.contenders import OURS, RAW_FULL, SessionClass, open_as
from ..sessions.histories import Workspace
from ..shared.items import make_items
from ..shared.stores import OpenStore, Setting, Store, closed_afterwards

FERNET = "fernet"
AES_GCM = "aes-gcm"
SDK = "SDK EncryptedSession"

BASELINES = (RAW_FULL, SDK)
CONTENDERS = (FERNET, AES_GCM, SDK, OURS, RAW_FULL)
_KEY = "correct horse battery staple"
_FOR_EVER = 10**9  # seconds: the SDK's sessions always forget


def encrypted(session_id: str, path: Path, cipher: Any, keys: Any = _KEY) -> EncryptedSession:
    """A session of ours that never forgets."""
    return EncryptedSession(session_id, SQLiteSession(session_id, path), keys, None, cipher=cipher)


def _encrypted_by_sdk(session_id: str, path: Path) -> Any:
    import agents
    from agents.extensions.memory import EncryptedSession as SDKEncryptedSession

    return SDKEncryptedSession(session_id, agents.SQLiteSession(session_id, path), _KEY, _FOR_EVER)


def use_as(contender: str, path: Path) -> Store:
    """A file as one of the contenders uses it."""
    if contender == SDK:
        return SessionClass(_encrypted_by_sdk, path)
    if contender in (FERNET, AES_GCM):
        return SessionClass(lambda session_id, path: encrypted(session_id, path, contender), path)
    return open_as(contender, path)


async def filled(contender: str, workspace: Workspace, histories: Mapping[str, int]) -> Path:
    """A file with so many items for each session id, in the format that the contender reads."""
    if contender in (OURS, RAW_FULL):
        return workspace.copy_of(histories)
    path = workspace.new_path()
    for session_id, size in histories.items():
        async with encrypted(session_id, path, AES_GCM if contender == AES_GCM else FERNET) as session:
            await session.add_items(make_items(size))
    return path


def on_encrypted_files(workspace: Workspace) -> Setting:
    """Files of a workspace, one for each contender."""

    @asynccontextmanager
    async def open_store(contender: str, histories: Mapping[str, int]) -> AsyncIterator[Store]:
        path = await filled(contender, workspace, histories)
        async with closed_afterwards(use_as(contender, path)) as store:
            yield store

    @asynccontextmanager
    async def setting() -> AsyncIterator[OpenStore]:
        yield open_store

    return setting
