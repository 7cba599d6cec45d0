"""Sessions whose items are encrypted before they are stored."""

from ...extras import require_extra

require_extra("encrypt", "cryptography.fernet", "EncryptedSession")

from .session import EncryptedSession  # noqa: E402 - only now is it known that it can be imported

__all__ = ["EncryptedSession"]
