"""A token that was changed anywhere, by one bit or by one letter, opens as what it was or not at all."""

import pytest

from recollect.sessions.encryption.vault import CIPHERS

from .targets.encryption import VAULTS, check_opened, every_change, every_changed_byte, sealed


@pytest.mark.parametrize("cipher", CIPHERS)
def test_no_change_of_a_token_makes_another_item_of_it(cipher: str) -> None:
    envelope, vault = sealed(cipher), VAULTS[cipher]
    changes = list(every_change(envelope["payload"]))
    assert len(changes) > 8 * len(envelope["payload"])
    for payload in changes:
        check_opened(vault, [{**envelope, "payload": payload}])


@pytest.mark.parametrize("cipher", CIPHERS)
def test_no_change_of_the_bytes_that_a_token_stands_for_is_opened(cipher: str) -> None:
    envelope, vault = sealed(cipher), VAULTS[cipher]
    for payload in every_changed_byte(envelope["payload"]):
        assert vault.decrypt([{**envelope, "payload": payload}]).items == [None]
