"""Requests that a key does not allow: the audit log names what they were about."""

import pytest

from .running import Running

ID = "3f6a1d52-8c0e-4b7f-9a44-1f0d2b6c7e10"


@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("DELETE", f"/v1/conversations/{ID}", f"conversation:{ID}"),
        ("POST", f"/v1/conversations/{ID}/close", f"conversation:{ID}"),
        ("DELETE", f"/v1/memories/{ID}", f"memory:{ID}"),
        ("DELETE", f"/v1/entries/{ID}", f"entry:{ID}"),
        ("POST", f"/v1/runs/{ID}/retry", f"run:{ID}"),
        ("POST", "/v1/conversations", None),
    ],
)
def test_an_entry_of_a_refusal_names_its_target(
    keyed_service: Running, tenant: str, method: str, path: str, target: str | None
) -> None:
    with keyed_service.client(keyed_service.make_key("read", tenant)) as client:
        assert client.request(method, path, json={} if method == "POST" else None).status_code == 403
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as admin:
        (entry,) = admin.get("/v1/audit").json()["items"]
    assert (entry["status"], entry["target"]) == (403, target)


def test_a_user_is_named_by_the_hash_of_receipts(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("write", tenant)) as client:
        assert client.delete("/v1/users", params={"user_id": "ann"}).status_code == 403
        assert client.delete("/v1/users", params={"user_id": "a\0"}).status_code == 403
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as admin:
        subject = admin.delete("/v1/users", params={"user_id": "ann"}).json()["subject"]
        found = [(each["status"], each["target"]) for each in admin.get("/v1/audit").json()["items"]]
    assert found == [(200, f"user:{subject}"), (403, None), (403, f"user:{subject}")]
