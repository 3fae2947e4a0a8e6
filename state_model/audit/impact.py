"""The impact of a violated rule on records of the user topic: a code, words, and the record offsets."""

from enum import Enum, IntEnum


class Impact(Enum):
    """The possible impact on records of the user topic; the value is the code in answers and tables."""

    NONE = "none"
    TWICE = "processed_twice"
    DELIVERED_AGAIN = "delivered_again"
    LOST = "lost"
    DELIVERED_AGAIN_OR_LOST = "delivered_again_or_lost"
    STUCK = "stuck"
    WRONG_DELIVERY_COUNT = "wrong_delivery_count"
    WRONG_LAG = "wrong_lag"

    @property
    def words(self) -> str:
        """The code in words."""
        return WORDS[self]

    @property
    def is_about_records(self) -> bool:
        """Whether records can have been delivered too often, too late, or never."""
        return self not in (Impact.NONE, Impact.WRONG_LAG)


WORDS = {
    Impact.NONE: "no record is affected",
    Impact.TWICE: "may be processed by two members at once",
    Impact.DELIVERED_AGAIN: "may have been delivered again after their outcome",
    Impact.LOST: "may never have been processed",
    Impact.DELIVERED_AGAIN_OR_LOST: "may have been delivered again, or never processed",
    Impact.STUCK: "may wait without being delivered",
    Impact.WRONG_DELIVERY_COUNT: "may have had more or fewer deliveries than the limit allows",
    Impact.WRONG_LAG: "the lag that Kafka shows may be wrong; no record is affected",
}


class Affected(IntEnum):
    """The rule by which a violation's affected record offsets follow from it."""

    ALL = 0
    """All of them, or the violation does not say which."""
    FROM = 1
    """Those from the offset of the difference on."""
    BETWEEN = 2
    """Those between the expected offset and the one that the record has, without the larger of the two."""


def affected_offsets(affected: Affected, offsets: tuple[int, int] | None, at: int) -> tuple[int, int] | None:
    """First and last record offset that a violation can have affected; None: any.

    `offsets`: the expected and the seen value where both are record offsets. `at`: the record offset that the
    difference is about, or -1. The last offset is NO_LAST where only the first is known.
    """
    if affected is Affected.ALL:
        return None
    if at >= 0:
        return at, NO_LAST
    if offsets is None or min(offsets) < 0:
        return None
    return min(offsets), max(offsets) - 1 if affected is Affected.BETWEEN else NO_LAST


NO_LAST = (1 << 63) - 1
"""The last record offset where it is unknown."""


def impact_text(impact: Impact, first_offset: int | None, last_offset: int | None, *, has_share_partition: bool) -> str:
    """The impact of a finding in words, with the record offsets (None: unknown)."""
    if not impact.is_about_records:
        return impact.words
    if not has_share_partition:
        return f"records of any share partition of the state partition {impact.words}"
    if first_offset is None:
        return f"records of the share partition {impact.words}"
    if last_offset is None:
        return f"records from offset {first_offset} on {impact.words}"
    offsets = f"record {first_offset}" if first_offset == last_offset else f"records {first_offset}-{last_offset}"
    return f"{offsets} {impact.words}"
