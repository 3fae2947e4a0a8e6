"""The span that the parameters of a question describe."""

from collections.abc import Collection

from sharelens.tables.where import Span


def span(
    *,
    from_ms: int | None,
    to_ms: int | None,
    from_offset: int | None = None,
    to_offset: int | None = None,
    state_partition: Collection[int] = (),
) -> Span:
    """The span of times, offsets and state partitions (none: all)."""
    return Span(
        from_ms=from_ms,
        to_ms=to_ms,
        from_offset=from_offset,
        to_offset=to_offset,
        state_partitions=frozenset(state_partition) or None,
    )
