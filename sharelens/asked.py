"""What a command line asks for, as plain values: where to look and at which moment."""

from dataclasses import dataclass

DEFAULT_MAX_BYTES = 2 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the answer comes from: a lake, or log directories (at most `max_bytes` of state log)."""

    lake: str | None = None
    log_dirs: tuple[str, ...] = ()
    cluster_id: str | None = None
    include_uncommitted: bool = False
    include_deleted: bool = False
    topic_names: str | None = None
    max_bytes: int = DEFAULT_MAX_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class CutAsked:
    """The moment a question is about: now (neither field), a time, or offsets of state partitions."""

    as_of_ms: int | None = None
    at_offsets: dict[int, int] | None = None
