"""The errors of jobs."""

from state_model.errors import SharelensError


class JobError(SharelensError):
    """Raised when a job can't go on; nothing that it had not finished becomes visible."""


class ClusterMismatchError(JobError):
    """Raised when directories of different Kafka clusters come into one run, or into the lake of another cluster."""


class IntervalHoleError(JobError):
    """Raised when --until would go on behind records of the state log that no given directory holds any more."""
