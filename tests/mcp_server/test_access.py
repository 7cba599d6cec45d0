"""Whose memory a request is about: what the server was started with holds, and headers say the rest."""

import pytest

from recollect.mcp.access import PinnedOwner, access_of, local_access
from recollect.server.access.authentication import Caller
from recollect.server.problems import Problem

CALLER = Caller("acme", "write", "k")


def owner(
    pinned: PinnedOwner, user: list[str] | None = None, agent: list[str] | None = None
) -> tuple[str, str]:
    headers = {"recollect-user": user or [], "recollect-agent": agent or []}
    access = access_of(CALLER, headers, pinned)
    assert access.caller is CALLER
    return access.agent_id, access.user_id


def test_headers_name_the_user_and_the_agent() -> None:
    assert owner(PinnedOwner(), ["ada"]) == ("assistant", "ada")
    assert owner(PinnedOwner(), ["ada"], ["helper"]) == ("helper", "ada")
    assert owner(PinnedOwner(), ["%E7%BE%8E%20100%25"]) == ("assistant", "美 100%")


def test_what_the_server_was_started_with_holds() -> None:
    assert owner(PinnedOwner("ada")) == ("assistant", "ada")
    assert owner(PinnedOwner("ada", "helper"), ["ada"], ["helper"]) == ("helper", "ada")
    for headers in (["bob"], None), (["ada"], ["other"]):
        with pytest.raises(Problem, match="started for another") as caught:
            owner(PinnedOwner("ada", "helper"), *headers)
        assert caught.value.status == 403


@pytest.mark.parametrize(
    "values", [[], [""], ["ada", "bob"], ["ada", "ada"], ["\xe7"], ["%FF"], ["%00"], ["a" * 1001]]
)
def test_without_one_user_nothing_is_let_in(values: list[str]) -> None:
    with pytest.raises(Problem, match="Recollect-User") as caught:
        owner(PinnedOwner(), values)
    assert caught.value.status == 422


def test_over_standard_input_the_user_must_be_said() -> None:
    assert local_access(PinnedOwner("ada"), "acme").caller == Caller("acme", "admin", None)
    with pytest.raises(ValueError, match="--user NAME, or set RECOLLECT_USER"):
        local_access(PinnedOwner())
    with pytest.raises(ValueError, match="--user must not be empty"):
        PinnedOwner("")
