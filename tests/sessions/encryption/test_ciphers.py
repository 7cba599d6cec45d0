"""Tokens: those of Fernet are Fernet's, those of AES-GCM are what they say, and none can be changed."""

import base64
import os
from typing import Any

import pytest
from cryptography.fernet import Fernet as LibraryFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from histories import quick
from recollect.sessions.encryption.ciphers import STAMP_BYTES, AesGcm, Fernet, ItemCipher, stamp_of

KEY = bytes(range(32))
LIBRARY = LibraryFernet(base64.urlsafe_b64encode(KEY))
NOW = stamp_of(1_800_000_000)
BOTH: list[Any] = [Fernet, AesGcm]

texts = st.lists(st.binary(max_size=100) | st.integers(0, 5000).map(bytes), max_size=20)
times = st.integers(0, 2**63 - 1)


# --- the cipher of the SDK is that of the library ---


@quick
@given(texts, times)
def test_the_library_opens_our_tokens(plaintexts: list[bytes], time: int) -> None:
    tokens = Fernet(KEY).encrypt(plaintexts, [stamp_of(time)] * len(plaintexts))
    assert [LIBRARY.decrypt(token) for token in tokens] == plaintexts
    assert [LIBRARY.extract_timestamp(token) for token in tokens] == [time] * len(tokens)


@quick
@given(texts, times)
def test_we_open_the_tokens_of_the_library(plaintexts: list[bytes], time: int) -> None:
    tokens = [LIBRARY.encrypt_at_time(text, time).decode() for text in plaintexts]
    unsealed = Fernet(KEY).decrypt(tokens) if tokens else ([], [])
    assert unsealed == ([stamp_of(time)] * len(tokens), plaintexts)


@pytest.mark.parametrize("size", range(50))
def test_every_size_is_padded_as_the_library_does_it(size: int) -> None:
    """Also between others, so that each is cut out of the stream where it ends."""
    plaintexts = [b"before", os.urandom(size), b"", b"after"]
    ours = Fernet(KEY).encrypt(plaintexts, [NOW] * 4)
    theirs = [LIBRARY.encrypt(text).decode() for text in plaintexts]
    assert [LIBRARY.decrypt(token) for token in ours] == plaintexts
    assert list(map(len, ours)) == list(map(len, theirs))
    unsealed = Fernet(KEY).decrypt(theirs)
    assert unsealed is not None
    assert unsealed.plaintexts == plaintexts


def test_every_token_has_a_vector_of_its_own() -> None:
    tokens = Fernet(KEY).encrypt([b"the same text"] * 500, [NOW] * 500)
    vectors = {base64.urlsafe_b64decode(token)[9:25] for token in tokens}
    assert len(vectors) == 500
    again = Fernet(KEY).encrypt([b"the same text"], [NOW])
    assert base64.urlsafe_b64decode(again[0])[9:25] not in vectors


# --- AES-GCM ---


@quick
@given(texts, times)
def test_a_token_is_a_time_a_nonce_and_what_the_library_encrypts(plaintexts: list[bytes], time: int) -> None:
    tokens = AesGcm(KEY).encrypt(plaintexts, [stamp_of(time)] * len(plaintexts))
    for token, text in zip(tokens, plaintexts, strict=True):
        decoded = base64.b64decode(token)
        stamp, nonce, ciphertext = decoded[:8], decoded[8:20], decoded[20:]
        assert int.from_bytes(stamp, "big") == time
        assert AESGCM(KEY).decrypt(nonce, ciphertext, stamp) == text
        assert len(ciphertext) == len(text) + 16


def test_every_token_has_a_nonce_of_its_own() -> None:
    tokens = AesGcm(KEY).encrypt([b"the same text"] * 500, [NOW] * 500)
    assert len({base64.b64decode(token)[8:20] for token in tokens}) == 500


# --- both ---


@pytest.mark.parametrize("cipher", BOTH)
@quick
@given(plaintexts=texts, time=times)
def test_what_was_sealed_is_unsealed(cipher: type[ItemCipher], plaintexts: list[bytes], time: int) -> None:
    stamps = [stamp_of((time + n) % 2**63) for n in range(len(plaintexts))]
    tokens = cipher(KEY).encrypt(plaintexts, stamps)
    if tokens:
        assert cipher(KEY).decrypt(tokens) == (stamps, plaintexts)
    for token, text, stamp in zip(tokens, plaintexts, stamps, strict=True):
        assert cipher(KEY).decrypt([token]) == ([stamp], [text])


@pytest.mark.parametrize("cipher", BOTH)
def test_a_change_of_any_byte_is_noticed(cipher: type[ItemCipher]) -> None:
    (token,) = cipher(KEY).encrypt([b'{"role": "user", "content": "hi"}'], [NOW])
    decoded = bytearray(base64.urlsafe_b64decode(token.translate(str.maketrans("+/", "-_"))))
    for place in range(len(decoded)):
        for change in (1, 0x80, 0xFF):
            changed = bytearray(decoded)
            changed[place] ^= change
            assert cipher(KEY).decrypt([_as_text(cipher, changed)]) is None, place


@pytest.mark.parametrize("cipher", BOTH)
def test_what_is_cut_off_or_added_is_noticed(cipher: type[ItemCipher]) -> None:
    (token,) = cipher(KEY).encrypt([b"some text that fills more than one block"], [NOW])
    decoded = base64.urlsafe_b64decode(token.translate(str.maketrans("+/", "-_")))
    assert cipher(KEY).decrypt([_as_text(cipher, decoded)]) is not None
    for length in range(len(decoded)):
        assert cipher(KEY).decrypt([_as_text(cipher, decoded[:length])]) is None, length
        assert cipher(KEY).decrypt([_as_text(cipher, decoded[length:])]) is None or length == 0
    for length in range(len(token)):
        assert cipher(KEY).decrypt([token[:length]]) is None, length
    assert cipher(KEY).decrypt([_as_text(cipher, decoded + b"\0")]) is None
    assert cipher(KEY).decrypt([_as_text(cipher, decoded + bytes(16))]) is None


@pytest.mark.parametrize("cipher", BOTH)
@pytest.mark.parametrize(
    "bad",
    ["", "no token", "é", "\ud83d", '","', "\\", "gAAAA\\", '"', "====", "A" * 1000, 7, None, ["A"]],
    ids=repr,
)
def test_what_is_no_token_spoils_no_other(cipher: type[ItemCipher], bad: Any) -> None:
    good = cipher(KEY).encrypt([b"a", b"b"], [NOW] * 2)
    assert cipher(KEY).decrypt([bad]) is None
    assert cipher(KEY).decrypt([good[0], bad, good[1]]) is None, "all or nothing"
    assert cipher(KEY).decrypt([bad, bad]) is None
    assert cipher(KEY).decrypt(good) == ([NOW] * 2, [b"a", b"b"])


@pytest.mark.parametrize("cipher", BOTH)
def test_two_tokens_in_the_place_of_one_are_none(cipher: type[ItemCipher]) -> None:
    """Tokens are read as one piece of JSON: what ends a text must not make another begin."""
    good = cipher(KEY).encrypt([b"a", b"b", b"c"], [NOW] * 3)
    assert cipher(KEY).decrypt([f'{good[0]}","{good[1]}', good[2]]) is None


@pytest.mark.parametrize("cipher", BOTH)
def test_another_key_opens_nothing(cipher: type[ItemCipher]) -> None:
    tokens = cipher(KEY).encrypt([b"text"], [NOW])
    for place in range(32):
        other = bytearray(KEY)
        other[place] ^= 1
        if cipher is AesGcm or place < 16:  # of Fernet's key the first half signs, and the other encrypts
            assert cipher(bytes(other)).decrypt(tokens) is None, place


def test_a_token_of_one_cipher_is_none_of_the_other() -> None:
    (fernet,), (aes_gcm,) = (cipher(KEY).encrypt([b"text"], [NOW]) for cipher in BOTH)
    assert AesGcm(KEY).decrypt([fernet]) is None
    assert Fernet(KEY).decrypt([aes_gcm]) is None


def test_times_compare_as_their_stamps_do() -> None:
    assert len(stamp_of(0)) == STAMP_BYTES
    moments = [0, 1, 255, 256, 65_535, 1_800_000_000, 2**40]
    assert sorted(map(stamp_of, reversed(moments))) == [stamp_of(moment) for moment in moments]


def _as_text(cipher: type[ItemCipher], token: bytes | bytearray) -> str:
    encode = base64.urlsafe_b64encode if cipher is Fernet else base64.b64encode
    return encode(bytes(token)).decode()
