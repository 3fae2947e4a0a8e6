"""Incarnations of a topic: a topic that was deleted and created again has a new id and starts again at offset 0.

"Now" is the newest incarnation of the state topic: the one whose log time is the largest.
"""

from collections.abc import Iterable


def newest_first(log_times_ms: Iterable[tuple[str, int | None]]) -> list[str]:
    """Topic ids of one topic's incarnations, the one with the largest log time first, without repetition.

    Args:
        log_times_ms: (topic id, log time) pairs in any order, as many for an id as there are; null counts as older
            than every time. Equal times go by topic id, ascending.
    """
    newest: dict[str, tuple[bool, int]] = {}
    for topic_id, time_ms in log_times_ms:
        rank = (time_ms is not None, time_ms or 0)
        newest[topic_id] = max(rank, newest.get(topic_id, rank))
    by_id = sorted(newest)
    return sorted(by_id, key=lambda topic_id: newest[topic_id], reverse=True)  # stable: equal times stay by id


def newest_incarnation(log_times_ms: Iterable[tuple[str, int | None]]) -> str | None:
    """The topic id of the newest incarnation (the first of `newest_first`); None when there is none."""
    return next(iter(newest_first(log_times_ms)), None)
