"""Errors of bytes that are no message."""

from state_model.errors import SharelensError


class MessageError(SharelensError):
    """Raised when bytes of a peer are not the message that they should be."""


class TooManyElementsError(MessageError):
    """Raised when a message has more array elements than its API allows."""
