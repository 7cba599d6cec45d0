"""`recollect import claude-code`, and those of other coding agents: their transcripts."""

import argparse
import asyncio
import getpass
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..service_client import is_service_url
from .arguments import NotFoundError, raise_usage_error
from .database import open_store, resolve_url
from .output import plural, print_json, print_note, progress

if TYPE_CHECKING:
    from ..capture.importing import Program, TranscriptImporter

PROGRAMS = {
    "claude-code": "transcripts of Claude Code (default: ~/.claude/projects, or in CLAUDE_CONFIG_DIR)",
    "codex": "transcripts of Codex (default: ~/.codex/sessions, or in CODEX_HOME)",
    "gemini": "transcripts of Gemini CLI (default: ~/.gemini/tmp)",
}
_PAUSE = 1.0  # seconds between two looks for changes


def import_transcripts(options: argparse.Namespace) -> int:
    """Import transcripts and print the report. The exit code is 1 if anything was lost."""
    from ..capture.importing import PROGRAMS as KNOWN

    program = KNOWN[options.kind]
    root = Path(options.source) if options.source else program.root()
    if is_service_url(resolve_url(options)):
        raise_usage_error("transcripts are imported into a database: --url must not be a service")
    if options.dry_run:
        raise_usage_error("transcripts have no dry run: import them into a file of their own with --url")
    if not root.exists():
        raise NotFoundError(f"no transcripts at {root}: name their folder")
    return asyncio.run(_import(options, program, root))


async def _import(options: argparse.Namespace, program: "Program", root: Path) -> int:
    from ..capture.importing import TranscriptImporter, place_of
    from ..capture.settings import read_settings
    from ..capture.state import CaptureState, capture_home
    from ..moving.kinds import ReadOptions

    user = options.user or os.environ.get("RECOLLECT_USER") or getpass.getuser()
    learn = True if options.learn is None else options.learn
    state = CaptureState()
    try:
        async with open_store(options, create=True) as store:
            await store.memory_database.prepared()
            importer = TranscriptImporter(
                store,
                ReadOptions(options.tenant, options.agent, user),
                state,
                place_of(resolve_url(options)),
                learn=learn,
                excluded=read_settings(capture_home()).excluded,
            )
            return await _run(options, importer, program, root)
    finally:
        state.close()


async def _run(
    options: argparse.Namespace, importer: "TranscriptImporter", program: "Program", root: Path
) -> int:
    from ..capture.importing import follow
    from .moving import print_report

    with progress("importing"):
        count = await importer.import_all(program, root, again=options.again)
    if options.json:
        print_json({**importer.report.to_dict(), "transcripts": count})
    else:
        print_report(importer.report)
        print_note(f"{plural(count, 'transcript')} read")
    if options.follow:
        print_note("following: press Ctrl-C to end")
        await follow(importer, program, root, lambda: asyncio.sleep(_PAUSE))
    return 0 if importer.report.is_complete else 1
