"""Keys: taken as the SDK takes them, and bad ones refused without being shown."""

import base64
from typing import Any

import pytest
from agents.extensions.memory.encrypt_session import _ensure_fernet_key_bytes
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from histories import quick
from recollect import InMemorySession
from recollect.sessions.encryption import EncryptedSession
from recollect.sessions.encryption.ciphers import AesGcm, derive_key, master_keys
from recollect.sessions.encryption.ciphers import Fernet as OurFernet


@quick
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
    | st.text("Aa0-_+/=. ", min_size=1, max_size=50)
)
def test_a_text_is_the_key_that_it_is_for_the_sdk(text: str) -> None:
    assert master_keys(text) == [_ensure_fernet_key_bytes(text)]


def test_a_key_made_for_fernet_is_its_bytes() -> None:
    key = Fernet.generate_key().decode()
    assert master_keys(key) == [base64.urlsafe_b64decode(key)]
    assert master_keys([key, "another"]) == [base64.urlsafe_b64decode(key), b"another"]


@pytest.mark.parametrize("bad", ["", [], [""], ["good", ""], ()], ids=repr)
def test_an_empty_key_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="empty"):
        EncryptedSession("s", InMemorySession("s"), bad)


@pytest.mark.parametrize("bad", [None, 7, b"bytes", {"a": 1}, [None], ["good", b"bytes"], {"set"}], ids=repr)
def test_what_is_no_text_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="must be a string"):
        EncryptedSession("s", InMemorySession("s"), bad)


def test_a_key_that_is_no_unicode_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="valid unicode") as caught:
        EncryptedSession("s", InMemorySession("s"), "sesame \ud83d")
    assert "sesame" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_key_is_shown_nowhere() -> None:
    session = EncryptedSession("s", InMemorySession("s"), ["sesame", "open-sesame"])
    assert "sesame" not in repr(session) + str(session)


def test_every_session_and_every_cipher_has_keys_of_its_own() -> None:
    derived = {
        derive_key(master, session_id, cipher.purpose)
        for master in (b"one", b"two")
        for session_id in ("a", "b", "会话")
        for cipher in (OurFernet, AesGcm)
    }
    assert len(derived) == 12
    assert all(len(key) == 32 for key in derived)
