"""What people do with the dashboard."""

import re
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from . import story
from .places import REFUSED, Place, Watch


def test_from_what_was_said_to_gone(page: Page, place: Place, watch: Watch) -> None:
    watch.expected = REFUSED  # the last page is that of a conversation that is gone
    place.open(page)
    with place.client() as client:
        conversation = story.record(client, "eve", "I live in Vienna.", "I love playing the harp.")

    # It appears by itself, and is watched being remembered.
    page.get_by_role("link", name="I live in Vienna.").click()
    expect(page.get_by_text("Learning is complete.")).to_be_visible()
    page.get_by_role("link", name="Memory of this user").click()
    expect(page.get_by_text("The user likes playing the harp.")).to_be_visible()

    # It is found, with what its score is made of.
    page.get_by_role("main").get_by_role("link", name="Search").click()
    page.get_by_label("Question").fill("Which instrument does she play, the harp?")
    page.get_by_role("button", name="Search", exact=True).click()
    hit = page.locator(".hit", has_text="The user likes playing the harp.")
    hit.get_by_text("Score details").click()
    expect(hit.get_by_text("Matching words")).to_be_visible()

    # Why: the words themselves, and the way to them.
    hit.get_by_role("button", name="Why?").click()
    expect(hit.get_by_role("blockquote")).to_have_text("I love playing the harp.")
    hit.get_by_role("link", name="Go to the message").click()
    expect(page.locator(".message.target")).to_contain_text("I love playing the harp.")

    # Deleted, and gone with all that was learned from it.
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Conversations", level=1)).to_be_visible()
    expect(page.get_by_text("I live in Vienna.")).to_have_count(0)
    place.open(page, f"/conversations/{conversation}")
    expect(page.get_by_text("This conversation was deleted")).to_be_visible()
    place.open(page, "/search?q=harp&agent=assistant&user=eve")
    expect(page.get_by_text("No results")).to_be_visible()


def test_contents_are_shown_and_never_run(page: Page, place: Place) -> None:
    place.open(page, f"/conversations/{place.ids['hostile']}")
    expect(page.locator(".message").get_by_text(story.SCRIPT)).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    assert "owned" not in page.title().split(" · ")[-1]
    expect(page.locator(".message").get_by_text("invoice⟨U+202E⟩gnp.exe")).to_be_visible()
    expect(page.locator(".message").get_by_text("⟨U+0007⟩bell")).to_be_visible()
    expect(page.locator(".message").get_by_text(story.EMOJI)).to_be_visible()
    long = page.locator(".message", has_text="long long")
    assert len(long.inner_text()) < 3000
    long.get_by_role("button", name="Show all 1,045,000 characters").click()
    expect(long.get_by_role("button", name="Show less")).to_be_visible()
    assert len(long.locator("bdi").text_content() or "") == len(story.LONGEST)


def test_names_and_what_is_known_are_shown_and_never_run(page: Page, place: Place) -> None:
    user = f"{story.SCRIPT} {story.OVERRIDE} {story.EMOJI}"
    with place.client() as client:
        conversation = story.record(client, user, story.SCRIPT)
        memory = story.memory_of(client, user)
        entry = {"content_type": "mind", "content_text": f"{story.SCRIPT} {story.OVERRIDE}"}
        assert client.post(f"/v1/memories/{memory}/entries", json=entry).status_code == 201
        branch = {"from_turn": 1, "name": story.SCRIPT}
        path = f"/v1/conversations/{conversation}/branches"
        assert client.post(path, json=branch).status_code == 201
    asked = urlencode({"q": "owned", "agent": "assistant", "user": user})
    for route in (
        "/",
        f"/conversations?{urlencode({'q': 'owned'})}",
        f"/conversations?{asked}",
        f"/conversations/{conversation}",
        "/memories",
        f"/memories/{memory}",
        f"/search?{asked}",
    ):
        place.open(page, route)
        expect(page.get_by_role("main").get_by_text("<script>").first).to_be_visible()
        assert page.locator("main img, main script").count() == 0, route
        assert page.evaluate("document.title").endswith("Recollect"), route
        assert "\u202e" not in page.get_by_role("main").inner_text(), route


def test_calls_of_tools_are_folded(page: Page, place: Place) -> None:
    place.open(page, f"/conversations/{place.ids['chat']}")
    call = page.locator(".call", has_text="weather")
    expect(call.get_by_text("a light breeze from the sea")).to_be_hidden()
    call.get_by_text("Called").click()
    expect(call.get_by_text("a light breeze from the sea")).to_be_visible()
    expect(call.get_by_text('{"city": "Porto"}')).to_be_visible()


def test_a_strategy_changes_what_the_model_sees_and_not_what_was_said(page: Page, place: Place) -> None:
    place.open(page, f"/conversations/{place.ids['chat']}")
    page.get_by_role("button", name="What the model sees").click()
    expect(page.get_by_text("The model sees everything: 14 items.")).to_be_visible()
    page.get_by_role("combobox", name="Strategy").select_option("trim")
    page.get_by_label("Maximum turns").fill("2")
    page.get_by_label("Turns to keep").fill("1")
    page.get_by_role("button", name="Save strategy").click()
    expect(page.get_by_text("The model sees 2 of 14 items.")).to_be_visible()
    expect(page.get_by_text("Can you help me plan a weekend?").nth(1)).to_be_hidden()
    page.get_by_role("button", name="Messages", exact=True).click()
    expect(page.locator(".message").get_by_text("Can you help me plan a weekend?")).to_be_visible()
    page.get_by_role("button", name="What the model sees").click()
    page.get_by_role("combobox", name="Strategy").select_option("Agent default")
    page.get_by_role("button", name="Save strategy").click()
    expect(page.get_by_text("The model sees everything: 14 items.")).to_be_visible()


def test_a_strategy_is_tried_out_without_being_kept(page: Page, place: Place) -> None:
    path = f"/v1/conversations/{place.ids['chat']}/memory"
    with place.client() as client:
        before = client.get(path).json()
        place.open(page, f"/conversations/{place.ids['chat']}")
        page.get_by_role("button", name="What the model sees").click()
        page.get_by_role("combobox", name="Strategy").select_option("compact")
        page.get_by_label("Compact after turns").fill("2")
        page.get_by_label("Turns kept complete").fill("1")
        page.get_by_role("button", name="Try", exact=True).click()
        expect(page.get_by_text("Preview only; not saved.")).to_be_visible()
        call = page.locator(".call", has_text="weather")
        call.get_by_text("Called").click()
        expect(call.get_by_text("a light breeze from the sea")).to_have_count(0)
        page.get_by_role("button", name="Reset").click()
        expect(page.get_by_text("Preview only; not saved.")).to_have_count(0)
        expect(page.get_by_role("combobox", name="Strategy")).to_have_value("")
        assert client.get(path).json() == before


def test_branches_are_a_tree_and_can_be_switched(page: Page, place: Place) -> None:
    place.open(page, f"/conversations/{place.ids['chat']}")
    branches = page.get_by_role("region", name="Branches")
    expect(branches.locator("svg .lane")).to_have_count(3)
    expect(branches.locator("li.current")).to_contain_text("by-bus")
    branches.get_by_role("button", name="Switch to branch main").click()
    expect(branches.locator("li.current")).to_contain_text("main")
    branches.get_by_role("button", name="Switch to branch by-bus").click()
    expect(branches.locator("li.current")).to_contain_text("by-bus")


def test_tokens_per_turn_are_plotted_and_told(page: Page, place: Place) -> None:
    place.open(page, f"/conversations/{place.ids['chat']}")
    tokens = page.get_by_role("region", name="Tokens per turn").first
    expect(tokens.locator("canvas")).to_be_visible()
    tokens.get_by_text("Show as table").click()
    rows = tokens.locator("tbody tr")
    expect(rows).to_have_count(6)
    assert rows.first.inner_text().split() == ["1", "310", "24"]


def test_an_entry_is_added_put_right_and_deleted(page: Page, place: Place) -> None:
    with place.client() as client:
        story.record(client, "frank", "My name is Frank.")
        story.wait_until_learned(client)
        memory = story.memory_of(client, "frank")
    place.open(page, f"/memories/{memory}")
    page.get_by_role("button", name="Add an event").click()
    page.get_by_label("Entry text").fill("The user won a race.")
    page.get_by_role("button", name="Save").click()
    entry = page.locator("article", has_text="won a race")
    entry.get_by_role("button", name="Edit").click()
    page.get_by_label("Entry text").fill("The user lost a race.")
    page.get_by_role("button", name="Save").click()
    entry = page.locator("article", has_text="lost a race")
    entry.get_by_role("button", name="Why?").click()
    expect(entry.get_by_text("Edited by a person,")).to_be_visible()
    expect(entry.locator(".history li")).to_have_count(2)
    expect(entry.locator(".history li").first).to_contain_text("The user won a race.")
    entry.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("a race")).to_have_count(0)
    expect(page.get_by_text("The user's name is Frank.")).to_be_visible()


def test_entries_are_reviewed_with_one_click(page: Page, place: Place) -> None:
    with place.client() as client:
        story.record(client, "hanna", "I have a dog named Bit.", "I am allergic to peanuts.")
        story.wait_until_learned(client)
        memory = story.memory_of(client, "hanna")
        path = f"/v1/memories/{memory}/entries"
        for text, more in (
            ("The user may like golf.", {"confidence": 0.2}),
            ("The user is in Porto.", {"expires_at": "2020-05-31"}),
        ):
            body = {"content_type": "profile", "content_text": text, **more}
            assert client.post(path, json=body).status_code == 201
        wish = {"content_type": "instruction", "content_text": "Answer in German."}
        assert client.post(path, json=wish).status_code == 201
    place.open(page, f"/memories/{memory}")
    expect(page.get_by_role("region", name="Instructions").get_by_text("Answer in German.")).to_be_visible()
    expect(page.locator("article")).to_have_count(4)

    # Doubtful: confirmed with one click.
    page.get_by_role("button", name="Doubtful").click()
    expect(page.locator("article")).to_have_count(1)
    golf = page.locator("article", has_text="golf")
    expect(golf.locator(".chip")).to_have_text("doubtful")
    golf.get_by_role("button", name="Confirm").click()
    expect(page.locator("article")).to_have_count(0)

    # Expired: visible, and current again with one click.
    page.get_by_role("button", name="Expired").click()
    porto = page.locator("article", has_text="Porto")
    expect(porto.locator(".chip")).to_have_text("expired")
    porto.get_by_role("button", name="Confirm").click()
    expect(page.locator("article")).to_have_count(0)

    # Rejected with one click, and not learned again.
    page.get_by_role("button", name="New", exact=True).click()
    expect(page.locator("article")).to_have_count(5)
    page.locator("article", has_text="peanuts").get_by_role("button", name="Reject").click()
    expect(page.locator("article", has_text="peanuts")).to_have_count(0)
    with place.client() as client:
        story.record(client, "hanna", "I am allergic to peanuts.")
        story.wait_until_learned(client)
        known = [each["content_text"] for each in client.get(path).json()["items"]]
    assert not [text for text in known if "peanuts" in text]
    page.get_by_role("button", name="Rejected").click()
    peanuts = page.locator("article", has_text="peanuts")
    expect(peanuts.locator(".chip")).to_have_text("rejected")
    peanuts.get_by_role("button", name="Why?").click()
    expect(peanuts.get_by_text("Trust")).to_be_visible()


def test_what_was_known_at_another_time_is_shown_and_not_changed(page: Page, place: Place) -> None:
    place.open(page, f"/memories/{place.ids['memory']}")
    expect(page.get_by_text("The user is allergic to peanuts.")).to_be_visible()
    page.get_by_label("As known at").fill("2001-01-01T00:00")
    expect(page.get_by_text("No profile entries")).to_be_visible()
    page.get_by_role("button", name="Back to now").click()
    page.get_by_label("Include retired entries").check()
    expect(page.locator("article.retired")).to_contain_text("lives in Porto")


def test_conversations_are_narrowed_and_searched(page: Page, place: Place) -> None:
    place.open(page)
    search = page.get_by_role("search")
    search.get_by_label("User").fill("ben")
    search.get_by_role("button", name="Filter").click()
    expect(page.locator(".row")).to_have_count(1)
    search.get_by_label("User").fill("")
    search.get_by_label("Words").fill("MARINE biologist")
    search.get_by_role("button", name="Filter").click()
    expect(page.locator(".row")).to_have_count(1)
    expect(page.get_by_text("Hello! My name is Ada")).to_be_visible()
    search.get_by_label("Words").fill(place.ids["chat"])
    search.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("Can you help me plan a weekend?")).to_be_visible()
    search.get_by_label("Words").fill("")
    search.get_by_label("User").fill("ben")
    search.get_by_role("button", name="Filter").click()
    expect(page.locator(".row")).to_have_count(1)
    search.get_by_label("Agent").fill("assistant")
    search.get_by_label("Words").fill("orchestra")
    search.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="I want to learn to play in an orchestra.").click()
    expect(page.locator(".message.target")).to_contain_text("orchestra")


def test_tags_and_metadata_are_shown_and_narrow_a_search(page: Page, place: Place, watch: Watch) -> None:
    watch.expected = REFUSED  # at the end a filter is not JSON
    said = [
        {"role": "user", "name": "Nora", "content": "My canoe is red."},
        {"role": "user", "name": "Bo", "content": "My canoe is green."},
    ]
    body = {"agent_id": "assistant", "user_id": "nora", "messages": said}
    labels = {"tags": ["river", story.SCRIPT[:64]], "metadata": {"ticket": 17}}
    with place.client() as client:
        labelled = client.post("/v1/conversations", json={**body, **labels}).json()["conversation_id"]
        other = [{"role": "user", "content": "A canoe without labels."}]
        assert client.post("/v1/conversations", json={**body, "messages": other}).status_code == 201
    place.open(page, f"/conversations/{labelled}")
    expect(page.locator(".facts")).to_contain_text("river")
    expect(page.locator(".facts")).to_contain_text('{"ticket":17}')
    place.open(page, "/search?q=canoe&agent=assistant&user=nora&in=said")
    expect(page.locator(".hit")).to_have_count(3)
    search = page.get_by_role("search")
    search.get_by_text("More filters").click()
    search.get_by_label("Tags").fill("river")
    search.get_by_label("Speaker").fill("Bo")
    search.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".hit")).to_contain_text("My canoe is green.")
    search.get_by_label("Tags").fill("lake")
    search.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_text("no conversation of the user has the tag 'lake'")).to_be_visible()
    search.get_by_label("Tags").fill("")
    search.get_by_label("Metadata").fill("ticket")
    search.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_text("body.metadata: Input should be a valid dictionary")).to_be_visible()


def test_a_long_conversation_is_read_where_it_is_looked_at(page: Page, place: Place, watch: Watch) -> None:
    watch.expected = REFUSED  # at the end a message is looked for that is not there
    said = [
        {"role": "user", "content": f"This is {number}.", "message_id": f"m{number}"} for number in range(450)
    ]
    with place.client() as client:
        body = {"agent_id": "assistant", "user_id": "lena", "messages": said}
        conversation = client.post("/v1/conversations", json=body).json()["conversation_id"]
    place.open(page, f"/conversations/{conversation}?message=m300")
    expect(page.locator(".message.target")).to_have_text(re.compile(r"This is 300\.$"))
    expect(page.locator(".message")).to_have_count(100)
    page.get_by_role("button", name="Show earlier (250)").click()
    expect(page.locator(".message")).to_have_count(200)
    page.get_by_role("button", name="Show more (100 left)").click()
    expect(page.locator(".message")).to_have_count(300)
    expect(page.get_by_text("This is 449.")).to_be_visible()
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    with place.client() as client:
        more = {"messages": [{"role": "user", "content": "And this is new."}]}
        assert client.post(f"/v1/conversations/{conversation}/messages", json=more).status_code == 201
    page.get_by_role("button", name="Show more (1 left)").click()
    expect(page.get_by_text("And this is new.")).to_be_visible()
    place.open(page, f"/conversations/{conversation}?message=nowhere")
    expect(page.get_by_text("The linked message no longer exists.")).to_be_visible()
    expect(page.locator(".message").first).to_contain_text("This is 0.")


def test_tokens_over_time_are_plotted_by_model_and_by_agent(page: Page, place: Place) -> None:
    place.open(page, "/usage")
    chats = page.get_by_role("region", name="Chat tokens").first
    expect(chats.locator("canvas")).to_be_visible()
    expect(chats.get_by_role("row", name="gpt-test")).to_contain_text("4,342")
    page.get_by_role("button", name="By agent").click()
    expect(chats.get_by_role("row", name=story.AGENT)).to_contain_text("4,342")
    page.get_by_role("button", name="7 days", exact=True).click()
    expect(chats.locator("canvas")).to_be_visible()
    learning = page.get_by_role("region", name="Learning tokens").first
    expect(learning.get_by_role("row", name="assistant")).to_contain_text("820")


def test_pages_go_on_by_their_cursor(page: Page, place: Place) -> None:
    with place.client() as client:
        for number in range(51):
            story.record(client, "gina", f"This is number {number}.")
        place.open(page, "/conversations?user=gina&agent=assistant")
        expect(page.locator(".row")).to_have_count(50)
        page.get_by_role("button", name="Load more").click()
        expect(page.locator(".row")).to_have_count(51)
        expect(page.get_by_role("button", name="Load more")).to_have_count(0)
        client.delete("/v1/users?user_id=gina").raise_for_status()  # for else others see nothing but these


def test_a_run_shows_its_user_its_words_and_its_result(page: Page, place: Place) -> None:
    place.open(page, "/runs?status=done")
    run = page.locator(".run", has_text="I have a cello.")
    expect(run).to_contain_text("ben with assistant")
    expect(run).to_contain_text("Messages 1 to 6")
    expect(run).to_contain_text("by rule")
    run.get_by_role("link", name="3 entries learned").click()
    expect(page.get_by_text("The user has a cello.")).to_be_visible()
    place.open(page, "/runs?status=done")
    # Of the runs over a chat, only the first certainly begins where it does: the others depend on the worker.
    first = page.locator(".run", has_text="Can you help me plan a weekend?")
    expect(first).to_contain_text("Nothing new")
    expect(first).to_contain_text("ada with concierge")


def test_an_entry_learned_by_rule_says_so(page: Page, place: Place) -> None:
    place.open(page, f"/memories/{place.ids['memory']}")
    entry = page.locator("article", has_text="allergic to peanuts")
    entry.get_by_role("button", name="Why?").click()
    expect(entry.get_by_text("Learned by rule, without a model,")).to_be_visible()


def test_all_agents_of_a_user_are_searched_without_an_agent(page: Page, place: Place) -> None:
    place.open(page, "/search")
    search = page.get_by_role("search")
    search.get_by_label("Question").fill("Does he have a cello?")
    search.get_by_role("combobox", name="User").fill("ben")
    search.get_by_role("button", name="Search").click()
    expect(page.locator(".hit").get_by_text("The user has a cello.")).to_be_visible()


def test_the_memories_that_the_model_gets_are_part_of_its_view(page: Page, place: Place) -> None:
    with place.client() as client:
        owner = {"agent_id": story.AGENT, "user_id": "ivy"}
        known = {**owner, "profile_content": ["The user likes night trains."]}
        client.post("/v1/memories", json=known).raise_for_status()
        earlier = [{"role": "user", "content": "The night trains to Rome are always late."}]
        client.post("/v1/conversations", json={**owner, "messages": earlier}).raise_for_status()
        said = [{"role": "user", "content": "Which night trains are there?"}]
        recorded = client.post("/v1/conversations", json={**owner, "messages": said}).json()
        conversation = recorded["conversation_id"]
        client.patch(f"/v1/conversations/{conversation}/memory", json={"memory_injection": True})
        place.open(page, f"/conversations/{conversation}")
        page.get_by_role("button", name="What the model sees").click()
        block = page.get_by_role("region", name="The page about the user")
        expect(block).to_contain_text("The user likes night trains.")
        tail = page.get_by_role("region", name="After the newest message")
        expect(tail).to_contain_text("The night trains to Rome")
        client.patch(f"/v1/conversations/{conversation}/memory", json={"memory_injection": False})
        page.reload()
        page.get_by_role("button", name="What the model sees").click()
        expect(page.get_by_text("No memories are in the instructions.")).to_be_visible()
        client.delete("/v1/users?user_id=ivy").raise_for_status()


def test_a_failed_run_is_told_and_tried_again(page: Page, place: Place) -> None:
    place.open(page, "/runs?status=failed")
    run = page.locator(".run")
    expect(run).to_contain_text("UnusableAnswerError")
    run.get_by_text("Details").click()
    expect(run.get_by_text("I would rather not say.")).to_be_visible()
    run.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("No failed runs")).to_be_visible()
    expect(page.get_by_text("100%")).to_be_visible()
