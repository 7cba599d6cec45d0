"""A session that encrypts what another stores."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from ...items import Item
from ..protocol import Items, Rewritable, Session, SessionABC, require_ability
from ..repair import repair_items
from ..settings import limit_of
from ..wrapper import SessionWrapper
from . import abilities, advanced, changes, popping
from .compaction import Compactable
from .expiry import check_ttl, earliest
from .keys import master_keys
from .reading import Reader
from .vault import Vault

CipherName = Literal["fernet", "aes-gcm"]

_METHODS = ("get_items", "add_items", "pop_item", "clear_session")
_UNENCRYPTABLE = "OpenAIConversationsSession"
_ABILITIES = {
    function.__name__: function
    for function in (
        abilities.transform_items,
        abilities.replace_items,
        abilities.revise_items,
        popping.pop_checked,
        abilities.read_after,
        abilities.read_before,
        abilities.add_batch,
        abilities.get_note,
        abilities.set_note,
        advanced.read_turns,
        advanced.get_conversation_turns,
        advanced.find_turns_by_content,
        advanced.create_branch_from_content,
        advanced.diff_branches,
    )
}


class EncryptedSession(Compactable, SessionWrapper):
    """Encrypts each item before another session stores it, with a key of the session's own.

    `encryption_key` is a text, or several: the first encrypts, all decrypt. Items older than `ttl` seconds
    are not read; with `None` they never expire. `cipher="fernet"` is the format of the Agents SDK, both ways.
    `"aes-gcm"` is faster, and the SDK does not read it. Sessions of either cipher read both.

    Over a session with branches, an envelope shows the type and role of its item and the tool of a call, so
    that turns and tools can be told; with `hide_structure` it shows nothing. All abilities of the wrapped
    session are there, with items in place of envelopes. Where no key fits, a call is a `WrongKeyError`.
    """

    _has_fitting_key = False  # until something was read with it, or there was nothing to read

    def __init__(
        self,
        session_id: str,
        underlying_session: Session,
        encryption_key: str | Sequence[str],
        ttl: float | None = 600,
        *,
        cipher: CipherName = "fernet",
        hide_structure: bool = False,
    ) -> None:
        _check_wrappable(underlying_session)
        self.wrapped = underlying_session
        # Its id is its own: keys are derived from it, whatever the wrapped session is called.
        SessionABC.__init__(self, session_id, getattr(underlying_session, "session_settings", None))
        has_branches = hasattr(underlying_session, "create_branch_from_turn")
        vault = Vault(session_id, master_keys(encryption_key), cipher, has_branches and not hide_structure)
        self._reader = Reader(underlying_session, vault, session_id, check_ttl(ttl))

    @property
    def underlying_session(self) -> Session:
        """The session that stores the envelopes."""
        return self.wrapped

    @property
    def session_settings(self) -> Any:
        """The settings, which are those of the session underneath."""
        return getattr(self.wrapped, "session_settings", None)

    @session_settings.setter
    def session_settings(self, settings: Any) -> None:
        known = self.session_settings
        is_default = known is None and limit_of(settings) is None
        if settings is not known and not is_default:
            self.wrapped.session_settings = settings

    @property
    def ttl(self) -> float | None:
        """For how many seconds an item can be read; `None` for ever."""
        return self._reader.ttl

    @ttl.setter
    def ttl(self, ttl: float | None) -> None:
        self._reader.ttl = check_ttl(ttl)

    # --- the contract ---

    async def get_items(
        self,
        limit: int | None = None,
        branch_id: str | None = None,
        *,
        at_turn: int | None = None,
        wrapper: Any = None,
    ) -> Items:
        """All readable items, oldest first; with a limit the newest of them.

        Of a session with branches, those of a branch, and with `at_turn` as they were when that turn ended.
        The Runner passes its context as `wrapper`, which the wrapped session may want to know of.
        """
        limit = self._effective_limit(limit)
        context = self._context(wrapper)
        if limit == 0:
            return await self.wrapped.get_items(0, **context)
        given = {"branch_id": branch_id, "at_turn": at_turn, **context}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        readout = await self._reader.look(partial(self.wrapped.get_items, **options), limit)
        self._has_fitting_key = True
        items = readout.readable()
        if limit is not None:
            return items[-limit:]
        # What has expired or cannot be opened may have been half of a pair.
        return repair_items(items)[0] if readout.left_out.total() else items

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Encrypt a batch and append it, whole or not at all; never with a key that opens nothing there."""
        self._check_open()
        if not self._has_fitting_key:
            await self.get_items(1)
        await self.wrapped.add_items(await self._reader.seal(items), **self._context(wrapper))

    async def pop_item(self, *, wrapper: Any = None) -> Any:  # noqa: ARG002 - it stands in all or in none
        """Remove the newest item and return it, `None` if there is none. Expired ones on the way go too.

        Where no key opens the newest item, or it is not encrypted, nothing is removed: `WrongKeyError`.
        """
        self._check_open()
        return await popping.pop_item(self._reader)

    async def clear_session(self, *, wrapper: Any = None, **options: Any) -> None:
        """Remove all items and the session itself, also what no key opens."""
        self._check_open()
        await self.wrapped.clear_session(**options, **self._context(wrapper))

    # --- what only encrypted sessions do ---

    async def rotate(self, *, include_plaintext: bool = False) -> int:
        """Encrypt everything that any key opens with the first key, in one step, and say how much that was.

        Items keep their age. What no key opens stays as it is, and so does what already has the first key and
        the cipher of this session. With `include_plaintext`, items that are not encrypted are from now on.
        """

        def rotate(stored: list[Item]) -> tuple[changes.Revised, int]:
            return changes.rotated(vault, self._reader.open_all(stored), include_plaintext)

        vault = self._reader.vault
        return await self._revise_counting(rotate)

    async def purge_expired(self) -> int:
        """Delete what has expired, in one step, and say how many items that were."""
        self._check_open()
        if self.ttl is None:
            return 0

        def purge(stored: list[Item]) -> tuple[changes.Revised, int]:
            return changes.purged(self._reader.open_all(stored), earliest(self.ttl))

        return await self._revise_counting(purge)

    async def _revise_counting(self, change: Callable[[list[Item]], tuple[changes.Revised, int]]) -> int:
        self._check_open()
        rewritable = require_ability(self.wrapped, Rewritable)
        count = 0

        def change_stored(stored: list[Item]) -> changes.Revised:
            nonlocal count
            revised, count = change(stored)  # it may be called again, after somebody came in between
            return revised

        await rewritable.revise_items(change_stored)
        return count

    # --- abilities of the wrapped session ---

    def __getattr__(self, name: str) -> Any:
        """The abilities of the wrapped session, with items in place of envelopes."""
        if name not in _ABILITIES and name not in abilities.PASSED_THROUGH and name != "close":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        method = getattr(self.wrapped, advanced.MADE_OF.get(name, name))
        if name == "close":
            return partial(self._close, method)
        through = _ABILITIES.get(name)
        return self._while_open(method if through is None else partial(through, self._reader))

    def _while_open(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._check_open()
            return await method(*args, **kwargs)

        return call

    def _close(self, close: Callable[[], Any]) -> Any:
        """Close as the wrapped session does: at once, or to be awaited."""
        self._closed = True
        return close()


def _check_wrappable(session: object) -> None:
    """Refuse what is no session, and sessions whose store takes no envelopes, also within wrappers."""
    missing = [name for name in _METHODS if not callable(getattr(session, name, None))]
    if missing:
        raise TypeError(
            f"underlying_session must be a session: {type(session).__name__} has no {missing[0]}()"
        )
    inner: object | None = session
    while inner is not None:
        if any(base.__name__ == _UNENCRYPTABLE for base in type(inner).__mro__):
            raise TypeError(
                f"{_UNENCRYPTABLE} cannot be encrypted: OpenAI's Conversations store takes no envelopes"
            )
        if getattr(type(inner), "shows_views", False):
            raise TypeError("a strategy goes around the encryption: StrategySession(EncryptedSession(…), …)")
        inner = getattr(inner, "wrapped", None) or getattr(inner, "underlying_session", None)
