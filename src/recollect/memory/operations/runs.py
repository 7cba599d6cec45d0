"""One run of learning: reading and retrying it."""

from dataclasses import dataclass

from ..run import Run
from .description import Key, Operation, Route


@dataclass(frozen=True)
class GetRun(Operation[Run | None]):
    """A run with its finished stages, and its failed attempts with the responses of the model."""

    route = Route("GET", "/v1/runs/{run_id}", "runs.get", "Read a run", codes=("not_found",))

    run_id: Key


@dataclass(frozen=True)
class RetryRun(Operation[None]):
    """Retry a failed run from the stage at which it failed. Any other run is a conflict."""

    route = Route(
        "POST",
        "/v1/runs/{run_id}/retry",
        "runs.retry",
        "Retry a failed run",
        scope="write",
        codes=("not_found", "conflict"),
    )

    run_id: Key
