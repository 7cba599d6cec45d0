"""Pages about users over HTTP."""

import httpx2
import pytest

from .running import Running


def write(client: httpx2.Client, user: str, text: str = "The user is a cellist.") -> None:
    entry = {"agent_id": "assistant", "user_id": user, "content_type": "profile", "content_text": text}
    assert client.post("/v1/entries", json=entry).status_code == 201


def read(client: httpx2.Client, user: str, **headers: str) -> httpx2.Response:
    params = {"agent_id": "assistant", "user_id": user}
    return client.get("/v1/memories/page", params=params, headers=headers)


def test_a_page_has_lines_with_marks_and_a_prompt(client: httpx2.Client, user: str) -> None:
    write(client, user)
    page = read(client, user).json()
    assert page["text"].endswith("## Who they are\n\n- The user is a cellist. [m1]\n")
    assert "> - The user is a cellist." in page["prompt"]
    (line,) = page["lines"]
    assert (line["mark"], line["section"], line["text"]) == ("m1", "identity", "The user is a cellist.")
    assert client.get(f"/v1/entries/{line['content_id']}").status_code == 200
    assert (page["left_out"], page["as_of"]) == (0, None)


def test_an_unchanged_page_is_not_sent_again_and_a_changed_one_is(client: httpx2.Client, user: str) -> None:
    write(client, user)
    first = read(client, user)
    tag = first.headers["ETag"]
    assert tag == f'"{first.json()["version"]}"'
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = read(client, user, **{"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert read(client, user, **{"If-None-Match": '"other"'}).json() == first.json()
    write(client, user, "The user plays tennis.")
    changed = read(client, user, **{"If-None-Match": tag})
    assert (changed.status_code, len(changed.json()["lines"])) == (200, 2)
    assert changed.headers["ETag"] != tag


def test_a_page_is_read_as_of_a_time_and_within_a_budget(client: httpx2.Client, user: str) -> None:
    write(client, user)
    params = {"agent_id": "assistant", "user_id": user}
    past = client.get("/v1/memories/page", params={**params, "as_of": "2020-01-01T00:00:00Z"}).json()
    assert (past["text"], past["as_of"]) == ("", "2020-01-01T00:00:00Z")
    short = client.get("/v1/memories/page", params={**params, "budget": "10"}).json()
    assert (short["lines"], short["left_out"]) == ([], 1)


def test_versions_of_a_page_are_listed_the_latest_first(client: httpx2.Client, user: str) -> None:
    write(client, user)
    write(client, user, "The user plays tennis.")
    params = {"agent_id": "assistant", "user_id": user}
    found = client.get("/v1/memories/page/history", params=params).json()["items"]
    assert [len(page["lines"]) for page in found] == [2, 1]
    assert found[0]["version"] == read(client, user).json()["version"]
    limited = client.get("/v1/memories/page/history", params={**params, "limit": "1"}).json()["items"]
    assert limited == found[:1]


def test_what_is_recorded_is_on_a_page_that_waits_for_it(client: httpx2.Client, user: str) -> None:
    said = {
        "agent_id": "assistant",
        "user_id": user,
        "messages": [{"role": "user", "content": "I live in Oslo."}],
    }
    assert client.post("/v1/conversations", json=said).status_code == 201
    params = {"agent_id": "assistant", "user_id": user, "wait": "30"}
    assert "Oslo" in client.get("/v1/memories/page", params=params).json()["text"]


@pytest.mark.parametrize(
    "wrong", [{"budget": "-1"}, {"budget": "100001"}, {"as_of": "then"}, {"agent_id": ""}, {"page": "1"}]
)
def test_wrong_parameters_are_refused(client: httpx2.Client, wrong: dict[str, str]) -> None:
    response = client.get("/v1/memories/page", params={"agent_id": "assistant", "user_id": "ada", **wrong})
    assert (response.status_code, response.json()["code"]) == (422, "validation_failed")


def test_only_get_is_allowed(client: httpx2.Client) -> None:
    for path in ("/v1/memories/page", "/v1/memories/page/history"):
        refused = client.delete(path)
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET")


def test_a_page_needs_the_scope_read_and_is_of_the_tenant(
    keyed_service: Running, tenant: str, user: str
) -> None:
    with keyed_service.client() as stranger:
        assert read(stranger, user).status_code == 401
    with keyed_service.client(keyed_service.make_key("write", tenant)) as client:
        write(client, user)
    with keyed_service.client(keyed_service.make_key("read", tenant)) as reader:
        assert len(read(reader, user).json()["lines"]) == 1
    with keyed_service.client(keyed_service.make_key("read", f"{tenant}-other")) as other:
        assert read(other, user).json()["lines"] == []
