"""Topics of the catalogue as coordinators of groups hash and assign them."""

from sharelens.broker.ports import Topics
from state_model.group_topics import TopicMetadata
from state_model.uuids import uuid_bytes


def topic_metadata(topics: Topics, name: str, racks: tuple[str, ...]) -> TopicMetadata | None:
    """The topic of a name, None when there is none; `racks`: those of the replicas of each partition."""
    topic = topics.by_name(name)
    if topic is None:
        return None
    return TopicMetadata(topic.name, uuid_bytes(topic.topic_id), topic.partitions, racks)
