"""Where a session's parts are stored in Redis.

    agents:session:ID             hash    session_id, created_at, updated_at; ours: recollect:…, also notes
    agents:session:ID:messages    list    an entry for each item, as JSON
    agents:session:ID:counter     string  reserved by the Agents SDK, not used by us
    agents:session:ID<NUL>batches zset    the ids of batches that were added with one
    agents:session:ID<NUL>lease   string  the owner of the lease on the session

The first three are the Agents SDK's. The others have a NUL in their names. No session id can contain a NUL,
so these keys cannot belong to another session. In a cluster the id is a hash tag, `agents:session:{ID}`, so
that all keys of a session are in one slot. The SDK does not write to clusters and has no layout of its own
for them. If the prefix has a hash tag, all its sessions are in one slot already, and the layout stays the
SDK's.

Metadata and notes are fields of the session's hash. So they are in its slot, expire with it, and are deleted
with it.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ...items import decode_item, encode_items
from ...text_checks import check_text
from ..protocol import Note, SessionMetadata, check_metadata

_RESERVED = (":messages", ":counter")


class Keys(NamedTuple):
    """The keys of one session."""

    session: bytes
    messages: bytes
    counter: bytes
    batches: bytes
    lease: bytes


class Layout:
    """The names of keys under a prefix."""

    def __init__(self, prefix: str, cluster: bool) -> None:
        _check_prefix(prefix, cluster)
        tags_ids = cluster and not _hash_tag(prefix)
        self._before = f"{prefix}:{{" if tags_ids else f"{prefix}:"
        self._after = "}" if tags_ids else ""

    def keys_of(self, session_id: str) -> Keys:
        """Return the keys of a session. Raise `ValueError` if they would be the keys of another session."""
        if session_id.endswith(_RESERVED):
            endings = " or ".join(map(repr, _RESERVED))
            raise ValueError(f"session_id must not end in {endings}: in Redis these are other sessions' keys")
        if self._after and session_id.startswith("}"):
            session_id = f"\0{session_id}"  # an empty hash tag is ignored by Redis
        session = f"{self._before}{session_id}{self._after}"
        names = (
            session,
            f"{session}:messages",
            f"{session}:counter",
            f"{session}\0batches",
            f"{session}\0lease",
        )
        return Keys(*(name.encode() for name in names))

    @property
    def pattern(self) -> bytes:
        """The pattern that matches all keys under the prefix."""
        escaped = "".join(
            f"\\{character}" if character in "*?[]\\" else character for character in self._before
        )
        return f"{escaped}*".encode()


@lru_cache(maxsize=64)
def layout_of(prefix: str, cluster: bool) -> Layout:
    """Return the cached layout for a prefix."""
    return Layout(prefix, cluster)


def _check_prefix(prefix: object, cluster: bool) -> None:
    if not isinstance(prefix, str) or not prefix or "\0" in prefix or not _is_encodable(prefix):
        raise ValueError(f"key_prefix must be non-empty unicode without NUL characters, not {prefix!r}")
    if cluster and _hash_tag(prefix) == "":
        raise ValueError(
            f"key_prefix {prefix!r} has an empty hash tag: a cluster could not keep keys together"
        )


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _hash_tag(text: str) -> str | None:
    """Return the hash tag of a key: the text from the first opening brace to the next closing one."""
    _, opening, rest = text.partition("{")
    tag, closing, _ = rest.partition("}")
    return tag if opening and closing else None


_TEXTS = ("user_id", "agent_id", "title")


def encode_metadata(metadata: SessionMetadata) -> str:
    """Encode metadata as JSON. Raise `TypeError` or `ValueError` if it cannot be stored."""
    check_metadata(metadata)
    texts: dict[str, Any] = {name: getattr(metadata, name) for name in _TEXTS}
    return encode_items([{**texts, "data": dict(metadata.data)}])[0]


def decode_metadata(stored: bytes | None) -> SessionMetadata:
    """Decode metadata. Return empty metadata if there is none, or if the field has another format."""
    fields = decode_item(stored) if stored else None
    if fields is None or set(fields) != {*_TEXTS, "data"} or type(fields["data"]) is not dict:
        return SessionMetadata()
    return SessionMetadata(**fields)


def field_of(key: str) -> str:
    """Return the name of the hash field of a note."""
    return f"recollect:note:{check_text('key', key)}"


def encode_note(data: Mapping[str, Any]) -> str:
    """Encode a note as JSON. Raise `TypeError` if it cannot be stored. The script prepends its version."""
    return encode_items([dict(data)])[0]


def decode_note(stored: bytes | None) -> Note | None:
    """Decode a note from `version JSON`.

    Return `None` if there is none, or if the field has another format.
    """
    version, separator, text = (stored or b"").partition(b" ")
    return Note(int(version), decode_item(text) or {}) if version.isdigit() and separator else None
