"""What the dashboard does when something is gone, or not allowed."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from . import story
from .places import REFUSED, UNREACHABLE, Place, Watch


def keys(place: Place, *arguments: str) -> str:
    """What `recollect keys` says, in a process of its own: the browser has the loop of this one."""
    command = [sys.executable, "-m", "recollect", "keys", *arguments, "--url", place.database]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def make_key(place: Place, scope: str, *more: str) -> str:
    told = keys(place, "create", "--tenant", "default", "--scope", scope, *more)
    return next(word for word in told.split() if word.startswith("rk_"))


def an_hour_passes(place: Place, key: str) -> None:
    """As far as a key is concerned."""
    with closing(sqlite3.connect(place.database)) as connection, connection:
        sql = "UPDATE api_keys SET expires_at = created_at WHERE key_id = ?"
        assert connection.execute(sql, [key.split("_")[1]]).rowcount == 1


def test_a_conversation_that_is_deleted_while_it_is_looked_at(page: Page, place: Place, watch: Watch) -> None:
    watch.expected = REFUSED
    with place.client() as client:
        conversation = story.record(client, "hugo", "I live in Rome.")
        place.open(page, f"/conversations/{conversation}")
        expect(page.locator(".message").get_by_text("I live in Rome.")).to_be_visible()
        assert client.delete(f"/v1/conversations/{conversation}").status_code == 200
    expect(page.get_by_text("This conversation was deleted")).to_be_visible()
    page.get_by_role("link", name="Go back").click()
    expect(page.get_by_role("heading", name="Conversations", level=1)).to_be_visible()


@pytest.mark.proof
def test_without_conversations_no_share_of_them_is_shown(page: Page, guarded_place: Place) -> None:
    guarded_place.open(page, "/runs")
    expect(page.get_by_text("Nothing to learn from yet.")).to_be_visible()
    expect(page.get_by_text("100%")).to_have_count(0)


def test_the_server_is_gone_and_comes_back(page: Page, guarded_place: Place, watch: Watch) -> None:
    watch.expected = f"{UNREACHABLE}|{REFUSED}"
    guarded_place.open(page)
    expect(page.get_by_text("No conversations yet")).to_be_visible()
    guarded_place.server.stop()
    expect(page.get_by_text("The server does not respond.")).to_be_visible()
    guarded_place.server.start()
    with guarded_place.client() as client:
        story.record(client, "ida", "I live in Graz.")
    expect(page.get_by_text("The server does not respond.")).to_be_hidden()
    expect(page.get_by_text("I live in Graz.")).to_be_visible()


def test_a_key_is_asked_for_kept_for_the_tab_and_asked_for_again_when_it_ends(
    page: Page, guarded_place: Place, watch: Watch
) -> None:
    watch.expected = REFUSED
    key = make_key(guarded_place, "admin")
    guarded_place.open(page)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This service requires an API key.")
    dialog.get_by_label("API key").fill("rk_wrong_key")
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_contain_text("This API key is not valid")
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button", name="Use this key").click()
    expect(page.get_by_text("default · admin")).to_be_visible()
    expect(dialog).to_have_count(0)
    page.reload()
    expect(page.get_by_text("default · admin")).to_be_visible()
    assert page.evaluate("Object.values(localStorage).join().includes('rk_')") is False
    assert page.context.cookies() == []
    keys(guarded_place, "revoke", key.split("_")[1])
    expect(dialog).to_contain_text("It may have expired or been revoked")


def test_a_key_that_expires_while_it_is_used_is_asked_for_again(
    page: Page, guarded_place: Place, watch: Watch
) -> None:
    watch.expected = REFUSED
    key = make_key(guarded_place, "admin", "--expires", "1h")
    guarded_place.open(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_have_count(0)
    an_hour_passes(guarded_place, key)
    expect(dialog).to_contain_text("It may have expired or been revoked")
    dialog.get_by_label("API key").fill(make_key(guarded_place, "admin"))
    dialog.get_by_role("button", name="Use this key").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("default · admin")).to_be_visible()


def test_a_weak_key_is_told_what_it_can_do(page: Page, guarded_place: Place, watch: Watch) -> None:
    watch.expected = REFUSED
    admin, reader = make_key(guarded_place, "admin"), make_key(guarded_place, "read")
    with guarded_place.client(admin) as client:
        conversation = story.record(client, "jan", "I live in Brno.")
    guarded_place.open(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("API key").fill(reader)
    dialog.get_by_role("button", name="Use this key").click()
    expect(page.get_by_text("Your key does not allow this.")).to_be_visible()
    expect(page.get_by_text("Enter a user and an agent, or use a key")).to_be_visible()
    page.get_by_role("search").get_by_label("User").fill("jan")
    page.get_by_role("search").get_by_label("Agent").fill("assistant")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("I live in Brno.")).to_be_visible()
    guarded_place.open(page, f"/conversations/{conversation}")
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("Your key does not allow this.")


def test_what_a_weak_key_may_not_do_is_told_beside_the_button(
    page: Page, guarded_place: Place, watch: Watch
) -> None:
    watch.expected = REFUSED
    admin, reader = make_key(guarded_place, "admin"), make_key(guarded_place, "read")
    with guarded_place.client(admin) as client:
        conversation = story.record(client, "kim", "I live in Oslo.")
    guarded_place.open(page)
    page.get_by_role("dialog").get_by_label("API key").fill(reader)
    page.get_by_role("button", name="Use this key").click()
    guarded_place.open(page, f"/conversations/{conversation}")
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.get_by_role("alert").get_by_text("Your key does not allow this.")).to_be_visible()
    expect(page.get_by_text("Open", exact=True)).to_be_visible()
