"""What an object consists of, as bytes: to notice quickly that the object was changed."""

import marshal

_VERSION = 2  # later formats depend on how many references an object has


def freeze(item: object) -> bytes | None:
    """The fields of an object, to be compared later; `None` if some are of types that cannot be."""
    fields = getattr(item, "__dict__", None)
    if fields is None or getattr(item, "__pydantic_extra__", None):
        return None
    try:
        return marshal.dumps(fields, _VERSION)
    except ValueError:
        return None
