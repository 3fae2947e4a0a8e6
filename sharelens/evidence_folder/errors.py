"""Errors of evidence folders and of their paths."""

from state_model.errors import SharelensError


class EvidenceFolderError(SharelensError):
    """Raised when an evidence folder can't be written to its path."""


class ManifestError(SharelensError):
    """Raised when a manifest can't be read, or names files that no evidence has."""
