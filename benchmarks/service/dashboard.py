"""The dashboard in a real browser: how long until each page can be used, and what the first one weighs."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Browser, Page, async_playwright

from recollect.memory.store import MemoryStore

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind
from ..memory.stores import url_of
from ..memory.texts import sentences, told
from .client import Connection, encode
from .contenders import OURS
from .processes import Running, serving
from .requests import AGENT, bodies

_USERS = 1000
_AT_ONCE = 32
_KNOWN = "known"  # the user of whom much is known
_NEEDLE = "a needle in the hay"
_FIRST_PAGE = ("/", "/v1/whoami", "/v1/conversations?limit=50")
_PATIENCE = 30_000  # milliseconds
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PAGES = ("first", "words", "rare", "long", "memories", "memory", "search", "runs", "usage")
_METRICS = (
    Metric("first page, server", has_ratio=False),
    Metric("first page, transferred", "KB", has_ratio=False),
    *(Metric(f"{page}, until usable", has_ratio=False) for page in _PAGES),
)


@dataclass(frozen=True)
class Volume:
    """How much there is to look at."""

    conversations: int
    entries: int
    messages: int
    """Of the longest conversation."""


def look(databases: Databases, kind: Kind, folder: Path, volume: Volume, repeats: int) -> Measure:
    """Open every page, each time in a browser that knows nothing yet."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make, async_playwright() as playwright:
            place = await make()
            pages = await _fill(place, volume)
            settings = {"memory.workers": "0", "memory.embedder": "none"}
            async with serving(place, folder, settings) as server:
                browser = await playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
                yield {OURS: partial(_sample, browser, server, pages)}
                await browser.close()

    what = f"pages over {volume.conversations:,} conversations and {volume.entries:,} entries, until usable"
    return Measure(f"dashboard-{kind}", what, _METRICS, repeats, open_all, (OURS,))


def _chromium() -> str:
    found = os.environ.get("RECOLLECT_TEST_CHROMIUM") or next(
        filter(None, map(shutil.which, _CHROMIUM)), None
    )
    if found is None:
        raise RuntimeError("there is no Chromium: apt-get install chromium, or set RECOLLECT_TEST_CHROMIUM")
    return found


# --- what there is to look at ---


async def _fill(place: str, volume: Volume) -> dict[str, tuple[str, str]]:
    """Make it; each page by its name, with words that it shows when it can be used."""
    async with MemoryStore(url_of(place), embedder=None, workers=0, create_tables=True) as store:
        said = [{"role": "user", "content": f"{_NEEDLE} {number}"} for number in range(volume.messages)]
        long = await store.record_conversation(AGENT, _KNOWN, said)
        waiting = islice(bodies(7, _USERS), volume.conversations - 1)
        await asyncio.gather(*(_record(store, waiting) for _ in range(_AT_ONCE)))
        facts = islice(sentences(8), volume.entries)
        await asyncio.gather(*(_learn(store, facts) for _ in range(_AT_ONCE)))
    asked = urlencode({"q": "bought", "agent": AGENT, "user": _KNOWN})
    return {
        "first": ("/", ".row"),
        "words": ("/conversations?q=the", ".row"),
        "rare": (f"/conversations?{urlencode({'q': _NEEDLE})}", ".row"),
        "long": (f"/conversations/{long.conversation_id}", ".message >> nth=99"),
        "memories": ("/memories", ".card"),
        "memory": (f"/memories/{long.memory_id}", "article"),
        "search": (f"/search?{asked}", ".hit"),
        "runs": ("/runs", ".run"),
        "usage": ("/usage", ".figures"),
    }


async def _record(store: MemoryStore, waiting: Iterator[dict[str, Any]]) -> None:
    for body in waiting:
        await store.record_conversation(**body)


async def _learn(store: MemoryStore, facts: Iterator[str]) -> None:
    for fact in facts:
        await store.add_entry(AGENT, _KNOWN, "event", told(fact))


# --- how long it takes ---


async def _sample(browser: Browser, server: Running, pages: Mapping[str, tuple[str, str]]) -> Sample:
    sample = {"first page, server": await _server_time(server)}
    for name, (route, shown) in pages.items():
        context = await browser.new_context(viewport={"width": 1280, "height": 900})
        page = await context.new_page()
        started = perf_counter()
        await page.goto(f"http://127.0.0.1:{server.port}/#{route}", wait_until="commit")
        await page.locator(shown).first.wait_for(timeout=_PATIENCE)
        sample[f"{name}, until usable"] = perf_counter() - started
        if name == "first":
            sample["first page, transferred"] = await _transferred(page) / 1000
        await context.close()
    return sample


async def _server_time(server: Running) -> float:
    """Seconds that what the first page asks for takes, one after the other, without a browser."""
    connection = await Connection.open(server.port)
    started = perf_counter()
    for path in _FIRST_PAGE:
        answer = await connection.ask(encode("GET", path))
        assert answer.status == 200
    seconds = perf_counter() - started
    connection.close()
    return seconds


async def _transferred(page: Page) -> float:
    """Bytes that have come over the wire."""
    script = "JSON.stringify(performance.getEntries().map((entry) => entry.transferSize ?? 0))"
    return float(sum(json.loads(await page.evaluate(script))))
