"""What the broker counts."""

import itertools

import pytest

from sharelens.broker.metrics import BrokerMetrics, IdleSelector, Timing
from sharelens.broker.share.acknowledgement import AcknowledgementBatch, AcknowledgeType


def test_records_are_counted_by_type_whether_a_batch_has_one_type_or_one_for_each_record():
    metrics = BrokerMetrics()
    metrics.acknowledged(
        [
            AcknowledgementBatch(first_offset=0, last_offset=9, types=(AcknowledgeType.ACCEPT,)),
            AcknowledgementBatch(first_offset=10, last_offset=13, types=(1, 2, 3, 1)),
            AcknowledgementBatch(first_offset=14, last_offset=14, types=(AcknowledgeType.RENEW,)),
        ]
    )
    counted = {kind.name: metrics.acknowledged_records[kind] for kind in AcknowledgeType}
    assert counted == {"GAP": 0, "ACCEPT": 12, "RELEASE": 1, "REJECT": 1, "RENEW": 1}


def test_a_timing_knows_the_sum_and_the_longest():
    timing = Timing()
    timing.clock = itertools.count(1.0, 0.5).__next__
    timing.took(0.0)
    timing.took(1.25)
    assert (timing.count, timing.sum_s, timing.max_s) == (2, 1.25, 1.0)


@pytest.mark.slow
def test_a_loop_that_waits_is_idle():
    selector = IdleSelector()
    selector.select(0.05)
    (ratio,) = selector.ratios()
    selector.close()
    assert 0.5 < ratio <= 1.0


def test_idle_windows_are_closed_after_their_time(monkeypatch: pytest.MonkeyPatch):
    times = iter((0.0, 0.0, 6.0, 11.0, 12.0, 12.0, 24.0, 25.0))
    monkeypatch.setattr("sharelens.broker.metrics.time.monotonic", times.__next__)
    selector = IdleSelector()
    for _ in range(3):
        selector.select(0)
    assert selector.ratios() == [7 / 12, 1.0, 0.0]
    selector.close()
