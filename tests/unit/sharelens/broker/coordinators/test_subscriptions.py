"""What consumers subscribe to, from bytes that clients choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.coordinators.subscriptions import subscribed_topics


def text(name):
    raw = name.encode()
    return len(raw).to_bytes(2, "big") + raw


def subscription(*topics, version=3, tail_bytes=b"\xff\xff\xff\xff\x00\x00\x00\x00"):
    return version.to_bytes(2, "big") + len(topics).to_bytes(4, "big") + b"".join(map(text, topics)) + tail_bytes


def test_the_topics_of_a_subscription_are_read_whatever_follows_them():
    assert subscribed_topics(subscription("orders", "päckchen")) == {"orders", "päckchen"}
    assert subscribed_topics(subscription(tail_bytes=b"")) == frozenset()


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x00\x00\x00",
        b"\x00\x00\x7f\xff\xff\xff" + text("a"),
        b"\x00\x00\xff\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x02" + text("a"),
        b"\x00\x00\x00\x00\x00\x01\x00\x09a",
        b"\x00\x00\x00\x00\x00\x01\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00\x01\xff",
    ],
)
def test_bytes_that_are_no_subscription_are_none(metadata):
    assert subscribed_topics(metadata) is None


@given(st.binary(max_size=60))
def test_no_bytes_make_it_fail(metadata):
    actual = subscribed_topics(metadata)
    assert actual is None or isinstance(actual, frozenset)
