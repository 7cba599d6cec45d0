"""Which messages of a call are new: clients send the whole history again with each call.

A fingerprint is a hash of a message and of the one before it, so that "yes" is another message after another
question. It is the same in a call with all messages and in one with only the newest.
"""

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b

from .values import Said

_IDS = uuid.UUID("b6f5f1c4-08f6-5d0c-8a3b-3a5e4d1c9f70")  # the namespace of our ids
_MOST = 20_000  # fingerprints in memory


def fingerprints(owner: Sequence[str], said: Sequence[Said], before: str = "") -> list[bytes]:
    """The fingerprint of each message of an owner. `before` stands for what came before the first one."""
    scope = _hash("scope", *owner)
    own = [_hash(each.role, each.name or "", " ".join(each.text.split())) for each in said]
    first = _hash("before", before)
    return [_join(scope, previous, each) for previous, each in zip([first, *own], own, strict=False)]


def derive_id(*parts: str) -> str:
    """An id that is the same for the same parts."""
    return str(uuid.uuid5(_IDS, "".join(f"{len(part)}:{part}" for part in parts)))


def message_id(fingerprint: bytes) -> str:
    """The id of the message with a fingerprint."""
    return derive_id(fingerprint.hex())


class SeenMessages:
    """The fingerprints of recorded messages, each with its conversation. The oldest are dropped."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._conversations: OrderedDict[bytes, str] = OrderedDict()

    def add(self, fingerprint: bytes, conversation_id: str) -> None:
        """Note a recorded message."""
        self._conversations[fingerprint] = conversation_id
        self._conversations.move_to_end(fingerprint)
        if len(self._conversations) > self._most:
            self._conversations.popitem(last=False)

    def find_newest(self, known: Sequence[bytes]) -> tuple[int, str | None]:
        """The number of messages up to the newest recorded one, and its conversation."""
        for place in range(len(known) - 1, -1, -1):
            conversation = self._conversations.get(known[place])
            if conversation is not None:
                return place + 1, conversation
        return 0, None

    def __len__(self) -> int:
        return len(self._conversations)


def _hash(*parts: str) -> bytes:
    made = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8, "big") + data)
    return made.digest()


def _join(*parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=16).digest()
