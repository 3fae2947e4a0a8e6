"""Errors of all packages: one base, a shallow tree. A message says what, where and what to do, in one line."""

from typing import ClassVar


class SharelensError(Exception):
    """Raised when a command cannot go on; the base of every error of ours (exit code 1)."""


class UsageError(SharelensError):
    """Raised when an argument is invalid: an unknown name, a time without a zone, a wrong option (exit 2)."""


class DecodeError(SharelensError):
    """Raised when bytes are not what their schema says; `reason` is the code that a quarantine row carries."""

    reason: ClassVar[str] = "malformed_value"


class BufferUnderflowError(DecodeError):
    """Raised when a field, or the length that it claims, reaches beyond the bytes that are there."""

    reason = "truncated_value"


class MalformedVarintError(DecodeError):
    """Raised when an unsigned varint does not end within five bytes or is wider than 32 bits."""

    reason = "malformed_varint"


class InvalidLengthError(DecodeError):
    """Raised when a length is negative, null where there is no null, or not that of the tagged field it stands for."""

    reason = "invalid_length"


class InvalidTextError(DecodeError):
    """Raised when a string is not UTF-8."""

    reason = "invalid_utf8"


class InvalidKeyError(DecodeError):
    """Raised when a record has no key, or its key is cut short."""

    reason = "bad_key"


class MissingValueError(DecodeError):
    """Raised when a record has a null value although its type knows no tombstone (a ShareUpdate)."""

    reason = "update_without_value"


class InvalidUuidError(DecodeError):
    """Raised when a text is not the 22 characters of a Kafka uuid, or bytes are not 16."""


class EncodeError(SharelensError):
    """Raised when a value does not fit its schema: an integer too wide, a string too long, a field missing."""


class PartitionAssignorError(SharelensError):
    """Raised when a member of a consumer group subscribes to a topic whose number of partitions is missing."""
