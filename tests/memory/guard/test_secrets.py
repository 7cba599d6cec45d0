"""Secrets are masked: one example and one near miss for each pattern."""

import pytest

from recollect.memory.guard.patterns import SecretPattern
from recollect.memory.guard.secrets import PATTERNS, label, mask_secrets, mask_value

from .examples import ALL, Example

ORDINARY = [
    "I live at 1600 Main Street and my phone number is 555-0134.",
    "The meeting on 2024-05-07 is at 14:30, and the order number is 1234567890.",
    "I forgot my password again.",
    "I use a password manager, and my password policy is strict.",
    "We pinned the version to 3.11.4.",
    "My account at the bank is overdrawn.",
    "The card game ended 21 to 17.",
    "Our API key rotation is automatic.",
    "I ran 10 000 steps, and 42 195 metres in 2023.",
    "The token costs 0.5 dollars.",
    "My code name is Falcon.",
    "ISBN 978-3-16-148410-0 is on my list.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b broke it",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "我的密码忘记了，请问怎么办？",
    "The secret is out: I am getting married.",
    "My social life is great.",
    "The key to success is patience.",
]


@pytest.mark.parametrize("example", ALL, ids=lambda example: f"{example.name}: {example.near_miss[:20]}")
def test_a_secret_is_masked_and_a_near_miss_is_not(example: Example) -> None:
    masked = mask_secrets(example.text)
    assert masked.found == {example.name: 1}
    assert label(example.name) in masked.text
    assert mask_secrets(example.near_miss).text == example.near_miss


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_a_masked_text_is_masked_once(example: Example) -> None:
    masked = mask_secrets(example.text).text
    assert mask_secrets(masked).text == masked
    assert not mask_secrets(masked).found


def test_there_are_examples_for_every_pattern_and_at_least_45_kinds() -> None:
    assert len({pattern.name for pattern in PATTERNS}) >= 45
    unproven = [pattern.name for pattern in PATTERNS if not any(_finds(pattern, each.text) for each in ALL)]
    assert unproven == []


def _finds(pattern: SecretPattern, text: str) -> bool:
    if not any(hint in text.lower() for hint in pattern.hints):
        return False
    has_group = "secret" in pattern.regex.groupindex
    found = [match["secret"] if has_group else match[0] for match in pattern.regex.finditer(text)]
    return any(pattern.check is None or pattern.check(each or "") for each in found)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_sentences_stay_as_they_are(text: str) -> None:
    assert mask_secrets(text).text == text


def test_only_the_secret_is_masked() -> None:
    masked = mask_secrets("My password is hunter2. I live in Lisbon.")
    assert masked.text == "My password is [masked password]. I live in Lisbon."
    url = mask_secrets("We use postgresql://app:" + "s3cr3t" + "@db.example.com/main daily")
    assert url.text == "We use postgresql://app:[masked password in a URL]@db.example.com/main daily"


def test_secrets_inside_of_json_are_masked() -> None:
    value = {"value": "the PIN is 4831", "list": ["my PIN is 9920", 3, None], "date": "2024-05-07"}
    assert mask_value(value) == {
        "value": "the PIN is [masked PIN]",
        "list": ["my PIN is [masked PIN]", 3, None],
        "date": "2024-05-07",
    }


@pytest.mark.parametrize(
    "part", ["card ", "password is ", "4242 ", "eyJa.", "://a:", "key-", "seed phrase is abc ", "AKIA", "1-"]
)
def test_a_long_text_of_repetitions_is_read(part: str) -> None:
    """A pattern that backtracks would not end here."""
    text = part * (100_000 // len(part))
    assert len(mask_secrets(text).text) > 0


@pytest.mark.parametrize("filler", [" ", "\n", "is ", "password: ", "="])
def test_a_long_text_is_masked_in_linear_time(filler: str) -> None:
    # Quadratic work would take hours here, and the test would be ended.
    text = "my password is" + filler * (300_000 // len(filler)) + " and I like tea"
    assert mask_secrets(text).text.endswith("tea")
