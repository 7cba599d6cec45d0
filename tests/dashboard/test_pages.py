"""Every page with real data: as wide as its window, sound for all who use it, and light enough."""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from .places import Place, Watch, overflow, severe_violations, spills

SEARCH = "/search?q=When+is+the+exam%3F&agent=assistant&user=ada"


def routes(place: Place) -> dict[str, str]:
    """Each page, and words that it shows when its data are there."""
    ids = place.ids
    return {
        "/": "I have a cello.",
        f"/conversations/{ids['chat']}": "Which train can I take on Friday?",
        f"/conversations/{ids['hostile']}": "document.title='owned'",
        "/memories": "李雷",
        f"/memories/{ids['memory']}": "The user is allergic to peanuts.",
        SEARCH: "The user's exam is on 3 May 2026.",
        "/threads": "a trip/to Porto",
        f"/threads/{quote(ids['thread'], safe='')}": "Waits for a person:",
        "/runs": "My name is Ada and I live in Porto.",
        "/usage": "Tokens used today",
    }


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (360, "light"),
        pytest.param(768, "dark", marks=pytest.mark.proof),
        pytest.param(1280, "light", marks=pytest.mark.proof),
    ],
)
def test_every_page_fits_and_is_sound_for_all(
    browser: Browser, place: Place, watch: Watch, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
    )
    page = context.new_page()
    watch.over(page)
    found = {}
    for route, words in routes(place).items():
        place.open(page, route)
        expect(page.get_by_text(words).first).to_be_visible()
        found[route] = (overflow(page), severe_violations(page))
    context.close()
    assert found == dict.fromkeys(found, (0, []))


@pytest.mark.parametrize(
    ("width", "language"),
    [
        (1440, "en-GB"),
        (360, "zh-CN"),
        *(
            pytest.param(width, language, marks=pytest.mark.proof)
            for width, language in (
                (360, "en-GB"),
                (768, "en-GB"),
                (1920, "en-GB"),
                (768, "zh-CN"),
                (1440, "zh-CN"),
                (1920, "zh-CN"),
            )
        ),
    ],
)
def test_nothing_spills_out_of_its_box(
    browser: Browser, place: Place, watch: Watch, width: int, language: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, locale=language)
    page = context.new_page()
    watch.over(page)
    found = {}
    for route in routes(place):
        place.open(page, route)
        expect(page.locator(".loading")).to_have_count(0)
        expect(page.locator("main :is(.card, .panel, .row, .message, .step)").first).to_be_visible()
        found[route] = (overflow(page), spills(page))
    context.close()
    assert found == dict.fromkeys(found, (0, []))


def test_what_is_unfolded_is_sound_too(page: Page, place: Place) -> None:
    place.open(page, f"/memories/{place.ids['memory']}")
    entry = page.locator("article", has_text="lives in Lisbon (since March 2026)")
    entry.get_by_role("button", name="Why?").click()
    expect(entry.get_by_text("I moved to Lisbon in March 2026.", exact=True)).to_be_visible()
    assert severe_violations(page) == []
    entry.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert severe_violations(page) == []


def test_the_first_page_is_light(page: Page, place: Place) -> None:
    place.open(page)
    expect(page.get_by_text("I have a cello.")).to_be_visible()
    timings = page.evaluate(
        "JSON.stringify(performance.getEntries().filter((entry) => 'transferSize' in entry))"
    )
    entries = json.loads(timings)
    assert len(entries) > 10
    assert sum(entry["decodedBodySize"] for entry in entries) < 200_000


def test_a_page_that_is_not_there_says_so(page: Page, place: Place) -> None:
    place.open(page, "/nothing/here")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()


def test_the_keyboard_skips_to_the_content_and_the_heading_is_read_out(page: Page, place: Place) -> None:
    place.open(page)
    expect(page.get_by_text("I have a cello.")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.get_by_role("link", name="Memories").press("Enter")
    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_focused()
    expect(page).to_have_title("Memories · Recollect")


def test_the_language_is_that_of_the_browser_and_can_be_changed(browser: Browser, place: Place) -> None:
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    place.open(page)
    expect(page.get_by_role("heading", name="对话", level=1)).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    page.get_by_label("语言").select_option("en")
    expect(page.get_by_role("heading", name="Conversations", level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Conversations", level=1)).to_be_visible()
    context.close()


def test_the_colours_are_those_of_the_system_and_can_be_changed(page: Page, place: Place) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page.emulate_media(color_scheme="dark")
    place.open(page)
    dark = background()
    page.emulate_media(color_scheme="light")
    light = background()
    assert dark != light
    page.get_by_label("Theme").select_option("dark")
    assert background() == dark
    page.reload()
    assert background() == dark
