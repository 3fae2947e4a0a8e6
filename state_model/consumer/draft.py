"""A consumer group and the records of one operation on it, applied as they are added."""

from state_model.consumer import records
from state_model.consumer.group import with_value, without_value
from state_model.consumer.group_values import ConsumerGroup, GroupMetadata
from state_model.group_records import GroupRecord
from state_model.streams.metadata_hash import metadata_hash
from state_model.streams.topology import Topics


class Draft:
    """A group that records change; no record of a draft ends its group."""

    def __init__(self, group_id: str, group: ConsumerGroup) -> None:
        self.group_id = group_id
        self.group = group
        self.records: list[GroupRecord] = []

    def add(self, record_type: int, value: records.RecordValue, name: str | None = None) -> None:
        """Add the record of a value; `name`: the member id or regular expression of its key."""
        self.records.append(records.record_of(record_type, self.group_id, value, name))
        self.group = with_value(self.group, record_type, name or "", value)

    def end(self, record_type: int, name: str | None = None) -> None:
        """Add a tombstone."""
        self.records.append(records.record_of(record_type, self.group_id, None, name))
        group = without_value(self.group, record_type, name or "")
        assert group is not None
        self.group = group

    def end_member(self, member_id: str) -> None:
        """Add the tombstones of a member, in the order that replay needs (GroupMetadataManager.removeMember)."""
        for record_type in (records.ASSIGNMENT, records.MEMBER_TARGET, records.MEMBER):
            self.end(record_type, member_id)

    def update_metadata(self, topics: Topics, *, raises_epoch: bool) -> bool:
        """Raise the group epoch, also when the metadata hash of the subscribed topics changed; whether it did."""
        existing = (topics(name) for name in self.group.topic_names)
        hashed = metadata_hash(topic for topic in existing if topic is not None)
        is_raised = raises_epoch or hashed != self.group.metadata.metadata_hash
        if is_raised:
            self.add(records.METADATA, GroupMetadata(self.group.group_epoch + 1, hashed))
        return is_raised
