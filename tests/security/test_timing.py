"""A wrong key is compared like a right one, so that the time it takes says nothing of what is stored."""

import hmac
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.server.access.keys import KeyStore
from recollect.testing.contract import in_event_loop


async def comparisons(work: Callable[[], Awaitable[object]]) -> list[Any]:
    """The secrets that are compared meanwhile, in a time that does not depend on them."""
    seen: list[Any] = []

    def look(_: object, what: str, called: Any) -> None:
        if what == "c_call" and called is hmac.compare_digest:
            seen.append(called)

    sys.setprofile(look)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("kind", ["right", "wrong secret", "unknown id", "revoked"])
@in_event_loop
async def test_every_key_of_the_right_form_is_compared_in_constant_time(tmp_path: Path, kind: str) -> None:
    async with KeyStore(tmp_path / "keys.db") as keys:
        key, text = await keys.create("acme", "admin")
        if kind == "revoked":
            await keys.revoke(key.key_id)
        shown = {
            "wrong secret": text[:-1] + ("0" if text[-1] != "0" else "1"),
            "unknown id": f"rk_{'0' * 32}_{text.rpartition('_')[2]}",
        }.get(kind, text)
        found: list[Any] = []

        async def show() -> None:
            found.append(await keys.verify(shown))

        assert len(await comparisons(show)) == 1
        assert (found[0] is not None) is (kind == "right")
