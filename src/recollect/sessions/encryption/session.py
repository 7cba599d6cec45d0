"""A session that encrypts what another stores."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from cryptography.fernet import Fernet

from ...items import Item
from ..history import repair_items
from ..protocol import Items, Rewritable, Session, SessionABC, require_ability
from ..settings import limit_of
from . import abilities, changes
from .abilities import TranslatedMethod
from .ciphers import master_keys
from .compaction import CompactionHooks
from .reader import Reader, check_ttl, readable_since
from .vault import Vault

CipherName = Literal["fernet", "aes-gcm"]

_METHODS = ("get_items", "add_items", "pop_item", "clear_session")
_UNENCRYPTABLE = "OpenAIConversationsSession"
_MISSING = object()


class EncryptedSession(CompactionHooks):
    """Encrypts each item before another session stores it, with a key derived for this session id.

    `encryption_key` is one text or several. The first key encrypts, all keys decrypt. Items older than `ttl`
    seconds are not returned; with `None` they never expire. `cipher="fernet"` is the format of the Agents
    SDK: each reads what the other wrote. `"aes-gcm"` is faster, and the SDK cannot read it. A session reads
    both.

    Over a session with branches, an envelope shows the type and role of its item and the tool of a call, so
    that turns and tools can be counted. With `hide_structure` it shows nothing. All abilities of the wrapped
    session are available, with items in place of envelopes. If no key fits, a call raises `WrongKeyError`.

    `max_scan_items` limits how many stored items one read may scan. Beyond it, a read raises
    `ScanLimitError`.
    """

    _has_fitting_key = False  # set by the first successful read, also of an empty session

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
        # The id is independent of the wrapped session: the keys are derived from it.
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
    def cipher(self) -> Fernet:
        """The Fernet of this session and its first key, as in the SDK. It decrypts the payload of envelopes.

        It does not decrypt envelopes of the cipher `"aes-gcm"`, or of other keys.
        """
        return self._reader.vault.fernet

    @property
    def session_settings(self) -> Any:
        """The settings of the wrapped session."""
        return getattr(self.wrapped, "session_settings", None)

    @session_settings.setter
    def session_settings(self, settings: Any) -> None:
        known = self.session_settings
        is_default = known is None and limit_of(settings) is None
        if settings is not known and not is_default:
            self.wrapped.session_settings = settings

    @property
    def ttl(self) -> float | None:
        """For how many seconds an item is readable; `None` for no expiry."""
        return self._reader.ttl

    @ttl.setter
    def ttl(self, ttl: float | None) -> None:
        self._reader.ttl = check_ttl(ttl)

    @property
    def max_scan_items(self) -> int | None:
        """How many stored items one read may scan; `None` for no limit."""
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
        """Return all readable items, oldest first, or with a limit only the newest ones.

        `branch_id` and `at_turn` are for sessions with branches: the items of a branch, as of the end of a
        turn. The Runner passes its context as `wrapper`. It is passed on if the wrapped session accepts it.
        """
        limit = self._effective_limit(limit)
        context = self._context(wrapper)
        if limit == 0:
            return await self.wrapped.get_items(0, **context)
        given = {"branch_id": branch_id, "at_turn": at_turn, **context}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        result = await self._reader.read_readable(
            partial(self.wrapped.get_items, **options), limit, **context
        )
        self._has_fitting_key = True
        items = result.readable()
        if limit is not None:
            return items[-limit:]
        # An omitted item may have been half of a pair of call and output.
        return repair_items(items)[0] if result.omitted.total() else items

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Encrypt a batch and append it: all of its items or none.

        Raises `WrongKeyError` if the session has items and no key decrypts any of them.
        """
        self._check_open()
        context = self._context(wrapper)
        if not self._has_fitting_key:
            await self._reader.check_key(**context)
            self._has_fitting_key = True
        await self.wrapped.add_items(await self._reader.encrypt(items), **context)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Remove and return the newest item, or return `None` if there is none.

        Expired items after it are removed too.

        Raises `WrongKeyError` and removes nothing if no key decrypts the newest item, or if it is not
        encrypted.
        """
        self._check_open()
        return await abilities.pop_item(self._reader, **self._context(wrapper))

    async def clear_session(self, *, wrapper: Any = None, **options: Any) -> None:
        """Remove all items and the session itself, also items that no key decrypts."""
        self._check_open()
        await self.wrapped.clear_session(**options, **self._context(wrapper))

    # --- what only encrypted sessions do ---

    async def rotate(self, *, include_plaintext: bool = False) -> int:
        """Encrypt all items that a key decrypts with the first key, in one atomic step.

        Return how many changed.

        Items keep their age. Items that no key decrypts stay unchanged, and so do items that already have the
        first key and the cipher of this session. With `include_plaintext`, plain items are encrypted too.
        """

        def rotate(stored: list[Item]) -> tuple[changes.Revised, int]:
            return changes.rotate_history(vault, self._reader.decrypt_all(stored), include_plaintext)

        vault = self._reader.vault
        return await self._revise_counting(rotate)

    async def purge_expired(self) -> int:
        """Delete all expired items in one atomic step, and return how many."""
        self._check_open()
        if self.ttl is None:
            return 0

        def purge(stored: list[Item]) -> tuple[changes.Revised, int]:
            return changes.purge_history(self._reader.decrypt_all(stored), readable_since(self.ttl))

        return await self._revise_counting(purge)

    async def _revise_counting(self, change: Callable[[list[Item]], tuple[changes.Revised, int]]) -> int:
        self._check_open()
        rewritable = require_ability(self.wrapped, Rewritable)
        count = 0

        def change_stored(stored: list[Item]) -> changes.Revised:
            nonlocal count
            revised, count = change(stored)  # called again if another writer changed the session meanwhile
            return revised

        await rewritable.revise_items(change_stored)
        return count

    # --- abilities of the wrapped session ---

    transform_items = TranslatedMethod(abilities.transform_items)
    replace_items = TranslatedMethod(abilities.replace_items, needs="transform_items")
    revise_items = TranslatedMethod(abilities.revise_items)
    pop_checked = TranslatedMethod(abilities.pop_checked)
    read_after = TranslatedMethod(abilities.read_after)
    read_before = TranslatedMethod(abilities.read_before)
    add_batch = TranslatedMethod(abilities.add_batch)
    get_note = TranslatedMethod(abilities.get_note)
    set_note = TranslatedMethod(abilities.set_note)
    get_metadata = TranslatedMethod()
    set_metadata = TranslatedMethod()
    take_lease = TranslatedMethod()
    drop_lease = TranslatedMethod()
    ping = TranslatedMethod()

    read_turns = TranslatedMethod(abilities.read_turns)
    # The methods of the wrapped session would search for texts in envelopes.
    get_conversation_turns = TranslatedMethod(abilities.get_conversation_turns, needs="read_turns")
    find_turns_by_content = TranslatedMethod(abilities.find_turns_by_content, needs="read_turns")
    create_branch_from_content = TranslatedMethod(abilities.create_branch_from_content, needs="read_turns")
    diff_branches = TranslatedMethod(abilities.diff_branches)
    current_branch = TranslatedMethod()
    create_branch_from_turn = TranslatedMethod()
    switch_to_branch = TranslatedMethod()
    delete_branch = TranslatedMethod()
    clear_branch = TranslatedMethod()
    list_branches = TranslatedMethod()
    get_conversation_by_turns = TranslatedMethod()
    get_tool_usage = TranslatedMethod()
    count_run = TranslatedMethod()
    store_run_usage = TranslatedMethod()
    get_session_usage = TranslatedMethod()
    get_turn_usage = TranslatedMethod()

    @property
    def close(self) -> Callable[[], Any]:
        """Close the wrapped session.

        The result must be awaited if the wrapped session's `close()` is async.
        """
        return partial(self._close, self.wrapped.close)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        """Return a plain attribute of the wrapped session, such as its path or its model.

        Methods are not delegated here: a method that takes contents would store them in plain text.
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
    """Return a valid limit for a read: at least one item, or `None` for no limit."""
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ValueError(f"max_scan_items must be positive or None, not {count!r}")
    return count


def _check_wrappable(session: object) -> None:
    """Raise `TypeError` for an object that is not a session, or whose store cannot store envelopes."""
    missing = [name for name in _METHODS if not callable(getattr(session, name, None))]
    if missing:
        raise TypeError(
            f"underlying_session must be a session: {type(session).__name__} has no {missing[0]}()"
        )
    inner: object | None = session
    while inner is not None:
        if any(base.__name__ == _UNENCRYPTABLE for base in type(inner).__mro__):
            raise TypeError(
                f"{_UNENCRYPTABLE} cannot be encrypted: OpenAI's Conversations API does not store envelopes"
            )
        if getattr(type(inner), "shows_views", False):
            raise TypeError(
                "wrap the encrypted session in the strategy: StrategySession(EncryptedSession(…), …)"
            )
        inner = getattr(inner, "wrapped", None) or getattr(inner, "underlying_session", None)
