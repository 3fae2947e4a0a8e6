"""Requests about the group `g` that groups of all kinds answer, and its records in the log of the broker."""

from sharelens.broker.coordinators.group_log import GroupLog
from state_model.group_records import decode_record
from tests.broker_parts.broker_memory import DISK_FULL

DELETE, FETCH, FORGET, ALTER = (42, 2), (9, 9), (47, 0), (44, 1)
GROUP_RESOURCE = 32


def code(answer):
    """The error code of an answer."""
    return answer["error_code"].value


def log_records(broker, group_id):
    """All records in the log that has a group, of a broker without its dispatcher."""
    log = GroupLog(broker.catalog, broker.logs).log_for(group_id)
    return [decode_record(each.key, each.value) for each in log.records(0, log.high_watermark - 1)]


def records(broker):
    """The records of the group in the log."""
    return [record for record in log_records(broker.broker, "g") if record.group_id == "g"]


def types(broker, since=0):
    """Type and whether it is a tombstone, of the records of the group in the log."""
    return [(record.record_type, record.is_tombstone) for record in records(broker)[since:]]


def fetch(broker, member=None, epoch=-1):
    """The error code and the committed offsets of all partitions."""
    requested = {"group_id": "g", "member_id": member, "member_epoch": epoch, "topics": None}
    (group,) = broker.call(*FETCH, groups=[requested])["groups"]
    offsets = [each["committed_offset"] for topic in group["topics"] for each in topic["partitions"]]
    return code(group), offsets


def delete(broker):
    """The code of deleting the group."""
    (result,) = broker.call(*DELETE, groups_names=["g"])["results"]
    return code(result)


def forget(broker, topic):
    """The code of deleting the offset of a topic's first partition."""
    topics = [{"name": topic, "partitions": [{"partition_index": 0}]}]
    (deleted,) = broker.call(*FORGET, group_id="g", topics=topics)["topics"]
    return code(deleted["partitions"][0])


def alter(broker, name, value):
    """The code of setting a configuration of the group."""
    configs = [{"name": name, "config_operation": 0, "value": value}]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": "g", "configs": configs}
    (answer,) = broker.call(*ALTER, resources=[resource])["responses"]
    return code(answer)


def refuse(*_, **__):
    """An append to a log whose disk is full."""
    raise DISK_FULL
