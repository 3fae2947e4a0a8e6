"""What tasks keep for themselves: made once, and never waited for by another task."""

import threading
from concurrent.futures import ThreadPoolExecutor

from jobs.measure.kept_property import kept_property

LONGEST_S = 10.0


class Kept:
    """Two of them meet while each makes its value."""

    def __init__(self, meeting: threading.Barrier) -> None:
        self.meeting = meeting
        self.made = 0

    @kept_property
    def value(self) -> int:
        """How often it was made."""
        self.meeting.wait(LONGEST_S)
        self.made += 1
        return self.made


def test_it_is_made_once() -> None:
    one = Kept(threading.Barrier(1))
    assert (one.value, one.value) == (1, 1)
    assert Kept.value.__doc__ == "How often it was made."


def test_two_instances_are_asked_at_the_same_time() -> None:
    meeting = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda one: one.value, [Kept(meeting), Kept(meeting)])) == [1, 1]
