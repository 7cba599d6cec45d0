"""Finding conversations over HTTP: by words, by an id, of one user, of one agent."""

import httpx2
import pytest

from recollect.memory.store import MemoryStore

from .running import Running
from .test_conversations import save


def say(client: httpx2.Client, user: str, text: str, agent: str = "assistant") -> str:
    messages = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": text}]
    body = {"agent_id": agent, "user_id": user, "messages": messages}
    return str(client.post("/v1/conversations", json=body).json()["conversation_id"])


def find(client: httpx2.Client, **query: str | int) -> list[str]:
    found, cursor = [], {}
    while True:
        page = client.get("/v1/conversations", params={**query, **cursor})
        assert page.status_code == 200, page.text
        found += [told["conversation_id"] for told in page.json()["items"]]
        if page.json()["next_cursor"] is None:
            return found
        cursor = {"cursor": page.json()["next_cursor"]}


def test_conversations_of_one_user_are_those_with_all_agents(client: httpx2.Client, user: str) -> None:
    mine = [say(client, user, "Noted.", agent) for agent in ("one", "two", "one")]
    say(client, f"{user} too", "Noted.", "one")
    assert find(client, user_id=user) == find(client, user_id=user, limit=1) == mine[::-1]


def test_conversations_of_one_agent_are_those_with_all_users(client: httpx2.Client, user: str) -> None:
    agent = f"agent of {user}"
    its = [say(client, f"{user} {number}", "Noted.", agent) for number in range(3)]
    say(client, user, "Noted.", "another")
    assert find(client, agent_id=agent) == find(client, agent_id=agent, limit=1) == its[::-1]


@pytest.mark.parametrize(
    ("said", "words", "is_found"),
    [
        ("The Ferry leaves at noon.", "ferry LEAVES", True),
        ("The ferry leaves at noon.", "leaves ferry", False),
        ("我住在上海。", "上海", True),
        ("It is 100% sure.", "100% s", True),
        ("It is 1000 sure.", "100% s", False),
        ("a_b and c!d", "A_B AND C!D", True),
        ("axb", "a_b", False),
        ("a\\b", "A\\B", True),
    ],
)
def test_words_are_found_as_they_stand(
    client: httpx2.Client, user: str, said: str, words: str, is_found: bool
) -> None:
    conversation = say(client, user, said)
    assert find(client, user_id=user, q=words) == [conversation] * is_found
    assert find(client, user_id=user, agent_id="assistant", q=words) == [conversation] * is_found
    assert (conversation in find(client, q=words)) is is_found


def test_names_and_ids_are_found_too(client: httpx2.Client, user: str) -> None:
    told = save(client, user, session_id=f"Session of {user}")
    conversation = str(told["conversation_id"])
    for words in (user, f"session of {user}", conversation, conversation[:13]):
        assert find(client, q=words) == [conversation], words
    assert find(client, q=conversation, user_id="another") == []
    assert find(client, q=conversation, agent_id="another") == []
    assert find(client, q=conversation, user_id=user, agent_id="assistant") == [conversation]


def test_words_of_another_tenant_are_not_found(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("write", tenant)) as theirs:
        conversation = say(theirs, "ada", "A secret meadow.")
    with keyed_service.client(keyed_service.make_key("admin", f"{tenant} other")) as client:
        for query in ({"q": "secret meadow"}, {"q": conversation}, {"user_id": "ada"}):
            assert find(client, **query) == []


def test_who_may_only_read_finds_within_one_agent_and_user(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("read", tenant)) as client:
        assert find(client, agent_id="assistant", user_id="ada", q="hello") == []
        for query in ({"agent_id": "assistant"}, {"user_id": "ada"}, {"q": "hello"}):
            assert client.get("/v1/conversations", params=query).json()["code"] == "forbidden"


@pytest.mark.parametrize("words", ["", "x" * 201, "a\0b"])
def test_words_that_cannot_be_looked_for_are_refused_by_name(client: httpx2.Client, words: str) -> None:
    answer = client.get("/v1/conversations", params={"q": words})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.q")


def test_a_page_looks_through_only_so_many_and_says_where_to_go_on(service: Running, user: str) -> None:
    async def look() -> list[tuple[int, bool]]:
        store: MemoryStore = service.service.memory.for_tenant("default")
        for number in range(7):
            words = "the needle" if number == 1 else "hay"
            await store.record_conversation("assistant", user, [{"role": "user", "content": words}])
        pages, before = [], None
        while True:
            page = await store.find_conversations("needle", user_id=user, before=before, look_through=3)
            pages.append((len(page.conversations), page.position is not None))
            before = page.position
            if before is None:
                return pages

    assert service.do(look()) == [(0, True), (1, True), (0, False)]


def test_an_id_that_is_also_a_word_hides_nothing(service: Running, user: str) -> None:
    async def look() -> int:
        store: MemoryStore = service.service.memory.for_tenant("default")
        word = f"lisbon-{user}"
        for name in (word, None):
            said = [{"role": "user", "content": f"I moved to {word}"}]
            await store.record_conversation("assistant", user, said, conversation_id=name)
        with pytest.raises(ValueError, match="at most 1,000 characters"):
            await store.find_conversations("x" * 1001)
        assert (await store.find_conversations(word, limit=0)).conversations == []
        return len((await store.find_conversations(word)).conversations)

    assert service.do(look()) == 2
