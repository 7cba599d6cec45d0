"""Encrypted tokens: one that was changed is not opened, or is opened as what it was."""

import base64
from collections.abc import Iterator

from recollect.items import encode_items
from recollect.sessions.encryption.ciphers import STAMP_BYTES
from recollect.sessions.encryption.vault import CIPHERS, Vault

from ..supply import Item, Supply

_ITEM: Item = {"role": "user", "content": "my card is 4111"}
_STAMP = (1_700_000_000).to_bytes(STAMP_BYTES, "big")
_KEYS = [b"an older key" * 3, b"the key" * 5]
VAULTS = {cipher: Vault("session", _KEYS, cipher, False) for cipher in CIPHERS}


def sealed(cipher: str) -> Item:
    """An item in its envelope."""
    (text,) = encode_items([_ITEM])
    (envelope,) = VAULTS[cipher].encrypt([text.encode()], [_STAMP])
    return envelope


_ENVELOPES = [sealed(cipher) for cipher in CIPHERS]


def check_opened(vault: Vault, stored: list[Item]) -> None:
    """What is opened is what was sealed: there is nothing between that and nothing at all."""
    opened = vault.decrypt(stored)
    assert len(opened.items) == len(stored)
    assert all(item is None or item == _ITEM for item in opened.items), "a token opens as something else"


def every_change(token: str) -> Iterator[str]:
    """The token with each bit of each byte turned, with each byte left out, cut short, and made longer."""
    data = token.encode()
    for place, byte in enumerate(data):
        for bit in range(8):
            yield (data[:place] + bytes([byte ^ 1 << bit]) + data[place + 1 :]).decode("latin-1")
        yield (data[:place] + data[place + 1 :]).decode()
        yield data[:place].decode()
        yield f"{token[:place]}A{token[place:]}"
    yield from every_changed_byte(token)


def every_changed_byte(token: str) -> Iterator[str]:
    """The token with each bit of what its letters stand for turned."""
    data = base64.urlsafe_b64decode(token)
    encode = base64.urlsafe_b64encode if set("-_") & set(token) else base64.b64encode
    for place, byte in enumerate(data):
        for bit in range(8):
            yield encode(data[:place] + bytes([byte ^ 1 << bit]) + data[place + 1 :]).decode()


def check_tokens(data: bytes) -> None:
    """Envelopes with anything in them, among others that are as they were."""
    supply = Supply(data)
    vault = VAULTS[supply.choose(tuple(CIPHERS))]
    stored: list[Item] = [supply.choose(_ENVELOPES), _changed(supply), supply.choose(_ENVELOPES)]
    check_opened(vault, stored)
    opened = vault.decrypt(stored)
    assert opened.items[0] == opened.items[2] == _ITEM, "one that is broken hides the others"


def _changed(supply: Supply) -> Item:
    envelope = dict(supply.choose(_ENVELOPES))
    match supply.number(4):
        case 0:
            envelope["payload"] = supply.rest().decode("latin-1")
        case 1:
            envelope["payload"] = _edited(envelope["payload"], supply)
        case 2:
            envelope |= supply.mapping()
        case _:
            envelope[supply.choose(("__enc__", "v", "kid", "payload"))] = supply.value()
    return envelope


def _edited(token: str, supply: Supply) -> str:
    place = supply.number(len(token))
    return token[:place] + supply.text() + token[place + supply.number(5) :]
