"""What clients send in headers and queries: cursors, keys and tags."""

from recollect.cursors import make_cursor
from recollect.server.cursors import read_cursor
from recollect.server.idempotency import check_key
from recollect.server.problems import Problem
from recollect.server.routes.shared import check_if_match, etag_header

from ..supply import Supply


def check_headers(data: bytes) -> None:
    """A cursor, a key or a tag is read as what it was made as, or is a problem for the client."""
    supply = Supply(data)
    kind = supply.number(4)
    text = supply.rest().decode("latin-1")
    try:
        if kind == 0:
            _check_cursor(text)
        elif kind == 1:
            assert check_key(text) == text
        elif kind == 2:
            check_if_match(text, 7)
            assert text.strip() == "*" or '"7"' in text, "another tag is taken for this one"
        else:
            _check_place(text, len(data))
    except Problem as problem:
        _check_problem(problem, text)


def _check_problem(problem: Problem, text: str) -> None:
    assert 400 <= problem.status < 500
    assert text not in problem.detail or len(text) < 8, "what was sent is told back"


def _check_cursor(text: str) -> None:
    kind = "entries" if len(text) % 2 else "runs"
    types = (int,) if kind == "entries" else (str, int)
    place = read_cursor(kind, text, *types)
    assert tuple(map(type, place)) == types
    assert list(read_cursor(kind, make_cursor(kind, *place), *types)) == list(place)


def _check_place(text: str, number: int) -> None:
    assert list(read_cursor("runs", make_cursor("runs", text, number), str, int)) == [text, number]
    check_if_match(etag_header(number)["ETag"], number)
