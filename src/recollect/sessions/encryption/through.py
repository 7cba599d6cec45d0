"""Attributes of an encrypted session that exist only where the session underneath has them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ..protocol import own_method


class Handed:
    """A method of the wrapped session, as it is."""

    _name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, session: Any, owner: type | None = None) -> Any:
        return self if session is None else self._method_for(session)

    def _method_for(self, session: Any) -> Callable[..., Any]:
        return _method_of(session, self._name)


class Through(Handed):
    """An ability of the wrapped session, while the encrypted session is open.

    `function` does with items what the wrapped session does with envelopes, and takes the reader first.
    Without it the method neither takes nor gives contents. `needs` is the method that the wrapped
    session must have, if it is not the one of the same name.
    """

    def __init__(self, function: Callable[..., Any] | None = None, needs: str | None = None) -> None:
        self._function = function
        self._needs = needs

    def _method_for(self, session: Any) -> Callable[..., Any]:
        wrapped = _method_of(session, self._needs or self._name)
        method = wrapped if self._function is None else partial(self._function, session._reader)

        async def call(*args: Any, **kwargs: Any) -> Any:
            session._check_open()
            return await method(*args, **kwargs)

        return call


def _method_of(session: Any, name: str) -> Callable[..., Any]:
    method = own_method(session.wrapped, name)
    if method is None:
        raise AttributeError(f"{type(session.wrapped).__name__!r} object has no method {name!r} of its own")
    return method
