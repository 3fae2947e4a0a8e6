"""Now: the moment until which the evidence was read, as a value that says where it comes from."""

from dataclasses import dataclass

BY_OPTION, READ, LAST_RECORD = "--now", "the evidence was read until then", "the last record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """A moment (epoch ms) and its source: BY_OPTION, READ (by times of files, by a running cluster, by the
    metadata log), or LAST_RECORD: what came after it is not known."""

    ms: int
    source: str

    @property
    def is_known(self) -> bool:
        """Whether silence up to this moment is known."""
        return self.source != LAST_RECORD
