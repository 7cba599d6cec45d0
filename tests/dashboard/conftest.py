"""A service with a story to show, and a real browser that looks at it."""

import asyncio
import os
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from recollect.testing.providers import ProviderServer
from recollect.testing.servers.service import ServiceServer

from . import graph, story
from .places import Place, Watch

_CHROMIUM = "RECOLLECT_TEST_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ROOT = Path(__file__).parents[2]
_PATIENCE = 30_000  # milliseconds; machines may be busy

expect.set_options(timeout=_PATIENCE)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser: `RECOLLECT_TEST_CHROMIUM`, or the one in the path. Without one the tests fail."""
    found = os.environ.get(_CHROMIUM) or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.fail(f"there is no Chromium: apt-get install chromium, or name one in {_CHROMIUM}")
    return found


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A service that is open, with the story told."""
    folder = tmp_path_factory.mktemp("dashboard")
    database = str(folder / "recollect.db")
    # A provider of its own: others forget what was scripted.
    with ProviderServer() as provider, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])))
        asyncio.run(story.fail_to_learn(database, provider))
        with ServiceServer(database, story.settings(folder, provider)) as server:
            with httpx2.Client(base_url=server.url, timeout=60) as client:
                ids = {**story.tell(client), "chat": story.chat(client, provider)}
                ids["memory"] = story.memory_of(client, "ada")
                ids["thread"] = graph.run_a_thread(database)
                story.wait_until_learned(client)
            yield Place(server, database, ids)


@pytest.fixture(scope="module")
def guarded_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A service of its own, on a port that stays the same, for tests that lock and stop it."""
    database = str(tmp_path_factory.mktemp("guarded") / "recollect.db")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = {"server": {"port": port, "grace_seconds": 0}, "memory": {"embedder": "none", "workers": 1}}
    with ServiceServer(database, settings) as server:
        yield Place(server, database, {})


# Of a module, and made after the services: while it lives, nothing else can run a loop in this thread.
@pytest.fixture(scope="module")
def browser(place: Place, chromium: str) -> Iterator[Browser]:  # noqa: ARG001
    """A browser that all tests of a module share."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Somebody at a desk who reads English; nothing is left of those before."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(_PATIENCE)
    yield context
    context.close()


@pytest.fixture
def watch() -> Iterator[Watch]:
    """What goes wrong in a page; at the end nothing has, but what a test expects."""
    watch = Watch()
    yield watch
    complaints = [each for each in watch.complaints if not re.search(watch.expected, each)]
    assert complaints == []
    assert watch.strangers == set()


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Page:
    """A page that is watched."""
    page = context.new_page()
    watch.over(page)
    return page
