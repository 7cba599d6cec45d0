"""Converts errors of the `redis` package into ours.

A message names the server and never quotes the command.
"""

import re
from functools import cache
from typing import Any

from ...errors import (
    AccessDeniedError,
    ConnectionLostError,
    DatabaseBusyError,
    DiskFullError,
    ReadOnlyError,
    SchemaMismatchError,
    StorageError,
    TransientError,
    UnreachableError,
)
from ...extras import require_extra

_OF_A_CLUSTER = "the server belongs to a cluster: use a redis+cluster:// URL or a RedisCluster"

# The first word of a refusal is its code. Older servers put other words before the code if a script failed.
_REFUSALS: dict[str, tuple[type[StorageError], str]] = {
    "WRONGTYPE": (SchemaMismatchError, "a key of the session has another type"),
    "OOM": (DiskFullError, "the server has no memory left for the write; nothing was stored"),
    "MISCONF": (DiskFullError, "the server cannot write to its disk and accepts no writes until it can"),
    "READONLY": (ReadOnlyError, "the server is a read-only replica"),
    "NOPERM": (AccessDeniedError, "the user lacks the permission for this command"),
    "NOAUTH": (AccessDeniedError, "the server requires a password"),
    "WRONGPASS": (AccessDeniedError, "the server refused the user or the password"),
    "LOADING": (TransientError, "the server is still loading its data"),
    "BUSY": (TransientError, "the server is busy with a script"),
    "NOREPLICAS": (TransientError, "the server has too few replicas to take writes"),
    "MASTERDOWN": (TransientError, "the replica has lost its master"),
    "CLUSTERDOWN": (TransientError, "the cluster does not serve this session now"),
    "TRYAGAIN": (TransientError, "the cluster is moving this session to another node"),
    "MOVED": (StorageError, _OF_A_CLUSTER),
    "CROSSSLOT": (StorageError, _OF_A_CLUSTER),
}
_CODE = re.compile(rf"\b({'|'.join(_REFUSALS)})\b")


@cache
def redis_exceptions() -> Any:
    """Return the module `redis.exceptions`."""
    return require_extra("redis", "redis.exceptions", "RedisSession")


@cache
def redis_errors() -> tuple[type[Exception], ...]:
    """The base classes of the errors that the `redis` package raises."""
    module = redis_exceptions()
    return (module.RedisError, module.RedisClusterException, OSError)


def connect_error(error: Exception, server: str) -> StorageError:
    """Convert an error raised before the command was sent: nothing was written."""
    module = redis_exceptions()
    if isinstance(error, module.MaxConnectionsError) or "No connection available" in str(error):
        return busy_error(server)
    if isinstance(error, module.RedisClusterException):
        return _cluster_error(error, server)
    if isinstance(error, module.AuthenticationError | module.AuthorizationError):
        return AccessDeniedError(f"{server}: the server refused the user or the password")
    if isinstance(error, module.ResponseError | module.BusyLoadingError):
        return _reply_error(error, server)
    return UnreachableError(f"{server} cannot be reached; nothing was written")


def call_error(error: Exception, server: str) -> StorageError:
    """Convert an error raised after the command was sent. Unless the server refused it, it may have run."""
    module = redis_exceptions()
    if isinstance(error, module.TimeoutError):
        return ConnectionLostError(f"{server} did not answer in time: a write is stored whole, or not at all")
    if isinstance(error, module.AuthenticationError | module.ResponseError | module.BusyLoadingError):
        return _reply_error(error, server)
    return ConnectionLostError(f"the connection to {server} broke: a write is stored whole, or not at all")


def is_for_another_node(error: StorageError) -> bool:
    """Whether a cluster node was down or refused a command, so that another node may accept it."""
    module = redis_exceptions()
    refusals = module.AskError | module.TryAgainError | module.ClusterDownError  # a MovedError is an AskError
    return isinstance(error, UnreachableError) or isinstance(error.__cause__, refusals)


def busy_error(server: str) -> DatabaseBusyError:
    """The error for a timeout while waiting for a free connection."""
    return DatabaseBusyError(f"all connections to {server} stayed in use; nothing was written")


def _cluster_error(error: Exception, server: str) -> StorageError:
    """Convert a cluster error. The cause says why the client could not read the cluster nodes."""
    if isinstance(error.__cause__, redis_errors()) and error.__cause__ is not error:
        return connect_error(error.__cause__, server)
    if "not enabled" in str(error):
        return StorageError(f"{server} is not a cluster: use a redis:// URL or a Redis client")
    return TransientError(f"{server}: the cluster does not serve all sessions now")


def _reply_error(error: Exception, server: str) -> StorageError:
    code = getattr(error, "status_code", None) or ""
    found = _CODE.search(f"{code} {error}")
    if found:
        kind, what = _REFUSALS[found[1]]
        return kind(f"{server}: {what}")
    return StorageError(f"{server} refused the call")
