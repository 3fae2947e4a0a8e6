"""Rounds of work: how long the pauses are, what is tried again, and when they end."""

import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.cli.repeating import LONGEST_INTERVAL, LONGEST_PAUSE_S, MEAN_OF, Pace, repeat, until_sigterm
from state_model.errors import SharelensError, UsageError


class AwayError(SharelensError):
    """A cluster that is away."""


class Rounds:
    """Work that takes `lasts_s` each time and fails as `errors` say; `pauses` are what it waited."""

    def __init__(self, count, lasts_s=0.0, errors=()):
        self.count, self.lasts_s, self.errors = count, lasts_s, dict(errors)
        self.done, self.now_s = 0, 100.0
        self.pauses, self.lines = [], []

    def once(self):
        self.done += 1
        self.now_s += self.lasts_s
        if self.done in self.errors:
            raise self.errors[self.done]

    def wait(self, pause_s):
        self.pauses.append(pause_s)
        self.now_s += pause_s
        return self.done == self.count

    def go(self, every_s):
        repeat(
            self.once,
            lambda: every_s,
            self.wait,
            transient=(AwayError,),
            say=self.lines.append,
            clock=lambda: self.now_s,
        )
        return self.pauses


@pytest.mark.parametrize(("lasts_s", "pauses"), [(0.0, [2.0] * 3), (0.5, [1.5] * 3), (5.0, [0.0] * 3)])
def test_rounds_begin_at_the_interval_or_at_once_after_a_longer_one(lasts_s, pauses):
    assert Rounds(3, lasts_s).go(2.0) == pauses


def test_pauses_grow_while_a_cluster_is_away_and_are_short_again_afterwards():
    rounds = Rounds(12, errors={number: AwayError("no answer") for number in range(2, 11)})
    assert rounds.go(2.0) == [2.0, 4.0, 8.0, 16.0, 32.0, *[LONGEST_PAUSE_S] * 5, 2.0, 2.0]
    assert rounds.lines == ["no answer; trying again"]


def test_an_interval_beyond_the_longest_pause_stays():
    assert Rounds(3, errors={1: AwayError("no answer")}).go(300.0) == [300.0] * 3


def test_other_errors_end_the_rounds():
    with pytest.raises(UsageError):
        Rounds(3, errors={2: UsageError("wrong")}).go(2.0)


def paced(every_s, quota, spent):
    pace = Pace(every_s, quota)
    for processor_s in spent:
        pace.spent(processor_s)
    return pace.interval_s()


@pytest.mark.parametrize(
    ("spent", "interval_s"),
    [
        ([], 2.0),
        ([50.0], 2.0),  # the first round catches up
        ([50.0, 0.3, 0.5], 2.0),
        ([50.0, 1.0, 2.0], 3.0),
        ([0.0, 9.0], 2.0 * LONGEST_INTERVAL),
        ([0.0, 9.0, *[0.5] * MEAN_OF], 2.0),
    ],
)
def test_rounds_that_would_take_more_than_the_quota_begin_later(spent, interval_s):
    assert paced(2.0, 0.5, spent) == pytest.approx(interval_s)


@given(st.floats(0.1, 60), st.floats(0.01, 1), st.lists(st.floats(0, 100), min_size=1 + MEAN_OF, max_size=3 * MEAN_OF))
def test_the_mean_of_the_last_rounds_keeps_to_the_quota_below_the_longest_interval(every_s, quota, spent):
    interval_s = paced(every_s, quota, spent)
    assert every_s <= interval_s <= LONGEST_INTERVAL * every_s
    if interval_s < LONGEST_INTERVAL * every_s:
        assert sum(spent[-MEAN_OF:]) / (MEAN_OF * interval_s) <= quota * 1.001


def test_sigterm_in_a_round_ends_the_rounds_behind_it():
    before = signal.getsignal(signal.SIGTERM)
    done = []
    with until_sigterm() as wait:

        def once():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("whole")

        repeat(once, lambda: 60.0, wait, transient=(), say=print)
    assert done == ["whole"]
    assert signal.getsignal(signal.SIGTERM) is before
