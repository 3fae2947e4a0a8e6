"""Findings as the search for causes reads them."""

from typing import Final, NamedTuple

NONE: Final = -1


class Sighting(NamedTuple):
    """A finding of a rule at a place, by its first violation.

    Args:
        place: what violates the rule: a share partition in a state partition, a group, a log.
        log_offset: of the violating record.
        since: log offset of the snapshot that begins the state the rule compares with; the violating record itself
            where the rule compares with none; NONE: any record before, as the rule compares with the end of a topic.
        after: log offset of the record before the violating one that the rule compares it with; NONE: with none.
        log: topic and partition of the violating record.
        event: what the metadata log says has happened to the topic.
    """

    rule: str
    place: object
    log_offset: int
    since: int
    severity: str
    after: int = NONE
    first_ms: int = 0
    group_id: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    log: tuple[str, int] | None = None
    event: str | None = None
