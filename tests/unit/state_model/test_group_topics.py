from state_model.group_topics import TopicMetadata, metadata_hash, topic_hash
from state_model.uuids import uuid_bytes


def test_the_hash_of_topics_is_that_of_a_recorded_group():
    # The group app-sd of the recorded log streams-topology, before its source topic was deleted.
    topic = TopicMetadata("sd-plain", uuid_bytes("jv2IJav9S4CHKX8uPiovBw"), 2)
    assert metadata_hash([topic]) == -4446106449537415232
    assert metadata_hash([]) == 0
    assert topic_hash(topic) != topic_hash(topic._replace(partitions=3))


def test_the_hash_of_topics_covers_the_racks_of_their_replicas():
    # A group of Kafka 4.3.1 with broker.rack=rack-a.
    ids = {"t3-in": "FZ4QYwzqSRCUxewv5f60zg", "t3-log": "PxZzJ7hbRy21_NHvVs3_tg"}
    hashed_topics = [TopicMetadata(name, uuid_bytes(topic_id), 6, ("rack-a",)) for name, topic_id in ids.items()]
    assert metadata_hash(hashed_topics) == 8114336111852163358
    assert metadata_hash([topic._replace(racks=()) for topic in hashed_topics]) != 8114336111852163358
