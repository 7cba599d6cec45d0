"""The errors of Redis as errors of ours: what happened, where, and nothing of what was sent."""

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

# A refusal is known by its first word. Older servers put their own words before those of a script.
_REFUSALS: dict[str, tuple[type[StorageError], str]] = {
    "WRONGTYPE": (SchemaMismatchError, "a key of the session holds another kind of value"),
    "OOM": (DiskFullError, "the server has no memory left for the write; nothing of it was stored"),
    "MISCONF": (DiskFullError, "the server cannot write to its disk and takes no writes until it can"),
    "READONLY": (ReadOnlyError, "the server is a replica that takes no writes"),
    "NOPERM": (AccessDeniedError, "the user has not the right to do this"),
    "NOAUTH": (AccessDeniedError, "the server wants a password"),
    "WRONGPASS": (AccessDeniedError, "the server refused the user or the password"),
    "LOADING": (TransientError, "the server is still reading its data"),
    "BUSY": (TransientError, "the server is held up by a script"),
    "NOREPLICAS": (TransientError, "the server has too few replicas to take writes"),
    "MASTERDOWN": (TransientError, "the replica has lost its master"),
    "CLUSTERDOWN": (TransientError, "the cluster does not serve this session now"),
    "TRYAGAIN": (TransientError, "the cluster is moving this session to another node"),
    "MOVED": (StorageError, _OF_A_CLUSTER),
    "CROSSSLOT": (StorageError, _OF_A_CLUSTER),
}
_CODE = re.compile(rf"\b({'|'.join(_REFUSALS)})\b")


@cache
def exceptions() -> Any:
    """The exceptions of the `redis` package."""
    return require_extra("redis", "redis.exceptions", "RedisSession")


@cache
def redis_errors() -> tuple[type[Exception], ...]:
    """What the `redis` package raises."""
    module = exceptions()
    return (module.RedisError, module.RedisClusterException, OSError)


def connecting_fault(error: Exception, server: str) -> StorageError:
    """An error from before the command was sent: nothing was written."""
    module = exceptions()
    if isinstance(error, module.MaxConnectionsError) or "No connection available" in str(error):
        return busy_fault(server)
    if isinstance(error, module.RedisClusterException):
        return _cluster_fault(error, server)
    if isinstance(error, module.AuthenticationError | module.AuthorizationError):
        return AccessDeniedError(f"{server}: the server refused the user or the password")
    if isinstance(error, module.ResponseError | module.BusyLoadingError):
        return _refusal(error, server)
    return UnreachableError(f"{server} cannot be reached; nothing was written")


def call_fault(error: Exception, server: str) -> StorageError:
    """An error from when the command was sent: unless the server refused it, it may have been carried out."""
    module = exceptions()
    if isinstance(error, module.TimeoutError):
        return ConnectionLostError(f"{server} did not answer in time: a write is stored whole, or not at all")
    if isinstance(error, module.AuthenticationError | module.ResponseError | module.BusyLoadingError):
        return _refusal(error, server)
    return ConnectionLostError(f"the connection to {server} broke: a write is stored whole, or not at all")


def is_for_another_node(error: StorageError) -> bool:
    """Whether a node of a cluster was down or refused a command, so that another may take it."""
    module = exceptions()
    refusals = module.AskError | module.TryAgainError | module.ClusterDownError  # a MovedError is an AskError
    return isinstance(error, UnreachableError) or isinstance(error.__cause__, refusals)


def busy_fault(server: str) -> DatabaseBusyError:
    """No connection became free in time."""
    return DatabaseBusyError(f"all connections to {server} stayed in use; nothing was written")


def _cluster_fault(error: Exception, server: str) -> StorageError:
    """The client says in the cause why it could not find out about the cluster."""
    if isinstance(error.__cause__, redis_errors()) and error.__cause__ is not error:
        return connecting_fault(error.__cause__, server)
    if "not enabled" in str(error):
        return StorageError(f"{server} is no cluster: use a redis:// URL or a Redis client")
    return TransientError(f"{server}: the cluster does not serve all sessions now")


def _refusal(error: Exception, server: str) -> StorageError:
    code = getattr(error, "status_code", None) or ""
    found = _CODE.search(f"{code} {error}")
    if found:
        kind, what = _REFUSALS[found[1]]
        return kind(f"{server}: {what}")
    return StorageError(f"{server} refused the call")
