"""Errors of all packages: one base, a shallow tree. A message says what, where and what to do, in one line."""

from typing import ClassVar


class SharelensError(Exception):
    """Raised when a command cannot go on; the base of every error of ours (exit code 1)."""


class UsageError(SharelensError):
    """Raised when what was typed cannot be meant: an unknown name, a time without a zone, options that exclude (exit 2)."""


class DecodeError(SharelensError):
    """Raised when bytes are not what their schema says; `reason` is the code that a quarantine row carries."""

    reason: ClassVar[str] = "malformed"


class BufferUnderflowError(DecodeError):
    """Raised when a field, or the length that it claims, reaches beyond the bytes that are there."""

    reason = "truncated_value"


class MalformedVarintError(DecodeError):
    """Raised when a variable-length integer does not end within the bytes that its width allows."""

    reason = "malformed_varint"


class InvalidLengthError(DecodeError):
    """Raised when a length or count is negative, or null where the schema has no null."""

    reason = "invalid_length"


class InvalidMarkerError(DecodeError):
    """Raised when the byte before a nullable struct is neither -1 (null) nor 1 (present)."""

    reason = "invalid_marker"


class InvalidTextError(DecodeError):
    """Raised when a string is not UTF-8."""

    reason = "invalid_utf8"


class TagOrderError(DecodeError):
    """Raised when tagged fields do not ascend, so that writing them back would change the bytes."""

    reason = "tag_order"


class InvalidKeyError(DecodeError):
    """Raised when a record's key is missing, cut short or longer than its schema."""

    reason = "bad_key"


class MissingValueError(DecodeError):
    """Raised when a record has a null value where its type knows no tombstone (a ShareUpdate)."""

    reason = "update_without_value"


class EncodeError(SharelensError):
    """Raised when a value does not fit its schema: an integer too wide, a string too long, a field missing."""


class InvalidUuidError(DecodeError):
    """Raised when a text is not the 22 characters of a Kafka uuid, or bytes are not 16."""

    reason = "invalid_uuid"
