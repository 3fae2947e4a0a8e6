"""Rules ST-22, ST-26, ST-27 and ST-32: what a streams group and its members say of themselves."""

from collections.abc import Mapping
from typing import Final

from state_model.audit.group_steps import GroupDifference
from state_model.audit.model_groups.bounds import MAX_STANDBY_REPLICAS
from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.model_groups.shape import differs
from state_model.audit.rule import Field
from state_model.audit.severities import WARNING
from state_model.audit.streams.history import History
from state_model.audit.streams.shape import Check, streams_rule
from state_model.streams.records import MEMBER, METADATA, TOPOLOGY

STANDBY_REPLICAS: Final = "num.standby.replicas"
MAX_DIGITS: Final = 9
MOST_REPLICAS: Final = 2
"""The default of group.streams.max.standby.replicas."""


def standby_replicas(metadata: ModelRecord) -> int | None:
    """The standby replicas by the newest record of a group; None: it has no number of them."""
    entries = (metadata.value or {}).get("lastAssignmentConfigs") or ()
    texts = [entry["value"] for entry in entries if entry["key"] == STANDBY_REPLICAS]
    text = texts[0] if texts else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def validated_epoch(history: History, record: ModelRecord) -> GroupDifference | None:
    """A validated topology epoch that is neither that of the topology nor -1."""
    topology = history.life.topology
    if not record.is_a(METADATA) or topology is None:
        return None
    validated, epoch = record.number("validatedTopologyEpoch"), topology.number("epoch")
    return None if validated in (-1, epoch) else differs(Field.TOPOLOGY_EPOCH, epoch, validated, topology)


def newer_topology(history: History, record: ModelRecord) -> GroupDifference | None:
    """A member with a topology epoch above that of the group."""
    return _topology_epoch(history, record, is_newer=True)


def older_topology(history: History, record: ModelRecord) -> GroupDifference | None:
    """A member with a topology epoch below that of the group."""
    return _topology_epoch(history, record, is_newer=False)


def _topology_epoch(history: History, record: ModelRecord, *, is_newer: bool) -> GroupDifference | None:
    topology = record if record.is_a(TOPOLOGY) else history.life.topology
    if topology is None or not (record.is_a(MEMBER) or record.is_a(TOPOLOGY)):
        return None
    expected = topology.number("epoch")
    members = [record] if record.is_a(MEMBER) else list(history.life.members.values())
    for member in members:
        epoch = member.number("topologyEpoch")
        if epoch > expected if is_newer else epoch < expected:
            return differs(Field.TOPOLOGY_EPOCH, expected, epoch, topology if record is member else member)
    return None


def odd_member(history: History, record: ModelRecord) -> GroupDifference | None:
    """A member without a process or a rebalance timeout, or with an instance id."""
    if not record.is_a(MEMBER) or record.value is None:
        return None
    if record.value["rebalanceTimeoutMs"] <= 0:
        return differs(Field.REBALANCE_TIMEOUT_MS, 1, record.value["rebalanceTimeoutMs"])
    if not record.value["processId"] or record.value["instanceId"] is not None:
        return differs(Field.KNOWN, 1, 0)
    return None


def odd_configurations(history: History, record: ModelRecord) -> GroupDifference | None:
    """Configurations of the assignment that are not a number of standby replicas."""
    if not record.is_a(METADATA):
        return None
    entries = (record.value or {}).get("lastAssignmentConfigs") or ()
    if len(entries) == 1 and standby_replicas(record) is not None:
        return None
    return differs(Field.CONFIGURATIONS, 1, 0 if standby_replicas(record) is None else len(entries))


def many_replicas(history: History, record: ModelRecord) -> GroupDifference | None:
    """More standby replicas than brokers allow, by their configuration or by default."""
    replicas = standby_replicas(record) if record.is_a(METADATA) else None
    configured = history.bounds(MAX_STANDBY_REPLICAS, record.timestamp_ms, record.timestamp_ms)
    max_replicas = MOST_REPLICAS if configured is None else configured[1]
    return (
        None
        if replicas is None or replicas <= max_replicas
        else differs(Field.STANDBY_REPLICAS, max_replicas, replicas)
    )


RULES: Final = (
    streams_rule(
        22,
        "streams_validated_topology",
        "The validated topology epoch is that of the topology, or -1",
        "The coordinator validates the topology that it has, against the topics.",
    ),
    streams_rule(
        26,
        "streams_member_with_newer_topology",
        "No member has a newer topology than its group",
        "A topology can't be updated: the coordinator refuses a member with a newer one.",
        relation="<=",
    ),
    streams_rule(
        26,
        "streams_member_with_older_topology",
        "No member has an older topology than its group",
        "The coordinator accepts it, and tells it STALE_TOPOLOGY.",
        part=1,
        severity=WARNING,
        relation=">=",
        remedy="Restart the instance with the newer application.",
    ),
    streams_rule(
        27,
        "streams_odd_member",
        "A member has a process id and a rebalance timeout, and no instance id",
        "Kafka Streams sends them, and 4.3 refuses static members.",
        severity=WARNING,
        remedy="Find out which client it is.",
    ),
    streams_rule(
        32,
        "streams_assignment_configurations",
        "The configurations of the assignment are the number of standby replicas",
        "The coordinator keeps this one, as a decimal number.",
        severity=WARNING,
        remedy="Find out which broker wrote the record.",
    ),
    streams_rule(
        32,
        "streams_standby_replicas_limit",
        "A group has at most as many standby replicas as brokers allow",
        "group.streams.max.standby.replicas bounds them; where the configuration is unknown, its default of 2 counts.",
        part=1,
        severity=WARNING,
        relation="<=",
        remedy="Nothing to do where group.streams.max.standby.replicas was raised.",
    ),
)
CHECKS: Final[Mapping[int, Check]] = {
    1220: validated_epoch,
    1260: newer_topology,
    1261: older_topology,
    1270: odd_member,
    1320: odd_configurations,
    1321: many_replicas,
}
