"""The threads of LangGraph in the dashboard."""

import re
from urllib.parse import quote

from playwright.sync_api import Page, expect

from .graph import THREAD
from .places import REFUSED, Place, Watch, severe_violations


def test_a_thread_is_found_and_its_steps_are_turns(page: Page, place: Place) -> None:
    place.open(page, "/threads")
    page.get_by_role("link", name=THREAD).click()
    expect(page.get_by_role("heading", name=THREAD, level=1)).to_be_visible()
    steps = page.locator("li.step")
    expect(steps.first).to_contain_text("Waits for a person:")
    expect(steps.filter(has_text="Or by bus?")).to_contain_text("fork")
    expect(steps.filter(has_text="find_trains")).to_contain_text("look")
    steps.filter(has_text="find_trains").locator("summary").first.click()
    expect(page.get_by_text('{"to": "Porto"}')).to_be_visible()
    expect(page.get_by_text("09:39 and 11:39")).to_be_visible()
    assert page.title() != "owned"  # what a message holds does not run
    assert severe_violations(page) == []


def test_a_fork_is_a_branch_to_choose(page: Page, place: Place) -> None:
    place.open(page, f"/threads/{quote(THREAD, safe='')}")
    branches = page.get_by_role("region", name="Branches")
    expect(branches.locator("li")).to_have_count(2)
    expect(branches.locator("li", has_text="fork-1")).to_contain_text("current")
    page.get_by_role("button", name="Show branch main").click()
    expect(page.locator("li.step").first).to_contain_text("Booked, as you said: the window seat.")
    expect(page.get_by_text("Or by bus?")).to_have_count(0)


def test_threads_are_filtered_by_user_and_a_missing_one_says_so(
    page: Page, place: Place, watch: Watch
) -> None:
    place.open(page, "/threads")
    page.get_by_label("User").fill("nobody")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No threads")).to_be_visible()
    watch.expected = REFUSED
    place.open(page, "/threads/none")
    expect(page.get_by_text("This thread no longer exists.")).to_be_visible()


def test_the_page_is_in_chinese_too(page: Page, place: Place) -> None:
    place.open(page, f"/threads/{quote(THREAD, safe='')}")
    page.get_by_label("Language").select_option("zh")
    expect(page.locator("li.step").first).to_contain_text("等待人工处理")
    expect(page.locator("body")).not_to_contain_text(re.compile(r"thread\.[a-z]"))
