"""A session that encrypts what another stores."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from ...items import Item
from ..history import repair_items
from ..protocol import Items, Rewritable, Session, SessionABC, require_ability
from ..settings import limit_of
from . import abilities, changes
from .abilities import Through
from .ciphers import master_keys
from .compaction import Compactable
from .reader import Reader, check_ttl, earliest
from .vault import Vault

CipherName = Literal["fernet", "aes-gcm"]

_METHODS = ("get_items", "add_items", "pop_item", "clear_session")
_UNENCRYPTABLE = "OpenAIConversationsSession"
_MISSING = object()


class EncryptedSession(Compactable):
    """Encrypts each item before another session stores it, with a key of the session's own.

    `encryption_key` is a text, or several: the first encrypts, all decrypt. Items older than `ttl` seconds
    are not read; with `None` they never expire. `cipher="fernet"` is the format of the Agents SDK, both ways.
    `"aes-gcm"` is faster, and the SDK does not read it. Sessions of either cipher read both.

    Over a session with branches, an envelope shows the type and role of its item and the tool of a call, so
    that turns and tools can be told; with `hide_structure` it shows nothing. All abilities of the wrapped
    session are there, with items in place of envelopes. Where no key fits, a call is a `WrongKeyError`.

    `max_scan_items` bounds how many stored items one read may take; beyond that it is a `ScanLimitError`.
    """

    _has_fitting_key = False  # until something was read with it, or there was nothing to read

    def __init__(
        self,
        session_id: str,
        underlying_session: Session,
        encryption_key: str | Sequence[str],
        ttl: float | None = 600,
        max_scan_items: int | None = None,
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
        budget = check_max_scan_items(max_scan_items)
        self._reader = Reader(underlying_session, vault, session_id, check_ttl(ttl), budget)

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

    @property
    def max_scan_items(self) -> int | None:
        """How many stored items one read may take; `None` for any number."""
        return self._reader.max_scan_items

    @max_scan_items.setter
    def max_scan_items(self, max_scan_items: int | None) -> None:
        self._reader.max_scan_items = check_max_scan_items(max_scan_items)

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
        readout = await self._reader.look(partial(self.wrapped.get_items, **options), limit, **context)
        self._has_fitting_key = True
        items = readout.readable()
        if limit is not None:
            return items[-limit:]
        # What has expired or cannot be opened may have been half of a pair.
        return repair_items(items)[0] if readout.left_out.total() else items

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Encrypt a batch and append it, whole or not at all; never with a key that opens nothing there."""
        self._check_open()
        context = self._context(wrapper)
        if not self._has_fitting_key:
            await self._reader.check_key(**context)
            self._has_fitting_key = True
        await self.wrapped.add_items(await self._reader.seal(items), **context)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Remove the newest item and return it, `None` if there is none. Expired ones on the way go too.

        Where no key opens the newest item, or it is not encrypted, nothing is removed: `WrongKeyError`.
        """
        self._check_open()
        return await abilities.pop_item(self._reader, **self._context(wrapper))

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

    transform_items = Through(abilities.transform_items)
    replace_items = Through(abilities.replace_items, needs="transform_items")
    revise_items = Through(abilities.revise_items)
    pop_checked = Through(abilities.pop_checked)
    read_after = Through(abilities.read_after)
    read_before = Through(abilities.read_before)
    add_batch = Through(abilities.add_batch)
    get_note = Through(abilities.get_note)
    set_note = Through(abilities.set_note)
    get_metadata = Through()
    set_metadata = Through()
    take_lease = Through()
    drop_lease = Through()
    ping = Through()

    read_turns = Through(abilities.read_turns)
    # The wrapped session's own would look for texts in envelopes.
    get_conversation_turns = Through(abilities.get_conversation_turns, needs="read_turns")
    find_turns_by_content = Through(abilities.find_turns_by_content, needs="read_turns")
    create_branch_from_content = Through(abilities.create_branch_from_content, needs="read_turns")
    diff_branches = Through(abilities.diff_branches)
    current_branch = Through()
    create_branch_from_turn = Through()
    switch_to_branch = Through()
    delete_branch = Through()
    clear_branch = Through()
    list_branches = Through()
    get_conversation_by_turns = Through()
    get_tool_usage = Through()
    count_run = Through()
    store_run_usage = Through()
    get_session_usage = Through()
    get_turn_usage = Through()

    @property
    def close(self) -> Callable[[], Any]:
        """Close as the wrapped session does: at once, or to be awaited."""
        return partial(self._close, self.wrapped.close)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        """A value of the wrapped session, such as its path or its model.

        Its other methods are not passed on: one that takes contents would store them in clear.
        """
        is_internal = name.startswith("_") or name == "wrapped"
        value = _MISSING if is_internal else getattr(self.wrapped, name, _MISSING)
        if value is _MISSING or callable(value):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    def _close(self, close: Callable[[], Any]) -> Any:
        self._closed = True
        return close()


def check_max_scan_items(count: int | None) -> int | None:
    """The bound of a read if it makes sense: at least one item, or `None` for no bound."""
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ValueError(f"max_scan_items must be positive or None, and it is {count!r}")
    return count


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
