"""What models answer: read forgivingly, and never trusted."""

from recollect.errors import UnusableAnswerError
from recollect.memory.extraction.fields import LONGEST_TEXT
from recollect.memory.extraction.responses import Draft, parse_response


def check_answers(data: bytes) -> None:
    """What a model says is read within its bounds, or is an answer that cannot be used."""
    try:
        parsed = parse_response(data.decode("utf-8", "surrogateescape"))
    except UnusableAnswerError:
        return
    for draft in parsed.drafts:
        _check_draft(draft)
    assert min(parsed.unreadable, parsed.too_many) >= 0


def _check_draft(draft: Draft) -> None:
    assert 0 < len(draft.text) <= LONGEST_TEXT
    assert draft.text.isprintable() or not any(ord(character) < 32 for character in draft.text)
    draft.text.encode()
    assert 0 <= draft.confidence <= 1
    assert all(place >= 0 for place in (*draft.cited, *draft.replaced))
    draft.quote.encode()
