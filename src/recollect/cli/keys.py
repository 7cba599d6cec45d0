"""`recollect keys`: create, list and revoke API keys of the service."""

import argparse
import asyncio
import json
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .arguments import Commands, add_command
from .database import hide_credentials, resolve_existing_url, resolve_new_url
from .output import print_note

if TYPE_CHECKING:
    from ..server.access.keys import Key, KeyStore

T = TypeVar("T")

_DURATION = re.compile(r"([0-9]{1,6})([hd])")
_UNITS = {"h": "hours", "d": "days"}
_AN_ID = "0123456789abcdef" * 2
_SCOPES = ("read", "write", "admin")
_TENANT = "default"
_CREATE = "keys.create"


def add_keys_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    keys = add_command(
        commands,
        "keys",
        "create, list and revoke API keys",
        "  recollect keys create --scope admin\n"
        "  recollect keys create --tenant acme --scope write --expires 90d\n  recollect keys list\n",
    )
    actions = keys.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_create(actions)
    listing = add_command(
        actions, "list", "list the keys, without their secrets", "  recollect keys list --tenant acme\n"
    )
    listing.add_argument("--tenant", help="only keys of this tenant")
    revoke = add_command(
        actions,
        "revoke",
        "revoke a key",
        f"  recollect keys revoke {_AN_ID}\n",
    )
    revoke.add_argument(
        "key_id", type=_key_id, metavar="KEY_ID", help="the id, as shown by `recollect keys list`"
    )
    for action, run in ((listing, _list), (revoke, _revoke)):
        _add_common(action, run)


def _add_create(actions: Commands) -> None:
    create = add_command(
        actions,
        "create",
        "create a key and show it once",
        "  recollect keys create --scope admin\n"
        '  recollect keys create --tenant acme --scope write --name "the shop"\n'
        "  recollect keys create --tenant acme --scope read --expires 2027-01-31\n",
    )
    create.add_argument(
        "--tenant",
        default=_TENANT,
        help=f"the tenant whose data the key can access (default: {_TENANT}, as without a key)",
    )
    create.add_argument(
        "--scope", required=True, choices=_SCOPES, help="read, write (includes read) or admin (includes both)"
    )
    create.add_argument("--name", default="", help="what the key is for")
    create.add_argument(
        "--expires", type=_expiry, metavar="WHEN", help="such as 90d, 12h or 2027-01-31 (default: never)"
    )
    _add_common(create, _create)


def _add_common(action: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    action.add_argument("--url", help="a path or postgresql://user@host/name (default: as configured)")
    action.add_argument(
        "--config", type=Path, metavar="FILE", help="the TOML file of the service (default: RECOLLECT_CONFIG)"
    )
    action.add_argument("--json", action="store_true", help="print JSON")
    action.set_defaults(run=run)


# --- actions ---


def _create(options: argparse.Namespace) -> int:
    async def create(keys: "KeyStore") -> "tuple[Key, str]":
        is_first = not await keys.any()
        made = await keys.create(options.tenant, options.scope, name=options.name, expires_at=options.expires)
        if is_first and options.tenant != _TENANT:
            await _warn_of_hidden_data(resolve_new_url(options))
        return made

    key, text = _with_keys(options, _CREATE, create, lambda made: made[0])
    print("this key is shown only once and is not stored: save it now", file=sys.stderr)
    print(json.dumps({"key": text, **_as_json(key)}, indent=2) if options.json else text)
    return 0


async def _warn_of_hidden_data(url: str) -> None:
    """Say if the first key cannot access what was stored before it."""
    from ..errors import MissingTablesError
    from ..memory.store import MemoryStore

    async with MemoryStore(url, workers=0, embedder=None) as store:
        try:
            has_data = bool(await store.list_users(limit=1))
        except MissingTablesError:
            has_data = False
    if has_data:
        print_note(
            "this key cannot access the data that was stored without a key, which belongs to the tenant"
            f" {_TENANT}: recollect keys create --scope admin --url {shlex.quote(hide_credentials(url))}"
        )


def _list(options: argparse.Namespace) -> int:
    async def list_keys(keys: "KeyStore") -> "Sequence[Key]":
        return await keys.list(options.tenant)

    found = _with_keys(options, None, list_keys, lambda _: None)
    if options.json:
        print(json.dumps([_as_json(key) for key in found], indent=2))
    elif found:
        print("\n".join(_table(found, datetime.now(UTC))))
    else:
        print("no keys", file=sys.stderr)
    return 0


def _revoke(options: argparse.Namespace) -> int:
    async def revoke(keys: "KeyStore") -> "Key | None":
        return await keys.revoke(options.key_id)

    key = _with_keys(options, "keys.revoke", revoke, lambda revoked: revoked)
    if key is None:
        raise ValueError("no key with this id; `recollect keys list` shows all keys")
    print(json.dumps(_as_json(key), indent=2) if options.json else f"revoked {key.key_id}")
    return 0


def _with_keys(
    options: argparse.Namespace,
    action: str | None,
    work: "Callable[[KeyStore], Awaitable[T]]",
    changed: "Callable[[T], Key | None]",
) -> T:
    """Run an operation on the keys, and record a changed key in the audit log of its tenant."""
    from ..server.access.audit import AuditLog
    from ..server.access.keys import KeyStore

    url = resolve_new_url(options) if action == _CREATE else resolve_existing_url(options)

    async def run() -> T:
        async with KeyStore(url) as keys, AuditLog(url) as log:
            result = await work(keys)
            key = changed(result)
            if action is not None and key is not None:
                await log.record(key.tenant, None, action, f"key:{key.key_id}", 200)
            return result

    return asyncio.run(run())


# --- output ---


def _as_json(key: "Key") -> dict[str, Any]:
    times = (key.created_at, key.expires_at, key.revoked_at, key.last_used_at)
    names = ("created_at", "expires_at", "revoked_at", "last_used_at")
    times_as_text = dict(zip(names, map(_format_time, times), strict=True))
    return {"key_id": key.key_id, "tenant": key.tenant, "scope": key.scope, "name": key.name, **times_as_text}


def _format_time(time: datetime | None) -> str | None:
    from ..memory.times import format_time

    return None if time is None else format_time(time)


def _table(keys: "Sequence[Key]", now: datetime) -> list[str]:
    rows = [("KEY_ID", "TENANT", "SCOPE", "STATE", "LAST USED", "NAME"), *map(partial(_row, now), keys)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _row(now: datetime, key: "Key") -> tuple[str, ...]:
    used = "never" if key.last_used_at is None else f"{key.last_used_at:%Y-%m-%d %H:%M}"
    shown = (key.key_id, key.tenant, key.scope, _state(now, key), used, key.name)
    return tuple(text if text.isprintable() else ascii(text) for text in shown)


def _state(now: datetime, key: "Key") -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "valid"
    return f"{'valid until' if now < key.expires_at else 'expired'} {key.expires_at:%Y-%m-%d %H:%M}"


# --- arguments ---


def _expiry(text: str) -> datetime:
    """Parse an expiry: a number of hours or days from now, or a date in the future."""
    try:
        duration = _DURATION.fullmatch(text)
        if duration is None:
            given = datetime.fromisoformat(text)
            expiry = given if given.tzinfo else given.replace(tzinfo=UTC)
        else:
            expiry = datetime.now(UTC) + timedelta(**{_UNITS[duration[2]]: int(duration[1])})
        is_future = expiry > datetime.now(UTC)
    except (ValueError, OverflowError) as error:
        message = "must look like 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z"
        raise argparse.ArgumentTypeError(message) from error
    if not is_future:
        raise argparse.ArgumentTypeError("must be in the future")
    return expiry


def _key_id(text: str) -> str:
    """Parse the id of a key. A full key is rejected without repeating it, because it contains the secret."""
    if text.startswith("rk_"):
        raise argparse.ArgumentTypeError(
            "must be the id of the key (the part between rk_ and the next _), not the key itself"
        )
    if not re.fullmatch("[0-9a-f]{32}", text):
        raise argparse.ArgumentTypeError("must be 32 hexadecimal digits, as shown by `recollect keys list`")
    return text
