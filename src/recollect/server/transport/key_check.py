"""Whether a server may listen with the keys that it has, and how to create the first one."""

import os
import shlex

from ...sql.urls import hide_credentials
from ..access.keys import KeyStore
from ..settings import Settings, SettingsError, load_settings
from .listener import ListenError, is_loopback

_LOST_KEYS = (
    "The database has none of the API keys that were created for it: it was replaced, or emptied. Requests"
    " are refused. Restore the database, or create a key with `{}`."
)
_NO_KEYS = "No API keys configured: every local process can read and write. Create a key with `{}`."
_NOT_OPEN = "{}, so the server cannot listen on {}: create one with `{}`, or listen on 127.0.0.1"


def key_command(url: str) -> str:
    """The command that creates the first key: for the data that was stored without one."""
    try:
        is_default = load_settings(None, os.environ).database.url == url
    except SettingsError:
        is_default = False
    place = "" if is_default else f" --url {shlex.quote(hide_credentials(url))}"
    return f"recollect keys create --scope admin{place}"


async def check_keys(keys: KeyStore, settings: Settings, host: str) -> str | None:
    """What an operator should know about the keys of a server; `None` if all is well.

    Raises a `ListenError` if the server would be open beyond this machine: anybody who reaches it could do
    anything.
    """
    command = key_command(settings.database.url)
    if await keys.are_lost():
        return _LOST_KEYS.format(command)
    if await keys.are_required():
        return None
    if not is_loopback(host):
        is_never = settings.access.require_keys == "never"
        why = "access.require_keys is never" if is_never else "no API keys configured"
        raise ListenError(_NOT_OPEN.format(why, host, command))
    return _NO_KEYS.format(command)
