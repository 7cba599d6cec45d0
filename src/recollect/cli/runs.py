"""`recollect runs`: list, show and retry runs of the learning pipeline."""

import argparse
import asyncio
from typing import TYPE_CHECKING

from ..memory.operations.lists import ListRuns
from .arguments import (
    Commands,
    NotFoundError,
    add_command,
    add_database_options,
    add_json_option,
    add_operation_options,
    operation_from,
    raise_usage_error,
)
from .database import open_store
from .output import colorize, describe_partial, one_line, plural, print_json, print_note, table

if TYPE_CHECKING:
    from ..memory.run import Coverage, Run

_NO_RUN = "no run with this id; `recollect runs list` shows all runs"
_PAGE = 200


def add_runs_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    runs = add_command(
        commands,
        "runs",
        "list, show and retry the runs that learn from conversations",
        "  recollect runs list --status failed\n  recollect runs retry --failed\n",
    )
    actions = runs.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in (_add_list(actions), _add_show(actions), _add_retry(actions)):
        add_database_options(action)
        add_json_option(action)


def _add_list(actions: Commands) -> argparse.ArgumentParser:
    listing = add_command(
        actions,
        "list",
        "list runs, and count remembered conversations",
        "  recollect runs list\n  recollect runs list --status failed --json\n",
        _list,
    )
    add_operation_options(listing, ListRuns)
    return listing


def _add_show(actions: Commands) -> argparse.ArgumentParser:
    show = add_command(
        actions,
        "show",
        "show a run with its stages and failures",
        "  recollect runs show 5f0c3c1e-0d0b-4a43-9f57-8f6a5a6f2f11\n",
        _show,
    )
    show.add_argument("run_id", metavar="RUN_ID", help="the id, as shown by `recollect runs list`")
    return show


def _add_retry(actions: Commands) -> argparse.ArgumentParser:
    retry = add_command(
        actions,
        "retry",
        "retry failed runs from the stage that failed",
        "  recollect runs retry 5f0c3c1e-0d0b-4a43-9f57-8f6a5a6f2f11\n  recollect runs retry --failed\n",
        _retry,
    )
    retry.add_argument(
        "run_id", nargs="?", metavar="RUN_ID", help="the id, as shown by `recollect runs list`"
    )
    retry.add_argument("--failed", action="store_true", help="retry all failed runs")
    return retry


# --- actions ---


def _list(options: argparse.Namespace) -> int:
    found, coverage = asyncio.run(_read(options))
    if options.json:
        print_json({"coverage": vars(coverage), "runs": [run.to_dict() for run in found]})
        return 0
    if found:
        print(table(("RUN", "STATUS", "TRIES", "CREATED", "MODEL", "ERROR"), map(_row, found)))
    print_note(
        f"{plural(coverage.remembered, 'conversation')} remembered, {coverage.pending} pending,"
        f" {coverage.failed} failed{describe_partial(coverage.partial)}"
    )
    return 0


async def _read(options: argparse.Namespace) -> "tuple[list[Run], Coverage]":
    async with open_store(options) as store:
        found = await store.perform(operation_from(options, ListRuns))
        return found, await store.coverage()


def _row(run: "Run") -> tuple[object, ...]:
    created = f"{run.created_at:%Y-%m-%d %H:%M}"
    return run.run_id, run.status, run.attempts, created, run.model or "-", run.error or "-"


def _show(options: argparse.Namespace) -> int:
    run = asyncio.run(_get(options))
    if run is None:
        raise NotFoundError(_NO_RUN)
    if options.json:
        print_json(run.to_dict())
    else:
        print("\n".join(_describe(run)))
    return 0


async def _get(options: argparse.Namespace) -> "Run | None":
    async with open_store(options) as store:
        return await store.get_run(options.run_id)


def _describe(run: "Run") -> list[str]:
    lines = [
        colorize(f"{one_line(run.run_id)}: {run.status}", "bold"),
        f"  messages {run.first_index} to {run.last_index} of conversation {one_line(run.conversation_id)}",
    ]
    if run.kind == "mind":
        lines.append("  infers the mind of the user from all entries, after what these messages taught")
    for stage in run.stages:
        tokens = f"{stage.prompt_tokens + stage.completion_tokens:,} tokens"
        by = f"{stage.stage} by {one_line(stage.model)}"
        lines.append(f"  {stage.finished_at:%Y-%m-%d %H:%M}  {by}, {tokens}")
    if run.left_out:
        lines.append(colorize(f"  {run.left_out:,} sentences or messages were not read completely", "yellow"))
    for verb, counts in (("dropped", run.dropped), ("masked", run.masked)):
        if counts:
            named = ", ".join(f"{count:,} × {one_line(name)}" for name, count in counts.items())
            lines.append(f"  {verb}: {named}")
    for failure in run.failures:
        what = one_line(f"try {failure.attempt}, {failure.stage}: {failure.error}")
        lines.append(colorize(f"  {failure.failed_at:%Y-%m-%d %H:%M}  {what}", "red"))
    if run.failures:
        lines.append("  use --json to see the responses of the model")
    return lines


def _retry(options: argparse.Namespace) -> int:
    if (options.run_id is None) != options.failed:
        raise_usage_error("pass a run id, or --failed for all failed runs")
    retried = asyncio.run(_reopen(options))
    if options.json:
        print_json({"retried": retried})
    else:
        print(f"{plural(len(retried), 'run')} will be retried")
        print_note("the service or a worker retries them; `recollect worker --until-idle` does it now")
    return 0


async def _reopen(options: argparse.Namespace) -> list[str]:
    async with open_store(options) as store:
        if options.run_id is not None and await store.get_run(options.run_id) is None:
            raise NotFoundError(_NO_RUN)
        wanted = [options.run_id]
        if options.failed:
            wanted = [run.run_id for run in await store.list_runs("failed", limit=_PAGE)]
        retried = []
        while wanted:
            for run_id in wanted:
                await store.retry_run(run_id)
            retried += wanted
            more = await store.list_runs("failed", limit=_PAGE) if options.failed else []
            wanted = [run.run_id for run in more if run.run_id not in retried]
        return retried
