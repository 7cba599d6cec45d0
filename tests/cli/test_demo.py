"""The demo does what it says: what one process was told another knows, and what was learned has evidence."""

import subprocess
import sys


def test_the_demo_ends_by_telling_what_was_learned_and_why() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "recollect", "demo"], capture_output=True, text=True, check=True
    )
    assert "Of course: you are Ada, and you live in Lisbon." in ended.stdout
    learned = ended.stdout.split("Learned about the user", 1)[1]
    assert "The user lives in Lisbon." in learned
    assert 'because they said: "Hello! My name is Ada and I live in Lisbon."' in learned
    assert "event  The user started a pottery class yesterday" in learned
