"""A consumer group and the records of one operation on it."""

from state_model import group_replay
from state_model.consumer.group import REPLAY
from state_model.consumer.group_values import ConsumerGroup, GroupMetadata
from state_model.consumer.records import METADATA, RecordValue
from state_model.group_topics import Topics, metadata_hash


class Draft(group_replay.Draft[ConsumerGroup, RecordValue]):
    """A consumer group that records change."""

    def __init__(self, group_id: str, group: ConsumerGroup) -> None:
        super().__init__(REPLAY, group_id, group)

    def hash_topics(self, topics: Topics) -> int:
        """The metadata hash of the topics that the group subscribes to."""
        existing = (topics(name) for name in self.group.topic_names)
        return metadata_hash(topic for topic in existing if topic is not None)

    def update_metadata(self, topics: Topics, *, raises_epoch: bool) -> bool:
        """Raise the group epoch, also when the metadata hash of the subscribed topics changed; whether it did."""
        hashed = self.hash_topics(topics)
        is_raised = raises_epoch or hashed != self.group.metadata.metadata_hash
        if is_raised:
            self.add(METADATA, GroupMetadata(self.group.group_epoch + 1, hashed))
        return is_raised
