"""Which messages of a call are new."""

from recollect.server.proxy.fingerprints import SeenMessages, fingerprints
from recollect.server.proxy.values import Said

OWNER = ("default", "assistant", "ada", "")
TALK = [Said("user", "Hi"), Said("assistant", "Hello!"), Said("user", "Book it?"), Said("assistant", "Sure?")]


def test_a_message_has_the_same_fingerprint_wherever_the_call_begins() -> None:
    assert (
        fingerprints(OWNER, TALK)[1:] == fingerprints(OWNER, TALK[:3])[1:] + fingerprints(OWNER, TALK[2:])[1:]
    )


def test_spaces_do_not_make_another_message() -> None:
    assert fingerprints(OWNER, [Said("user", " Hi\n there ")]) == fingerprints(
        OWNER, [Said("user", "Hi there")]
    )


def test_the_same_words_after_another_message_are_another_message() -> None:
    yes = Said("user", "yes")
    assert fingerprints(OWNER, [TALK[1], yes])[1] != fingerprints(OWNER, [TALK[3], yes])[1]


def test_another_owner_role_name_or_start_makes_another_message() -> None:
    made = [
        fingerprints(OWNER, TALK[:1])[0],
        fingerprints((*OWNER[:2], "bob", ""), TALK[:1])[0],
        fingerprints(OWNER, [Said("assistant", "Hi")])[0],
        fingerprints(OWNER, [Said("user", "Hi", "bob")])[0],
        fingerprints(OWNER, TALK[:1], "resp_1")[0],
    ]
    assert len(set(made)) == len(made)


def test_everything_up_to_the_newest_seen_message_is_known() -> None:
    seen = SeenMessages()
    for fingerprint in fingerprints(OWNER, TALK[:2]):
        seen.add(fingerprint, "c1")
    assert seen.find_newest(fingerprints(OWNER, TALK)) == (2, "c1")
    assert seen.find_newest(fingerprints(OWNER, TALK[1:])) == (0, None)
    assert seen.find_newest(fingerprints(OWNER, TALK[2:])) == (0, None)


def test_the_oldest_are_forgotten() -> None:
    seen = SeenMessages(most=2)
    known = fingerprints(OWNER, TALK)
    for fingerprint in known:
        seen.add(fingerprint, "c1")
    assert len(seen) == 2
    assert seen.find_newest(known[:2]) == (0, None)
