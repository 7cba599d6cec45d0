"""Where these tests look, and what they see there."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from playwright.sync_api import Page

from recollect.testing.servers.service import ServiceServer

_AXE = Path(__file__).with_name("axe.min.js").read_text("utf-8")
_SEVERE = ("serious", "critical")
_NOTHING = r"(?!)"
REFUSED = r"the server responded with a status of 4\d\d"
UNREACHABLE = "net::ERR_"


@dataclass
class Place:
    """A service, its database, and the ids of what there is to look at."""

    server: ServiceServer
    database: str
    ids: dict[str, str]

    @property
    def url(self) -> str:
        """Where the service answers."""
        return self.server.url

    def client(self, key: str | None = None) -> httpx2.Client:
        """A client of the API."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60)

    def open(self, page: Page, route: str = "/") -> None:
        """Look at a page of the dashboard, and wait until it is there."""
        page.goto(f"{self.url}/#{route}")
        page.locator("h1").wait_for()


@dataclass
class Watch:
    """Hears all that a page complains about, and where it asks."""

    expected: str = _NOTHING
    """Which complaints belong to a test."""
    complaints: list[str] = field(default_factory=list)
    strangers: set[str] = field(default_factory=set)

    def over(self, page: Page) -> None:
        """Watch a page."""
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.hostname != "127.0.0.1":
            self.strangers.add(url)


def severe_violations(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds that keeps people out: rules, and where they are broken."""
    # Evaluated and not added as a script: the page's policy forbids that, and is to stay in force.
    page.evaluate(_AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (each["id"], [" ".join(node["target"]) for node in each["nodes"]])
        for each in found["violations"]
        if each["impact"] in _SEVERE
    ]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return max(0, wide)


_SPILLS = """() => {
  const boxes = ".card, .panel, .row, .message, .call, .why, .filters, .strategy, header, nav, main";
  const scrolling = "svg, dialog, pre, .visually-hidden, .scroll, .scroll-wide, .plot-place";
  const found = [];
  for (const box of document.querySelectorAll(boxes)) {
    const outer = box.getBoundingClientRect();
    for (const part of box.querySelectorAll("*")) {
      const inner = part.getBoundingClientRect();
      const isShown = inner.width && part.checkVisibility() && !part.closest(scrolling);
      if (!isShown || getComputedStyle(part).position === "fixed") continue;
      if (inner.right > outer.right + 1 || inner.left < outer.left - 1) {
        found.push(`${part.className || part.tagName} out of ${box.className || box.tagName}`);
      }
    }
  }
  return [...new Set(found)];
}"""


def spills(page: Page) -> list[str]:
    """The parts of a page that are not within their card, panel, row or bar."""
    found: list[str] = page.evaluate(_SPILLS)
    return found
