"""Where a partition begins and ends by what its copies say, each of a broker and a time of its own."""

from collections.abc import Iterable


def log_start(starts: Iterable[tuple[int, bool]]) -> int:
    """The log start offset of a partition from `starts`, pairs of an offset and whether it is known or guessed.

    The largest known offset, because a log start only moves up; without one the lowest guess, because a copy may lack
    its first files; 0 when there is none.
    """
    known_or_guessed = list(starts)
    known_starts = [offset for offset, is_known in known_or_guessed if is_known]
    return max(known_starts) if known_starts else min((offset for offset, _ in known_or_guessed), default=0)


def highest_committed_end(committed_ends: Iterable[int | None]) -> int | None:
    """The committed end (exclusive) of a partition by all its copies: the high watermark only goes up.

    None stands for a copy from a directory without a high watermark file; None when every copy is one.
    """
    return max((end for end in committed_ends if end is not None), default=None)
