"""The page on running the service: its commands, settings and metrics exist."""

import re
import shlex
from pathlib import Path

from recollect.cli import _parser
from recollect.server.settings import Settings, setting_names
from recollect.testing.contract import in_event_loop

from .kit import serving

PAGE = (Path(__file__).parents[3] / "docs/how-to/run-in-production.md").read_text("utf-8")


def test_its_commands_are_commands_of_ours() -> None:
    commands = re.findall(r"^ {4}recollect (.+)$", PAGE, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        _parser().parse_args(shlex.split(command))


def test_its_settings_are_settings_of_ours() -> None:
    sections = "|".join(Settings.model_fields)
    named = set(re.findall(rf"\b((?:{sections})\.[a-z_]+)\b", PAGE))
    assert len(named) > 8
    assert named - set(setting_names()) == set()


@in_event_loop
async def test_its_metrics_are_those_that_are_served_and_none_is_left_out(migrated_url: str) -> None:
    memory = {"workers": 0, "embedder": "local"}
    async with serving(migrated_url, {"memory": memory}) as served:
        served.service.metrics.count_tokens(1, 1)
        await served.client.get("/metrics")
        text = (await served.client.get("/metrics")).text
    found = set(re.findall(r"^# TYPE (recollect_\w+) ", text, re.MULTILINE))
    found = {name for name in found if not name.endswith("_created")}
    named = set(re.findall(r"`(recollect_\w+)`", PAGE))
    # These are served if there are several server processes.
    assert named - found == {"recollect_server_processes", "recollect_server_process_restarts_total"}
    # How late it was last is of no use by itself, and texts that cannot be embedded are few.
    assert found - named == {"recollect_event_loop_lag_seconds", "recollect_embedder_unusable_texts"}
