"""Checks of texts that callers pass in."""

from .errors import InvalidTypeError, InvalidValueError


def check_text(name: str, text: object) -> str:
    """Return the text if every database can store it.

    Otherwise raise an error that names the argument and does not quote its value.
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"{name} must be a string, not {type(text).__name__}")
    if not _is_unicode(text):
        raise InvalidValueError(f"{name} must be valid unicode without NUL characters")
    return text


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return "\0" not in text
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
