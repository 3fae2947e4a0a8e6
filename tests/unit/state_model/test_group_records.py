import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model import group_records
from state_model.codec.primitives import UnknownTag
from state_model.errors import (
    BufferUnderflowError,
    DecodeError,
    InvalidKeyError,
    InvalidLengthError,
    InvalidTextError,
    MalformedVarintError,
)
from state_model.group_records import (
    GroupRecord,
    camel_case,
    decode_record,
    encode_record,
    from_formatter_json,
    to_formatter_json,
)
from state_model.group_schemas import RECORD_TYPES, TABLE_TYPES, GroupKind
from state_model.share_records import UnknownTypeRecord
from tests.consumer_group_vectors import CONSUMER_VECTORS, GROUP, HEAD_OF_MEMBER, ID, KEYS, MEMBER, TIME_MS, TOPIC, raw
from tests.record_trees import trees

# Type, rest of the key, value in bytes, value in Kafka's JSON. The bytes are those of the 4.3.1 serde
# (consumer-offsets-records §3 and §4); 20, 21 and 23 are put together from their schemas.
VECTORS = [
    *CONSUMER_VECTORS,
    (
        10,
        MEMBER,
        "0000 00 0263 0b2f3132372e302e302e31 02 0274 00",
        {"rackId": None, "clientId": "c", "clientHost": "/127.0.0.1", "subscribedTopicNames": ["t"]},
    ),
    (11, GROUP, "0000 00000004 1122334455667788 00", {"epoch": 4, "metadataHash": 0x1122334455667788}),
    (
        12,
        GROUP,
        "0000 00000004 01 00 08 0000018bcfe56800",
        {"assignmentEpoch": 4, "assignmentTimestamp": TIME_MS},
    ),
    (12, GROUP, "0000 00000004 00", {"assignmentEpoch": 4}),
    (
        13,
        MEMBER,
        f"0000 02 {ID} 02 00000000 00 00",
        {"topicPartitions": [{"topicId": TOPIC, "partitions": [0]}]},
    ),
    (
        14,
        MEMBER,
        f"0000 00000004 00000003 00 02 {ID} 03 00000000 00000001 00 00",
        {
            "memberEpoch": 4,
            "previousMemberEpoch": 3,
            "state": 0,
            "assignedPartitions": [{"topicId": TOPIC, "partitions": [0, 1]}],
        },
    ),
    (
        15,
        GROUP,
        f"0000 01 02 {ID} 0274 02 00000000 00 01 00",
        {
            "initializingTopics": [],
            "initializedTopics": [{"topicId": TOPIC, "topicName": "t", "partitions": [0]}],
            "deletingTopics": [],
        },
    ),
    (
        17,
        GROUP,
        "0000 00000002 0000000000000001 01 00 04 00000001",
        {"epoch": 2, "metadataHash": 1, "validatedTopologyEpoch": 1},
    ),
    (
        17,
        GROUP,
        "0000 00000002 0000000000000001 02 00 04 00000001 01 06 02 026b 0276 00",
        {
            "epoch": 2,
            "metadataHash": 1,
            "validatedTopologyEpoch": 1,
            "lastAssignmentConfigs": [{"key": "k", "value": "v"}],
        },
    ),
    (
        17,
        GROUP,
        "0000 00000002 0000000000000001 01 01 01 00",
        {"epoch": 2, "metadataHash": 1, "lastAssignmentConfigs": None},
    ),
    (
        19,
        MEMBER,
        "0000 00 00 0263 0268 000493e0 00000001 0270 01 02 78 1f90 00 01 00",
        {
            "instanceId": None,
            "rackId": None,
            "clientId": "c",
            "clientHost": "h",
            "rebalanceTimeoutMs": 300000,
            "topologyEpoch": 1,
            "processId": "p",
            "userEndpoint": {"host": "x", "port": 8080},
            "clientTags": [],
        },
    ),
    (20, GROUP, "0000 00000002 00", {"assignmentEpoch": 2}),
    (
        21,
        MEMBER,
        "0000 02 0230 02 00000007 00 01 01 00",
        {"activeTasks": [{"subtopologyId": "0", "partitions": [7]}], "standbyTasks": [], "warmupTasks": []},
    ),
    (
        22,
        MEMBER,
        """0000 00000002 00000001 01 02 0230 02 00000000 01 00 05 02 00000002 02 0230 02 00000001 00 01 01 01 01 00""",
        {
            "memberEpoch": 2,
            "previousMemberEpoch": 1,
            "state": 1,
            "activeTasks": [{"subtopologyId": "0", "partitions": [0], "assignmentEpochs": [2]}],
            "standbyTasks": [{"subtopologyId": "0", "partitions": [1]}],
            "warmupTasks": [],
            "activeTasksPendingRevocation": [],
            "standbyTasksPendingRevocation": [],
            "warmupTasksPendingRevocation": [],
        },
    ),
    (
        23,
        GROUP,
        "0000 00000001 02 0230 02 0274 01 02 0263 00000003 0001 02 026b 0276 00 00 01 01 02 02 0005 01 01 00 00 00",
        {
            "epoch": 1,
            "subtopologies": [
                {
                    "subtopologyId": "0",
                    "sourceTopics": ["t"],
                    "sourceTopicRegex": [],
                    "stateChangelogTopics": [
                        {
                            "name": "c",
                            "partitions": 3,
                            "replicationFactor": 1,
                            "topicConfigs": [{"key": "k", "value": "v"}],
                        }
                    ],
                    "repartitionSinkTopics": [],
                    "repartitionSourceTopics": [],
                    "copartitionGroups": [{"sourceTopics": [5], "sourceTopicRegex": [], "repartitionSourceTopics": []}],
                }
            ],
        },
    ),
]
IDS = [f"{number}-{place}" for place, (number, *_) in enumerate(VECTORS)]


@pytest.mark.parametrize(("number", "rest_of_key", "value", "data"), VECTORS, ids=IDS)
def test_the_bytes_of_the_real_serde_are_read_and_written(number, rest_of_key, value, data):
    record = decode_record(*raw(number, rest_of_key, value))
    assert encode_record(record) == raw(number, rest_of_key, value)
    key = KEYS[rest_of_key]
    assert to_formatter_json(record) == {
        "key": {"type": number, "data": key},
        "value": {"version": 0, "data": data},
    }
    assert from_formatter_json(number, 0, data) == record.value
    assert (record.group_id, record.member_id) == ("g1", key.get("memberId"))
    assert (record.is_tombstone, record.trailing_bytes, record.undecoded) == (False, 0, None)


@pytest.mark.parametrize(("number", "rest_of_key", "value", "data"), VECTORS, ids=IDS)
def test_every_cut_of_a_value_is_refused_and_more_bytes_are_counted(number, rest_of_key, value, data):
    key, whole_value = raw(number, rest_of_key, value)
    for cut in range(len(whole_value)):
        with pytest.raises(BufferUnderflowError):
            decode_record(key, whole_value[:cut])
    assert len(whole_value) > 2
    expected = dataclasses.replace(decode_record(key, whole_value), trailing_bytes=3)
    assert decode_record(key, whole_value + b"abc") == expected


def test_absent_configs_are_empty_and_null_ones_are_null():
    absent, _, explicit = (decode_record(*raw(*vector[:3])).value for vector in VECTORS if vector[0] == 17)
    assert absent["last_assignment_configs"] == ()
    assert explicit["last_assignment_configs"] is None


def test_an_absent_classic_member_is_the_empty_one_and_null_is_null():
    explicit, _, absent, _ = (decode_record(*raw(*vector[:3])).value for vector in VECTORS if vector[0] == 5)
    assert absent["classic_member_metadata"] == {"session_timeout_ms": 0, "supported_protocols": ()}
    assert explicit["classic_member_metadata"] is None


@pytest.mark.parametrize(
    ("tagged", "rewritten", "printed"),
    [
        ("01 00 07 01 00000000 01 00", "00", {}),
        ("01 00 07 02 00000001 01 00", "01 00 07 01 00000001 01 00", {"sessionTimeoutMs": 1, "supportedProtocols": []}),
        ("01 00 05 8080808008", "01 00 01 00", None),
        (
            "01 00 0a 01 00000000 01 01 05 01 aa",
            "01 00 0a 01 00000000 01 01 05 01 aa",
            {"sessionTimeoutMs": 0, "supportedProtocols": []},
        ),
    ],
    ids=["the default is written", "another marker", "a negative marker", "an unknown tag"],
)
def test_odd_forms_of_a_classic_member_are_read_and_rewritten_as_kafkas_serde_does(tagged, rewritten, printed):
    """GroupCoordinatorRecordSerde of 4.3.1 read these bytes and wrote them again."""
    record = decode_record(*raw(5, MEMBER, HEAD_OF_MEMBER + tagged))
    assert encode_record(record) == raw(5, MEMBER, HEAD_OF_MEMBER + rewritten)
    data = to_formatter_json(record)["value"]["data"]
    assert data.get("classicMemberMetadata", {}) == printed


@pytest.mark.parametrize(
    ("number", "value", "error"),
    [
        (3, "0000 00000004 01 00 07 11223344556677", InvalidLengthError),
        (3, "0000 00000004 01 00 ffffffff0f 1122334455667788", BufferUnderflowError),
        (4, "0000 00 00", InvalidLengthError),
        (4, "0000 ffffffff0f 00", BufferUnderflowError),
        (4, f"0000 02 {ID} 0274 00000002 ffffffff0f 00000000 01 00 00 00", BufferUnderflowError),
        (5, "0000 00 00 00 0268 01 00 ffffffff 00 00", InvalidLengthError),
        (5, "0000 ffffffff0f 00 0263 0268 01 00 ffffffff 00 00", InvalidLengthError),
        (5, "0000 00 00 0263 0268 00 00 ffffffff 00 00", InvalidLengthError),
        (5, f"{HEAD_OF_MEMBER} 01 00 07 01 00000001 00 00", InvalidLengthError),
        (5, f"{HEAD_OF_MEMBER} 01 00 0b 01 00000001 02 0261 00 00 00", InvalidLengthError),
        (5, f"{HEAD_OF_MEMBER} 01 00 0f 01 00000001 02 0261 ffffffff0f 00 00", InvalidLengthError),
        (5, f"{HEAD_OF_MEMBER} 01 00 0b 01 00000001 ffffffff0f 00", InvalidLengthError),
        (5, f"{HEAD_OF_MEMBER} 01 00 02 00 00", InvalidLengthError),
        (5, f"{HEAD_OF_MEMBER} 01 00 06 ffffffffff 01", MalformedVarintError),
        (6, "0000 00000004 01 00 09 0000018bcfe56800 00", InvalidLengthError),
        (7, f"0000 02 {ID} ffffffff0f 00000000 00 00", BufferUnderflowError),
        (8, "0000 00000004 00000003 00 00 01 00", InvalidLengthError),
        (8, f"0000 00000004 00000003 00 02 {ID} 01 01 00 05 ffffffff0f 01 00", InvalidLengthError),
        (16, "0000 ffffffff0f 0000000000000000 0000000000000000 00", BufferUnderflowError),
        (16, "0000 01 0000000000000000 0000000000000000 ffffffff0f", BufferUnderflowError),
    ],
)
def test_nulls_and_lengths_that_a_value_of_a_consumer_group_lacks_room_for_are_refused(number, value, error):
    rest_of_key = next(vector[1] for vector in CONSUMER_VECTORS if vector[0] == number)
    with pytest.raises(error):
        decode_record(*raw(number, rest_of_key, value))


@given(st.sampled_from([number for number, kind in RECORD_TYPES.items() if kind.values]), st.data())
def test_values_are_read_back_from_their_bytes_and_from_their_json(number, data):
    record_type = RECORD_TYPES[number]
    tree = data.draw(trees(record_type.values[0]))
    key = {field.name: "k" for field in record_type.key.fields}
    written = encode_record(GroupRecord(record_type=number, name=record_type.name, key=key, version=0, value=tree))
    record = decode_record(*written)
    assert decode_record(*encode_record(record)) == record
    printed = to_formatter_json(record)["value"]["data"]
    without_unknown_tags = from_formatter_json(number, 0, printed)
    again = dataclasses.replace(record, value=without_unknown_tags)
    assert to_formatter_json(again)["value"]["data"] == printed
    assert decode_record(*encode_record(again)).value == without_unknown_tags


def test_unknown_tags_are_kept_and_written_back_and_not_printed():
    key, value = raw(11, GROUP, "0000 00000004 1122334455667788 01 07 02 abcd")
    record = decode_record(key, value)
    assert record.value["unknown_tags"] == (UnknownTag(tag=7, data=b"\xab\xcd"),)
    assert encode_record(record) == (key, value)
    assert to_formatter_json(record)["value"]["data"] == {"epoch": 4, "metadataHash": 0x1122334455667788}


@pytest.mark.parametrize("number", RECORD_TYPES)
def test_every_type_has_tombstones_under_its_group(number):
    rest = {
        "group_id": "g1",
        "group": "g1",
        "member_id": "m1",
        "topic": "t",
        "partition": 3,
        "regular_expression": "a.*",
    }
    record_type = RECORD_TYPES[number]
    key = number.to_bytes(2, "big") + record_type.key.write(rest)
    record = decode_record(key, None)
    assert record == GroupRecord(
        record_type=number,
        name=record_type.name,
        key={field.name: rest[field.name] for field in record_type.key.fields},
    )
    assert record.is_tombstone
    assert record.group_id == "g1"
    assert encode_record(record) == (key, None)
    assert to_formatter_json(record)["value"] is None


def test_types_of_other_groups_are_classified_and_their_values_kept():
    key, value = b"\0\2" + bytes.fromhex(GROUP), b"\0\3\0\0\0\5\0"
    record = decode_record(key, value)
    assert (record.name, record.version, record.value) == ("GroupMetadata", 3, None)
    assert record.undecoded == value[2:]
    assert encode_record(record) == (key, value)
    assert to_formatter_json(record)["value"] == {"version": 3, "data": None}


def test_unknown_versions_are_kept_as_they_are():
    key, value = b"\0\x0b" + bytes.fromhex(GROUP), b"\0\1anything"
    record = decode_record(key, value)
    assert (record.version, record.value, record.undecoded) == (1, None, b"anything")
    assert encode_record(record) == (key, value)


@pytest.mark.parametrize("number", [-1, 9, 18, 24])
def test_types_that_were_never_shipped_are_kept_as_they_are(number):
    key = number.to_bytes(2, "big", signed=True) + b"whatever"
    assert group_records.classify(key) == number
    record = decode_record(key, b"x")
    assert record == UnknownTypeRecord(record_type=number, key=key, value=b"x")
    assert encode_record(record) == (key, b"x")


def test_the_classification_is_that_of_the_shipped_broker():
    assert sorted(RECORD_TYPES) == [*range(9), *range(10, 18), *range(19, 24)]
    decoded = {number for number, record_type in RECORD_TYPES.items() if record_type.values}
    assert decoded == {*range(3, 9), *range(10, 18), *range(19, 24)}
    assert TABLE_TYPES == (3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23)
    for kind, prefix in (
        (GroupKind.CONSUMER, "ConsumerGroup"),
        (GroupKind.SHARE, "ShareGroup"),
        (GroupKind.STREAMS, "StreamsGroup"),
    ):
        record_types = [record_type for record_type in RECORD_TYPES.values() if record_type.name.startswith(prefix)]
        assert all(record_type.group_kind is kind and record_type.values for record_type in record_types)
        assert len(record_types) == sum(record_type.group_kind is kind for record_type in RECORD_TYPES.values())


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (None, InvalidKeyError),
        (b"\0", InvalidKeyError),
        (b"\0\x0b", InvalidKeyError),
        (b"\0\x0b\0\2g", InvalidKeyError),
        (b"\0\x0a\0\2g1", InvalidKeyError),
        (b"\0\x0b\xff\xff", InvalidKeyError),
        (b"\0\x0b\0\1\xff", InvalidTextError),
    ],
)
def test_keys_that_are_no_keys_are_refused(key, error):
    with pytest.raises(error):
        decode_record(key, None)


@given(st.sampled_from(VECTORS), st.binary(max_size=60))
def test_arbitrary_values_are_read_or_refused(vector, value):
    key, _ = raw(*vector[:3])
    try:
        record = decode_record(key, b"\0\0" + value)
    except DecodeError as error:
        reason = error.reason
    else:
        reason = None
        to_formatter_json(record)
        assert decode_record(*encode_record(record)) == dataclasses.replace(record, trailing_bytes=0)
    assert reason in {None, "invalid_utf8", "truncated_value", "malformed_varint", "invalid_length"}


@given(st.sampled_from(VECTORS), st.data())
def test_a_flipped_byte_is_read_or_refused(vector, data):
    key, value = raw(*vector[:3])
    place = data.draw(st.integers(2, len(value) - 1))
    flipped = value[:place] + bytes([value[place] ^ data.draw(st.integers(1, 255))]) + value[place + 1 :]
    try:
        record = decode_record(key, flipped)
    except DecodeError:
        return
    assert decode_record(*encode_record(record)) == dataclasses.replace(record, trailing_bytes=0)


def test_names_are_kafkas():
    assert camel_case("previous_member_epoch") == "previousMemberEpoch"
    assert camel_case("epoch") == "epoch"
