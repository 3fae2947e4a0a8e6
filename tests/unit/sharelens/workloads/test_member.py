"""A member that leaves: the close of its consumer has a bound."""

import threading

from confluent_kafka import KafkaException

from sharelens.workloads.member import close_within


class Consumer:
    def __init__(self, close):
        self.close = close


def test_a_consumer_that_never_closes_is_left_behind():
    is_over = threading.Event()
    try:
        (error,) = close_within(Consumer(is_over.wait), 0.05)
        assert str(error) == "the consumer did not close in 0.05 s"
    finally:
        is_over.set()


def test_the_error_of_a_close_is_returned():
    error = KafkaException("no")

    def fail():
        raise error

    assert close_within(Consumer(fail), 60) == [error]


def test_a_close_without_an_error_returns_none():
    assert close_within(Consumer(lambda: None), 60) == []
