"""What models answer: read forgivingly, and never trusted."""

from recollect.errors import UnusableAnswerError
from recollect.memory.extraction.fields import LONGEST_TEXT
from recollect.memory.extraction.responses import Draft, parse_mind, parse_modification, parse_update


def check_answers(data: bytes) -> None:
    """What a model says is read within its bounds, or is an answer that cannot be used."""
    text = data.decode("utf-8", "surrogateescape")
    for parse in (parse_modification, parse_mind):
        try:
            notes = parse(text)
        except UnusableAnswerError:
            continue
        for draft in notes.drafts:
            _check_draft(draft)
        assert notes.score is None or 0 <= notes.score <= 1
        notes.text.encode()
    try:
        choices = parse_update(text)
    except UnusableAnswerError:
        return
    assert len({choice.candidate for choice in choices}) == len(choices)
    assert all(choice.candidate >= 0 and min(choice.targets, default=0) >= 0 for choice in choices)


def _check_draft(draft: Draft) -> None:
    assert 0 < len(draft.text) <= LONGEST_TEXT
    assert draft.text.isprintable() or not any(ord(character) < 32 for character in draft.text)
    draft.text.encode()
    assert 0 <= draft.confidence <= 1
    assert all(place >= 0 for place in draft.cited)
