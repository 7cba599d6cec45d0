"""Two instances on one PostgreSQL: they share the work, and one goes on where the other dies."""

import itertools
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx2
import pytest

from recollect.testing.providers import Hold, ProviderServer, RecordedRequest, ToolCall
from recollect.testing.servers.service import ServiceServer

from ...sessions.postgres.database import sql
from .conftest import migrated_database
from .places import COMPLETIONS, TALKER, Place, make_key, record, revoke_key, say, settings_for, texts_in
from .test_provider_faults import last_turn
from .waiting import wait_until

LEARNING = "POST /v1/messages"
USERS = 8
# What a dead process held is free when its leases are over. Time is made to pass by moving their ends.
LEASES = (
    "UPDATE memory_queue SET available_at = available_at - 90 WHERE lease IS NOT NULL",
    "UPDATE recollect_sdk_agent_sessions_leases SET expires_at = expires_at - 90",
    "UPDATE idempotency_keys SET leased_until = leased_until - 90",
)


@dataclass(frozen=True)
class Pair:
    """Two services on one database."""

    one: Place
    other: Place
    database: str


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, running_server: ProviderServer, postgres_url: str
) -> Iterator[Pair]:
    settings = settings_for(
        tmp_path_factory.mktemp("pair"), running_server, memory={"extractor": "anthropic:claude-test"}
    )
    with pytest.MonkeyPatch.context() as environment, migrated_database(postgres_url) as database:
        environment.setenv("ANTHROPIC_BASE_URL", running_server.root_url)
        environment.setenv("ANTHROPIC_API_KEY", running_server.api_key)
        servers = [ServiceServer(database, settings) for _ in range(2)]
        with servers[0], servers[1]:
            keys = Place(servers[0], database)
            yield Pair(keys, Place(servers[1], database, keys._keys), database)


def learn(request: RecordedRequest) -> ToolCall:
    """A model that notes each conversation down as it is, once."""
    said = _said(request)
    fact = {"from": "m1", "quote": said, "kind": "profile", "text": said, "replaces": []}
    return ToolCall("note_down", {"memories": [fact]})


def _said(request: RecordedRequest) -> str:
    """The first message of the user in a request."""
    lines = str(request.body["messages"][-1]["content"]).splitlines()
    return next(line.removeprefix("m1 user: ") for line in lines if line.startswith("m1 user: "))


def facts_of(client: httpx2.Client, user: str) -> list[str]:
    """What has been learned about a user."""
    owner = {"agent_id": TALKER, "user_id": user}
    memories = client.get("/v1/memories", params=owner).json()["items"]
    found = [client.get(f"/v1/memories/{each['memory_id']}/entries").json()["items"] for each in memories]
    return [entry["content_text"] for entries in found for entry in entries]


def is_learned(client: httpx2.Client, conversation: str) -> bool:
    runs = client.get(f"/v1/conversations/{conversation}/runs").json()["items"]
    return bool(runs) and all(run["status"] == "done" for run in runs)


def test_work_is_shared_and_done_once(pair: Pair, server: ProviderServer, user: str) -> None:
    """Each instance has two workers: four runs at a time are only to be had from both."""
    let_go = threading.Event()
    server.messages.reply_always(learn)
    server.fail_next(LEARNING, Hold(let_go), times=1000)
    with pair.one.client() as one, pair.other.client() as other:
        users = [f"{user}-{number}" for number in range(USERS)]
        made = [record(one, each, f"{each} lives in Lisbon.")["conversation_id"] for each in users]
        wait_until(lambda: len(server.requests(LEARNING)) == 4)
        let_go.set()
        for conversation in made:
            wait_until(lambda: is_learned(other, conversation))  # noqa: B023 - used at once
        for each in users:
            assert facts_of(other, each) == [f"{each} lives in Lisbon."]
    noted = Counter(map(_said, server.requests(LEARNING)))
    assert noted == Counter(f"{each} lives in Lisbon." for each in users)


def test_turns_of_one_conversation_go_one_after_the_other(
    pair: Pair, server: ProviderServer, user: str
) -> None:
    let_go = threading.Event()
    server.chat.reply("First.", "Second.", "Third.")
    with pair.one.client() as one, pair.other.client() as other, ThreadPoolExecutor(1) as pool:
        conversation = say(one, user, "Begin.").json()["conversation_id"]
        server.fail_next(COMPLETIONS, Hold(let_go))
        turn = pool.submit(say, one, user, "Go on.", conversation_id=conversation)
        wait_until(lambda: len(server.requests(COMPLETIONS)) == 2)
        busy = say(other, user, "Me too.", conversation_id=conversation)
        assert (busy.status_code, busy.json()["code"]) == (409, "conversation_busy")
        let_go.set()
        assert turn.result().json()["text"] == "Second."
        assert say(other, user, "And I.", conversation_id=conversation).json()["text"] == "Third."
        said = [text for _, text in texts_in(one, conversation)]
    assert said == ["Begin.", "First.", "Go on.", "Second.", "And I.", "Third."]


def test_an_idempotency_key_counts_in_both(pair: Pair, server: ProviderServer, user: str) -> None:
    server.messages.reply_always(learn)
    body = {"agent_id": TALKER, "user_id": user, "messages": [{"role": "user", "content": "Once."}]}
    headers = {"Idempotency-Key": f"once-{user}"}
    with pair.one.client() as one, pair.other.client() as other, ThreadPoolExecutor(8) as pool:

        def post(number: int) -> httpx2.Response:
            client = (one, other)[number % 2]
            return client.post("/v1/conversations", json=body, headers=headers)

        answers = list(pool.map(post, range(8)))
        assert {answer.status_code for answer in answers} <= {201, 409}
        made = {each.json()["conversation_id"] for each in answers if each.status_code == 201}
        assert len(made) == 1
        assert post(1).json()["conversation_id"] in made
        listed = one.get("/v1/conversations", params={"agent_id": TALKER, "user_id": user}).json()
    assert len(listed["items"]) == 1


def test_a_key_that_was_revoked_is_refused_by_both(pair: Pair) -> None:
    key = make_key(pair.database, "acme", "read")
    for place in (pair.one, pair.other):
        with place.client(key) as client:
            assert client.get("/v1/whoami").status_code == 200
    revoke_key(pair.database, key)
    for place in (pair.one, pair.other):
        with place.client(key) as client:
            # It is remembered for a second.
            wait_until(lambda: client.get("/v1/whoami").status_code == 401, seconds=5)


class Hammer:
    """Records one conversation after another with an instance, until that answers no more."""

    def __init__(self, client: httpx2.Client, name: str) -> None:
        self._client = client
        self._name = name
        self.acknowledged: dict[str, str] = {}
        self.unanswered: list[str] = []

    def run(self) -> None:
        """Go on until the instance is dead."""
        for number in itertools.count():
            user = f"{self._name}-{number}"
            try:
                self.acknowledged[user] = self.post(self._client, user)
            except httpx2.TransportError:
                self.unanswered.append(user)
                return

    def post(self, client: httpx2.Client, user: str) -> str:
        """The conversation of a user; sent again, it is the same one."""
        said = {"role": "user", "content": f"{user} was here."}
        body = {"agent_id": TALKER, "user_id": user, "messages": [said]}
        answer = client.post("/v1/conversations", json=body, headers={"Idempotency-Key": user})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["conversation_id"])

    def check(self, client: httpx2.Client) -> None:
        """Whether all that was acknowledged is there once, and what was not can be sent again."""
        made = {user: self.post(client, user) for user in self.unanswered} | self.acknowledged
        for user, conversation in made.items():
            listed = client.get("/v1/conversations", params={"agent_id": TALKER, "user_id": user}).json()
            assert [each["conversation_id"] for each in listed["items"]] == [conversation]
            assert texts_in(client, conversation) == [("user", f"{user} was here.")]


def test_a_frozen_instance_delays_nobody_for_longer_than_a_lease(
    pair: Pair, server: ProviderServer, user: str
) -> None:
    let_go = threading.Event()
    server.messages.reply_always(learn)
    server.chat.reply_always("Here I am.")
    server.fail_next(LEARNING, Hold(let_go), times=1000)
    with pair.one.client() as one, pair.other.client() as other, ThreadPoolExecutor(1) as pool:
        chat = say(one, user, "Begin.").json()["conversation_id"]
        users = [f"{user}-{number}" for number in range(USERS)]
        made = [record(one, each, f"{each} lives in Turin.")["conversation_id"] for each in users]
        wait_until(lambda: len(server.requests(LEARNING)) == 4)
        server.fail_next(COMPLETIONS, Hold(let_go))
        turn = pool.submit(say, one, user, "Are you there?", conversation_id=chat)
        wait_until(lambda: len(server.requests(COMPLETIONS)) == 2)
        pair.one.server.signal(signal.SIGSTOP)
        try:
            let_go.set()
            for statement in LEASES:
                sql(pair.database, statement)
            for conversation in made:
                wait_until(lambda: is_learned(other, conversation))  # noqa: B023 - used at once
            answer = say(other, user, "And you?", conversation_id=chat)
            assert (answer.status_code, answer.json()["text"]) == (200, "Here I am.")
        finally:
            pair.one.server.signal(signal.SIGCONT)
        assert turn.result().status_code in (200, 409, 502, 503)
        for client, each in itertools.product((one, other), users):
            assert facts_of(client, each) == [f"{each} lives in Turin."]
        said = [text for _, text in texts_in(one, chat)]
    assert said == ["Begin.", "Here I am.", "Are you there?", "And you?", "Here I am."]


def test_what_one_leaves_when_it_dies_the_other_finishes(
    pair: Pair, server: ProviderServer, user: str
) -> None:
    let_go = threading.Event()
    server.messages.reply_always(learn)
    server.chat.reply_always("Here I am.")
    with pair.one.client() as one, pair.other.client() as other, ThreadPoolExecutor(5) as pool:
        chats = [say(one, user, "Begin.").json()["conversation_id"] for _ in range(2)]
        server.fail_next(LEARNING, Hold(let_go), times=1000)
        server.fail_next(COMPLETIONS, Hold(let_go), times=2)
        users = [f"{user}-{number}" for number in range(USERS)]
        made = [record(one, each, f"{each} lives in Porto.")["conversation_id"] for each in users]
        wait_until(lambda: len(server.requests(LEARNING)) == 4)
        turns = [pool.submit(say_once, one, user, chat) for chat in chats]
        wait_until(lambda: len(server.requests(COMPLETIONS)) == 4)
        hammers = [Hammer(one, f"{user}-hammer-{number}") for number in range(3)]
        hammered = [pool.submit(hammer.run) for hammer in hammers]
        wait_until(lambda: sum(len(hammer.acknowledged) for hammer in hammers) > 20)
        pair.one.server.kill()
        assert {type(turn.exception()) for turn in turns} <= {httpx2.RemoteProtocolError, httpx2.ReadError}
        assert [done.exception() for done in hammered] == [None] * 3
        let_go.set()
        busy = say(other, user, "Are you there?", conversation_id=chats[0])
        assert (busy.status_code, busy.json()["code"]) == (409, "conversation_busy")
        for statement in LEASES:
            sql(pair.database, statement)
        for hammer in hammers:
            hammer.check(other)
        for conversation in made:
            wait_until(lambda: is_learned(other, conversation))  # noqa: B023 - used at once
        for each in users:
            assert facts_of(other, each) == [f"{each} lives in Porto."]
        check_next_turn(other, user, chats[0])
        check_turn_sent_again(other, user, chats[1])
    pair.one.server.start()
    with pair.one.client() as back:
        assert last_turn(back, chats[0])["status"] == "done"


def say_once(client: httpx2.Client, user: str, conversation: str) -> httpx2.Response:
    """Say hello, with a key, so that it can be sent again."""
    body = {"user_id": user, "message": "Hello.", "agent": TALKER, "conversation_id": conversation}
    return client.post("/v1/chat", json=body, headers={"Idempotency-Key": conversation})


def check_next_turn(client: httpx2.Client, user: str, conversation: str) -> None:
    """The next turn works, and the one before is told as interrupted: it cannot be answered any more."""
    answer = say(client, user, "Are you there?", conversation_id=conversation)
    assert (answer.status_code, answer.json().get("text")) == (200, "Here I am."), answer.text
    turns = client.get(f"/v1/conversations/{conversation}/usage").json()["turns"]
    ended = [(turn["status"], turn["error_code"]) for turn in turns]
    assert ended == [("done", None), ("failed", "interrupted"), ("done", None)]
    assert say_once(client, user, conversation).json()["status"] in (409, 502, 503)
    said = [text for _, text in texts_in(client, conversation)]
    assert said == ["Begin.", "Here I am.", "Hello.", "Are you there?", "Here I am."]


def check_turn_sent_again(client: httpx2.Client, user: str, conversation: str) -> None:
    """The turn itself, sent again before anything else is said, is answered, once."""
    for _ in range(2):
        answer = say_once(client, user, conversation)
        assert (answer.status_code, answer.json().get("text")) == (200, "Here I am."), answer.text
    said = [text for _, text in texts_in(client, conversation)]
    assert said == ["Begin.", "Here I am.", "Hello.", "Here I am."]
