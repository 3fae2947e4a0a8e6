"""What consumers subscribe to, from bytes that clients choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.consumer_protocol import (
    PROTOCOL_TYPE,
    ProtocolAssignment,
    ProtocolSubscription,
    read_assignment,
    read_subscription,
    read_version,
    subscribed_topics,
    write_assignment,
)
from state_model.errors import BufferUnderflowError, DecodeError, InvalidLengthError


def text(name):
    raw = name.encode()
    return len(raw).to_bytes(2, "big") + raw


def subscription(*topics, version=3, user_data=b"\xff\xff\xff\xff", tail_bytes=b"\0\0\0\0\0\0\0\5\xff\xff"):
    names = len(topics).to_bytes(4, "big") + b"".join(map(text, topics))
    return version.to_bytes(2, "big", signed=True) + names + user_data + (tail_bytes if version else b"")


OWNED = (1).to_bytes(4, "big") + text("orders") + bytes([0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0])
OF_VERSION_3 = OWNED + bytes(4) + text("rack-a")


def test_each_version_adds_fields_and_the_bytes_behind_them_are_ignored():
    owned = frozenset({("orders", 7), ("orders", 0)})
    names = {"orders", "päckchen"}
    metadata = [subscription(*names, version=version, tail_bytes=OF_VERSION_3) for version in range(3)]
    assert [read_subscription(data) for data in metadata] == [
        ProtocolSubscription(names),
        ProtocolSubscription(names, owned),
        ProtocolSubscription(names, owned),
    ]
    for version in (3, 4, 9):
        data = subscription(*names, version=version, tail_bytes=OF_VERSION_3 + b"later")
        assert read_subscription(data) == ProtocolSubscription(names, owned, "rack-a")
        assert read_version(data) == 3
    assert read_subscription(subscription("t", user_data=text("") + b"\0\2ab")).rack_id is None


@given(
    st.frozensets(st.tuples(st.sampled_from(["orders", "päckchen"]), st.integers(0, 9))), st.integers(0, 3), st.binary()
)
def test_an_assignment_is_read_as_it_was_written(partitions, version, behind):
    data = write_assignment(version, partitions)
    assert read_version(data) == version
    assert read_assignment(data + behind) == ProtocolAssignment(partitions)


def test_the_data_of_an_assignor_are_read():
    data = write_assignment(1, [("orders", 3)])
    assert read_assignment(data[:-4] + b"\0\0\0\2ab") == ProtocolAssignment(frozenset({("orders", 3)}), b"ab")
    assert read_assignment(data[:-4] + bytes(4)).user_data == b""


def test_the_bytes_are_those_of_kafka():
    assert PROTOCOL_TYPE == "consumer"
    assert write_assignment(1, [("t", 2), ("t", 0)]).hex() == "000100000001000174000000020000000000000002ffffffff"


def test_a_version_below_0_and_a_missing_one_are_refused():
    with pytest.raises(InvalidLengthError, match="version -1"):
        read_subscription(subscription(version=-1))
    with pytest.raises(BufferUnderflowError):
        read_assignment(b"\0")
    with pytest.raises(DecodeError):
        read_assignment(write_assignment(0, [("t", 1)])[:-5])


def test_the_topics_of_a_subscription_are_read():
    assert subscribed_topics(subscription("orders", "päckchen")) == {"orders", "päckchen"}
    assert subscribed_topics(subscription(version=0)) == frozenset()
    assert subscribed_topics(subscription("orders", tail_bytes=b"")) == {"orders"}


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
