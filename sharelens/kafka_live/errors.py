"""Errors of reading a running cluster."""

from state_model.errors import SharelensError


class ClusterError(SharelensError):
    """Raised when a cluster can't be reached, refuses a request, or answers what no broker answers."""
