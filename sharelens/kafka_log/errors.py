"""Errors of reading log directories."""

from state_model.errors import SharelensError, UsageError


class LogDirectoryError(SharelensError):
    """Raised when a directory is no log directory, is not there, or can't be read."""


class ArchiveError(LogDirectoryError):
    """Raised when an archive of log directories can't be unpacked, or has none inside."""


class CheckpointError(LogDirectoryError):
    """Raised when a checkpoint or metadata file of a log directory is not what Kafka writes."""


class SourceMissingError(LogDirectoryError):
    """Raised when a directory that was listed before is not visible to the process that should read it."""


class CopyConflictError(SharelensError):
    """Raised when two copies hold different records at one offset under one leader epoch: two clusters share an id."""


class MixedClustersError(UsageError):
    """Raised when log directories of different clusters are to be read as one."""
