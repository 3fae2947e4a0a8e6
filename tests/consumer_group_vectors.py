"""Records of consumer groups as Kafka 4.3.1 writes them, and their values as its tools print them.

`org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde` wrote the bytes, and read them back as the same record;
the JSON is that of `org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters`.
"""

from typing import Any

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
ID = "000102030405060708090a0b0c0d0e0f"
GROUP, MEMBER, REGEX = "0002 6731", "0002 6731 0002 6d31", "0002 6731 0003 742e2a"
KEYS = {
    GROUP: {"groupId": "g1"},
    MEMBER: {"groupId": "g1", "memberId": "m1"},
    REGEX: {"groupId": "g1", "regularExpression": "t.*"},
}
"""The key in Kafka's JSON, by its bytes behind the type."""
TIME_MS = 0x18BCFE56800
MEMBER_WITHOUT_TEXTS = {
    "instanceId": None,
    "rackId": None,
    "clientId": "c",
    "clientHost": "h",
    "subscribedTopicNames": [],
    "subscribedTopicRegex": None,
    "rebalanceTimeoutMs": -1,
    "serverAssignor": None,
}
HEAD_OF_MEMBER = "0000 00 00 0263 0268 01 00 ffffffff 00"
"""The bytes of a ConsumerGroupMemberMetadata without texts, up to its tagged fields."""

Vector = tuple[int, str, str, dict[str, Any]]
CONSUMER_VECTORS: list[Vector] = [
    (
        3,
        GROUP,
        "0000 00000004 01 00 08 1122334455667788",
        {"epoch": 4, "metadataHash": 0x1122334455667788},
    ),
    (3, GROUP, "0000 00000004 00", {"epoch": 4}),
    (
        4,
        GROUP,
        f"0000 02 {ID} 0274 00000002 03 00000000 03 0261 0262 00 00000001 01 00 00 00",
        {
            "topics": [
                {
                    "topicId": TOPIC,
                    "topicName": "t",
                    "numPartitions": 2,
                    "partitionMetadata": [{"partition": 0, "racks": ["a", "b"]}, {"partition": 1, "racks": []}],
                }
            ]
        },
    ),
    (
        4,
        GROUP,
        f"0000 02 {ID} 0274 00000002 01 00 00",
        {"topics": [{"topicId": TOPIC, "topicName": "t", "numPartitions": 2, "partitionMetadata": []}]},
    ),
    (
        5,
        MEMBER,
        "0000 00 00 0263 0b2f3132372e302e302e31 02 0274 01 000493e0 00 01 00 01 00",
        {
            "instanceId": None,
            "rackId": None,
            "clientId": "c",
            "clientHost": "/127.0.0.1",
            "subscribedTopicNames": ["t"],
            "subscribedTopicRegex": "",
            "rebalanceTimeoutMs": 300000,
            "serverAssignor": None,
            "classicMemberMetadata": None,
        },
    ),
    (
        5,
        MEMBER,
        """
        0000 0269 0272 0263 0268 03 0274 0275 04742e2a ffffffff 08756e69666f726d
        01 00 1c 01 0000afc8 03 0672616e6765 05 0003fbff 00 07737469636b79 01 00 00
        """,
        {
            "instanceId": "i",
            "rackId": "r",
            "clientId": "c",
            "clientHost": "h",
            "subscribedTopicNames": ["t", "u"],
            "subscribedTopicRegex": "t.*",
            "rebalanceTimeoutMs": -1,
            "serverAssignor": "uniform",
            "classicMemberMetadata": {
                "sessionTimeoutMs": 45000,
                "supportedProtocols": [{"name": "range", "metadata": "AAP7/w=="}, {"name": "sticky", "metadata": ""}],
            },
        },
    ),
    (5, MEMBER, f"{HEAD_OF_MEMBER} 00", MEMBER_WITHOUT_TEXTS),
    (
        5,
        MEMBER,
        f"{HEAD_OF_MEMBER} 01 00 07 01 00000001 01 00",
        MEMBER_WITHOUT_TEXTS | {"classicMemberMetadata": {"sessionTimeoutMs": 1, "supportedProtocols": []}},
    ),
    (
        6,
        GROUP,
        "0000 00000004 01 00 08 0000018bcfe56800",
        {"assignmentEpoch": 4, "assignmentTimestamp": TIME_MS},
    ),
    (6, GROUP, "0000 00000004 00", {"assignmentEpoch": 4}),
    (
        7,
        MEMBER,
        f"0000 02 {ID} 03 00000000 00000002 00 00",
        {"topicPartitions": [{"topicId": TOPIC, "partitions": [0, 2]}]},
    ),
    (
        8,
        MEMBER,
        f"""
        0000 00000004 00000003 01 02 {ID} 03 00000000 00000001 01 00 09 03 00000002 00000004
        02 {ID} 02 00000002 01 00 05 02 00000002 00
        """,
        {
            "memberEpoch": 4,
            "previousMemberEpoch": 3,
            "state": 1,
            "assignedPartitions": [{"topicId": TOPIC, "partitions": [0, 1], "assignmentEpochs": [2, 4]}],
            "partitionsPendingRevocation": [{"topicId": TOPIC, "partitions": [2], "assignmentEpochs": [2]}],
        },
    ),
    (
        8,
        MEMBER,
        f"0000 00000004 00000003 00 03 {ID} 02 00000000 00 {ID} 02 00000001 01 00 01 00 01 00",
        {
            "memberEpoch": 4,
            "previousMemberEpoch": 3,
            "state": 0,
            "assignedPartitions": [
                {"topicId": TOPIC, "partitions": [0]},
                {"topicId": TOPIC, "partitions": [1], "assignmentEpochs": None},
            ],
            "partitionsPendingRevocation": [],
        },
    ),
    (
        16,
        REGEX,
        "0000 03 0274 0275 0000000000000029 0000018bcfe56800 00",
        {"topics": ["t", "u"], "version": 41, "timestamp": TIME_MS},
    ),
    (16, REGEX, "0000 01 0000000000000000 0000000000000000 00", {"topics": [], "version": 0, "timestamp": 0}),
]


def raw(number: int, rest_of_key: str, value: str) -> tuple[bytes, bytes]:
    """Key and value of a vector in bytes."""
    return number.to_bytes(2, "big") + bytes.fromhex(rest_of_key), bytes.fromhex(value)


CONSUMER_RECORDS = [raw(number, rest_of_key, value) for number, rest_of_key, value, _ in CONSUMER_VECTORS]
