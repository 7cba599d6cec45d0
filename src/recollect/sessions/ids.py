"""Session ids for pairs of user and session type. No two pairs share an id."""

from collections.abc import Collection


class SessionIds:
    """Makes ids of the form `user_type`, and escapes where that form could be read as another pair.

    `a_b_c` may be user `a` with type `b_c`, or user `a_b` with type `c`. Without declared types it is the
    latter, and underscores of a type are escaped. A declared type keeps its underscores: an id that ends with
    declared types belongs to the longest of them, and every other pair with that id is marked by `%%`.
    """

    def __init__(self, types: Collection[str] = ()) -> None:
        if isinstance(types, str) or not all(isinstance(each, str) and each for each in types):
            raise ValueError("session_types must be a collection of non-empty strings")
        if any("%" in each for each in types):
            raise ValueError("session_types must not contain '%'")
        self._types = sorted(types, key=len, reverse=True)

    def id_of(self, user_id: str, session_type: str) -> str:
        """The id of a pair."""
        _check(user_id, session_type)
        seed_form, escaped = f"{user_id}_{session_type}", f"{user_id}_{_escaped(session_type)}"
        if self._type_in(seed_form) == session_type:
            return seed_form
        return escaped if self._type_in(escaped) is None else f"{user_id}_%%{_escaped(session_type)}"

    def forms_of(self, user_id: str, session_type: str) -> list[str]:
        """The id of a pair, and then the ids that it has with other declared types, or in other software."""
        own = self.id_of(user_id, session_type)
        escaped = _escaped(session_type)
        # With a percent sign, the plain form could be the escaped form of another type of the same user.
        plain = [] if "%" in session_type else [f"{user_id}_{session_type}"]
        others = [f"{user_id}_{escaped}", *plain, f"{user_id}_%%{escaped}"]
        return list(dict.fromkeys([own, *others]))

    def _type_in(self, session_id: str) -> str | None:
        """The longest declared type that an id ends with, after a user that is not empty."""
        ends = (each for each in self._types if session_id.endswith(f"_{each}"))
        return next((each for each in ends if len(session_id) > len(each) + 1), None)


def _escaped(session_type: str) -> str:
    return session_type.replace("%", "%25").replace("_", "%5F")


def _check(user_id: object, session_type: object) -> None:
    for name, value in (("user_id", user_id), ("session_type", session_type)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name} must be a non-empty string, not {value!r}")
