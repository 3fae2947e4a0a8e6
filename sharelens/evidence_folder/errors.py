"""What can be wrong with evidence, or with where it is to be written."""

from state_model.errors import SharelensError


class EvidenceFolderError(SharelensError):
    """Raised when a folder of evidence can't be written where it was asked for."""


class ManifestError(SharelensError):
    """Raised when a manifest can't be read, or names files that no evidence has."""
