"""Sessions whose items are encrypted before they are stored."""

from ...extras import require_extra

require_extra("encrypt", "cryptography.fernet", "EncryptedSession")

from .session import EncryptedSession  # noqa: E402 - it needs the extra that is checked above

__all__ = ["EncryptedSession"]
