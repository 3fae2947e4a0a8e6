"""Errors of writing logs."""

from state_model.errors import SharelensError


class BatchEncodeError(SharelensError):
    """Raised when records can't be written as a record batch: offsets that don't ascend, a column that is missing."""
