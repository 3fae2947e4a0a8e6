"""The errors of lakes."""

from state_model.errors import SharelensError


class LakeError(SharelensError):
    """Raised when a lake can't be read or written."""


class LakeLockedError(LakeError):
    """Raised when another run holds the lake longer than the caller wants to wait."""


class LakeVersionError(LakeError):
    """Raised when a lake was written with table schemas that this version doesn't know."""
